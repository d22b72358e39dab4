//! UDP between two processes: how fast, how much is lost, how late; beside one blocking call per datagram.

mod calls;
mod options;
mod reach;
mod receive;
mod run;
mod send;
mod task;

pub use calls::{ReceiveCalls, run as receive_calls};
pub use options::{Options, Other};
pub(crate) use receive::peer;
pub(crate) use run::medians;
pub use send::{FrameSender, Frames};

use crate::error::Result;
use crate::row::{Progress, Tell};

/// Measures everything that the options name.
///
/// # Errors
/// Where a name is unknown, a scenario does not fit the datagram, or a socket or process fails.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    run::all(options, None, &mut |run| tell(Progress::Row(&run.row(TITLE))))
}

/// Looks for the highest rate without loss instead, with the first scenario, technique and burst: for each size and privilege it
/// doubles the rate until a run loses or does not reach it, then halves the gap.
///
/// # Errors
/// As [`run`].
pub fn reach(options: &Options, tell: Tell) -> Result<()> {
    reach::run(options, FROM_MSPS, HALVINGS, tell)
}

const TITLE: &str = "UDP between two processes, every sample of every frame checked";
const FROM_MSPS: f64 = 50.0;
const HALVINGS: usize = 5;

#[cfg(test)]
mod tests;
