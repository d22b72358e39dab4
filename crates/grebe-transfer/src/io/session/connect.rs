//! How two ends connect: one asks at all addresses of a ticket, the other answers a peer that proves the ticket's key.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, sync_channel};
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

/// The address to bind for asking at `addresses`. One socket has one address family: that of the first address.
pub(super) fn local_for(addresses: &[SocketAddr]) -> SocketAddr {
    if addresses.first().is_none_or(SocketAddr::is_ipv4) {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    }
}

/// How one end asks the other.
pub(super) struct Asking<'a> {
    pub(super) role: Role,
    /// For how long an answer is waited for.
    pub(super) within: Duration,
    pub(super) cancel: &'a Cancel,
    pub(super) notify: fn(Notice),
}

/// Asks at all `addresses` of the ticket; the first one that answers is the peer. Where UDP brings no answer, TCP is tried too.
pub(super) fn ask(
    socket: &UdpSocket,
    ticket: &Ticket,
    addresses: &[SocketAddr],
    asking: &Asking<'_>,
) -> Result<Connected> {
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
            let same_family = addresses.iter().filter(|at| at.is_ipv4() == first.is_ipv4());
            for address in relay.iter().chain(same_family) {
                // An address that cannot be reached is one that does not answer.
                let _ = socket.send_to(initiator.datagram(), address);
            }
            asked += 1;
            next = now + ASK_EVERY * asked.min(4);
        }
        // A wait that fails is a short one.
        let _ = wait_readable(socket, (next - now).min(LOOK_EVERY));
        if let Some((session, peer)) = read_reply(socket, &mut initiator) {
            if Some(peer) == relay {
                (asking.notify)(Notice::OverTcp);
            }
            // After several questions it is not known which one was answered.
            let rtt = (asked == 1).then(|| start.elapsed());
            return Ok(Connected { session, peer, rtt });
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
                (answered, answered_at) = (answered + 1, Instant::now());
            } else if let Ok((session, ..)) = responder.on_sealed(datagram) {
                let rtt = (answered == 1).then(|| answered_at.elapsed());
                return Ok(Connected { session, peer, rtt });
            }
        }
    }
}

/// For how long only UDP is tried.
const UDP_ALONE: Duration = Duration::from_secs(2);

const ASK_EVERY: Duration = Duration::from_millis(500);

/// How often an end looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
