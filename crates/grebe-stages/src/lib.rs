//! The built-in sources, sinks and processing stages, and the URI that names each.
#![forbid(unsafe_code)]

mod error;
pub mod synth;

pub use error::StagesError;
