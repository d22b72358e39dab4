//! What a person may want to know while a stream is opened.

use std::fmt;
use std::net::SocketAddr;

use grebe_datagram::Granted;
use grebe_shm::Footprint;

/// Who is told what a person may want to know.
pub(crate) type Notify<'a> = &'a mut dyn FnMut(Notice);

/// What a person may want to know while a stream is opened; its text is a line for them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// The stream in shared memory is not there yet.
    WaitingForStream {
        /// The stream.
        name: String,
    },
    /// Nobody announces a stream of this name yet.
    WaitingForName {
        /// The stream.
        name: String,
        /// How far is looked.
        reach: String,
    },
    /// How a stream is read that was asked for by its name.
    Way {
        /// The stream.
        name: String,
        /// Who makes it.
        from: String,
        /// The URI that is read.
        by: String,
    },
    /// Nothing comes of a stream although its producer sends.
    NothingComes {
        /// The stream.
        name: String,
        /// How it is read.
        reach: String,
    },
    /// A stream is announced under this name.
    Announced {
        /// The stream.
        name: String,
        /// How far that is seen.
        reach: String,
    },
    /// A stream in shared memory was made.
    Lending {
        /// The stream.
        name: String,
        /// Its memory.
        footprint: Footprint,
    },
    /// The stream begins once so many read it.
    WaitingForReaders {
        /// How many.
        count: usize,
    },
    /// The kernel gave a smaller socket buffer than was asked for.
    SmallBuffer(Granted),
    /// A stream over TCP listens there.
    WaitingForConnection {
        /// What it is called there: `tcp`.
        scheme: &'static str,
        /// With the port that the system chose where none was named.
        address: SocketAddr,
    },
    /// The other end, or a device, is not there yet, and is waited for.
    NotThereYet {
        /// What opening it said.
        why: String,
    },
    /// What is lost cannot be seen, and why.
    UnseenLoss(&'static str),
    /// The same, where the clock tells of what is long enough.
    LossByClock(&'static str),
    /// Which radio was opened, and what it is set to.
    Radio(String),
    /// How a recording is read: scaling, a recorder that was cut off.
    Recording(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::WaitingForStream { name } => write!(f, "waiting for the stream shm://{name}"),
            Notice::WaitingForName { name, reach } => write!(f, "waiting for {name}; asked: {reach}"),
            Notice::Way { name, from, by } => write!(f, "{name} of {from} by {by}"),
            Notice::NothingComes { name, reach } => write!(
                f,
                "nothing comes of {name}, although its producer sends: the access control at {reach} may not let this user receive it \
                 (declare_subscriber, and put on the way out); docs/many-hosts.md has rules that do"
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
                write!(f, "{what} cannot be seen, but by the clock where it is 50 ms or more")
            }
            Notice::Radio(note) | Notice::Recording(note) => f.write_str(note),
        }
    }
}
