//! `grebe play`: send a recording.

use anyhow::Result;
use grebe_flow::{Graph, QueueOptions};
use grebe_stages::{FileSource, FileSourceOptions};

use super::sg::QUEUE_BATCHES;
use super::{Ending, drive, tether};
use crate::cli::Play;
use crate::progress::Progress;
use crate::{report, stream};

pub fn run(options: &Play) -> Result<Ending> {
    if options.tethered {
        tether();
    }
    // The file first: without it there is nothing to open a socket for.
    let mut source = FileSource::open(&options.file)?;
    source.notes().iter().for_each(|note| eprintln!("grebe: {note}"));
    let sink = stream::sink(&options.to, &options.transport)?;
    source.set(FileSourceOptions {
        speed: Some(options.speed),
        repeat: options.repeat,
        samples: None,
        datagram_bytes: sink.datagram_bytes,
        flush_every: options.transport.latency / 4,
    });
    let mut graph = Graph::new();
    let source = graph.add("player", source);
    let sink = graph.add_boxed("sender", sink.stage);
    graph.connect(source, sink, QueueOptions::block(QUEUE_BATCHES));
    let (snapshot, ending) = drive("play", graph, &Progress::of("player"))?;
    report::print("sent", "sender", &snapshot, options.json);
    Ok(ending)
}
