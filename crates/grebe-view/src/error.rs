//! What can go wrong while a stream is shown.

use std::io;
use std::path::PathBuf;

use grebe_scope::Error as ScopeError;

/// Why a stream could not be shown. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no window system to open a window on: the terminal works.
    #[error("no window can be opened: {why}")]
    NoDisplay {
        /// What is missing.
        why: String,
    },
    /// The window system refused, or the window broke while open.
    #[error("the window failed: {why}; try --term")]
    Window {
        /// What it said.
        why: String,
    },
    /// The graphics device went away while the window was open: the terminal works.
    #[error("the graphics device was lost: {why}; try --term")]
    DeviceLost {
        /// What the driver said.
        why: String,
    },
    /// Standard output is no terminal, or it failed.
    #[error("the scope in the terminal needs a terminal: {source}")]
    Terminal {
        /// What the system said.
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
        /// The file that was asked for.
        path: PathBuf,
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
        /// What the system said.
        source: io::Error,
    },
}
