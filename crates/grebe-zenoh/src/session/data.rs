//! Frames over Zenoh.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use grebe_frame::{Batch, HEADER_BYTES, Header};
use grebe_ring::Signal;
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;

use super::{Lab, failed};
use crate::error::Error;
use crate::message::{MESSAGE_BYTES_MAX, SenderId};
use crate::options::Overflow;
use crate::random;

/// Sends frames to a key.
#[derive(Debug)]
pub struct DataSender {
    publisher: Publisher<'static>,
    sender: Bytes,
    has_reader: Arc<AtomicBool>,
    /// Of the message that is being put together, in the batch.
    parts: Vec<Range<usize>>,
    _lab: Lab,
}

impl DataSender {
    pub(super) fn declare(lab: &Lab, key: &str, blocks: bool) -> Result<Self, Error> {
        let action = format!("send to {key}");
        let congestion = if blocks { CongestionControl::Block } else { CongestionControl::Drop };
        let publisher =
            lab.0.session.declare_publisher(key.to_owned()).congestion_control(congestion).express(true);
        let publisher = publisher.wait().map_err(failed(&action))?;
        let has_reader = Arc::new(AtomicBool::new(false));
        let tell = has_reader.clone();
        let listener = publisher.matching_listener();
        let listener = listener.callback(move |status| tell.store(status.matching(), Ordering::Release));
        listener.background().wait().map_err(failed(&action))?;
        // What was there before the listener.
        if let Ok(status) = publisher.matching_status().wait()
            && status.matching()
        {
            has_reader.store(true, Ordering::Release);
        }
        let sender = Bytes::copy_from_slice(&random::id());
        Ok(Self { publisher, sender, has_reader, parts: Vec::new(), _lab: lab.clone() })
    }

    /// Whether somebody reads, as far as it is known here.
    pub fn has_reader(&self) -> bool {
        self.has_reader.load(Ordering::Acquire)
    }

    /// Sends the frames of a batch in as many messages as they need; none is copied for that. How many messages it were.
    ///
    /// # Errors
    /// The session is closed.
    pub fn send(&mut self, batch: &Batch) -> Result<u64, Error> {
        let chunk = Bytes::from_owner(Chunk(batch.clone()));
        let (mut messages, mut message_bytes) = (0, 0);
        for (offset, frame) in batch.offsets().zip(batch.frames()) {
            let range = offset as usize..offset as usize + frame.header().frame_bytes();
            if message_bytes > 0 && message_bytes + range.len() > MESSAGE_BYTES_MAX {
                self.put_parts(&chunk)?;
                (messages, message_bytes) = (messages + 1, 0);
            }
            message_bytes += range.len();
            match self.parts.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => self.parts.push(range),
            }
        }
        if message_bytes > 0 {
            self.put_parts(&chunk)?;
            messages += 1;
        }
        Ok(messages)
    }

    /// Sends a frame that stands nowhere: of a description.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn send_bytes(&self, frame: Vec<u8>) -> Result<(), Error> {
        self.put(frame.into())
    }

    /// Sends an end of stream.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn send_end(&self, end: &Header) -> Result<(), Error> {
        let mut bytes = [0; HEADER_BYTES];
        end.write(&mut bytes);
        self.put(bytes.as_slice().into())
    }

    fn put_parts(&mut self, chunk: &Bytes) -> Result<(), Error> {
        let payload = match &self.parts[..] {
            [whole] => chunk.slice(whole.clone()).into(),
            parts => {
                let mut writer = ZBytes::writer();
                parts.iter().for_each(|part| writer.append(chunk.slice(part.clone()).into()));
                writer.finish()
            }
        };
        self.parts.clear();
        self.put(payload)
    }

    fn put(&self, payload: ZBytes) -> Result<(), Error> {
        let put = self.publisher.put(payload).attachment(self.sender.clone());
        put.wait().map_err(failed(&format!("send to {}", self.publisher.key_expr())))
    }
}

/// A batch that messages lie in.
struct Chunk(Batch);

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self.0.chunk()
    }
}

/// Takes the messages that come to a key.
#[derive(Debug)]
pub struct DataReceiver {
    queue: Arc<Queue>,
    _subscriber: Subscriber<()>,
    _lab: Lab,
}

/// A message that came.
#[derive(Debug)]
pub struct Message {
    /// Whose it is.
    pub sender: SenderId,
    payload: ZBytes,
}

impl Message {
    /// Bytes of all its frames.
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Copies its frames to the start of `to`, which is as long at least; there they lie back to back.
    pub fn copy_to(&self, to: &mut [u8]) {
        let mut at = 0;
        for slice in self.payload.slices() {
            to[at..at + slice.len()].copy_from_slice(slice);
            at += slice.len();
        }
    }
}

impl DataReceiver {
    pub(super) fn declare(lab: &Lab, key: &str, overflow: Overflow) -> Result<Self, Error> {
        let queue = Arc::new(Queue::new(overflow));
        let to = queue.clone();
        let subscriber = lab.0.session.declare_subscriber(key.to_owned()).callback(move |sample| {
            let sender = sample.attachment().map(|id| SenderId::read(&id.to_bytes())).unwrap_or_default();
            to.push(Message { sender, payload: sample.payload().clone() });
        });
        let subscriber = subscriber.wait().map_err(failed(&format!("receive from {key}")))?;
        Ok(Self { queue, _subscriber: subscriber, _lab: lab.clone() })
    }

