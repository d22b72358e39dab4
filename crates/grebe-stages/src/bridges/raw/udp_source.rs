//! Samples from UDP datagrams, after an optional header of a few bytes.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use grebe_datagram::Receiver;
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult, monotonic_ns};
use grebe_frame::{BatchMut, BatchPool, Description, Header, StreamTracker};
use grebe_process::stream::{CHUNK_BYTES, datagram_chunks};

use crate::bridges::raw::RawStream;
use crate::session::{Bounded, Limit, Senders, Shortfall, Silence, Whose};
use crate::transport::SecondSender;

/// Receives datagrams of samples from one sender: the first, until it is silent for half a second. Its empty datagram
/// ends the stream.
///
/// With numbered datagrams, a lost one becomes a gap as long as the datagram after it. A late one is counted and
/// skipped. Without numbers, the source counts drops of this machine's kernel and samples missing by the clock.
#[derive(Debug)]
pub(crate) struct RawUdpSource {
    receiver: Receiver<Vec<u8>>,
    pool: Option<BatchPool>,
    senders: Senders,
    /// Memory that the receiver returned.
    intake: Intake,
    shortfall: Shortfall,
    counters: Counted,
}

#[derive(Debug)]
struct Intake {
    raw: RawStream,
    description: Option<Arc<Description>>,
    tracker: StreamTracker,
    next: Header,
    /// Expected number of the next datagram. `None`: before the first, or without numbers.
    expected: Option<u64>,
    late_in_a_row: u32,
    batch: Option<BatchMut>,
    limit: Limit,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    datagrams: u64,
    late: u64,
    short: u64,
    odd_bytes: u64,
    /// Datagrams dropped for lack of memory, because the consumer is too slow.
    starved: u64,
    restarts: u64,
}

impl RawUdpSource {
    pub(crate) fn new(receiver: Receiver<Vec<u8>>, raw: RawStream) -> Self {
        Self {
            receiver,
            pool: None,
            senders: Senders::new(|one, other| one == other),
            intake: Intake::new(raw),
            shortfall: Shortfall::default(),
            counters: Counted::default(),
        }
    }

    /// Another sender to the same port.
    pub(crate) fn second_sender(&self) -> SecondSender {
        self.senders.second()
    }

    fn publish(&self, kernel_drops: Option<u64>) {
        let (counted, counts) = (self.intake.tracker.counts(), &self.intake.counts);
        self.counters.datagrams.set(counts.datagrams);
        self.counters.lost_frames.set(counted.lost_frames);
        self.counters.lost_samples.set(counted.lost_samples);
        self.counters.late_datagrams.set(counts.late);
        self.counters.short_datagrams.set(counts.short);
        self.counters.odd_bytes.set(counts.odd_bytes);
        self.counters.foreign_datagrams.set(self.senders.foreign_datagrams());
        self.counters.starved_datagrams.set(counts.starved);
        self.counters.restarts.set(counts.restarts);
        self.counters.kernel_drops.set(kernel_drops.unwrap_or(0));
        self.counters.kernel_drops_known.set(u64::from(kernel_drops.is_some()));
        self.counters.unseen_loss.set(u64::from(self.may_miss_unseen(kernel_drops.unwrap_or(0))));
    }

    /// Whether more may be lost than the numbers show.
    fn may_miss_unseen(&self, kernel_drops: u64) -> bool {
        let (lost, counts) = (self.intake.tracker.counts().lost_frames, &self.intake.counts);
        match self.intake.raw.number.map(|number| number.max()) {
            None => true,
            // A loss longer than the range of the number looks shorter, or like late datagrams.
            Some(SMALL_RANGE) => lost + counts.late + counts.restarts + kernel_drops > 0,
            // Each of these buffers held at least one datagram.
            Some(range) => range <= u64::from(u16::MAX) && (counts.restarts > 0 || kernel_drops > lost),
        }
    }
}

impl Intake {
    fn new(raw: RawStream) -> Self {
        Self {
            description: raw.description(),
            tracker: StreamTracker::new(),
            next: raw.header(),
            raw,
            expected: None,
            late_in_a_row: 0,
            batch: None,
            limit: Limit::default(),
            counts: Counts::default(),
        }
    }

