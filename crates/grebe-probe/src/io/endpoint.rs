//! UDP socket with a clock, one per side: receives, answers, and sends trains on schedule.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use grebe_datagram::{Granted, Options, Receiver, SendBatch, Sender};

use crate::error::Result;
use crate::proto::handler::{Arrival, Outbox, PacketHandler};
use crate::proto::packet::{Body, DATA_BYTES, PACKET_MAX, Packet};
use crate::proto::signing::Signer;
use crate::proto::train::{Train, UDP_IP_BYTES};

/// Nanoseconds since its creation, with the wall clock at that moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    pub(crate) epoch_ns: u64,
}

impl Clock {
    fn new() -> Self {
        Self { start: Instant::now(), epoch_ns: wall().as_nanos() as u64 }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Offset from a wall clock's time to this clock's. Computed once per batch, because the wall clock may
    /// be set.
    fn since_wall(&self) -> i64 {
        (self.now_ns() as i64).wrapping_sub(wall().as_nanos() as i64)
    }
}

/// A socket, its buffers and its clock.
pub(crate) struct Endpoint {
    receiver: Receiver<Vec<u8>>,
    sender: Sender,
    pub(crate) clock: Clock,
    pub(crate) kernel_drops: Option<u64>,
    outbox: Outbox,
    /// Datagrams outside of trains. They wait for the end of the batch, when the drop counter is known.
    deferred: Vec<(SocketAddr, Vec<u8>, u64)>,
    heads: Vec<[u8; PACKET_MAX]>,
    filler: Vec<u8>,
    /// Bytes of IP packets sent.
    pub(crate) sent_bytes: u64,
    peer: Option<SocketAddr>,
    /// Whether the socket is IPv6 and takes IPv4 addresses in mapped form.
    is_v6: bool,
}

impl Endpoint {
    pub(crate) fn bind(local: SocketAddr, peer: Option<SocketAddr>) -> Result<Self> {
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
            deferred: Vec::new(),
            heads: vec![[0; PACKET_MAX]; GROUP],
            filler: vec![0; usize::from(Train::SIZE_MAX)],
            sent_bytes: 0,
            peer,
            is_v6: local.is_ipv6(),
        })
    }

    pub(crate) fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.receiver.local_addr()?)
    }

    pub(crate) fn granted(&self) -> Granted {
        self.receiver.granted()
    }

    /// Payload that this host's interface carries to the peer in one packet, if known.
    pub(crate) fn route_payload_bytes(&self) -> Option<usize> {
        self.sender.path_payload_bytes()
    }

    /// Waits for datagrams, passes them to `handler` and sends its answers. Returns after the first batch, or
    /// after `wait`.
    pub(crate) fn pump(&mut self, wait: Duration, handler: &mut impl PacketHandler) -> Result<()> {
        let Self { receiver, deferred, clock, kernel_drops, outbox, .. } = self;
        let clock = *clock;
        let mut deliver = {
            let mut since_wall = None;
            let drops = *kernel_drops;
            let (handler, deferred, outbox) = (&mut *handler, &mut *deferred, &mut *outbox);
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
                        handler.arrived(arrival, outbox);
                    } else if bytes.len() <= PACKET_MAX || Packet::may_be_size(bytes) {
                        deferred.push((from, bytes.to_vec(), arrived_ns));
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
        for (from, bytes, arrived_ns) in self.deferred.drain(..) {
            let now_ns = self.clock.now_ns();
            let kernel_drops = self.kernel_drops;
            handler
                .arrived(Arrival { from, bytes: &bytes, arrived_ns, now_ns, kernel_drops }, &mut self.outbox);
        }
        handler.tick(self.clock.now_ns(), &mut self.outbox);
        self.flush()
    }

    /// Sends one packet, padded to at least `len` bytes.
    pub(crate) fn send(
        &mut self,
        to: Option<SocketAddr>,
        packet: &Packet,
        signer: &Signer,
        len: usize,
    ) -> Result<()> {
        let mut buffer = [0; PACKET_MAX];
        let written = packet.encode(signer, len, &mut buffer);
        let filler = &self.filler[..len.saturating_sub(written)];
        self.sent_bytes += (written + filler.len() + UDP_IP_BYTES) as u64;
        let to = to.map(|to| mapped(to, self.is_v6));
        let mut batch = self.sender.batch();
        push(&mut batch, to, &buffer[..written], filler)?;
        tolerate(batch.flush())
    }

    /// Sends a train on schedule, and serves `handler` meanwhile. Returns the number of datagrams sent.
    pub(crate) fn send_train(
        &mut self,
        train: Train,
        (to, session, signer): (Option<SocketAddr>, u64, &Signer),
        handler: &mut impl PacketHandler,
    ) -> Result<u32> {
        let to = to.map(|to| mapped(to, self.is_v6));
        let filler_bytes = usize::from(train.size).saturating_sub(DATA_BYTES);
        let mut sent = 0;
        let mut start_ns = self.clock.now_ns();
        let mut served_ns = start_ns;
        while sent < train.count && !handler.should_stop() {
            let now_ns = self.clock.now_ns();
            let due_ns = start_ns + u64::from(sent) * train.interval_ns;
            if now_ns < due_ns || now_ns - served_ns > SERVE_EVERY_NS {
                self.pump(Duration::ZERO, handler)?;
                served_ns = self.clock.now_ns();
                if served_ns < due_ns {
                    std::thread::sleep(Duration::from_nanos(due_ns - served_ns));
                }
                continue;
            }
            // After a long delay the schedule shifts, because a burst to catch up would distort the
            // measurement.
            start_ns += (now_ns - due_ns).saturating_sub(LATE_MAX_NS);
            let due =
                (now_ns - start_ns).checked_div(train.interval_ns).map_or(u64::from(u32::MAX), |due| due + 1);
            let group = due.saturating_sub(u64::from(sent)).clamp(1, GROUP as u64);
            let group = (group as u32).min(train.count - sent);
            let sent_ns = self.clock.now_ns();
            for (seq, head) in (sent..sent + group).zip(&mut self.heads) {
                let number = u64::from(train.id) << 32 | u64::from(seq);
                let packet = Packet { session, number, body: Body::Data { train, seq, sent_ns } };
                packet.encode(signer, train.size.into(), head);
            }
            let mut batch = self.sender.batch();
            for head in &self.heads[..group as usize] {
                tolerate(push(&mut batch, to, &head[..DATA_BYTES], &self.filler[..filler_bytes]))?;
            }
            tolerate(batch.flush())?;
            drop(batch);
            sent += group;
        }
        self.sent_bytes += u64::from(sent) * (u64::from(train.size) + UDP_IP_BYTES as u64);
        Ok(sent)
    }

    fn flush(&mut self) -> Result<()> {
        let Self { sender, outbox, sent_bytes, peer, is_v6, .. } = self;
        if outbox.is_empty() {
            return Ok(());
        }
        let mut batch = sender.batch();
        for (to, packet) in outbox.packets() {
            *sent_bytes += (packet.len() + UDP_IP_BYTES) as u64;
            tolerate(push(
                &mut batch,
                to.filter(|_| peer.is_none()).map(|to| mapped(to, *is_v6)),
                packet,
                &[],
            ))?;
        }
        tolerate(batch.flush())?;
        drop(batch);
        outbox.clear();
        Ok(())
    }
}

