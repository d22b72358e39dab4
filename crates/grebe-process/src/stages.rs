//! Stages between a source and a sink.

mod at_rate;
mod block;
mod continuity;
mod convert;
mod convolution;
mod cut;
mod decimate;
mod decimate_filtered;
mod demodulate;
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
    cut::Cut,
    decimate::Decimate,
    decimate_filtered::DecimateFiltered,
    demodulate::{Demodulate, Modulation},
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
    kinds.add::<Cut>().add::<Demodulate>();
    kinds.add::<Merge>().add::<RateMeter>().add::<Tee>().add::<Throttle>();
}
