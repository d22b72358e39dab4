use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use grebe_datagram::{Options, Receiver as Datagrams};

use crate::io::tunnel::Tunnel;
use crate::io::writer::Writer;
use crate::io::{Cancel, Clock, Notice, Reading, SILENCE_US_MAX, meet, unix_s};
use crate::proto::handshake::{Responder, Role, Session};
use crate::proto::wire::{Frame, HEADER_BYTES, Offer, TAG_BYTES, Verdict};
use crate::{Arrived, Error, Receiver, Result, Ticket};

/// Waits for one sender, with the ticket that lets it in.
#[derive(Debug)]
pub struct ReceiveListener {
    datagrams: Datagrams<Vec<u8>>,
    ticket: Ticket,
    tunnel: Option<Tunnel>,
}

/// How files are received.
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// Files that are there are replaced; directories never are.
    pub overwrite: bool,
    /// For how long an answer is waited for.
    pub answer_within: Duration,
    /// Stops the transfer.
    pub cancel: Cancel,
    /// Is told what a user may want to know before the end.
    pub notify: fn(Notice),
}

/// Where a transfer stands at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// Bytes of the stream that are there.
    pub received_bytes: u64,
    /// All of them; 0: not known yet.
    pub total_bytes: u64,
    /// The sender's round trip, once it is known.
    pub rtt_us: Option<u64>,
}

/// Files that came whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The files and directories that the sender named, where they are now.
    pub paths: Vec<PathBuf>,
    /// Bytes of all files, with the list of them.
    pub content_bytes: u64,
    /// Bytes of the stream that were there from an earlier session.
    pub resumed_bytes: u64,
    /// Who sent them.
    pub peer: SocketAddr,
    /// From the sender's first packet to the last byte written and verified.
    pub took: Duration,
}

impl ReceiveListener {
    /// Listens at `address` (port 0: any) for at most `lifetime_s` seconds until a sender comes. The ticket names `address`:
    /// where that is not how senders reach it, put others into [`ticket_mut`](Self::ticket_mut).
    ///
    /// # Errors
    /// [`Error::Socket`] where the address cannot be bound; [`Error::Keys`] where the system has no random numbers.
    pub fn bind(address: SocketAddr, lifetime_s: u64) -> Result<Self> {
        let datagrams = Datagrams::bind(address, &socket_options())?;
        let bound = datagrams.local_addr()?;
        Ok(Self { datagrams, ticket: Ticket::new(bound, lifetime_s)?, tunnel: Tunnel::open(bound, bound) })
    }

    /// What a sender needs to get in.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The ticket, to give it other addresses.
    pub fn ticket_mut(&mut self) -> &mut Ticket {
        &mut self.ticket
    }

    /// Waits for the sender and takes its files into `directory`. Until all are whole and verified their names end in `.part`.
    ///
    /// `on_progress` is called ten times a second once the sender is there.
    ///
    /// # Errors
    /// [`Error::Expired`] where nobody came in time; [`Error::File`], [`Error::Exists`], [`Error::NoRoom`], [`Error::Index`]
    /// where the files cannot be made; [`Error::Silent`]; [`Error::HashDiffers`]; [`Error::Ended`]; [`Error::Cancelled`];
    /// [`Error::Socket`].
    pub fn receive(
        self,
        directory: &Path,
        options: &ReceiveOptions,
        on_progress: impl FnMut(&Arrival),
    ) -> Result<Received> {
        // The tunnel ends with the transfer.
        let Self { datagrams, ticket, tunnel: _tunnel } = self;
        let mut receiving = Receiving::new(&datagrams, directory, options.overwrite)?;
        receiving.responder = Some(Responder::new(ticket.key.clone(), Role::Send));
        receiving.run(datagrams, ticket.expires_unix_s, &options.cancel, on_progress)
    }
}

/// Takes the files of who made the ticket into `directory`: see [`ReceiveListener::receive`].
///
/// # Errors
/// As [`ReceiveListener::receive`], and [`Error::NoAnswer`].
pub fn receive(
    ticket: &Ticket,
    directory: &Path,
    options: &ReceiveOptions,
    on_progress: impl FnMut(&Arrival),
) -> Result<Received> {
    let datagrams = Datagrams::bind(meet::local_for(ticket)?, &socket_options())?;
    let mut receiving = Receiving::new(&datagrams, directory, options.overwrite)?;
    let met = meet::ask(
        &receiving.reply,
        ticket,
        Role::Receive,
        options.answer_within,
        &options.cancel,
        options.notify,
    )?;
    (receiving.session, receiving.peer) = (Some(met.session), Some(met.peer));
    receiving.core.heard(0);
    receiving.run(datagrams, u64::MAX, &options.cancel, on_progress)
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        Self {
            overwrite: false,
            answer_within: Duration::from_secs(10),
            cancel: Cancel::default(),
            notify: |_| {},
        }
    }
}

