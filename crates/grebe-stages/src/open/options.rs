//! Options of sources and sinks.

use std::time::Duration;

use grebe_frame::{BatchPool, SampleFormat};
use grebe_recording::RecordOptions;
use grebe_ring::Cancel;
use grebe_shm::Policy;

use crate::error::Error;
use crate::transport::{HostPort, Patience};
use crate::tuner::Tuner;

/// Transport of frames, for both ends.
#[derive(Debug, Clone)]
pub struct Transport {
    /// Bytes of the datagrams that frames should fit into, 80 to 65,507. `None`: 1400 to other hosts, 65,000 on this
    /// machine.
    pub datagram_bytes: Option<usize>,
    /// Datagrams per system call, 1 to 128. 1 has the lowest latency.
    pub burst: usize,
    /// End-to-end latency budget: a source collects for up to a quarter of it, a receiver sleeps for up to a half.
    pub latency: Duration,
}

/// Options of a source. Each scheme uses the applicable ones.
#[derive(Debug)]
pub struct SourceOptions {
    /// Transport of frames.
    pub transport: Transport,
    /// Name of this reader towards the producer of shared memory.
    pub reader: String,
    /// Policy of a slow reader of shared memory, unless the URI has one.
    pub policy: Policy,
    /// Whether to wait for a stream in shared memory that does not exist yet.
    pub waits: bool,
    /// Whether a source over UDP or shared memory waits for the next stream at the end of one. The end frame is then
    /// sent on, so that readers see it.
    pub listens_on: bool,
    /// Whether a pipe closed without an end frame ends the stream normally, because not every program sends one.
    pub ends_with_writer: bool,
    /// Ends the stream after this many samples per channel.
    pub samples: Option<u64>,
    /// Ends a recording after this much of the signal.
    pub duration: Option<Duration>,
    /// Fails when the sender is silent for this long, also before its first frame.
    pub idle_timeout: Option<Duration>,
    /// Fails if the other end is missing for this long; `None`: as `idle_timeout`.
    pub open_timeout: Option<Duration>,
    /// Playback speed of a recording, as a multiple of its rate; `None`: as fast as the reader accepts.
    pub speed: Option<f64>,
    /// Repeats a recording for ever.
    pub repeat: bool,
    /// Start position in a recording. With `length` it selects the part that `repeat` repeats.
    pub start: Duration,
    /// Length to play from `start`; `None`: to the end.
    pub length: Option<Duration>,
    /// Memory for a generator or a UDP source to write into: [`OpenSink::pool`](crate::OpenSink::pool).
    pub pool: Option<BatchPool>,
    /// Tunes the opened receiver in place of its own tuner. The receiver sets its initial tuning.
    pub tuner: Option<Tuner>,
    /// Cancels the wait for a stream.
    pub cancel: Cancel,
}

/// Options of a sink. Each scheme uses the applicable ones.
#[derive(Debug, Clone, Default)]
pub struct SinkOptions {
    /// Transport of frames.
    pub transport: Transport,
    /// How a recording is made.
    pub recording: RecordOptions,
    /// Offers the sink's own memory, if it has some, for the source to write into. This avoids a copy, and the sink
    /// then accepts no other batches.
    pub lends_pool: bool,
    /// Maximum bytes of a frame in shared memory, header included; `None`: 256 KiB.
    pub frame_bytes_max: Option<usize>,
    /// Receives the commands of an `rtl_tcp` server's clients: the tuner of the stream's receiver
    /// ([`OpenSource::tuner`](crate::OpenSource::tuner)).
    pub tuner: Option<Tuner>,
    /// Format and channels of the stream, if known: a sink that does not carry them is refused before it opens.
    pub stream: Option<(SampleFormat, u32)>,
    /// Name of this command in announcements.
    pub producer: String,
    /// URIs by which other hosts can read an announced stream, beside Zenoh.
    pub routes: Vec<String>,
    /// Cancels the wait for readers.
    pub cancel: Cancel,
}

impl Default for Transport {
    /// Datagrams that suit the path, 128 per call, 500 us.
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

    /// Maximum wait of a block for others to send with.
    pub(crate) fn flush_every(&self) -> Duration {
        self.latency / 4
    }
}

impl SourceOptions {
    /// Waiting for an end that is missing when the stream is opened.
    pub(crate) fn patience(&self, waits: bool) -> Patience<'_> {
        Patience { waits, within: self.open_timeout.or(self.idle_timeout), cancel: &self.cancel }
    }
}

impl SinkOptions {
    /// Waiting for an end that is missing when the stream is opened.
    pub(crate) fn patience(&self, waits: bool) -> Patience<'_> {
        Patience { waits, within: None, cancel: &self.cancel }
    }
}

impl Default for SourceOptions {
    /// The whole stream, without waiting for it. A recording plays as fast as the reader accepts.
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
