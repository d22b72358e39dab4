//! Outgoing messages of one link.

use std::collections::VecDeque;
use std::io::{self, Write};

use grebe_frame::Batch;

use super::buffer::{Buffer, WINDOW_BYTES};
use super::message::{Begin, Count, FRAMES_BYTES_MAX, Head, Kind, Taken};

/// Outgoing messages of one link: data from this end's producer, or acknowledgements of this end's consumer.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) link: u16,
    pub(super) items: VecDeque<Item>,
    queued_bytes: u64,
    /// Sent once; a newer value replaces a pending one.
    pub(super) taken_here: Option<Taken>,
    /// The end of this end's consumer is not sent yet.
    holds_closed: bool,
    /// Present if the producer is in this process.
    pub(super) producer: Producer,
}

/// A producer's knowledge of its consumer.
#[derive(Debug, Default)]
pub(super) struct Producer {
    epoch: u32,
    sent: Count,
    taken: Count,
    /// Frames and samples of each batch in flight, oldest first.
    under_way: VecDeque<(u64, u64)>,
    is_away: bool,
    /// This process replaced another one, and has not begun an epoch yet.
    is_fresh: bool,
    is_closed: bool,
    end: Option<End>,
    /// Counters of the stage, once it exists.
    counters: Option<Unconfirmed>,
}

/// End of the stream, with its position.
#[derive(Debug, Clone)]
struct End {
    told: Vec<u8>,
    is_held: bool,
}

#[derive(Debug)]
pub(super) enum Item {
    /// Description frames, the batch, and the length of both.
    Batch(Vec<u8>, Batch, usize),
    Message(Kind, Buffer),
    Begin(Begin),
    /// End of a stream that originates here.
    End(Vec<u8>),
    Closed,
    Away,
    Join(u32),
}

/// Whether a link has room for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// Room in this epoch.
    Yes(u32),
    NotYet,
    /// The consumer takes nothing any more.
    Closed,
}

impl Lane {
    pub(super) fn of(link: u16) -> Self {
        Self { link, ..Self::default() }
    }

    pub(super) fn push(&mut self, item: Item) {
        self.queued_bytes += item.bytes();
        self.items.push_back(item);
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.queued_bytes = self.queued_bytes.saturating_sub(item.bytes());
        Some(item)
    }