struct Receiving<'a> {
    /// Until the ticket is spent.
    responder: Option<Responder>,
    peer: Option<SocketAddr>,
    reply: UdpSocket,
    session: Option<Session>,
    core: Receiver,
    /// Of the next packet that goes back.
    number: u64,
    next_ready_us: u64,
    directory: &'a Path,
    overwrite: bool,
    writer: Option<Writer>,
    offer: Option<Offer>,
    paths: Vec<PathBuf>,
    failure: Option<Error>,
    first_us: u64,
    /// When the last datagram came.
    arrived_us: u64,
}

impl<'a> Receiving<'a> {
    fn new(datagrams: &Datagrams<Vec<u8>>, directory: &'a Path, overwrite: bool) -> Result<Self> {
        let reply = datagrams.try_clone_socket();
        Ok(Self {
            responder: None,
            peer: None,
            reply: reply.map_err(|source| grebe_datagram::Error::Receive { source })?,
            session: None,
            core: Receiver::new(WINDOW_BYTES),
            number: 0,
            next_ready_us: 0,
            directory,
            overwrite,
            writer: None,
            offer: None,
            paths: Vec::new(),
            failure: None,
            first_us: 0,
            arrived_us: 0,
        })
    }

    fn run(
        &mut self,
        mut datagrams: Datagrams<Vec<u8>>,
        expires_unix_s: u64,
        cancel: &Cancel,
        mut on_progress: impl FnMut(&Arrival),
    ) -> Result<Received> {
        let clock = Clock::start();
        let mut next_progress_us = 0;
        let mut whole_us = 0;
        loop {
            let now_us = clock.now_us();
            if self.session.is_none() && unix_s() >= expires_unix_s {
                return Err(Error::Expired);
            }
            if cancel.is_cancelled() && self.failure.is_none() {
                if self.session.is_none() || self.offer.is_none() {
                    return Err(Error::Cancelled);
                }
                self.fail(now_us, Error::Cancelled);
            }
            let wait_us = self.core.next_time_us().saturating_sub(now_us).clamp(200, WAIT_US_MAX);
            datagrams.set_timeout(Duration::from_micros(wait_us));
            let mut now = None;
            datagrams.recv(
                || Some(vec![0; SLOT_BYTES]),
                |mut slot, received| {
                    let now = now.get_or_insert_with(|| clock.reading());
                    let arrived_us = self.arrived_us(now, received.timestamp);
                    for range in received.segments() {
                        self.take(arrived_us, &mut slot[range], received.from);
                    }
                    Some(slot)
                },
            )?;
            let now_us = clock.now_us();
            self.look_at_writer(now_us);
            if self.core.verdict() == Some(Verdict::Whole) && whole_us == 0 {
                whole_us = now_us;
            }
            self.report(now_us);
            if now_us >= next_progress_us && self.offer.is_some() {
                on_progress(&self.arrival());
                next_progress_us = now_us + 100_000;
            }
            if self.session.is_some() && self.is_over(now_us) {
                break;
            }
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let (Some(Verdict::Whole), Some(offer), Some(peer)) = (self.core.verdict(), self.offer, self.peer)
        else {
            return Err(if self.core.is_closed() {
                Error::Ended { verdict: Verdict::Cancelled }
            } else {
                Error::Silent { waited: Duration::from_micros(SILENCE_US_MAX) }
            });
        };
        on_progress(&self.arrival());
        Ok(Received {
            paths: std::mem::take(&mut self.paths),
            content_bytes: crate::io::layout::content_bytes(offer.total_bytes).unwrap_or(0),
            resumed_bytes: self.writer.as_ref().map_or(0, |writer| writer.held().covered()),
            peer,
            took: Duration::from_micros(whole_us.saturating_sub(self.first_us)),
        })
    }

    fn arrival(&self) -> Arrival {
        Arrival {
            received_bytes: self.core.received_bytes(),
            total_bytes: self.offer.map_or(0, |offer| offer.total_bytes),
            rtt_us: self.core.rtt_us(),
        }
    }

    /// Whether the sender knows how it ended, or is gone.
    fn is_over(&self, now_us: u64) -> bool {
        let linger_us = 4 * self.core.rtt_us().unwrap_or(0) + 1_000_000;
        let silence_us = self.core.silence_us(now_us);
        match self.core.verdict() {
            Some(_) => self.core.is_closed() || silence_us > linger_us,
            None => self.core.is_closed() || silence_us > SILENCE_US_MAX,
        }
    }

    /// When a datagram came, by the kernel where it says so: how far apart packets are tells the path's rate, and several of
    /// them may have waited for this thread. The system's clock may be set at any time; this one never goes back.
    fn arrived_us(&mut self, now: &Reading, stamp: Option<Duration>) -> u64 {
        let arrived_us = stamp.map_or(now.us, |stamp| now.us_at(stamp));
        self.arrived_us = arrived_us.clamp(self.arrived_us.min(now.us), now.us);
        self.arrived_us
    }

    fn take(&mut self, now_us: u64, datagram: &mut [u8], from: SocketAddr) {
        let datagram_bytes = datagram.len();
        if let Some(responder) = &mut self.responder {
            // A stranger gets no answer.
            if let Ok(reply) = responder.on_init(datagram) {
                let _ = self.reply.send_to(&reply, from);
                return;
            }
            let Ok((session, number, plain)) = responder.on_sealed(datagram) else { return };
            self.session = Some(session);
            (self.responder, self.peer) = (None, Some(from));
            let Ok(frame) = Frame::decode(plain) else { return };
            return self.understand(now_us, number, datagram_bytes, &frame);
        }
        let Some(session) = &mut self.session else { return };
        let expected = self.core.expected_number();
        let Ok(number) = session.opener.number(datagram, expected) else { return };
        if !self.core.is_new(number) {
            return;
        }
        let Ok(plain) = session.opener.open(number, datagram) else { return };
        if number >= expected {
            // The newest packet says where the sender is: behind a NAT that may change. All it gets there is reports.
            self.peer = Some(from);
        }
        let Ok(frame) = Frame::decode(plain) else { return };
        self.understand(now_us, number, datagram_bytes, &frame);
    }

    fn understand(&mut self, now_us: u64, number: u64, datagram_bytes: usize, frame: &Frame<'_>) {
        match self.core.on_packet(now_us, number, datagram_bytes, frame) {
            Arrived::Offer(offer) => {
                (self.offer, self.first_us) = (Some(offer), now_us);
                match Writer::start(self.directory, &offer, self.overwrite) {
                    Ok(writer) => {
                        for range in writer.held().iter() {
                            self.core.hold(range);
                        }
                        self.writer = Some(writer);
                    }
                    Err(error) => self.fail(now_us, error),
                }
            }
            Arrived::Data { offset, payload } => {
                if let Some(writer) = &mut self.writer
                    && let Err(error) = writer.put(offset, payload, |range| self.core.has(range))
                {
                    self.fail(now_us, error);
                }
            }
            Arrived::Nothing => {}
        }
    }

    fn look_at_writer(&mut self, now_us: u64) {
        let Some(writer) = &self.writer else { return };
        self.core.set_backlog(writer.backlog_bytes());
        match writer.outcome() {
            None => {}
            Some(Ok(paths)) => {
                self.paths = paths;
                self.core.conclude(now_us, Verdict::Whole);
            }
            Some(Err(error)) => self.fail(now_us, error),
        }
    }

    fn fail(&mut self, now_us: u64, error: Error) {
        let verdict = match &error {
            Error::Cancelled => Verdict::Cancelled,
            Error::HashDiffers => Verdict::HashDiffers,
            Error::Exists { .. } | Error::Index { .. } => Verdict::Refused,
            _ => Verdict::CannotWrite,
        };
        self.core.conclude(now_us, verdict);
        self.failure = Some(error);
    }

    /// Says what came; and before anything did, that we are here.
    fn report(&mut self, now_us: u64) {
        let (Some(session), Some(peer)) = (&mut self.session, self.peer) else { return };
        let mut datagram = [0; REPORT_BYTES];
        let room = HEADER_BYTES..REPORT_BYTES - TAG_BYTES;
        loop {
            let length = if !self.core.is_offered() && now_us >= self.next_ready_us {
                self.next_ready_us = now_us + READY_EVERY_US;
                Frame::Ready.encode(&mut datagram[room.clone()])
            } else {
                self.core.poll_report(now_us, &mut datagram[room.clone()])
            };
            let Some(length) = length else { return };
            let datagram = &mut datagram[..HEADER_BYTES + length + TAG_BYTES];
            if session.sealer.seal(self.number, datagram).is_ok() {
                // A report that is lost is made good by the next.
                let _ = self.reply.send_to(datagram, peer);
            }
            self.number += 1;
        }
    }
}

/// What is received at once still lies in the core's cache when it is opened, checked and written.
fn socket_options() -> Options {
    Options { slots: 4, timestamps: true, ..Options::default() }
}

/// How far the sender may run ahead of the first missing byte, beside twice what a round trip brings.
const WINDOW_BYTES: u64 = 48 << 20;

/// One kernel buffer of coalesced datagrams.
const SLOT_BYTES: usize = 65_536;

/// Every path carries this.
const REPORT_BYTES: usize = 1_200;

const WAIT_US_MAX: u64 = 20_000;

/// Until the offer comes.
const READY_EVERY_US: u64 = 100_000;
