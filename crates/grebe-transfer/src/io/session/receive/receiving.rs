//! The thread that opens packets, hands their bytes to the writer and reports to the sender.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use grebe_datagram::Receiver as Datagrams;
use grebe_packet::{Cancel, Ticket};
use grebe_relay::Side;

use super::{ReceiveOptions, another_handle};
use crate::error::{Error, Result};
use crate::io::disk::writer::Writer;
use crate::io::disk::{LeftOut, Place, Renamed, groups, journal_key};
use crate::io::session::connect::{self, Connected, Fallback};
use crate::io::session::rendezvous::{ByTcp, Rendezvous};
use crate::io::session::tcp::{Heard, PacketStream, TcpDoor};
use crate::io::session::{Notice, Notify, ReceiveProgress, ReceiveReport, taken};
use crate::io::{ArrivalTimes, Clock, unix_s};
use crate::proto::handshake::{Responder, Session};
use crate::proto::receiver::{Arrived, Receiver};
use crate::proto::wire::{Frame, HEADER_BYTES, Offer, TAG_BYTES, Verdict};

/// One transfer at its receiver.
pub(super) struct Receiving {
    /// Another handle on the socket, to answer on.
    socket: UdpSocket,
    fallback: Fallback,
    /// Of the end that made the ticket.
    responder: Option<Responder>,
    /// When the ticket expires.
    expires_unix_s: u64,
    peer: Option<SocketAddr>,
    /// All reports go by this while it lasts, and what the sender sends once it has chosen this way.
    tcp: Option<PacketStream>,
    /// When something came by it, or it was made.
    tcp_heard_us: u64,
    /// The sender sends by it, and the user was told.
    is_by_tcp: bool,
    /// Where a sender comes that has the ticket.
    pub(super) door: Option<TcpDoor>,
    /// Where both ends meet, if the ticket names a relay.
    meeting: Option<Rendezvous>,
    /// When to look who came by TCP.
    next_look_us: u64,
    session: Option<Session>,
    core: Receiver,
    next_call_us: u64,
    /// Number of the next packet to the sender.
    number: u64,
    next_ready_us: u64,
    next_progress_us: u64,
    place: Place,
    writer: Option<Writer>,
    offer: Option<Offer>,
    paths: Vec<PathBuf>,
    left_out: Vec<LeftOut>,
    renamed: Vec<Renamed>,
    failure: Option<Error>,
    first_us: u64,
    /// When everything was whole; 0: it is not yet.
    whole_us: u64,
    arrivals: ArrivalTimes,
}

impl Receiving {
    pub(super) fn new(
        datagrams: &Datagrams<Vec<u8>>,
        directory: &Path,
        options: &ReceiveOptions,
    ) -> Result<Self> {
        let mut core = Receiver::new(WINDOW_BYTES);
        core.window_bytes_max = options.memory_bytes_max.max(WINDOW_BYTES);
        core.silence_us_max = options.keep_trying.as_micros() as u64;
        Ok(Self {
            socket: another_handle(datagrams)?,
            fallback: Fallback::new(Vec::new()),
            responder: None,
            expires_unix_s: u64::MAX,
            peer: None,
            tcp: None,
            tcp_heard_us: 0,
            is_by_tcp: false,
            door: None,
            meeting: None,
            next_look_us: 0,
            session: None,
            core,
            next_call_us: 0,
            number: 0,
            next_ready_us: 0,
            next_progress_us: 0,
            place: Place {
                directory: directory.to_path_buf(),
                key: journal_key(options.state.as_deref())?,
                overwrite: options.overwrite,
                accept: options.accept.clone(),
                asks: options.asks,
            },
            writer: None,
            offer: None,
            paths: Vec::new(),
            left_out: Vec::new(),
            renamed: Vec::new(),
            failure: None,
            first_us: 0,
            whole_us: 0,
            arrivals: ArrivalTimes::default(),
        })
    }

