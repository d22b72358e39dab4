//! Sending files: the options, the listener, and the thread that reads, builds packets, sends them and takes the receiver's reports.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_datagram::{Sender as Datagrams, wait_readable};
use grebe_packet::{Cancel, Purpose, Ticket};
use grebe_relay::{Side, Via};

use super::connect::{self, Asking, Connected, Fallback};
use super::finding::{Found, find};
use super::outlet::PACKET_BYTES_MAX;
use super::path::{Path, open_udp};
use super::rendezvous::{ByTcp, Rendezvous};
use super::tcp::{Heard, PacketStream, TcpDoor};
use super::{KEEP_TRYING, Notice, Notify, SendReport, Transport, taken};
use crate::error::{Error, Result};
use crate::io::Clock;
use crate::io::disk::outgoing::Outgoing;
use crate::io::disk::source::Source;
use crate::proto::congestion::Mode;
use crate::proto::handshake::{Responder, Role, Session};
use crate::proto::sender::{SendProgress, Sender, SenderOptions, Transmit};
use crate::proto::sent_packets::Item;
use crate::proto::wire::{
    DATA_HEADER_BYTES, Frame, HEADER_BYTES, Offer, ReceivedPackets, TAG_BYTES, Verdict, data_header,
};

/// How files are sent.
#[derive(Clone)]
pub struct SendOptions {
    /// How much of a shared path to take.
    pub mode: Mode,
    /// Bits per second on the wire, at most; `None`: what the path gives.
    pub limit_bits_per_s: Option<f64>,
    /// Which ways are taken where the ticket names a relay.
    pub via: Via,
    /// For how long an answer is waited for.
    pub answer_within: Duration,
    /// For how long a receiver that was there may be silent.
    pub keep_trying: Duration,
    /// Stops the transfer.
    pub cancel: Cancel,
    /// Is called with what a user may want to know before the end.
    pub notify: Notify,
}

/// Waits for one receiver: the one that has the ticket.
#[derive(Debug)]
pub struct SendListener {
    datagrams: Datagrams,
    socket: UdpSocket,
    /// A receiver needs it to connect; where receivers reach the listener by other addresses, put those in.
    pub ticket: Ticket,
    door: Option<TcpDoor>,
}

/// Sends files to the receiver that made the ticket, and returns when the receiver has verified them.
///
/// `on_progress` is called ten times per second.
///
/// # Errors
/// [`Error::NoAnswer`], [`Error::Silent`]; [`Error::Ended`] where the
/// receiver has another verdict than [`Verdict::Whole`](crate::Verdict::Whole); [`Error::Cancelled`]; [`Error::Socket`].
pub fn send(
    source: &Arc<Source>,
    ticket: &Ticket,
    options: &SendOptions,
    on_progress: impl FnMut(&SendProgress),
) -> Result<SendReport> {
    let start = Instant::now();
    let asking = Asking {
        role: Role::Send,
        within: options.answer_within,
        transport: Transport::Any,
        cancel: &options.cancel,
        notify: &options.notify,
    };
    let Found { connected, datagrams, socket, addresses, meeting } =
        find(ticket, options.via, ByTcp::Untried, &asking, open_udp)?;
    let path =
        Path { fallback: Fallback::new(addresses), meeting, ..Path::new(datagrams, socket, connected.peer) };
    run(source, path, connected, start, options, on_progress)
}

impl SendListener {
    /// Listens at `address` (port 0: any) for at most `lifetime` until a receiver connects. The ticket names `address` or,
    /// where that is any (`0.0.0.0`), the addresses of this host: where receivers reach it by others, put those into [`ticket`](Self::ticket).
    ///
    /// # Errors
    /// [`Error::Socket`] where the address cannot be bound; [`Error::Keys`] where the system has no random numbers;
    /// [`Error::Ticket`] where this host has no address to name.
    pub fn bind(address: SocketAddr, lifetime: Duration) -> Result<Self> {
        let ((datagrams, socket), bound, door) =
            connect::bind_with_door(address, open_udp, |(datagrams, _)| Ok(datagrams.local_addr()?))?;
        let ticket = connect::new_ticket(Purpose::Transfer, bound, lifetime)?;
        Ok(Self { datagrams, socket, ticket, door })
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
    ) -> Result<SendReport> {
        let Self { datagrams, socket, ticket, door } = self;
        let mut door = door.filter(|_| options.via != Via::Relay);
        let mut meeting =
            Rendezvous::start(&ticket, Side::Waits, options.via, ByTcp::Untried, &socket, &options.notify)?;
        let answered =
            connect::answer(&socket, &mut door, &ticket, Role::Receive, meeting.as_mut(), &options.cancel);
        let connected = Rendezvous::leave_on_failure(&mut meeting, &socket, answered)?;
        let path = Path { door, meeting, ..Path::new(datagrams, socket, connected.peer) };
        run(source, path, connected, Instant::now(), options, on_progress)
    }
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Fair,
            limit_bits_per_s: None,
            via: Via::Any,
            answer_within: Duration::from_secs(10),
            keep_trying: KEEP_TRYING,
            cancel: Cancel::default(),
            notify: Arc::new(|_| {}),
        }
    }
}

