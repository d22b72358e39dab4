//! Generators and processing stages for samples as numbers.
//!
//! Each stage type holds its parameters, and is its [`Kind`](grebe_flow::Kind) in a graph file. A stage
//! changes samples in place if nobody else holds the batch, otherwise in a copy, counted as `copied_frames`.
//! Gaps stay gaps: a frame keeps its place in the stream.
//!
//! ```
//! use grebe_flow::{Kind, Site};
//! use grebe_process::Gain;
//!
//! let louder = Gain { gain: vec![2.0].into(), offset: vec![0.0].into() };
//! let stage = louder.build(&mut Site::new("louder"))?; // for Graph::add_boxed
//! # Ok::<(), grebe_flow::StageError>(())
//! ```
//!
//! They build on [`numbers`], which reads and writes samples of any format, [`stream`], which divides and
//! paces streams, and [`query`], which reads settings in names.
#![deny(unsafe_code)]

mod band;
mod error;
mod format;
mod grid;
pub mod numbers;
mod per_channel;
pub mod query;
#[allow(unsafe_code, reason = "vector instructions behind run-time detection, nothing else")]
pub mod simd;
mod stages;
pub mod stream;
pub mod synth;

pub use band::{Band, BandFilter, Cutter};
pub use error::Error;
pub use format::{Format, FrequencyHz};
pub use grid::{Grid, INDEX_MAX};
pub use per_channel::PerChannel;
pub use stages::*;
