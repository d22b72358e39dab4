//! A direct connection with another host of the graph: how it comes about, and its end.

use std::io::BufReader;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_connection::{ConnectionOptions, ConnectionStatus};
use grebe_link::edge::{Outbox, read_messages};
use grebe_remote::{Channel, Dialer, Route, Terms};
use grebe_ring::Cancel;

use super::ear::Ear;
use super::lines::{ALIVE_EVERY, FillMeter, SILENT_FOR, ToHere, ToThere, words};
use super::links::Ends;

/// A connection that comes about, or not.
pub(super) struct Attempt {
    channel: Arc<Mutex<Option<Channel>>>,
    /// Ends the attempt, and the connection.
    pub(super) cancel: Cancel,
}

/// Which connection is meant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meant {
    pub(super) peer: u16,
    pub(super) round: u32,
    /// Its links are joined anew where it breaks.
    pub(super) is_kept: bool,
}

/// Whether all has passed that was to pass in a direction, or why not.
type Passed = Result<(), String>;

/// A peer that is there.
pub(super) struct Joined {
    pub(super) round: u32,
    is_kept: bool,
    pub(super) links: Vec<u16>,
    pub(super) outbox: Arc<Outbox>,
    /// It is at the port that was named.
    pub(super) holds_port: bool,
    status: Option<ConnectionStatus>,
    pub(super) cancel: Cancel,
    reader: JoinHandle<()>,
    /// Once it has ended: taken, when this host has seen that.
    read: Arc<Mutex<Option<Passed>>>,
    ear: Ear,
    spoke_at: Instant,
    /// It has said all that it had to say.
    is_read: bool,
    is_broken: bool,
    /// Its peer is gone, and may come back.
    pub(super) is_away: bool,
    pub(super) lost_at: Option<Instant>,
    /// This host has nothing more to say there, and reads no more.
    is_finishing: bool,
    /// Until the peer has all that it is to have.
    finishing: Option<JoinHandle<Passed>>,
    is_over: bool,
}

impl Attempt {
    /// Tries it in a thread, and tells what came of it.
    pub(super) fn start(
        terms: Terms,
        make: impl FnOnce(&ConnectionOptions) -> Result<Channel> + Send + 'static,
        tell: impl FnOnce(Option<Route>) + Send + 'static,
    ) -> Self {
        let (cancel, channel) = (Cancel::default(), Arc::<Mutex<Option<Channel>>>::default());
        let options = Dialer::served(terms, &cancel).options(false);
        // Whatever the user wants: there is the way through the process that runs the graph.
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

impl Joined {
    /// Begins to read, and to write what `outbox` has; what is not about samples is told to `tells`.
    pub(super) fn open(
        Meant { peer, round, is_kept }: Meant,
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
                    tells.say(words(&ToHere::PeerFilled { peer, filled }));
                }
            });
            match (&read, is_kept) {
                // It has said all that it had to say, and waits for nothing.
                (Ok(()), false) => answers.close(),
                // The same, but it may have failed, and another may take its place.
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
            ear: Ear::new(now),
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

    /// Looks how it stands; why it broke, if it just did.
    pub(super) fn look(&mut self, ends: &Ends) -> Option<String> {
        let broke = match (self.take_read(), self.take_finished()) {
            (_, Some(Err(why))) => Some(why),
            (Some(Err(why)), _) if !self.is_finishing => Some(why),
            (Some(Ok(())), _) => {
                self.is_read = true;
                // Of one that is kept, each link says itself that it ends: it may only have failed.
                if !self.is_kept {
                    self.end(ends);
                }
                None
            }
            _ => None,
        };
        self.is_broken |= broke.is_some();
        // What has come from a host that is gone is still taken.
        let is_awaited = |at: Instant| !self.is_broken && at.elapsed() < ARRIVES_WITHIN;
        if !self.is_over && self.lost_at.is_some_and(|at| !is_awaited(at)) {
            self.give_up(ends);
        }
        broke.filter(|_| !self.is_away)
    }

    /// Says that this host is there; whether the peer is heard, if that is news.
    pub(super) fn listen(&mut self, now: Instant) -> Option<bool> {
        if self.is_over || self.is_read || self.is_gone() {
            return None;
        }
        if now - self.spoke_at >= ALIVE_EVERY && !self.is_finishing {
            self.spoke_at = now;
            self.outbox.say(words(&ToThere::Here));
        }
        let silent_us = self.status.as_ref().map_or(0, |status| status.progress().silent_us);
        self.ear.listen(now, Duration::from_micros(silent_us))
    }

    fn take_read(&self) -> Option<Passed> {
        locked(&self.read).take()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_broken || self.is_away || self.lost_at.is_some()
    }

    /// What this host has said is to arrive, as long as that takes.
    pub(super) fn finish(&mut self) {
        self.is_finishing = true;
        self.outbox.finish();
        let (outbox, status) = (self.outbox.clone(), self.status.clone());
        self.finishing = Some(thread::spawn(move || {
            outbox.wait_written(WHOLE_WITHIN);
            // The peer closes its own once it has read to the end.
            status.map_or(Ok(()), |status| status.close().map_err(|error| error.to_string()))
        }));
    }

    /// Whether the peer has it all, or is known to be gone.
    pub(super) fn is_finished(&self) -> bool {
        let has_all = self.finishing.is_none() && !self.is_broken;
        has_all || self.is_away || self.lost_at.is_some()
    }

    /// Whether all has arrived, once that is known.
    fn take_finished(&mut self) -> Option<Passed> {
        let finishing = self.finishing.take_if(|finishing| finishing.is_finished())?;
        let passed = finishing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(passed.or_else(|why| if self.is_gone() { Ok(()) } else { Err(why) }))
    }

    /// Whether nothing comes from it any more.
    #[cfg(test)]
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Nothing comes from it any more.
    fn end(&mut self, ends: &Ends) {
        self.is_over = true;
        self.links.iter().for_each(|&link| ends.end(link));
    }

    /// It is gone: what was under way to it is counted.
    fn give_up(&mut self, ends: &Ends) {
        self.end(ends);
        self.outbox.hang_up();
        self.outbox.close();
        self.cancel.cancel();
    }

    /// It is over, and none of its links goes there any more: returns once all has been read that has come.
    pub(super) fn end_reading(self) {
        self.cancel.cancel();
        if let Err(panic) = self.reader.join() {
            std::panic::resume_unwind(panic);
        }
        self.outbox.hang_up();
        self.outbox.close();
    }
}

/// A panic while it was held has ended the thread that held it, and left nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A way that answers later is none: samples go through the process that runs the graph.
const REACHED_WITHIN: Duration = Duration::from_secs(2);
/// What a host that is gone has sent before.
const ARRIVES_WITHIN: Duration = Duration::from_millis(300);
/// As long as a path takes: one that is gone is told of before.
const WHOLE_WITHIN: Duration = Duration::from_secs(3_600);
const READ_BYTES: usize = 256 << 10;
