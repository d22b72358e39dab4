//! Two stages of one's own. `docs/write-a-stage.md` walks through them.
#![forbid(unsafe_code)]

mod rms;
mod threshold;

pub use rms::Rms;
pub use threshold::Threshold;
