//! Datagrams on request: sends frames of an announced stream by UDP, beside Zenoh.
//!
//! ```text
//!   requests (threads of Zenoh) -> Desk: claims -> readers          batch -> OnRequest -+-> queue -> thread, UdpSink -> reader
//!                                        |  newcomers ----------------------^           +-> queue -> thread, UdpSink -> reader
//! ```
//!
//! Each reader has a thread and a queue that drops its oldest batch, so neither the sink nor another reader waits for
//! it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use grebe_datagram::MAX_DATAGRAM_BYTES;
use grebe_flow::{Offer, QueueOptions, QueueReceiver, QueueSender, StageError, queue};
use grebe_frame::{Batch, Header};
use grebe_ring::Signal;
use grebe_zenoh::{Answer, Lab, Nonce, Request, Requests, StreamName};

use crate::bridges::udp::UdpSink;
use crate::error::Error;
use crate::open::Transport;
use crate::transport::HostPort;

/// Sends a stream by UDP to readers that keep requesting it.
#[derive(Debug)]
pub(super) struct OnRequest {
    _requests: Requests,
    sending: Sending,
}

impl OnRequest {
    /// # Errors
    /// The session is closed.
    pub(super) fn open(lab: &Lab, name: &StreamName, transport: &Transport) -> Result<Self, Error> {
        let desk = Arc::new(Desk::new(transport.clone(), LEASE));
        let answering = desk.clone();
        let requests = lab.take_requests(name, move |request| answering.answer(request, Instant::now()))?;
        Ok(Self { _requests: requests, sending: Sending { desk, queues: Vec::new() } })
    }

    /// Queues a batch for all readers. A slow reader loses it, which the sequence shows. `batches_in_flight` is the
    /// memory of the source.
    pub(super) fn send(&mut self, batch: &Batch, batches_in_flight: usize) {
        self.sending.desk.batches_in_flight.store(batches_in_flight, Ordering::Relaxed);
        self.sending.send(batch);
    }

    /// Number of readers.
    pub(super) fn readers(&self) -> usize {
        self.sending.queues.len()
    }

    /// Ends the stream, and tells the readers in the background.
    pub(super) fn end(&mut self, end: Option<Header>) {
        self.sending.end(end);
    }

    /// Waits for that, up to a second.
    pub(super) fn wait_for_ends(&self) {
        self.sending.desk.wait_for_ends();
    }
}

/// The queues of the readers.
#[derive(Debug)]
struct Sending {
    desk: Arc<Desk>,
    queues: Vec<QueueSender>,
}

impl Sending {
    fn send(&mut self, batch: &Batch) {
        if self.desk.has_newcomers.load(Ordering::Relaxed) {
            self.desk.has_newcomers.store(false, Ordering::Relaxed);
            self.queues.append(&mut self.desk.lock().newcomers);
        }
        self.queues.retain_mut(|queue| !matches!(queue.offer(batch.clone()), Offer::Closed));
    }

    fn end(&mut self, end: Option<Header>) {
        let mut clients = self.desk.lock();
        clients.is_over = true;
        clients.claims.clear();
        if let Some(end) = end {
            for reader in &clients.readers {
                // The stream ends once.
                let _ = reader.end.set(end);
            }
        }
        // Queued batches go first.
        clients.newcomers.clear();
        drop(clients);
        self.queues.clear();
    }
}

/// Handles requests of readers.
#[derive(Debug)]
struct Desk {
    clients: Mutex<Clients>,
    has_newcomers: AtomicBool,
    /// Batches that the source has memory for. 0: no frame so far.
    batches_in_flight: AtomicUsize,
    transport: Transport,
    lease: Duration,
}

/// Limits the share of the source's memory that readers may hold. With all of it the source would wait for the slowest
/// link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    /// Queue length per reader: the newest batches, which all slow readers share.
    queue_batches: usize,
    /// Each holds one batch.
    readers: usize,
}

impl Room {
    fn of(batches_in_flight: usize) -> Self {
        let share = |part: usize, most: usize| match batches_in_flight {
            // Before the first frame, assume enough memory.
            0 => most,
            batches => (batches / part).clamp(1, most),
        };
        Self { queue_batches: share(4, QUEUE_BATCHES_MAX), readers: share(8, READERS_MAX) }
    }

