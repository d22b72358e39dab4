//! Samples of a receiver behind `rtl_tcp`.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_flow::{UtcClock, monotonic_ns};
use grebe_frame::{Description, SampleFormat};
use grebe_ring::Cancel;

use crate::bridges::raw::{RawSource, RawStream, Retune, Retuned};
use crate::bridges::rtl_tcp::uri::RtlTcp;
use crate::bridges::rtl_tcp::wire::{Command, Hello};
use crate::error::Error;
use crate::transport::standard::readable;
use crate::transport::{Connector, Reconnect};
use crate::tuner::{Switch, Tuner, Tuning};

/// Connects to the server, tunes it, and reads its samples. `tuner` accepts later changes.
///
/// Only the clock shows drops of the server, and the wire does not say at which sample a command takes effect. The
/// description changes with the first sample that is read after the command was sent.
///
/// # Errors
/// No server listens there, or it is not an `rtl_tcp` server.
pub(crate) fn receiver(
    rtl: &RtlTcp,
    tuner: Option<&Tuner>,
    cancel: &Cancel,
) -> Result<(RawSource<TcpStream>, Tuner), Error> {
    let tuner = Tuner::of_receiver(tuner, rtl.tuning);
    let connector = Connector::to("rtl_tcp", rtl.at.clone());
    let (stream, hello) = meet(&connector, &tuner, rtl.correction_ppm, cancel)?;
    let raw = RawStream::plain(SampleFormat::Cu8, rtl.tuning.rate_hz);
    let remote = Remote {
        tuner: tuner.clone(),
        seen: tuner.changes(),
        switches: tuner.switches(),
        said: Description {
            hardware: Some(format!("RTL-SDR, {}", hello.tuner_name())),
            clock: UtcClock::default().renewed(monotonic_ns()),
            ..Description::default()
        },
    };
    let source = RawSource::new(stream, readable, raw).described(remote.description(&rtl.tuning));
    let source = source.loses_unseen().by_the_clock();
    let reconnect = rtl.reconnects.then(|| {
        let (tuner, correction_ppm) = (tuner.clone(), rtl.correction_ppm);
        Reconnect::new(connector.uri(), move |cancel| {
            meet(&connector, &tuner, correction_ppm, cancel).map(|(stream, _)| stream)
        })
    });
    Ok((source.reconnects(reconnect).retune(Box::new(remote)), tuner))
}

/// Connects, reads the greeting, and tunes the server.
fn meet(
    connector: &Connector,
    tuner: &Tuner,
    correction_ppm: i32,
    cancel: &Cancel,
) -> Result<(TcpStream, Hello), Error> {
    let mut stream = connector.open(cancel, None)?;
    let bytes = read_hello(&mut stream, cancel).map_err(|source| match source.kind() {
        io::ErrorKind::Interrupted => Error::Cancelled,
        _ => Error::Tcp { action: "read from an rtl_tcp server at", uri: connector.uri(), source },
    })?;
    let hello = Hello::parse(&bytes).ok_or_else(|| Error::Peer {
        uri: connector.uri(),
        what: "does not send RTL0: it is not an rtl_tcp server",
    })?;
    let mut commands = Vec::new();
    if correction_ppm != 0 {
        commands.extend(Command::Switch(Switch::CorrectionPpm, correction_ppm).to_bytes());
    }
    let switches = tuner.switches().into_iter().map(|(switch, value)| Command::Switch(switch, value));
    let tuning = tuner.tuning();
    let all = Command::tuning(&tuning).chain(switches);
    all.for_each(|command| commands.extend(command.to_bytes()));
    let sent = stream.write_all(&commands);
    sent.map_err(|source| Error::Tcp { action: "tune", uri: connector.uri(), source })?;
    Ok((stream, hello))
}

/// The greeting of a server. Interrupted when `cancel` is set.
fn read_hello(stream: &mut TcpStream, cancel: &Cancel) -> io::Result<[u8; Hello::BYTES]> {
    let (mut bytes, mut filled, began) = ([0; Hello::BYTES], 0, Instant::now());
    while filled < bytes.len() {
        if cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if is_nothing_yet(&error) && began.elapsed() < HELLO_WITHIN => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Sends tuning commands to a server.
struct Remote {
    tuner: Tuner,
    seen: u64,
    /// As last sent.
    switches: BTreeMap<Switch, i32>,
    said: Description,
}

impl Remote {
    fn description(&self, tuning: &Tuning) -> Arc<Description> {
        let centre_frequency_hz = Some(tuning.frequency_hz);
        Arc::new(Description { centre_frequency_hz, gain_db: tuning.gain_db, ..self.said.clone() })
    }
}

impl Retune<TcpStream> for Remote {
    fn retune(&mut self, stream: &mut TcpStream) -> io::Result<Option<Retuned>> {
        let changes = self.tuner.changes();
        if changes == self.seen {
            return Ok(None);
        }
        self.seen = changes;
        let tuning = self.tuner.tuning();
        let switches = self.tuner.switches();
        let changed = switches.iter().filter(|(switch, value)| self.switches.get(switch) != Some(value));
        let changed = changed.map(|(switch, value)| Command::Switch(*switch, *value));
        let commands: Vec<u8> = Command::tuning(&tuning).chain(changed).flat_map(Command::to_bytes).collect();
        stream.write_all(&commands)?;
        self.switches = switches;
        let description = Some(self.description(&tuning));
        Ok(Some(Retuned { gap_samples: 0, odd_messages: 0, rate_hz: tuning.rate_hz, description }))
    }
}

/// A server may have to open its dongle first, which takes time.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
