//! How two ends connect: one asks at all addresses of a ticket, the other answers a peer that proves the ticket's key.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use grebe_datagram::wait_readable;
use grebe_packet::{Cancel, Key, Purpose, Ticket};

use super::{Notice, tcp_relay};
use crate::error::{Error, Result};
use crate::io::unix_s;
use crate::proto::handshake::{Initiator, REPLY_BYTES, Responder, Role, Session};

/// A session, its peer, and the round trip to the peer if it is known.
pub(super) struct Connected {
    pub(super) session: Session,
    pub(super) peer: SocketAddr,
    pub(super) rtt: Option<Duration>,
    /// Tells those who come too late with the ticket.
    pub(super) responder: Option<Responder>,
}

/// A ticket with a new key, for a listener at `bound`.
pub(super) fn new_ticket(bound: SocketAddr, lifetime: Duration) -> Result<Ticket> {
    Ok(Ticket {
        purpose: Purpose::Transfer,
        addresses: vec![bound.into()],
        expires_unix_s: unix_s().saturating_add(lifetime.as_secs()),
        key: Key::random()?,
    })
}

/// The addresses of a ticket, names looked up.
pub(super) fn addresses_of(ticket: &Ticket) -> Result<Vec<SocketAddr>> {
    let found: Vec<SocketAddr> =
        ticket.addresses.iter().filter_map(|address| address.to_socket_addrs().ok()).flatten().collect();
    if found.is_empty() {
        Err(Error::Ticket { what: "it has no address that can be found" })
    } else {
        Ok(found)
    }
}

/// The addresses to bind for asking at `addresses`: a socket has one address family, and the best one is not known yet.
pub(super) fn locals_for(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut locals: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let local = SocketAddr::new(any, 0);
        if !locals.contains(&local) {
            locals.push(local);
        }
    }
    locals
}

/// Binds a socket for each of `locals`; a system may have none of a family.
///
/// # Errors
/// That of the last one where none can be bound.
pub(super) fn bind_each<T>(locals: &[SocketAddr], bind: impl Fn(SocketAddr) -> Result<T>) -> Result<Vec<T>> {
    let (mut bound, mut failure) = (Vec::new(), Error::Ticket { what: "it has no address" });
    for local in locals {
        match bind(*local) {
            Ok(socket) => bound.push(socket),
            Err(error) => failure = error,
        }
    }
    if bound.is_empty() { Err(failure) } else { Ok(bound) }
}

/// How one end asks the other.
pub(super) struct Asking<'a> {
    pub(super) role: Role,
    /// For how long an answer is waited for.
    pub(super) within: Duration,
    pub(super) cancel: &'a Cancel,
    pub(super) notify: fn(Notice),
}

/// Asks at all `addresses` of the ticket; the first one that answers is the peer, and its socket's number is returned too. Where UDP brings
/// no answer, TCP is tried as well.
pub(super) fn ask(
    sockets: &[&UdpSocket],
    ticket: &Ticket,
    addresses: &[SocketAddr],
    asking: &Asking<'_>,
) -> Result<(Connected, usize)> {
    let mut initiator = Initiator::new(&ticket.key, asking.role)?;
    let first = *addresses.first().ok_or(Error::Ticket { what: "it has no address" })?;
    let start = Instant::now();
    let (mut asked, mut next) = (0_u32, start);
    let mut dialled = None;
    let mut relay = None;
    loop {
        let now = Instant::now();
        check_time(ticket, first, now - start, asking)?;
        if dialled.is_none() && now - start > UDP_ALONE {
            (asking.notify)(Notice::NoUdp { peer: first });
            dialled = Some(dial_beside(addresses.to_vec(), asking.within));
        }
        if relay.is_none()
            && let Some(here) = dialled.as_ref().and_then(|dialled| dialled.try_recv().ok())
        {
            (relay, next) = (Some(here), now);
        }
        if now >= next {
            for address in relay.iter().chain(addresses) {
                for socket in sockets {
                    // An address that cannot be reached, or is of another family, is one that does not answer.
                    let _ = socket.send_to(initiator.datagram(), address);
                }
            }
            asked += 1;
            next = now + if asked == 1 { ASK_TWICE_AFTER } else { ASK_EVERY * (asked - 1).min(4) };
        }
        let wait = if sockets.len() == 1 { LOOK_EVERY } else { LOOK_AT_EACH };
        for (number, socket) in sockets.iter().enumerate() {
            // A wait that fails is a short one.
            let _ = wait_readable(*socket, (next - now).min(wait));
            if let Some((session, peer)) = read_reply(socket, &mut initiator) {
                if Some(peer) == relay {
                    (asking.notify)(Notice::OverTcp);
                }
                // After several questions it is not known which one was answered, and the second follows the first at once.
                let rtt = (asked <= 2).then(|| start.elapsed());
                return Ok((Connected { session, peer, rtt, responder: None }, number));
            }
        }
    }
}