    /// The next message.
    pub fn pop(&self) -> Option<Message> {
        self.queue.pop()
    }

    /// Waits for a message, at most for `timeout`; whether there is one. For one thread at a time.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.queue.wait(timeout)
    }

    /// Messages that were dropped because nobody took them in time.
    pub fn dropped_messages(&self) -> u64 {
        self.queue.lock().dropped_messages
    }
}

impl Drop for DataReceiver {
    fn drop(&mut self) {
        // Nobody waits for room any more.
        self.queue.lock().is_closed = true;
        self.queue.room.notify_all();
    }
}

/// Messages between the thread that brings them and the one that takes them.
#[derive(Debug)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Of the above, for who waits without the lock.
    has_messages: AtomicBool,
    news: Signal,
    room: Condvar,
    overflow: Overflow,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Message>,
    bytes: usize,
    dropped_messages: u64,
    /// How many sleep until there is room: to wake nobody is a system call, too.
    awaiting_room: usize,
    is_closed: bool,
}

impl Queue {
    fn new(overflow: Overflow) -> Self {
        Self {
            waiting: Mutex::default(),
            has_messages: AtomicBool::new(false),
            news: Signal::new(),
            room: Condvar::new(),
            overflow,
        }
    }

    fn push(&self, message: Message) {
        let mut waiting = self.lock();
        let until = Instant::now() + Duration::from_secs(Overflow::BLOCK_S_MAX);
        while waiting.is_full_for(&message) && !waiting.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            match self.overflow {
                Overflow::DropOldest => {
                    waiting.pop();
                    waiting.dropped_messages += 1;
                }
                Overflow::Block if !left.is_zero() => {
                    waiting.awaiting_room += 1;
                    waiting = self.room.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
                    waiting.awaiting_room -= 1;
                }
                Overflow::DropLatest | Overflow::Block => {
                    waiting.dropped_messages += 1;
                    return;
                }
            }
        }
        waiting.bytes += message.len();
        waiting.messages.push_back(message);
        self.has_messages.store(true, Ordering::Release);
        drop(waiting);
        self.news.notify();
    }

    fn pop(&self) -> Option<Message> {
        let mut waiting = self.lock();
        let message = waiting.pop();
        let is_room_awaited = waiting.awaiting_room > 0;
        self.has_messages.store(!waiting.messages.is_empty(), Ordering::Release);
        drop(waiting);
        if is_room_awaited && message.is_some() {
            self.room.notify_one();
        }
        message
    }

    fn wait(&self, timeout: Duration) -> bool {
        self.news.wait(timeout, || self.has_messages.load(Ordering::Acquire))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// One message always has room.
    fn is_full_for(&self, message: &Message) -> bool {
        let is_many =
            self.messages.len() >= WAITING_MESSAGES_MAX || self.bytes + message.len() > WAITING_BYTES_MAX;
        is_many && !self.messages.is_empty()
    }

    fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }
}

const WAITING_BYTES_MAX: usize = 64 << 20;
/// However short a message is, it may keep 64 KiB of Zenoh's memory.
const WAITING_MESSAGES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u8) -> Message {
        Message { sender: SenderId::default(), payload: vec![number; 3].into() }
    }

    fn numbers(queue: &Queue) -> Vec<u8> {
        std::iter::from_fn(|| queue.pop()).map(|message| message.payload.to_bytes()[0]).collect()
    }

    #[test]
    fn what_nobody_takes_in_time_is_dropped_by_the_policy_and_counted() {
        for (overflow, first) in [(Overflow::DropOldest, 6), (Overflow::DropLatest, 0)] {
            let queue = Queue::new(overflow);
            (0..WAITING_MESSAGES_MAX + 6).for_each(|number| queue.push(message((number % 251) as u8)));
            assert_eq!(queue.lock().dropped_messages, 6);
            let numbers = numbers(&queue);
            assert_eq!((numbers.len(), numbers[0]), (WAITING_MESSAGES_MAX, first), "{overflow:?}");
            assert_eq!(queue.lock().bytes, 0);
        }
    }

    #[test]
    fn what_waits_goes_on_when_there_is_room_or_nobody_any_more() {
        let queue = Arc::new(Queue::new(Overflow::Block));
        (0..WAITING_MESSAGES_MAX).for_each(|_| queue.push(message(1)));
        let pushing = queue.clone();
        let waits = std::thread::spawn(move || pushing.push(message(2)));
        assert!(queue.pop().is_some());
        waits.join().unwrap();
        assert_eq!(*numbers(&queue).last().unwrap(), 2);
        (0..WAITING_MESSAGES_MAX).for_each(|_| queue.push(message(1)));
        let pushing = queue.clone();
        let waits = std::thread::spawn(move || pushing.push(message(2)));
        queue.lock().is_closed = true;
        queue.room.notify_all();
        waits.join().unwrap();
    }

    #[test]
    fn a_message_in_pieces_is_copied_in_order() {
        let mut writer = ZBytes::writer();
        [&b"ab"[..], b"c"].into_iter().for_each(|part| writer.append(part.into()));
        let message = Message { sender: SenderId::default(), payload: writer.finish() };
        let mut to = [0; 5];
        message.copy_to(&mut to);
        assert_eq!((message.len(), message.is_empty(), &to), (3, false, b"abc\0\0"));
    }
}
