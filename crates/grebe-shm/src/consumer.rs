//! A consumer from its producer's view.

use std::time::{Duration, Instant};

use grebe_frame::Batch;
use grebe_ring::Policy;

use crate::lane::{Descriptor, Lender, Offer, Shape, Violation};
use crate::message::Message;
use crate::packet::{self, Packet};
use crate::platform::Connection;
use crate::status::{ConsumerStatus, Totals};

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) id: u64,
    pub(crate) connection: Connection,
    pub(crate) lender: Lender<Batch>,
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) policy: Policy,
    pub(crate) shape: Shape,
    pub(crate) quota: u32,
    pub(crate) lent_frames: u64,
    pub(crate) dropped_frames: u64,
    /// Time since which the present batch has waited for this consumer.
    pub(crate) waits: Option<Instant>,
    pub(crate) presence: Presence,
}

/// Whether a consumer stays, or the reason for its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Presence {
    Connected,
    HungUp,
    CutOff(String),
}

impl Consumer {
    /// Offers a batch. Returns the dropped batch, which may be an older one.
    pub(crate) fn offer(
        &mut self,
        batch: &Batch,
        what: Descriptor,
        block_timeout: Duration,
    ) -> Option<Batch> {
        self.reap();
        if self.presence != Presence::Connected {
            self.waits = None;
            return None;
        }
        match self.lender.offer(batch.clone(), what) {
            Ok(Offer::Queued(evicted)) => {
                self.waits = None;
                self.lent_frames += batch.len() as u64;
                self.wake(false);
                evicted
            }
            Ok(Offer::Dropped(batch)) => Some(batch),
            Ok(Offer::Full(_)) => {
                let since = *self.waits.get_or_insert_with(Instant::now);
                if since.elapsed() >= block_timeout {
                    self.cut_off(format!("it accepted nothing for {block_timeout:?}"));
                }
                None
            }
            Err(violation) => {
                self.violates(violation);
                None
            }
        }
    }

    pub(crate) fn reap(&mut self) {
        if let Err(violation) = self.lender.reap(drop).and_then(|_| self.lender.refresh()) {
            self.violates(violation);
        }
    }

    /// Reads the consumer's messages, and notices its hang-up.
    pub(crate) fn listen(&mut self) {
        loop {
            match packet::receive(&self.connection) {
                Packet::Message(Message::Wake, _) => {
                    if let Err(violation) = self.lender.woken() {
                        return self.violates(violation);
                    }
                }
                Packet::Nothing => return,
                Packet::HungUp => {
                    self.presence = Presence::HungUp;
                    self.waits = None;
                    return;
                }
                Packet::Message(..) | Packet::Malformed(_) => {
                    return self.cut_off("it sent an invalid message".to_owned());
                }
            }
        }
    }

    /// Whether a leaving consumer has hung up. Ignores its messages, and reads at most an honest number of
    /// them per call.
    pub(crate) fn has_hung_up(&self) -> bool {
        for _ in 0..STALE_PACKETS_MAX {
            match packet::receive(&self.connection) {
                Packet::HungUp => return true,
                Packet::Nothing => return false,
                Packet::Message(..) | Packet::Malformed(_) => {}
            }
        }
        false
    }

    /// Stops sending to it. Still listens until it hangs up itself.
    pub(crate) fn hang_up(&self) {
        self.connection.hang_up();
    }

    /// Wakes the consumer if it sleeps, or always.
    pub(crate) fn wake(&self, always: bool) {
        if self.lender.must_wake() || always {
            // With a full connection enough wake-ups are pending; with a broken one the consumer is gone.
            let _ = packet::send_message(&self.connection, &Message::Wake, &[]);
        }
    }

    /// Counts a batch dropped for this consumer, and updates its counter.
    pub(crate) fn count_dropped(&mut self, batch: &Batch, counted: &mut Totals) {
        let frames = batch.len() as u64;
        self.dropped_frames += frames;
        self.lender.say_dropped(self.dropped_frames);
        counted.dropped_frames += frames;
        counted.dropped_samples += batch.samples();
    }

    fn violates(&mut self, violation: Violation) {
        self.cut_off(violation.to_string());
    }

    fn cut_off(&mut self, why: String) {
        self.presence = Presence::CutOff(why);
        self.waits = None;
    }

    pub(crate) fn queue_percent(&self) -> u32 {
        self.lender.queued() * 100 / self.shape.queue().max(1)
    }

    pub(crate) fn status(&self) -> ConsumerStatus {
        ConsumerStatus {
            name: self.name.clone(),
            pid: self.pid,
            policy: self.policy,
            queued_batches: self.lender.queued(),
            queue_batches: self.shape.queue(),
            out_chunks: self.lender.out(),
            quota_chunks: self.quota,
            lent_frames: self.lent_frames,
            dropped_frames: self.dropped_frames,
        }
    }
}

const STALE_PACKETS_MAX: u32 = 16;
