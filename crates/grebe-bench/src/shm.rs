//! Samples from one process to others through shared memory and pipes, beside a Unix socket and UDP with the same frames; and
//! how much later a frame comes by each way into a program.
//!
//! The producer writes fresh data in each frame; every consumer checks each frame, in place by its minimum and maximum, or
//! after a copy by every byte.

mod consume;
mod goals;
mod graphs;
mod options;
mod peer;
mod produce;
mod run;
mod task;

pub use options::{Options, Other, OtherStream, Part};
pub(crate) use peer::peer;
pub use run::run;
pub(crate) use task::ShmTask;
