//! Stages between a source and a sink. Each type holds the parameters of a stage, and is its [`Kind`](grebe_flow::Kind) in a
//! graph file.
//!
//! A stage changes samples in place where nobody else holds the batch, and otherwise in a copy, which its counter
//! `copied_frames` counts. Gaps stay gaps: a frame keeps its place in the stream.
//!
//! ```
//! use grebe_flow::{Kind, Site};
//! use grebe_stages::process::Gain;
//!
//! let louder = Gain { gain: vec![2.0].into(), offset: vec![0.0].into() };
//! let stage = louder.build(&mut Site::new("louder"))?; // for Graph::add_boxed
//! # Ok::<(), grebe_flow::StageError>(())
//! ```

mod block;
mod continuity;
mod convert;
mod convolution;
mod decimate;
mod decimate_filtered;
mod fill_gaps;
mod fir;
mod gain;
mod in_place;
mod magnitude;
mod merge;
mod mix;
mod pass;
mod reformat;
mod select;

pub(crate) use convert::{Conversion, check as check_conversion};
pub use {
    convert::{Convert, Scaling},
    decimate::Decimate,
    decimate_filtered::DecimateFiltered,
    fill_gaps::{FillGaps, Filler},
    fir::Fir,
    gain::Gain,
    magnitude::{Magnitude, MagnitudeUnit},
    merge::{Align, Merge},
    mix::Mix,
    pass::{Null, RateMeter, Tee, Throttle},
    select::Select,
};
