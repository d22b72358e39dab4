//! `vrt://` as a source.

use std::cell::RefCell;
use std::time::Instant;

use grebe_datagram::Receiver;
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult, monotonic_ns};
use grebe_frame::{BatchPool, Header, Refusal};
use grebe_process::stream::{CHUNK_BYTES, datagram_chunks};

use super::intake::{Intake, Onward};
use super::uri::Vita49Stream;
use crate::session::{Bounded, Limit, Senders, Silence, Whose};
use crate::transport::SecondSender;

/// Receives VITA-49 packets from one sender: the first, until it is silent for half a second. Its empty datagram ends
/// the stream (grebe sends one).
#[derive(Debug)]
pub(crate) struct Vita49Source {
    receiver: Receiver<Vec<u8>>,
    pool: Option<BatchPool>,
    senders: Senders,
    intake: Intake,
    counters: Counted,
}

impl Vita49Source {
    pub(crate) fn new(receiver: Receiver<Vec<u8>>, name: Vita49Stream) -> Self {
        Self {
            receiver,
            pool: None,
            // Some devices send context packets from another port.
            senders: Senders::new(|one, other| one.ip() == other.ip()),
            intake: Intake::new(name),
            counters: Counted::default(),
        }
    }

    /// Another sender to the port.
    pub(crate) fn second_sender(&self) -> SecondSender {
        self.senders.second()
    }

    fn publish(&self, kernel_drops: Option<u64>) {
        let (counted, counts) = (self.intake.tracker.counts(), &self.intake.counts);
        let refused = |reason| self.intake.refusals.count(reason);
        self.counters.packets.set(counts.packets);
        self.counters.context_packets.set(counts.context_packets);
        self.counters.lost_frames.set(
            // Late packets were counted as lost before.
            counted.lost_frames.saturating_sub(counts.late),
        );
        self.counters.lost_samples.set(counted.lost_samples.saturating_sub(counts.late_samples));
        self.counters.generator_samples.set(counted.generator_samples);
        self.counters.late_frames.set(counts.late);
        self.counters.late_samples.set(counts.late_samples);
        self.counters.duplicate_frames.set(counts.duplicates);
        self.counters.restarts.set(counts.restarts);
        self.counters.other_stream_packets.set(counts.other_streams);
        self.counters.other_streams.set(self.intake.other_streams() as u64);
        self.counters.unknown_format_packets.set(counts.unknown);
        self.counters.device_loss_packets.set(counts.sample_loss);
        self.counters.over_range_packets.set(counts.over_range);
        self.counters.starved_packets.set(counts.starved);
        self.counters.foreign_datagrams.set(self.senders.foreign_datagrams());
        self.counters.kernel_drops.set(kernel_drops.unwrap_or(0));
        self.counters.kernel_drops_known.set(u64::from(kernel_drops.is_some()));
        self.counters.refused_short.set(refused(Refusal::Short));
        self.counters.refused_truncated.set(refused(Refusal::Truncated));
        self.counters.refused_header_bytes.set(refused(Refusal::HeaderBytes));
        self.counters.refused_kind.set(refused(Refusal::Kind));
        self.counters.refused_payload_bytes.set(refused(Refusal::PayloadBytes));
        self.counters.refused_description.set(refused(Refusal::Description));
    }
}

impl Bounded for Vita49Source {
    fn limit(&mut self) -> &mut Limit {
        &mut self.intake.limit
    }

    fn silence(&mut self) -> &mut Silence {
        self.senders.silence()
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
                let packets = intake.counts.packets;
                for range in received.segments() {
                    if let Err(error) = intake.take(&slab[range], &mut onward) {
                        failed = Some(error);
                    }
                }
                if intake.counts.packets > packets {
                    senders.took(received.from);
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
        Some(self.counters.all())
    }
}

grebe_flow::counters! {
    struct Counted { packets, context_packets, lost_frames, lost_samples, generator_samples, late_frames, late_samples, duplicate_frames, restarts, other_stream_packets, other_streams, unknown_format_packets, device_loss_packets, over_range_packets, starved_packets, foreign_datagrams, kernel_drops, kernel_drops_known, refused_short, refused_truncated, refused_header_bytes, refused_kind, refused_payload_bytes, refused_description }
}
