//! Tickets, addresses and progress of `send` and `recv`.

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use grebe_connection::{
    Address, Cancel, Connection, ConnectionListener, ConnectionOptions, Notice, Notify, Purpose, Ticket, Via,
    connect, listen_anywhere,
};
use grebe_remote::{LeftOut, TransferProgress, TransferReport, relay_or_default};
use grebe_scope::Engineering;
use grebe_tree::LEFT_OUT_KEPT;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::cli::Rendezvous;
use crate::ending::{Ending, Usage};
use crate::hidden_secrets;
use crate::output::{self, note, out};
use crate::units;

/// The ticket of the option or of `GREBE_TICKET`; the option `-` reads standard input.
pub(crate) fn given_ticket(option: Option<&str>) -> Result<Option<Ticket>> {
    let word = match option {
        Some("-") => match std::env::var("GREBE_TICKET") {
            Ok(word) => Zeroizing::new(word),
            Err(_) => read_ticket()?,
        },
        Some(word) => {
            if others_are_here() {
                note!(
                    "other users of this machine can see the ticket in the process list; prefer the prompt"
                );
            }
            Zeroizing::new(word.to_owned())
        }
        None => match std::env::var("GREBE_TICKET") {
            Ok(word) => Zeroizing::new(word),
            Err(_) => return Ok(None),
        },
    };
    Ok(Some(ticket_of(&word)?))
}

/// Parses a ticket of a transfer.
pub(crate) fn ticket_of(word: &str) -> Result<Ticket> {
    named_ticket(word, Ticket::from_word(word, Purpose::Transfer).map_err(grebe_connection::Error::from))
}

/// Result of parsing a word. The error contains the word if it is too short for a secret.
pub(crate) fn named_ticket<T, E>(word: &str, read: Result<T, E>) -> Result<T>
where
    Result<T, E>: Context<T, E>,
{
    let letters = word.trim().chars().count();
    read.with_context(|| match letters {
        0..NAMED_LETTERS => format!("'{}'", word.trim()),
        _ => format!("a word of {letters} letters"),
    })
}

/// Whether a word is or has a ticket, perhaps a damaged one, rather than a file's name.
pub(crate) fn is_like_a_ticket(word: &str) -> bool {
    hidden_secrets::is_in(word) && !std::path::Path::new(word).exists()
}

/// Reports skipped files with the reasons.
pub(crate) fn report_skipped(left_out: &[LeftOut], count: u64) {
    const SHOWN: usize = 20;
    for left in left_out.iter().take(SHOWN) {
        note!("skipped: {}: {}", left.shown_name(), left.why);
    }
    if count > SHOWN as u64 {
        note!("skipped: {} more; --json names the first {LEFT_OUT_KEPT}", count - SHOWN as u64);
    }
}

pub(crate) fn left_out_json(left_out: &[LeftOut]) -> Value {
    let named = left_out.iter();
    named.map(|left| json!({ "path": String::from_utf8_lossy(&left.name), "why": left.why })).collect()
}

/// `, 12 MB of it already there`, or nothing.
pub(crate) fn there_before(report: &TransferReport) -> String {
    let of_it = |bytes: u64, what: &str| match bytes {
        0 => String::new(),
        bytes => format!(", {} of it {what}", size(bytes)),
    };
    let there = report.resumed_bytes - report.hole_bytes;
    of_it(there, "already there") + &of_it(report.hole_bytes, "holes")
}

pub(crate) fn ending(report: &TransferReport) -> Ending {
    if report.left_out_count == 0 { Ending::Good } else { Ending::Partial }
}

/// Options of the connection to the other side.
pub(crate) fn options(rendezvous: &Rendezvous, way: &TransferRoute, cancel: &Cancel) -> ConnectionOptions {
    ConnectionOptions {
        via: rendezvous.via,
        answer_within: rendezvous.wait,
        keep_trying: rendezvous.keep_trying,
        cancel: cancel.clone(),
        notify: way.notify(),
        ..ConnectionOptions::default()
    }
}

/// This side of a transfer.
pub(crate) struct Side<'a> {
    pub(crate) rendezvous: &'a Rendezvous,
    /// Command at the other side.
    pub(crate) there: &'a str,
    pub(crate) json: bool,
}

impl Side<'_> {
    /// Connects to the peer of a ticket, or prints a ticket and waits for the peer.
    pub(crate) fn meet(&self, ticket: Option<Ticket>, options: &ConnectionOptions) -> Result<Connection> {
        if let Some(ticket) = ticket {
            return connect(&ticket, options).map_err(unmet);
        }
        let bind = |at| ConnectionListener::bind(at, Purpose::Transfer, self.rendezvous.expires);
        let mut listener = match self.rendezvous.listen {
            Some(address) => bind(address)?,
            None => listen_anywhere(0, bind)?,
        };
        advertise(&mut listener.ticket, self.rendezvous)?;
        announce(&listener.ticket, self.rendezvous, self.there, self.json)?;
        listener.accept(options).map_err(unmet)
    }
}

