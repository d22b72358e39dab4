//! Connections: a reliable stream of bytes each way between the end that listens and the one that has its ticket.

mod driver;
mod stream;
mod wake;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_datagram::{Options, Receiver as Datagrams, Sender};
use grebe_packet::{Cancel, Purpose, Ticket};
use grebe_relay::{Side, Via};

use self::driver::{Driver, Early, Start};
use self::stream::Shared;
pub use self::stream::{ConnectionProgress, ConnectionReader, ConnectionStatus, ConnectionWriter};
use super::ask::{Asking, Connected};
use super::connect::{self, Fallback, LOOK_AT_DOOR_EVERY};
use super::finding::{Found, find};
use super::path::Path;
use super::rendezvous::Rendezvous;
use super::tcp::{Heard, TcpDoor};
use super::{KEEP_TRYING, Notice, Notify, Transport};
use crate::error::{Error, Result};
use crate::io::{ArrivalTimes, Clock, unix_s};
use crate::proto::congestion::Mode;
use crate::proto::handshake::{Responder, Session};

/// A stream of bytes each way, encrypted, in order, at the rate of the path. A thread of its own carries it, also while nobody reads or
/// writes.
///
/// ```
/// use std::io::{Read, Write};
/// use std::thread;
/// use std::time::Duration;
///
/// use grebe_transfer::{ConnectionListener, ConnectionOptions, Purpose, connect};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let minute = Duration::from_secs(60);
/// let listener = ConnectionListener::bind("127.0.0.1:0".parse()?, Purpose::Connection, minute)?;
/// let ticket = listener.ticket.clone();
/// let answering = thread::spawn(move || -> std::io::Result<()> {
///     let mut connection = listener.accept(&ConnectionOptions::default()).map_err(std::io::Error::other)?;
///     let mut question = String::new();
///     connection.reader.read_to_string(&mut question)?;
///     write!(connection.writer, "{question} what?")?;
///     connection.writer.finish()?;
///     connection.status.close().map_err(std::io::Error::other)
/// });
///
/// let mut connection = connect(&ticket, &ConnectionOptions::default())?;
/// connection.writer.write_all(b"Samples of")?;
/// connection.writer.finish()?;
/// let mut answer = String::new();
/// connection.reader.read_to_string(&mut answer)?;
/// assert_eq!(answer, "Samples of what?");
/// connection.status.close()?;
/// answering.join().expect("the thread does not panic")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Connection {
    /// What the other end writes.
    pub reader: ConnectionReader,
    /// What the other end reads.
    pub writer: ConnectionWriter,
    /// How it goes, and its end.
    pub status: ConnectionStatus,
    /// The other end's address.
    pub peer: SocketAddr,
}

/// Waits for one connection: of the one that has the ticket.
#[derive(Debug)]
pub struct ConnectionListener {
    datagrams: Datagrams<Vec<u8>>,
    /// The other end needs it to connect; where it reaches the listener by other addresses, put those in.
    pub ticket: Ticket,
    door: Option<TcpDoor>,
}

/// How a connection is made and carried.
#[derive(Clone)]
pub struct ConnectionOptions {
    /// How much of a shared path to take for what this end writes.
    pub mode: Mode,
    /// Bits per second on the wire of what this end writes, at most; `None`: what the path gives.
    pub limit_bits_per_s: Option<f64>,
    /// What the end that has the ticket goes by; the one that listens takes what comes.
    pub transport: Transport,
    /// Which ways are taken where the ticket names a relay.
    pub via: Via,
    /// For how long an answer is waited for.
    pub answer_within: Duration,
    /// For how long the other end, once it was there, may be silent. An end that is there is heard each second, whatever its application does.
    pub keep_trying: Duration,
    /// Ends the connection: the other end is told, and reading and writing are errors from then on.
    pub cancel: Cancel,
    /// Is called with what a user may want to know before the end.
    pub notify: Notify,
}

