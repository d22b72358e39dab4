//! Sending side.

mod flush;
mod gso;
mod socket;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::Socket;

pub use self::flush::SendCounters;
use self::flush::{Flush, Patience, Progress};
pub use self::gso::Gso;
use self::socket::SendSocket;
use crate::burst::{
    Burst, Coalesce, Full, MAX_BURST_DATAGRAMS, MAX_DATAGRAM_BYTES, MAX_MESSAGES, MAX_SEGMENTS,
};
use crate::error::{Error, Result};
use crate::options::{Granted, Options};
use crate::receive::Receiver;
use crate::side::Side;
use crate::sys;

/// Sends datagrams in batches. Owns one socket and the arrays of its system calls; allocates nothing after
/// its creation.
#[derive(Debug)]
pub struct Sender {
    socket: SendSocket,
    /// Memory of the next batch.
    burst: Burst<'static>,
    gso: Gso,
    rule: Coalesce,
    burst_datagrams: usize,
    copy_below_bytes: usize,
    patience: Patience,
    granted: Granted,
    counters: SendCounters,
    outage: Option<io::Error>,
}

/// Datagrams for one system call. Their bytes stay in place until [`flush`](SendBatch::flush). Dropping the
/// batch flushes it too, and counts failures in [`SendCounters::unsent`].
#[derive(Debug)]
pub struct SendBatch<'s, 'd> {
    sender: &'s mut Sender,
    burst: Burst<'d>,
    progress: Progress,
}

impl Sender {
    /// Makes a sender to one destination. Connected sockets are faster (11 % with `sendmmsg` at 1400 bytes).
    ///
    /// # Errors
    /// [`Error::Open`] if the socket cannot be opened or a route to `peer` is missing.
    pub fn connect(peer: SocketAddr, options: &Options) -> Result<Self> {
        let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let mut sender = Self::open(SocketAddr::new(any, 0), options)?;
        sender.socket.socket.connect(&peer.into()).map_err(|source| Error::Open {
            action: "connect to",
            address: peer,
            source,
        })?;
        sender.set_peer(peer);
        Ok(sender)
    }

    /// Makes a sender from `local` (port 0: any) with a destination per datagram: [`SendBatch::push_to`].
    ///
    /// # Errors
    /// [`Error::Open`] if the socket cannot be opened or bound.
    pub fn unconnected(local: SocketAddr, options: &Options) -> Result<Self> {
        let sender = Self::open(local, options)?;
        if let SocketAddr::V6(every) = local
            && every.ip().is_unspecified()
        {
            // The unspecified address also covers IPv4, whatever this system's default is.
            let either = sender.socket.socket.set_only_v6(false);
            let failed = |source| Error::Open { action: "open a UDP socket for", address: local, source };
            either.map_err(failed)?;
        }
        sender.socket.socket.bind(&local.into()).map_err(|source| Error::Open {
            action: "bind",
            address: local,
            source,
        })?;
        Ok(sender)
    }

    /// Makes a sender on a receiver's socket, so that both directions share one port. Its destination is the
    /// peer of a connected receiver. Otherwise each datagram has its own: [`SendBatch::push_to`].
    ///
    /// ```
    /// use grebe_datagram::{Options, Receiver, Sender};
    /// # fn main() -> Result<(), grebe_datagram::Error> {
    /// let options = Options::default();
    /// let receiver: Receiver<Vec<u8>> = Receiver::bind("127.0.0.1:0".parse().unwrap(), &options)?;
    /// let sender = Sender::on(&receiver, &options)?;
    /// assert_eq!(sender.local_addr()?, receiver.local_addr()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Open`] if the system has no more handles.
    pub fn on<S>(receiver: &Receiver<S>, options: &Options) -> Result<Self> {
        let local = receiver.local_addr()?;
        let socket = receiver.socket().try_clone().map_err(|source| Error::Open {
            action: "share the socket of",
            address: local,
            source,
        })?;
        let peer = socket.peer_addr().ok().and_then(|peer| peer.as_socket());
        let mut sender = Self::with(socket, local, options)?;
        if let Some(peer) = peer {
            sender.set_peer(peer);
        }
        Ok(sender)
    }

