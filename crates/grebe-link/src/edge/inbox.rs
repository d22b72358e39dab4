//! Received messages of a link that are not taken yet.

use std::collections::VecDeque;
use std::sync::Mutex;

use grebe_flow::Waker;
use grebe_frame::Header;

use super::buffer::{Buffer, WINDOW_BYTES, locked};
use super::message::{BadLink, Begin, FRAMES_BYTES_MAX};

/// Received messages of a link: filled by the reader of a connection, emptied by a [`LinkIn`](super::LinkIn).
#[derive(Debug, Default)]
pub struct Inbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Message>,
    bytes: u64,
    end: End,
    waker: Option<Waker>,
}

#[derive(Debug)]
enum Message {
    Frames(Buffer),
    Begin(Begin),
}

/// Whether more messages follow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum End {
    #[default]
    Open,
    /// The stream has ended, with its final header if the source reported one.
    Ended(Option<Header>),
    /// The stage here takes nothing any more; further messages are discarded.
    Left,
}

/// Next message of a link.
pub(super) enum Next {
    Frames(Buffer),
    Begin(Begin),
    Nothing,
    Ended(Option<Header>),
}

impl Inbox {
    /// The producer is gone, and the stream ends here unless it has already ended.
    pub fn end(&self) {
        self.end_with(None);
    }

    pub(super) fn push(&self, link: u16, message: Buffer) -> Result<(), BadLink> {
        let mut state = locked(&self.0);
        // Data of the previous epoch may still be waiting.
        if state.bytes > 2 * (WINDOW_BYTES + u64::from(FRAMES_BYTES_MAX)) {
            return Err(BadLink::Window(link));
        }
        if state.end == End::Open {
            state.bytes += message.bytes.len() as u64;
            state.messages.push_back(Message::Frames(message));
            state.wake();
        }
        Ok(())
    }

    /// Begins an epoch. Returns whether anybody takes its messages.
    pub(super) fn begin(&self, begin: Begin) -> bool {
        let mut state = locked(&self.0);
        if state.end != End::Open {
            return false;
        }
        // Discards an epoch that nobody has begun to take, so there are at most two.
        let begun = |message: &Message| if let Message::Begin(begin) = message { Some(*begin) } else { None };
        let before = state.messages.iter().enumerate().find_map(|(at, message)| Some((at, begun(message)?)));
        let mut is_fresh = begin.is_fresh;
        if let Some((at, before)) = before {
            is_fresh |= before.is_fresh;
            state.messages.truncate(at);
            state.bytes = state.messages.iter().map(Message::bytes).sum();
        }
        state.messages.push_back(Message::Begin(Begin { is_fresh, ..begin }));
        state.wake();
        true
    }

    pub(super) fn end_with(&self, end: Option<Header>) {
        let mut state = locked(&self.0);
        if state.end == End::Open {
            state.end = End::Ended(end);
            state.wake();
        }
    }

    /// Next message. If there is none, the next one wakes `waker`.
    pub(super) fn pop(&self, waker: impl FnOnce() -> Waker) -> Next {
        let mut state = locked(&self.0);
        if state.waker.is_none() {
            state.waker = Some(waker());
        }
        match (state.messages.pop_front(), state.end) {
            (Some(Message::Frames(message)), _) => {
                state.bytes = state.bytes.saturating_sub(message.bytes.len() as u64);
                Next::Frames(message)
            }
            (Some(Message::Begin(begin)), _) => Next::Begin(begin),
            (None, End::Open) => Next::Nothing,
            (None, End::Ended(end)) => Next::Ended(end),
            (None, End::Left) => Next::Ended(None),
        }
    }

    /// Stops taking messages. Returns whether the stream had not ended.
    pub(super) fn leave(&self) -> bool {
        let mut state = locked(&self.0);
        state.messages.clear();
        state.bytes = 0;
        matches!(std::mem::replace(&mut state.end, End::Left), End::Open)
    }
}

impl State {
    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

impl Message {
    fn bytes(&self) -> u64 {
        match self {
            Self::Frames(message) => message.bytes.len() as u64,
            Self::Begin(_) => 0,
        }
    }
}