fn run(
    source: &Arc<Source>,
    mut path: Path,
    connected: Connected,
    start: Instant,
    options: &SendOptions,
    on_progress: impl FnMut(&SendProgress),
) -> Result<SendReport> {
    let handshake = start.elapsed();
    let peer = path.peer;
    if let Some(meeting) = path.meeting.as_mut().filter(|_| connected.tcp.is_none()) {
        meeting.settle(peer);
    }
    let local_port = path.socket.local_addr().map_or(0, |local| local.port());
    let (datagram_bytes, probe_datagram_bytes) = connect::datagram_bytes(&path.socket, path.peer);
    let sender_options = SenderOptions {
        mode: options.mode,
        limit_bits_per_s: options.limit_bits_per_s,
        rtt_us: connected.rtt.map(|rtt| rtt.as_micros() as u64),
        datagram_bytes,
        probe_datagram_bytes,
        seed: u64::from(local_port) + u64::from(std::process::id()),
        silence_us_max: options.keep_trying.as_micros() as u64,
    };
    let mut sending = Sending::start(source, path, connected, sender_options);
    let ended = sending.run(options, on_progress);
    let Sending { packets, clock, resumed_bytes, mut path, .. } = sending;
    let Packets { sender, outgoing, .. } = packets;
    path.leave();
    let peer = path.meeting.as_ref().map_or(grebe_relay::canonical(peer), |meeting| meeting.known_as(peer));
    // The receiver is to hear how it ended.
    if let Some(tcp) = path.tcp {
        tcp.finish();
    }
    ended?;
    Ok(SendReport {
        file_bytes: source.file_bytes(),
        left_out: outgoing.content.left_out(),
        is_partial: sender.verdict() == Some(Verdict::Partial),
        resumed_bytes,
        peer,
        took: start.elapsed(),
        handshake,
        counters: sender.counters,
        phases: sender.controller.costs(clock.now_us()),
        datagram_bytes: sender.sizes.longest(),
        progress: sender.progress(),
    })
}

/// One transfer at its sender.
struct Sending {
    path: Path,
    packets: Packets,
    responder: Option<Responder>,
    clock: Clock,
    /// Bytes that the receiver had from an earlier session, or in files that are there.
    resumed_bytes: u64,
    received: ReceivedPackets,
    /// The receiver breaks the protocol.
    failure: Option<Error>,
    /// When to look who came by TCP.
    next_look_us: u64,
}

/// What packets are made of.
struct Packets {
    session: Session,
    sender: Sender,
    outgoing: Outgoing,
    offer: Offer,
}

impl Sending {
    fn start(source: &Arc<Source>, path: Path, connected: Connected, options: SenderOptions) -> Self {
        let total_bytes = source.stream_bytes();
        let packets = Packets {
            session: connected.session,
            sender: Sender::new(total_bytes, options),
            outgoing: Outgoing::start(source),
            offer: Offer {
                total_bytes,
                index_bytes: source.index_bytes(),
                content: source.content(),
                touched: source.touched(),
            },
        };
        let mut sending = Self {
            path,
            packets,
            responder: connected.responder,
            clock: Clock::start(),
            resumed_bytes: 0,
            received: ReceivedPackets::default(),
            failure: None,
            next_look_us: 0,
        };
        if let Some(tcp) = connected.tcp {
            sending.go_by(Some(tcp));
        }
        sending
    }

