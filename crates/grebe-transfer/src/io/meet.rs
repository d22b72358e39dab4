//! How two ends find each other: one asks all addresses of a ticket, the other answers whoever proves the key.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use crate::io::{Cancel, Notice, tunnel, unix_s};
use crate::proto::handshake::{Initiator, REPLY_BYTES, Responder, Role, Session};
use crate::{Error, Result, Ticket};

/// A session, who is at its other end, and how far away that is, if it is known.
pub(super) struct Met {
    pub session: Session,
    pub peer: SocketAddr,
    pub rtt: Option<Duration>,
}

/// The address to bind for asking those of a ticket. One socket speaks one family: the first address says which.
pub(super) fn local_for(ticket: &Ticket) -> Result<SocketAddr> {
    let first = ticket.addresses.first().ok_or(Error::Ticket { what: "it has no address" })?;
    Ok(if first.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() })
}

/// Asks all addresses of the ticket; who answers first is the peer. Where UDP brings no answer, TCP is tried beside it.
///
/// # Errors
/// [`Error::Expired`], [`Error::NoAnswer`], [`Error::Cancelled`].
pub(super) fn ask(
    socket: &UdpSocket,
    ticket: &Ticket,
    role: Role,
    within: Duration,
    cancel: &Cancel,
    notify: fn(Notice),
) -> Result<Met> {
    let mut initiator = Initiator::new(&ticket.key, role)?;
    let first = *ticket.addresses.first().ok_or(Error::Ticket { what: "it has no address" })?;
    let start = Instant::now();
    let (mut asked, mut next) = (0_u32, start);
    let mut over_tcp = None;
    let mut tunnel = None;
    loop {
        let now = Instant::now();
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if now - start > within {
            if unix_s() >= ticket.expires_unix_s {
                return Err(Error::Ticket { what: "its time is over" });
            }
            return Err(Error::NoAnswer { peer: first, waited: within });
        }
        if over_tcp.is_none() && now - start > UDP_ALONE {
            notify(Notice::NoUdp { peer: first });
            over_tcp = Some(dial_beside(ticket.addresses.clone(), within));
        }
        if tunnel.is_none()
            && let Some(here) = over_tcp.as_ref().and_then(|dialled| dialled.try_recv().ok())
        {
            (tunnel, next) = (Some(here), now);
        }
        if now >= next {
            if let Some(here) = tunnel {
                let _ = socket.send_to(initiator.datagram(), here);
            }
            for address in ticket.addresses.iter().filter(|address| address.is_ipv4() == first.is_ipv4()) {
                // An address that cannot be reached is one that does not answer.
                let _ = socket.send_to(initiator.datagram(), address);
            }
            asked += 1;
            next = now + ASK_EVERY * asked.min(4);
        }
        wait_readable(socket, (next - now).min(LOOK_EVERY));
        // Where the kernel joins datagrams, two replies come as one.
        let mut reply = [0; REPLY_BYTES + 1];
        while let Ok((length, peer)) = socket.recv_from(&mut reply) {
            if let Ok(session) = initiator.on_reply(&reply[..length.min(REPLY_BYTES)]) {
                // Which of several questions was answered is not known.
                let rtt = (asked == 1).then(|| start.elapsed());
                if Some(peer) == tunnel {
                    notify(Notice::OverTcp);
                }
                return Ok(Met { session, peer, rtt });
            }
        }
    }
}

/// Connects over TCP on a thread of its own; the address to ask comes on the channel.
fn dial_beside(addresses: Vec<SocketAddr>, within: Duration) -> Receiver<SocketAddr> {
    let (tell, dialled) = sync_channel(1);
    std::thread::spawn(move || {
        if let Some(here) = tunnel::dial(&addresses, within) {
            let _ = tell.send(here);
        }
    });
    dialled
}

/// Waits for one who proves the key and wants to receive.
///
/// # Errors
/// [`Error::Expired`], [`Error::Cancelled`].
pub(super) fn answer(socket: &UdpSocket, ticket: &Ticket, role: Role, cancel: &Cancel) -> Result<Met> {
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
        wait_readable(socket, LOOK_EVERY);
        while let Ok((length, peer)) = socket.recv_from(&mut datagram) {
            let datagram = &mut datagram[..length];
            // A stranger gets no answer.
            if let Ok(reply) = responder.on_init(datagram) {
                let _ = socket.send_to(&reply, peer);
                (answered, answered_at) = (answered + 1, Instant::now());
            } else if let Ok((session, ..)) = responder.on_sealed(datagram) {
                let rtt = (answered == 1).then(|| answered_at.elapsed());
                return Ok(Met { session, peer, rtt });
            }
        }
    }
}

/// Waits until there is something to read, or for `time`.
#[cfg(unix)]
pub(super) fn wait_readable(socket: &UdpSocket, time: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ };
    // An interrupted wait is a short one.
    let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout));
}

#[cfg(not(unix))]
pub(super) fn wait_readable(_: &UdpSocket, time: Duration) {
    std::thread::sleep(time.min(Duration::from_millis(1)));
}

/// For how long only UDP is tried.
const UDP_ALONE: Duration = Duration::from_secs(2);

const ASK_EVERY: Duration = Duration::from_millis(500);

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
