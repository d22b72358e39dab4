//! Frames of sampled signals, in one format for memory and wire.
//!
//! A [`Frame`] is a 64-byte GFH2 header followed by its samples in one of ten [formats](SampleFormat), channel-major,
//! little-endian. The same bytes stand
//! in a datagram, in a pipe, in shared memory and in a chunk of a [`Pool`](grebe_ring::Pool): a frame is validated once,
//! where it comes in, and never re-encoded. A [`Batch`] is one lease on a chunk plus the table of the frames in it; it is
//! what queues carry, count and drop.
//!
//! ```text
//!   chunk   | header | ch0 ... | ch1 ... | header | ch0 ... | ch1 ... |  ...   |
//!   table     ^ offset, bytes              ^ offset, bytes
//! ```
//!
//! ```
//! use grebe_frame::{BatchMut, BatchPool, Header};
//!
//! let mut pool = BatchPool::new(4, 65_536);
//! let mut batch = pool.acquire().unwrap();
//! let header = Header { channel_count: 2, block_length_samples: 3, sample_rate_hz: 48_000.0, ..Header::default() };
//! batch.push::<i16>(&header, |channel, samples| samples.fill(channel as i16 + 1)).unwrap();
//! let batch = batch.freeze();
//!
//! let frame = batch.frames().next().unwrap();
//! assert_eq!(frame.channel::<i16>(1).unwrap().as_ref(), [2, 2, 2]);
//! assert_eq!(frame.header().sample_rate_hz, 48_000.0);
//! ```
//!
//! A [`StreamTracker`] follows one stream by its headers, and separates losses on the network from samples that the generator never
//! made:
//!
//! ```
//! use grebe_frame::{Arrival, Header, StreamTracker};
//!
//! let mut tracker = StreamTracker::new();
//! let frame = |sequence| Header {
//!     sequence,
//!     channel_count: 1,
//!     block_length_samples: 10,
//!     first_sample_index: sequence * 10,
//!     ..Header::default()
//! };
//! assert_eq!(tracker.arrive(&frame(0)), Arrival::First);
//! assert!(matches!(tracker.arrive(&frame(3)), Arrival::After(gap) if gap.frames == 2 && gap.samples == 20));
//! assert_eq!(tracker.counts().lost_samples, 20);
//! ```
//!
//! A stream can say what it is: a [`Description`] rides with every [`Batch`], and goes between hosts as frames of its own.
//!
//! Invalid bytes have a [`Refusal`]; a receiver counts them by reason in [`Refusals`].
#![forbid(unsafe_code)]

mod batch;
mod description;
mod format;
mod frame;
mod header;
mod pool;
mod table;
mod tracker;
mod writer;

pub use batch::{Batch, BatchMut, Frames, Full, PushError};
pub use description::{
    AnnotationEdit, AxisTime, ChannelDescription, ClockReading, Description, DescriptionReader,
    MeasuredClock, StreamAnnotation, TooLong, utc_time,
};
pub use format::{Component, Sample, SampleFormat, UnknownFormat};
pub use frame::{ChannelError, Frame};
pub use header::{HEADER_BYTES, Header, MAGIC, MAX_CHANNELS, Refusal, Refusals};
pub use pool::{BatchPool, TrustedBatchImport};
pub use tracker::{Arrival, Gap, StreamTracker, TrackerCounts};
pub use writer::FrameWriter;

pub use num_complex::Complex;

/// The examples of README.md run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
