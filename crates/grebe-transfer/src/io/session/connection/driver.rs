//! The thread that carries a connection: it seals and sends what was written, opens and puts in order what comes, and reports.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use grebe_datagram::{Receiver as Datagrams, Sender as Out, wait_either_readable};

use super::stream::{ConnectionProgress, Failure, Shared};
use super::{ConnectionOptions, SLOT_BYTES};
use crate::error::{Error, Result};
use crate::io::session::connect::{self, Fallback};
use crate::io::session::tcp::{Heard, PacketStream, TcpDoor};
use crate::io::session::{Notice, taken};
use crate::io::{ArrivalTimes, Clock};
use crate::proto::connection::{Broken, ConnectionEnd};
use crate::proto::handshake::{Responder, Session};
use crate::proto::receiver::Arrived;
use crate::proto::sender::{SenderOptions, Transmit};
use crate::proto::sent_packets::Item;
use crate::proto::stream_buffer::{ReceiveBuffer, SendBuffer};
use crate::proto::wire::{
    DATA_HEADER_BYTES, Frame, HEADER_BYTES, ReceivedPackets, TAG_BYTES, Verdict, WINDOW_BYTES_MAX,
    data_header,
};

/// What a connection begins with.
pub(super) struct Start {
    /// `None` while it is asked.
    pub(super) datagrams: Option<Datagrams<Vec<u8>>>,
    pub(super) out: Out,
    /// Another handle on the socket, to answer strangers on.
    pub(super) socket: UdpSocket,
    /// The session of the stream that this end writes, and that of the other end's.
    pub(super) own: Session,
    pub(super) other: Session,
    pub(super) peer: SocketAddr,
    pub(super) rtt: Option<Duration>,
    /// All goes by this while it lasts.
    pub(super) tcp: Option<PacketStream>,
    /// Where the other end comes by TCP, if this end made the ticket.
    pub(super) door: Option<TcpDoor>,
    /// How this end goes there, if it has the ticket.
    pub(super) fallback: Fallback,
    /// Tells those who come too late with the ticket.
    pub(super) responder: Option<Responder>,
    pub(super) clock: Clock,
}

/// What came before the connection's thread began.
#[derive(Default)]
pub(super) struct Early {
    /// The packet that proved the other end's address: when it came, its number, its length and its frame.
    pub(super) first: Option<(u64, u64, usize, Vec<u8>)>,
    /// What came with it.
    pub(super) rest: Vec<(u64, SocketAddr, Vec<u8>)>,
}

pub(super) struct Driver {
    start: Start,
    shared: Arc<Shared>,
    core: ConnectionEnd,
    /// Numbers of what came about this end's stream.
    replies: ReceivedPackets,
    /// Number of the next packet about the other end's stream.
    reply_number: u64,
    sent: SendBuffer,
    received: ReceiveBuffer,
    arrivals: ArrivalTimes,
    /// When something came by the way that is in use now.
    way_heard_us: u64,
    /// When to look who came by TCP and, while TCP is used, whether something came by UDP.
    next_look_us: u64,
    /// The last look at the socket brought something: the next one may, too.
    is_busy: bool,
    failure: Option<Failure>,
    keep_trying: Duration,
    /// Packets as they are handed to the kernel.
    slab: Vec<u8>,
    /// Datagrams of one length in the slab: where they begin and end, and the length.
    runs: Vec<(usize, usize, usize)>,
}

impl Driver {
    pub(super) fn new(mut start: Start, shared: Arc<Shared>, options: &ConnectionOptions) -> Self {
        let now_us = start.clock.now_us();
        let (datagram_bytes, probe_datagram_bytes) = connect::datagram_bytes(&start.socket, start.peer);
        let local_port = start.socket.local_addr().map_or(0, |local| local.port());
        let sender_options = SenderOptions {
            mode: options.mode,
            limit_bits_per_s: options.limit_bits_per_s,
            rtt_us: start.rtt.map(|rtt| rtt.as_micros() as u64),
            datagram_bytes,
            probe_datagram_bytes,
            seed: u64::from(local_port) + u64::from(std::process::id()),
            silence_us_max: options.keep_trying.as_micros() as u64,
        };
        let tcp = start.tcp.take();
        let mut driver = Self {
            start,
            shared,
            core: ConnectionEnd::new(now_us, WINDOW_BYTES, sender_options),
            replies: ReceivedPackets::default(),
            reply_number: 0,
            sent: SendBuffer::default(),
            received: ReceiveBuffer::default(),
            arrivals: ArrivalTimes::default(),
            way_heard_us: now_us,
            next_look_us: 0,
            is_busy: false,
            failure: None,
            keep_trying: options.keep_trying,
            slab: vec![0; SLAB_BYTES],
            runs: Vec::with_capacity(256),
        };
        if tcp.is_some() {
            driver.go_by(now_us, tcp);
        }
        driver
    }

