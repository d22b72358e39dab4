//! Errors while a stream is shown.

use std::io;
use std::path::PathBuf;

use grebe_scope::Error as ScopeError;

/// Reason why a stream cannot be shown. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The window system is missing; the terminal still works.
    #[error("no window can be opened: {why}")]
    NoDisplay {
        /// The missing part.
        why: String,
    },
    /// The window system refused, or the open window failed.
    #[error("the window failed: {why}; try --term")]
    Window {
        /// Its message.
        why: String,
    },
    /// The graphics device disappeared while the window was open; the terminal still works.
    #[error("the graphics device was lost: {why}; try --term")]
    DeviceLost {
        /// The driver's message.
        why: String,
    },
    /// Standard output is not a terminal, or it failed.
    #[error("the scope in the terminal needs a terminal: {source}")]
    Terminal {
        /// The system's error.
        source: io::Error,
    },
    /// Ctrl-C in the terminal.
    #[error("interrupted")]
    Interrupted,
    /// No sample arrived.
    #[error("nothing arrived within {seconds:.1} s: no picture was written to {path}")]
    NothingArrived {
        /// How long the scope waited.
        seconds: f64,
        /// The file to write.
        path: PathBuf,
    },
    /// The streams are not what the picture needs.
    #[error("{why}")]
    Refused {
        /// What is missing.
        why: String,
    },
    /// A session file is damaged.
    #[error("the session cannot be read: {why}")]
    Session {
        /// Line, field and reason.
        why: String,
    },
    /// The picture could not be drawn.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
