//! What is to be written to a connection: words first, then the links in turn.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use grebe_frame::Batch;

use super::message::{BadLink, CONTROL_BYTES_MAX, Count, FRAMES_BYTES_MAX, Head, Kind};
use super::{Buffer, WINDOW_BYTES, locked};

/// What is to be written to a connection, filled by stages and by readers of other connections, emptied by one writer.
#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
    /// There is something to write.
    news: Condvar,
    /// A link has room again, or is closed.
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    words: VecDeque<Vec<u8>>,
    lanes: Vec<Lane>,
    /// Which lane is asked first, so that a busy one does not starve the others.
    turn: usize,
    /// Nothing comes any more; what is there is still written.
    is_finishing: bool,
    /// Nobody reads any more.
    is_closed: bool,
    is_written: bool,
}

/// What one link has to say. It is filled from this end of the link, or tells the other end what was taken here.
#[derive(Debug, Default)]
struct Lane {
    link: u16,
    items: VecDeque<Item>,
    queued_bytes: u64,
    /// Told once; what is not told yet is replaced by what comes.
    taken_here: Option<Count>,
    sent: Count,
    taken_there: Count,
    is_closed_there: bool,
}

#[derive(Debug)]
enum Item {
    /// What is said before the frames, the frames, and the bytes of both.
    Batch(Vec<u8>, Batch, usize),
    Message(Kind, Buffer),
    /// The end of a stream that ends here.
    End(Vec<u8>),
    Closed,
}

/// Whether a link has room for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Yes,
    NotYet,
    /// Nobody takes anything any more.
    Closed,
}