/// Error of a side that stopped before the other came.
fn unmet(error: grebe_connection::Error) -> anyhow::Error {
    let is_stopped = matches!(error, grebe_connection::Error::Cancelled);
    let error = anyhow::Error::from(error);
    if is_stopped {
        error.context("stopped before the other side connected: no file was transferred")
    } else {
        error
    }
}

/// Adds our addresses and the relay to the ticket.
fn advertise(ticket: &mut Ticket, rendezvous: &Rendezvous) -> Result<()> {
    ticket.relay = relay_or_default(rendezvous.relay.as_ref())?;
    if rendezvous.via == Via::Relay && ticket.relay.is_none() {
        return Err(Usage("--via relay needs a relay: --relay HOST, or GREBE_RELAY".into()).into());
    }
    let Some(port) = ticket.addresses.first().map(Address::port) else { return Ok(()) };
    let mut addresses = Vec::new();
    for host in &rendezvous.advertise {
        addresses.extend(resolve(host, port)?);
    }
    if !addresses.is_empty() {
        addresses.truncate(Ticket::ADDRESSES_MAX);
        ticket.addresses = addresses.into_iter().map(Into::into).collect();
    }
    if rendezvous.via == Via::Relay {
        ticket.addresses.clear();
    }
    Ok(())
}

/// Prints the ticket on standard output, and instructions on standard error.
fn announce(ticket: &Ticket, rendezvous: &Rendezvous, command: &str, json: bool) -> Result<()> {
    let addresses: Vec<_> = ticket.addresses.iter().map(ToString::to_string).collect();
    let places = ticket.relay.iter().map(|relay| format!("the relay {relay}"));
    let places: Vec<_> = places.chain(addresses).collect();
    note!("waiting at {} (UDP and TCP)", places.join(", "));
    if json {
        return output::json(&json!({ "ticket": *ticket.word() }));
    }
    let good_for = units::time_words(rendezvous.expires);
    note!("on the other side, once and within {good_for}: {command}");
    out!("{}", *ticket.word())
}

/// Route of a transfer, as far as known.
#[derive(Clone)]
pub(crate) struct TransferRoute {
    name: Arc<Mutex<Option<&'static str>>>,
    bar: ProgressBar,
}

impl TransferRoute {
    /// Prints notices above the progress line.
    fn notify(&self) -> Notify {
        let way = self.clone();
        Arc::new(move |notice: Notice| {
            let name = match notice {
                Notice::OverTcp => Some("tcp"),
                Notice::Direct { .. } => Some("direct"),
                Notice::Relayed { .. } => Some("relayed"),
                _ => None,
            };
            if name.is_some() {
                *way.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
            }
            way.bar.suspend(|| note!("{notice}"));
        })
    }

    /// For JSON: `direct` or `relayed` after a meeting at a relay, `tcp` if UDP did not pass.
    pub(crate) fn name(&self) -> Option<&'static str> {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `12 s left`, or nothing if unknown.
pub(crate) fn time_left(bytes: u64, rate_bytes_per_s: f64) -> String {
    let seconds = (bytes as f64 / rate_bytes_per_s.max(1.0)).ceil();
    if rate_bytes_per_s < 1.0 || seconds > 1e7 {
        return String::new();
    }
    let seconds = seconds as u64;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s left"),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02} left"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02} left"),
    }
}

/// Bytes as text.
pub(crate) fn size(bytes: u64) -> String {
    Engineering::new(bytes as f64, "B").to_string()
}

/// Recent rate of arrival at the receiver.
#[derive(Default)]
struct ArrivalRate {
    seen: VecDeque<(Instant, u64)>,
}

impl ArrivalRate {
    /// Bytes per second, with `bytes` in all arrived by `now`.
    fn at(&mut self, now: Instant, bytes: u64) -> f64 {
        self.seen.push_back((now, bytes));
        while self.seen.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= RATE_WINDOW) {
            self.seen.pop_front();
        }
        let Some(&(first, before)) = self.seen.front() else { return 0.0 };
        bytes.saturating_sub(before) as f64 / now.duration_since(first).as_secs_f64().max(0.1)
    }
}

/// Progress bar on a terminal, or a line of JSON per second.
pub(crate) struct Display {
    bar: ProgressBar,
    json: bool,
    told: Option<Instant>,
    rate: ArrivalRate,
}

impl Display {
    pub(crate) fn new(json: bool) -> Self {
        let bar = if json { ProgressBar::hidden() } else { crate::output::bar(Some(0)) };
        // The template is a constant, and tested.
        if let Some(style) = crate::output::bar_style(TEMPLATE) {
            bar.set_style(style);
        }
        Self { bar, json, told: None, rate: ArrivalRate::default() }
    }

