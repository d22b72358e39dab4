use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_datagram::{Options, Sender as Datagrams};

use crate::io::layout::{self, HASH_BYTES};
use crate::io::meet::{self, Met, wait_readable};
use crate::io::reader::{FromFiles, Reader};
use crate::io::source::{ContentReader, Source};
use crate::io::tunnel::Tunnel;
use crate::io::{Cancel, Clock, Notice, SILENCE_US_MAX};
use crate::proto::handshake::{Role, Session};
use crate::proto::wire::{DATA_HEADER_BYTES, Frame, HEADER_BYTES, Offer, TAG_BYTES, Verdict, data_header};
use crate::{
    Arrivals, Error, Item, Mode, PhaseCost, Progress, Result, Sender, SenderCounters, SenderOptions, Ticket,
    Transmit,
};

/// How files are sent.
#[derive(Debug, Clone)]
pub struct SendOptions {
    /// How much of a shared path to take.
    pub mode: Mode,
    /// Bits a second on the wire, at most; `None`: what the path gives.
    pub limit_bits_per_s: Option<f64>,
    /// For how long an answer is waited for.
    pub answer_within: Duration,
    /// Stops the transfer.
    pub cancel: Cancel,
    /// Is told what a user may want to know before the end.
    pub notify: fn(Notice),
}

/// Waits for one receiver, with the ticket that lets it in.
#[derive(Debug)]
pub struct SendListener {
    datagrams: Datagrams,
    ticket: Ticket,
    tunnel: Option<Tunnel>,
}

/// A transfer that went well.
#[derive(Debug, Clone, PartialEq)]
pub struct SendReport {
    /// Bytes of all files.
    pub file_bytes: u64,
    /// Bytes of the stream that the receiver had from an earlier session.
    pub resumed_bytes: u64,
    /// Who received them.
    pub peer: SocketAddr,
    /// From the first packet to the receiver's last word.
    pub took: Duration,
    /// The handshake's part of it.
    pub handshake: Duration,
    /// What was sent, with every repeat.
    pub counters: SenderCounters,
    /// What each phase of the rate control has cost, in the order of [`Phase`](crate::Phase).
    pub phases: [PhaseCost; 5],
    /// Bytes of UDP payload the longest datagrams had in the end.
    pub datagram_bytes: usize,
    /// Where the transfer stood in the end.
    pub progress: Progress,
}

/// Sends files to who holds the other end of the ticket, and returns when the receiver has verified them.
///
/// `on_progress` is called ten times a second.
///
/// # Errors
/// [`Error::File`] where a file cannot be read; [`Error::NoAnswer`], [`Error::Silent`]; [`Error::Ended`] where the receiver
/// has another verdict than "whole"; [`Error::Cancelled`]; [`Error::Socket`].
pub fn send(
    source: &Arc<Source>,
    ticket: &Ticket,
    options: &SendOptions,
    on_progress: impl FnMut(&Progress),
) -> Result<SendReport> {
    let start = Instant::now();
    let datagrams = Datagrams::unconnected(meet::local_for(ticket)?, &Options::default())?;
    let socket = datagrams.try_clone_socket().map_err(|source| grebe_datagram::Error::Receive { source })?;
    let met = meet::ask(&socket, ticket, Role::Send, options.answer_within, &options.cancel, options.notify)?;
    run(source, Line { datagrams, socket, peer: met.peer }, met, start, options, on_progress)
}

impl SendListener {
    /// Listens at `address` (port 0: any) for at most `lifetime_s` seconds until a receiver comes. The ticket names `address`:
    /// where that is not how receivers reach it, put others into [`ticket_mut`](Self::ticket_mut).
    ///
    /// # Errors
    /// [`Error::Socket`] where the address cannot be bound; [`Error::Keys`] where the system has no random numbers.
    pub fn bind(address: SocketAddr, lifetime_s: u64) -> Result<Self> {
        let datagrams = Datagrams::unconnected(address, &Options::default())?;
        let bound = datagrams.local_addr()?;
        Ok(Self { datagrams, ticket: Ticket::new(bound, lifetime_s)?, tunnel: Tunnel::open(bound, bound) })
    }

    /// What a receiver needs to get in.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The ticket, to give it other addresses.
    pub fn ticket_mut(&mut self) -> &mut Ticket {
        &mut self.ticket
    }

