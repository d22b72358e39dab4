use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::drops::{Congestion, DropCounter, Sampler};
use crate::wait::{Wait, Waiting};
use crate::{Error, Granted, Options, Result, Side, setup, sys};

/// Receives datagrams in batches, into buffers (`S`) that the caller owns.
///
/// A slot is any buffer; with GRO it should hold 65,535 bytes, since one kernel buffer brings many datagrams. A slot that was
/// filled moves to the caller, and the hole is filled from the caller's pool: nothing is copied and nothing allocated.
#[derive(Debug)]
pub struct Receiver<S> {
    socket: Socket,
    arrays: sys::RecvArrays,
    slots: Vec<S>,
    returned: Vec<S>,
    slots_max: usize,
    received: Vec<Received>,
    waiting: Waiting,
    timeout: Duration,
    drops: DropCounter,
    sampler: Sampler,
    granted: Granted,
}

/// What one slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes in the slot.
    pub len: usize,
    /// Bytes of each datagram in it; the last one may be shorter.
    pub segment_bytes: usize,
    /// Who sent them.
    pub from: SocketAddr,
    /// The slot was too small, and what did not fit is gone. The last datagram of the slot is cut.
    pub truncated: bool,
    /// The kernel's time of arrival since 1970, where it was asked for and the system has it.
    pub timestamp: Option<Duration>,
}

/// The ranges of the datagrams in a slot.
#[derive(Debug, Clone)]
pub struct Segments {
    at: usize,
    len: usize,
    segment_bytes: usize,
    done: bool,
}

/// What one call of [`Receiver::recv`] brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecvOutcome {
    /// Datagrams delivered. 0: nothing came within the timeout, or the wake-up was spurious.
    pub datagrams: usize,
    /// Slots they were delivered in.
    pub slots: usize,
    /// Bytes delivered.
    pub bytes: usize,
    /// Kernel buffers dropped for want of room since the socket was opened; with GRO one buffer may be many datagrams.
    /// `None` where the platform does not count.
    pub kernel_drops: Option<u64>,
    /// Dropping began or ceased, as seen once a second.
    pub congestion: Option<Congestion>,
    /// There was no slot to receive into: the caller's pool is empty.
    pub starved: bool,
    /// How long of the call was spent waiting for datagrams.
    pub waited: Duration,
}

impl<S: AsMut<[u8]>> Receiver<S> {
    /// A receiver at `address`; a multicast group is joined.
    ///
    /// # Errors
    /// [`Error::Open`] where the address cannot be bound or the group not joined. A smaller buffer, or a missing drop counter,
    /// is no error: see [`granted`](Self::granted) and [`RecvOutcome::kernel_drops`].
    pub fn bind(address: SocketAddr, options: &Options) -> Result<Self> {
        let socket = setup::open(address, options)?;
        // Before binding: what arrives at once must find the whole buffer and the counter.
        let granted =
            setup::ask_for_buffer(&socket, Side::Receive, options.recv_buffer_bytes, options.force_buffers);
        let counted = sys::enable_drop_counter(&socket);
        let baseline = if counted { sys::drops_now(&socket) } else { None };
        if options.timestamps {
            sys::enable_timestamps(&socket);
        }
        if options.batch && options.gro {
            sys::enable_gro(&socket);
        }
        let at = setup::bind_address(address);
        socket.bind(&at.into()).map_err(|source| Error::Open { action: "bind", address: at, source })?;
        if address.ip().is_multicast() {
            setup::join(&socket, address.ip(), options.multicast_interface)
                .map_err(|source| Error::Open { action: "join the multicast group", address, source })?;
        }
        let slots = options.slots.clamp(1, 64);
        Ok(Self {
            socket,
            arrays: sys::RecvArrays::new(slots, options.batch),
            slots: Vec::with_capacity(slots),
            returned: Vec::with_capacity(slots),
            slots_max: slots,
            received: Vec::with_capacity(slots),
            waiting: Waiting::new(options.latency, granted.granted_bytes),
            timeout: options.recv_timeout,
            drops: DropCounter::from_baseline(baseline),
            sampler: Sampler::new(Instant::now()),
            granted,
        })
    }

    /// Takes datagrams of `peer` only.
    ///
    /// # Errors
    /// [`Error::Open`] where no route leads to `peer`.
    pub fn connect(&self, peer: SocketAddr) -> Result<()> {
        let connected = self.socket.connect(&peer.into());
        connected.map_err(|source| Error::Open { action: "connect to", address: peer, source })
    }

    /// Waits for datagrams, fills slots, and moves each filled slot out.
    ///
    /// `refill` is asked for slots first, until all holes are filled or it has none: with fewer slots fewer are received, with
    /// none the outcome says `starved`. `deliver` gets each filled slot in order of arrival, and may hand it (or another)
    /// back at once. Returns after the first batch, or after [`Options::recv_timeout`] without a datagram.
    ///
    /// # Errors
    /// [`Error::Receive`] where the system refuses; interruptions and stale errors of connected sockets are retried.
    #[inline]
    pub fn recv(
        &mut self,
        refill: impl FnMut() -> Option<S>,
        deliver: impl FnMut(S, Received) -> Option<S>,
    ) -> Result<RecvOutcome> {
        let mut waited = Duration::ZERO;
        let got = match self.fill(refill) {
            true => self.wait_and_receive(&mut waited)?,
            false => {
                // A caller that only loops must not spin while its pool is empty.
                std::thread::sleep(STARVED_PAUSE);
                waited = STARVED_PAUSE;
                0
            }
        };
        Ok(RecvOutcome { waited, ..self.hand_out(got, deliver) })
    }

