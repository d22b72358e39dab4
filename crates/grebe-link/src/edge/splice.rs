//! Joins the stream of a restarted producer to the previous one.
//!
//! A restarted source counts from zero. The gap is as long as the stamps of both streams show if one clock
//! made them, otherwise as long as nothing arrived. The new stream continues after that number of samples.

use std::fmt;
use std::time::Instant;

use grebe_frame::{Description, Header};

/// Follows a stream, and shifts the frames of a restarted producer.
#[derive(Debug, Default)]
pub(super) struct Splice {
    last: Option<Header>,
    /// Clock of its stamps.
    clock: Option<u64>,
    came: Option<Instant>,
    is_open: bool,
    shift: Shift,
}

/// Offsets added to the numbers of frames, modulo their ranges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Shift {
    sequence: u64,
    sample_index: u64,
    sg_drops_total: u64,
}

/// Gap between the two streams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SpliceGap {
    /// Missing samples per channel.
    pub(super) samples: u64,
    seconds: f64,
    by: By,
}

/// Basis for the length of the gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// The source was not restarted and continued counting.
    Count,
    Stamps,
    /// The stamps are of two clocks, as after a reboot.
    Arrival,
}

impl Splice {
    /// Notes that the next frame comes from a restarted producer.
    pub(super) fn open(&mut self) {
        self.is_open = true;
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Joins the first frame after the seam, with its description. Returns the gap; `None` without a seam, or
    /// if the stream is a different one.
    pub(super) fn close(
        &mut self,
        header: &Header,
        description: Option<&Description>,
        now: Instant,
    ) -> Option<SpliceGap> {
        if !std::mem::take(&mut self.is_open) {
            return None;
        }
        self.shift = Shift::default();
        let clock = description.and_then(|description| description.clock?.clock);
        let is_same_clock = clock.is_some() && clock == self.clock;
        let last = self.last.filter(|last| is_alike(last, header) && header.sample_rate_hz > 0.0)?;
        let expected = last.next_sample_index();
        let of_block_s = |header: &Header| f64::from(header.block_length_samples) / header.sample_rate_hz;
        let seconds = match self.came {
            Some(came) if !is_same_clock => (now - came).as_secs_f64() - of_block_s(header),
            _ => (header.producer_ts_ns as f64 - last.producer_ts_ns as f64) / 1e9 - of_block_s(&last),
        };
        let samples = (seconds.max(0.0) * header.sample_rate_hz).round() as u64;
        let counted = header.first_sample_index.checked_sub(expected);
        let tolerance = (header.sample_rate_hz * STAMPS_WITHIN_S) as u64;
        if let Some(samples) =
            counted.filter(|counted| is_same_clock && counted.abs_diff(samples) <= tolerance)
        {
            let seconds = samples as f64 / header.sample_rate_hz;
            if header.sequence <= last.sequence {
                // An intermediate stage was restarted and numbers its frames from zero.
                self.shift.sequence = last.sequence.wrapping_add(1).wrapping_sub(header.sequence);
            }
            return Some(SpliceGap { samples, seconds, by: By::Count });
        }
        self.shift = Shift {
            sequence: last.sequence.wrapping_add(1).wrapping_sub(header.sequence),
            sample_index: expected.wrapping_add(samples).wrapping_sub(header.first_sample_index),
            sg_drops_total: last.sg_drops_total,
        };
        let by = if is_same_clock { By::Stamps } else { By::Arrival };
        Some(SpliceGap { samples, seconds: seconds.max(0.0), by })
    }

    /// Shifts a frame after a seam. Returns whether that changed it.
    pub(super) fn shift(&self, header: &mut Header) -> bool {
        if self.shift == Shift::default() {
            return false;
        }
        header.sequence = header.sequence.wrapping_add(self.shift.sequence);
        header.first_sample_index = header.first_sample_index.wrapping_add(self.shift.sample_index);
        header.sg_drops_total = header.sg_drops_total.wrapping_add(self.shift.sg_drops_total);
        true
    }

    /// Description of the stream with the indices used here.
    pub(super) fn described(&mut self, mut description: Description) -> Description {
        self.clock = description.clock.and_then(|clock| clock.clock);
        let shift = self.shift.sample_index;
        description.first_sample_index = description.first_sample_index.wrapping_add(shift);
        for annotation in &mut description.annotations {
            annotation.first_sample_index = annotation.first_sample_index.wrapping_add(shift);
        }
        description
    }

    /// Notes a frame that was passed on.
    pub(super) fn follow(&mut self, header: &Header) {
        self.last = Some(*header);
    }

    /// Notes the arrival time of the last passed frame.
    pub(super) fn came(&mut self, now: Instant) {
        self.came = Some(now);
    }
}

impl SpliceGap {
    /// Missing samples that the absent source never sent; losses after it are counted where they happen.
    pub(super) fn of_source(&self) -> u64 {
        if self.by == By::Count { 0 } else { self.samples }
    }
}

impl fmt::Display for SpliceGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, seconds, by } = self;
        if *samples == 0 {
            return f.write_str("the stream continues without a gap");
        }
        let by = match by {
            By::Count => "as it has counted on",
            By::Stamps => "by the clock of its host",
            By::Arrival => "as long as nothing came: its host has another clock than before",
        };
        write!(f, "the stream continues after a gap of {} samples ({seconds:.3} s, {by})", grouped(*samples))
    }
}

fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

fn is_alike(last: &Header, header: &Header) -> bool {
    let of = |header: &Header| (header.channel_count, header.format, header.sample_rate_hz);
    of(last) == of(header)
}

/// Tolerance between a source's stamps and its sample count. Stamps of large batches jump, and a restarted
/// source counts from zero, which differs more.
const STAMPS_WITHIN_S: f64 = 1.0;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grebe_frame::ClockReading;

    use super::*;

    fn frame(sequence: u64, producer_ts_ns: u64) -> Header {
        Header {
            sequence,
            producer_ts_ns,
            first_sample_index: sequence * 100,
            block_length_samples: 100,
            channel_count: 1,
            sample_rate_hz: 1e6,
            ..Header::default()
        }
    }

    fn description(clock: u64) -> Description {
        let clock = ClockReading { producer_ts_ns: 0, unix_time_ns: 0, error_ns: None, clock: Some(clock) };
        Description { clock: Some(clock), first_sample_index: 7, ..Description::default() }
    }

    /// Frames 0 to 9, the last from 900 us to 1 ms.
    fn followed(now: Instant) -> Splice {
        let mut splice = Splice::default();
        assert_eq!(splice.close(&frame(0, 0), None, now), None);
        let _ = splice.described(description(1));
        (0..10).for_each(|at| splice.follow(&frame(at, at * 100_000)));
        splice.came(now);
        splice.open();
        splice
    }

    #[test]
    fn a_restarted_source_continues_after_a_gap_of_its_stamps_length() {
        let now = Instant::now();
        let mut splice = followed(now);
        let gap = splice.close(&frame(0, 51_000_000), Some(&description(1)), now).unwrap();
        assert_eq!((gap.samples, gap.by), (50_000, By::Stamps));
        let mut next = frame(0, 51_000_000);
        assert!(splice.shift(&mut next));
        assert_eq!((next.sequence, next.first_sample_index), (10, 51_000));
        assert_eq!(splice.described(description(1)).first_sample_index, 51_007);
        // And once more from its present state.
        splice.follow(&next);
        splice.open();
        let gap = splice.close(&frame(3, 52_100_000), Some(&description(1)), now).unwrap();
        assert_eq!(gap.samples, 1_000);
        let mut next = frame(3, 52_100_000);
        splice.shift(&mut next);
        assert_eq!((next.sequence, next.first_sample_index), (11, 52_100));
    }

    #[test]
    fn after_a_reboot_the_gap_is_as_long_as_the_silence() {
        let now = Instant::now();
        let mut splice = followed(now);
        let gap =
            splice.close(&frame(0, 77), Some(&description(2)), now + Duration::from_millis(10)).unwrap();
        assert_eq!((gap.samples, gap.by), (9_900, By::Arrival));
    }

    #[test]
    fn a_source_that_was_not_started_again_counts_on() {
        let now = Instant::now();
        let mut splice = followed(now);
        // An intermediate stage was restarted and numbers its frames from zero.
        let next = Header { first_sample_index: 3_000, sequence: 0, ..frame(30, 3_000_000) };
        let gap = splice.close(&next, Some(&description(1)), now).unwrap();
        assert_eq!((gap.samples, gap.by), (2_000, By::Count));
        let mut shifted = next;
        splice.shift(&mut shifted);
        assert_eq!((shifted.sequence, shifted.first_sample_index), (10, 3_000));
        let mut splice = followed(now);
        assert_eq!(splice.close(&frame(30, 3_000_000), Some(&description(1)), now).unwrap().samples, 2_000);
        assert!(!splice.shift(&mut frame(30, 3_000_000)), "nothing is to be changed");
    }

    #[test]
    fn another_stream_is_left_as_it_is() {
        let now = Instant::now();
        let mut splice = followed(now);
        let other = Header { channel_count: 2, ..frame(0, 51_000_000) };
        assert_eq!(splice.close(&other, Some(&description(1)), now), None);
        assert!(!splice.shift(&mut other.clone()));
        assert_eq!(splice.described(description(1)).first_sample_index, 7);
    }
}
