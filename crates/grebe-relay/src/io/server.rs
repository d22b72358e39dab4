//! Relay thread: receives coalesced datagrams and forwards them as they are.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use grebe_datagram::{Gso, Options, Received, Receiver, Sender, bind_with_tcp, listen_anywhere};
use grebe_packet::Cancel;

use super::metrics::Metrics;
use super::streams::{Bounds, Streams, is_connection, lock};
use crate::error::Result;
use crate::proto::message::{MESSAGE_BYTES, Message, MessageBuf};
use crate::proto::relay::{Figures, Limits, Outbox, RelayCore};

/// Options of a relay.
#[derive(Debug, Clone, Default)]
pub struct RelayOptions {
    /// Address to listen at, over UDP, and over TCP at the same port. `None`: [`PORT`](crate::PORT) of every
    /// address of both families.
    pub listen: Option<SocketAddr>,
    /// Address of the metrics page for Prometheus, over HTTP.
    pub metrics: Option<SocketAddr>,
    /// Host name in its requests, if that is neither an address nor this machine's own name.
    pub metrics_name: Option<String>,
    /// Limits of the service.
    pub limits: Limits,
    /// Stops the relay.
    pub cancel: Cancel,
}

/// A listening relay.
///
/// ```
/// use std::time::Duration;
/// use grebe_relay::{Relay, RelayOptions};
///
/// # fn main() -> Result<(), grebe_relay::Error> {
/// let options = RelayOptions { listen: Some("127.0.0.1:0".parse().unwrap()), ..RelayOptions::default() };
/// let relay = Relay::bind(&options)?;
/// println!("relaying at {}", relay.address());
/// options.cancel.cancel(); // a real one runs for ever
/// assert_eq!(relay.run()?.relayed_bytes, 0);
/// # Ok(())
/// # }
/// ```
pub struct Relay {
    datagrams: Receiver<Vec<u8>>,
    sender: Sender,
    address: SocketAddr,
    metrics: Option<Metrics>,
    core: Arc<Mutex<RelayCore>>,
    /// Connections for ends that block UDP, or the reason for their absence.
    streams: io::Result<Streams>,
    cancel: Cancel,
    clock: Instant,
    /// Empty receive buffers.
    pool: Vec<Vec<u8>>,
    /// Received data, until it has left.
    held: Vec<(Vec<u8>, Received)>,
    passed: Vec<Passed>,
    answers: Outbox,
    unsent: u64,
    kernel_drops: u64,
    next_look: Duration,
}

/// Contiguous datagrams of one length, and their destination.
struct Passed {
    held: usize,
    from: usize,
    end: usize,
    segment_bytes: usize,
    to: SocketAddr,
}

impl Relay {
    /// Opens the sockets.
    ///
    /// # Errors
    /// [`Error::Socket`](crate::Error::Socket) and [`Error::Metrics`](crate::Error::Metrics) if an address
    /// cannot be bound; [`Error::Keys`](crate::Error::Keys) if the system has no random numbers.
    pub fn bind(options: &RelayOptions) -> Result<Self> {
        let open = |at| Receiver::bind(at, &socket_options());
        let bind = |address| bind_with_tcp(address, open, Receiver::local_addr);
        let (datagrams, _, listener) = match options.listen {
            Some(address) => bind(address)?,
            None => listen_anywhere(crate::PORT, bind)?,
        };
        let core = Arc::new(Mutex::new(RelayCore::new(options.limits)?));
        let (clock, by_tcp) = (Instant::now(), Sender::on(&datagrams, &socket_options())?);
        Ok(Self {
            address: datagrams.local_addr()?,
            sender: Sender::on(&datagrams, &socket_options())?,
            datagrams,
            metrics: options
                .metrics
                .map(|address| Metrics::listen(address, options.metrics_name.clone()))
                .transpose()?,
            streams: listener.and_then(|listener| {
                Streams::start(listener, core.clone(), by_tcp, clock, Bounds::default())
            }),
            core,
            cancel: options.cancel.clone(),
            clock,
            pool: (0..2 * SLOTS).map(|_| vec![0; SLOT_BYTES]).collect(),
            held: Vec::with_capacity(SLOTS),
            passed: Vec::with_capacity(PASSED_MAX),
            answers: Outbox::with_capacity(2 * SLOTS),
            unsent: 0,
            kernel_drops: 0,
            next_look: Duration::ZERO,
        })
    }

    /// Address for the ends.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Why it accepts no TCP, if so.
    pub fn no_tcp(&self) -> Option<&io::Error> {
        self.streams.as_ref().err()
    }