    /// As [`recv`](Self::recv), but without waiting: what is there now.
    ///
    /// # Errors
    /// [`Error::Receive`] where the system refuses.
    pub fn try_recv(
        &mut self,
        refill: impl FnMut() -> Option<S>,
        deliver: impl FnMut(S, Received) -> Option<S>,
    ) -> Result<RecvOutcome> {
        let got = if self.fill(refill) { self.receive()?.unwrap_or(0) } else { 0 };
        Ok(self.hand_out(got, deliver))
    }

    fn fill(&mut self, mut refill: impl FnMut() -> Option<S>) -> bool {
        while self.slots.len() < self.slots_max {
            let Some(slot) = refill() else { break };
            self.slots.push(slot);
        }
        !self.slots.is_empty()
    }

    /// Messages received, after waiting for them; 0 after the timeout.
    fn wait_and_receive(&mut self, waited: &mut Duration) -> Result<usize> {
        let mut began = None;
        loop {
            if let Some(got) = self.receive()? {
                return Ok(got);
            }
            let wait = self.waiting.empty();
            let now = Instant::now();
            let until = *began.get_or_insert(now) + self.timeout;
            let Some(left) = until.checked_duration_since(now).filter(|left| !left.is_zero()) else {
                return Ok(0);
            };
            match wait {
                Wait::Sleep(nap) => {
                    std::thread::sleep(nap.min(left));
                    *waited += now.elapsed();
                }
                Wait::Block => {
                    let ready =
                        sys::wait_readable(&self.socket, left).map_err(|source| Error::Receive { source })?;
                    let woken = Instant::now();
                    *waited += woken - now;
                    if ready {
                        self.waiting.woke(woken);
                    }
                }
            }
        }
    }

    /// Messages that are there now; `None` where there are none.
    fn receive(&mut self) -> Result<Option<usize>> {
        self.received.clear();
        loop {
            match self.arrays.receive(&self.socket, &mut self.slots, &mut self.received) {
                Ok(()) => {
                    let bytes = self.received.iter().map(|received| received.len).sum();
                    self.waiting.received(self.received.len(), bytes);
                    return Ok(Some(self.received.len()));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    // Left by an earlier datagram of a connected socket; asking has cleared it.
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => {}
                    _ if sys::is_absent(&error) && self.arrays.degrade() => {}
                    _ => return Err(Error::Receive { source: error }),
                },
            }
        }
    }

    fn hand_out(&mut self, got: usize, mut deliver: impl FnMut(S, Received) -> Option<S>) -> RecvOutcome {
        let mut outcome =
            RecvOutcome { slots: got, starved: self.slots.is_empty(), ..RecvOutcome::default() };
        if let Some(drops) = self.arrays.last_drops() {
            self.drops.read(drops);
        }
        let now = Instant::now();
        if self.sampler.due(now) {
            if let Some(drops) = sys::drops_now(&self.socket) {
                self.drops.read(drops);
            }
            outcome.congestion = self.drops.total().and_then(|total| self.sampler.sample(now, total));
        }
        outcome.kernel_drops = self.drops.total();
        for (slot, &received) in self.slots.drain(..got).zip(&self.received) {
            outcome.datagrams += received.datagrams();
            outcome.bytes += received.len;
            self.returned.extend(deliver(slot, received));
        }
        self.slots.append(&mut self.returned);
        outcome
    }
}

impl<S> Receiver<S> {
    /// The address that datagrams come to.
    ///
    /// # Errors
    /// [`Error::Open`] where the system cannot say.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        setup::local_addr(&self.socket)
    }

    /// The receive buffer that the kernel granted.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Whether the kernel dropped datagrams within the last second, as sampled by [`recv`](Self::recv).
    pub fn is_dropping(&self) -> bool {
        self.sampler.dropping()
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// For how long [`recv`](Self::recv) waits.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Another handle on the same socket, to answer on it. It does not block.
    ///
    /// # Errors
    /// What the system says where it has no more handles.
    pub fn try_clone_socket(&self) -> io::Result<UdpSocket> {
        Ok(self.socket.try_clone()?.into())
    }
}

impl Received {
    /// Datagrams in the slot: at least one, which may be empty.
    #[inline]
    pub fn datagrams(&self) -> usize {
        if self.segment_bytes == 0 { 1 } else { self.len.div_ceil(self.segment_bytes).max(1) }
    }

    /// Where each datagram lies in the slot.
    #[inline]
    pub fn segments(&self) -> Segments {
        Segments { at: 0, len: self.len, segment_bytes: self.segment_bytes, done: false }
    }
}

impl Iterator for Segments {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        if self.done {
            return None;
        }
        let rest = self.len - self.at;
        let step = if self.segment_bytes == 0 { rest } else { self.segment_bytes.min(rest) };
        let range = self.at..self.at + step;
        self.at = range.end;
        self.done = self.at == self.len;
        Some(range)
    }
}

/// While the caller's pool is empty.
const STARVED_PAUSE: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn received(len: usize, segment_bytes: usize) -> Received {
        Received { len, segment_bytes, from: ([0; 4], 0).into(), truncated: false, timestamp: None }
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn segments_cover_the_slot() {
        for (len, segment, expected) in [
            (3_000, 1_400, vec![0..1_400, 1_400..2_800, 2_800..3_000]),
            (2_800, 1_400, vec![0..1_400, 1_400..2_800]),
            (7, 7, vec![0..7]),
            (0, 0, vec![0..0]),
        ] {
            let slot = received(len, segment);
            assert_eq!(slot.segments().collect::<Vec<_>>(), expected);
            assert_eq!(slot.datagrams(), expected.len());
        }
    }
}