    fn take(
        &mut self,
        datagram: &[u8],
        chunk: &dyn Fn() -> Option<BatchMut>,
        output: &mut Outputs,
        ctx: &Context,
    ) {
        let Some(samples) = datagram.get(self.raw.skip_bytes..) else {
            self.counts.short += 1;
            return;
        };
        let length = samples.len() / self.raw.frame_bytes();
        let samples = &samples[..length * self.raw.frame_bytes()];
        self.counts.odd_bytes += (datagram.len() - self.raw.skip_bytes - samples.len()) as u64;
        if length == 0 {
            self.counts.short += 1;
            return;
        }
        let Some(missing) = self.missing_before(datagram) else {
            self.counts.late += 1;
            return;
        };
        self.counts.datagrams += 1;
        // Wraps, because a sender may claim any number.
        self.next.sequence = self.next.sequence.wrapping_add(missing);
        let missing_samples = missing.wrapping_mul(length as u64);
        self.next.first_sample_index = self.next.first_sample_index.wrapping_add(missing_samples);
        let header =
            Header { block_length_samples: length as u32, producer_ts_ns: monotonic_ns(), ..self.next };
        self.next.sequence = self.next.sequence.wrapping_add(1);
        self.next.first_sample_index = self.next.first_sample_index.wrapping_add(length as u64);
        if !self.enter(&header, samples) {
            self.hand_on(output, ctx);
            self.batch = chunk();
            if let Some(batch) = &mut self.batch {
                batch.describe(self.description.as_ref());
            }
            if !self.enter(&header, samples) {
                self.counts.starved += 1;
                return;
            }
        }
        self.tracker.arrive(&header);
    }

    fn enter(&mut self, header: &Header, samples: &[u8]) -> bool {
        let Self { batch: Some(batch), raw, .. } = self else { return false };
        batch.push_bytes(header, |channel, out| raw.take(samples, channel, out)).is_ok()
    }

    fn hand_on(&mut self, output: &mut Outputs, ctx: &Context) {
        if let Some(batch) = self.batch.take_if(|batch| !batch.is_empty()) {
            self.limit.send(batch.freeze(), output, ctx);
        }
    }

    /// Datagrams missing before this one. `None`: this one is late.
    fn missing_before(&mut self, datagram: &[u8]) -> Option<u64> {
        let Some(number) = self.raw.number else { return Some(0) };
        let value = number.read(datagram)?;
        let ahead = value.wrapping_sub(self.expected.unwrap_or(value)) & number.max();
        let is_late = ahead > (number.max() / 2).min(AHEAD_MAX);
        self.late_in_a_row = if is_late { self.late_in_a_row + 1 } else { 0 };
        if is_late && self.late_in_a_row < LATE_MAX {
            return None;
        }
        self.expected = Some(value.wrapping_add(1) & number.max());
        if is_late {
            // The device restarted its count.
            self.late_in_a_row = 0;
            self.counts.restarts += 1;
            return Some(0);
        }
        Some(ahead)
    }
}

impl Bounded for RawUdpSource {
    fn limit(&mut self) -> &mut Limit {
        &mut self.intake.limit
    }

    fn silence(&mut self) -> &mut Silence {
        self.senders.silence()
    }
}

