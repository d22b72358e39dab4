//! One module per command.

pub(crate) mod annotate;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod cp;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod find;
pub(crate) mod info;
pub(crate) mod ls;
pub(crate) mod play;
pub(crate) mod probe;
pub(crate) mod record;
pub(crate) mod recv;
pub(crate) mod relay;
mod remote;
pub(crate) mod repair;
pub(crate) mod run;
pub(crate) mod save;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod stream;
pub(crate) mod top;
pub(crate) mod view;
