//! Direct connection with another host of the graph.

use std::io::BufReader;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_connection::{ConnectionOptions, ConnectionStatus};
use grebe_link::edge::{Outbox, read_messages};
use grebe_remote::{Channel, Dialer, Route, Terms};
use grebe_ring::Cancel;

use super::lines::{ALIVE_EVERY, FillMeter, SILENT_FOR, ToCoordinator, ToHost, words};
use super::links::Ends;
use super::silence::SilenceDetector;

/// Attempt to connect.
pub(super) struct Attempt {
    channel: Arc<Mutex<Option<Channel>>>,
    /// Ends the attempt, and the connection.
    pub(super) cancel: Cancel,
}

/// Identity of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionId {
    pub(super) peer: u16,
    pub(super) round: u32,
    /// Its links join again after a break.
    pub(super) is_kept: bool,
}

/// Whether all data of a direction has passed, or why not.
type Passed = Result<(), String>;

/// Connected peer.
pub(super) struct PeerConnection {
    pub(super) round: u32,
    is_kept: bool,
    pub(super) links: Vec<u16>,
    pub(super) outbox: Arc<Outbox>,
    /// It uses the named port.
    pub(super) holds_port: bool,
    status: Option<ConnectionStatus>,
    pub(super) cancel: Cancel,
    reader: JoinHandle<()>,
    /// Outcome of the reader; taken when this host has handled it.
    read: Arc<Mutex<Option<Passed>>>,
    silence_detector: SilenceDetector,
    spoke_at: Instant,
    /// The peer has sent everything.
    is_read: bool,
    is_broken: bool,
    /// The peer is gone, and may come back.
    pub(super) is_away: bool,
    pub(super) lost_at: Option<Instant>,
    /// This host has nothing more to send, and no longer reads.
    is_finishing: bool,
    /// Runs until the peer has received everything.
    finishing: Option<JoinHandle<Passed>>,
    is_over: bool,
}

impl Attempt {
    /// Attempts a connection in a thread, and reports the outcome.
    pub(super) fn start(
        terms: Terms,
        make: impl FnOnce(&ConnectionOptions) -> Result<Channel> + Send + 'static,
        tell: impl FnOnce(Option<Route>) + Send + 'static,
    ) -> Self {
        let (cancel, channel) = (Cancel::default(), Arc::<Mutex<Option<Channel>>>::default());
        let options = Dialer::served(terms, &cancel).options(false);
        // Without prompts or fallbacks, because the route through the coordinator remains.
        let options = ConnectionOptions { answer_within: REACHED_WITHIN, keep_trying: SILENT_FOR, ..options };
        let made = channel.clone();
        thread::spawn(move || {
            let channel = make(&options).ok();
            let route = channel.as_ref().map(|channel| channel.route);
            *locked(&made) = channel;
            tell(route);
        });
        Self { channel, cancel }
    }

    pub(super) fn take(&self) -> Option<Channel> {
        locked(&self.channel).take()
    }
}

impl PeerConnection {
    /// Starts reading, and writing from `outbox`; messages other than samples go to `tells`.
    pub(super) fn open(
        ConnectionId { peer, round, is_kept }: ConnectionId,
        links: Vec<u16>,
        outbox: Arc<Outbox>,
        channel: Channel,
        cancel: Cancel,
        ends: &Ends,
        tells: &Arc<Outbox>,
    ) -> Self {
        let (line, read) = (outbox.connect(), Arc::<Mutex<Option<Passed>>>::default());
        let routes = ends.routes(|link| links.contains(&link));
        let (answers, tells, ended) = (outbox.clone(), tells.clone(), read.clone());
        let reader = BufReader::with_capacity(READ_BYTES, channel.reader);
        let reader = thread::spawn(move || {
            let mut meter = FillMeter::default();
            let read = read_messages(reader, &routes, &answers, line, |said| {
                if let Some(filled) = meter.take(said).flatten() {
                    tells.say(words(&ToCoordinator::PeerFilled { peer, filled }));
                }
            });
            match (&read, is_kept) {
                // The peer has sent everything, and waits for nothing.
                (Ok(()), false) => answers.close(),
                // The same, but it may have failed and be replaced.
                (Ok(()), true) => answers.finish(),
                (Err(_), _) => {}
            }
            *locked(&ended) = Some(read.map_err(|error| error.to_string()));
        });
        let (writes, writer) = (outbox.clone(), channel.writer);
        thread::spawn(move || writes.write_to(line, writer));
        let (status, now) = (channel.status, Instant::now());
        Self {
            round,
            is_kept,
            links,
            outbox,
            holds_port: false,
            status,
            cancel,
            reader,
            read,
            silence_detector: SilenceDetector::new(now),
            spoke_at: now,
            is_read: false,
            is_broken: false,
            is_away: false,
            lost_at: None,
            is_finishing: false,
            finishing: None,
            is_over: false,
        }
    }

