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

use super::failure::failed;
use super::lab::Lab;
use crate::error::Error;
use crate::message::{MESSAGE_BYTES_MAX, SenderId, pieces};
use crate::options::Overflow;
use crate::random;

/// Sends frames to a key.
#[derive(Debug)]
pub struct DataSender {
    publisher: Publisher<'static>,
    sender: Bytes,
    has_reader: Arc<AtomicBool>,
    /// Of the message in progress, within the batch.
    parts: Vec<Range<usize>>,
    _lab: Lab,
}

impl DataSender {
    pub(super) fn declare(lab: &Lab, key: &str, blocks: bool) -> Result<Self, Error> {
        let action = format!("send to {key}");
        let congestion = if blocks { CongestionControl::Block } else { CongestionControl::Drop };
        // Not express: a message leaves at once on an idle link, and short ones share a batch on a busy one.
        let publisher = lab.0.session.declare_publisher(key.to_owned()).congestion_control(congestion);
        let publisher = publisher.wait().map_err(failed(&action))?;
        let has_reader = Arc::new(AtomicBool::new(false));
        let tell = has_reader.clone();
        let listener = publisher.matching_listener();
        let listener = listener.callback(move |status| tell.store(status.matching(), Ordering::Release));
        listener.background().wait().map_err(failed(&action))?;
        // Readers from before the listener.
        if let Ok(status) = publisher.matching_status().wait()
            && status.matching()
        {
            has_reader.store(true, Ordering::Release);
        }
        let sender = Bytes::copy_from_slice(&random::id());
        Ok(Self { publisher, sender, has_reader, parts: Vec::new(), _lab: lab.clone() })
    }

    /// Whether there is a reader, as far as known here.
    pub fn has_reader(&self) -> bool {
        self.has_reader.load(Ordering::Acquire)
    }

    /// Sends the frames of a batch in as few messages as possible, without a copy. Returns the number of messages.
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

    /// Sends the frame of a description.
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

/// A batch that holds messages.
struct Chunk(Batch);

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self.0.chunk()
    }
}

/// Receives the messages of a key.
#[derive(Debug)]
pub struct DataReceiver {
    queue: Arc<Queue>,
    _subscriber: Subscriber<()>,
    _lab: Lab,
}

/// A received message, or several short ones of one sender.
#[derive(Debug)]
pub struct Message {
    /// Its sender.
    pub sender: SenderId,
    payload: Payload,
}

#[derive(Debug)]
enum Payload {
    /// In Zenoh's memory.
    Whole(ZBytes),
    /// Copied and joined.
    Joined(Vec<u8>),
}

