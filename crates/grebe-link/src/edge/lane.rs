//! What one link has to say over a connection.

use std::collections::VecDeque;
use std::io::{self, Write};

use grebe_frame::Batch;

use super::buffer::{Buffer, WINDOW_BYTES};
use super::message::{Begin, Count, FRAMES_BYTES_MAX, Head, Kind, Taken};

/// What one link has to say. It is filled from this end of the link, or tells the other end what was taken here.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) link: u16,
    pub(super) items: VecDeque<Item>,
    queued_bytes: u64,
    /// Told once; what is not told yet is replaced by what comes.
    pub(super) taken_here: Option<Taken>,
    /// That nothing is taken here any more is not told yet.
    holds_closed: bool,
    /// Where the producer is of this process.
    pub(super) producer: Producer,
}

/// What the producer of a link knows of its consumer.
#[derive(Debug, Default)]
pub(super) struct Producer {
    era: u32,
    sent: Count,
    taken: Count,
    /// Frames and samples of each batch that was sent and not taken, the oldest first.
    under_way: VecDeque<(u64, u64)>,
    is_away: bool,
    /// Its process took the place of another, and has begun nothing yet.
    is_fresh: bool,
    is_closed: bool,
    end: Option<End>,
    /// Of the stage, once there is one.
    counters: Option<Unconfirmed>,
}

/// That the stream has ended, and where.
#[derive(Debug, Clone)]
struct End {
    told: Vec<u8>,
    is_held: bool,
}

#[derive(Debug)]
pub(super) enum Item {
    /// What is said before the frames, the frames, and the bytes of both.
    Batch(Vec<u8>, Batch, usize),
    Message(Kind, Buffer),
    Begin(Begin),
    /// The end of a stream that ends here.
    End(Vec<u8>),
    Closed,
    Away,
    Join(u32),
}

/// Whether a link has room for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// In this era.
    Yes(u32),
    NotYet,
    /// Nobody takes anything any more.
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

    /// Nobody is there who would read it.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.queued_bytes = 0;
        self.taken_here = None;
    }

    /// Whether more waits than a producer may have under way, with what of the era before may still wait.
    pub(super) fn is_overfull(&self) -> bool {
        self.queued_bytes > 2 * (WINDOW_BYTES + u64::from(FRAMES_BYTES_MAX))
    }

    /// A message on its way through this process. Of an era that nobody has begun to take nothing is kept: there are two at most.
    pub(super) fn relay(&mut self, kind: Kind, message: Buffer) {
        let is_begin = |item: &Item| matches!(item, Item::Message(Kind::Begin, _));
        if let Some(at) = self.items.iter().position(is_begin).filter(|_| kind == Kind::Begin) {
            self.items.truncate(at);
            self.queued_bytes = self.items.iter().map(Item::bytes).sum();
        }
        self.push(Item::Message(kind, message));
    }

    /// The stage that fills it is there. One that takes the place of another begins when it is told to.
    pub(super) fn open(&mut self, is_again: bool, counters: Unconfirmed) {
        self.producer.counters = Some(counters);
        self.producer.is_fresh = is_again;
        self.producer.is_away |= is_again;
    }

    pub(super) fn room(&self, window_batches: u64) -> Room {
        let Producer { era, sent, taken, is_away, is_closed, .. } = &self.producer;
        let under_way = Count {
            batches: sent.batches.saturating_sub(taken.batches),
            bytes: sent.bytes.saturating_sub(taken.bytes),
        };
        // The writer has one in hand, and one to go on with: what waits beyond that waits in the stage's queue.
        let has_room =
            self.items.len() < 2 && under_way.batches < window_batches && under_way.bytes < WINDOW_BYTES;
        match (is_closed, has_room && !is_away) {
            (true, _) => Room::Closed,
            (false, true) => Room::Yes(*era),
            (false, false) => Room::NotYet,
        }
    }

    /// Frames of this process, for which there was room in that era.
    pub(super) fn send(&mut self, era: u32, before: Vec<u8>, batch: Batch, frames_bytes: usize) {
        let bytes = before.len() + frames_bytes;
        let producer = &mut self.producer;
        if producer.is_away || producer.era != era {
            // The consumer has gone away since.
            return producer.count(batch.len() as u64, batch.samples());
        }
        producer.sent.add(bytes);
        producer.under_way.push_back((batch.len() as u64, batch.samples()));
        self.push(Item::Batch(before, batch, bytes));
    }

    /// The stream ends behind what waits of it. One that is held is told once it is sure that the producer does not begin again.
    pub(super) fn end(&mut self, told: Vec<u8>, is_held: bool) {
        self.producer.end = Some(End { told: told.clone(), is_held });
        if !is_held && !self.producer.is_away {
            self.push(Item::End(told));
        }
    }

    /// The consumer of this process takes nothing any more, which is told once it is sure that it does not begin again.
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

    /// What the consumer at the other end has taken until now.
    pub(super) fn was_taken(&mut self, taken: Taken) {
        let producer = &mut self.producer;
        if taken.era != producer.era || producer.is_away {
            return;
        }
        producer.taken = taken.count;
        let left = producer.sent.batches.saturating_sub(taken.count.batches);
        while producer.under_way.len() as u64 > left {
            producer.under_way.pop_front();
        }
    }

    /// The consumer at the other end is gone.
    pub(super) fn was_closed(&mut self) {
        self.producer.is_closed = true;
        self.clear();
    }

    /// Whether the stage that fills it is of this process.
    pub(super) fn has_producer(&self) -> bool {
        self.producer.counters.is_some()
    }

    /// The consumer's host has gone away: what was under way is counted, and nothing is sent.
    pub(super) fn leave(&mut self) {
        self.producer.is_away = true;
        self.producer.count_unconfirmed();
        self.clear();
    }

    /// The link goes over another connection from here on, where its producer of this process, if there is one, waits until it is to
    /// [join](Self::join).
    pub(super) fn release(&mut self) -> Option<Producer> {
        self.clear();
        if !self.has_producer() {
            return None;
        }
        self.leave();
        let producer = &mut self.producer;
        Some(Producer {
            era: producer.era,
            is_away: true,
            is_fresh: std::mem::take(&mut producer.is_fresh),
            // A stage that waits here is to look where its link leads.
            is_closed: std::mem::replace(&mut producer.is_closed, true),
            end: producer.end.take(),
            counters: producer.counters.clone(),
            ..Producer::default()
        })
    }

    /// It is back, and knows nothing of what it has taken before.
    pub(super) fn join(&mut self, era: u32) {
        self.leave();
        let producer = &mut self.producer;
        (producer.era, producer.is_away) = (era, false);
        let (end, is_fresh) = (producer.end.clone(), std::mem::take(&mut producer.is_fresh));
        self.push(Item::Begin(Begin { era, is_fresh }));
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
            Self::Join(era) => write(to, Kind::Join, link, &era.to_le_bytes()),
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
    /// What a producer counts, beside what every stage does.
    pub(super) struct Unconfirmed { unconfirmed_frames, unconfirmed_samples }
}
