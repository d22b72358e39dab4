//! Receiving side.

mod drops;
mod wait;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::Socket;

pub use self::drops::Congestion;
use self::drops::{DropCounter, Sampler};
use self::wait::{Wait, Waiting};
use crate::error::{Error, Result};
use crate::options::{Granted, Options};
use crate::received::Received;
use crate::side::Side;
use crate::{socket, sys};

/// Receives datagrams in batches into buffers (`S`) of the caller.
///
/// A slot is any buffer. With GRO it should hold 65,535 bytes, because one kernel buffer brings many
/// datagrams. A filled slot moves to the caller and is replaced from the caller's pool, so nothing is copied
/// or allocated.
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

/// Result of one call of [`Receiver::recv`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecvOutcome {
    /// Datagrams delivered. 0: timeout, or a spurious wake-up.
    pub datagrams: usize,
    /// Slots delivered.
    pub slots: usize,
    /// Bytes delivered.
    pub bytes: usize,
    /// Kernel buffers dropped since the socket was opened because the receive buffer was full; with GRO one
    /// buffer may be many datagrams. `None` if the platform does not count.
    pub kernel_drops: Option<u64>,
    /// Start or end of dropping, as sampled once per second.
    pub congestion: Option<Congestion>,
    /// No slot was free, because the caller's pool was empty.
    pub starved: bool,
    /// Time spent waiting for datagrams.
    pub waited: Duration,
}

impl<S: AsMut<[u8]>> Receiver<S> {
    /// Binds a receiver at `address`, and joins a multicast group.
    ///
    /// # Errors
    /// [`Error::Open`] if the address cannot be bound or the group not joined. A smaller buffer or a missing
    /// drop counter is not an error: see [`granted`](Self::granted) and [`RecvOutcome::kernel_drops`].
    pub fn bind(address: SocketAddr, options: &Options) -> Result<Self> {
        let socket = socket::open(address, options)?;
        // Before binding, so that the first datagrams find the whole buffer and the counter.
        let granted =
            socket::ask_for_buffer(&socket, Side::Receive, options.recv_buffer_bytes, options.force_buffers);
        let counted = sys::enable_drop_counter(&socket);
        let baseline = if counted { sys::drops_now(&socket) } else { None };
        if options.timestamps {
            sys::enable_timestamps(&socket);
        }
        if options.batch && options.gro {
            sys::enable_gro(&socket);
        }
        if let SocketAddr::V6(every) = address
            && every.ip().is_unspecified()
        {
            // The unspecified address also covers IPv4, whatever this system's default is.
            let either = socket.set_only_v6(false);
            either.map_err(|source| Error::Open { action: "open a UDP socket for", address, source })?;
        }
        let at = socket::bind_address(address);
        socket.bind(&at.into()).map_err(|source| Error::Open { action: "bind", address: at, source })?;
        if address.ip().is_multicast() {
            socket::join(&socket, address.ip(), options.multicast_interface)
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

    /// Limits reception to datagrams of `peer`.
    ///
    /// # Errors
    /// [`Error::Open`] without a route to `peer`.
    pub fn connect(&self, peer: SocketAddr) -> Result<()> {
        let connected = self.socket.connect(&peer.into());
        connected.map_err(|source| Error::Open { action: "connect to", address: peer, source })
    }

    /// Waits for datagrams, fills slots, and moves each filled slot out.
    ///
    /// First calls `refill` for missing slots, until all are present or it has none. With fewer slots it
    /// receives fewer; with none the outcome is `starved`. `deliver` gets each filled slot in order of
    /// arrival, and may return it (or another one) at once. Returns after the first batch, or after
    /// [`Options::recv_timeout`] without a datagram.
    ///
    /// # Errors
    /// [`Error::Receive`] if the system refuses. Retries interruptions and stale errors of connected sockets.
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
                // Keeps a looping caller from spinning while its pool is empty.
                std::thread::sleep(STARVED_PAUSE);
                waited = STARVED_PAUSE;
                0
            }
        };
        Ok(RecvOutcome { waited, ..self.hand_out(got, deliver) })
    }

    /// Like [`recv`](Self::recv), without waiting: only available datagrams.
    ///
    /// # Errors
    /// [`Error::Receive`] if the system refuses.
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

    /// Number of messages received after waiting; 0 after the timeout.
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
                    let ready = sys::wait_readable([&self.socket], left)
                        .map_err(|source| Error::Receive { source })?;
                    let woken = Instant::now();
                    *waited += woken - now;
                    if ready {
                        self.waiting.woke(woken);
                    }
                }
            }
        }
    }

    /// Number of available messages; `None` if there are none.
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
                    // Left by an earlier datagram of a connected socket; this call has cleared it.
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
        // Fills the last used slots next, so that a slow stream stays in warm memory.
        self.returned.append(&mut self.slots);
        std::mem::swap(&mut self.slots, &mut self.returned);
        outcome
    }
}

impl<S> Receiver<S> {
    /// Local address of the socket.
    ///
    /// # Errors
    /// [`Error::Open`] if the system cannot provide it.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        socket::local_addr(&self.socket)
    }

    /// Receive buffer granted by the kernel.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Sets the timeout of [`recv`](Self::recv).
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Second, non-blocking handle of the socket, for answers.
    ///
    /// # Errors
    /// System error if it has no more handles.
    pub fn try_clone_socket(&self) -> io::Result<UdpSocket> {
        Ok(self.socket.try_clone()?.into())
    }
}

/// Pause while the caller's pool is empty.
const STARVED_PAUSE: Duration = Duration::from_micros(100);