    /// Meets the sender at the relay of the ticket, if that names one.
    pub(super) fn meet(&mut self, ticket: &Ticket, side: Side, options: &ReceiveOptions) -> Result<()> {
        self.meeting =
            Rendezvous::start(ticket, side, options.via, ByTcp::Untried, &self.socket, &options.notify)?;
        Ok(())
    }

    /// Waits for a sender that proves the key, until the ticket expires.
    pub(super) fn answer(&mut self, responder: Responder, expires_unix_s: u64) {
        (self.responder, self.expires_unix_s) = (Some(responder), expires_unix_s);
    }

    /// Goes on with a sender that has answered.
    pub(super) fn go_on(
        &mut self,
        connected: Connected,
        addresses: Vec<SocketAddr>,
        meeting: Option<Rendezvous>,
    ) {
        self.fallback = Fallback::new(addresses);
        self.meeting = meeting;
        if let Some(meeting) = self.meeting.as_mut().filter(|_| connected.tcp.is_none()) {
            meeting.settle(connected.peer);
        }
        (self.session, self.peer, self.tcp) = (Some(connected.session), Some(connected.peer), connected.tcp);
        self.is_by_tcp = self.tcp.is_some();
        self.core.heard(0);
    }

    /// Receives until the sender knows the verdict, or is silent for too long.
    pub(super) fn run(
        mut self,
        mut datagrams: Datagrams<Vec<u8>>,
        options: &ReceiveOptions,
        mut on_progress: impl FnMut(&ReceiveProgress),
    ) -> Result<ReceiveReport> {
        let received = self.receive(&mut datagrams, options, &mut on_progress);
        if let Some(meeting) = &mut self.meeting {
            meeting.leave(&self.socket);
        }
        received?;
        if let Some(tcp) = self.tcp.take() {
            tcp.finish();
        }
        let report = self.finish()?;
        on_progress(&self.progress());
        Ok(report)
    }

    fn receive(
        &mut self,
        datagrams: &mut Datagrams<Vec<u8>>,
        options: &ReceiveOptions,
        mut on_progress: impl FnMut(&ReceiveProgress),
    ) -> Result<()> {
        let clock = Clock::start();
        loop {
            self.check_stop(clock.now_us(), &options.cancel)?;
            self.look_for_another_way(clock.now_us());
            self.receive_batch(&clock, datagrams, &options.notify)?;
            let now_us = clock.now_us();
            self.take_outcome(now_us);
            if self.core.verdict().is_some() && self.whole_us == 0 {
                self.whole_us = now_us;
            }
            self.report(now_us);
            if now_us >= self.next_progress_us && self.offer.is_some() {
                on_progress(&self.progress());
                self.next_progress_us = now_us + 100_000;
            }
            if self.session.is_some() && self.core.is_over(now_us) {
                return Ok(());
            }
        }
    }

    /// Fails where nobody connected in time, or where the user cancels; after the offer, the sender hears of that first.
    fn check_stop(&mut self, now_us: u64, cancel: &Cancel) -> Result<()> {
        if self.session.is_none() && unix_s() >= self.expires_unix_s {
            return Err(Error::Expired);
        }
        // What is whole stays so.
        if cancel.is_cancelled() && self.failure.is_none() && self.core.verdict().is_none() {
            if self.session.is_none() || self.offer.is_none() {
                return Err(Error::Cancelled);
            }
            self.fail(now_us, Error::Cancelled);
        }
        Ok(())
    }