impl Outbox {
    /// Says something to the process at the other end, before all that waits.
    pub fn say(&self, words: impl Into<Vec<u8>>) {
        let words = words.into();
        debug_assert!(words.len() <= CONTROL_BYTES_MAX as usize);
        let mut state = self.state();
        if !state.is_closed && words.len() <= CONTROL_BYTES_MAX as usize {
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

    /// Writes what there is, until it is [finished](Self::finish) or [closed](Self::close).
    ///
    /// # Errors
    /// It cannot be written: it is closed then.
    pub fn write_to(&self, mut to: impl Write) -> io::Result<()> {
        let written = self.write_all(&mut to);
        if written.is_err() {
            self.close();
        }
        written
    }

    fn write_all(&self, to: &mut impl Write) -> io::Result<()> {
        let mut is_flushed = true;
        loop {
            let next = {
                let mut state = self.state();
                loop {
                    if state.is_closed {
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

    /// Frames of this process, with what is said before them.
    pub(super) fn send(&self, link: u16, before: Vec<u8>, batch: Batch, frames_bytes: usize) {
        let bytes = before.len() + frames_bytes;
        self.push(link, Item::Batch(before, batch, bytes), bytes);
    }

    /// The stream of a link ends, behind what waits of it, with the frame that says where if there is one.
    pub(super) fn end(&self, link: u16, end: Vec<u8>) {
        self.push(link, Item::End(end), 0);
    }

    /// The producer of a link is gone: its stream ends behind what waits of it.
    pub fn end_link(&self, link: u16) {
        self.end(link, Vec::new());
    }

    /// The consumer of a link is gone.
    pub fn close_link(&self, link: u16) {
        self.push(link, Item::Closed, 0);
    }

    /// A message on its way through this process.
    ///
    /// # Errors
    /// The other end has sent more than it may.
    pub(super) fn relay(&self, link: u16, kind: Kind, message: Buffer) -> Result<(), BadLink> {
        let bytes = message.bytes.len();
        {
            let mut state = self.state();
            if state.lane(link).queued_bytes > WINDOW_BYTES + u64::from(FRAMES_BYTES_MAX) {
                return Err(BadLink::Window(link));
            }
        }
        self.push(link, Item::Message(kind, message), bytes);
        Ok(())
    }

    /// What the consumer at this end has taken until now, or at the end to which this one relays.
    pub(super) fn tell_taken(&self, link: u16, taken: Count) {
        let mut state = self.state();
        if !state.is_closed {
            state.lane(link).taken_here = Some(taken);
            self.news.notify_one();
        }
    }

    /// What the consumer at the other end has taken until now.
    pub(super) fn was_taken(&self, link: u16, taken: Count) {
        self.state().lane(link).taken_there = taken;
        self.room.notify_all();
    }

    /// The consumer at the other end is gone.
    pub(super) fn was_closed(&self, link: u16) {
        let mut state = self.state();
        let lane = state.lane(link);
        lane.is_closed_there = true;
        lane.clear();
        self.room.notify_all();
    }

    fn push(&self, link: u16, item: Item, bytes: usize) {
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        let lane = state.lane(link);
        if matches!(item, Item::Batch(..)) {
            lane.sent.add(bytes);
        }
        lane.queued_bytes += bytes as u64;
        lane.items.push_back(item);
        self.news.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl State {
    fn lane(&mut self, link: u16) -> &mut Lane {
        let at = self.lanes.iter().position(|lane| lane.link == link).unwrap_or_else(|| {
            self.lanes.push(Lane { link, ..Lane::default() });
            self.lanes.len() - 1
        });
        &mut self.lanes[at]
    }

    fn room(&mut self, link: u16, window_batches: u64) -> Room {
        if self.is_closed {
            return Room::Closed;
        }
        let lane = self.lane(link);
        let under_way = Count {
            batches: lane.sent.batches.saturating_sub(lane.taken_there.batches),
            bytes: lane.sent.bytes.saturating_sub(lane.taken_there.bytes),
        };
        match lane.is_closed_there {
            true => Room::Closed,
            // The writer has one in hand, and one to go on with: what waits beyond that waits in the stage's queue.
            false
                if lane.items.len() < 2
                    && under_way.batches < window_batches
                    && under_way.bytes < WINDOW_BYTES =>
            {
                Room::Yes
            }
            false => Room::NotYet,
        }
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
            if let Some(item) = lane.items.pop_front() {
                lane.queued_bytes = lane.queued_bytes.saturating_sub(item.bytes());
                return Some(Next::Item(lane.link, item));
            }
        }
        None
    }
}

impl Lane {
    fn clear(&mut self) {
        self.items.clear();
        self.queued_bytes = 0;
        self.taken_here = None;
    }
}

impl Item {
    fn bytes(&self) -> u64 {
        match self {
            Self::Batch(_, _, bytes) => *bytes as u64,
            Self::Message(_, message) => message.bytes.len() as u64,
            Self::End(_) | Self::Closed => 0,
        }
    }
}

/// What is written next.
enum Next {
    Words(Vec<u8>),
    Taken(u16, Count),
    Item(u16, Item),
}

impl Next {
    fn write(self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Words(words) => write(to, Kind::Control, 0, &words),
            Self::Taken(link, taken) => write(to, Kind::Taken, link, &taken.to_bytes()),
            Self::Item(link, Item::Message(kind, message)) => write(to, kind, link, &message.bytes),
            Self::Item(link, Item::End(end)) => write(to, Kind::End, link, &end),
            Self::Item(link, Item::Closed) => write(to, Kind::Closed, link, &[]),
            Self::Item(link, Item::Batch(before, batch, length)) => {
                to.write_all(&Head { kind: Kind::Frames, link, length: length as u32 }.to_bytes())?;
                to.write_all(&before)?;
                if let Some((bytes, _)) = batch.contiguous() {
                    return to.write_all(bytes);
                }
                for frame in batch.frames() {
                    to.write_all(frame.header_bytes())?;
                    to.write_all(frame.payload())?;
                }
                Ok(())
            }
        }
    }
}

fn write(to: &mut impl Write, kind: Kind, link: u16, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&Head { kind, link, length: bytes.len() as u32 }.to_bytes())?;
    to.write_all(bytes)
}
