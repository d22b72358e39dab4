//! One UDP socket with a clock: receiving, answering, and sending trains on time. Both sides of a probe are one of these.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use grebe_datagram::{Granted, Options, Receiver, Sender};

use crate::Result;
use crate::key::Signer;
use crate::packet::{Body, DATA_BYTES, PACKET_MAX, Packet};
use crate::train::Train;

/// What an endpoint does with what comes in. Pure: it is told the time.
pub(crate) trait Peer {
    /// A datagram of a train came, or something else; `out` takes the answers.
    fn arrived(&mut self, arrival: Arrival<'_>, out: &mut Outbox);
    /// Called now and then; `out` takes what is to be sent by now.
    fn tick(&mut self, now_ns: u64, out: &mut Outbox);
    /// Whether a train that is being sent should end.
    fn stops(&self) -> bool;
}

/// A datagram that came in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub from: SocketAddr,
    pub bytes: &'a [u8],
    /// When it arrived, by the endpoint's clock.
    pub arrived_ns: u64,
    /// What the time is now.
    pub now_ns: u64,
    /// Datagrams that the kernel had no room for since the socket was opened.
    pub kernel_drops: Option<u64>,
}

/// Packets to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Vec<(Option<SocketAddr>, [u8; PACKET_MAX], usize)>);

impl Outbox {
    /// Signs a packet for `to` (`None`: the connected peer).
    pub fn push(&mut self, to: Option<SocketAddr>, packet: &Packet, signer: &Signer) {
        let mut buffer = [0; PACKET_MAX];
        let len = packet.encode(signer, 0, &mut buffer);
        self.0.push((to, buffer, len));
    }

    /// Packets and bytes in it, of UDP payload.
    #[cfg(test)]
    pub fn packets(&self) -> impl Iterator<Item = (Option<SocketAddr>, &[u8])> {
        self.0.iter().map(|(to, buffer, len)| (*to, &buffer[..*len]))
    }

    #[cfg(test)]
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Nanoseconds since the endpoint was made, and the wall clock then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    pub epoch_ns: u64,
}

impl Clock {
    fn new() -> Self {
        Self { start: Instant::now(), epoch_ns: wall().as_nanos() as u64 }
    }

    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// What has to be added to a wall clock's time to get this clock's. Asked anew a batch: the wall clock may be set.
    fn since_wall(&self) -> i64 {
        (self.now_ns() as i64).wrapping_sub(wall().as_nanos() as i64)
    }
}

/// A socket, its buffers and its clock.
pub(crate) struct Endpoint {
    receiver: Receiver<Vec<u8>>,
    sender: Sender,
    pub clock: Clock,
    pub kernel_drops: Option<u64>,
    outbox: Outbox,
    /// What is not of a train waits for the end of the batch, when the drop counter is known.
    asides: Vec<(SocketAddr, Vec<u8>, u64)>,
    heads: Vec<[u8; PACKET_MAX]>,
    filler: Vec<u8>,
    /// Bytes of IP packets that this endpoint sent.
    pub sent_bytes: u64,
    peer: Option<SocketAddr>,
}

/// What became of a train at its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sent {
    pub count: u32,
    /// Datagrams that the kernel would not take.
    pub refused: u64,
}

