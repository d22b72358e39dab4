//! `grebe relay`: a relay for hosts behind NATs.

use anyhow::Result;
use grebe_relay::{Limits, Relay, RelayOptions};

use crate::cli;
use crate::ending::Ending;
use crate::output::note;
use crate::{interrupt, transfer};

pub(crate) fn run(options: &cli::Relay) -> Result<Ending> {
    let relay = Relay::bind(&RelayOptions {
        listen: options.listen,
        metrics: options.metrics.as_ref().map(|place| place.address),
        metrics_name: options.metrics.as_ref().and_then(|place| place.name.clone()),
        limits: Limits {
            sessions: options.sessions as usize,
            sessions_per_host: options.sessions_per_host as usize,
            session_bits_per_s: options.session_rate,
            bits_per_s: options.rate,
            idle_us: options.idle.as_micros() as u64,
        },
        cancel: interrupt::cancel(),
    })?;
    note!("listening on udp://{}", relay.address());
    if let Some(error) = relay.no_tcp() {
        note!("cannot listen on TCP at that port ({error}): networks that block UDP cannot use this relay");
    }
    if let Some(address) = relay.metrics_address() {
        note!("metrics at http://{address}/metrics");
    }
    let port = match relay.address().port() {
        grebe_relay::PORT => String::new(),
        port => format!(":{port}"),
    };
    note!("on either side: grebe recv --relay HOST{port}, or grebe send FILE --relay HOST{port}");
    let figures = relay.run()?;
    note!("relayed {} in {} datagrams", transfer::size(figures.relayed_bytes), figures.relayed_datagrams);
    // A relay runs until interrupted.
    Ok(Ending::Good)
}
