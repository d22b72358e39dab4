//! Sending files: the options, the listener and the report.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_datagram::Sender as Datagrams;
use grebe_packet::{Cancel, Ticket};

use super::connect::{self, Asking, Connected};
use super::report::{Notice, SendReport};
use super::sending::{Sending, UdpPath, open_udp};
use super::tcp_relay::TcpRelay;
use crate::error::Error;
use crate::io::disk::source::Source;
use crate::proto::congestion::Mode;
use crate::proto::handshake::Role;
use crate::proto::sender::{SendProgress, SenderOptions};

/// How files are sent.
#[derive(Debug, Clone)]
pub struct SendOptions {
    /// How much of a shared path to take.
    pub mode: Mode,
    /// Bits per second on the wire, at most; `None`: what the path gives.
    pub limit_bits_per_s: Option<f64>,
    /// For how long an answer is waited for.
    pub answer_within: Duration,
    /// Stops the transfer.
    pub cancel: Cancel,
    /// Is called with what a user may want to know before the end.
    pub notify: fn(Notice),
}

/// Waits for one receiver: the one that has the ticket.
#[derive(Debug)]
pub struct SendListener {
    datagrams: Datagrams,
    socket: UdpSocket,
    /// A receiver needs it to connect; where receivers reach the listener by other addresses, put those in.
    pub ticket: Ticket,
    relay: Option<TcpRelay>,
}

/// Sends files to the receiver that made the ticket, and returns when the receiver has verified them.
///
/// `on_progress` is called ten times per second.
///
/// # Errors
/// [`Error::File`] where a file cannot be read; [`Error::NoAnswer`], [`Error::Silent`]; [`Error::Ended`] where the
/// receiver has another verdict than [`Verdict::Whole`](crate::Verdict::Whole); [`Error::Cancelled`]; [`Error::Socket`].
pub fn send(
    source: &Arc<Source>,
    ticket: &Ticket,
    options: &SendOptions,
    on_progress: impl FnMut(&SendProgress),
) -> Result<SendReport, Error> {
    let start = Instant::now();
    let addresses = connect::addresses_of(ticket)?;
    let (datagrams, socket) = open_udp(connect::local_for(&addresses))?;
    let asking = Asking {
        role: Role::Send,
        within: options.answer_within,
        cancel: &options.cancel,
        notify: options.notify,
    };
    let connected = connect::ask(&socket, ticket, &addresses, &asking)?;
    let path = UdpPath { datagrams, socket, peer: connected.peer };
    run(source, path, connected, start, options, on_progress)
}

impl SendListener {
    /// Listens at `address` (port 0: any) for at most `lifetime` until a receiver connects. The ticket names `address`: where
    /// receivers reach it by other addresses, put those into [`ticket`](Self::ticket).
    ///
    /// # Errors
    /// [`Error::Socket`] where the address cannot be bound; [`Error::Keys`] where the system has no random numbers.
    pub fn bind(address: SocketAddr, lifetime: Duration) -> Result<Self, Error> {
        let (datagrams, socket) = open_udp(address)?;
        let bound = datagrams.local_addr()?;
        let ticket = connect::new_ticket(bound, lifetime)?;
        Ok(Self { datagrams, socket, ticket, relay: TcpRelay::open(bound, bound) })
    }

    /// Waits for the receiver and sends it the files: see [`send`].
    ///
    /// # Errors
    /// As [`send`]; [`Error::Expired`] instead of [`Error::NoAnswer`].
    pub fn send(
        self,
        source: &Arc<Source>,
        options: &SendOptions,
        on_progress: impl FnMut(&SendProgress),
    ) -> Result<SendReport, Error> {
        // The relay ends with the transfer.
        let Self { datagrams, socket, ticket, relay: _relay } = self;
        let connected = connect::answer(&socket, &ticket, Role::Receive, &options.cancel)?;
        let path = UdpPath { datagrams, socket, peer: connected.peer };
        run(source, path, connected, Instant::now(), options, on_progress)
    }
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Fair,
            limit_bits_per_s: None,
            answer_within: Duration::from_secs(10),
            cancel: Cancel::default(),
            notify: |_| {},
        }
    }
}

fn run(
    source: &Arc<Source>,
    path: UdpPath,
    connected: Connected,
    start: Instant,
    options: &SendOptions,
    on_progress: impl FnMut(&SendProgress),
) -> Result<SendReport, Error> {
    let handshake = start.elapsed();
    let peer = path.peer;
    let local_port = path.socket.local_addr().map_or(0, |local| local.port());
    let (datagram_bytes, probe_datagram_bytes) = path.datagram_bytes();
    let sender_options = SenderOptions {
        mode: options.mode,
        limit_bits_per_s: options.limit_bits_per_s,
        rtt_us: connected.rtt.map(|rtt| rtt.as_micros() as u64),
        datagram_bytes,
        probe_datagram_bytes,
        seed: u64::from(local_port) + u64::from(std::process::id()),
    };
    let mut sending = Sending::start(source, path, connected.session, sender_options);
    sending.run(&options.cancel, on_progress)?;
    let Sending { sender, clock, resumed_bytes, .. } = sending;
    Ok(SendReport {
        file_bytes: source.file_bytes(),
        resumed_bytes,
        peer,
        took: start.elapsed(),
        handshake,
        counters: sender.counters(),
        phases: sender.phase_costs(clock.now_us()),
        datagram_bytes: sender.datagram_bytes(),
        progress: sender.progress(),
    })
}
