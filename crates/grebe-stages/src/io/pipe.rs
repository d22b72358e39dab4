//! `pipe:`: frames back to back on standard input and output, or on a pipe to another program.

mod sink;
mod source;
mod stdio;

pub(crate) use stdio::{stdin, stdout};
pub use {sink::PipeSink, source::PipeSource};
