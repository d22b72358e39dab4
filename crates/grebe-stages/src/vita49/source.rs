//! `vrt://` as a source.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use grebe_datagram::Receiver;
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult, monotonic_ns};
use grebe_frame::{BatchPool, Header, Refusal};

use super::intake::{Intake, Onward};
use super::uri::Vita49Stream;
use crate::io::senders::{Senders, Whose};
use crate::stream::{CHUNK_BYTES, Limit, datagram_chunks};
use crate::transport::SecondSender;

/// Receives VITA-49 packets from one sender, which is the first, until it has been silent for half a second. An empty datagram of its
/// sender ends the stream: grebe sends one.
#[derive(Debug)]
pub(crate) struct Vita49Source {
    receiver: Receiver<Vec<u8>>,
    pool: Option<BatchPool>,
    senders: Senders,
    intake: Intake,
    counters: Counters,
}

impl Vita49Source {
    pub(crate) fn new(receiver: Receiver<Vec<u8>>, name: Vita49Stream) -> Self {
        Self {
            receiver,
            pool: None,
            // Some devices send context packets from a port of their own.
            senders: Senders::new(|one, other| one.ip() == other.ip()),
            intake: Intake::new(name),
            counters: Counters::new(COUNTERS),
        }
    }

    /// Ends the stream with an error once its sender has been silent for this long.
    pub(crate) fn idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.senders.ends_after(timeout);
        self
    }

    /// Ends the stream after this many samples per channel.
    pub(crate) fn samples(mut self, samples: Option<u64>) -> Self {
        self.intake.limit = Limit::new(samples);
        self
    }

    /// Who else sends to the port.
    pub(crate) fn second_sender(&self) -> SecondSender {
        self.senders.second()
    }

    fn publish(&self, kernel_drops: Option<u64>) {
        let (counted, counts) = (self.intake.tracker.counts(), &self.intake.counts);
        let refused = |reason| self.intake.refusals.count(reason);
        self.counters.set_all([
            counts.packets,
            counts.context_packets,
            // What came late was counted as lost until then.
            counted.lost_frames.saturating_sub(counts.late),
            counted.lost_samples.saturating_sub(counts.late_samples),
            counted.generator_samples,
            counts.late,
            counts.late_samples,
            counts.duplicates,
            counts.restarts,
            counts.other_streams,
            self.intake.other_streams() as u64,
            counts.unknown,
            counts.sample_loss,
            counts.over_range,
            counts.starved,
            self.senders.foreign_datagrams(),
            kernel_drops.unwrap_or(0),
            u64::from(kernel_drops.is_some()),
            refused(Refusal::Short),
            refused(Refusal::Truncated),
            refused(Refusal::HeaderBytes),
            refused(Refusal::Kind),
            refused(Refusal::PayloadBytes),
            refused(Refusal::Description),
        ]);
    }
}

impl Stage for Vita49Source {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let pool = self.pool.get_or_insert_with(|| datagram_chunks(ctx));
        let (shared, intake, senders) = (RefCell::new(pool), &mut self.intake, &mut self.senders);
        let chunk = || shared.borrow_mut().acquire();
        let mut failed = None;
        let outcome = self.receiver.recv(
            || Some(vec![0; CHUNK_BYTES]),
            |slab, received| {
                let (now, now_ns) = (Instant::now(), monotonic_ns());
                if received.len == 0 {
                    senders.hear_end(received.from, now);
                    return Some(slab);
                }
                match senders.hear(received.from, received.datagrams(), now) {
                    Whose::Foreign => return Some(slab),
                    Whose::Newcomer => intake.begin(),
                    Whose::Ours => {}
                }
                let mut onward = Onward { chunk: &chunk, output, ctx, now, now_ns };
                for range in received.segments() {
                    if let Err(error) = intake.take(&slab[range], &mut onward) {
                        failed = Some(error);
                    }
                }
                Some(slab)
            },
        )?;
        ctx.count_waited(outcome.waited);
        self.intake.hand_on(output, ctx);
        self.publish(outcome.kernel_drops);
        if let Some(error) = failed {
            return Err(error.into());
        }
        if self.intake.limit.is_reached() || self.senders.is_over(Instant::now()) {
            return Ok(Outcome::End);
        }
        self.senders.check()?;
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        ctx.set_end_of_stream(Header { block_length_samples: 0, ..self.intake.next });
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}

const COUNTERS: &[&str] = &[
    "packets",
    "context_packets",
    "lost_frames",
    "lost_samples",
    "generator_samples",
    "late_frames",
    "late_samples",
    "duplicate_frames",
    "restarts",
    "other_stream_packets",
    "other_streams",
    "unknown_format_packets",
    "device_loss_packets",
    "over_range_packets",
    "starved_packets",
    "foreign_datagrams",
    "kernel_drops",
    // 1 where the system can tell.
    "kernel_drops_known",
    "refused_short",
    "refused_truncated",
    "refused_header_bytes",
    "refused_kind",
    "refused_payload_bytes",
    "refused_description",
];
