//! All consumers of a stream, under one lock.

use std::collections::VecDeque;
use std::time::Duration;

use grebe_frame::Batch;

use crate::consumer::{Consumer, Presence};
use crate::lane::Descriptor;
use crate::message::Message;
use crate::options::PublisherOptions;
use crate::packet;
use crate::status::Totals;

/// Consumers. Locked once per batch; contended only when a consumer joins or leaves.
#[derive(Debug)]
pub(crate) struct Consumers {
    pub(crate) all: Vec<Consumer>,
    /// Cut off, or remaining after the publisher is gone: they get nothing more, and may read their chunks
    /// until they hang up.
    pub(crate) leaving: Vec<Consumer>,
    resting: VecDeque<Batch>,
    rest_chunks: usize,
    block_timeout: Duration,
    pub(crate) is_ended: bool,
    /// Totals over all consumers, including past ones; fields of the present state stay zero.
    pub(crate) counted: Totals,
}

impl Consumers {
    pub(crate) fn new(options: &PublisherOptions) -> Self {
        let rest_chunks = options.resting_chunks();
        Self {
            all: Vec::with_capacity(options.consumers_max),
            leaving: Vec::with_capacity(options.consumers_max),
            resting: VecDeque::with_capacity(rest_chunks),
            rest_chunks,
            block_timeout: options.block_timeout,
            is_ended: false,
            counted: Totals::default(),
        }
    }

    /// Offers a batch to all. Returns whether it waits for a consumer without room.
    pub(crate) fn offer(&mut self, batch: &Batch, what: Descriptor, stream: &str) -> bool {
        self.keep_from_reuse(batch);
        self.offer_to(|_| true, batch, what, stream)
    }

    /// Offers the batch again to consumers without room. Returns whether it still waits.
    pub(crate) fn retry_offer(&mut self, batch: &Batch, what: Descriptor, stream: &str) -> bool {
        self.offer_to(|consumer| consumer.waits.is_some(), batch, what, stream)
    }

    /// Holds the last batches for a while, so that older chunks are written first. A chunk returned at once
    /// is still in the consumer's cache, where writing it is slow.
    fn keep_from_reuse(&mut self, batch: &Batch) {
        if self.rest_chunks == 0 {
            return;
        }
        if self.resting.len() == self.rest_chunks {
            self.resting.pop_front();
        }
        self.resting.push_back(batch.clone());
    }

    fn offer_to(
        &mut self,
        is_meant: impl Fn(&Consumer) -> bool,
        batch: &Batch,
        what: Descriptor,
        stream: &str,
    ) -> bool {
        for consumer in self.all.iter_mut().filter(|consumer| is_meant(consumer)) {
            if let Some(dropped) = consumer.offer(batch, what, self.block_timeout) {
                consumer.count_dropped(&dropped, &mut self.counted);
            }
            if consumer.waits.is_none() {
                self.counted.lent_frames += batch.len() as u64;
            }
        }
        self.settle(stream);
        self.all.iter().any(|consumer| consumer.waits.is_some())
    }

    /// Drops the waiting batch for consumers without room.
    pub(crate) fn give_up(&mut self, batch: &Batch) {
        for consumer in self.all.iter_mut().filter(|consumer| consumer.waits.is_some()) {
            consumer.waits = None;
            consumer.count_dropped(batch, &mut self.counted);
        }
    }

    /// Whether each consumer that the batch waits for could take it now, or is to be cut off for its timeout.
    pub(crate) fn has_room(&mut self) -> bool {
        let mut has_room = true;
        for consumer in self.waiting() {
            consumer.reap();
            has_room &= consumer.presence != Presence::Connected || consumer.lender.has_room();
        }
        has_room
    }

    pub(crate) fn waiting(&mut self) -> impl Iterator<Item = &mut Consumer> {
        self.all.iter_mut().filter(|consumer| consumer.waits.is_some())
    }

    pub(crate) fn reap(&mut self, stream: &str) {
        self.all.iter_mut().for_each(Consumer::reap);
        self.settle(stream);
    }

    /// Reads a consumer's messages, or its hang-up.
    pub(crate) fn attend(&mut self, id: u64, stream: &str) {
        let Some(consumer) = self.all.iter_mut().find(|consumer| consumer.id == id) else {
            self.leaving.retain(|consumer| consumer.id != id || !consumer.has_hung_up());
            return;
        };
        consumer.listen();
        consumer.reap();
        self.settle(stream);
    }

    /// Removes consumers that are gone or must go. Chunks of those that are gone are returned.
    fn settle(&mut self, stream: &str) {
        if self.all.iter().all(|consumer| consumer.presence == Presence::Connected) {
            return;
        }
        for consumer in self.all.extract_if(.., |consumer| consumer.presence != Presence::Connected) {
            match &consumer.presence {
                Presence::CutOff(why) => {
                    let why = format!("{why} ('{stream}', policy {})", consumer.policy);
                    consumer.lender.cut_off();
                    // A consumer that does not read it notices the hang-up.
                    let _ = packet::send_message(&consumer.connection, &Message::Bye(why), &[]);
                    consumer.hang_up();
                    self.counted.cut_off += 1;
                    self.leaving.push(consumer);
                }
                Presence::HungUp | Presence::Connected => self.counted.hung_up += 1,
            }
        }
    }

    /// The publisher is gone: hangs up on all, and releases the held batches.
    pub(crate) fn part(&mut self) {
        self.resting.clear();
        self.all.iter().for_each(Consumer::hang_up);
        self.leaving.append(&mut self.all);
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            consumers: self.all.len() as u32,
            fullest_queue_percent: self.all.iter().map(Consumer::queue_percent).max().unwrap_or(0),
            out_chunks: self.all.iter().chain(&self.leaving).map(|consumer| consumer.lender.out()).sum(),
            ..self.counted
        }
    }
}
