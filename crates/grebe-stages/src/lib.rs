//! The built-in sources, sinks and processing stages, and the URI that names each.
#![forbid(unsafe_code)]

mod arrival;
mod block;
mod error;
mod generate;
mod pace;
mod pipe;
pub mod synth;
mod udp_sink;
mod udp_source;
mod uri;

pub use block::{DATAGRAM_BYTES, DATAGRAM_BYTES_MAX, block_length};
pub use error::StagesError;
pub use generate::{SynthOptions, SynthSource};
pub use pipe::{PipeSink, PipeSource, stdin_pipe, stdout_pipe};
pub use udp_sink::UdpSink;
pub use udp_source::UdpSource;
pub use uri::{HostPort, Uri};