    /// Address of the metrics page.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|metrics| metrics.address)
    }

    /// Relays until cancelled, and returns its totals.
    ///
    /// # Errors
    /// [`Error::Socket`](crate::Error::Socket) if the socket fails.
    pub fn run(mut self) -> Result<Figures> {
        while !self.cancel.is_cancelled() {
            let outcome = self.datagrams.recv(
                || self.pool.pop(),
                |slot, received| {
                    self.held.push((slot, received));
                    None
                },
            )?;
            self.kernel_drops = outcome.kernel_drops.unwrap_or(0);
            self.sort();
            self.pass_on();
            self.answer();
            self.pool.extend(self.held.drain(..).map(|(slot, _)| slot));
            self.check();
        }
        Ok(self.figures())
    }

    /// Decides about all received data.
    fn sort(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let now_us = self.clock.elapsed().as_micros() as u64;
        let mut core = lock(&self.core);
        for (number, (slot, received)) in self.held.iter().enumerate() {
            let mut sorter = Sorter { core: &mut core, answers: &mut self.answers, now_us };
            if received.segment_bytes == MESSAGE_BYTES {
                for range in received.segments() {
                    let datagram = &slot[range.clone()];
                    if !sorter.take_question(received.from, datagram) {
                        let len = datagram.len();
                        self.passed.extend(sorter.route(number, received.from, range.start, len, len));
                    }
                }
                continue;
            }
            // Among datagrams of one length, only the last one, which may be shorter, can be a question.
            let last = received.len - received.len % received.segment_bytes.max(1);
            let is_question =
                last < received.len && sorter.take_question(received.from, &slot[last..received.len]);
            let end = if is_question { last } else { received.len };
            if end > 0 {
                self.passed.extend(sorter.route(number, received.from, 0, end, received.segment_bytes));
            }
        }
    }

    /// Forwards the allowed datagrams in as few calls as possible.
    fn pass_on(&mut self) {
        if self.passed.is_empty() {
            return;
        }
        let unsent_before = self.sender.counters().unsent;
        let mut batch = self.sender.batch();
        for passed in &self.passed {
            let run = &self.held[passed.held].0[passed.from..passed.end];
            if let (true, Ok(streams)) = (is_connection(passed.to), &self.streams) {
                streams.give(passed.to, run, passed.segment_bytes);
                continue;
            }
            // A failed send to one end is counted and does not affect others.
            if batch.push_run_to(passed.to, run, passed.segment_bytes).is_err() {
                self.unsent += run.len().div_ceil(passed.segment_bytes) as u64;
            }
        }
        // Each failure skips one message. A stall leaves the rest to the end of the batch, which tries once
        // more.
        while let Err(grebe_datagram::Error::Send { .. }) = batch.flush() {}
        drop(batch);
        self.unsent += self.sender.counters().unsent - unsent_before;
        self.passed.clear();
        if let Ok(streams) = &self.streams {
            streams.wake();
        }
    }

    fn answer(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let mut batch = self.sender.batch();
        for (to, message) in &self.answers {
            if let (true, Ok(streams)) = (is_connection(*to), &self.streams) {
                streams.give(*to, message, message.len());
                continue;
            }
            let _ = batch.push_to(*to, message, &[]);
        }
        while let Err(grebe_datagram::Error::Send { .. }) = batch.flush() {}
        drop(batch);
        self.answers.clear();
        if let Ok(streams) = &self.streams {
            streams.wake();
        }
    }

    /// Periodic work.
    fn check(&mut self) {
        let now = self.clock.elapsed();
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK_EVERY;
        lock(&self.core).tick(now.as_micros() as u64);
        // A path that rejects coalesced or long datagrams may slow down only its own session, and only
        // briefly.
        let is_slowed = self.sender.counters().gso_fallbacks > 0 || self.sender.gso() == Gso::Disabled;
        if is_slowed && let Ok(sender) = Sender::on(&self.datagrams, &socket_options()) {
            self.sender = sender;
        }
        let figures = self.figures();
        if let Some(metrics) = &self.metrics {
            metrics.tell(figures);
        }
    }

    fn figures(&self) -> Figures {
        let counts = self.streams.as_ref().map(Streams::counts).unwrap_or_default();
        let (connections, closed_connections, dropped_of_slow) = counts;
        let (dropped_unsent, dropped_in_kernel) = (self.unsent, self.kernel_drops);
        let of_core = lock(&self.core).figures();
        let of_udp = Figures { dropped_unsent, dropped_in_kernel, ..of_core };
        Figures { connections, closed_connections, dropped_of_slow, ..of_udp }
    }
}

/// Decides about one buffer of datagrams.
struct Sorter<'a> {
    core: &'a mut RelayCore,
    answers: &'a mut Outbox,
    now_us: u64,
}

impl Sorter<'_> {
    /// Whether a datagram is for the relay itself. If so, it is answered.
    fn take_question(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let Ok(message) = <&MessageBuf>::try_from(datagram) else { return false };
        let is_question = Message::is_of_relay(message);
        if is_question {
            self.core.on_message(self.now_us, from, message, self.answers);
        }
        is_question
    }

    fn route(
        &mut self,
        held: usize,
        sender: SocketAddr,
        from: usize,
        len: usize,
        segment_bytes: usize,
    ) -> Option<Passed> {
        let (to, bytes) = self.core.route(self.now_us, sender, len, segment_bytes)?;
        Some(Passed { held, from, end: from + bytes, segment_bytes, to })
    }
}

/// Datagrams keep their sender's length. One that is too long for the other path is lost there, and so is its
/// sender's probe of that length.
fn socket_options() -> Options {
    Options {
        slots: SLOTS,
        dont_fragment: true,
        copy_below_bytes: 0,
        recv_timeout: LOOK_EVERY,
        send_timeout: Duration::from_millis(5),
        ..Options::default()
    }
}

const SLOTS: usize = 32;

/// One kernel buffer of coalesced datagrams.
const SLOT_BYTES: usize = 65_536;

/// Maximum runs per batch: one per buffer, except for buffers with datagrams as long as a question.
const PASSED_MAX: usize = SLOTS * (SLOT_BYTES / MESSAGE_BYTES + 1);

const LOOK_EVERY: Duration = Duration::from_millis(200);
