use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grebe_datagram::{Options, Receiver as Datagrams};

use crate::handshake::{Responder, Role, Session};
use crate::io::writer::Writer;
use crate::io::{Clock, SILENCE_US_MAX};
use crate::wire::{Frame, HEADER_BYTES, TAG_BYTES, Verdict};
use crate::{Arrived, Error, Key, Receiver, Result, Ticket};

/// A socket that waits for one sender, and the ticket that lets it in.
#[derive(Debug)]
pub struct Listener {
    datagrams: Datagrams<Vec<u8>>,
    ticket: Ticket,
}

/// A file that came whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// From the sender's first packet to the last byte on disk, verified.
    pub took: Duration,
}

impl Listener {
    /// Listens at `address` (port 0: any) for at most `lifetime_s` seconds until a sender comes. The ticket names `address`:
    /// where that is not how senders reach it, put other addresses into a copy of the ticket.
    ///
    /// # Errors
    /// [`Error::Socket`] where the address cannot be bound; [`Error::Keys`] where the system has no random numbers.
    pub fn bind(address: SocketAddr, lifetime_s: u64) -> Result<Self> {
        // Small naps: the sender's rate control sees how late a packet is taken.
        let datagrams = Datagrams::bind(address, &Options::default())?;
        let expires_unix_s = unix_s() + lifetime_s;
        let ticket = Ticket { addresses: vec![datagrams.local_addr()?], expires_unix_s, key: Key::random()? };
        Ok(Self { datagrams, ticket })
    }

    /// What a sender needs to get in.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Waits for the sender and takes its file into `directory`. Until it is whole and verified its name ends in `.part`.
    ///
    /// `on_progress` is called ten times a second with the bytes that came and those of the file.
    ///
    /// # Errors
    /// [`Error::Expired`] where no sender came in time; [`Error::File`] where the file cannot be written or its name is
    /// taken; [`Error::Silent`]; [`Error::HashDiffers`]; [`Error::Socket`].
    pub fn receive_into(self, directory: &Path, on_progress: impl FnMut(u64, u64)) -> Result<Received> {
        let reply = self.datagrams.try_clone_socket();
        let reply = reply.map_err(|source| grebe_datagram::Error::Receive { source })?;
        let mut receiving = Receiving {
            responder: Some(Responder::new(self.ticket.key.clone(), Role::Send)),
            peer: None,
            reply,
            session: None,
            core: Receiver::new(WINDOW_BYTES),
            number: 0,
            directory,
            writer: None,
            total_bytes: 0,
            finishing: false,
            failure: None,
            first_us: 0,
        };
        receiving.run(self.datagrams, self.ticket.expires_unix_s, on_progress)
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
    directory: &'a Path,
    writer: Option<Writer>,
    total_bytes: u64,
    finishing: bool,
    failure: Option<Error>,
    first_us: u64,
}

impl Receiving<'_> {
    fn run(
        &mut self,
        mut datagrams: Datagrams<Vec<u8>>,
        expires_unix_s: u64,
        mut on_progress: impl FnMut(u64, u64),
    ) -> Result<Received> {
        let clock = Clock::start();
        let mut next_progress_us = 0;
        let mut whole_us = None;
        loop {
            let now_us = clock.now_us();
            if self.session.is_none() && unix_s() >= expires_unix_s {
                return Err(Error::Expired);
            }
            let wait_us = self.core.next_time_us().saturating_sub(now_us).clamp(200, WAIT_US_MAX);
            datagrams.set_timeout(Duration::from_micros(wait_us));
            let mut now = None;
            datagrams.recv(
                || Some(vec![0; SLOT_BYTES]),
                |mut slot, received| {
                    // Once a batch: what came together has one time.
                    let now_us = *now.get_or_insert_with(|| clock.now_us());
                    for range in received.segments() {
                        self.take(now_us, &mut slot[range], received.from);
                    }
                    Some(slot)
                },
            )?;
            let now_us = clock.now_us();
            self.end_if_complete(now_us);
            if self.core.verdict() == Some(Verdict::Whole) && whole_us.is_none() {
                whole_us = Some(now_us);
            }
            self.report(now_us);
            if now_us >= next_progress_us && self.session.is_some() {
                on_progress(self.core.received_bytes(), self.total_bytes);
                next_progress_us = now_us + 100_000;
            }
            if self.session.is_some() && self.is_over(now_us) {
                break;
            }
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let (Some(writer), Some(whole_us)) = (&self.writer, whole_us) else {
            return Err(Error::Silent { waited: Duration::from_micros(SILENCE_US_MAX) });
        };
        on_progress(self.total_bytes, self.total_bytes);
        let took = Duration::from_micros(whole_us.saturating_sub(self.first_us));
        Ok(Received { path: writer.path().to_path_buf(), bytes: self.total_bytes, took })
    }

    /// Whether the sender knows how it ended, or is gone.
    fn is_over(&self, now_us: u64) -> bool {
        let linger_us = 4 * self.core.rtt_us().unwrap_or(0) + 1_000_000;
        let silence_us = self.core.silence_us(now_us);
        match self.core.verdict() {
            Some(_) => self.core.is_closed() || silence_us > linger_us,
            None => silence_us > SILENCE_US_MAX,
        }
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
            (self.responder, self.peer, self.first_us) = (None, Some(from), now_us);
            let Ok(frame) = Frame::decode(plain) else { return };
            return self.understand(now_us, number, datagram_bytes, &frame);
        }
        let Some(session) = &mut self.session else { return };
        let Ok(number) = session.opener.number(datagram, self.core.expected_number()) else { return };
        if !self.core.is_new(number) {
            return;
        }
        let Ok(plain) = session.opener.open(number, datagram) else { return };
        let Ok(frame) = Frame::decode(plain) else { return };
        self.understand(now_us, number, datagram_bytes, &frame);
    }

