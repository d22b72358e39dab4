//! The built-in stages of grebe: sources, sinks and processing stages, and the URIs of streams.
//!
//! ```text
//!  udp://  shm://  pipe:  file  synth:                        udp://  shm://  pipe:  file
//!     |       |      |      |      |                             ^       ^      ^      ^
//!     +-------+-- open_source -----+--> process stages -----> open_sink ------+------+
//! ```
//!
//! A [`Uri`] opens a stream as a stage of a [`Graph`](grebe_flow::Graph). This example records 1,000 samples of a
//! generator with a gain of 2, and reads them:
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
//! [`kinds`] lists the stages that a graph file can name. Options beyond a URI, such as memory of its own, belong to
//! the type of a stage: [`UdpSource`], [`UdpSink`], [`ShmSource`], [`ShmSink`], [`PipeSource`], [`PipeSink`],
//! [`SynthSource`](grebe_process::synth::SynthSource).
#![deny(unsafe_code)]

mod bridges;
mod error;
mod kind;
mod kinds;
mod open;
mod payload;
mod scheme;
mod serial;
mod session;
mod transport;
mod tuner;

pub use {
    bridges::*,
    error::Error,
    grebe_link::wire::Wire,
    grebe_ring::Cancel,
    kinds::kinds,
    open::{Notice, OpenSink, OpenSource, SinkOptions, SourceOptions, Transport},
    scheme::Traits,
    serial::{Device, serial_ports},
    transport::{HostPort, SecondSender},
    tuner::{Switch, Tuner, Tuning},
};

/// Whether this program is static, and so loads no library at run time: neither SoapySDR nor ALSA.
pub const IS_STATIC: bool = cfg!(all(target_env = "musl", target_feature = "crt-static"));

#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
