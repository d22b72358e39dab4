//! Generators in processes of their own, and what tells a generator what to make.

mod process;
mod recipe;
mod remote;

pub(crate) use process::Generator;
pub(crate) use recipe::{Recipe, this_command};
pub(crate) use remote::{obey_stdin, remote_of};