impl Message {
    /// Bytes of all its frames.
    pub fn len(&self) -> usize {
        match &self.payload {
            Payload::Whole(bytes) => bytes.len(),
            Payload::Joined(bytes) => bytes.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies its frames back to back to the start of `to`, which must be long enough.
    pub fn copy_to(&self, to: &mut [u8]) {
        let mut at = 0;
        let mut copy = |slice: &[u8]| {
            to[at..at + slice.len()].copy_from_slice(slice);
            at += slice.len();
        };
        match &self.payload {
            Payload::Whole(bytes) => bytes.slices().for_each(copy),
            Payload::Joined(bytes) => copy(bytes),
        }
    }

    /// Appends the next message, if both are short and from one sender. Returns whether it did. The result is a message
    /// of both frames, but an invalid frame would end it, so it stays alone.
    fn join(&mut self, next: &Self) -> bool {
        if self.sender != next.sender || self.len() + next.len() > JOINED_BYTES_MAX {
            return false;
        }
        let Some(more) = next.frames() else { return false };
        if let Payload::Joined(bytes) = &mut self.payload {
            bytes.extend_from_slice(more);
            return true;
        }
        let Some(first) = self.frames() else { return false };
        let mut joined = Vec::with_capacity(JOINED_BYTES_MAX);
        joined.extend_from_slice(first);
        joined.extend_from_slice(more);
        self.payload = Payload::Joined(joined);
        true
    }

    /// Of a message in one piece, of frames alone.
    fn frames(&self) -> Option<&[u8]> {
        let Payload::Whole(bytes) = &self.payload else { return None };
        let mut slices = bytes.slices();
        let slice = slices.next().filter(|_| slices.next().is_none())?;
        pieces(slice).all(|piece| piece.is_ok()).then_some(slice)
    }
}

impl DataReceiver {
    pub(super) fn declare(lab: &Lab, key: &str, overflow: Overflow) -> Result<Self, Error> {
        let queue = Arc::new(Queue::new(overflow));
        let to = queue.clone();
        let subscriber = lab.0.session.declare_subscriber(key.to_owned()).callback(move |sample| {
            let sender = sample.attachment().map(|id| SenderId::read(&id.to_bytes())).unwrap_or_default();
            to.push(Message { sender, payload: Payload::Whole(sample.payload().clone()) });
        });
        let subscriber = subscriber.wait().map_err(failed(&format!("receive from {key}")))?;
        Ok(Self { queue, _subscriber: subscriber, _lab: lab.clone() })
    }

    /// The next message.
    pub fn pop(&self) -> Option<Message> {
        self.queue.pop()
    }

    /// Waits for a message, up to `timeout`. Returns whether there is one. For one thread at a time.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.queue.wait(timeout)
    }
}

impl Drop for DataReceiver {
    fn drop(&mut self) {
        // Releases senders that wait for room.
        self.queue.lock().is_closed = true;
        self.queue.room.notify_all();
    }
}

/// Messages between the receiving and the reading thread.
#[derive(Debug)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Number of messages, readable without the lock.
    has_messages: AtomicBool,
    news: Signal,
    room: Condvar,
    overflow: Overflow,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Message>,
    bytes: usize,
    /// Threads that wait for room, because waking nobody costs a system call too.
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
                // The sequence of the frames shows the loss.
                Overflow::DropOldest => drop(waiting.pop()),
                Overflow::Block if !left.is_zero() => {
                    waiting.awaiting_room += 1;
                    waiting = self.room.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
                    waiting.awaiting_room -= 1;
                }
                Overflow::DropLatest | Overflow::Block => return,
            }
        }
        waiting.bytes += message.len();
        // The reader is slow: a short message would hold 64 KiB of Zenoh's memory meanwhile.
        let is_joined = waiting.messages.back_mut().is_some_and(|last| last.join(&message));
        if !is_joined {
            waiting.messages.push_back(message);
        }
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
    /// One message always fits.
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
/// Even a short message may hold 64 KiB of Zenoh's memory.
const WAITING_MESSAGES_MAX: usize = 1_024;
/// Of joined messages. Two of at least half of it stay separate, to avoid a second copy.
const JOINED_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u8) -> Message {
        of_bytes(SenderId::default(), vec![number; 3])
    }

    fn of_bytes(sender: SenderId, bytes: Vec<u8>) -> Message {
        Message { sender, payload: Payload::Whole(bytes.into()) }
    }

    fn bytes(message: &Message) -> Vec<u8> {
        let mut to = vec![0; message.len()];
        message.copy_to(&mut to);
        to
    }

    fn numbers(queue: &Queue) -> Vec<u8> {
        std::iter::from_fn(|| queue.pop()).map(|message| bytes(&message)[0]).collect()
    }

    #[test]
    fn the_policy_drops_batches_that_no_reader_takes_in_time() {
        for (overflow, first) in [(Overflow::DropOldest, 6), (Overflow::DropLatest, 0)] {
            let queue = Queue::new(overflow);
            (0..WAITING_MESSAGES_MAX + 6).for_each(|number| queue.push(message((number % 251) as u8)));
            let numbers = numbers(&queue);
            assert_eq!((numbers.len(), numbers[0]), (WAITING_MESSAGES_MAX, first), "{overflow:?}");
            assert_eq!(queue.lock().bytes, 0);
        }
    }

    #[test]
    fn waiting_data_continues_when_there_is_room_or_no_reader() {
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
        let message = Message { sender: SenderId::default(), payload: Payload::Whole(writer.finish()) };
        let mut to = [0; 5];
        message.copy_to(&mut to);
        assert_eq!((message.len(), message.is_empty(), &to), (3, false, b"abc\0\0"));
    }

    fn frame(sequence: u64, samples: u32) -> Vec<u8> {
        let header = Header {
            sequence,
            channel_count: 1,
            block_length_samples: samples,
            sample_rate_hz: 1.0,
            ..Header::default()
        };
        let mut bytes = vec![sequence as u8; header.frame_bytes()];
        header.write((&mut bytes[..HEADER_BYTES]).try_into().unwrap());
        bytes
    }

    #[test]
    fn short_messages_of_a_sender_that_wait_become_one_of_all_their_frames() {
        let queue = Queue::new(Overflow::DropOldest);
        let (one, other) = (SenderId([1; 16]), SenderId([2; 16]));
        let came = [
            (one, frame(0, 10)),
            (one, [frame(1, 10), frame(2, 7)].concat()),
            (other, frame(3, 10)),
            (one, frame(4, 10)),
            (one, b"no frame".to_vec()),
            (one, frame(5, 10)),
            (one, frame(6, 32_700)),
            (one, frame(7, 10)),
        ];
        came.iter().for_each(|(sender, bytes)| queue.push(of_bytes(*sender, bytes.clone())));
        let joined: Vec<(SenderId, Vec<u8>)> =
            std::iter::from_fn(|| queue.pop()).map(|message| (message.sender, bytes(&message))).collect();
        let of = |range: Range<usize>| {
            (came[range.start].0, came[range].iter().flat_map(|(_, bytes)| bytes.clone()).collect())
        };
        assert_eq!(joined, [of(0..2), of(2..3), of(3..4), of(4..5), of(5..6), of(6..7), of(7..8)]);
        assert_eq!(queue.lock().bytes, 0);
    }

    #[test]
    fn many_short_messages_are_kept_for_a_reader_that_is_behind() {
        let queue = Queue::new(Overflow::DropOldest);
        let count = 20 * WAITING_MESSAGES_MAX as u64;
        (0..count).for_each(|sequence| queue.push(of_bytes(SenderId::default(), frame(sequence, 668))));
        let messages: Vec<Vec<u8>> =
            std::iter::from_fn(|| queue.pop()).map(|message| bytes(&message)).collect();
        assert!(messages.iter().all(|message| message.len() <= JOINED_BYTES_MAX));
        let sequences = messages
            .iter()
            .flat_map(|message| pieces(message).map(|piece| piece.unwrap().header.unwrap().sequence));
        assert!(sequences.eq(0..count));
    }
}