    /// Polls the connection; returns the reason of a new break.
    pub(super) fn poll(&mut self, ends: &Ends) -> Option<String> {
        let broke = match (self.take_read(), self.take_finished()) {
            (_, Some(Err(why))) => Some(why),
            (Some(Err(why)), _) if !self.is_finishing => Some(why),
            (Some(Ok(())), _) => {
                self.is_read = true;
                // Each link of a kept connection reports its own end.
                if !self.is_kept {
                    self.end(ends);
                }
                None
            }
            _ => None,
        };
        self.is_broken |= broke.is_some();
        // Data that a lost host has sent is still accepted.
        let is_awaited = |at: Instant| !self.is_broken && at.elapsed() < ARRIVES_WITHIN;
        if !self.is_over && self.lost_at.is_some_and(|at| !is_awaited(at)) {
            self.give_up(ends);
        }
        broke.filter(|_| !self.is_away)
    }

    /// Sends a keep-alive; returns whether the peer is audible, if that changed.
    pub(super) fn listen(&mut self, now: Instant) -> Option<bool> {
        if self.is_over || self.is_read || self.is_gone() {
            return None;
        }
        if now - self.spoke_at >= ALIVE_EVERY && !self.is_finishing {
            self.spoke_at = now;
            self.outbox.say(words(&ToHost::Here));
        }
        let silent_us = self.status.as_ref().map_or(0, |status| status.progress().silent_us);
        self.silence_detector.listen(now, Duration::from_micros(silent_us))
    }

    fn take_read(&self) -> Option<Passed> {
        locked(&self.read).take()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_broken || self.is_away || self.lost_at.is_some()
    }

    /// Waits until everything sent has arrived.
    pub(super) fn finish(&mut self) {
        self.is_finishing = true;
        self.outbox.finish();
        let (outbox, status) = (self.outbox.clone(), self.status.clone());
        self.finishing = Some(thread::spawn(move || {
            outbox.wait_written(WHOLE_WITHIN);
            // The peer closes its end once it has read everything.
            status.map_or(Ok(()), |status| status.close().map_err(|error| error.to_string()))
        }));
    }

    /// Whether the peer has everything, or is gone.
    pub(super) fn is_finished(&self) -> bool {
        let has_all = self.finishing.is_none() && !self.is_broken;
        has_all || self.is_away || self.lost_at.is_some()
    }

    /// Whether everything has arrived, once known.
    fn take_finished(&mut self) -> Option<Passed> {
        let finishing = self.finishing.take_if(|finishing| finishing.is_finished())?;
        let passed = finishing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(passed.or_else(|why| if self.is_gone() { Ok(()) } else { Err(why) }))
    }

    /// Whether nothing more will arrive.
    #[cfg(test)]
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Nothing more will arrive.
    fn end(&mut self, ends: &Ends) {
        self.is_over = true;
        self.links.iter().for_each(|&link| ends.end(link));
    }

    /// The peer is gone: counts data in flight.
    fn give_up(&mut self, ends: &Ends) {
        self.end(ends);
        self.outbox.hang_up();
        self.outbox.close();
        self.cancel.cancel();
    }

    /// Ends a connection without links, after reading everything that has arrived.
    pub(super) fn end_reading(self) {
        self.cancel.cancel();
        if let Err(panic) = self.reader.join() {
            std::panic::resume_unwind(panic);
        }
        self.outbox.hang_up();
        self.outbox.close();
    }
}

/// A panic of the holder has ended its thread, and left the data consistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Slower connections are not used: samples go through the coordinator.
const REACHED_WITHIN: Duration = Duration::from_secs(2);
/// Time for data that a lost host has sent.
const ARRIVES_WITHIN: Duration = Duration::from_millis(300);
/// Effectively unlimited; a lost peer is detected earlier.
const WHOLE_WITHIN: Duration = Duration::from_secs(3_600);
const READ_BYTES: usize = 256 << 10;
