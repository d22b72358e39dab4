//! Asks a peer at all addresses of its ticket, over UDP and shortly after over TCP, until one answers.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use grebe_datagram::wait_readable;
use grebe_packet::{Cancel, Ticket};

use super::rendezvous::Rendezvous;
use super::tcp::{self, PacketStream};
use super::{Notice, Notify, Transport};
use crate::error::{Error, Result};
use crate::io::unix_s;
use crate::proto::handshake::{Initiator, REPLY_BYTES, Session};
use crate::proto::train::{FIRST_PACKETS, HANDSHAKE_TRAIN_AFTER_US};

/// A session, its peer, and the round trip to the peer if it is known.
pub(super) struct Connected {
    pub(super) session: Session,
    pub(super) peer: SocketAddr,
    pub(super) rtt: Option<Duration>,
    /// TCP connection to the peer, if it answered over TCP.
    pub(super) tcp: Option<PacketStream>,
}

/// One end's search for its peer.
pub(super) struct Attempt<'a> {
    /// Maximum time to wait for an answer.
    pub(super) within: Duration,
    pub(super) transport: Transport,
    /// Measures the path by a train.
    pub(super) measures: bool,
    pub(super) cancel: &'a Cancel,
    pub(super) notify: &'a Notify,
}

/// Asks at all `addresses` of the ticket and those that the meeting brings, and shortly after over TCP too.
/// The first address that answers is the peer. Also returns the index of the UDP socket that reaches it.
pub(super) fn ask(
    sockets: &[&UdpSocket],
    ticket: &Ticket,
    addresses: &[SocketAddr],
    mut meeting: Option<&mut Rendezvous>,
    attempt: &Attempt<'_>,
) -> Result<(Connected, usize)> {
    let mut initiator = Initiator::new(&ticket.key)?;
    let start = Instant::now();
    let mut is_told = false;
    let mut questions: Vec<Question> = Vec::new();
    let mut dialled = None;
    let mut knocked = 0;
    let mut streams: Vec<PacketStream> = Vec::new();
    let mut by_tcp: Option<AnsweredByTcp> = None;
    let asked_by_udp = if attempt.transport == Transport::Tcp { &[] } else { sockets };
    loop {
        let now = Instant::now();
        let waited = if by_tcp.is_some() { Duration::ZERO } else { now - start };
        check_time(ticket, addresses, waited, meeting.as_deref(), attempt)?;
        if let (false, Some(first), None) = (is_told, addresses.first(), &meeting)
            && waited > UNANSWERED
        {
            is_told = true;
            (attempt.notify)(Notice::NoAnswerYet { peer: *first });
        }
        let dials = match attempt.transport {
            Transport::Any => now - start >= UDP_ALONE,
            Transport::Udp => false,
            Transport::Tcp => true,
        };
        if dialled.is_none() && dials {
            dialled = Some(tcp::dial(addresses, attempt.within));
        }
        while let Some(mut stream) = dialled.as_ref().and_then(|dialled| dialled.try_recv().ok()) {
            stream.send(initiator.datagram());
            stream.flush();
            streams.push(stream);
        }
        note_routes(&mut questions, now, addresses, meeting.as_deref());
        if let (Some(meeting), Some(socket)) = (&mut meeting, sockets.first()) {
            meeting.turn(socket);
            while let Some(from) = meeting.next_knock() {
                // A holder of the ticket may announce foreign addresses. The bound protects them from a
                // flood.
                if knocked < QUESTIONS_MAX {
                    knocked += 1;
                    let _ = socket.send_to(initiator.datagram(), from);
                }
            }
        }
        if let Some(answered) = by_tcp.take_if(|answered| now >= answered.next) {
            if answered.left == 0 || asked_by_udp.is_empty() {
                return Ok(go_by_tcp(answered, streams, sockets, meeting.as_deref(), attempt));
            }
            questions.iter_mut().for_each(|question| question.next = now);
            by_tcp =
                Some(AnsweredByTcp { left: answered.left - 1, next: now + ASK_BESIDE_TCP_EVERY, ..answered });
        }
        for question in questions.iter_mut().filter(|question| now >= question.next) {
            let is_train =
                attempt.measures && meeting.is_none() && question.is_familys && question.asked == 1;
            let places = if is_train { 1..=FIRST_PACKETS as u8 } else { 0..=0 };
            for (socket, place) in asked_by_udp.iter().flat_map(|it| places.clone().map(move |at| (it, at))) {
                // An address that is unreachable or of another family simply does not answer.
                let _ = socket.send_to(&initiator.in_train(place), question.to);
            }
            question.next = now + ASK_AFTER[question.asked.min(ASK_AFTER.len() - 1)];
            question.asked += 1;
        }
        let next = questions.iter().map(|question| question.next).min().unwrap_or(now + LOOK_EVERY);
        let wait = match (sockets.len(), streams.is_empty(), &meeting) {
            (1, true, None) => LOOK_EVERY,
            (1, true, Some(_)) => LOOK_AT_MEETING_EVERY,
            _ => LOOK_AT_EACH,
        };
        for (number, socket) in sockets.iter().enumerate() {
            // A failed wait only shortens the turn.
            let _ = wait_readable(*socket, next.saturating_duration_since(now).min(wait));
            let reply = read_reply(socket, meeting.as_deref_mut(), |reply| match &by_tcp {
                None => initiator.on_reply(reply).ok().map(Some),
                Some(_) => initiator.is_reply_again(reply).then_some(None),
            });
            let Some((session, peer)) = reply else { continue };
            if let Some(session) = session.or_else(|| by_tcp.take().map(|answered| answered.session)) {
                // After several questions nobody knows which one was answered; the second follows the first
                // at once.
                let asked = questions.iter().find(|question| question.to == peer && question.asked <= 2);
                let rtt = asked.map(|question| question.since.elapsed());
                return Ok((Connected { session, peer, rtt, tcp: None }, number));
            }
        }
        if by_tcp.is_none() {
            by_tcp = streams.iter_mut().enumerate().find_map(|(stream, answered)| {
                let session = answered.receive().and_then(|reply| initiator.on_reply(reply).ok())?;
                let peer = answered.peer()?;
                Some(AnsweredByTcp { session, peer, stream, left: ASKED_BESIDE_TCP, next: now })
            });
        }
    }
}