    /// Sends until the receiver has a verdict, or is silent for too long.
    fn run(&mut self, options: &SendOptions, mut on_progress: impl FnMut(&SendProgress)) -> Result<()> {
        let cancel = &options.cancel;
        let mut next_progress_us = 0;
        loop {
            let now_us = self.clock.now_us();
            self.take_reports(now_us);
            self.look_for_another_way(now_us, options);
            if cancel.is_cancelled() {
                self.packets.sender.cancel();
            }
            if let Err(error) = self.failure.take().map_or_else(|| self.send_due(now_us), Err) {
                // Tells the receiver, which then need not wait.
                self.packets.sender.cancel();
                let _ = self.send_due(now_us);
                return Err(error);
            }
            if now_us >= next_progress_us || self.packets.sender.is_done() {
                on_progress(&self.packets.sender.progress());
                next_progress_us = now_us + 100_000;
            }
            if self.packets.sender.is_done() {
                return match self.packets.sender.verdict() {
                    Some(Verdict::Whole | Verdict::Partial) | None => Ok(()),
                    Some(_) if cancel.is_cancelled() => Err(Error::Cancelled),
                    Some(verdict) => Err(Error::Ended { verdict }),
                };
            }
            if self.packets.sender.is_peer_gone(now_us) {
                return Err(Error::Silent { waited: options.keep_trying });
            }
            self.wait();
        }
    }

    /// Waits until a packet is due, or a report or the reader is there.
    fn wait(&mut self) {
        let now_us = self.clock.now_us();
        let has_room = self.path.tcp.as_ref().is_none_or(PacketStream::has_room);
        let due_us = if has_room { self.packets.sender.next_time_us(now_us) } else { u64::MAX };
        let wait_us = due_us.saturating_sub(now_us).min(20_000);
        if wait_us == 0 {
            return;
        }
        if has_room && self.packets.sender.is_waiting_for_source() {
            // What is read next is as urgent as a report.
            return self.packets.outgoing.wait(Duration::from_micros(wait_us.min(SOURCE_WAIT_US)));
        }
        let wait = Duration::from_micros(wait_us.max(WAIT_US_MIN));
        if let Some(tcp) = &self.path.tcp {
            return tcp.wait(wait);
        }
        // A wait that fails is a short one.
        let _ = wait_readable(&self.path.socket, wait);
    }

    fn take_reports(&mut self, now_us: u64) {
        if let Some(mut tcp) = self.path.tcp.take() {
            for _ in 0..REPORTS_A_TURN {
                let Some(packet) = tcp.receive() else { break };
                self.take_report(now_us, packet);
            }
            self.path.tcp = Some(tcp);
            if now_us < self.next_look_us {
                return;
            }
        }
        let mut datagram = [0; 2_048];
        for _ in 0..REPORTS_A_TURN {
            let Ok((length, from)) = self.path.socket.recv_from(&mut datagram) else { return };
            let is_lost = self.is_lost(now_us);
            match self.take_report(now_us, &mut datagram[..length]) {
                Heard::Peer => self.path.heard(now_us, from, is_lost),
                Heard::Question(said) => {
                    let _ = self.path.socket.send_to(&said, from);
                }
                Heard::Nothing => {
                    if let Some(meeting) = &mut self.path.meeting {
                        meeting.take(from, &datagram[..length]);
                    }
                }
            }
        }
    }

    /// Takes what may be the receiver's; its newest packet shows where it is.
    fn take_report(&mut self, now_us: u64, datagram: &mut [u8]) -> Heard {
        let Ok((number, plain)) = self.packets.session.open(&self.received, datagram) else {
            return taken(&mut self.responder, datagram).map_or(Heard::Nothing, Heard::Question);
        };
        let is_newest = self.received.highest().is_none_or(|highest| number > highest);
        self.received.accept(number);
        match Frame::decode(plain) {
            Ok(Frame::Feedback(report)) => self.packets.sender.on_feedback(now_us, &report),
            Ok(Frame::Outcome(verdict)) => self.packets.sender.on_outcome(verdict),
            Ok(Frame::Ready) => self.packets.sender.on_ready(now_us),
            Ok(Frame::Held(held)) => {
                let held_bytes = held.iter().map(|range| range.end - range.start).sum();
                self.resumed_bytes = self.resumed_bytes.max(held_bytes);
                match self.packets.sender.on_held(&held) {
                    Ok(true) => self.packets.outgoing.skip(self.packets.sender.confirmed.clone()),
                    Ok(false) => {}
                    Err(error) => self.failure = Some(error),
                }
            }
            _ => {}
        }
        if is_newest { Heard::Peer } else { Heard::Nothing }
    }

