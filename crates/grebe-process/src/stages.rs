//! Stages between a source and a sink.

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

use grebe_flow::Kinds;

pub use {
    convert::{Conversion, Convert, Scaling, check as check_conversion},
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

/// Adds the kinds of all stages.
pub fn add_kinds(kinds: &mut Kinds) {
    kinds.add::<Null>().add::<Gain>().add::<Select>().add::<Decimate>().add::<FillGaps>();
    kinds.add::<Convert>().add::<Magnitude>().add::<Mix>().add::<Fir>().add::<DecimateFiltered>();
    kinds.add::<Merge>().add::<RateMeter>().add::<Tee>().add::<Throttle>();
}