    /// Carries the connection until both ends know how it ended.
    pub(super) fn run(mut self, early: Early, options: &ConnectionOptions) {
        if let Some((arrived_us, number, datagram_bytes, plain)) = early.first
            && let Ok(frame) = Frame::decode(&plain)
        {
            self.take_frame(arrived_us, number, datagram_bytes, &frame);
        }
        for (arrived_us, from, mut datagram) in early.rest {
            self.take_datagram(arrived_us, from, &mut datagram);
        }
        loop {
            let now_us = self.start.clock.now_us();
            if options.cancel.is_cancelled() {
                self.core.stop(now_us);
            }
            self.look_for_another_way(now_us, options);
            self.exchange(now_us);
            if let Err(error) = self.send_due(now_us).and_then(|()| self.receive()) {
                self.fail(&error);
                break;
            }
            if self.core.is_over(self.start.clock.now_us()) {
                break;
            }
        }
        self.exchange(self.start.clock.now_us());
        // The other end is to hear how it ended.
        if let Some(tcp) = self.start.tcp.take() {
            tcp.finish();
        }
    }

    /// Gives to the application what came, and takes what it wrote.
    fn exchange(&mut self, now_us: u64) {
        let Self { core, sent, received, .. } = self;
        let broken = self.failure.clone().or(core.broken().map(|broken| failure(broken, self.keep_trying)));
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        state.has_news = false;
        while let Some(block) = state.written.pop_front() {
            if let Some(free) = sent.push(block) {
                state.recycle(free);
            }
        }
        core.sender.extend(now_us, sent.end(), state.flushed_bytes);
        if state.is_finished {
            core.sender.finish();
        }
        state.is_delivered = core.is_delivered();
        let confirmed = if state.is_delivered { u64::MAX } else { core.sender.confirmed.prefix_end() };
        state.confirmed_bytes = confirmed.min(sent.end());
        while let Some(block) = sent.release(state.confirmed_bytes) {
            state.recycle(block);
        }
        state.room_bytes = room_bytes(core);

        for memory in state.read_memory.drain(..) {
            received.reuse(memory);
        }
        let (chunks, read_bytes, is_unread) = (&mut state.chunks, &mut state.read_bytes, state.is_unread);
        received.pass(core.received_in_order(), |chunk| {
            if is_unread {
                *read_bytes += chunk.bytes().len() as u64;
            } else {
                chunks.push_back(chunk);
            }
        });
        state.is_ended = core.receiver.is_complete();
        let waiting_bytes = received.passed().saturating_sub(state.read_bytes);
        core.receiver.set_backlog(now_us, waiting_bytes);
        let is_much = waiting_bytes >= CALL_BYTES;
        state.call_at_read_bytes = if is_much { state.read_bytes + CALL_BYTES } else { u64::MAX };

        if state.failure.is_none() {
            state.failure = broken;
        }
        let progress = core.sender.progress();
        state.progress = ConnectionProgress {
            written_bytes: state.written_bytes,
            confirmed_bytes: progress.confirmed_bytes.min(sent.end()),
            received_bytes: core.receiver.received.covered() - u64::from(core.receiver.is_complete()),
            wire_bytes: core.sender.counters.wire_bytes,
            rate_bits_per_s: progress.rate_bits_per_s,
            rtt_us: progress.rtt_us,
            queue_us: progress.queue_us,
            loss: progress.loss,
            limit: progress.limit,
            is_over_tcp: self.start.tcp.is_some(),
        };
        self.shared.let_go(state);
    }

