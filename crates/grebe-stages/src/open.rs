//! Open sources and sinks, with their options.

mod notice;
mod options;

use std::net::SocketAddr;

use grebe_flow::Stage;
use grebe_frame::BatchPool;
use grebe_process::stream::DATAGRAM_BYTES_MAX;
use grebe_process::synth::SynthRemote;

use crate::transport::SecondSender;
use crate::tuner::Tuner;

pub use notice::Notice;
pub(crate) use notice::Notify;
pub use options::{SinkOptions, SourceOptions, Transport};

/// An open source, with the properties of its stream known so far.
pub struct OpenSource {
    /// For [`Graph::add_boxed`](grebe_flow::Graph::add_boxed).
    pub stage: Box<dyn Stage>,
    /// The address that a UDP source listens on, with the port that the system chose for port 0.
    pub address: Option<SocketAddr>,
    /// Samples per second and channel of a recording that states its rate.
    pub rate_hz: Option<f64>,
    /// Samples per channel of a recording.
    pub samples: Option<u64>,
    /// The same with gaps.
    pub span_samples: Option<u64>,
    /// Controls a generator while it runs.
    pub remote: Option<SynthRemote>,
    /// Tunes a receiver while it runs.
    pub tuner: Option<Tuner>,
    /// Another sender to the port of a UDP source.
    pub second_sender: Option<SecondSender>,
    /// Maximum batches on loan to a reader of shared memory, waiting and held. With as many it gets no more.
    pub lent_max: Option<usize>,
}

/// An open sink.
pub struct OpenSink {
    /// For [`Graph::add_boxed`](grebe_flow::Graph::add_boxed).
    pub stage: Box<dyn Stage>,
    /// Bytes of the datagrams that the frames should fit into.
    pub datagram_bytes: usize,
    /// The memory for the source to write into, if it was requested and the sink has some.
    pub pool: Option<BatchPool>,
}

impl OpenSource {
    /// A source made without a URI, whose properties are unknown.
    pub fn of(stage: impl Stage + 'static) -> Self {
        Self {
            stage: Box::new(stage),
            address: None,
            rate_hz: None,
            samples: None,
            span_samples: None,
            remote: None,
            tuner: None,
            second_sender: None,
            lent_max: None,
        }
    }
}

impl OpenSink {
    /// A sink without memory of its own, for frames of any length.
    pub(crate) fn of(stage: impl Stage + 'static) -> Self {
        Self { stage: Box::new(stage), datagram_bytes: DATAGRAM_BYTES_MAX, pool: None }
    }
}
