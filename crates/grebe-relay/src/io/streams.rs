//! Connections for ends that block UDP: the same datagrams over TCP, each after its length (2 bytes,
//! big-endian).
//!
//! ```text
//!  datagram thread ------- datagrams for an end over TCP ---> outboxes, bounded --+
//!        |                                                                       v
//!     the core, one lock per batch <--- datagrams, as if over UDP --- this thread --- connections
//! ```
//!
//! A connection has an address that no datagram can have, so the core need not know the difference. Datagrams
//! that an end does not accept are dropped, as on any path, so a slow end delays nobody.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grebe_datagram::Sender;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use crate::proto::message::{Message, MessageBuf};
use crate::proto::relay::{Outbox as Answers, RelayCore};

/// The connections, for the datagram thread. Dropping this closes them.
pub(crate) struct Streams {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    outboxes: Mutex<HashMap<SocketAddr, Arc<Mutex<Outbox>>>>,
    /// Connections with new data to send.
    filled: Mutex<Vec<usize>>,
    waker: Waker,
    bounds: Bounds,
    is_over: AtomicBool,
    connections: AtomicU64,
    closed: AtomicU64,
    dropped_of_slow: AtomicU64,
}

/// Data for an end, each datagram after its length.
#[derive(Default)]
struct Outbox {
    number: usize,
    bytes: VecDeque<u8>,
}

/// Maximum length of a datagram with its prefix.
const FRAME_BYTES_MAX: usize = LENGTH_BYTES + u16::MAX as usize;
const LENGTH_BYTES: usize = 2;

/// Bounds of the connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Maximum connections, with 64 KiB of receive buffer each.
    pub(crate) connections: usize,
    /// Maximum connections per host; several ends may share one address.
    pub(crate) of_host: usize,
    /// Maximum bytes that wait for one end. The kernel holds the bytes in flight; these wait for the thread's
    /// turn.
    pub(crate) outbox_bytes: usize,
    /// Time within which a ticket holder must speak, and after which a connection without one is closed.
    pub(crate) strange_for: Duration,
    /// Time without progress after which a connection is closed.
    pub(crate) stuck_for: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 512,
            of_host: 128,
            outbox_bytes: 256 << 10,
            strange_for: Duration::from_secs(10),
            stuck_for: Duration::from_secs(30),
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(200);
const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// Address of a connection, with a mark that no datagram's address has.
fn marked(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    SocketAddrV6::new(ip, address.port(), TCP_MARK, 0).into()
}

/// Whether an address belongs to a connection.
pub(crate) fn is_connection(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(address) if address.flowinfo() == TCP_MARK)
}

const TCP_MARK: u32 = u32::from_be_bytes(*b"tcp\0");

impl Streams {
    /// Starts accepting connections. `sender` uses the socket of datagrams; `clock` is the zero of the core's
    /// times.
    pub(crate) fn start(
        listener: std::net::TcpListener,
        core: Arc<Mutex<RelayCore>>,
        sender: Sender,
        clock: Instant,
        bounds: Bounds,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (poll, mut listener) = (Poll::new()?, TcpListener::from_std(listener));
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let shared = Arc::new(Shared {
            outboxes: Mutex::default(),
            filled: Mutex::default(),
            waker: Waker::new(poll.registry(), WAKER)?,
            bounds,
            is_over: AtomicBool::new(false),
            connections: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            dropped_of_slow: AtomicU64::new(0),
        });
        let worker = Worker {
            poll,
            listener,
            shared: shared.clone(),
            core,
            sender,
            clock,
            connections: (0..bounds.connections).map(|_| None).collect(),
            readable: Vec::new(),
            passed: Vec::new(),
            answers: Answers::new(),
            next_look: Duration::ZERO,
        };
        let thread = std::thread::Builder::new().name("grebe-relay-tcp".into());
        Ok(Self { shared, thread: Some(thread.spawn(move || worker.run())?) })
    }

    /// Queues datagrams of `segment_bytes` each, the last one possibly shorter, for a connection.
    pub(crate) fn give(&self, to: SocketAddr, run: &[u8], segment_bytes: usize) {
        self.shared.give(to, run, segment_bytes);
    }

    /// Wakes the thread to send queued data.
    pub(crate) fn wake(&self) {
        if !lock(&self.shared.filled).is_empty() {
            // Without the wake-up, the thread polls a moment later.
            let _ = self.shared.waker.wake();
        }
    }