    /// A sender that is silent is called: it may have lost its way here. One that brings nothing new is called over TCP too: it may be that it
    /// hears nothing, and it knows whether it goes on there.
    fn look_for_another_way(&mut self, now_us: u64) {
        let silent_us = now_us.saturating_sub(self.core.heard_us);
        let is_silent = silent_us > connect::SILENT_US;
        if let Some(meeting) = &mut self.meeting {
            meeting.turn(&self.socket);
            // Reports alone go there: the sender chooses its way itself, and comes with it.
            if let Some(peer) = self.peer
                && let Some(relay) = meeting.way_after_silence(Duration::from_micros(silent_us), peer)
            {
                self.peer = Some(relay);
                meeting.settle(relay);
            }
        }
        if self.session.is_none() {
            return;
        }
        let heard_us = self.tcp.as_ref().map_or(0, |_| self.tcp_heard_us);
        let stuck_us = now_us.saturating_sub(self.core.news_us.max(heard_us));
        if let Some(tcp) = self.fallback.poll(now_us, stuck_us) {
            (self.tcp, self.tcp_heard_us, self.next_call_us) = (Some(tcp), now_us, now_us);
        }
        if is_silent && now_us >= self.next_call_us {
            self.next_call_us = now_us + CALL_EVERY_US;
            self.core.report_anyway(now_us);
        }
    }

    /// Takes what is there, or waits for the next packet until a report is due.
    fn receive_batch(
        &mut self,
        clock: &Clock,
        datagrams: &mut Datagrams<Vec<u8>>,
        notify: &Notify,
    ) -> Result<()> {
        let wait_us = self.core.next_time_us().saturating_sub(clock.now_us());
        let mut wait = Duration::from_millis(wait_us.div_ceil(1_000).clamp(1, WAIT_MS_MAX));
        if let Some(mut tcp) = self.tcp.take() {
            tcp.wait(wait);
            for _ in 0..PACKETS_A_TURN {
                let Some(packet) = tcp.receive() else { break };
                if let Heard::Peer = self.take_packet(clock.now_us(), packet) {
                    self.heard_by_tcp(clock.now_us(), notify);
                }
            }
            self.tcp = Some(tcp).filter(|tcp| !tcp.is_over());
            self.is_by_tcp &= self.tcp.is_some();
            wait = Duration::from_millis(1);
        }
        let is_time = clock.now_us() >= self.next_look_us;
        if self.tcp.is_some() && !is_time {
            return Ok(());
        }
        self.take_datagrams(clock, datagrams, wait)?;
        if is_time || self.session.is_none() {
            self.next_look_us = clock.now_us() + LOOK_EVERY_US;
            self.look_who_came(clock, notify);
        }
        Ok(())
    }

    fn take_datagrams(
        &mut self,
        clock: &Clock,
        datagrams: &mut Datagrams<Vec<u8>>,
        wait: Duration,
    ) -> Result<()> {
        datagrams.set_timeout(wait);
        let mut now = None;
        datagrams.recv(
            || Some(vec![0; SLOT_BYTES]),
            |mut slot, received| {
                let now = now.get_or_insert_with(|| clock.reading());
                let arrived_us = self.arrivals.us_of(now, received.timestamp);
                let is_wanted = self.meeting.as_ref().is_none_or(|meeting| meeting.is_wanted(received.from));
                for range in received.segments() {
                    let heard = match is_wanted {
                        true => self.take_packet(arrived_us, &mut slot[range.clone()]),
                        false => Heard::Nothing,
                    };
                    match heard {
                        // The newest packet shows where the sender is: behind a NAT that may change. Only reports are sent there.
                        Heard::Peer => self.heard_by_udp(arrived_us, received.from),
                        Heard::Question(answer) => {
                            let _ = self.socket.send_to(&answer, received.from);
                        }
                        Heard::Nothing => {
                            if let Some(meeting) = &mut self.meeting {
                                meeting.take(received.from, &slot[range]);
                            }
                        }
                    }
                }
                Some(slot)
            },
        )?;
        Ok(())
    }

    fn heard_by_tcp(&mut self, now_us: u64, notify: &Notify) {
        self.tcp_heard_us = now_us;
        if !std::mem::replace(&mut self.is_by_tcp, true) {
            notify(Notice::OverTcp);
        }
    }

