//! How a source or a sink is opened.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

use grebe_frame::BatchPool;
use grebe_recording::{LeftOut, RingLength, RingPlan, Rotate, WriteWay};
use grebe_ring::Cancel;
use grebe_shm::Policy;

use crate::error::Error;
use crate::transport::{HostPort, Patience};
use crate::tuner::Tuner;

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
    /// Whether a source over UDP or shared memory waits for the next stream where one ends. The frame that ends a stream then goes
    /// on too, so that whoever reads knows.
    pub listens_on: bool,
    /// Takes a pipe that is closed without an end of stream for one that has ended: not every program sends one.
    pub ends_with_writer: bool,
    /// Ends the stream after this many samples per channel.
    pub samples: Option<u64>,
    /// Ends a recording after this much of the signal.
    pub duration: Option<Duration>,
    /// Fails once the sender has been silent for this long, also where it never came.
    pub idle_timeout: Option<Duration>,
    /// Fails where the other end is not there after this long; `None`: `idle_timeout` holds here too.
    pub open_timeout: Option<Duration>,
    /// Plays a recording at so many times its rate; `None`: as fast as it is taken.
    pub speed: Option<f64>,
    /// Begins a recording again at its end, for ever.
    pub repeat: bool,
    /// Plays of a recording what lies behind so much of the signal, and no more than `length` of it: what `repeat` repeats.
    pub start: Duration,
    /// See `start`; `None`: to the end.
    pub length: Option<Duration>,
    /// Memory that a generator or a UDP source writes into, instead of its own: [`OpenSink::pool`](crate::OpenSink::pool).
    pub pool: Option<BatchPool>,
    /// Tunes the receiver that is opened, in place of a tuner of its own: it is told what the receiver is tuned to.
    pub tuner: Option<Tuner>,
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
    /// Memory for what of a recording waits for the disk, in bytes; 256 MiB where it is not given.
    pub buffer_bytes: Option<usize>,
    /// How a recording is written to the disk.
    pub way: WriteWay,
    /// Records in parts, `NAME_000001`, ..., each a recording of its own: one ends between two frames, and the next goes on with the next
    /// sample. They are counted on behind those that are there.
    pub rotate: Option<Rotate>,
    /// The most bytes that the parts may have together, with the one that is written: the oldest are removed.
    pub keep_bytes: Option<u64>,
    /// Makes a ring of the recording, whose path is then that of a folder: in parts there, of which the oldest are removed for as long as
    /// it goes on.
    pub ring: Option<RingLength>,
    /// Is told what the ring is made of, once the stream is known and before anything is written.
    pub ring_plan: Option<Sender<RingPlan>>,
    /// Ends a recording before it has more bytes of samples, of all channels and parts.
    pub bytes_max: Option<u64>,
    /// Other disks that take turns with that of the recording, so that it is written at the rates of all: folders, or recordings there.
    pub more_disks: Vec<PathBuf>,
    /// Is told which of several disks is left out because it is full or fails, while the others go on.
    pub left_out: Option<Sender<LeftOut>>,
    /// Hands out the sink's own memory, where it has some, for the source to write into. Nothing is copied then, and the sink
    /// takes nothing else.
    pub lends_pool: bool,
    /// Bytes of the largest frame, header included, that a stream in shared memory has to hold; `None`: 256 KiB.
    pub frame_bytes_max: Option<usize>,
    /// Is told what clients of an `rtl_tcp` server ask for: the receiver that the stream comes from ([`OpenSource::tuner`](crate::OpenSource::tuner)).
    pub tuner: Option<Tuner>,
    /// What announces of the stream call this command.
    pub producer: String,
    /// URIs by which readers elsewhere get a stream that is announced, beside Zenoh.
    pub ways: Vec<String>,
    /// Ends the wait for readers.
    pub cancel: Cancel,
}

impl Default for Transport {
    /// Datagrams as suit the path, 128 per call, 500 us.
    fn default() -> Self {
        Self { datagram_bytes: None, burst: 128, latency: Duration::from_micros(500) }
    }
}

impl Transport {
    pub(crate) fn socket_options(&self, at: &HostPort) -> Result<grebe_datagram::Options, Error> {
        let mut options = grebe_datagram::Options {
            burst: self.burst,
            latency: self.latency,
            ..grebe_datagram::Options::default()
        };
        at.set_options(&mut options)?;
        Ok(options)
    }

    /// How long a block may wait for others to travel with.
    pub(crate) fn flush_every(&self) -> Duration {
        self.latency / 4
    }
}

impl SourceOptions {
    /// For what is not there when it is opened.
    pub(crate) fn patience(&self, waits: bool) -> Patience<'_> {
        Patience { waits, within: self.open_timeout.or(self.idle_timeout), cancel: &self.cancel }
    }
}

impl SinkOptions {
    /// For what is not there when it is opened.
    pub(crate) fn patience(&self, waits: bool) -> Patience<'_> {
        Patience { waits, within: None, cancel: &self.cancel }
    }
}

impl Default for SourceOptions {
    /// All of the stream, without waiting for it; a recording as fast as it is taken.
    fn default() -> Self {
        Self {
            transport: Transport::default(),
            reader: String::new(),
            policy: Policy::DropOldest,
            waits: false,
            listens_on: false,
            ends_with_writer: false,
            samples: None,
            duration: None,
            idle_timeout: None,
            open_timeout: None,
            speed: None,
            repeat: false,
            start: Duration::ZERO,
            length: None,
            pool: None,
            tuner: None,
            cancel: Cancel::default(),
        }
    }
}