/// An answer that came over TCP. UDP with heavy loss may still pass, and TCP would crawl on such a path, so
/// UDP gets a little more time.
struct AnsweredByTcp {
    session: Session,
    peer: SocketAddr,
    /// Index of the stream that answered.
    stream: usize,
    /// Remaining questions over UDP, and the time of the next one.
    left: u32,
    next: Instant,
}

/// Continues on the connection that answered.
fn go_by_tcp(
    answered: AnsweredByTcp,
    mut streams: Vec<PacketStream>,
    sockets: &[&UdpSocket],
    meeting: Option<&Rendezvous>,
    attempt: &Attempt<'_>,
) -> (Connected, usize) {
    (attempt.notify)(Notice::OverTcp);
    let AnsweredByTcp { session, peer, stream, .. } = answered;
    let tcp = Some(streams.swap_remove(stream));
    let peer = meeting.and_then(|meeting| meeting.as_sent(peer)).unwrap_or(peer);
    let of_family = |socket: &&UdpSocket| socket.local_addr().is_ok_and(|it| it.is_ipv4() == peer.is_ipv4());
    let number = sockets.iter().position(of_family).unwrap_or(0);
    (Connected { session, peer, rtt: None, tcp }, number)
}

/// An address to ask.
struct Question {
    to: SocketAddr,
    /// First address of its family, and so the best one.
    is_familys: bool,
    since: Instant,
    asked: usize,
    next: Instant,
}

/// Adds addresses that are not in the list yet.
fn note_routes(
    questions: &mut Vec<Question>,
    now: Instant,
    addresses: &[SocketAddr],
    meeting: Option<&Rendezvous>,
) {
    let mut note = |to: SocketAddr| {
        if questions.len() < QUESTIONS_MAX && !questions.iter().any(|question| question.to == to) {
            let is_familys = !questions.iter().any(|question| question.to.is_ipv4() == to.is_ipv4());
            questions.push(Question { to, is_familys, since: now, asked: 0, next: now });
        }
    };
    let Some(meeting) = meeting else { return addresses.iter().copied().for_each(note) };
    addresses.iter().filter_map(|address| meeting.as_sent(*address)).for_each(&mut note);
    meeting.routes().for_each(note);
}

fn check_time(
    ticket: &Ticket,
    addresses: &[SocketAddr],
    waited: Duration,
    meeting: Option<&Rendezvous>,
    attempt: &Attempt<'_>,
) -> Result<()> {
    if attempt.cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    if waited <= attempt.within {
        return Ok(());
    }
    if unix_s() >= ticket.expires_unix_s {
        return Err(Error::Ticket { what: "its time is over" });
    }
    Err(match (meeting, addresses.first()) {
        (Some(meeting), _) => meeting.failure(),
        (None, Some(peer)) => Error::NoAnswer { peer: *peer, waited: attempt.within },
        (None, None) => Error::Ticket { what: "it has no address" },
    })
}

/// Reads replies until `is_reply` accepts one, and returns its result and sender. Passes other datagrams to
/// the meeting.
fn read_reply<T>(
    socket: &UdpSocket,
    mut meeting: Option<&mut Rendezvous>,
    mut is_reply: impl FnMut(&[u8]) -> Option<T>,
) -> Option<(T, SocketAddr)> {
    // The kernel may coalesce datagrams: two replies, or messages followed by a reply.
    let mut datagram = [0; 2_048];
    for _ in 0..AT_ONCE_MAX {
        let Ok((length, peer)) = socket.recv_from(&mut datagram) else { break };
        let taken = meeting.as_deref_mut().map_or(0, |meeting| meeting.take(peer, &datagram[..length]));
        let reply = &datagram[taken..length];
        if let Some(found) = is_reply(&reply[..reply.len().min(REPLY_BYTES)]) {
            return Some((found, peer));
        }
    }
    None
}

