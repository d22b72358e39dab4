//! Streams over Zenoh, beside programs that use Zenoh itself as its own `z_pub_thr`, `z_sub_thr`, `z_ping` and `z_pong` do: the same
//! version, configuration and size of a message, in turns.
//!
//! Each end is a process. Ours are graphs with the source and the sink of `zenoh://`, as every command has them.

mod baseline;
mod options;
mod ours;
mod run;
mod seen;

pub use options::{Options, Part};
pub use run::run;
pub(crate) use {options::ZenohTask, run::peer};