    /// Starts an empty batch. It borrows pushed data until it is flushed or dropped.
    pub fn batch<'d>(&mut self) -> SendBatch<'_, 'd> {
        let burst = std::mem::replace(&mut self.burst, Burst::hollow()).recycle();
        SendBatch { sender: self, burst, progress: Progress::default() }
    }

    /// Counters so far.
    pub fn counters(&self) -> SendCounters {
        self.counters
    }

    /// Network error of the last datagram in [`SendCounters::unsent`], if any.
    pub fn outage(&self) -> Option<&io::Error> {
        self.outage.as_ref()
    }

    /// Connected peer.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.socket.peer
    }

    /// State of segmentation offload.
    pub fn gso(&self) -> Gso {
        self.gso
    }

    /// Send buffer granted by the kernel.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Local address of the socket.
    ///
    /// # Errors
    /// [`Error::Open`] if the system cannot provide it.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        crate::socket::local_addr(&self.socket.socket)
    }

    /// Payload of one packet to the connected peer, by the present MTU of the route. Longer datagrams are
    /// sent in fragments and without GSO.
    pub fn path_payload_bytes(&self) -> Option<usize> {
        self.socket.path_payload_bytes()
    }

    /// Second, non-blocking handle of the socket, for reading answers.
    ///
    /// # Errors
    /// System error if it has no more handles.
    pub fn try_clone_socket(&self) -> io::Result<UdpSocket> {
        Ok(self.socket.socket.try_clone()?.into())
    }

    fn open(local: SocketAddr, options: &Options) -> Result<Self> {
        Self::with(crate::socket::open(local, options)?, local, options)
    }

    fn with(socket: Socket, local: SocketAddr, options: &Options) -> Result<Self> {
        let granted = crate::socket::ask_for_buffer(
            &socket,
            Side::Send,
            options.send_buffer_bytes,
            options.force_buffers,
        );
        crate::socket::prepare_multicast_send(&socket, local.is_ipv4(), options).map_err(|source| {
            Error::Open { action: "set the multicast options of", address: local, source }
        })?;
        if let Some(hops) = options.unicast_hops {
            crate::socket::set_unicast_hops(&socket, local.is_ipv4(), hops)
                .map_err(|source| Error::Open { action: "limit the hops of", address: local, source })?;
        }
        if options.dont_fragment {
            // Systems without this setting send datagrams without it.
            let _ = sys::set_dont_fragment(&socket, local.is_ipv4());
        }
        let gso = options.batch && options.gso && !gso_is_switched_off() && sys::has_gso(&socket);
        Ok(Self {
            socket: SendSocket {
                socket,
                peer: None,
                arrays: options.batch.then(|| sys::SendArrays::new(MAX_MESSAGES)),
                has_sent_several: false,
            },
            burst: Burst::new(),
            gso: if gso { Gso::Probe } else { Gso::Disabled },
            rule: Coalesce { max_segments: MAX_SEGMENTS, max_segment_bytes: MAX_DATAGRAM_BYTES },
            burst_datagrams: options.burst.clamp(1, MAX_BURST_DATAGRAMS),
            copy_below_bytes: options.copy_below_bytes,
            patience: Patience::new(options.send_timeout, options.leave_out_stalled),
            granted,
            counters: SendCounters::default(),
            outage: None,
        })
    }

    fn set_peer(&mut self, peer: SocketAddr) {
        self.socket.peer = Some(peer);
        self.rule.max_segment_bytes = self.path_payload_bytes().unwrap_or(MAX_DATAGRAM_BYTES);
    }

    fn rule(&self) -> Coalesce {
        if self.gso.usable() { self.rule } else { Coalesce { max_segments: 1, ..self.rule } }
    }
}

