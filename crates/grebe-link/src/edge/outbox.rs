//! What is to be written to a connection: words first, then the links in turn.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use grebe_frame::Batch;

use super::buffer::{Buffer, locked};
use super::lane::{Item, Lane, Producer, Room, Unconfirmed, write};
use super::message::{BadLink, CONTROL_BYTES_MAX, Kind, Taken};

/// What is to be written to a connection, filled by stages and by readers of other connections, emptied by one writer.
#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
    /// There is something to write.
    news: Condvar,
    /// A link has room again, or is closed.
    room: Condvar,
}

/// One connection of the possibly several that an outbox has one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line(u64);

#[derive(Debug, Default)]
struct State {
    words: VecDeque<Vec<u8>>,
    lanes: Vec<Lane>,
    /// Which lane is asked first, so that a busy one does not starve the others.
    turn: usize,
    /// Of the connection that there is.
    line: u64,
    /// Another connection may follow this one.
    is_kept: bool,
    /// There is none just now: nothing is kept for it but what a link needs to begin anew.
    is_away: bool,
    /// Ends of streams wait until they are released where the graph here is about to end.
    holds_ends: bool,
    /// Nothing comes any more; what is there is still written.
    is_finishing: bool,
    /// Nobody reads any more.
    is_closed: bool,
    is_written: bool,
}

impl Outbox {
    /// One that is kept where its connection is lost, since another may follow.
    pub fn kept() -> Self {
        let state = State { is_kept: true, ..State::default() };
        Self { state: Mutex::new(state), ..Self::default() }
    }

    /// There is a connection: what is said from here on goes there.
    pub fn connect(&self) -> Line {
        let mut state = self.state();
        state.line += 1;
        state.is_away = false;
        Line(state.line)
    }

    /// The connection is gone, and the host at the other end with it, which may come back. What was under way to it is counted by the stages
    /// that sent it; they wait, or drop, as the policy of their edge says, until they [join](Self::join) again.
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

    /// Whether this is the connection that there is.
    pub(super) fn has(&self, line: Line) -> bool {
        let state = self.state();
        state.line == line.0 && !state.is_away
    }

    /// The ends of streams that come while the graph ends, and that nobody takes any more of one, are not told before they are [released](Self::release_ends): a graph that has
    /// failed may be started again, and its streams go on then.
    pub fn hold_ends(&self) {
        self.state().holds_ends = true;
    }

    /// The graph will not be started again.
    pub fn release_ends(&self) {
        let mut state = self.state();
        state.holds_ends = false;
        state.lanes.iter_mut().for_each(Lane::release_ends);
        self.news.notify_one();
    }

    /// Says something to the process at the other end, before all that waits.
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

    /// Nothing comes any more: the writer ends once all is written.
    pub fn finish(&self) {
        self.state().is_finishing = true;
        self.news.notify_one();
    }

    /// Nobody reads any more: what waits is forgotten, and links that lead there are closed.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.words.clear();
        state.lanes.iter_mut().for_each(Lane::clear);
        self.news.notify_one();
        self.room.notify_all();
    }

    /// Waits until all is written, or nobody reads any more, `patience` at most; whether it is.
    pub fn wait_written(&self, patience: Duration) -> bool {
        let state = self.state();
        let waited =
            self.room.wait_timeout_while(state, patience, |state| !state.is_written && !state.is_closed);
        waited.is_ok_and(|(state, _)| state.is_written)
    }

    /// Writes what there is, until it is [finished](Self::finish) or [closed](Self::close), or the connection is no longer this one.
    ///
    /// # Errors
    /// It cannot be written: it is closed then, where no other connection may follow.
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

    /// The stage that fills a link is there, and counts what may have been lost on the way.
    pub(super) fn open(&self, link: u16, is_again: bool, counters: Unconfirmed) {
        self.at(link, |lane| lane.open(is_again, counters));
    }

    /// Frames of this process, with what is said before them, for which there was room in that era.
    pub(super) fn send(&self, link: u16, era: u32, before: Vec<u8>, batch: Batch, frames_bytes: usize) {
        self.at(link, |lane| lane.send(era, before, batch, frames_bytes));
        self.news.notify_one();
    }

    /// The stream of a link ends, behind what waits of it, with the frame that says where if there is one.
    pub(super) fn end(&self, link: u16, end: Vec<u8>, may_begin_again: bool) {
        let is_held = may_begin_again && self.state().holds_ends;
        self.at(link, |lane| lane.end(end, is_held));
        self.news.notify_one();
    }

    /// The consumer of a link, of this process, takes nothing any more.
    pub(super) fn leave_link(&self, link: u16, may_begin_again: bool) {
        if may_begin_again && self.state().holds_ends {
            return self.at(link, Lane::hold_closed);
        }
        self.close_link(link);
    }

    /// The producer of a link is gone: its stream ends behind what waits of it.
    pub fn end_link(&self, link: u16) {
        self.tell(link, Item::End(Vec::new()));
    }

    /// The consumer of a link is gone.
    pub fn close_link(&self, link: u16) {
        self.tell(link, Item::Closed);
    }

    /// The host of the consumer of a link is gone for now: told to the producer at the other end.
    pub fn tell_away(&self, link: u16) {
        self.tell(link, Item::Away);
    }

    /// It is back: the producer at the other end is to begin this era.
    pub fn tell_join(&self, link: u16, era: u32) {
        self.tell(link, Item::Join(era));
    }

    /// The consumer of a link that begins here is back: its producer begins this era.
    pub fn join(&self, link: u16, era: u32) {
        self.at(link, |lane| lane.join(era));
        self.news.notify_one();
        self.room.notify_all();
    }

    /// A link goes over another connection from here on: what is known of its consumer, if its producer is of this process.
    pub(super) fn release(&self, link: u16) -> Option<Producer> {
        let released = self.state().lane(link).release();
        self.room.notify_all();
        released
    }

    /// A link goes over this connection from here on.
    pub(super) fn take_over(&self, link: u16, producer: Producer) {
        self.at(link, |lane| lane.producer = producer);
    }

    /// A message on its way through this process.
    ///
    /// # Errors
    /// The other end has sent more than it may.
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

    /// What the consumer at this end has taken until now, or at the end to which this one relays.
    pub(super) fn tell_taken(&self, link: u16, taken: Taken) {
        let mut state = self.state();
        if !state.is_closed && !state.is_away {
            state.lane(link).taken_here = Some(taken);
            self.news.notify_one();
        }
    }

    /// What the consumer at the other end has taken until now.
    pub(super) fn was_taken(&self, link: u16, taken: Taken) {
        self.at(link, |lane| lane.was_taken(taken));
        self.room.notify_all();
    }

    /// The consumer at the other end is gone.
    pub(super) fn was_closed(&self, link: u16) {
        self.at(link, Lane::was_closed);
        self.room.notify_all();
    }

    /// The host of the consumer at the other end is gone for now.
    pub(super) fn was_left(&self, link: u16) {
        self.at(link, Lane::leave);
    }

    /// Something for the other end of a link, if anybody is there.
    fn tell(&self, link: u16, item: Item) {
        let mut state = self.state();
        if !state.is_closed && !state.is_away {
            state.lane(link).push(item);
            self.news.notify_one();
        }
    }

    /// Changes what is known of a link, unless all is over.
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

/// What is written next.
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
