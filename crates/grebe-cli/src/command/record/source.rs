//! Source of a recording.

use anyhow::Result;
use grebe_shm::Policy;
use grebe_stages::{OpenSource, SourceOptions, Uri, open_source};

use crate::cli::Record;
use crate::graph::{WaitsFor, print_notice};
use crate::interrupt;
use crate::output::note;

/// Opens the source of a stream that is recorded without drops.
pub(super) fn open(uri: &Uri, options: &Record) -> Result<OpenSource> {
    let from = SourceOptions {
        transport: options.transport.options(),
        reader: "record".to_owned(),
        policy: Policy::Block,
        waits: true,
        idle_timeout: options.idle_timeout,
        samples: options.samples,
        cancel: interrupt::cancel(),
        ..SourceOptions::default()
    };
    let _insisting = interrupt::insist();
    let source = open_source(uri, from, &mut print_notice)?;
    if let Some(address) = source.address {
        note!("listening on {address}");
    }
    Ok(source)
}

/// Note for a silent source.
pub(super) fn waits_for(source: String, options: &Record) -> WaitsFor {
    let end = match options.idle_timeout {
        Some(timeout) => format!("the wait ends after {timeout:?}"),
        None => "--idle-timeout 10s ends the wait".to_owned(),
    };
    WaitsFor { source, end }
}

/// 16 MiB. Longer stalls of the disk fill the buffer of the recorder.
pub(super) const QUEUE_BATCHES: usize = 256;