impl Stage for RawUdpSource {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let pool = self.pool.get_or_insert_with(|| datagram_chunks(ctx));
        let datagrams = self.intake.counts.datagrams;
        let (shared, intake, senders) = (RefCell::new(pool), &mut self.intake, &mut self.senders);
        let chunk = || shared.borrow_mut().acquire();
        let outcome = self.receiver.recv(
            || Some(vec![0; CHUNK_BYTES]),
            |slab, received| {
                let now = Instant::now();
                if received.len == 0 {
                    senders.hear_end(received.from, now);
                    return Some(slab);
                }
                match senders.hear(received.from, received.datagrams(), now) {
                    Whose::Foreign => return Some(slab),
                    // The new sender has its own numbers.
                    Whose::Newcomer => intake.expected = None,
                    Whose::Ours => {}
                }
                for range in received.segments() {
                    intake.take(&slab[range], &chunk, output, ctx);
                }
                Some(slab)
            },
        )?;
        ctx.count_waited(outcome.waited);
        self.intake.hand_on(output, ctx);
        if self.intake.counts.datagrams > datagrams {
            let Intake { next, description, .. } = &mut self.intake;
            let samples = next.first_sample_index;
            let missing = self.shortfall.after_read(monotonic_ns(), samples, next, description);
            self.counters.clock_missing_samples.set(missing);
        }
        self.publish(outcome.kernel_drops);
        if self.intake.limit.is_reached() || self.senders.is_over(Instant::now()) {
            return Ok(Outcome::End);
        }
        self.senders.check()?;
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.counters.clock_missing_samples.set(self.shortfall.end());
        ctx.set_end_of_stream(Header { block_length_samples: 0, ..self.intake.next });
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

/// Feeds datagrams and a byte stream of another program; `choice` selects the name. The output must equal the input.
#[cfg(fuzzing)]
pub(crate) fn fuzz(choice: u8, datagrams: Vec<Vec<u8>>) {
    let names = [
        "udp://:1?format=u8",
        "udp://:1?format=ci16be&channels=3&seq=2:u32be",
        "udp://:1?format=i24&channels=2&skip=5&seq=4:u8",
        "udp://:1?format=f64&channels=2&interleave=block&seq=0:u64le",
    ];
    let Ok(crate::Uri::Raw(raw)) = names[usize::from(choice) % names.len()].parse() else { return };
    let bytes: usize = datagrams.iter().map(Vec::len).sum();
    let Ok(mut bench) = grebe_flow::StageBench::new(Fed(Intake::new(*raw), datagrams.into_iter())) else {
        return;
    };
    let samples: u64 = bench.end().unwrap_or_default().iter().map(grebe_frame::Batch::samples).sum();
    assert!(samples as usize <= bytes);
}

#[cfg(fuzzing)]
struct Fed(Intake, std::vec::IntoIter<Vec<u8>>);

#[cfg(fuzzing)]
impl Stage for Fed {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let chunk = || BatchPool::new(1, grebe_process::stream::DATAGRAM_CHUNK_BYTES).acquire();
        let Some(datagram) = self.1.next() else {
            self.0.hand_on(output, ctx);
            return Ok(Outcome::End);
        };
        self.0.take(&datagram, &chunk, output, ctx);
        Ok(Outcome::Produced)
    }
}

/// After this many late datagrams in a row, the device has restarted its count.
const LATE_MAX: u32 = 32;
/// A number further ahead also means a restarted count.
const AHEAD_MAX: u64 = 1 << 31;
grebe_flow::counters! {
    struct Counted { datagrams, lost_frames, lost_samples, late_datagrams, short_datagrams, odd_bytes, foreign_datagrams, starved_datagrams, restarts, kernel_drops, gauge kernel_drops_known, gauge unseen_loss, gauge clock_missing_samples }
}
/// Range of one-byte numbers.
const SMALL_RANGE: u64 = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uri;

    fn raw(text: &str) -> RawStream {
        match text.parse() {
            Ok(Uri::Raw(raw)) => *raw,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn missing_datagrams_are_found_by_their_numbers() {
        let mut intake = Intake::new(raw("udp://:0?format=u8&seq=0:u8"));
        let mut missing = |number: u8| intake.missing_before(&[number, 0]);
        assert_eq!(missing(250), Some(0), "whatever comes first");
        assert_eq!([251, 254, 0].map(&mut missing), [Some(0), Some(2), Some(1)], "it begins again at 256");
        assert_eq!([255, 1, 1].map(&mut missing), [None, Some(0), None], "late, and twice");
        assert_eq!(missing(2), Some(0));
        let back: Vec<_> = (0..LATE_MAX as u8).map(|number| missing(200 + number)).collect();
        assert_eq!(back[LATE_MAX as usize - 2..], [None, Some(0)], "it counts anew");
        assert_eq!(missing(200 + LATE_MAX as u8), Some(0));
        assert_eq!(intake.counts.restarts, 1);
    }

    #[test]
    fn a_number_absurdly_far_ahead_is_not_a_gap() {
        let mut intake = Intake::new(raw("udp://:0?format=u8&seq=0:u64"));
        let mut missing = |number: u64| intake.missing_before(&number.to_le_bytes());
        assert_eq!([7, 8, 1 << 62, 9].map(&mut missing), [Some(0), Some(0), None, Some(0)]);
    }

    #[test]
    fn unnumbered_datagrams_follow_each_other() {
        let mut intake = Intake::new(raw("udp://:0?format=u8"));
        assert_eq!(intake.missing_before(&[9]), Some(0));
    }
}