    fn understand(&mut self, now_us: u64, number: u64, datagram_bytes: usize, frame: &Frame<'_>) {
        match self.core.on_packet(now_us, number, datagram_bytes, frame) {
            Arrived::Offer { total_bytes, name } => {
                self.total_bytes = total_bytes;
                match Writer::create(self.directory, name, total_bytes) {
                    Ok(writer) => self.writer = Some(writer),
                    Err(error) => {
                        self.failure = Some(error);
                        self.core.conclude(now_us, Verdict::Refused);
                    }
                }
            }
            Arrived::Data { offset, payload } => {
                if let Some(writer) = &mut self.writer {
                    writer.write(offset, payload);
                }
            }
            Arrived::Nothing => {}
        }
    }

    fn end_if_complete(&mut self, now_us: u64) {
        let Some(writer) = &mut self.writer else { return };
        if let Some(hash) = self.core.hash().filter(|_| self.core.is_complete() && !self.finishing) {
            self.finishing = true;
            writer.finish(hash);
        }
        match writer.outcome() {
            None => {}
            Some(Ok(verdict)) => {
                if verdict != Verdict::Whole {
                    self.failure = Some(Error::HashDiffers { path: writer.path().to_path_buf() });
                }
                self.core.conclude(now_us, verdict);
            }
            Some(Err(error)) => {
                self.failure = Some(error);
                self.core.conclude(now_us, Verdict::CannotWrite);
            }
        }
    }

    fn report(&mut self, now_us: u64) {
        let (Some(session), Some(peer)) = (&mut self.session, self.peer) else { return };
        let mut datagram = [0; REPORT_BYTES];
        let room = HEADER_BYTES..REPORT_BYTES - TAG_BYTES;
        while let Some(length) = self.core.poll_report(now_us, &mut datagram[room.clone()]) {
            let datagram = &mut datagram[..HEADER_BYTES + length + TAG_BYTES];
            if session.sealer.seal(self.number, datagram).is_ok() {
                // A report that is lost is made good by the next.
                let _ = self.reply.send_to(datagram, peer);
            }
            self.number += 1;
        }
    }
}

/// How far the sender may run ahead of the first missing byte, beside twice what a round trip brings.
const WINDOW_BYTES: u64 = 48 << 20;

/// One kernel buffer of coalesced datagrams.
const SLOT_BYTES: usize = 65_536;

/// Every path carries this.
const REPORT_BYTES: usize = 1_200;

const WAIT_US_MAX: u64 = 20_000;

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
