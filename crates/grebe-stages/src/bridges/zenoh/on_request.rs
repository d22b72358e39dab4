//! Datagrams to readers that ask for them: who gets the frames of an announced stream by UDP, beside Zenoh.
//!
//! ```text
//!   questions (threads of Zenoh's) -> Desk: asked -> readers        batch -> OnRequest -+-> queue -> thread, UdpSink -> reader
//!                                        |  newcomers ----------------------^           +-> queue -> thread, UdpSink -> reader
//! ```
//!
//! Each reader has a queue that drops its oldest and a thread: neither the sink nor another reader waits for it.

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

/// Sends a stream to readers that ask for it by UDP, for as long as they go on asking.
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

    /// Hands a batch to all that asked. What has no time for it misses it, and sees that by the sequence. The source has memory for so many
    /// `batches_in_flight`.
    pub(super) fn send(&mut self, batch: &Batch, batches_in_flight: usize) {
        self.sending.desk.batches_in_flight.store(batches_in_flight, Ordering::Relaxed);
        self.sending.send(batch);
    }

    /// Readers that get the stream.
    pub(super) fn readers(&self) -> usize {
        self.sending.queues.len()
    }

    /// The stream is over: readers are told so meanwhile.
    pub(super) fn end(&mut self, end: Option<Header>) {
        self.sending.end(end);
    }

    /// Waits until they were, for a second at most.
    pub(super) fn wait_for_ends(&self) {
        self.sending.desk.wait_for_ends();
    }
}

/// The batches on their way to who asked.
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
        let mut told = self.desk.lock();
        told.is_over = true;
        told.asked.clear();
        if let Some(end) = end {
            for reader in &told.readers {
                // The stream ends once.
                let _ = reader.end.set(end);
            }
        }
        // What is in the queues goes first.
        told.newcomers.clear();
        drop(told);
        self.queues.clear();
    }
}

/// Where readers ask.
#[derive(Debug)]
struct Desk {
    told: Mutex<Told>,
    has_newcomers: AtomicBool,
    /// What the source has memory for; 0: nothing has flowed yet.
    batches_in_flight: AtomicUsize,
    transport: Transport,
    lease: Duration,
}

/// How much of the source's memory readers may keep: if all of it were theirs, the source would wait for the slowest link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    /// That wait for a reader: the newest, which are the same for all that are behind.
    queue_batches: usize,
    /// Each has a batch in hand.
    readers: usize,
}

impl Room {
    fn of(batches_in_flight: usize) -> Self {
        let share = |part: usize, most: usize| match batches_in_flight {
            // Who asks before anything flows: mostly, there is memory enough.
            0 => most,
            batches => (batches / part).clamp(1, most),
        };
        Self { queue_batches: share(4, QUEUE_BATCHES_MAX), readers: share(8, READERS_MAX) }
    }

    /// To one reader.
    fn queue(self, reader: &Arc<Signal>) -> (QueueSender, QueueReceiver) {
        queue(QueueOptions::drop_oldest(self.queue_batches), Arc::default(), reader.clone())
    }
}

#[derive(Debug, Default)]
struct Told {
    asked: Vec<Asked>,
    asks: u64,
    readers: Vec<Arc<Reader>>,
    newcomers: Vec<QueueSender>,
    is_over: bool,
}

/// An address that somebody claims to read at.
#[derive(Debug)]
struct Asked {
    /// Which question claimed it, perhaps beside others.
    ask: u64,
    nonce: Nonce,
    sink: UdpSink,
    at: Instant,
}

/// Somebody who reads at an address.
#[derive(Debug)]
struct Reader {
    nonce: Nonce,
    since: Instant,
    /// Milliseconds after that until which frames are sent.
    until_ms: AtomicU64,
    frames: AtomicU64,
    is_over: AtomicBool,
    end: OnceLock<Header>,
}

impl Desk {
    fn new(transport: Transport, lease: Duration) -> Self {
        let (has_newcomers, batches_in_flight) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { told: Mutex::default(), has_newcomers, batches_in_flight, transport, lease }
    }

    fn answer(&self, request: &Request, now: Instant) -> Answer {
        let mut told = self.lock();
        told.asked.retain(|asked| now.saturating_duration_since(asked.at) < ASKED_FOR);
        told.readers.retain(|reader| !reader.is_over());
        match request {
            _ if told.is_over => Answer::Unknown,
            Request::Ask { at, is_near } => self.probe(&mut told, at, *is_near, now),
            Request::Send { nonce } => self.go_on(&mut told, nonce, now),
            Request::End { nonce } => {
                told.readers.iter().filter(|reader| reader.nonce == *nonce).for_each(|reader| reader.stop());
                Answer::Unknown
            }
        }
    }