    /// A receiver that confirms nothing is looked for over TCP, or comes by itself.
    fn look_for_another_way(&mut self, now_us: u64, options: &SendOptions) {
        let is_over = self.path.tcp.as_ref().is_some_and(PacketStream::is_over);
        if is_over {
            self.go_by(None);
        }
        self.path.keep_place(now_us);
        let mut found = self.path.fallback.poll(now_us, self.packets.sender.unconfirmed_us(now_us));
        if now_us >= self.next_look_us
            && let Some(mut door) = self.path.door.take()
        {
            // Whoever holds back packets and sends them from elsewhere shall not choose whom we send to.
            let is_lost = is_over || self.is_lost(now_us);
            let came = door.poll(|packet| match self.take_report(now_us, packet) {
                Heard::Peer if !is_lost => Heard::Nothing,
                heard => heard,
            });
            (self.path.door, found) = (Some(door), found.or(came));
        }
        if now_us >= self.next_look_us {
            self.next_look_us = now_us + LOOK_EVERY_US;
        }
        if let Some(tcp) = found {
            if self.path.tcp.is_none() {
                (options.notify)(Notice::OverTcp);
            }
            self.go_by(Some(tcp));
        }
    }

    /// Whether nothing was confirmed for long: what the receiver says may come here nevertheless.
    fn is_lost(&self, now_us: u64) -> bool {
        self.packets.sender.unconfirmed_us(now_us) > connect::SILENT_US
    }

    /// Goes on by a TCP connection, or by UDP again.
    fn go_by(&mut self, tcp: Option<PacketStream>) {
        let now_us = self.clock.now_us();
        self.packets.sender.use_stream(now_us, tcp.is_some());
        self.path.go_by(now_us, tcp);
    }

    fn send_due(&mut self, now_us: u64) -> Result<()> {
        let Self { path, packets, .. } = self;
        path.send(|room| packets.build_next(now_us, room))
    }
}

impl Packets {
    /// Builds the next packet that is due, protected, and returns its length.
    fn build_next(&mut self, now_us: u64, room: &mut [u8]) -> Result<Option<usize>> {
        if self.sender.verdict().is_none() {
            let (fresh_from, needed_from) = (self.sender.fresh, self.sender.confirmed.prefix_end());
            self.sender.make_available(self.outgoing.advance(fresh_from, needed_from));
        }
        match self.sender.poll_transmit(now_us) {
            Some(transmit) => self.build(&transmit, room).map(Some),
            None => Ok(None),
        }
    }

    fn build(&mut self, transmit: &Transmit, room: &mut [u8]) -> Result<usize> {
        let stamp = transmit.stamp;
        let frame_bytes = match transmit.item {
            Item::Data { offset, len } => {
                let payload_at = HEADER_BYTES + DATA_HEADER_BYTES;
                room[HEADER_BYTES..payload_at].copy_from_slice(&data_header(stamp, offset, false));
                self.outgoing.fill(offset, &mut room[payload_at..payload_at + len as usize]);
                DATA_HEADER_BYTES + len as usize
            }
            item => {
                let frame = match item {
                    Item::Offer => Frame::Offer { stamp, offer: self.offer },
                    Item::Probe { datagram_bytes } => {
                        let around = HEADER_BYTES + TAG_BYTES + PROBE_HEAD_BYTES;
                        Frame::Probe { stamp, padding: (datagram_bytes as usize).saturating_sub(around) }
                    }
                    Item::Ping => Frame::Probe { stamp, padding: 0 },
                    Item::Data { .. } | Item::Close => Frame::Close,
                };
                let room = &mut room[HEADER_BYTES..PACKET_BYTES_MAX - TAG_BYTES];
                frame.encode(room).ok_or(Error::Malformed { what: "a frame longer than a datagram" })?
            }
        };
        let length = HEADER_BYTES + frame_bytes + TAG_BYTES;
        self.session.seal(transmit.number, &mut room[..length])?;
        Ok(length)
    }
}

/// For how long the sender waits for the reader without looking for reports.
const SOURCE_WAIT_US: u64 = 500;

/// Reports that are taken before anything is sent.
const REPORTS_A_TURN: usize = 64;

/// How often the sender looks who came by TCP and, while it sends by TCP, whether something came by UDP.
const LOOK_EVERY_US: u64 = 100_000;

/// Kind and stamp of a probe.
const PROBE_HEAD_BYTES: usize = 6;

/// Shorter sleeps cost more than they gain: the schedule makes up for a sleep that is too long.
const WAIT_US_MIN: u64 = 100;