    /// Clears the messages, because nobody would read them.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.queued_bytes = 0;
        self.taken_here = None;
    }

    /// Whether more is waiting than a producer may have in flight, including leftovers of the previous epoch.
    pub(super) fn is_overfull(&self) -> bool {
        self.queued_bytes > 2 * (WINDOW_BYTES + u64::from(FRAMES_BYTES_MAX))
    }

    /// Forwards a message through this process. Discards an epoch that nobody has begun to take, so there are
    /// at most two.
    pub(super) fn relay(&mut self, kind: Kind, message: Buffer) {
        let is_begin = |item: &Item| matches!(item, Item::Message(Kind::Begin, _));
        if let Some(at) = self.items.iter().position(is_begin).filter(|_| kind == Kind::Begin) {
            self.items.truncate(at);
            self.queued_bytes = self.items.iter().map(Item::bytes).sum();
        }
        self.push(Item::Message(kind, message));
    }

    /// Registers the producing stage. A stage that replaces an earlier one starts on request.
    pub(super) fn open(&mut self, is_again: bool, counters: Unconfirmed) {
        self.producer.counters = Some(counters);
        self.producer.is_fresh = is_again;
        self.producer.is_away |= is_again;
    }

    pub(super) fn room(&self, window_batches: u64) -> Room {
        let Producer { epoch, sent, taken, is_away, is_closed, .. } = &self.producer;
        let under_way = Count {
            batches: sent.batches.saturating_sub(taken.batches),
            bytes: sent.bytes.saturating_sub(taken.bytes),
        };
        // The writer has one batch in hand and one in reserve; the rest waits in the stage's queue.
        let has_room =
            self.items.len() < 2 && under_way.batches < window_batches && under_way.bytes < WINDOW_BYTES;
        match (is_closed, has_room && !is_away) {
            (true, _) => Room::Closed,
            (false, true) => Room::Yes(*epoch),
            (false, false) => Room::NotYet,
        }
    }

    /// Queues frames of this process, for which that epoch had room.
    pub(super) fn send(&mut self, epoch: u32, before: Vec<u8>, batch: Batch, frames_bytes: usize) {
        let bytes = before.len() + frames_bytes;
        let producer = &mut self.producer;
        if producer.is_away || producer.epoch != epoch {
            // The consumer has left since.
            return producer.count(batch.len() as u64, batch.samples());
        }
        producer.sent.add(bytes);
        producer.under_way.push_back((batch.len() as u64, batch.samples()));
        self.push(Item::Batch(before, batch, bytes));
    }

    /// Ends the stream after its queued data. A held end is sent once it is certain that the producer does
    /// not restart.
    pub(super) fn end(&mut self, told: Vec<u8>, is_held: bool) {
        self.producer.end = Some(End { told: told.clone(), is_held });
        if !is_held && !self.producer.is_away {
            self.push(Item::End(told));
        }
    }

    /// Marks this process's consumer as closed. Sent once it is certain that the consumer does not restart.
    pub(super) fn hold_closed(&mut self) {
        self.holds_closed = true;
    }

    pub(super) fn release_ends(&mut self) {
        if std::mem::take(&mut self.holds_closed) {
            self.push(Item::Closed);
        }
        let Some(end) = &mut self.producer.end else { return };
        if std::mem::take(&mut end.is_held) && !self.producer.is_away {
            let told = end.told.clone();
            self.push(Item::End(told));
        }
    }

    /// Takes an acknowledgement of the other end's consumer.
    pub(super) fn was_taken(&mut self, taken: Taken) {
        let producer = &mut self.producer;
        if taken.epoch != producer.epoch || producer.is_away {
            return;
        }
        producer.taken = taken.count;
        let left = producer.sent.batches.saturating_sub(taken.count.batches);
        while producer.under_way.len() as u64 > left {
            producer.under_way.pop_front();
        }
    }

    /// Notes that the other end's consumer is closed.
    pub(super) fn was_closed(&mut self) {
        self.producer.is_closed = true;
        self.clear();
    }

    /// Whether the producing stage is in this process.
    pub(super) fn has_producer(&self) -> bool {
        self.producer.counters.is_some()
    }

    /// The consumer's host has gone away: counts the data in flight, and pauses.
    pub(super) fn leave(&mut self) {
        self.producer.is_away = true;
        self.producer.count_unconfirmed();
        self.clear();
    }

    /// Releases the link for another connection. Returns its producer, if it is in this process; it waits
    /// there until it is to [join](Self::join).
    pub(super) fn release(&mut self) -> Option<Producer> {
        self.clear();
        if !self.has_producer() {
            return None;
        }
        self.leave();
        let producer = &mut self.producer;
        Some(Producer {
            epoch: producer.epoch,
            is_away: true,
            is_fresh: std::mem::take(&mut producer.is_fresh),
            // A waiting stage must look up its link's new connection.
            is_closed: std::mem::replace(&mut producer.is_closed, true),
            end: producer.end.take(),
            counters: producer.counters.clone(),
            ..Producer::default()
        })
    }

    /// The consumer is back, without knowledge of earlier data.
    pub(super) fn join(&mut self, epoch: u32) {
        self.leave();
        let producer = &mut self.producer;
        (producer.epoch, producer.is_away) = (epoch, false);
        let (end, is_fresh) = (producer.end.clone(), std::mem::take(&mut producer.is_fresh));
        self.push(Item::Begin(Begin { epoch, is_fresh }));
        if let Some(end) = end.filter(|end| !end.is_held) {
            self.push(Item::End(end.told));
        }
    }
}

impl Producer {
    fn count_unconfirmed(&mut self) {
        for (frames, samples) in std::mem::take(&mut self.under_way) {
            self.count(frames, samples);
        }
        (self.sent, self.taken) = (Count::default(), Count::default());
    }

    fn count(&self, frames: u64, samples: u64) {
        if let Some(counters) = &self.counters {
            counters.unconfirmed_frames.add(frames);
            counters.unconfirmed_samples.add(samples);
        }
    }
}

impl Item {
    fn bytes(&self) -> u64 {
        match self {
            Self::Batch(_, _, bytes) => *bytes as u64,
            Self::Message(_, message) => message.bytes.len() as u64,
            Self::Begin(_) | Self::End(_) | Self::Closed | Self::Away | Self::Join(_) => 0,
        }
    }

    pub(super) fn write(self, link: u16, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Message(kind, message) => write(to, kind, link, &message.bytes),
            Self::Begin(begin) => write(to, Kind::Begin, link, &begin.to_bytes()),
            Self::End(end) => write(to, Kind::End, link, &end),
            Self::Closed => write(to, Kind::Closed, link, &[]),
            Self::Away => write(to, Kind::Away, link, &[]),
            Self::Join(epoch) => write(to, Kind::Join, link, &epoch.to_le_bytes()),
            Self::Batch(before, batch, length) => {
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

pub(super) fn write(to: &mut impl Write, kind: Kind, link: u16, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&Head { kind, link, length: bytes.len() as u32 }.to_bytes())?;
    to.write_all(bytes)
}

grebe_flow::counters! {
    /// Counters of a producer, in addition to those of every stage.
    pub(super) struct Unconfirmed { unconfirmed_frames, unconfirmed_samples }
}
