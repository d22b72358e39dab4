//! Showing streams: in a window, in the terminal, or as a picture.

mod export;
mod failure;
mod run;
mod scope;
mod sessions;
mod stream;

pub(crate) use failure::Failure;
pub(crate) use run::{Surface, run};
pub(crate) use scope::Scope;
pub(crate) use sessions::of_source as session_of_source;
pub(crate) use stream::{Show, Shown};
