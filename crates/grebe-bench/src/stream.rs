//! What the benches of streams share: frames whose samples are known, their pace, their check, and what a run of them measured.

mod check;
mod pace;
mod pattern;
mod run;
mod scenario;
mod turns;

pub use check::Checker;
pub(crate) use check::{Seen, Work};
pub(crate) use pace::Pace;
pub(crate) use pattern::Pattern;
pub(crate) use run::{Faults, Made, RunOf, SocketCosts, StreamRun};
pub(crate) use scenario::Stream;
pub use turns::Turns;
