//! Streams between programs: UDP, shared memory, and byte streams such as a pipe.

mod clock_port;
mod described;
mod far_clock;
pub(crate) mod pipe;

pub(crate) mod announce;
pub(crate) mod arrival;
pub(crate) mod outage;
mod reorder;
mod second_sender;
pub(crate) mod senders;
mod shm_sink;
mod shm_source;
mod udp_sink;
mod udp_source;

pub use {
    pipe::{PipeSink, PipeSource},
    second_sender::SecondSender,
    shm_sink::ShmSink,
    shm_source::ShmSource,
    udp_sink::UdpSink,
    udp_source::UdpSource,
};