fn check_time(ticket: &Ticket, first: SocketAddr, waited: Duration, asking: &Asking<'_>) -> Result<()> {
    if asking.cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    if waited <= asking.within {
        return Ok(());
    }
    if unix_s() >= ticket.expires_unix_s {
        return Err(Error::Ticket { what: "its time is over" });
    }
    Err(Error::NoAnswer { peer: first, waited: asking.within })
}

/// The session of the first true reply, and its sender.
fn read_reply(socket: &UdpSocket, initiator: &mut Initiator) -> Option<(Session, SocketAddr)> {
    // Where the kernel joins datagrams, two replies arrive as one.
    let mut reply = [0; REPLY_BYTES + 1];
    while let Ok((length, peer)) = socket.recv_from(&mut reply) {
        if let Ok(session) = initiator.on_reply(&reply[..length.min(REPLY_BYTES)]) {
            return Some((session, peer));
        }
    }
    None
}

/// Connects over TCP on a thread of its own; the address to ask arrives on the channel.
fn dial_beside(addresses: Vec<SocketAddr>, within: Duration) -> Receiver<SocketAddr> {
    let (tell, dialled) = sync_channel(1);
    std::thread::spawn(move || {
        if let Some(here) = tcp_relay::dial(&addresses, within) {
            let _ = tell.send(here);
        }
    });
    dialled
}

/// Waits for a peer that proves the key and wants `role`.
pub(super) fn answer(socket: &UdpSocket, ticket: &Ticket, role: Role, cancel: &Cancel) -> Result<Connected> {
    let mut responder = Responder::new(ticket.key.clone(), role);
    let (mut answered, mut answered_at) = (0_u32, Instant::now());
    let mut datagram = [0; 2_048];
    loop {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if unix_s() >= ticket.expires_unix_s {
            return Err(Error::Expired);
        }
        // A wait that fails is a short one.
        let _ = wait_readable(socket, LOOK_EVERY);
        while let Ok((length, peer)) = socket.recv_from(&mut datagram) {
            let datagram = &mut datagram[..length];
            // A peer without the key gets no answer.
            if let Ok(reply) = responder.on_init(datagram) {
                let _ = socket.send_to(&reply, peer);
                if answered == 0 {
                    answered_at = Instant::now();
                }
                answered += 1;
            } else if let Ok((session, ..)) = responder.on_sealed(datagram) {
                let rtt = (answered <= 2).then(|| answered_at.elapsed());
                return Ok(Connected { session, peer, rtt, responder: Some(responder) });
            }
        }
    }
}

/// Another way to a peer that has fallen silent, for the end that has the ticket.
pub(super) struct Fallback {
    addresses: Vec<SocketAddr>,
    dialled: Option<Receiver<SocketAddr>>,
    next_us: u64,
}

impl Fallback {
    /// `addresses` are those of the ticket; none: this end made it, and waits for the other to come.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, dialled: None, next_us: 0 }
    }

    /// The address on this host that leads to the peer over TCP, where nothing was heard for long and TCP passes.
    pub(super) fn poll(&mut self, now_us: u64, heard_us: u64) -> Option<SocketAddr> {
        let is_silent = now_us.saturating_sub(heard_us) > SILENT_US;
        if is_silent && self.dialled.is_none() && now_us >= self.next_us && !self.addresses.is_empty() {
            self.dialled = Some(dial_beside(self.addresses.clone(), DIAL_WITHIN));
            self.next_us = now_us + DIAL_EVERY_US;
        }
        match self.dialled.as_ref()?.try_recv() {
            Err(TryRecvError::Empty) => None,
            // Meanwhile UDP may pass again.
            found => {
                self.dialled = None;
                found.ok().filter(|_| is_silent)
            }
        }
    }
}

/// Whether packets of the session that come from another address show where the peer is now. Only the same host, or this one's own relay:
/// whoever holds back packets and sends them from elsewhere shall not choose whom we send to.
pub(super) fn is_moved(peer: SocketAddr, from: SocketAddr, local: SocketAddr) -> bool {
    from != peer && (from.ip() == peer.ip() || from.ip().is_loopback() || from.ip() == local.ip())
}

/// After so long without a word, another way is looked for.
pub(super) const SILENT_US: u64 = 5_000_000;

const DIAL_EVERY_US: u64 = 10_000_000;
const DIAL_WITHIN: Duration = Duration::from_secs(10);

/// For how long only UDP is tried.
const UDP_ALONE: Duration = Duration::from_secs(2);

const ASK_EVERY: Duration = Duration::from_millis(500);

/// The first question is sent twice at once: one of the two may be lost, and half a second with it.
const ASK_TWICE_AFTER: Duration = Duration::from_millis(10);

/// With several sockets each is looked at so long.
const LOOK_AT_EACH: Duration = Duration::from_millis(1);

/// How often an end looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