    /// Waits for the receiver and sends it the files: see [`send`].
    ///
    /// # Errors
    /// As [`send`], but for no answer: [`Error::Expired`].
    pub fn send(
        self,
        source: &Arc<Source>,
        options: &SendOptions,
        on_progress: impl FnMut(&Progress),
    ) -> Result<SendReport> {
        // The tunnel ends with the transfer.
        let Self { datagrams, ticket, tunnel: _tunnel } = self;
        let socket =
            datagrams.try_clone_socket().map_err(|source| grebe_datagram::Error::Receive { source })?;
        let met = meet::answer(&socket, &ticket, Role::Receive, &options.cancel)?;
        run(source, Line { datagrams, socket, peer: met.peer }, met, Instant::now(), options, on_progress)
    }
}

fn run(
    source: &Arc<Source>,
    line: Line,
    met: Met,
    start: Instant,
    options: &SendOptions,
    on_progress: impl FnMut(&Progress),
) -> Result<SendReport> {
    let handshake = start.elapsed();
    let sender = Sender::new(source.stream_bytes(), line.sender_options(options, met.rtt));
    let reader = Reader::start(source.clone());
    let mut sending = Sending {
        line,
        session: met.session,
        sender,
        clock: Clock::start(),
        reader,
        groups: VecDeque::new(),
        hashes: VecDeque::new(),
        repairs: ContentReader::new(source.clone()),
        offer: Offer {
            total_bytes: source.stream_bytes(),
            index_bytes: source.index_bytes(),
            content: source.content(),
        },
        resumed_bytes: 0,
        available: 0,
        unread: None,
        heard: Arrivals::default(),
        slab: vec![0; SLAB_BYTES],
        runs: Vec::with_capacity(256),
    };
    sending.run(&options.cancel, on_progress)?;
    let now_us = sending.clock.now_us();
    Ok(SendReport {
        file_bytes: source.file_bytes(),
        resumed_bytes: sending.resumed_bytes,
        peer: sending.line.peer,
        took: start.elapsed(),
        handshake,
        counters: sending.sender.counters(),
        phases: sending.sender.phase_costs(now_us),
        datagram_bytes: sending.sender.datagram_bytes(),
        progress: sending.sender.progress(),
    })
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

/// A socket and who is at its other end.
struct Line {
    datagrams: Datagrams,
    socket: UdpSocket,
    peer: SocketAddr,
}

struct Sending {
    line: Line,
    session: Session,
    sender: Sender,
    clock: Clock,
    reader: Reader,
    /// What was read and not sent yet, with where it begins in the stream.
    groups: VecDeque<(u64, Vec<u8>)>,
    /// Hashes of groups that may have to be sent again, ascending.
    hashes: VecDeque<(u64, [u8; HASH_BYTES as usize])>,
    repairs: ContentReader,
    offer: Offer,
    resumed_bytes: u64,
    /// All of the stream below was read, or needs no reading.
    available: u64,
    /// What came while it was waited for.
    unread: Option<FromFiles>,
    heard: Arrivals,
    slab: Vec<u8>,
    /// Datagrams of one length in the slab: where they begin and end, and the length.
    runs: Vec<(usize, usize, usize)>,
}

impl Line {
    fn sender_options(&self, options: &SendOptions, rtt: Option<Duration>) -> SenderOptions {
        let route_bytes = route_payload_bytes(self.peer).unwrap_or(1_200);
        let probes = if set_dont_fragment(&self.socket, self.peer) {
            [1_372, 1_424, 1_472, route_bytes]
                .into_iter()
                .filter(|bytes| *bytes <= route_bytes)
                .collect::<Vec<_>>()
        } else {
            Vec::new()
        };
        let seed = u64::from(self.socket.local_addr().map_or(0, |local| local.port()))
            + u64::from(std::process::id());
        SenderOptions {
            mode: options.mode,
            limit_bits_per_s: options.limit_bits_per_s,
            rtt_us: rtt.map(|rtt| rtt.as_micros() as u64),
            datagram_bytes: route_bytes.min(1_200),
            probe_datagram_bytes: probes,
            seed,
        }
    }
}

impl Sending {
    fn run(&mut self, cancel: &Cancel, mut on_progress: impl FnMut(&Progress)) -> Result<()> {
        let mut next_progress_us = 0;
        loop {
            let now_us = self.clock.now_us();
            self.hear(now_us);
            if cancel.is_cancelled() {
                self.sender.cancel();
            }
            if let Err(error) = self.send(now_us) {
                // The receiver is told, and need not wait.
                self.sender.cancel();
                let _ = self.send(now_us);
                return Err(error);
            }
            if now_us >= next_progress_us || self.sender.is_done() {
                on_progress(&self.sender.progress());
                next_progress_us = now_us + 100_000;
            }
            if self.sender.is_done() {
                return match self.sender.verdict() {
                    Some(Verdict::Whole) | None => Ok(()),
                    Some(_) if cancel.is_cancelled() => Err(Error::Cancelled),
                    Some(verdict) => Err(Error::Ended { verdict }),
                };
            }
            if self.sender.silence_us(now_us) > SILENCE_US_MAX {
                return Err(Error::Silent { waited: Duration::from_micros(SILENCE_US_MAX) });
            }
            self.wait();
        }
    }

    fn wait(&mut self) {
        let now_us = self.clock.now_us();
        let wait_us = self.sender.next_time_us(now_us).saturating_sub(now_us).min(20_000);
        if wait_us == 0 {
            return;
        }
        if self.sender.is_waiting_for_source() {
            // What is read next is as urgent as what is heard.
            let time = Duration::from_micros(wait_us.min(SOURCE_WAIT_US));
            if let Some(read) = self.reader.wait(time) {
                self.unread = Some(read);
            }
            return;
        }
        wait_readable(&self.line.socket, Duration::from_micros(wait_us.max(WAIT_US_MIN)));
    }

    /// Takes what the receiver says.
    fn hear(&mut self, now_us: u64) {
        let mut datagram = [0; 2_048];
        for _ in 0..64 {
            let Ok((length, _)) = self.line.socket.recv_from(&mut datagram) else { return };
            let datagram = &mut datagram[..length];
            let expected = self.heard.highest().map_or(0, |highest| highest + 1);
            let Ok(number) = self.session.opener.number(datagram, expected) else { continue };
            if !self.heard.would_accept(number) {
                continue;
            }
            let Ok(plain) = self.session.opener.open(number, datagram) else { continue };
            self.heard.accept(number);
            match Frame::decode(plain) {
                Ok(Frame::Feedback(report)) => self.sender.on_feedback(now_us, &report),
                Ok(Frame::Outcome(verdict)) => self.sender.on_outcome(now_us, verdict),
                Ok(Frame::Held(held)) if self.resumed_bytes == 0 => {
                    self.sender.on_held(now_us, &held);
                    self.resumed_bytes = held.iter().map(|range| range.end - range.start).sum();
                    self.reader.skip(self.sender.confirmed().clone());
                }
                _ => {}
            }
        }
    }

    /// Takes what was read meanwhile, reads on where the next packet needs it, and gives back what was sent.
    fn read(&mut self) -> Result<()> {
        loop {
            let urgent = self.available < self.sender.fresh_from() + SLOT_BYTES as u64;
            let read = self.unread.take().or_else(|| self.reader.take(urgent));
            let end = match read {
                Some(FromFiles::Group(start, bytes)) => {
                    let end = start + bytes.len() as u64;
                    if let Some(hash) = bytes.last_chunk() {
                        self.hashes.push_back((layout::group_of(start), *hash));
                    }
                    self.groups.push_back((start, bytes));
                    end
                }
                Some(FromFiles::UpTo(end)) => end,
                Some(FromFiles::Failed(error)) => return Err(error),
                None => break,
            };
            self.available = end;
            self.sender.make_available(end);
        }
        let sent = self.sender.fresh_from();
        while let Some((_, bytes)) =
            self.groups.pop_front_if(|(start, bytes)| *start + bytes.len() as u64 <= sent)
        {
            self.reader.give_back(bytes);
        }
        let needed = layout::group_of(self.sender.needed_from());
        while self.hashes.pop_front_if(|(group, _)| *group < needed).is_some() {}
        Ok(())
    }

    /// Seals what is due into the slab and hands it to the kernel in as few calls as it takes.
    fn send(&mut self, now_us: u64) -> Result<()> {
        let mut at = 0;
        self.runs.clear();
        while at + SLOT_BYTES <= SLAB_BYTES {
            if self.sender.verdict().is_none() {
                self.read()?;
            }
            let Some(transmit) = self.sender.poll_transmit(now_us) else { break };
            let length = self.seal(&transmit, at)?;
            match self.runs.last_mut() {
                Some((_, end, segment)) if *segment == length => *end += length,
                _ => self.runs.push((at, at + length, length)),
            }
            at += length;
        }
        if self.runs.is_empty() {
            return Ok(());
        }
        let mut batch = self.line.datagrams.batch();
        for (from, to, segment) in &self.runs {
            // What the kernel refuses is as good as lost: the core sends it again, or gives up after a long silence.
            let _ = batch.push_run_to(self.line.peer, &self.slab[*from..*to], *segment);
        }
        let _ = batch.flush();
        Ok(())
    }

    fn seal(&mut self, transmit: &Transmit, at: usize) -> Result<usize> {
        let stamp = transmit.stamp;
        let frame_bytes = match transmit.item {
            Item::Data { offset, len } => {
                let payload_at = at + HEADER_BYTES + DATA_HEADER_BYTES;
                self.slab[at + HEADER_BYTES..payload_at].copy_from_slice(&data_header(stamp, offset));
                self.fill(offset, payload_at..payload_at + len as usize)?;
                DATA_HEADER_BYTES + len as usize
            }
            item => {
                let frame = match item {
                    Item::Offer => Frame::Offer { stamp, offer: self.offer },
                    Item::Probe { datagram_bytes } => {
                        let around = HEADER_BYTES + TAG_BYTES + PROBE_HEAD_BYTES;
                        Frame::Probe { stamp, padding: (datagram_bytes as usize).saturating_sub(around) }
                    }
                    _ => Frame::Close,
                };
                let room = &mut self.slab[at + HEADER_BYTES..at + SLOT_BYTES - TAG_BYTES];
                frame.encode(room).ok_or(Error::Malformed { what: "a frame longer than a datagram" })?
            }
        };
        let length = HEADER_BYTES + frame_bytes + TAG_BYTES;
        self.session.sealer.seal(transmit.number, &mut self.slab[at..at + length])?;
        Ok(length)
    }

    /// Puts bytes of the stream into the slab: from the groups in hand, or from the disk where they were sent before.
    fn fill(&mut self, offset: u64, place: Range<usize>) -> Result<()> {
        let mut at = offset;
        let mut place = &mut self.slab[place];
        while !place.is_empty() {
            let group = layout::group_of(at);
            let range = layout::group_range(group, self.offer.total_bytes);
            let take = place.len().min((range.end - at) as usize);
            let (head, rest) = place.split_at_mut(take);
            match self.groups.iter().find(|(start, _)| *start == range.start) {
                Some((start, bytes)) => {
                    let from = (at - start) as usize;
                    head.copy_from_slice(&bytes[from..from + take]);
                }
                None => {
                    let hash = self.hashes.binary_search_by_key(&group, |(group, _)| *group);
                    let hash = hash.map_or(&[0; HASH_BYTES as usize], |at| &self.hashes[at].1);
                    read_again(&mut self.repairs, head, at, hash, self.offer.total_bytes)?;
                }
            }
            (at, place) = (at + take as u64, rest);
        }
        Ok(())
    }
}

/// Reads a part of one group from the disk again. A file that changed meanwhile no longer fits its hash, and the receiver
/// sees that.
fn read_again(
    files: &mut ContentReader,
    place: &mut [u8],
    at: u64,
    hash: &[u8],
    stream_bytes: u64,
) -> Result<()> {
    let group = layout::group_of(at);
    let content = layout::content_range(group, stream_bytes);
    let within = at - layout::group_range(group, stream_bytes).start;
    let content_left = (content.end - content.start).saturating_sub(within);
    let (head, tail) = place.split_at_mut(place.len().min(content_left as usize));
    if !head.is_empty() {
        files.read_exact_at(head, content.start + within)?;
    }
    if !tail.is_empty() {
        let from = (within + head.len() as u64 - (content.end - content.start)) as usize;
        tail.copy_from_slice(&hash[from..from + tail.len()]);
    }
    Ok(())
}

/// How long the reader alone is waited for.
const SOURCE_WAIT_US: u64 = 500;

/// Room for the longest datagram.
const SLOT_BYTES: usize = 65_536;

/// What is sealed at once still lies in the core's cache when the kernel copies it.
const SLAB_BYTES: usize = 4 * SLOT_BYTES;

/// Kind and stamp of a probe.
const PROBE_HEAD_BYTES: usize = 6;

/// Shorter sleeps cost more than they bring: the schedule makes up for what a sleep is too long.
const WAIT_US_MIN: u64 = 100;

/// Payload of one packet by what the route says now.
fn route_payload_bytes(peer: SocketAddr) -> Option<usize> {
    Datagrams::connect(peer, &Options { send_buffer_bytes: 4_096, ..Options::default() })
        .ok()?
        .path_payload_bytes()
}

/// Datagrams that are too long for the path are dropped on it and not cut into fragments. `false` where that cannot be had.
#[cfg(target_os = "linux")]
fn set_dont_fragment(socket: &UdpSocket, peer: SocketAddr) -> bool {
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };
    if peer.is_ipv4() {
        set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE).is_ok()
    } else {
        set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
fn set_dont_fragment(_: &UdpSocket, _: SocketAddr) -> bool {
    false
}
