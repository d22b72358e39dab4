use std::io;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a benchmark gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request for something that does not exist or makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Something is missing here, without which nothing can be measured, or two sides that should have done the same
    /// did not.
    #[error("{0}")]
    Failed(String),
    /// A process or thread of a run failed.
    #[error("the {side} failed: {reason}")]
    Peer {
        /// Which.
        side: &'static str,
        /// The program's message, or other information.
        reason: String,
    },
    /// The user ended it.
    #[error("ended before it was done")]
    Cancelled,
    /// A graph failed.
    #[error(transparent)]
    Flow(#[from] grebe_flow::Error),
    /// A source could not be made.
    #[error(transparent)]
    Stages(#[from] grebe_stages::Error),
    /// A generator that cannot be made.
    #[cfg(feature = "developer")]
    #[error(transparent)]
    Process(#[from] grebe_process::Error),
    /// A socket failed.
    #[error(transparent)]
    Datagram(#[from] grebe_datagram::Error),
    /// A stream in shared memory failed.
    #[error(transparent)]
    Shm(#[from] grebe_shm::Error),
    /// Zenoh refused something.
    #[cfg(feature = "zenoh")]
    #[error(transparent)]
    Zenoh(#[from] grebe_zenoh::Error),
    /// The system refused something.
    #[error("cannot {action}: {source}")]
    Io {
        /// The action, as a verb.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, source }
    }

    pub(crate) fn peer(side: &'static str, reason: impl ToString) -> Error {
        Error::Peer { side, reason: reason.to_string() }
    }

    /// A bench failed to measure what it should.
    #[cfg(feature = "developer")]
    pub(crate) fn wrong(bench: &str, what: impl std::fmt::Display) -> Error {
        Error::Failed(format!("{bench}: {what}"))
    }
}

/// The named entries of `all`, in its order; all of them without names.
pub(crate) fn choose<T: Clone>(
    all: &[T],
    name_of: impl Fn(&T) -> &str,
    kind: &str,
    names: &[String],
) -> Result<Vec<T>> {
    if let Some(name) = names.iter().find(|name| !all.iter().any(|one| name_of(one) == name.as_str())) {
        let mut known: Vec<&str> = all.iter().map(&name_of).collect();
        known.dedup();
        return Err(Error::Usage(format!("no {kind} is called {name}; there are {}", known.join(", "))));
    }
    let is_chosen = |one: &&T| names.is_empty() || names.iter().any(|name| name == name_of(one));
    Ok(all.iter().filter(is_chosen).cloned().collect())
}
