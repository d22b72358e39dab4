//! Notices while a stream is opened.

use std::fmt;
use std::net::SocketAddr;

use grebe_datagram::Granted;
use grebe_shm::Footprint;

/// Receives notices.
pub(crate) type Notify<'a> = &'a mut dyn FnMut(Notice);

/// A non-fatal notice about opening a stream. Its text is one line for the user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// The stream in shared memory does not exist yet.
    WaitingForStream {
        /// The stream.
        name: String,
    },
    /// No host announces a stream of this name yet.
    WaitingForName {
        /// The stream.
        name: String,
        /// The scope of the search.
        reach: String,
    },
    /// The route of a stream that was opened by name.
    Route {
        /// The stream.
        name: String,
        /// Its producer.
        from: String,
        /// The URI of the route.
        by: String,
    },
    /// The producer sends, but no frame arrives.
    NothingComes {
        /// The stream.
        name: String,
        /// The lab's reach.
        reach: String,
    },
    /// The stream is announced under this name.
    Announced {
        /// The stream.
        name: String,
        /// The scope of the announcement.
        reach: String,
    },
    /// A stream in shared memory was created.
    Lending {
        /// The stream.
        name: String,
        /// Its memory.
        footprint: Footprint,
    },
    /// The stream starts after this many readers have joined.
    WaitingForReaders {
        /// Number of readers.
        count: usize,
    },
    /// The kernel granted a smaller socket buffer than requested.
    SmallBuffer(Granted),
    /// A stream over TCP waits for a connection.
    WaitingForConnection {
        /// The scheme of its URI: `tcp`.
        scheme: &'static str,
        /// With the port that the system chose for port 0.
        address: SocketAddr,
    },
    /// The other end, or a device, is missing, and the stream waits for it.
    NotThereYet {
        /// The error of opening it.
        why: String,
    },
    /// Losses are invisible, for this reason.
    UnseenLoss(&'static str),
    /// Losses are invisible, for this reason, except that the clock shows long ones.
    LossByClock(&'static str),
    /// The radio and its settings.
    Radio(String),
    /// A note about a recording: scaling, or an interrupted recorder.
    Recording(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::WaitingForStream { name } => write!(f, "waiting for the stream shm://{name}"),
            Notice::WaitingForName { name, reach } => write!(f, "waiting for {name} (searching {reach})"),
            Notice::Route { name, from, by } => write!(f, "{name} of {from} by {by}"),
            Notice::NothingComes { name, reach } => write!(
                f,
                "nothing comes of {name}, although its producer sends: the access control at {reach} may not let this user receive it \
                 (declare_subscriber, and put on the way out); docs/zenoh-router.md has rules that do"
            ),
            Notice::Announced { name, reach } => write!(f, "announced as {name}; seen by {reach}"),
            Notice::Lending { name, footprint } => write!(f, "lending as shm://{name}: {footprint}"),
            Notice::WaitingForReaders { count } => write!(f, "waiting for {count} to read it"),
            Notice::SmallBuffer(granted) => {
                // At 2 bytes a sample.
                let lasts_ms = granted.granted_bytes as f64 / 2e8 * 1e3;
                write!(f, "{granted}; as it is, 100 MS/s fill it in {lasts_ms:.0} ms")
            }
            Notice::WaitingForConnection { scheme, address } => {
                write!(f, "listening on {scheme}://{address}")
            }
            Notice::NotThereYet { why } => write!(f, "{why}; waiting for it"),
            Notice::UnseenLoss(what) => write!(f, "{what} cannot be seen"),
            Notice::LossByClock(what) => {
                write!(f, "{what} cannot be seen; 50 ms or more show by the clock")
            }
            Notice::Radio(note) | Notice::Recording(note) => f.write_str(note),
        }
    }
}