    /// Builds the packets that are due and hands them to the kernel in as few calls as possible.
    fn send_due(&mut self, now_us: u64) -> Result<()> {
        if let Some(mut tcp) = self.start.tcp.take() {
            let sent = self.send_by(&mut tcp, now_us);
            self.start.tcp = Some(tcp);
            return sent;
        }
        let mut at = 0;
        self.runs.clear();
        while at + SLOT_BYTES <= SLAB_BYTES {
            let Some(length) = self.build_next(now_us, at)? else { break };
            match self.runs.last_mut() {
                Some((_, end, segment)) if *segment == length => *end += length,
                _ => self.runs.push((at, at + length, length)),
            }
            at += length;
        }
        if self.runs.is_empty() {
            return Ok(());
        }
        let mut batch = self.start.out.batch();
        for (from, to, segment) in &self.runs {
            // What the kernel refuses counts as lost: the core sends it again, or gives up after a long silence.
            let _ = batch.push_run_to(self.start.peer, &self.slab[*from..*to], *segment);
        }
        let _ = batch.flush();
        Ok(())
    }

    /// Gives a TCP connection what it takes: that is what holds this end back.
    fn send_by(&mut self, tcp: &mut PacketStream, now_us: u64) -> Result<()> {
        tcp.flush();
        for _ in 0..PACKETS_A_TURN {
            if !tcp.has_room() {
                break;
            }
            let Some(length) = self.build_next(now_us, 0)? else { break };
            tcp.send(&self.slab[..length]);
        }
        tcp.flush();
        Ok(())
    }

    /// Builds the next packet that is due in the slab, sealed, and returns its length: what is to be said about the other end's stream
    /// comes before this end's own.
    fn build_next(&mut self, now_us: u64, at: usize) -> Result<Option<usize>> {
        let room = &mut self.slab[at + HEADER_BYTES..at + REPLY_BYTES_MAX - TAG_BYTES];
        if let Some(frame_bytes) = self.core.poll_reply(now_us, room) {
            let length = HEADER_BYTES + frame_bytes + TAG_BYTES;
            self.start.other.seal(self.reply_number, &mut self.slab[at..at + length])?;
            self.reply_number += 1;
            return Ok(Some(length));
        }
        let Some(transmit) = self.core.poll_transmit(now_us) else { return Ok(None) };
        let frame_bytes = self.build(&transmit, at + HEADER_BYTES)?;
        let length = HEADER_BYTES + frame_bytes + TAG_BYTES;
        self.start.own.seal(transmit.number, &mut self.slab[at..at + length])?;
        Ok(Some(length))
    }

    /// Writes the frame of a packet of this end's stream to this place of the slab, and returns its length.
    fn build(&mut self, transmit: &Transmit, at: usize) -> Result<usize> {
        let stamp = transmit.stamp;
        let frame = match transmit.item {
            Item::Data { offset, len } => {
                let is_last = self.core.sender.is_last(offset + u64::from(len));
                let payload_at = at + DATA_HEADER_BYTES;
                self.slab[at..payload_at].copy_from_slice(&data_header(stamp, offset, is_last));
                self.sent.fill(offset, &mut self.slab[payload_at..payload_at + len as usize]);
                return Ok(DATA_HEADER_BYTES + len as usize);
            }
            Item::Probe { datagram_bytes } => {
                let around = HEADER_BYTES + TAG_BYTES + PROBE_HEAD_BYTES;
                Frame::Probe { stamp, padding: (datagram_bytes as usize).saturating_sub(around) }
            }
            Item::Ping | Item::Offer => Frame::Probe { stamp, padding: 0 },
            Item::Close => Frame::Close,
        };
        let room = &mut self.slab[at..at + SLOT_BYTES - HEADER_BYTES - TAG_BYTES];
        frame.encode(room).ok_or(Error::Malformed { what: "a frame longer than a datagram" })
    }

    /// Waits until a packet is due, or something comes or is written, and takes what came.
    fn receive(&mut self) -> Result<()> {
        self.wait();
        if let Some(mut tcp) = self.start.tcp.take() {
            for _ in 0..PACKETS_A_TURN {
                let Some(packet) = tcp.receive() else { break };
                let now_us = self.start.clock.now_us();
                if let Heard::Peer = self.take_packet(now_us, packet) {
                    self.way_heard_us = now_us;
                }
            }
            self.start.tcp = Some(tcp);
            if self.start.clock.now_us() < self.next_look_us {
                return Ok(());
            }
        }
        self.receive_datagrams()
    }

