//! Outgoing data of a connection: control text first, then the links in turn.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use grebe_frame::Batch;

use super::buffer::{Buffer, locked};
use super::lane::{Item, Lane, Producer, Room, Unconfirmed, write};
use super::message::{BadLink, CONTROL_BYTES_MAX, Kind, Taken};

/// Outgoing data of a connection: filled by stages and by readers of other connections, emptied by one
/// writer.
#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
    /// There is something to write.
    news: Condvar,
    /// A link has room again, or is closed.
    room: Condvar,
}

/// One of possibly several successive connections of an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line(u64);

#[derive(Debug, Default)]
struct State {
    words: VecDeque<Vec<u8>>,
    lanes: Vec<Lane>,
    /// First lane to ask, so that a busy one does not starve others.
    turn: usize,
    /// Present connection.
    line: u64,
    /// Another connection may follow this one.
    is_kept: bool,
    /// No connection at present: keeps only the data that links need to begin an epoch.
    is_away: bool,
    /// Ends of streams wait for their release, because the graph here is about to end.
    holds_ends: bool,
    /// Nothing follows; pending data is still written.
    is_finishing: bool,
    /// Nobody reads any more.
    is_closed: bool,
    is_written: bool,
}

impl Outbox {
    /// Makes an outbox that survives the loss of its connection, because another may follow.
    pub fn kept() -> Self {
        let state = State { is_kept: true, ..State::default() };
        Self { state: Mutex::new(state), ..Self::default() }
    }

    /// Starts a connection for all later data.
    pub fn connect(&self) -> Line {
        let mut state = self.state();
        state.line += 1;
        state.is_away = false;
        Line(state.line)
    }

    /// Notes the loss of the connection and of its host, which may return. The sending stages count their
    /// data in flight. They wait or drop by the policy of their edge, until they [join](Self::join) again.
    pub fn hang_up(&self) {
        let mut state = self.state();
        state.line += 1;
        state.is_away = true;
        state.words.clear();
        for lane in &mut state.lanes {
            match lane.has_producer() {
                true => lane.leave(),
                false => lane.clear(),
            }
        }
        self.news.notify_one();
        self.room.notify_all();
    }

    /// Whether this is the present connection.
    pub(super) fn has(&self, line: Line) -> bool {
        let state = self.state();
        state.line == line.0 && !state.is_away
    }

    /// Holds back ends of streams and closed consumers until [`release_ends`](Self::release_ends), because a
    /// failed graph may be restarted and its streams continue.
    pub fn hold_ends(&self) {
        self.state().holds_ends = true;
    }

    /// Releases held ends: the graph will not be restarted.
    pub fn release_ends(&self) {
        let mut state = self.state();
        state.holds_ends = false;
        state.lanes.iter_mut().for_each(Lane::release_ends);
        self.news.notify_one();
    }

    /// Sends text to the process at the other end, ahead of all pending data.
    pub fn say(&self, words: impl Into<Vec<u8>>) {
        let words = words.into();
        debug_assert!(words.len() <= CONTROL_BYTES_MAX as usize);
        let mut state = self.state();
        let is_heard = !state.is_closed && !state.is_away;
        if is_heard && words.len() <= CONTROL_BYTES_MAX as usize {
            state.words.push_back(words);
            self.news.notify_one();
        }
    }

    /// Marks the end of data: the writer ends once everything is written.
    pub fn finish(&self) {
        self.state().is_finishing = true;
        self.news.notify_one();
    }

