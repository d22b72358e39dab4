//! Three stages of your own. `docs/write-a-stage.md` explains them.
#![forbid(unsafe_code)]

mod limit;
mod rms;
mod threshold;

pub use limit::Limit;
pub use rms::Rms;
pub use threshold::Threshold;