/// Connects to the one that made the ticket: over UDP or, where no UDP passes, over TCP.
///
/// # Errors
/// [`Error::NoAnswer`]; [`Error::Ticket`] for one of another purpose, or whose time is over; [`Error::Cancelled`]; [`Error::Socket`]. That
/// somebody else has used the ticket shows at the first read.
pub fn connect(ticket: &Ticket, options: &ConnectionOptions) -> Result<Connection> {
    if !matches!(ticket.purpose, Purpose::Connection | Purpose::Transfer) {
        return Err(Error::Ticket { what: "it is not for a connection" });
    }
    let bind = |local| {
        let datagrams = Datagrams::bind(local, &socket_options())?;
        let socket = another_handle(&datagrams)?;
        Ok((datagrams, socket))
    };
    let asking = Asking {
        within: options.answer_within,
        transport: options.transport,
        cancel: &options.cancel,
        notify: &options.notify,
    };
    let Found { connected, datagrams, socket, addresses, meeting } =
        find(ticket, options.via, &asking, bind)?;
    let Connected { mut session, peer, rtt, tcp, .. } = connected;
    let second = take_second(&mut session)?;
    let out = Sender::on(&datagrams, &Options::default())?;
    let dialled = if options.transport == Transport::Udp { Vec::new() } else { addresses };
    let start = Start {
        datagrams,
        path: Path { fallback: Fallback::new(dialled), meeting, ..Path::new(out, socket, peer) },
        own: session,
        other: second,
        rtt,
        tcp,
        responder: None,
        clock: Clock::start(),
    };
    start_connection(start, Early::default(), options)
}

impl ConnectionListener {
    /// Listens at `address` (port 0: any) for at most `lifetime` until the other end connects. The ticket names `address` or,
    /// where that is any (`0.0.0.0`), the addresses of this host: where others reach it by others, put those into [`ticket`](Self::ticket).
    ///
    /// # Errors
    /// [`Error::Socket`] where the address cannot be bound; [`Error::Keys`] where the system has no random numbers;
    /// [`Error::Ticket`] where this host has no address to name.
    pub fn bind(address: SocketAddr, purpose: Purpose, lifetime: Duration) -> Result<Self> {
        let bind = |address| Ok(Datagrams::bind(address, &socket_options())?);
        let (datagrams, bound, door) =
            connect::bind_with_door(address, bind, |datagrams: &Datagrams<_>| Ok(datagrams.local_addr()?))?;
        let ticket = connect::new_ticket(purpose, bound, lifetime)?;
        Ok(Self { datagrams, ticket, door })
    }

    /// Waits for the other end.
    ///
    /// # Errors
    /// [`Error::Expired`] where nobody connected in time; [`Error::Relay`] where the relay's name is not found; [`Error::Cancelled`];
    /// [`Error::Socket`].
    pub fn accept(self, options: &ConnectionOptions) -> Result<Connection> {
        let Self { datagrams, ticket, door } = self;
        let door = door.filter(|_| options.via != Via::Relay);
        let socket = another_handle(&datagrams)?;
        let mut meeting = Rendezvous::start(&ticket, Side::Waits, options.via, &socket, &options.notify)?;
        let accepted = accept(datagrams, &ticket, door, &socket, &mut meeting, options);
        let (mut start, early) = Rendezvous::leave_on_failure(&mut meeting, &socket, accepted)?;
        start.path.meeting = meeting;
        start_connection(start, early, options)
    }
}

/// Waits for the other end.
fn accept(
    mut datagrams: Datagrams<Vec<u8>>,
    ticket: &Ticket,
    mut door: Option<TcpDoor>,
    socket: &UdpSocket,
    meeting: &mut Option<Rendezvous>,
    options: &ConnectionOptions,
) -> Result<(Start, Early)> {
    let mut answering = Answering {
        responder: Responder::new(ticket.key.clone()),
        found: None,
        early: Early::default(),
        answered: 0,
        answered_at: Instant::now(),
    };
    let (clock, mut arrivals) = (Clock::start(), ArrivalTimes::default());
    datagrams.set_timeout(LOOK_AT_DOOR_EVERY);
    let (found, tcp) = loop {
        if options.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if unix_s() >= ticket.expires_unix_s {
            return Err(Error::Expired);
        }
        if let Some(meeting) = meeting {
            meeting.turn(socket);
        }
        datagrams.recv(
            || Some(vec![0; SLOT_BYTES]),
            |mut slot, received| {
                if meeting.as_ref().is_some_and(|meeting| !meeting.is_wanted(received.from)) {
                    return Some(slot);
                }
                let arrived_us = arrivals.us_of(&clock.reading(), received.timestamp);
                for range in received.segments() {
                    let datagram = &mut slot[range];
                    if meeting.as_mut().is_some_and(|meeting| meeting.take(received.from, datagram) > 0) {
                        continue;
                    }
                    if let Some(answer) = answering.take(arrived_us, received.from, datagram) {
                        let _ = socket.send_to(&answer, received.from);
                    }
                }
                Some(slot)
            },
        )?;
        if let Some(found) = answering.found.take() {
            break (found, None);
        }
        let came =
            door.as_mut().and_then(|door| door.poll(|packet| answering.take_by_tcp(clock.now_us(), packet)));
        if let Some(tcp) = came
            && let (Some((session, _)), Some(peer)) = (answering.found.take(), tcp.peer())
        {
            (options.notify)(Notice::OverTcp);
            break ((session, peer), Some(tcp));
        }
    };
    let (mut session, peer) = found;
    let second = take_second(&mut session)?;
    let rtt = (answering.answered <= 2 && tcp.is_none()).then(|| answering.answered_at.elapsed());
    let (out, own) = (Sender::on(&datagrams, &Options::default())?, another_handle(&datagrams)?);
    let start = Start {
        datagrams,
        path: Path { door, ..Path::new(out, own, peer) },
        own: second,
        other: session,
        rtt,
        tcp,
        responder: Some(answering.responder),
        clock,
    };
    Ok((start, answering.early))
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Fair,
            limit_bits_per_s: None,
            transport: Transport::Any,
            via: Via::Any,
            answer_within: Duration::from_secs(10),
            keep_trying: KEEP_TRYING,
            cancel: Cancel::default(),
            notify: Arc::new(|_| {}),
        }
    }
}