    /// Open connections, closed connections, and datagrams that ends did not accept.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Shared { connections, closed, dropped_of_slow, .. } = &*self.shared;
        (read(connections), read(closed), read(dropped_of_slow))
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        let _ = self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn give(&self, to: SocketAddr, run: &[u8], segment_bytes: usize) {
        // The connection was just closed.
        let Some(outbox) = lock(&self.outboxes).get(&to).cloned() else { return };
        let mut outbox = lock(&outbox);
        let was_empty = outbox.bytes.is_empty();
        for datagram in run.chunks(segment_bytes.max(1)) {
            if outbox.bytes.len() + LENGTH_BYTES + datagram.len() > self.bounds.outbox_bytes {
                self.dropped_of_slow.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            outbox.bytes.extend((datagram.len() as u16).to_be_bytes());
            outbox.bytes.extend(datagram);
        }
        if was_empty && !outbox.bytes.is_empty() {
            lock(&self.filled).push(outbox.number);
        }
    }
}

/// Thread of the connections.
struct Worker {
    poll: Poll,
    listener: TcpListener,
    shared: Arc<Shared>,
    core: Arc<Mutex<RelayCore>>,
    sender: Sender,
    clock: Instant,
    connections: Vec<Option<Connection>>,
    /// Connections that may have more to read.
    readable: Vec<usize>,
    passed: Vec<(Range<usize>, SocketAddr)>,
    answers: Answers,
    next_look: Duration,
}

struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    outbox: Arc<Mutex<Outbox>>,
    inbox: Box<[u8]>,
    filled: usize,
    /// Time of the last packet from a ticket holder, or of the accept.
    known: Duration,
    is_member: bool,
    /// Time since which it accepts no data.
    stuck_since: Option<Duration>,
}

/// Reason for closing a connection.
enum Close {
    /// The other end closed it.
    Gone,
    /// The end sent something invalid, or nothing in time.
    Refused,
}

impl Worker {
    fn run(mut self) {
        let mut events = Events::with_capacity(256);
        while !self.shared.is_over.load(Ordering::Acquire) {
            let wait = if self.readable.is_empty() { LOOK_EVERY } else { Duration::ZERO };
            // A failed wait only shortens the turn.
            if self.poll.poll(&mut events, Some(wait)).is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let mut writable = Vec::new();
            for event in &events {
                match event.token() {
                    LISTENER => self.let_in(),
                    WAKER => {}
                    Token(number) => {
                        if event.is_readable() && !self.readable.contains(&number) {
                            self.readable.push(number);
                        }
                        if event.is_writable() {
                            writable.push(number);
                        }
                    }
                }
            }
            for number in std::mem::take(&mut self.readable) {
                match self.read(number) {
                    Ok(true) => self.readable.push(number),
                    Ok(false) => {}
                    Err(why) => self.close(number, &why),
                }
            }
            writable.append(&mut lock(&self.shared.filled));
            for number in writable {
                if let Err(why) = self.write(number) {
                    self.close(number, &why);
                }
            }
            self.check();
        }
    }