impl Endpoint {
    pub fn bind(local: SocketAddr, peer: Option<SocketAddr>) -> Result<Self> {
        let options = Options {
            dont_fragment: true,
            timestamps: true,
            gro: false,
            slots: SLOTS,
            copy_below_bytes: 0,
            latency: Duration::from_micros(200),
            ..Options::default()
        };
        let receiver = Receiver::bind(local, &options)?;
        if let Some(peer) = peer {
            receiver.connect(peer)?;
        }
        let sender = Sender::on(&receiver, &options)?;
        Ok(Self {
            receiver,
            sender,
            clock: Clock::new(),
            kernel_drops: None,
            outbox: Outbox::default(),
            asides: Vec::new(),
            heads: vec![[0; PACKET_MAX]; GROUP],
            filler: vec![0; usize::from(Train::SIZE_MAX)],
            sent_bytes: 0,
            peer,
        })
    }

    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.receiver.local_addr()?)
    }

    pub fn granted(&self) -> Granted {
        self.receiver.granted()
    }

    /// Bytes of payload that the own interface carries to the peer in one packet, where that is known.
    pub fn route_payload_bytes(&self) -> Option<usize> {
        self.sender.path_payload_bytes()
    }

    /// Waits for datagrams, hands them over and sends the answers. Returns after the first batch, or after `wait`.
    pub fn pump(&mut self, wait: Duration, peer: &mut impl Peer) -> Result<()> {
        let Self { receiver, asides, clock, kernel_drops, outbox, .. } = self;
        let clock = *clock;
        let mut deliver = {
            let mut since_wall = None;
            let drops = *kernel_drops;
            let (peer, asides, outbox) = (&mut *peer, &mut *asides, &mut *outbox);
            move |slot: Vec<u8>, received: grebe_datagram::Received| {
                let now_ns = clock.now_ns();
                let since_wall = *since_wall.get_or_insert_with(|| clock.since_wall());
                let arrived_ns = received.timestamp.map_or(now_ns, |stamp| {
                    (stamp.as_nanos() as i64).wrapping_add(since_wall).clamp(0, now_ns as i64) as u64
                });
                let from = unmapped(received.from);
                for range in received.segments() {
                    let bytes = &slot[range];
                    if Packet::may_be_data(bytes) {
                        let arrival = Arrival { from, bytes, arrived_ns, now_ns, kernel_drops: drops };
                        peer.arrived(arrival, outbox);
                    } else if bytes.len() <= PACKET_MAX || Packet::may_be_size(bytes) {
                        asides.push((from, bytes.to_vec(), arrived_ns));
                    }
                }
                Some(slot)
            }
        };
        let refill = || Some(vec![0; SLOT_BYTES]);
        let outcome = if wait.is_zero() {
            receiver.try_recv(refill, &mut deliver)?
        } else {
            receiver.set_timeout(wait);
            receiver.recv(refill, &mut deliver)?
        };
        self.kernel_drops = outcome.kernel_drops;
        for (from, bytes, arrived_ns) in self.asides.drain(..) {
            let now_ns = self.clock.now_ns();
            let kernel_drops = self.kernel_drops;
            peer.arrived(Arrival { from, bytes: &bytes, arrived_ns, now_ns, kernel_drops }, &mut self.outbox);
        }
        peer.tick(self.clock.now_ns(), &mut self.outbox);
        self.flush()
    }

    /// Sends one packet, padded to `len` bytes where that is more. Whether the kernel took it.
    pub fn send(
        &mut self,
        to: Option<SocketAddr>,
        packet: &Packet,
        signer: &Signer,
        len: usize,
    ) -> Result<bool> {
        let mut buffer = [0; PACKET_MAX];
        let written = packet.encode(signer, len, &mut buffer);
        let filler = &self.filler[..len.saturating_sub(written)];
        self.sent_bytes += (written + filler.len() + 28) as u64;
        let mut batch = self.sender.batch();
        let pushed = match to {
            Some(to) => batch.push_to(to, &buffer[..written], filler),
            None => batch.push(&buffer[..written], filler),
        };
        pushed?;
        match batch.flush() {
            Ok(()) => Ok(true),
            Err(grebe_datagram::Error::Send { .. } | grebe_datagram::Error::Stalled { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a train on time, and serves the peer meanwhile.
    pub fn send_train(
        &mut self,
        train: Train,
        (to, session, signer): (Option<SocketAddr>, u64, &Signer),
        peer: &mut impl Peer,
    ) -> Result<Sent> {
        let filler_bytes = usize::from(train.size).saturating_sub(DATA_BYTES);
        let mut sent = Sent::default();
        let mut start_ns = self.clock.now_ns();
        let mut served_ns = start_ns;
        while sent.count < train.count && !peer.stops() {
            let now_ns = self.clock.now_ns();
            let due_ns = start_ns + u64::from(sent.count) * train.interval_ns;
            if now_ns < due_ns || now_ns - served_ns > SERVE_EVERY_NS {
                self.pump(Duration::ZERO, peer)?;
                served_ns = self.clock.now_ns();
                if served_ns < due_ns {
                    std::thread::sleep(Duration::from_nanos(due_ns - served_ns));
                }
                continue;
            }
            // What was missed for long is not made up for: a burst would be another experiment.
            start_ns += (now_ns - due_ns).saturating_sub(LATE_MAX_NS);
            let due =
                (now_ns - start_ns).checked_div(train.interval_ns).map_or(u64::from(u32::MAX), |due| due + 1);
            let group = due.saturating_sub(u64::from(sent.count)).clamp(1, GROUP as u64);
            let group = (group as u32).min(train.count - sent.count);
            let sent_ns = self.clock.now_ns();
            for (seq, head) in (sent.count..sent.count + group).zip(&mut self.heads) {
                let number = u64::from(train.id) << 32 | u64::from(seq);
                let packet = Packet { session, number, body: Body::Data { train, seq, sent_ns } };
                packet.encode(signer, train.size.into(), head);
            }
            let before = self.sender.counters().unsent;
            let mut batch = self.sender.batch();
            for head in &self.heads[..group as usize] {
                let (head, filler) = (&head[..DATA_BYTES], &self.filler[..filler_bytes]);
                let pushed = match to {
                    Some(to) => batch.push_to(to, head, filler),
                    None => batch.push(head, filler),
                };
                tolerate(pushed)?;
            }
            tolerate(batch.flush())?;
            drop(batch);
            sent.refused += self.sender.counters().unsent - before;
            sent.count += group;
        }
        self.sent_bytes += u64::from(sent.count) * (u64::from(train.size) + 28);
        Ok(sent)
    }

    fn flush(&mut self) -> Result<()> {
        let Self { sender, outbox, sent_bytes, peer, .. } = self;
        if outbox.0.is_empty() {
            return Ok(());
        }
        let mut batch = sender.batch();
        for (to, buffer, len) in &outbox.0 {
            *sent_bytes += (len + 28) as u64;
            let pushed = match to.filter(|_| peer.is_none()) {
                Some(to) => batch.push_to(to, &buffer[..*len], &[]),
                None => batch.push(&buffer[..*len], &[]),
            };
            tolerate(pushed)?;
        }
        tolerate(batch.flush())?;
        drop(batch);
        outbox.0.clear();
        Ok(())
    }
}

/// An error of a single datagram is a datagram lost; it is counted by the sender.
fn tolerate(sent: grebe_datagram::Result<()>) -> Result<()> {
    match sent {
        Ok(()) | Err(grebe_datagram::Error::Send { .. } | grebe_datagram::Error::Stalled { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// An IPv4 address that came through an IPv6 socket, as itself.
fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

const SLOTS: usize = 32;
const SLOT_BYTES: usize = 65_536;
/// Datagrams that are signed and sent together at most.
const GROUP: usize = 64;
/// A sender that is put off for longer falls behind, and says so by its stamps.
const LATE_MAX_NS: u64 = 2_000_000;
/// How often a busy sender looks at what came in.
const SERVE_EVERY_NS: u64 = 2_000_000;
