use std::io;

/// What this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a benchmark gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No scenario has this label.
    #[error("no scenario is called {label}; there are {known}")]
    UnknownScenario {
        /// What was asked for.
        label: String,
        /// All labels.
        known: String,
    },
    /// A datagram has no room for a frame of these channels.
    #[error(
        "a datagram of {datagram_bytes} bytes has no room for a sample of {channels} channels; at least {needed} are needed"
    )]
    DatagramTooSmall {
        /// What was asked for.
        datagram_bytes: usize,
        /// Channels a frame.
        channels: u32,
        /// Bytes of header and one sample a channel.
        needed: usize,
    },
    /// No bench of the runtime has this name.
    #[error("no bench of the runtime is called {name}; there are {known}")]
    UnknownBench {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// No part of the transfer bench has this name.
    #[error("no part of the transfer bench is called {name}; there are {known}")]
    UnknownPart {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// No link has this name.
    #[error("no link is called {name}; there are {known}")]
    UnknownLink {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// Something is missing here, without which nothing can be measured.
    #[error("{what}")]
    Needs {
        /// What is missing, and what to do.
        what: String,
    },
    /// A process of a run failed, and said why.
    #[error("the {side} failed: {reason}")]
    Process {
        /// Which.
        side: &'static str,
        /// What it said.
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
    /// Two sides that should have done the same did not.
    #[error("{bench}: {what}")]
    Wrong {
        /// Which bench.
        bench: &'static str,
        /// What differs.
        what: String,
    },
    /// A socket failed.
    #[error(transparent)]
    Datagram(#[from] grebe_datagram::Error),
    /// A stream in shared memory failed.
    #[error(transparent)]
    Shm(#[from] grebe_shm::Error),
    /// A socket or a process failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The process or thread on the other side gave no report.
    #[error("the {side} ended without a report: {reason}")]
    Peer {
        /// Receiver or sender.
        side: &'static str,
        /// What is known about it.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, source }
    }
}