/// Head start of UDP. An answer within this time still beats TCP, which needs two round trips.
const UDP_ALONE: Duration = Duration::from_millis(250);

/// Questions over UDP after TCP has answered, and the wait for each answer. With 40 % loss each way, TCP
/// answers first in one of thirty sessions, and TCP alone in none of 700.
const ASKED_BESIDE_TCP: u32 = 7;
const ASK_BESIDE_TCP_EVERY: Duration = Duration::from_millis(100);

/// Time without an answer after which the user is notified.
const UNANSWERED: Duration = Duration::from_secs(2);

/// Delays between questions. The first is sent twice at once, because a single loss would cost half a second. The
/// second one may be a train.
/// The third leaves when TCP is dialled, so that a loss does not let TCP win.
///
/// Then two per second follow for a while: with 40 % loss each way, two of three questions bring no answer.
const ASK_AFTER: [Duration; 10] = [
    Duration::from_micros(HANDSHAKE_TRAIN_AFTER_US),
    Duration::from_millis(250),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_millis(500),
    Duration::from_millis(500),
    Duration::from_millis(500),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// Time per socket where there are several.
const LOOK_AT_EACH: Duration = Duration::from_millis(1);

/// Poll interval of an end that meets another one at a relay.
const LOOK_AT_MEETING_EVERY: Duration = Duration::from_millis(5);

/// Bound: a ticket's addresses, twice the other end's, and the relay's.
const QUESTIONS_MAX: usize = 64;

/// Poll interval of the cancellation flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Maximum datagrams per turn, so that a flood cannot delay cancellation.
const AT_ONCE_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use grebe_packet::Purpose;
    use grebe_relay::Via;

    use super::super::connect::{LOOK_AT_DOOR_EVERY, addresses_of, bind_to_ask, new_ticket};
    use super::*;
    use crate::proto::handshake::Responder;

    #[test]
    fn of_a_ticket_with_many_addresses_few_are_asked() {
        let addresses: Vec<_> = (1..1_000).map(|port| SocketAddr::from(([192, 0, 2, 7], port))).collect();
        let mut questions = Vec::new();
        note_routes(&mut questions, Instant::now(), &addresses, None);
        note_routes(&mut questions, Instant::now(), &addresses, None);
        assert_eq!(questions.len(), QUESTIONS_MAX);
    }

    #[test]
    fn both_families_are_asked_at_once_and_the_one_that_answers_is_the_peer() {
        let Ok(listener) = UdpSocket::bind("[::1]:0") else {
            println!("skipped: this machine has no IPv6");
            return;
        };
        listener.set_nonblocking(true).unwrap();
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        silent.set_nonblocking(true).unwrap();
        let mut ticket =
            new_ticket(Purpose::Connection, listener.local_addr().unwrap(), Duration::from_secs(60)).unwrap();
        ticket.addresses.push(silent.local_addr().unwrap().into());
        for is_v6_first in [true, false] {
            if !is_v6_first {
                ticket.addresses.reverse();
            }
            let addresses = addresses_of(&ticket, Via::Any).unwrap();
            let bind = |local| {
                let socket = UdpSocket::bind(local).unwrap();
                socket.set_nonblocking(true).unwrap();
                Ok(socket)
            };
            let sockets = bind_to_ask(&ticket, &addresses, bind).unwrap();
            assert_eq!(sockets.len(), 2, "one for each family");
            let (key, cancel) = (ticket.clone(), Cancel::default());
            let (answers, stop) = (listener.try_clone().unwrap(), cancel.clone());
            let answering = std::thread::spawn(move || {
                let mut responder = Responder::new(key.key.clone());
                let mut datagram = [0; 2_048];
                while !stop.is_cancelled() {
                    let _ = wait_readable(&answers, LOOK_AT_DOOR_EVERY);
                    while let Ok((length, peer)) = answers.recv_from(&mut datagram) {
                        if let Ok(reply) = responder.on_init(&datagram[..length], Vec::new) {
                            answers.send_to(&reply, peer).unwrap();
                        }
                    }
                }
            });
            let notify: Notify = std::sync::Arc::new(|_| {});
            let attempt = Attempt {
                within: Duration::from_secs(60),
                transport: Transport::Udp,
                measures: true,
                cancel: &Cancel::default(),
                notify: &notify,
            };
            let sockets: Vec<&UdpSocket> = sockets.iter().collect();
            let (connected, number) = ask(&sockets, &ticket, &addresses, None, &attempt).unwrap();
            assert_eq!(connected.peer, listener.local_addr().unwrap());
            assert!(sockets[number].local_addr().unwrap().is_ipv6());
            cancel.cancel();
            answering.join().unwrap();
            let mut datagram = [0; 2_048];
            assert!(silent.recv(&mut datagram).is_ok(), "the other family got a request, too");
            while silent.recv(&mut datagram).is_ok() {}
        }
    }
}
