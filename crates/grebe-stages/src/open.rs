//! How either end of a stream is opened, and what comes of it.

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

/// A source that was opened, and what is known of its stream before it flows.
pub struct OpenSource {
    /// For [`Graph::add_boxed`](grebe_flow::Graph::add_boxed).
    pub stage: Box<dyn Stage>,
    /// Where a UDP source listens, with the port that the system chose where none was named.
    pub address: Option<SocketAddr>,
    /// Samples per second and channel of a recording that says so.
    pub rate_hz: Option<f64>,
    /// Samples per channel that a recording will give.
    pub samples: Option<u64>,
    /// The same with what is missing between them.
    pub span_samples: Option<u64>,
    /// What changes a generator while it runs.
    pub remote: Option<SynthRemote>,
    /// What tunes a receiver while it runs.
    pub tuner: Option<Tuner>,
    /// Who else sends to a UDP source's port.
    pub second_sender: Option<SecondSender>,
    /// Batches that may be out to a reader of shared memory, waiting and held, at a time: with as many it gets nothing more.
    pub lent_max: Option<usize>,
}

/// A sink that was opened.
pub struct OpenSink {
    /// For [`Graph::add_boxed`](grebe_flow::Graph::add_boxed).
    pub stage: Box<dyn Stage>,
    /// Bytes of the datagrams that the frames should fit into.
    pub datagram_bytes: usize,
    /// The memory for the source to write into, where it was asked for and the sink has some.
    pub pool: Option<BatchPool>,
}

impl OpenSource {
    /// A source that was made without a URI, and of which no more is known.
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
    /// A sink without memory of its own, for frames as long as they come.
    pub(crate) fn of(stage: impl Stage + 'static) -> Self {
        Self { stage: Box::new(stage), datagram_bytes: DATAGRAM_BYTES_MAX, pool: None }
    }
}