    /// Sends a number to each address: whoever reads there can say it.
    fn probe(&self, told: &mut Told, at: &[SocketAddr], is_near: bool, now: Instant) -> Answer {
        if told.asked.len() + at.len() > ASKED_MAX || !told.has_place(now, self.room()) {
            return Answer::Full;
        }
        told.asks += 1;
        for to in at {
            // No route to one of them says nothing of the others.
            let Ok(mut sink) = self.connect(*to, is_near) else { continue };
            let nonce = Nonce::random();
            if sink.send_bytes(&nonce.probe()).is_ok() {
                told.asked.push(Asked { ask: told.asks, nonce, sink, at: now });
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

    /// Whoever knows the number reads at the address.
    fn go_on(&self, told: &mut Told, nonce: &Nonce, now: Instant) -> Answer {
        if let Some(reader) = told.readers.iter().find(|reader| reader.nonce == *nonce) {
            reader.go_on_until(now + self.lease);
            return Answer::Sends { frames: reader.frames.load(Ordering::Relaxed) };
        }
        let Some(at) = told.asked.iter().position(|asked| asked.nonce == *nonce) else {
            return Answer::Unknown;
        };
        let room = self.room();
        if !told.has_place(now, room) {
            return Answer::Full;
        }
        // Who was silent may lose its place to who is here.
        if told.readers.len() >= room.readers
            && let Some(silent) = told.readers.iter().position(|reader| reader.is_silent(now))
        {
            told.readers.swap_remove(silent).stop();
        }
        let asked = told.asked.swap_remove(at);
        told.asked.retain(|other| other.ask != asked.ask);
        let reader = Arc::new(Reader::new(*nonce, now));
        reader.go_on_until(now + self.lease);
        let signal = Arc::new(Signal::new());
        let (to, batches) = room.queue(&signal);
        let (sink, state) = (asked.sink, reader.clone());
        let sending = move || state.serve(sink, batches, &signal);
        if std::thread::Builder::new().name("udp on request".to_owned()).spawn(sending).is_err() {
            return Answer::Unknown;
        }
        told.readers.push(reader);
        told.newcomers.push(to);
        self.has_newcomers.store(true, Ordering::Relaxed);
        Answer::Sends { frames: 0 }
    }

    fn wait_for_ends(&self) {
        let until = Instant::now() + ENDS_WITHIN;
        while Instant::now() < until && self.lock().readers.iter().any(|reader| !reader.is_over()) {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn room(&self) -> Room {
        Room::of(self.batches_in_flight.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
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

    /// Sends what comes, as long as the reader asks for it. One that was silent and asks again goes on by the same socket: for it, that is
    /// a gap.
    fn serve(&self, mut sink: UdpSink, mut batches: QueueReceiver, signal: &Signal) {
        while !self.is_over() {
            let Some(batch) = batches.pop() else {
                if batches.is_ended() {
                    break;
                }
                signal.wait(LOOK_EVERY, || batches.has_batch() || batches.is_ended());
                continue;
            };
            if self.is_silent(Instant::now()) {
                continue;
            }
            // Nothing of them would come but what says what they are.
            if batch.frames().next().is_some_and(|it| it.header().frame_bytes() > MAX_DATAGRAM_BYTES) {
                return self.stop();
            }
            let frames = batch.len() as u64;
            match sink.send_batch(batch) {
                Ok(()) => {
                    self.frames.fetch_add(frames, Ordering::Relaxed);
                }
                // The link has no room: the reader sees by the sequence what it misses.
                Err(error) if is_stall(&error) => {}
                // They cannot go there: they are too long, or there is no route any more.
                Err(_) => return self.stop(),
            }
            // Its host says that nobody listens there any more.
            if sink.sent().refused > 0 {
                return self.stop();
            }
        }
        if let Some(end) = self.end.get()
            && !self.is_over()
            && !self.is_silent(Instant::now())
        {
            // Who has it is gone, and refuses the repeats.
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

/// Readers of one stream at a time.
const READERS_MAX: usize = 8;
/// For so long after a reader has asked last frames go to it: one that was killed gets none after that.
const LEASE: Duration = Duration::from_millis(1_500);
/// Addresses that were claimed and have not said yet what came there; a claim is forgotten after so long. So no more probes leave in
/// that time, whoever asks.
const ASKED_MAX: usize = 64;
const ASKED_FOR: Duration = Duration::from_secs(2);
/// Batches that wait for a link: few, because they are of the source's memory.
const QUEUE_BATCHES_MAX: usize = 16;
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ENDS_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
