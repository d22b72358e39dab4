use std::collections::VecDeque;
use std::fs::File;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use grebe_datagram::{Options, Sender as Datagrams};

use crate::handshake::{Initiator, REPLY_BYTES, Role, Session};
use crate::io::reader::{FromFile, Reader};
use crate::io::writer::read_exact_at;
use crate::io::{Clock, SILENCE_US_MAX};
use crate::wire::{DATA_HEADER_BYTES, Frame, HEADER_BYTES, TAG_BYTES, Verdict, data_header};
use crate::{
    Arrivals, Error, Item, Mode, PhaseCost, Progress, Result, Sender, SenderCounters, SenderOptions, Ticket,
    Transmit,
};

/// How a file is sent.
#[derive(Debug, Clone)]
pub struct SendOptions {
    /// How much of a shared path to take.
    pub mode: Mode,
    /// Bits a second on the wire, at most; `None`: what the path gives.
    pub limit_bits_per_s: Option<f64>,
    /// For how long an answer is waited for.
    pub answer_within: Duration,
}

/// A transfer that went well.
#[derive(Debug, Clone, PartialEq)]
pub struct SendReport {
    /// Bytes of the file.
    pub bytes: u64,
    /// From the first packet to the receiver's last word.
    pub took: Duration,
    /// The handshake's part of it.
    pub handshake: Duration,
    /// What was sent, with every repeat.
    pub counters: SenderCounters,
    /// What each phase of the rate control has cost, in the order of [`Phase`](crate::Phase).
    pub phases: [PhaseCost; 5],
    /// Bytes of UDP payload a datagram had in the end.
    pub datagram_bytes: usize,
    /// Where the transfer stood in the end.
    pub progress: Progress,
}

/// Sends a file to who holds the other end of the ticket, and returns when the receiver has verified it.
///
/// `on_progress` is called ten times a second.
///
/// # Errors
/// [`Error::File`] where the file cannot be read; [`Error::NoAnswer`], [`Error::Silent`]; [`Error::Ended`] where the receiver
/// has another verdict than "whole"; [`Error::Socket`].
pub fn send_file(
    path: &Path,
    ticket: &Ticket,
    options: &SendOptions,
    on_progress: impl FnMut(Progress),
) -> Result<SendReport> {
    let failed = |action| move |source| Error::File { action, path: path.to_path_buf(), source };
    let file = File::open(path).map_err(failed("open"))?;
    let meta = file.metadata().map_err(failed("look at"))?;
    if !meta.is_file() {
        return Err(failed("send")(ErrorKind::InvalidInput.into()));
    }
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| failed("send")(ErrorKind::InvalidInput.into()))?;
    let repairs = file.try_clone().map_err(failed("open again"))?;
    let total_bytes = meta.len();

    let start = Instant::now();
    let (line, session, rtt) = Line::connect(ticket, options.answer_within)?;
    let handshake = start.elapsed();
    let sender = Sender::new(total_bytes, line.sender_options(options, rtt));
    let reader = Reader::start(file, path, total_bytes)?;
    let mut sending = Sending {
        line,
        session,
        sender,
        clock: Clock::start(),
        reader,
        chunks: VecDeque::new(),
        chunks_end: 0,
        hash: None,
        repairs,
        path,
        name,
        total_bytes,
        heard: Arrivals::default(),
        slab: vec![0; SLAB_BYTES],
        runs: Vec::with_capacity(256),
    };
    sending.run(on_progress)?;
    let now_us = sending.clock.now_us();
    Ok(SendReport {
        bytes: total_bytes,
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
        Self { mode: Mode::Fair, limit_bits_per_s: None, answer_within: Duration::from_secs(10) }
    }
}

/// A socket and who is at its other end.
struct Line {
    datagrams: Datagrams,
    socket: UdpSocket,
    peer: SocketAddr,
}

struct Sending<'a> {
    line: Line,
    session: Session,
    sender: Sender,
    clock: Clock,
    reader: Reader,
    /// What was read and not sent yet, with where it begins.
    chunks: VecDeque<(u64, Vec<u8>)>,
    chunks_end: u64,
    hash: Option<[u8; 32]>,
    repairs: File,
    path: &'a Path,
    name: &'a str,
    total_bytes: u64,
    heard: Arrivals,
    slab: Vec<u8>,
    /// Datagrams of one length in the slab: where they begin and end, and the length.
    runs: Vec<(usize, usize, usize)>,
}

