//! `grebe record`: write a stream to a SigMF recording.

use anyhow::Result;
use grebe_shm::Policy;
use grebe_stages::{SinkOptions, SourceOptions, Uri, open_sink, open_source};

use crate::cli::Record;
use crate::ending::Ending;
use crate::graph::{Pair, tell};
use crate::interrupt;
use crate::output::note;

pub(crate) fn run(options: &Record) -> Result<Ending> {
    // Where it cannot be written is said before anything is opened that others could be sending to.
    let to =
        SinkOptions { duration: options.duration, overwrite: options.overwrite, ..SinkOptions::default() };
    let sink = open_sink(&Uri::File(options.file.clone()), &to, &mut tell)?;
    let from = SourceOptions {
        transport: options.transport.options(),
        reader: "record".to_owned(),
        policy: Policy::Block,
        waits: true,
        idle_timeout: options.idle_timeout,
        cancel: interrupt::cancel(),
        ..SourceOptions::default()
    };
    let source = open_source(&options.uri, from, &mut tell)?;
    if let Some(address) = source.address {
        note!("listening on {address}");
    }
    let pair = Pair {
        source: ("source", source.stage),
        sink: ("recorder", sink.stage),
        queue_batches: QUEUE_BATCHES,
    };
    pair.run("record", "recorded", options.json)
}

/// 16 MiB: a disk may stall for as long as that lasts.
const QUEUE_BATCHES: usize = 256;
