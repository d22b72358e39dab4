//! Signals that are computed.

use grebe_flow::{Count, SizeBytes, Time};

use super::{OpenSource, SourceOptions};
use crate::error::Error;
use crate::stream::{DATAGRAM_BYTES_MAX, check_datagram_bytes};
use crate::synth::{Synth, SynthRemote};

/// Its datagram size and latency are those of the transport.
pub(super) fn source(synth: &Synth, options: SourceOptions) -> Result<OpenSource, Error> {
    let datagram_bytes = options.transport.datagram_bytes.unwrap_or(DATAGRAM_BYTES_MAX);
    check_datagram_bytes(datagram_bytes)?;
    let samples = synth.length_samples().into_iter().chain(options.samples).min().map(Count);
    let synth = Synth {
        samples,
        datagram_size: SizeBytes(datagram_bytes),
        latency: Time(options.transport.latency),
        ..synth.clone()
    };
    let (mut source, remote) = SynthRemote::new(synth)?;
    if let Some(pool) = options.pool {
        source = source.pool(pool);
    }
    Ok(OpenSource { remote: Some(remote), ..OpenSource::of(source) })
}
