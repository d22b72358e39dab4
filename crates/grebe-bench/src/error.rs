use std::io;

/// What this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a benchmark gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that this crate does not know.
    #[error("no {kind} is called {name}; there are {known}")]
    Unknown {
        /// Of what: a scenario, a part, a link, a technique.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// A frame of these channels does not fit.
    #[error("{bytes} bytes have no room for a frame of {channels} channels; at least {needed} are needed")]
    TooSmall {
        /// What was asked for.
        bytes: usize,
        /// Channels per frame.
        channels: u32,
        /// Bytes of the smallest frame.
        needed: usize,
    },
    /// Something is missing here, without which nothing can be measured.
    #[error("{what}")]
    Needs {
        /// What is missing, and what to do.
        what: String,
    },
    /// A process or thread of a run failed.
    #[error("the {side} failed: {reason}")]
    Peer {
        /// Which.
        side: &'static str,
        /// What it said, or what is known about it.
        reason: String,
    },
    /// The user ended it.
    #[error("ended before it was done")]
    Cancelled,
    /// Two sides that should have done the same did not.
    #[error("{bench}: {what}")]
    Wrong {
        /// Which bench.
        bench: &'static str,
        /// What differs.
        what: String,
    },
    /// A graph failed.
    #[error(transparent)]
    Flow(#[from] grebe_flow::Error),
    /// A source could not be made.
    #[error(transparent)]
    Stages(#[from] grebe_stages::Error),
    /// A socket failed.
    #[error(transparent)]
    Datagram(#[from] grebe_datagram::Error),
    /// A stream in shared memory failed.
    #[error(transparent)]
    Shm(#[from] grebe_shm::Error),
    /// The system refused something.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, source }
    }

    pub(crate) fn unknown(kind: &'static str, name: &str, known: &[&str]) -> Error {
        Error::Unknown { kind, name: name.to_owned(), known: known.join(", ") }
    }

    pub(crate) fn peer(side: &'static str, reason: impl ToString) -> Error {
        Error::Peer { side, reason: reason.to_string() }
    }
}