    /// A queue to one reader.
    fn queue(self, reader: &Arc<Signal>) -> (QueueSender, QueueReceiver) {
        queue(QueueOptions::drop_oldest(self.queue_batches), Arc::default(), reader.clone())
    }
}

#[derive(Debug, Default)]
struct Clients {
    claims: Vec<Claim>,
    asks: u64,
    readers: Vec<Arc<Reader>>,
    newcomers: Vec<QueueSender>,
    is_over: bool,
}

/// An address that a reader claims.
#[derive(Debug)]
struct Claim {
    /// The request that claimed it, possibly with other addresses.
    ask: u64,
    nonce: Nonce,
    sink: UdpSink,
    at: Instant,
}

/// A reader with a confirmed address.
#[derive(Debug)]
struct Reader {
    nonce: Nonce,
    since: Instant,
    /// Milliseconds after that until which it gets frames.
    until_ms: AtomicU64,
    frames: AtomicU64,
    is_over: AtomicBool,
    end: OnceLock<Header>,
}

impl Desk {
    fn new(transport: Transport, lease: Duration) -> Self {
        let (has_newcomers, batches_in_flight) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { clients: Mutex::default(), has_newcomers, batches_in_flight, transport, lease }
    }

    fn answer(&self, request: &Request, now: Instant) -> Answer {
        let mut clients = self.lock();
        clients.claims.retain(|claims| now.saturating_duration_since(claims.at) < CLAIM_TIMEOUT);
        clients.readers.retain(|reader| !reader.is_over());
        match request {
            _ if clients.is_over => Answer::Unknown,
            Request::Ask { at, is_near } => self.probe(&mut clients, at, *is_near, now),
            Request::Send { nonce } => self.go_on(&mut clients, nonce, now),
            Request::End { nonce } => {
                clients
                    .readers
                    .iter()
                    .filter(|reader| reader.nonce == *nonce)
                    .for_each(|reader| reader.stop());
                Answer::Unknown
            }
        }
    }

    /// Sends a number to each address. A reader there can repeat it.
    fn probe(&self, clients: &mut Clients, at: &[SocketAddr], is_near: bool, now: Instant) -> Answer {
        if clients.claims.len() + at.len() > CLAIMS_MAX || !clients.has_place(now, self.room()) {
            return Answer::Full;
        }
        clients.asks += 1;
        for to in at {
            // The other addresses may have a route.
            let Ok(mut sink) = self.connect(*to, is_near) else { continue };
            let nonce = Nonce::random();
            if sink.send_bytes(&nonce.probe()).is_ok() {
                clients.claims.push(Claim { ask: clients.asks, nonce, sink, at: now });
            }
        }
        Answer::Asked
    }

    fn connect(&self, to: SocketAddr, is_near: bool) -> Result<UdpSink, Error> {
        let at = HostPort::new(to.ip().to_string(), to.port());
        let mut options = self.transport.socket_options(&at)?;
        options.unicast_hops = is_near.then_some(1);
        UdpSink::connect(to, &options).map_err(|source| Error::Udp {
            action: "send to",
            uri: format!("udp://{to}"),
            source,
        })
    }

    /// A reader that knows the number receives at that address.
    fn go_on(&self, clients: &mut Clients, nonce: &Nonce, now: Instant) -> Answer {
        if let Some(reader) = clients.readers.iter().find(|reader| reader.nonce == *nonce) {
            reader.go_on_until(now + self.lease);
            return Answer::Sends { frames: reader.frames.load(Ordering::Relaxed) };
        }
        let Some(at) = clients.claims.iter().position(|claims| claims.nonce == *nonce) else {
            return Answer::Unknown;
        };
        let room = self.room();
        if !clients.has_place(now, room) {
            return Answer::Full;
        }
        // An active reader may replace a silent one.
        if clients.readers.len() >= room.readers
            && let Some(silent) = clients.readers.iter().position(|reader| reader.is_silent(now))
        {
            clients.readers.swap_remove(silent).stop();
        }
        let claims = clients.claims.swap_remove(at);
        clients.claims.retain(|other| other.ask != claims.ask);
        let reader = Arc::new(Reader::new(*nonce, now));
        reader.go_on_until(now + self.lease);
        let signal = Arc::new(Signal::new());
        let (to, batches) = room.queue(&signal);
        let (sink, state) = (claims.sink, reader.clone());
        let sending = move || state.serve(sink, batches, &signal);
        if std::thread::Builder::new().name("udp on request".to_owned()).spawn(sending).is_err() {
            return Answer::Unknown;
        }
        clients.readers.push(reader);
        clients.newcomers.push(to);
        self.has_newcomers.store(true, Ordering::Relaxed);
        Answer::Sends { frames: 0 }
    }