/// Adds a datagram for `to`, or for the connected peer.
fn push<'d>(
    batch: &mut SendBatch<'_, 'd>,
    to: Option<SocketAddr>,
    head: &'d [u8],
    filler: &'d [u8],
) -> grebe_datagram::Result<()> {
    match to {
        Some(to) => batch.push_to(to, head, filler),
        None => batch.push(head, filler),
    }
}

/// Ignores a datagram that could not be sent. It counts as lost, and `Sender` has counted it.
fn tolerate(sent: grebe_datagram::Result<()>) -> Result<()> {
    match sent {
        Ok(()) | Err(grebe_datagram::Error::Send { .. } | grebe_datagram::Error::Stalled { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// IPv4 address in place of its mapped form.
fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Address in the family of the socket.
fn mapped(address: SocketAddr, is_v6: bool) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if is_v6 => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        other => other,
    }
}

fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

const SLOTS: usize = 32;
const SLOT_BYTES: usize = 65_536;
/// Maximum datagrams to sign and send together.
const GROUP: usize = 64;
/// Maximum delay to catch up. A sender preempted for longer falls behind, and its stamps show it.
const LATE_MAX_NS: u64 = 2_000_000;
/// Interval at which a busy sender reads its socket.
const SERVE_EVERY_NS: u64 = 2_000_000;
