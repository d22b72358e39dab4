//! Connections: a reliable byte stream each way between a listener and the holder of its ticket.

mod driver;
mod options;
mod shared;
mod stream;
mod wake;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_datagram::{Options, Receiver as Datagrams, Sender, bind_with_tcp};
use grebe_packet::{Purpose, Ticket};
use grebe_relay::{Side, Via};

use self::driver::{Driver, Early, Start};
use self::options::SLOT_BYTES;
pub use self::options::{ConnectionOptions, Greet};
pub use self::shared::ConnectionProgress;
use self::shared::Shared;
pub use self::stream::{ConnectionReader, ConnectionStatus, ConnectionWriter};
use super::attempt::{Attempt, Connected};
use super::connect::{self, Fallback, LOOK_AT_DOOR_EVERY};
use super::finding::{Found, find};
use super::rendezvous::Rendezvous;
use super::route::Route;
use super::tcp::{TcpDoor, TcpPacket};
use super::{Notice, Transport};
use crate::error::{Error, Result};
use crate::io::{ArrivalTimes, Clock, unix_s};
use crate::proto::handshake::{Responder, Session, place_in_train};

/// An encrypted, ordered byte stream each way, at the rate of the path. A background thread carries it, even
/// while the application neither reads nor writes.
///
/// ```
/// use std::io::{Read, Write};
/// use std::thread;
/// use std::time::Duration;
///
/// use grebe_connection::{ConnectionListener, ConnectionOptions, Purpose, connect};
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
    /// Data from the other end.
    pub reader: ConnectionReader,
    /// Data to the other end.
    pub writer: ConnectionWriter,
    /// Progress, and the orderly end.
    pub status: ConnectionStatus,
    /// The other end's address.
    pub peer: SocketAddr,
    /// Bytes that the other end has read before those of the writer, because this end
    /// [greets](ConnectionOptions::greet).
    pub greeting: Vec<u8>,
}

/// Waits for one connection from the holder of its ticket.
#[derive(Debug)]
pub struct ConnectionListener {
    datagrams: Datagrams<Vec<u8>>,
    /// Ticket for the other end. If that end reaches the listener by other addresses, put them into the
    /// ticket.
    pub ticket: Ticket,
    door: Option<TcpDoor>,
}