impl<'d> SendBatch<'_, 'd> {
    /// Adds the datagram `header ++ payload` for the connected peer. Copies only datagrams up to
    /// [`Options::copy_below_bytes`], which the kernel takes faster from one place. Flushes a full batch.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::NoDestination`]; those of [`flush`](Self::flush).
    #[inline]
    pub fn push(&mut self, header: &'d [u8], payload: &'d [u8]) -> Result<()> {
        self.check_peer()?;
        self.add(None, header, payload)
    }

    /// Like [`push`](Self::push), with a destination.
    ///
    /// # Errors
    /// [`Error::TooLong`]; those of [`flush`](Self::flush).
    #[inline]
    pub fn push_to(&mut self, to: SocketAddr, header: &'d [u8], payload: &'d [u8]) -> Result<()> {
        self.add(Some(to), header, payload)
    }

    /// Adds a datagram by copying it, so that its memory is free at once. Counted in
    /// [`SendCounters::copies`].
    ///
    /// # Errors
    /// Those of [`push`](Self::push).
    #[inline]
    pub fn push_copied(&mut self, header: &[u8], payload: &[u8]) -> Result<()> {
        self.check_peer()?;
        check_length(header.len() + payload.len())?;
        self.copy(None, header, payload)
    }

    /// Adds contiguous datagrams of `segment_bytes` each (the last may be shorter) without copying.
    ///
    /// # Errors
    /// [`Error::EmptySegment`], [`Error::TooLong`], [`Error::NoDestination`]; those of
    /// [`flush`](Self::flush).
    pub fn push_run(&mut self, run: &'d [u8], segment_bytes: usize) -> Result<()> {
        self.check_peer()?;
        self.add_run(None, run, segment_bytes)
    }

    /// Like [`push_run`](Self::push_run), with a destination.
    ///
    /// # Errors
    /// [`Error::EmptySegment`], [`Error::TooLong`]; those of [`flush`](Self::flush).
    pub fn push_run_to(&mut self, to: SocketAddr, run: &'d [u8], segment_bytes: usize) -> Result<()> {
        self.add_run(Some(to), run, segment_bytes)
    }

    /// Datagrams waiting for the flush.
    pub fn pending(&self) -> usize {
        self.burst.datagrams()
    }

    /// Passes everything to the kernel, and waits for room if necessary. Skips datagrams that the network
    /// rejects for now (link down, no route, firewall) and counts them in [`SendCounters::unsent`];
    /// [`Sender::outage`] has the reason.
    ///
    /// # Errors
    /// [`Error::Stalled`] after [`Options::send_timeout`] without room: nothing is lost, flush again. Not
    /// with [`Options::leave_out_stalled`].
    /// [`Error::Send`] for a datagram that is refused permanently: it is skipped and counted, flush again for
    /// the others.
    #[inline(never)]
    pub fn flush(&mut self) -> Result<()> {
        let Sender { socket, gso, counters, patience, outage, rule, .. } = &mut *self.sender;
        let (burst, progress) = (&self.burst, &mut self.progress);
        let outcome = Flush { burst, progress, gso, kernel: socket, counters, patience, outage }.run();
        let learned = std::mem::take(&mut self.progress.learned);
        rule.max_segments = learned.max_segments.unwrap_or(rule.max_segments);
        rule.max_segment_bytes = learned.max_segment_bytes.unwrap_or(rule.max_segment_bytes);
        outcome?;
        self.burst.clear();
        self.progress = Progress::default();
        Ok(())
    }

    #[inline]
    fn add(&mut self, to: Option<SocketAddr>, header: &'d [u8], payload: &'d [u8]) -> Result<()> {
        let bytes = header.len() + payload.len();
        check_length(bytes)?;
        if bytes <= self.sender.copy_below_bytes && self.sender.gso.usable() {
            return self.copy(to, header, payload);
        }
        while self.burst.push(to, header, payload, self.sender.rule()) == Err(Full) {
            self.flush()?;
        }
        self.flush_at_burst()
    }

    #[inline]
    fn copy(&mut self, to: Option<SocketAddr>, header: &[u8], payload: &[u8]) -> Result<()> {
        while self.burst.push_copied(to, header, payload, self.sender.rule()) == Err(Full) {
            self.flush()?;
        }
        self.sender.counters.copies += 1;
        self.flush_at_burst()
    }

    fn add_run(&mut self, to: Option<SocketAddr>, mut run: &'d [u8], segment_bytes: usize) -> Result<()> {
        if segment_bytes == 0 {
            return Err(Error::EmptySegment);
        }
        check_length(segment_bytes.min(run.len()))?;
        while !run.is_empty() {
            let most = self.sender.burst_datagrams.saturating_sub(self.burst.datagrams()).max(1);
            match self.burst.push_run(to, run, segment_bytes, most, self.sender.rule()) {
                Ok(taken) => {
                    run = &run[taken..];
                    self.flush_at_burst()?;
                }
                Err(Full) => self.flush()?,
            }
        }
        Ok(())
    }

    #[inline]
    fn flush_at_burst(&mut self) -> Result<()> {
        if self.burst.datagrams() >= self.sender.burst_datagrams { self.flush() } else { Ok(()) }
    }

    #[inline]
    fn check_peer(&self) -> Result<()> {
        if self.sender.socket.peer.is_some() { Ok(()) } else { Err(Error::NoDestination) }
    }
}

impl Drop for SendBatch<'_, '_> {
    fn drop(&mut self) {
        let sent_before = self.sender.counters.datagrams + self.sender.counters.unsent;
        // An interrupted flush has settled the others.
        let pending = (self.burst.datagrams() - self.progress.settled(&self.burst)) as u64;
        // An immediate error would repeat for ever, so the rest gets one try.
        if pending > 0 && self.flush().is_err() {
            let settled = self.sender.counters.datagrams + self.sender.counters.unsent - sent_before;
            self.sender.counters.unsent += pending.saturating_sub(settled);
        }
        self.sender.burst = std::mem::replace(&mut self.burst, Burst::hollow()).recycle();
    }
}

fn check_length(bytes: usize) -> Result<()> {
    let is_too_long = bytes > MAX_DATAGRAM_BYTES;
    if is_too_long { Err(Error::TooLong { bytes, limit: MAX_DATAGRAM_BYTES }) } else { Ok(()) }
}

fn gso_is_switched_off() -> bool {
    std::env::var_os("GREBE_NO_GSO").is_some_and(|value| !value.is_empty() && value != "0")
}
