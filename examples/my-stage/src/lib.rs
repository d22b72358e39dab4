//! A level meter and a detector. `docs/stage-reference.md` explains them.
#![forbid(unsafe_code)]

mod rms;
mod threshold;

pub use rms::Rms;
pub use threshold::Threshold;