    fn wait(&mut self) {
        if std::mem::take(&mut self.is_busy) {
            return;
        }
        let now_us = self.start.clock.now_us();
        let has_room = self.start.tcp.as_ref().is_none_or(PacketStream::has_room);
        let due_us = if has_room { self.core.next_time_us(now_us) } else { u64::MAX };
        let wait_us = due_us.saturating_sub(now_us).min(WAIT_US_MAX);
        if wait_us == 0 {
            return;
        }
        let wait = Duration::from_micros(wait_us.max(WAIT_US_MIN));
        let mut state = self.shared.lock();
        if state.has_news {
            return;
        }
        state.thread_sleeps = true;
        drop(state);
        let called = self.shared.wake.socket();
        // A wait that fails is a short one.
        let _ = match &self.start.tcp {
            Some(tcp) => {
                let (stream, wait) = tcp.waits(wait);
                wait_either_readable(stream, called, wait)
            }
            None => wait_either_readable(&self.start.socket, called, wait),
        };
        if !std::mem::take(&mut self.shared.lock().thread_sleeps) {
            self.shared.wake.forget();
        }
    }

    fn receive_datagrams(&mut self) -> Result<()> {
        // The socket is borrowed apart from the rest, which takes what it brings.
        let Some(mut datagrams) = self.start.datagrams.take() else { return Ok(()) };
        let mut now = None;
        let outcome = datagrams.try_recv(
            || Some(vec![0; SLOT_BYTES]),
            |mut slot, received| {
                let now = now.get_or_insert_with(|| self.start.clock.reading());
                let arrived_us = self.arrivals.us_of(now, received.timestamp);
                for range in received.segments() {
                    self.take_datagram(arrived_us, received.from, &mut slot[range]);
                }
                Some(slot)
            },
        );
        self.start.datagrams = Some(datagrams);
        self.is_busy = outcome?.datagrams > 0;
        Ok(())
    }

    fn take_datagram(&mut self, arrived_us: u64, from: SocketAddr, datagram: &mut [u8]) {
        match self.take_packet(arrived_us, datagram) {
            Heard::Peer if from == self.start.peer => {
                if self.start.tcp.is_none() {
                    self.way_heard_us = arrived_us;
                }
            }
            // Behind a NAT its port may change. Whoever holds back packets and sends them from elsewhere shall not choose whom we send to.
            Heard::Peer if self.is_lost(arrived_us) && connect::is_moved(self.start.peer, from) => {
                (self.start.peer, self.way_heard_us) = (from, arrived_us);
            }
            Heard::Question(answer) => {
                let _ = self.start.socket.send_to(&answer, from);
            }
            Heard::Peer | Heard::Nothing => {}
        }
    }

    /// Takes what may be the other end's; its newest packet shows where it is.
    fn take_packet(&mut self, now_us: u64, packet: &mut [u8]) -> Heard {
        let packet_bytes = packet.len();
        if self.start.other.is_addressed(packet) {
            let packets = self.core.receiver.packets();
            let highest = packets.highest();
            let Ok((number, plain)) = self.start.other.open(packets, packet) else { return Heard::Nothing };
            if let Ok(frame) = Frame::decode(plain) {
                self.take_frame(now_us, number, packet_bytes, &frame);
            }
            return heard(number, highest);
        }
        if self.start.own.is_addressed(packet) {
            let highest = self.replies.highest();
            let Ok((number, plain)) = self.start.own.open(&self.replies, packet) else {
                return Heard::Nothing;
            };
            self.replies.accept(number);
            if let Ok(frame) = Frame::decode(plain) {
                // By the clock that its packets left by, which must not go back.
                self.core.on_reply(self.start.clock.now_us(), &frame);
            }
            return heard(number, highest);
        }
        taken(&mut self.start.responder, packet).map_or(Heard::Nothing, Heard::Question)
    }

    fn take_frame(&mut self, now_us: u64, number: u64, packet_bytes: usize, frame: &Frame<'_>) {
        if let Arrived::Data { offset, payload } = self.core.on_packet(now_us, number, packet_bytes, frame) {
            self.received.put(offset, payload);
        }
    }

