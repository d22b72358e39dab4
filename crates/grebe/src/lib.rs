//! Sampled signals moved, shown, recorded and shipped at the speed of the machine: the libraries of grebe under one name.
//!
//! **A stage handles samples. A queue connects two stages. A URI names the source or the sink of a stream.** This example
//! records 100,000 samples of two channels, and reads the recording:
//!
//! ```
//! use grebe::flow::{Graph, QueueOptions};
//! use grebe::scope::min_max;
//! use grebe::recording::SampleFile;
//! use grebe::stages::{SinkOptions, SourceOptions, open_sink, open_source};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("tone.sigmf-meta");
//! let mut notify = |notice| eprintln!("{notice}");
//!
//! let uri = "synth:?channels=2&samples=100k&amplitude=0.5".parse()?;
//! let source = open_source(&uri, SourceOptions::default(), &mut notify)?;
//! let sink = open_sink(&path.display().to_string().parse()?, &SinkOptions::default(), &mut notify)?;
//!
//! let mut graph = Graph::new();
//! let source = graph.add_boxed("source", source.stage);
//! let sink = graph.add_boxed("recorder", sink.stage);
//! graph.connect(source, sink, QueueOptions::block(64));
//! graph.start()?.wait()?;
//!
//! let mut recording = SampleFile::open(&path)?;
//! assert_eq!((recording.channels(), recording.len_samples()), (2, 100_000));
//! let (min, max) = min_max(&recording.block(0, 100_000)?.channel::<i16>(0)?);
//! assert!(min < -16_000 && max > 16_000, "half of full scale");
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! `use grebe::prelude::*` imports the names that most programs need. An example shows each common task:
//!
//! | task | example |
//! |---|---|
//! | read a recording | `read_recording` |
//! | write a recording | `write_recording` |
//! | read a live stream | `live_stream`, and with tokio `async_levels` ([`Graph::connect_async`](flow::Graph::connect_async)) |
//! | connect stages | `graph` |
//! | draw a picture | `picture` |
//! | write a stage | `docs/write-a-stage.md` of the repository |
//!
//! The libraries by task:
//!
//! | to | use |
//! |---|---|
//! | write a stage, connect stages, read a graph file | [`flow`] |
//! | open a stream or a recording by its URI | [`stages`] |
//! | read, write, check and repair recordings | [`recording`] |
//! | make waveforms and process samples | [`process`] |
//! | read and make frames, count losses | [`frame`] |
//! | send and receive datagrams in batches | [`datagram`] |
//! | share a stream between processes | [`shm`] |
//! | compute envelopes, triggers, measurements, spectra | [`scope`] |
//! | show a stream: PNG, and by feature a `terminal` or a `window` | [`view`] |
//! | exchange byte streams over any distance | [`connection`] |
//! | move files over any distance, and start grebe on another host | [`remote`] |
//! | measure the capacity of a path | [`probe`] |
//!
//! The `grebe` command is a package of its own.
#![forbid(unsafe_code)]

pub mod prelude;

pub use {
    grebe_connection as connection, grebe_datagram as datagram, grebe_flow as flow, grebe_frame as frame,
    grebe_probe as probe, grebe_process as process, grebe_recording as recording, grebe_remote as remote,
    grebe_scope as scope, grebe_shm as shm, grebe_stages as stages, grebe_view as view,
};