    /// Route of the shown transfer.
    pub(crate) fn route(&self) -> TransferRoute {
        TransferRoute { name: Arc::default(), bar: self.bar.clone() }
    }

    /// Shows progress. `path` has more for people, unless the other side is silent, and `progress` more for scripts.
    pub(crate) fn show(
        &mut self,
        now: &TransferProgress,
        path: impl FnOnce() -> String,
        progress: impl FnOnce() -> Value,
    ) {
        let rate = self.rate.at(Instant::now(), now.moved_bytes);
        if self.json {
            if self.told.is_none_or(|told| told.elapsed() >= Duration::from_secs(1)) {
                self.told = Some(Instant::now());
                // The transfer continues without a reader; the end reports what could not be written.
                let mut progress = progress();
                progress["rate_bits_per_s"] = (rate * 8.0).into();
                progress["bytes"] = now.bytes.into();
                progress["total_bytes"] = now.total_bytes.into();
                progress["silent_us"] = now.connection.silent_us.into();
                let _ = output::json(&json!({ "progress": progress }));
            }
            return;
        }
        if !self.bar.is_hidden() {
            self.bar.set_length(now.total_bytes);
            self.bar.set_position(now.bytes);
            let silent = Duration::from_micros(now.connection.silent_us);
            self.bar.set_message(match silent < SILENT {
                true => format!(
                    "{}  {}  {}",
                    Engineering::new(rate * 8.0, "bit/s"),
                    time_left(now.total_bytes - now.bytes, rate),
                    path()
                ),
                false => format!("no message for {} s", silent.as_secs()),
            });
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Window of recent progress.
const RATE_WINDOW: Duration = Duration::from_secs(10);

/// A running peer sends a message each second.
const SILENT: Duration = Duration::from_secs(5);

/// Words up to this length contain no key.
const NAMED_LETTERS: usize = 24;

const TEMPLATE: &str = "{bar:20} {percent:>3} %  {decimal_bytes} of {decimal_total_bytes}  {msg}";

fn read_ticket() -> Result<Zeroizing<String>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        // Without a line end, because the user types the ticket after it.
        let _ = std::io::stderr().write_all(b"ticket: ");
    }
    let mut word = Zeroizing::new(String::new());
    stdin.lock().read_line(&mut word).context("cannot read the ticket from standard input")?;
    if word.trim().is_empty() {
        return Err(Usage("no ticket on standard input".into()).into());
    }
    Ok(word)
}

fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let named = if host.contains(':') { host.to_owned() } else { format!("{host}:{port}") };
    let found = named.to_socket_addrs().map_err(|error| Usage(format!("--advertise {host}: {error}")))?;
    Ok(found.collect())
}

/// Whether other users have processes on this machine.
#[cfg(target_os = "linux")]
fn others_are_here() -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(own) = std::fs::metadata("/proc/self").map(|meta| meta.uid()) else { return false };
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
        .filter_map(|entry| entry.metadata().ok())
        .any(|meta| (1_000..65_000).contains(&meta.uid()) && meta.uid() != own)
}

#[cfg(not(target_os = "linux"))]
fn others_are_here() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_valid_and_times_are_for_people() {
        assert!(crate::output::bar_style(TEMPLATE).is_some());
        assert_eq!(time_left(90, 1.0), "1:30 left");
        assert_eq!(time_left(5, 1.0), "5 s left");
        assert_eq!(time_left(7_300, 1.0), "2:01:40 left");
        assert_eq!(time_left(5, 0.0), "");
    }

    #[test]
    fn the_rate_is_of_the_last_seconds() {
        let (began, mut rate) = (Instant::now(), ArrivalRate::default());
        let mut at = |second: u64, bytes| rate.at(began + Duration::from_secs(second), bytes);
        assert_eq!(at(0, 5_000), 0.0, "earlier bytes do not count");
        assert_eq!(at(1, 6_000), 1_000.0);
        assert_eq!(at(11, 6_000), 0.0, "nothing came for ten seconds");
        assert_eq!(at(12, 8_200), 200.0);
    }

    #[test]
    fn hosts_may_have_a_port_of_their_own() {
        assert_eq!(resolve("192.0.2.1", 7).unwrap(), ["192.0.2.1:7".parse().unwrap()]);
        assert_eq!(resolve("192.0.2.1:9", 7).unwrap(), ["192.0.2.1:9".parse().unwrap()]);
        assert_eq!(resolve("2001:db8::1", 7).unwrap(), ["[2001:db8::1]:7".parse().unwrap()]);
        assert!(resolve("no-such-host.invalid", 7).is_err());
    }
}
