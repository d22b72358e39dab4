//! From a URI to the stage that stands at that end of the stream.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use grebe_datagram::{Granted, Options};
use grebe_flow::Stage;
use grebe_frame::BatchPool;
use grebe_shm::{Policy, ShmError, SubscriberOptions};
use grebe_stages::{
    DATAGRAM_BYTES, DATAGRAM_BYTES_MAX, PipeSink, PipeSource, RecordOptions, ShmName, ShmSink, ShmSource,
    SigmfSink, UdpSink, UdpSource, Uri,
};

use crate::cli::Transport;
use crate::command::Usage;
use crate::interrupt;

/// A sink for frames, and how large its datagrams are.
pub struct Sink {
    pub stage: Box<dyn Stage>,
    pub datagram_bytes: usize,
}

/// The sink at `to`.
pub fn sink(to: &Uri, transport: &Transport) -> Result<Sink> {
    match to {
        Uri::Udp(host_port) => {
            let address = host_port.to_send()?;
            let stage = UdpSink::connect(address, &options(transport))
                .with_context(|| format!("cannot send to {to}"))?;
            warn_if_clamped(stage.granted());
            let local = address.ip().is_loopback() && !grebe_datagram::is_wsl2();
            let datagram_bytes =
                datagram_bytes(transport, if local { DATAGRAM_BYTES_MAX } else { DATAGRAM_BYTES })?;
            Ok(Sink { stage: Box::new(stage), datagram_bytes })
        }
        Uri::Shm(shm) => shm_sink(shm, transport, |_| ()).map(|(sink, ())| sink),
        Uri::Pipe => {
            let stage = PipeSink::new(grebe_stages::stdout_pipe().context("standard output is closed")?);
            Ok(Sink {
                stage: Box::new(stage),
                datagram_bytes: datagram_bytes(transport, DATAGRAM_BYTES_MAX)?,
            })
        }
        Uri::File(path) => {
            let stage = SigmfSink::create(path, RecordOptions::default())?;
            Ok(Sink { stage: Box::new(stage), datagram_bytes: DATAGRAM_BYTES_MAX })
        }
        Uri::Synth => Err(Usage(format!("'{to}' cannot be sent to")).into()),
    }
}

/// The sink at `to`, and the pool that the graph's only source is to write into, where the sink has one: nothing is copied then.
pub fn sink_with_pool(to: &Uri, transport: &Transport) -> Result<(Sink, Option<BatchPool>)> {
    match to {
        Uri::Shm(shm) => shm_sink(shm, transport, ShmSink::lend_pool),
        _ => Ok((sink(to, transport)?, None)),
    }
}

fn shm_sink<T>(
    shm: &ShmName,
    transport: &Transport,
    prepare: impl FnOnce(&mut ShmSink) -> T,
) -> Result<(Sink, T)> {
    // Before the socket is there, so that no interruption leaves it behind.
    interrupt::catch();
    let mut stage = ShmSink::create(&shm.name, shm.publisher_options())?;
    eprintln!("lending as shm://{}: {}", shm.name, stage.footprint());
    let readers = usize::from(shm.wait_consumers);
    if readers > 0 {
        eprintln!("waiting for {readers} to read it");
    }
    while !stage.wait_for_consumers(readers, Duration::from_millis(100)) && !interrupt::is_pending() {}
    let prepared = prepare(&mut stage);
    let datagram_bytes = datagram_bytes(transport, DATAGRAM_BYTES_MAX)?;
    Ok((Sink { stage: Box::new(stage), datagram_bytes }, prepared))
}

/// The stream in shared memory, once it is there; under this policy, where the URI names none.
pub fn shm_source(shm: &ShmName, policy: Policy, called: &str) -> Result<ShmSource> {
    let options = SubscriberOptions {
        policy: shm.policy.unwrap_or(policy),
        name: called.to_owned(),
        // All that its share of the memory holds.
        queue_batches: 256,
        ..SubscriberOptions::default()
    };
    let mut has_said = false;
    loop {
        match ShmSource::connect(&shm.name, &options) {
            Err(ShmError::NoStream { name, .. }) => {
                if !has_said {
                    eprintln!("waiting for the stream shm://{name}");
                    has_said = true;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return Ok(other?),
        }
    }
}

/// A UDP source; apart from [`pipe_source`], because its address is of interest.
pub fn udp_source(at: &Uri, transport: &Transport) -> Result<UdpSource> {
    let Uri::Udp(host_port) = at else { return Err(anyhow!("'{at}' is no UDP address")) };
    let address = host_port.to_listen()?;
    let source =
        UdpSource::bind(address, &options(transport)).with_context(|| format!("cannot listen on {at}"))?;
    warn_if_clamped(source.granted());
    Ok(source)
}

/// Frames on standard input.
pub fn pipe_source() -> Result<Box<dyn Stage>> {
    Ok(Box::new(PipeSource::new(grebe_stages::stdin_pipe().context("standard input is closed")?)))
}

fn datagram_bytes(transport: &Transport, default: usize) -> Result<usize> {
    let bytes = transport.datagram_size.unwrap_or(default);
    match bytes {
        DATAGRAM_BYTES_LEAST..=grebe_datagram::MAX_DATAGRAM_BYTES => Ok(bytes),
        _ => Err(Usage(format!(
            "--datagram-size {bytes}: give {DATAGRAM_BYTES_LEAST} to {} bytes",
            grebe_datagram::MAX_DATAGRAM_BYTES
        ))
        .into()),
    }
}

fn options(transport: &Transport) -> Options {
    Options { burst: usize::from(transport.udp_burst), latency: transport.latency, ..Options::default() }
}

fn warn_if_clamped(granted: Granted) {
    if granted.is_clamped() {
        eprintln!("grebe: {granted}");
    }
}

/// A header and one sample of eight channels.
const DATAGRAM_BYTES_LEAST: usize = 80;