    fn wait_for_ends(&self) {
        let until = Instant::now() + ENDS_WITHIN;
        while Instant::now() < until && self.lock().readers.iter().any(|reader| !reader.is_over()) {
            std::thread::sleep(CHECK_EVERY);
        }
    }

    fn room(&self) -> Room {
        Room::of(self.batches_in_flight.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients {
    fn has_place(&self, now: Instant, room: Room) -> bool {
        self.readers.iter().filter(|reader| !reader.is_silent(now)).count() < room.readers
    }
}

impl Reader {
    fn new(nonce: Nonce, since: Instant) -> Self {
        Self {
            nonce,
            since,
            until_ms: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            end: OnceLock::new(),
        }
    }

    /// Sends queued batches while the reader requests them. A reader that returns after a silence keeps its socket, and
    /// sees a gap.
    fn serve(&self, mut sink: UdpSink, mut batches: QueueReceiver, signal: &Signal) {
        while !self.is_over() {
            let Some(batch) = batches.pop() else {
                if batches.is_ended() {
                    break;
                }
                signal.wait(CHECK_EVERY, || batches.has_batch() || batches.is_ended());
                continue;
            };
            if self.is_silent(Instant::now()) {
                continue;
            }
            // Of such frames only the descriptions would arrive.
            if batch.frames().next().is_some_and(|it| it.header().frame_bytes() > MAX_DATAGRAM_BYTES) {
                return self.stop();
            }
            let frames = batch.len() as u64;
            match sink.send_batch(batch) {
                Ok(()) => {
                    self.frames.fetch_add(frames, Ordering::Relaxed);
                }
                // The link is full: the reader sees the loss in the sequence.
                Err(error) if is_stall(&error) => {}
                // The frames are too long, or the route is gone.
                Err(_) => return self.stop(),
            }
            // The reader's host reports a closed port.
            if sink.sent().refused > 0 {
                return self.stop();
            }
        }
        if let Some(end) = self.end.get()
            && !self.is_over()
            && !self.is_silent(Instant::now())
        {
            // A reader that has the end closes its port, and refuses the repeats.
            let _ = sink.send_end(end);
        }
        self.stop();
    }

    fn go_on_until(&self, at: Instant) {
        let until_ms = at.saturating_duration_since(self.since).as_millis();
        self.until_ms.store(u64::try_from(until_ms).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn is_silent(&self, now: Instant) -> bool {
        let now_ms = now.saturating_duration_since(self.since).as_millis();
        now_ms >= u128::from(self.until_ms.load(Ordering::Relaxed))
    }

    fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

fn is_stall(error: &StageError) -> bool {
    matches!(error.downcast_ref(), Some(grebe_datagram::Error::Stalled { .. }))
}

/// Maximum readers of a stream at a time.
const READERS_MAX: usize = 8;
/// Validity of a request. A killed reader gets no frames after that.
const LEASE: Duration = Duration::from_millis(1_500);
/// Maximum unconfirmed addresses, and the time after which they are forgotten. Limits the probes in that time.
const CLAIMS_MAX: usize = 64;
const CLAIM_TIMEOUT: Duration = Duration::from_secs(2);
/// Few, because they hold the source's memory.
const QUEUE_BATCHES_MAX: usize = 16;
const CHECK_EVERY: Duration = Duration::from_millis(20);
const ENDS_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
