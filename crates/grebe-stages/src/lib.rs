//! The built-in sources, sinks and processing stages, and the URI that names each.
#![forbid(unsafe_code)]

mod arrival;
mod block;
mod error;
mod file_source;
mod generate;
mod kinds;
mod limit;
mod pace;
mod per_channel;
mod pipe;
pub mod process;
mod raw;
mod remote;
mod sample_file;
mod shm_sink;
mod shm_source;
mod sigmf;
mod sigmf_sink;
pub mod synth;
mod udp_sink;
mod udp_source;
mod uri;
mod wav;

pub use block::{DATAGRAM_BYTES, DATAGRAM_BYTES_MAX, block_length};
pub use error::StagesError;
pub use file_source::{FileSource, FileSourceOptions};
pub use generate::{SynthControl, SynthOptions, SynthSource};
pub use kinds::{Synth, WaveName, kinds};
pub use per_channel::PerChannel;
pub use pipe::{PipeSink, PipeSource, stdin_pipe, stdout_pipe};
pub use remote::{GeneratorCommand, SynthRemote};
pub use sample_file::{Block, SampleFile, Segment};
pub use shm_sink::ShmSink;
pub use shm_source::ShmSource;
pub use sigmf::{SigmfSettings, SigmfSummary, SigmfWriter};
pub use sigmf_sink::{RecordOptions, SigmfSink};
pub use udp_sink::UdpSink;
pub use udp_source::UdpSource;
pub use uri::{HostPort, ShmName, Uri};
