//! What may be chosen when a stream is opened, and what its opener is told.

use std::fmt;
use std::time::Duration;

use grebe_datagram::Granted;
use grebe_frame::BatchPool;
pub use grebe_ring::Cancel;
use grebe_shm::{Footprint, Policy};

use crate::error::Error;
use crate::stream::{DATAGRAM_BYTES, DATAGRAM_BYTES_MAX, check_datagram_bytes};
use crate::synth::Synth;
use crate::uri::Uri;

/// How frames travel. Both ends have these options.
#[derive(Debug, Clone)]
pub struct Transport {
    /// Bytes of the datagrams that frames should fit into, 80 to 65,507; `None`: 1400 beyond this machine, 65,000 within it.
    pub datagram_bytes: Option<usize>,
    /// Datagrams per system call, 1 to 128; 1 has the lowest latency.
    pub burst: usize,
    /// End-to-end latency budget: a source gathers for up to a quarter of it, a receiver sleeps for up to a half.
    pub latency: Duration,
}

/// How a source is opened. Each scheme uses the options that mean something to it.
#[derive(Debug)]
pub struct SourceOptions {
    /// How frames travel.
    pub transport: Transport,
    /// What the producer of a stream in shared memory calls this reader.
    pub reader: String,
    /// What happens when this reader of shared memory is too slow, where the URI does not say.
    pub policy: Policy,
    /// Whether to wait for a stream in shared memory that is not there yet.
    pub waits: bool,
    /// Ends the stream after this many samples per channel.
    pub samples: Option<u64>,
    /// Ends a recording after this much of the signal.
    pub duration: Option<Duration>,
    /// Fails once the sender has been silent for this long.
    pub idle_timeout: Option<Duration>,
    /// Plays a recording at so many times its rate; `None`: as fast as it is taken.
    pub speed: Option<f64>,
    /// Begins a recording again at its end, for ever.
    pub repeat: bool,
    /// What `synth:` makes. Its datagram size and latency are those of the transport.
    pub synth: Synth,
    /// Memory that a generator or a UDP source writes into, instead of its own: [`OpenSink::pool`](crate::OpenSink::pool).
    pub pool: Option<BatchPool>,
    /// Ends the wait for a stream.
    pub cancel: Cancel,
}

/// How a sink is opened. Each scheme uses the options that mean something to it.
#[derive(Debug, Clone, Default)]
pub struct SinkOptions {
    /// How frames travel.
    pub transport: Transport,
    /// Ends a recording after this much of the signal, to the sample.
    pub duration: Option<Duration>,
    /// Replaces a recording of the same name.
    pub overwrite: bool,
    /// Hands out the sink's own memory, where it has some, for the source to write into. Nothing is copied then, and the sink
    /// takes nothing else.
    pub lends_pool: bool,
    /// Ends the wait for readers.
    pub cancel: Cancel,
}

/// What a person may want to know while a stream is opened; its text is a line for them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// The stream in shared memory is not there yet.
    WaitingForStream {
        /// The stream.
        name: String,
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
    /// How a recording is read: scaling, a recorder that was cut off.
    Recording(String),
}

impl Default for Transport {
    /// Datagrams as suit the path, 128 per call, 500 us.
    fn default() -> Self {
        Self { datagram_bytes: None, burst: 128, latency: Duration::from_micros(500) }
    }
}

impl Transport {
    /// Bytes of the datagrams that suit a sink.
    ///
    /// # Errors
    /// The size that was chosen is out of its range, or the host has no address.
    pub fn datagram_bytes_to(&self, uri: &Uri) -> Result<usize, Error> {
        if let Some(bytes) = self.datagram_bytes {
            check_datagram_bytes(bytes)?;
            return Ok(bytes);
        }
        match uri {
            Uri::Udp(host_port) => {
                let is_local = host_port.to_send()?.ip().is_loopback() && !grebe_datagram::is_wsl2();
                Ok(if is_local { DATAGRAM_BYTES_MAX } else { DATAGRAM_BYTES })
            }
            _ => Ok(DATAGRAM_BYTES_MAX),
        }
    }

    pub(super) fn socket_options(&self) -> grebe_datagram::Options {
        grebe_datagram::Options {
            burst: self.burst,
            latency: self.latency,
            ..grebe_datagram::Options::default()
        }
    }

    /// How long a block may wait for others to travel with.
    pub(super) fn flush_every(&self) -> Duration {
        self.latency / 4
    }
}

impl Default for SourceOptions {
    /// All of the stream, without waiting for it; a recording as fast as it is taken; four channels of a sine at 1 MS/s.
    fn default() -> Self {
        Self {
            transport: Transport::default(),
            reader: String::new(),
            policy: Policy::DropOldest,
            waits: false,
            samples: None,
            duration: None,
            idle_timeout: None,
            speed: None,
            repeat: false,
            synth: Synth { channels: 4, ..Synth::default() },
            pool: None,
            cancel: Cancel::default(),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::WaitingForStream { name } => write!(f, "waiting for the stream shm://{name}"),
            Notice::Lending { name, footprint } => write!(f, "lending as shm://{name}: {footprint}"),
            Notice::WaitingForReaders { count } => write!(f, "waiting for {count} to read it"),
            Notice::SmallBuffer(granted) => granted.fmt(f),
            Notice::Recording(note) => f.write_str(note),
        }
    }
}
