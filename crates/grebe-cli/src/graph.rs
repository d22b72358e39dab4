//! Running a graph of stages from its start to what is said of it at its end.

pub(crate) mod progress;
pub(crate) mod report;

mod drive;

pub(crate) use drive::{Pair, SEND_QUEUE_BATCHES, cancel_on_interrupt, drive, end_with_stdin, tell};
