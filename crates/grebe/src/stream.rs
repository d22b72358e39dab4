//! From a URI to the stage that stands at that end of the stream.

use anyhow::{Context as _, Result, anyhow};
use grebe_datagram::{Granted, Options};
use grebe_flow::Stage;
use grebe_stages::{
    DATAGRAM_BYTES, DATAGRAM_BYTES_MAX, PipeSink, PipeSource, RecordOptions, SigmfSink, UdpSink, UdpSource,
    Uri,
};

use crate::cli::Transport;
use crate::command::Usage;

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