    /// A connection is left for datagrams only where these bring something new and it brings nothing: then the sender hears by UDP.
    fn heard_by_udp(&mut self, arrived_us: u64, peer: SocketAddr) {
        if self.tcp.is_some() {
            let is_quiet = arrived_us.saturating_sub(self.tcp_heard_us) > TCP_QUIET_US;
            if !is_quiet || self.core.news_us != arrived_us {
                return;
            }
            (self.tcp, self.is_by_tcp) = (None, false);
        }
        if self.peer != Some(peer) {
            self.peer = Some(peer);
            if let Some(meeting) = &mut self.meeting {
                meeting.settle(peer);
            }
        }
    }

    fn look_who_came(&mut self, clock: &Clock, notify: &Notify) {
        let Some(mut door) = self.door.take() else { return };
        if let Some(tcp) = door.poll(|packet| self.take_packet(clock.now_us(), packet)) {
            self.heard_by_tcp(clock.now_us(), notify);
            (self.peer, self.tcp) = (tcp.peer().or(self.peer), Some(tcp));
        }
        self.door = Some(door);
    }

    /// How the transfer ended.
    fn finish(&mut self) -> Result<ReceiveReport> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let (Some(Verdict::Whole | Verdict::Partial), Some(offer), Some(peer)) =
            (self.core.verdict(), self.offer, self.peer)
        else {
            return Err(if self.core.is_closed() {
                Error::Ended { verdict: Verdict::Cancelled }
            } else {
                Error::Silent { waited: Duration::from_micros(self.core.silence_us_max) }
            });
        };
        Ok(ReceiveReport {
            paths: std::mem::take(&mut self.paths),
            left_out: std::mem::take(&mut self.left_out),
            renamed: std::mem::take(&mut self.renamed),
            content_bytes: groups::content_bytes(offer.total_bytes).unwrap_or(0),
            resumed_bytes: self.writer.as_ref().map_or(0, |writer| writer.held.covered()),
            peer: match &self.meeting {
                Some(meeting) => meeting.known_as(peer),
                None => grebe_relay::canonical(peer),
            },
            took: Duration::from_micros(self.whole_us.saturating_sub(self.first_us)),
        })
    }

    fn progress(&self) -> ReceiveProgress {
        ReceiveProgress {
            received_bytes: self.core.received.covered(),
            total_bytes: self.offer.map_or(0, |offer| offer.total_bytes),
            rtt_us: self.core.rtt_us,
        }
    }

    /// Takes what may be the sender's; its newest packet shows where it is.
    fn take_packet(&mut self, now_us: u64, datagram: &mut [u8]) -> Heard {
        let datagram_bytes = datagram.len();
        let (number, plain, is_newest) = if let Some(session) = &mut self.session {
            let highest = self.core.packets().highest();
            let Ok((number, plain)) = session.open(self.core.packets(), datagram) else {
                return taken(&mut self.responder, datagram).map_or(Heard::Nothing, Heard::Question);
            };
            (number, plain, highest.is_none_or(|highest| number > highest))
        } else {
            let Some(responder) = &mut self.responder else { return Heard::Nothing };
            // A peer without the key gets no answer.
            if let Ok(reply) = responder.on_init(datagram) {
                return Heard::Question(reply.to_vec());
            }
            let Ok((session, number, plain)) = responder.on_sealed(datagram) else { return Heard::Nothing };
            self.session = Some(session);
            (number, plain, true)
        };
        if let Ok(frame) = Frame::decode(plain) {
            self.take_frame(now_us, number, datagram_bytes, &frame);
        }
        if is_newest { Heard::Peer } else { Heard::Nothing }
    }

    fn take_frame(&mut self, now_us: u64, number: u64, datagram_bytes: usize, frame: &Frame<'_>) {
        match self.core.on_packet(now_us, number, datagram_bytes, frame) {
            Arrived::Offer(offer) => {
                (self.offer, self.first_us) = (Some(offer), now_us);
                match Writer::start(&self.place, &offer) {
                    Ok(writer) => {
                        for range in writer.held.iter() {
                            self.core.hold(range);
                        }
                        self.writer = Some(writer);
                    }
                    Err(error) => self.fail(now_us, error),
                }
            }
            Arrived::Data { offset, payload } => {
                if let Some(writer) = &mut self.writer
                    && let Err(error) =
                        writer.put(offset, payload, |range| self.core.received.contains(range))
                {
                    self.fail(now_us, error);
                }
            }
            Arrived::Nothing => {}
        }
    }

    /// Passes what became of the writing on to the core.
    fn take_outcome(&mut self, now_us: u64) {
        let Some(writer) = &mut self.writer else { return };
        if let Some(spared) = writer.take_spared() {
            for range in spared.iter() {
                self.core.hold(range.clone());
                writer.held.insert(range);
            }
            if let Err(error) = writer.on_spared(|range| self.core.received.contains(range)) {
                return self.fail(now_us, error);
            }
        }
        self.core.backlog_bytes = writer.backlog_bytes();
        match writer.outcome() {
            None => {}
            Some(Ok(named)) => {
                (self.paths, self.left_out, self.renamed) = (named.paths, named.left_out, named.renamed);
                let is_whole = self.left_out.is_empty();
                self.core.conclude(now_us, if is_whole { Verdict::Whole } else { Verdict::Partial });
            }
            Some(Err(error)) => self.fail(now_us, error),
        }
    }

    fn fail(&mut self, now_us: u64, error: Error) {
        let verdict = match &error {
            Error::Cancelled => Verdict::Cancelled,
            Error::HashDiffers => Verdict::HashDiffers,
            Error::Exists { .. } => Verdict::Exists,
            Error::Declined | Error::Index { .. } => Verdict::Refused,
            _ => Verdict::CannotWrite,
        };
        self.core.conclude(now_us, verdict);
        self.failure = Some(error);
    }

    /// Sends the reports that are due and, until the offer arrives, that the receiver is ready.
    fn report(&mut self, now_us: u64) {
        let (Some(session), Some(peer)) = (&mut self.session, self.peer) else { return };
        let mut datagram = [0; REPORT_BYTES];
        let room = HEADER_BYTES..REPORT_BYTES - TAG_BYTES;
        // A report that waits is out of date: where TCP takes none, the next one has all.
        while self.tcp.as_ref().is_none_or(PacketStream::has_room) {
            let length = if !self.core.is_offered() && now_us >= self.next_ready_us {
                self.next_ready_us = now_us + READY_EVERY_US;
                Frame::Ready.encode(&mut datagram[room.clone()])
            } else {
                self.core.poll_report(now_us, &mut datagram[room.clone()])
            };
            let Some(length) = length else { break };
            let datagram = &mut datagram[..HEADER_BYTES + length + TAG_BYTES];
            if session.seal(self.number, datagram).is_ok() {
                match &mut self.tcp {
                    Some(tcp) => tcp.send(datagram),
                    // The next report makes up for one that is lost.
                    None => {
                        let _ = self.socket.send_to(datagram, peer);
                    }
                }
            }
            self.number += 1;
        }
        if let Some(tcp) = &mut self.tcp {
            tcp.flush();
        }
    }
}

/// A sender that goes by TCP sends more often, whatever it waits for.
const TCP_QUIET_US: u64 = 2_000_000;

/// How often a sender that is silent is called.
const CALL_EVERY_US: u64 = 1_000_000;

/// How far the sender may run ahead of the first missing byte, beside twice the bytes that arrive in a round trip.
const WINDOW_BYTES: u64 = 48 << 20;

/// One kernel buffer of coalesced datagrams.
const SLOT_BYTES: usize = 65_536;

/// Every path carries this.
const REPORT_BYTES: usize = 1_200;

/// Packets of a TCP connection that are taken before reports are sent.
const PACKETS_A_TURN: usize = 64;

/// How often the receiver looks who came by TCP and, while it receives by TCP, whether something came by UDP.
const LOOK_EVERY_US: u64 = 100_000;

/// Waits are whole milliseconds: a report need not be more punctual.
const WAIT_MS_MAX: u64 = 20;

/// Until the offer arrives.
const READY_EVERY_US: u64 = 100_000;
