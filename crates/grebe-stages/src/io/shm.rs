//! `shm://`: batches in memory that processes of one machine share.

mod sink;
mod source;

pub use {sink::ShmSink, source::ShmSource};
