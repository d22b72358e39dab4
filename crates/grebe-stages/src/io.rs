//! Streams between programs: UDP, shared memory, and byte streams such as a pipe.

pub(crate) mod arrival;
pub(crate) mod pipe;
pub(crate) mod shm;
pub(crate) mod udp;

pub use {
    pipe::{PipeSink, PipeSource},
    shm::{ShmSink, ShmSource},
    udp::{UdpSink, UdpSource},
};