/// Connects to the maker of the ticket over UDP, or over TCP where no UDP passes.
///
/// # Errors
/// [`Error::NoAnswer`]; [`Error::Ticket`] if the ticket has another purpose or has expired;
/// [`Error::Cancelled`]; [`Error::Socket`]. A ticket that another end has used fails at the first read.
pub fn connect(ticket: &Ticket, options: &ConnectionOptions) -> Result<Connection> {
    if !matches!(ticket.purpose, Purpose::Connection | Purpose::Transfer) {
        return Err(Error::Ticket { what: "it is not for a connection" });
    }
    let bind = |local| {
        let datagrams = Datagrams::bind(local, &socket_options())?;
        let socket = another_handle(&datagrams)?;
        Ok((datagrams, socket))
    };
    let attempt = Attempt {
        within: options.answer_within,
        transport: options.transport,
        measures: options.measures && options.limit_bits_per_s.is_none(),
        cancel: &options.cancel,
        notify: &options.notify,
    };
    let Found { connected, datagrams, socket, addresses, meeting } =
        find(ticket, options.via, &attempt, bind)?;
    let Connected { mut session, peer, rtt, tcp, .. } = connected;
    let second = take_second(&mut session)?;
    let out = Sender::on(&datagrams, &Options::default())?;
    let dialled = if options.transport == Transport::Udp { Vec::new() } else { addresses };
    let start = Start {
        datagrams,
        route: Route { fallback: Fallback::new(dialled), meeting, ..Route::new(out, socket, peer) },
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
    /// Listens at `address` (port 0: any free port) for at most `lifetime` until the other end connects. The
    /// ticket names `address`. If that is unspecified (`0.0.0.0`), it names the addresses of this host. Add
    /// further addresses, such as a forwarded port, to [`ticket`](Self::ticket).
    ///
    /// # Errors
    /// [`Error::Socket`] if the address cannot be bound; [`Error::Keys`] if the system has no random numbers;
    /// [`Error::Ticket`] if this host has no address to name.
    pub fn bind(address: SocketAddr, purpose: Purpose, lifetime: Duration) -> Result<Self> {
        let bind = |address| Datagrams::bind(address, &socket_options());
        let (datagrams, bound, listener) = bind_with_tcp(address, bind, Datagrams::local_addr)?;
        let door = TcpDoor::over(listener);
        let ticket = connect::new_ticket(purpose, bound, lifetime)?;
        Ok(Self { datagrams, ticket, door })
    }

    /// Waits for the other end.
    ///
    /// # Errors
    /// [`Error::Expired`] if nobody connected in time; [`Error::Relay`] if the relay's name is not found;
    /// [`Error::Cancelled`]; [`Error::Socket`].
    pub fn accept(self, options: &ConnectionOptions) -> Result<Connection> {
        let Self { datagrams, ticket, door } = self;
        let door = door.filter(|_| options.via != Via::Relay);
        let socket = another_handle(&datagrams)?;
        let mut meeting = Rendezvous::start(&ticket, Side::Waits, options.via, &socket, &options.notify)?;
        let accepted = accept(datagrams, &ticket, door, &socket, &mut meeting, options);
        let (mut start, early) = Rendezvous::leave_on_failure(&mut meeting, &socket, accepted)?;
        start.route.meeting = meeting;
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
        greet: options.greet.clone(),
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
        if let Some((to, report)) = answering.responder.report_train(clock.now_us(), driver::WINDOW_BYTES) {
            let _ = socket.send_to(&report, to);
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
        route: Route { door, ..Route::new(out, own, peer) },
        own: second,
        other: session,
        rtt,
        tcp,
        responder: Some(answering.responder),
        clock,
    };
    Ok((start, answering.early))
}

/// The maker of the ticket, before the other end connects.
struct Answering {
    responder: Responder,
    greet: Option<Arc<Greet>>,
    found: Option<(Session, SocketAddr)>,
    early: Early,
    answered: u32,
    answered_at: Instant,
}

impl Answering {
    /// Takes a datagram and returns the answer, if any. A peer without the key gets no answer.
    fn take(&mut self, arrived_us: u64, from: SocketAddr, datagram: &mut [u8]) -> Option<Vec<u8>> {
        if self.found.is_some() {
            // Packets that follow the first one belong to the stream too.
            self.early.rest.push((arrived_us, from, datagram.to_vec()));
            return None;
        }
        if let Some(reply) = self.reply(datagram) {
            if self.answered == 0 {
                self.answered_at = Instant::now();
            }
            self.responder.note_arrival(arrived_us, from, datagram);
            let place = place_in_train(datagram);
            self.answered += u32::from(place == 0);
            return place.is_multiple_of(ANSWERED_OF_A_TRAIN).then_some(reply);
        }
        self.open(arrived_us, from, datagram);
        None
    }

    fn take_by_tcp(&mut self, arrived_us: u64, packet: &mut [u8]) -> TcpPacket {
        if let Some(reply) = self.reply(packet) {
            return TcpPacket::Question(reply);
        }
        // The TCP connection itself identifies the sender.
        self.open(arrived_us, SocketAddr::from(([0; 4], 0)), packet);
        if self.found.is_some() { TcpPacket::Peer } else { TcpPacket::Nothing }
    }

    fn reply(&mut self, init: &[u8]) -> Option<Vec<u8>> {
        let greeting = || self.greet.as_ref().map(|greet| greet()).unwrap_or_default();
        Some(self.responder.on_init(init, greeting).ok()?.to_vec())
    }

    fn open(&mut self, arrived_us: u64, from: SocketAddr, datagram: &mut [u8]) {
        let datagram_bytes = datagram.len();
        if let Ok((session, number, plain)) = self.responder.on_sealed(datagram) {
            self.early.first = Some((arrived_us, number, datagram_bytes, plain.to_vec()));
            self.found = Some((session, from));
        }
    }
}

/// Of this many packets of a train, one is answered.
const ANSWERED_OF_A_TRAIN: u8 = 8;

fn take_second(session: &mut Session) -> Result<Session> {
    session.take_second().ok_or_else(|| Error::Keys { what: "the handshake made one session only".into() })
}

/// Starts the thread that carries the connection.
fn start_connection(start: Start, early: Early, options: &ConnectionOptions) -> Result<Connection> {
    let peer = start.route.peer;
    let known_as = start.route.meeting.as_ref().map_or(grebe_relay::canonical(peer), |it| it.known_as(peer));
    let cannot =
        |source| grebe_datagram::Error::Open { action: "start the connection with", address: peer, source };
    let shared = Arc::new(Shared::new(driver::ROOM_BYTES_MIN, start.tcp.is_some()).map_err(cannot)?);
    let (heard, greeting) = match &start.responder {
        Some(_) => (Vec::new(), start.other.greeting.clone()),
        None => (start.own.greeting.clone(), Vec::new()),
    };
    let (reader, writer, status) = stream::ends(&shared, heard);
    let driver = Driver::new(start, shared, options);
    let options = options.clone();
    let thread = std::thread::Builder::new().name("grebe-connection".into());
    thread.spawn(move || driver.run(early, &options)).map_err(cannot)?;
    Ok(Connection { reader, writer, status, peer: known_as, greeting })
}

/// Small batches stay in the core's cache until they are decrypted and copied.
fn socket_options() -> grebe_datagram::Options {
    grebe_datagram::Options { slots: 4, timestamps: true, ..grebe_datagram::Options::default() }
}

fn another_handle(datagrams: &Datagrams<Vec<u8>>) -> Result<UdpSocket> {
    datagrams.try_clone_socket().map_err(|source| Error::from(grebe_datagram::Error::Receive { source }))
}
