//! What works on samples: from batches to pictures. Nothing here knows of a person or a screen.

mod clip;
mod columns;
pub(crate) mod core;
pub(crate) mod extract;
pub(crate) mod feed;
mod history;
mod interpolate;
pub(crate) mod lane;
pub(crate) mod link;
mod look;
pub(crate) mod math;
pub(crate) mod measure;
mod meter;
pub(crate) mod overview;
pub(crate) mod persistence;
pub(crate) mod picture;
mod recorded;
pub(crate) mod recording;
pub(crate) mod samples;
pub(crate) mod signal;
pub(crate) mod spectrum;
pub(crate) mod status;
pub(crate) mod told;
mod tracks;
pub(crate) mod trigger;
pub(crate) mod viewport;
pub(crate) mod xy;