/// The end that made the ticket, until the other one has come.
struct Answering {
    responder: Responder,
    found: Option<(Session, SocketAddr)>,
    early: Early,
    answered: u32,
    answered_at: Instant,
}

impl Answering {
    /// Takes a datagram; returns what to answer. A peer without the key gets no answer.
    fn take(&mut self, arrived_us: u64, from: SocketAddr, datagram: &mut [u8]) -> Option<Vec<u8>> {
        if self.found.is_some() {
            // What came with the first packet is as much the stream's as that one.
            self.early.rest.push((arrived_us, from, datagram.to_vec()));
            return None;
        }
        if let Ok(reply) = self.responder.on_init(datagram) {
            if self.answered == 0 {
                self.answered_at = Instant::now();
            }
            self.answered += 1;
            return Some(reply.to_vec());
        }
        self.open(arrived_us, from, datagram);
        None
    }

    fn take_by_tcp(&mut self, arrived_us: u64, packet: &mut [u8]) -> Heard {
        if let Ok(reply) = self.responder.on_init(packet) {
            return Heard::Question(reply.to_vec());
        }
        // Where it comes from, its connection says.
        self.open(arrived_us, SocketAddr::from(([0; 4], 0)), packet);
        if self.found.is_some() { Heard::Peer } else { Heard::Nothing }
    }

    fn open(&mut self, arrived_us: u64, from: SocketAddr, datagram: &mut [u8]) {
        let datagram_bytes = datagram.len();
        if let Ok((session, number, plain)) = self.responder.on_sealed(datagram) {
            self.early.first = Some((arrived_us, number, datagram_bytes, plain.to_vec()));
            self.found = Some((session, from));
        }
    }
}

fn take_second(session: &mut Session) -> Result<Session> {
    session.take_second().ok_or_else(|| Error::Keys { what: "the handshake made one session only".into() })
}

/// Starts the thread that carries the connection.
fn start_connection(start: Start, early: Early, options: &ConnectionOptions) -> Result<Connection> {
    let peer = start.path.peer;
    let known_as = start.path.meeting.as_ref().map_or(grebe_relay::canonical(peer), |it| it.known_as(peer));
    let cannot =
        |source| grebe_datagram::Error::Open { action: "start the connection with", address: peer, source };
    let shared = Arc::new(Shared::new(driver::ROOM_BYTES_MIN, start.tcp.is_some()).map_err(cannot)?);
    let (reader, writer, status) = shared.ends();
    let driver = Driver::new(start, shared, options);
    let options = options.clone();
    let thread = std::thread::Builder::new().name("grebe-connection".into());
    thread.spawn(move || driver.run(early, &options)).map_err(cannot)?;
    Ok(Connection { reader, writer, status, peer: known_as })
}

/// What is received at once still lies in the core's cache when it is opened and put in its place.
fn socket_options() -> grebe_datagram::Options {
    grebe_datagram::Options { slots: 4, timestamps: true, ..grebe_datagram::Options::default() }
}

fn another_handle(datagrams: &Datagrams<Vec<u8>>) -> Result<UdpSocket> {
    datagrams.try_clone_socket().map_err(|source| Error::from(grebe_datagram::Error::Receive { source }))
}

/// One kernel buffer of coalesced datagrams.
const SLOT_BYTES: usize = 65_536;