    fn let_in(&mut self) {
        while let Ok((mut stream, from)) = self.listener.accept() {
            let Some(number) = self.room_for(from) else {
                self.shared.closed.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let interest = Interest::READABLE | Interest::WRITABLE;
            let is_ready = stream.set_nodelay(true).is_ok()
                && self.poll.registry().register(&mut stream, Token(number), interest).is_ok();
            if !is_ready {
                continue;
            }
            let address = marked(from);
            let outbox = Arc::new(Mutex::new(Outbox { number, bytes: VecDeque::new() }));
            lock(&self.shared.outboxes).insert(address, outbox.clone());
            self.shared.connections.fetch_add(1, Ordering::Relaxed);
            self.connections[number] = Some(Connection {
                stream,
                address,
                outbox,
                inbox: vec![0; FRAME_BYTES_MAX].into(),
                filled: 0,
                known: self.clock.elapsed(),
                is_member: false,
                stuck_since: None,
            });
        }
    }

    /// Finds a slot for a connection. If all are taken, replaces the oldest one without a ticket holder.
    fn room_for(&mut self, from: SocketAddr) -> Option<usize> {
        let host = marked(from).ip();
        let of_host = self.connections.iter().flatten().filter(|other| other.address.ip() == host).count();
        let has_room = of_host < self.shared.bounds.of_host;
        let free = self.connections.iter().position(Option::is_none);
        if has_room && free.is_some() {
            return free;
        }
        let strangers = self.connections.iter().enumerate().filter_map(|(number, other)| {
            let other = other.as_ref().filter(|other| !other.is_member)?;
            (has_room || other.address.ip() == host).then_some((other.known, number))
        });
        let (_, number) = strangers.min()?;
        self.close(number, &Close::Refused);
        Some(number)
    }

    /// Reads once and forwards complete datagrams. Returns whether there may be more.
    fn read(&mut self, number: usize) -> Result<bool, Close> {
        let Some(connection) = self.connections[number].as_mut() else { return Ok(false) };
        let read = match connection.stream.read(&mut connection.inbox[connection.filled..]) {
            Ok(0) => return Err(Close::Gone),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(_) => return Err(Close::Gone),
        };
        connection.filled += read;
        let now_us = self.clock.elapsed().as_micros() as u64;
        let taken = {
            let mut core = lock(&self.core);
            let sorted = sort(&mut core, now_us, connection, &mut self.passed, &mut self.answers);
            connection.is_member = core.is_member(connection.address);
            sorted
        };
        if connection.is_member {
            connection.known = self.clock.elapsed();
        }
        // Datagrams decided before the invalid one are forwarded all the same.
        let taken_bytes = *taken.as_ref().unwrap_or(&0);
        pass_on(&self.shared, &mut self.sender, &connection.inbox, &mut self.passed, &mut self.answers);
        connection.inbox.copy_within(taken_bytes..connection.filled, 0);
        connection.filled -= taken_bytes;
        taken.map(|_| true)
    }

    /// Writes pending data as far as the connection accepts it.
    fn write(&mut self, number: usize) -> Result<(), Close> {
        let now = self.clock.elapsed();
        let Some(connection) = self.connections[number].as_mut() else { return Ok(()) };
        let mut outbox = lock(&connection.outbox);
        loop {
            let (next, _) = outbox.bytes.as_slices();
            if next.is_empty() {
                connection.stuck_since = None;
                return Ok(());
            }
            match connection.stream.write(next) {
                Ok(written) => {
                    outbox.bytes.drain(..written);
                    connection.stuck_since = None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.stuck_since.get_or_insert(now);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Close::Gone),
            }
        }
    }

    /// Closes connections of strangers, and those without progress.
    fn check(&mut self) {
        let now = self.clock.elapsed();
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK_EVERY;
        let mut over = Vec::new();
        {
            let core = lock(&self.core);
            for (number, connection) in self.connections.iter_mut().enumerate() {
                let Some(connection) = connection else { continue };
                connection.is_member = core.is_member(connection.address);
                if connection.is_member {
                    connection.known = now;
                }
                let is_stuck =
                    connection.stuck_since.is_some_and(|since| now - since > self.shared.bounds.stuck_for);
                if now - connection.known > self.shared.bounds.strange_for || is_stuck {
                    over.push(number);
                }
            }
        }
        for number in over {
            self.close(number, &Close::Refused);
        }
    }

    fn close(&mut self, number: usize, why: &Close) {
        let Some(connection) = self.connections[number].take() else { return };
        lock(&self.shared.outboxes).remove(&connection.address);
        lock(&self.core).gone(connection.address);
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        if matches!(why, Close::Refused) {
            self.shared.closed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Decides about complete datagrams of a connection, and returns their length.
fn sort(
    core: &mut RelayCore,
    now_us: u64,
    connection: &Connection,
    passed: &mut Vec<(Range<usize>, SocketAddr)>,
    answers: &mut Answers,
) -> Result<usize, Close> {
    let (mut at, from) = (0, connection.address);
    while let Some(datagram) = next_datagram(&connection.inbox[..connection.filled], at) {
        at = datagram.end;
        let bytes = &connection.inbox[datagram.clone()];
        match <&MessageBuf>::try_from(bytes) {
            Ok(message) if Message::is_of_relay(message) => core.on_message(now_us, from, message, answers),
            // An end without a place must begin with a question.
            _ if bytes.is_empty() || !core.is_member(from) => return Err(Close::Refused),
            _ => {
                if let Some((to, _)) = core.route(now_us, from, bytes.len(), bytes.len()) {
                    passed.push((datagram, to));
                }
            }
        }
    }
    Ok(at)
}

/// Range of the datagram whose length prefix is at `at`, if it is complete.
pub fn next_datagram(inbox: &[u8], at: usize) -> Option<Range<usize>> {
    let (length, rest) = inbox.get(at..)?.split_first_chunk::<LENGTH_BYTES>()?;
    let length = usize::from(u16::from_be_bytes(*length));
    let begin = at + LENGTH_BYTES;
    (rest.len() >= length).then_some(begin..begin + length)
}

fn pass_on(
    shared: &Shared,
    sender: &mut Sender,
    inbox: &[u8],
    passed: &mut Vec<(Range<usize>, SocketAddr)>,
    answers: &mut Answers,
) {
    let answered = answers.iter().map(|(to, message)| (*to, &message[..]));
    let datagrams = passed.iter().map(|(range, to)| (*to, &inbox[range.clone()])).chain(answered);
    let mut batch = sender.batch();
    for (to, datagram) in datagrams {
        if is_connection(to) {
            shared.give(to, datagram, datagram.len());
        } else {
            // A failed send to one end does not affect others.
            let _ = batch.push_to(to, datagram, &[]);
        }
    }
    while let Err(grebe_datagram::Error::Send { .. }) = batch.flush() {}
    drop(batch);
    passed.clear();
    answers.clear();
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