    /// Another end that is silent is looked for over TCP, or comes by itself.
    fn look_for_another_way(&mut self, now_us: u64, options: &ConnectionOptions) {
        if self.core.is_settled() {
            return;
        }
        if self.start.tcp.as_ref().is_some_and(PacketStream::is_over) {
            self.go_by(now_us, None);
        }
        let mut found = self.start.fallback.poll(now_us, self.way_heard_us);
        if now_us >= self.next_look_us {
            self.next_look_us = now_us + LOOK_EVERY_US;
            if let Some(mut door) = self.start.door.take() {
                found = found.or(door.poll(|packet| self.take_packet(now_us, packet)));
                self.start.door = Some(door);
            }
        }
        // Only from where the other end is, or where it is lost.
        let is_lost = self.is_lost(now_us);
        let is_ours =
            |tcp: &PacketStream| is_lost || tcp.peer().is_some_and(|peer| peer.ip() == self.start.peer.ip());
        if let Some(tcp) = found.filter(is_ours) {
            (options.notify)(Notice::OverTcp);
            self.go_by(now_us, Some(tcp));
        }
    }

    /// Whether nothing has come for long by the way that is in use.
    fn is_lost(&self, now_us: u64) -> bool {
        now_us.saturating_sub(self.way_heard_us) > connect::SILENT_US
    }

    /// Goes on by a TCP connection, or by UDP again.
    fn go_by(&mut self, now_us: u64, tcp: Option<PacketStream>) {
        self.core.sender.use_stream(now_us, tcp.is_some());
        if tcp.is_some() {
            self.way_heard_us = now_us;
        }
        self.start.tcp = tcp;
    }

    /// Ends as this end cannot go on; the other one is told if it can be.
    fn fail(&mut self, error: &Error) {
        let kind = match error {
            Error::Socket(grebe_datagram::Error::Receive { source }) => source.kind(),
            _ => std::io::ErrorKind::Other,
        };
        self.failure = Some(Failure::Socket { kind, what: error.to_string() });
        let now_us = self.start.clock.now_us();
        self.core.stop(now_us);
        let _ = self.send_due(now_us);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Also where this thread panics: nobody waits for ever.
        let broken = self.core.broken().map(|broken| failure(broken, self.keep_trying));
        let failure = self.failure.take().or(broken);
        self.shared.end(|| failure.unwrap_or(Failure::Ended { verdict: Verdict::Cancelled }));
    }
}

fn heard(number: u64, highest: Option<u64>) -> Heard {
    if highest.is_none_or(|highest| number > highest) { Heard::Peer } else { Heard::Nothing }
}

fn failure(broken: Broken, waited: Duration) -> Failure {
    match broken {
        Broken::Silent => Failure::Silent { waited },
        Broken::ByPeer(verdict) => Failure::Ended { verdict },
        Broken::Stopped => Failure::Cancelled,
    }
}

/// What may be written beyond what the other end has confirmed: what is under way, as often as it may be lost.
fn room_bytes(core: &ConnectionEnd) -> u64 {
    let progress = core.sender.progress();
    let product_bytes = (progress.rate_bits_per_s / 8.0 * progress.rtt_us as f64 / 1e6) as u64;
    ROOM_BYTES_MIN.saturating_add(ROOM_PRODUCTS * product_bytes).min(WINDOW_BYTES_MAX)
}

pub(super) const ROOM_BYTES_MIN: u64 = 4 << 20;

/// A byte that is lost twice is confirmed after three round trips; by then others follow it.
const ROOM_PRODUCTS: u64 = 4;

/// How far the other end may run ahead of what was read here, beside twice the bytes that arrive in a round trip.
const WINDOW_BYTES: u64 = 16 << 20;

/// What was read opens the window at least once in so many bytes.
const CALL_BYTES: u64 = 4 << 20;

/// What is built at once still lies in the core's cache when the kernel copies it.
const SLAB_BYTES: usize = 4 * SLOT_BYTES;

/// Every path carries this.
const REPLY_BYTES_MAX: usize = 1_200;

/// Kind and stamp of a probe.
const PROBE_HEAD_BYTES: usize = 6;

/// Packets that a TCP connection is given, or brings, before the other is done.
const PACKETS_A_TURN: usize = 64;

/// How often this end looks who came by TCP and, while TCP is used, whether something came by UDP.
const LOOK_EVERY_US: u64 = 100_000;

/// How often it looks whether it is to stop.
const WAIT_US_MAX: u64 = 50_000;

/// Shorter sleeps cost more than they gain: the schedule makes up for a sleep that is too long.
const WAIT_US_MIN: u64 = 100;
