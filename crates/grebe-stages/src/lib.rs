//! The built-in stages of grebe: sources, sinks and processing stages, and the URI that names either end of a stream.
//!
//! ```text
//!  udp://  shm://  pipe:  file  synth:                        udp://  shm://  pipe:  file
//!     |       |      |      |      |                             ^       ^      ^      ^
//!     +-------+-- open_source -----+--> process stages -----> open_sink ------+------+
//! ```
//!
//! A stream is opened by its [`Uri`]; the stage that comes back goes into a [`Graph`](grebe_flow::Graph). This records 1,000
//! samples of a generator, doubled, and reads them:
//!
//! ```
//! use grebe_flow::{Graph, Kind, QueueOptions, Site};
//! use grebe_process::Gain;
//! use grebe_recording::SampleFile;
//! use grebe_stages::{SinkOptions, SourceOptions, open_sink, open_source};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("tone.sigmf-meta");
//!
//! let mut notify = |notice| eprintln!("{notice}");
//! let uri = "synth:?channels=2&samples=1k&amplitude=0.25".parse()?;
//! let source = open_source(&uri, SourceOptions::default(), &mut notify)?;
//! let sink = open_sink(&path.display().to_string().parse()?, &SinkOptions::default(), &mut notify)?;
//! let louder = Gain { gain: vec![2.0].into(), offset: vec![0.0].into() }.build(&mut Site::new("louder"))?;
//!
//! let mut graph = Graph::new();
//! let source = graph.add_boxed("source", source.stage);
//! let louder = graph.add_boxed("louder", louder);
//! let sink = graph.add_boxed("sink", sink.stage);
//! graph.connect(source, louder, QueueOptions::block(16));
//! graph.connect(louder, sink, QueueOptions::block(16));
//! graph.start()?.wait()?;
//!
//! let mut file = SampleFile::open(&path)?;
//! assert_eq!((file.channels(), file.len_samples()), (2, 1_000));
//! assert!(file.block(0, 1_000)?.channel::<i16>(0)?.iter().any(|&sample| sample > 16_000));
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! Where a graph comes from a file, [`kinds`] says which stages that file can name. What a stage needs beyond a URI (memory
//! of its own, a directory of its own) is chosen on its type: [`UdpSource`], [`UdpSink`], [`ShmSource`], [`ShmSink`],
//! [`PipeSource`], [`PipeSink`], [`SynthSource`](grebe_process::synth::SynthSource).
#![deny(unsafe_code)]

mod audio;
mod error;
mod kind;
mod kinds;
mod open;
mod pipe;
mod raw;
mod recording;
mod rtl_tcp;
mod scheme;
mod serial;
mod session;
mod shm;
mod soapy;
mod synth;
mod text;
mod transport;
mod tuner;
mod udp;
mod uri;
mod vita49;
mod zenoh;
mod zmq;

pub use {
    audio::{AudioStream, sound_devices, sound_library},
    error::Error,
    grebe_link::wire::Wire,
    grebe_ring::Cancel,
    kinds::kinds,
    open::{Notice, OpenSink, OpenSource, SinkOptions, SourceOptions, Transport},
    pipe::{PipeSink, PipeSource, PipeStream},
    raw::RawStream,
    recording::{open_file, open_in_step},
    rtl_tcp::RtlTcp,
    scheme::Traits,
    serial::{Device, serial_ports},
    shm::{ShmName, ShmSink, ShmSource},
    soapy::{Soapy, SoapyDevice, SoapyLibrary, soapy_devices, soapy_library},
    text::TextStream,
    transport::{HostPort, SecondSender},
    tuner::{Switch, Tuner, Tuning},
    udp::{UdpSink, UdpSource, UdpStream},
    uri::{Uri, open_sink, open_source},
    vita49::Vita49Stream,
    zenoh::{NamedStream, Way, ZenohKey},
    zmq::Zmq,
};

#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
