//! `grebe play`: send a recording.

use anyhow::Result;
use grebe_stages::{SinkOptions, SourceOptions, Uri, open_sink, open_source};

use crate::cli::Play;
use crate::ending::Ending;
use crate::graph::{Pair, SEND_QUEUE_BATCHES, end_with_stdin, tell};
use crate::interrupt;

pub(crate) fn run(options: &Play) -> Result<Ending> {
    if options.tethered {
        end_with_stdin();
    }
    let mut transport = options.transport.options();
    transport.datagram_bytes = Some(transport.datagram_bytes_to(&options.to)?);
    // The file first: without it there is nothing to open a socket for.
    let from = SourceOptions {
        transport: transport.clone(),
        speed: Some(options.speed),
        repeat: options.repeat,
        ..SourceOptions::default()
    };
    let source = open_source(&Uri::File(options.file.clone()), from, &mut tell)?;
    let to = SinkOptions { transport, cancel: interrupt::cancel(), ..SinkOptions::default() };
    let sink = open_sink(&options.to, &to, &mut tell)?;
    let pair = Pair {
        source: ("player", source.stage),
        sink: ("sender", sink.stage),
        queue_batches: SEND_QUEUE_BATCHES,
    };
    pair.run("play", "sent", options.json)
}
