//! `grebe record`: write a stream to a SigMF recording.

use anyhow::Result;
use grebe_flow::{Graph, QueueOptions, Stage};
use grebe_shm::Policy;
use grebe_stages::{DATAGRAM_BYTES_MAX, FileSource, FileSourceOptions, RecordOptions, SigmfSink, Uri};

use super::{Ending, drive};
use crate::cli::Record;
use crate::progress::Progress;
use crate::{command, report, stream};

pub fn run(options: &Record) -> Result<Ending> {
    // Where it cannot be written is said before anything is opened that others could be sending to.
    let sink = SigmfSink::create(
        &options.file,
        RecordOptions { duration: options.duration, overwrite: options.overwrite },
    )?;
    let source: Box<dyn Stage> = match &options.uri {
        Uri::Udp(_) => {
            let source =
                stream::udp_source(&options.uri, &options.transport)?.idle_timeout(options.idle_timeout);
            eprintln!("listening on {}", source.local_addr()?);
            Box::new(source)
        }
        Uri::Shm(shm) => {
            Box::new(stream::shm_source(shm, Policy::Block, "record")?.idle_timeout(options.idle_timeout))
        }
        Uri::Pipe => stream::pipe_source()?,
        Uri::Synth => Box::new(command::sg::default_source(&options.transport, DATAGRAM_BYTES_MAX)?.0),
        Uri::File(path) => {
            let mut source = FileSource::open(path)?;
            source.set(FileSourceOptions {
                datagram_bytes: DATAGRAM_BYTES_MAX,
                ..FileSourceOptions::default()
            });
            Box::new(source)
        }
    };
    let mut graph = Graph::new();
    let source = graph.add_boxed("source", source);
    let recorder = graph.add("recorder", sink);
    graph.connect(source, recorder, QueueOptions::block(QUEUE_BATCHES));
    let (snapshot, ending) = drive("record", graph, &Progress::of("recorder"))?;
    report::print("recorded", "recorder", &snapshot, options.json);
    Ok(ending)
}

/// 16 MiB: a disk may stall for as long as that lasts.
const QUEUE_BATCHES: usize = 256;