    /// Discards pending data and closes the links, because nobody reads any more.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.words.clear();
        state.lanes.iter_mut().for_each(Lane::clear);
        self.news.notify_one();
        self.room.notify_all();
    }

    /// Waits until everything is written or nobody reads any more, at most `patience`. Returns whether
    /// everything is written.
    pub fn wait_written(&self, patience: Duration) -> bool {
        let state = self.state();
        let waited =
            self.room.wait_timeout_while(state, patience, |state| !state.is_written && !state.is_closed);
        waited.is_ok_and(|(state, _)| state.is_written)
    }

    /// Writes pending data until it is [finished](Self::finish) or [closed](Self::close), or the connection
    /// is no longer this one.
    ///
    /// # Errors
    /// A write error. Without a possible successor, the outbox is closed then.
    pub fn write_to(&self, line: Line, mut to: impl Write) -> io::Result<()> {
        let written = self.write_all(line, &mut to);
        if written.is_err() && !self.state().is_kept {
            self.close();
        }
        written
    }

    fn write_all(&self, line: Line, to: &mut impl Write) -> io::Result<()> {
        let mut is_flushed = true;
        loop {
            let next = {
                let mut state = self.state();
                loop {
                    if state.is_closed || state.line != line.0 {
                        return Ok(());
                    }
                    if let Some(next) = state.next() {
                        break Some(next);
                    }
                    if !is_flushed {
                        break None;
                    }
                    if state.is_finishing {
                        state.is_written = true;
                        self.room.notify_all();
                        return Ok(());
                    }
                    state = self.news.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
                }
            };
            match next {
                Some(next) => {
                    let is_item = matches!(next, Next::Item(..));
                    next.write(to)?;
                    is_flushed = false;
                    if is_item {
                        self.room.notify_all();
                    }
                }
                None => {
                    to.flush()?;
                    is_flushed = true;
                }
            }
        }
    }

    /// Waits until the link has room for a batch, or `timeout` has passed.
    pub(super) fn wait_for_room(&self, link: u16, window_batches: u64, timeout: Duration) -> Room {
        let state = self.state();
        let is_full = |state: &mut State| state.room(link, window_batches) == Room::NotYet;
        let waited = self.room.wait_timeout_while(state, timeout, is_full);
        let (mut state, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        state.room(link, window_batches)
    }

    /// Registers the producing stage of a link, with counters for data that may be lost in transit.
    pub(super) fn open(&self, link: u16, is_again: bool, counters: Unconfirmed) {
        self.at(link, |lane| lane.open(is_again, counters));
    }

    /// Queues frames of this process with their description, for which that epoch had room.
    pub(super) fn send(&self, link: u16, epoch: u32, before: Vec<u8>, batch: Batch, frames_bytes: usize) {
        self.at(link, |lane| lane.send(epoch, before, batch, frames_bytes));
        self.news.notify_one();
    }

    /// Ends a link's stream after its queued data, with a final frame if there is one.
    pub(super) fn end(&self, link: u16, end: Vec<u8>, may_begin_again: bool) {
        let is_held = may_begin_again && self.state().holds_ends;
        self.at(link, |lane| lane.end(end, is_held));
        self.news.notify_one();
    }

    /// Closes this process's consumer of a link.
    pub(super) fn leave_link(&self, link: u16, may_begin_again: bool) {
        if may_begin_again && self.state().holds_ends {
            return self.at(link, Lane::hold_closed);
        }
        self.close_link(link);
    }

    /// Ends a link's stream after its queued data, because its producer is gone.
    pub fn end_link(&self, link: u16) {
        self.tell(link, Item::End(Vec::new()));
    }

    /// Closes a link, because its consumer is gone.
    pub fn close_link(&self, link: u16) {
        self.tell(link, Item::Closed);
    }

    /// Tells the other end's producer that the host of its consumer is gone for now.
    pub fn tell_away(&self, link: u16) {
        self.tell(link, Item::Away);
    }

    /// Tells the other end's producer to begin this epoch, because its consumer is back.
    pub fn tell_join(&self, link: u16, epoch: u32) {
        self.tell(link, Item::Join(epoch));
    }

    /// Begins this epoch at this end's producer, because its consumer is back.
    pub fn join(&self, link: u16, epoch: u32) {
        self.at(link, |lane| lane.join(epoch));
        self.news.notify_one();
        self.room.notify_all();
    }

    /// Releases a link for another connection. Returns the knowledge of its consumer, if its producer is in
    /// this process.
    pub(super) fn release(&self, link: u16) -> Option<Producer> {
        let released = self.state().lane(link).release();
        self.room.notify_all();
        released
    }

    /// Takes over a link from another connection.
    pub(super) fn take_over(&self, link: u16, producer: Producer) {
        self.at(link, |lane| lane.producer = producer);
    }

    /// Forwards a message through this process.
    ///
    /// # Errors
    /// The other end has exceeded its window.
    pub(super) fn relay(&self, link: u16, kind: Kind, message: Buffer) -> Result<(), BadLink> {
        let mut state = self.state();
        if state.is_closed || state.is_away {
            return Ok(());
        }
        let lane = state.lane(link);
        if lane.is_overfull() {
            return Err(BadLink::Window(link));
        }
        lane.relay(kind, message);
        self.news.notify_one();
        Ok(())
    }

    /// Sends the acknowledgement of this end's consumer, or of the end beyond this relay.
    pub(super) fn tell_taken(&self, link: u16, taken: Taken) {
        let mut state = self.state();
        if !state.is_closed && !state.is_away {
            state.lane(link).taken_here = Some(taken);
            self.news.notify_one();
        }
    }

    /// Takes an acknowledgement of the other end's consumer.
    pub(super) fn was_taken(&self, link: u16, taken: Taken) {
        self.at(link, |lane| lane.was_taken(taken));
        self.room.notify_all();
    }

    /// Notes that the other end's consumer is closed.
    pub(super) fn was_closed(&self, link: u16) {
        self.at(link, Lane::was_closed);
        self.room.notify_all();
    }

    /// Notes that the host of the other end's consumer is gone for now.
    pub(super) fn was_left(&self, link: u16) {
        self.at(link, Lane::leave);
    }

    /// Queues a message for the other end of a link, if anybody is there.
    fn tell(&self, link: u16, item: Item) {
        let mut state = self.state();
        if !state.is_closed && !state.is_away {
            state.lane(link).push(item);
            self.news.notify_one();
        }
    }

    /// Changes the state of a link, unless everything is over.
    fn at(&self, link: u16, change: impl FnOnce(&mut Lane)) {
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        change(state.lane(link));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl State {
    fn lane(&mut self, link: u16) -> &mut Lane {
        let at = self.lanes.iter().position(|lane| lane.link == link).unwrap_or_else(|| {
            self.lanes.push(Lane::of(link));
            self.lanes.len() - 1
        });
        &mut self.lanes[at]
    }

    fn room(&mut self, link: u16, window_batches: u64) -> Room {
        if self.is_closed { Room::Closed } else { self.lane(link).room(window_batches) }
    }

    fn next(&mut self) -> Option<Next> {
        if let Some(words) = self.words.pop_front() {
            return Some(Next::Words(words));
        }
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.taken_here.is_some()) {
            return lane.taken_here.take().map(|taken| Next::Taken(lane.link, taken));
        }
        for _ in 0..self.lanes.len() {
            self.turn = (self.turn + 1) % self.lanes.len();
            let lane = &mut self.lanes[self.turn];
            if let Some(item) = lane.pop() {
                return Some(Next::Item(lane.link, item));
            }
        }
        None
    }
}

/// Next data to write.
enum Next {
    Words(Vec<u8>),
    Taken(u16, Taken),
    Item(u16, Item),
}

impl Next {
    fn write(self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Words(words) => write(to, Kind::Control, 0, &words),
            Self::Taken(link, taken) => write(to, Kind::Taken, link, &taken.to_bytes()),
            Self::Item(link, item) => item.write(link, to),
        }
    }
}
