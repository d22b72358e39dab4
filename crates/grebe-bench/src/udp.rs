//! UDP between two processes: how fast, how much is lost, how late; beside one blocking call per datagram.

mod calls;
mod options;
mod receive;
mod run;
mod send;
mod task;
#[cfg(test)]
mod tests;

pub use calls::{ReceiveCalls, run as receive_calls};
pub use options::{Buffers, Options, Other, Technique};
pub(crate) use receive::peer;
pub(crate) use run::medians;
pub use run::run;
pub(crate) use task::UdpTask;