impl Line {
    /// Asks all addresses of the ticket; who answers first is the peer.
    fn connect(ticket: &Ticket, within: Duration) -> Result<(Self, Session, Option<Duration>)> {
        let mut initiator = Initiator::new(&ticket.key, Role::Send)?;
        let first = *ticket.addresses.first().ok_or(Error::Ticket { what: "it has no address" })?;
        // One socket speaks one family: the first address says which.
        let local: SocketAddr = if first.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let datagrams = Datagrams::unconnected(local, &Options::default())?;
        let socket =
            datagrams.try_clone_socket().map_err(|source| grebe_datagram::Error::Receive { source })?;
        let start = Instant::now();
        let (mut asked, mut next) = (0_u32, start);
        loop {
            let now = Instant::now();
            if now - start > within {
                return Err(Error::NoAnswer { peer: first, waited: within });
            }
            if now >= next {
                for address in ticket.addresses.iter().filter(|address| address.is_ipv4() == first.is_ipv4())
                {
                    // An address that cannot be reached is one that does not answer.
                    let _ = socket.send_to(initiator.datagram(), address);
                }
                asked += 1;
                next = now + ASK_EVERY * asked.min(4);
            }
            wait_readable(&socket, (next - now).min(Duration::from_millis(50)));
            let mut reply = [0; REPLY_BYTES + 1];
            while let Ok((length, peer)) = socket.recv_from(&mut reply) {
                if let Ok(session) = initiator.on_reply(&reply[..length]) {
                    // Which of several questions was answered is not known.
                    let rtt = (asked == 1).then(|| start.elapsed());
                    return Ok((Self { datagrams, socket, peer }, session, rtt));
                }
            }
        }
    }

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

impl Sending<'_> {
    fn run(&mut self, mut on_progress: impl FnMut(Progress)) -> Result<()> {
        let mut next_progress_us = 0;
        loop {
            let now_us = self.clock.now_us();
            self.hear(now_us);
            self.read()?;
            self.send(now_us)?;
            if now_us >= next_progress_us {
                on_progress(self.sender.progress());
                next_progress_us = now_us + 100_000;
            }
            if self.sender.is_done() {
                on_progress(self.sender.progress());
                return match self.sender.verdict() {
                    Some(Verdict::Whole) | None => Ok(()),
                    Some(verdict) => Err(Error::Ended { verdict }),
                };
            }
            if self.sender.silence_us(now_us) > SILENCE_US_MAX {
                return Err(Error::Silent { waited: Duration::from_micros(SILENCE_US_MAX) });
            }
            let now_us = self.clock.now_us();
            let wait_us = self.sender.next_time_us(now_us).saturating_sub(now_us).clamp(0, 20_000);
            if wait_us > 0 {
                wait_readable(&self.line.socket, Duration::from_micros(wait_us.max(WAIT_US_MIN)));
            }
        }
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
                _ => {}
            }
        }
    }

    /// Takes what was read meanwhile.
    fn read(&mut self) -> Result<()> {
        while let Some(read) = self.reader.take() {
            match read {
                FromFile::Chunk(chunk) => {
                    let at = self.chunks_end;
                    self.chunks_end += chunk.len() as u64;
                    self.chunks.push_back((at, chunk));
                    self.sender.make_available(self.chunks_end);
                }
                FromFile::Hash(hash) => {
                    self.hash = Some(hash);
                    self.sender.hash_is_known();
                }
                FromFile::Failed(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Seals what is due into the slab and hands it to the kernel in as few calls as it takes.
    fn send(&mut self, now_us: u64) -> Result<()> {
        let mut at = 0;
        self.runs.clear();
        while at + SLOT_BYTES <= SLAB_BYTES {
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
                    Item::Offer => Frame::Offer { stamp, total_bytes: self.total_bytes, name: self.name },
                    Item::Finish => Frame::Finish {
                        stamp,
                        total_bytes: self.total_bytes,
                        hash: self.hash.unwrap_or_default(),
                    },
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

    /// Puts bytes of the file into the slab: from the chunks in hand, or from the disk where they were sent before.
    fn fill(&mut self, offset: u64, place: std::ops::Range<usize>) -> Result<()> {
        let end = offset + place.len() as u64;
        let in_hand =
            self.chunks.front().is_some_and(|(first, _)| *first <= offset) && end <= self.chunks_end;
        if !in_hand {
            let failed = |source| Error::File { action: "read", path: self.path.to_path_buf(), source };
            return read_exact_at(&self.repairs, &mut self.slab[place], offset).map_err(failed);
        }
        let mut at = offset;
        let mut place = &mut self.slab[place];
        for (first, chunk) in &self.chunks {
            let chunk_end = first + chunk.len() as u64;
            if at < chunk_end && !place.is_empty() {
                let from = (at - first) as usize;
                let take = place.len().min(chunk.len() - from);
                place[..take].copy_from_slice(&chunk[from..from + take]);
                place = &mut place[take..];
                at += take as u64;
            }
        }
        while self.chunks.front().is_some_and(|(first, chunk)| first + chunk.len() as u64 <= end) {
            if let Some((_, chunk)) = self.chunks.pop_front() {
                self.reader.give_back(chunk);
            }
        }
        Ok(())
    }
}

const ASK_EVERY: Duration = Duration::from_millis(500);

/// Room for the longest datagram.
const SLOT_BYTES: usize = 65_536;
const SLAB_BYTES: usize = 8 * SLOT_BYTES;

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

/// Waits until there is something to read, or for `time`.
#[cfg(unix)]
fn wait_readable(socket: &UdpSocket, time: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ };
    // An interrupted wait is a short one.
    let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout));
}

#[cfg(not(unix))]
fn wait_readable(_: &UdpSocket, time: Duration) {
    std::thread::sleep(time.min(Duration::from_millis(1)));
}
