//! What works on samples: from batches to pictures. Nothing here knows of a person or a screen.

mod clip;
pub(crate) mod core;
pub(crate) mod extract;
pub(crate) mod feed;
mod interpolate;
pub(crate) mod link;
pub(crate) mod math;
pub(crate) mod measure;
mod meter;
pub(crate) mod overview;
pub(crate) mod persistence;
pub(crate) mod picture;
pub(crate) mod spectrum;
pub(crate) mod status;
pub(crate) mod told;
pub(crate) mod trigger;
pub(crate) mod viewport;
