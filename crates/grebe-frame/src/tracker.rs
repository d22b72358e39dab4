//! Counts of received and missing frames and samples, and the place of their loss.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::format::SampleFormat;
use crate::header::Header;

/// Follows one stream by its headers: gaps in frames *and* samples, late and duplicate frames, restarts, the end.
///
/// Joining late is not loss: the first frame seen sets the position. Drops of the generator before that count only if
/// it is the stream's very first frame. A frame in order costs a few comparisons. Only gaps touch the list of missing
/// ranges, which has at most 256. The oldest are forgotten, and their late frames then count as duplicates.
///
/// ```
/// use grebe_frame::{Arrival, Gap, Header, StreamTracker};
///
/// let mut tracker = StreamTracker::new();
/// let frame = |sequence| Header {
///     sequence, first_sample_index: sequence * 10, block_length_samples: 10, channel_count: 1, ..Header::default()
/// };
/// assert_eq!(tracker.arrive(&frame(5)), Arrival::First);
/// assert_eq!(tracker.arrive(&frame(6)), Arrival::InOrder);
/// let gap = Gap { frames: 2, samples: 20, generator_samples: 0 };
/// assert_eq!(tracker.arrive(&frame(9)), Arrival::After(gap));
/// assert_eq!(tracker.arrive(&frame(8)), Arrival::Late);
/// assert_eq!(tracker.arrive(&frame(8)), Arrival::Duplicate);
/// ```
#[derive(Debug, Clone)]
pub struct StreamTracker {
    position: Option<Position>,
    counts: TrackerCounts,
    missing: VecDeque<Range<u64>>,
    /// Sequence and stamp of the first frame seen of the stream.
    first: (u64, u64),
    /// Successive frames before the position whose sequence grows by one: a restarted sender.
    behind: (u64, u32),
}

/// Relation of a frame to the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The first frame seen of the stream. Earlier frames are not losses.
    First,
    /// The expected frame.
    InOrder,
    /// The next frame after a gap.
    After(Gap),
    /// A missing frame that arrives after later ones, too late for the stream.
    Late,
    /// A repeated frame (or end of stream).
    Duplicate,
    /// The first frame of another stream: the sender restarted, or changed its channels or their format.
    Restart,
}

impl Arrival {
    /// Whether the frame continues the stream, so it is neither [`Late`](Arrival::Late) nor
    /// [`Duplicate`](Arrival::Duplicate).
    #[inline]
    pub fn is_new(&self) -> bool {
        !matches!(self, Arrival::Late | Arrival::Duplicate)
    }
}

/// Missing frames and samples before a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gap {
    /// Frames sent and not received; 0 if only the generator dropped.
    pub frames: u64,
    /// Missing samples per channel in total.
    pub samples: u64,
    /// The part that the generator never made (`sg_drops_total` grew by it).
    pub generator_samples: u64,
}

/// Counts of a [`StreamTracker`] over all its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrackerCounts {
    /// Frames that continued the stream.
    pub frames: u64,
    /// Samples per channel in them.
    pub samples: u64,
    /// Lost frames.
    pub lost_frames: u64,
    /// Samples per channel in them.
    pub lost_samples: u64,
    /// Samples per channel that the generator dropped, according to its headers. Includes those without an index, and
    /// those before the stream's first frame if the tracker saw that one.
    pub generator_samples: u64,
    /// Frames that arrived after later ones. They counted as lost before, and are too late for the stream.
    pub late_frames: u64,
    /// Samples per channel in them.
    pub late_samples: u64,
    /// Repeated frames.
    pub duplicate_frames: u64,
    /// Streams seen.
    pub streams: u64,
}

impl StreamTracker {
    /// A tracker without frames.
    pub fn new() -> Self {
        Self {
            position: None,
            counts: TrackerCounts::default(),
            missing: VecDeque::with_capacity(MISSING_RANGES_MAX),
            first: (0, 0),
            behind: (0, 0),
        }
    }

    /// Classifies the next frame and counts it.
    #[inline]
    pub fn arrive(&mut self, header: &Header) -> Arrival {
        let arrival = match &self.position {
            Some(position) if position.expects(header) => Arrival::InOrder,
            _ => self.out_of_order(header),
        };
        if arrival.is_new() {
            self.advance(header);
        }
        arrival
    }

    #[inline]
    fn advance(&mut self, header: &Header) {
        self.counts.frames += u64::from(!header.is_end_of_stream());
        self.counts.samples += u64::from(header.block_length_samples);
        self.position = Some(Position::behind(header));
    }

    /// Counts a frame if it is the expected one; otherwise changes nothing.
    #[inline]
    pub fn arrive_in_order(&mut self, header: &Header) -> bool {
        let is_expected = self.position.as_ref().is_some_and(|position| position.expects(header));
        if is_expected {
            self.advance(header);
        }
        is_expected
    }

    /// Frames missing before this one, if it continues the stream; 0 for the next frame. `None` if it does not, or
    /// before the first frame.
    pub fn missing_before(&self, header: &Header) -> Option<u64> {
        let position = self.position.as_ref().filter(|position| !position.ended)?;
        let is_further = header.first_sample_index >= position.sample_index;
        let missing = header.sequence.checked_sub(position.sequence)?;
        (is_further && position.is_alike(header)).then_some(missing)
    }

    /// Whether the stamp of a frame before the stream's position shows that its sender restarted.
    ///
    /// A sender's clock and its sequence only grow. So a stamp after the newest frame belongs to another stream. So
    /// does a frame before the first one by its sequence and after it by its stamp, or the reverse: the sender's host
    /// rebooted, and its clock started over. Frames more than ten seconds late belong to another stream too.
    pub fn begins_again(&self, header: &Header) -> bool {
        self.position.as_ref().is_some_and(|position| {
            let (sequence, stamp_ns) = (header.sequence, header.producer_ts_ns);
            let (first, first_ns) = self.first;
            sequence < position.sequence
                && (stamp_ns > position.newest_ts_ns
                    || (sequence >= first && stamp_ns < first_ns)
                    || (sequence <= first && stamp_ns > first_ns)
                    || position.newest_ts_ns - stamp_ns > LATE_NS_MAX)
        })
    }

    /// Counts a duplicate of a frame that the caller still holds.
    pub fn count_duplicate(&mut self) {
        self.counts.duplicate_frames += 1;
    }

    /// Counts so far.
    pub fn counts(&self) -> TrackerCounts {
        self.counts
    }

    /// Whether the stream's end has arrived.
    pub fn is_ended(&self) -> bool {
        self.position.as_ref().is_some_and(|position| position.ended)
    }

    /// The index of the next sample, once a frame has arrived.
    pub fn next_sample_index(&self) -> Option<u64> {
        self.position.as_ref().map(|position| position.sample_index)
    }

    /// A tracker of the same stream, as it comes on by another way: what is missing in between is counted, and nothing else yet.
    ///
    /// ```
    /// use grebe_frame::{Header, StreamTracker};
    ///
    /// let mut tracker = StreamTracker::new();
    /// let head = |sequence| Header {
    ///     sequence,
    ///     first_sample_index: 10 * sequence,
    ///     channel_count: 1,
    ///     block_length_samples: 10,
    ///     ..Header::default()
    /// };
    /// tracker.arrive(&head(5));
    /// let mut onward = tracker.onward();
    /// assert_eq!(onward.counts().frames, 0);
    /// onward.arrive(&head(9));
    /// assert_eq!((onward.counts().lost_frames, onward.counts().lost_samples), (3, 30));
    /// ```
    pub fn onward(&self) -> Self {
        Self { counts: TrackerCounts::default(), ..self.clone() }
    }

    /// Forgets the stream, not the counts: the next frame is a first one.
    pub fn forget(&mut self) {
        self.position = None;
    }

    #[cold]
    fn out_of_order(&mut self, header: &Header) -> Arrival {
        let Some(position) = self.position.clone() else {
            return self.begin(Arrival::First, header);
        };
        if !position.is_alike(header) {
            return self.begin(Arrival::Restart, header);
        }
        if header.sequence >= position.sequence && !position.ended {
            if header.first_sample_index < position.sample_index {
                return self.begin(Arrival::Restart, header);
            }
            if header.sequence == position.sequence && header.first_sample_index == position.sample_index {
                // Only the generator's count of drops moved.
                self.count_drops(&position, header);
                return Arrival::InOrder;
            }
            return Arrival::After(self.gap(&position, header));
        }
        if position.ended && header.sequence >= position.sequence {
            return self.begin(Arrival::Restart, header);
        }
        self.behind_position(&position, header)
    }

    fn gap(&mut self, position: &Position, header: &Header) -> Gap {
        let samples = header.first_sample_index - position.sample_index;
        let frames = header.sequence - position.sequence;
        let drops = self.count_drops(position, header);
        // More drops than missing samples: a generator that gives dropped samples no index.
        let sent = frames.saturating_mul(header.block_length_samples.into());
        let generator_samples = if drops <= samples { drops } else { samples.saturating_sub(sent) };
        let gap = Gap { frames, samples, generator_samples };
        if gap.frames > 0 {
            if self.missing.len() == MISSING_RANGES_MAX {
                self.missing.pop_front();
            }
            self.missing.push_back(position.sequence..header.sequence);
        }
        self.counts.lost_frames = self.counts.lost_frames.saturating_add(gap.frames);
        self.counts.lost_samples = self.counts.lost_samples.saturating_add(samples - generator_samples);
        gap
    }

    /// Drops of the generator since the last frame.
    fn count_drops(&mut self, position: &Position, header: &Header) -> u64 {
        let drops = header.sg_drops_total.saturating_sub(position.sg_drops_total);
        self.counts.generator_samples = self.counts.generator_samples.saturating_add(drops);
        drops
    }

    /// A frame whose place has passed: late, a duplicate, or the beginning of another stream.
    fn behind_position(&mut self, position: &Position, header: &Header) -> Arrival {
        let repeats_the_end =
            position.ended && header.is_end_of_stream() && header.sequence + 1 == position.sequence;
        let is_another = self.begins_again(header);
        let far = position.sequence - header.sequence > LATE_FRAMES_MAX;
        let run = if header.sequence == self.behind.0.wrapping_add(1) { self.behind.1 + 1 } else { 1 };
        self.behind = (header.sequence, run);
        if !repeats_the_end && (is_another || far || run >= RESTART_RUN_FRAMES) {
            return self.begin(Arrival::Restart, header);
        }
        if self.take_missing(header.sequence) {
            self.counts.late_frames += 1;
            self.counts.lost_frames = self.counts.lost_frames.saturating_sub(1);
            let samples = u64::from(header.block_length_samples);
            self.counts.late_samples += samples;
            self.counts.lost_samples = self.counts.lost_samples.saturating_sub(samples);
            Arrival::Late
        } else {
            self.counts.duplicate_frames += u64::from(!repeats_the_end);
            Arrival::Duplicate
        }
    }

    fn begin(&mut self, arrival: Arrival, header: &Header) -> Arrival {
        self.counts.streams += 1;
        // The same total tells who joins late of drops that it was not there for.
        if header.sequence == 0 && header.sg_drops_total == header.first_sample_index {
            let drops = header.sg_drops_total;
            self.counts.generator_samples = self.counts.generator_samples.saturating_add(drops);
        }
        self.missing.clear();
        self.first = (header.sequence, header.producer_ts_ns);
        self.behind = (0, 0);
        arrival
    }

    /// Whether the frame was missing; from now on it is not.
    fn take_missing(&mut self, sequence: u64) -> bool {
        let Some(at) = self.missing.iter().position(|range| range.contains(&sequence)) else { return false };
        let range = self.missing[at].clone();
        let (before, after) = (range.start..sequence, sequence + 1..range.end);
        match (before.is_empty(), after.is_empty()) {
            (true, true) => drop(self.missing.remove(at)),
            (true, false) => self.missing[at] = after,
            (false, true) => self.missing[at] = before,
            (false, false) => {
                if self.missing.len() == MISSING_RANGES_MAX {
                    // Forget the oldest; where that is this range itself, only its later part is kept.
                    self.missing.pop_front();
                    match at.checked_sub(1) {
                        None => self.missing.push_front(after),
                        Some(at) => {
                            self.missing[at] = before;
                            self.missing.insert(at + 1, after);
                        }
                    }
                    return true;
                }
                self.missing[at] = before;
                self.missing.insert(at + 1, after);
            }
        }
        true
    }
}

impl Default for StreamTracker {
    fn default() -> Self {
        Self::new()
    }
}

/// Where the stream stands: behind the newest frame.
#[derive(Debug, Clone)]
struct Position {
    sequence: u64,
    sample_index: u64,
    sg_drops_total: u64,
    newest_ts_ns: u64,
    channel_count: u32,
    format: SampleFormat,
    ended: bool,
}

impl Position {
    /// Whether the frame's samples can go on with those before it.
    #[inline]
    fn is_alike(&self, header: &Header) -> bool {
        header.channel_count == self.channel_count && header.format == self.format
    }

    #[inline]
    fn behind(header: &Header) -> Self {
        Self {
            sequence: header.sequence.saturating_add(1),
            sample_index: header.next_sample_index(),
            sg_drops_total: header.sg_drops_total,
            newest_ts_ns: header.producer_ts_ns,
            channel_count: header.channel_count,
            format: header.format,
            ended: header.is_end_of_stream(),
        }
    }

    #[inline]
    fn expects(&self, header: &Header) -> bool {
        header.sequence == self.sequence
            && header.first_sample_index == self.sample_index
            && self.is_alike(header)
            && header.sg_drops_total == self.sg_drops_total
            && !self.ended
    }
}

/// More than a reordering network holds back.
const LATE_FRAMES_MAX: u64 = 65_536;
const LATE_NS_MAX: u64 = 10_000_000_000;
const MISSING_RANGES_MAX: usize = 256;
/// A sender without a usable clock that began again shows as a run of old frames; a network does not replay that many.
const RESTART_RUN_FRAMES: u32 = 64;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn frame(sequence: u64) -> Header {
        Header {
            sequence,
            producer_ts_ns: 1_000 + sequence,
            channel_count: 1,
            block_length_samples: 10,
            first_sample_index: sequence * 10,
            ..Header::default()
        }
    }

    #[test]
    fn what_the_generator_dropped_is_told_from_what_the_network_lost() {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(0));
        let later = |sequence, index, drops| Header {
            first_sample_index: index,
            sg_drops_total: drops,
            ..frame(sequence)
        };
        let gap = Gap { frames: 0, samples: 30, generator_samples: 30 };
        assert_eq!(tracker.arrive(&later(1, 40, 30)), Arrival::After(gap));
        let gap = Gap { frames: 1, samples: 15, generator_samples: 5 };
        assert_eq!(tracker.arrive(&later(3, 65, 35)), Arrival::After(gap));
        let counts = tracker.counts();
        assert_eq!((counts.lost_frames, counts.lost_samples, counts.generator_samples), (1, 10, 35));
    }

    #[test]
    fn drops_that_were_given_no_index_are_the_generators_too() {
        let mut tracker = StreamTracker::new();
        let counted = |sequence, drops| Header { sg_drops_total: drops, ..frame(sequence) };
        tracker.arrive(&counted(0, 5));
        assert_eq!(tracker.arrive(&counted(1, 7_005)), Arrival::InOrder);
        assert_eq!(tracker.arrive(&counted(2, 7_005)), Arrival::InOrder);
        // One of 10 samples is lost as well: the index jumps by it alone.
        let gap = Gap { frames: 1, samples: 10, generator_samples: 0 };
        assert_eq!(tracker.arrive(&counted(4, 8_005)), Arrival::After(gap));
        let counts = tracker.counts();
        assert_eq!((counts.lost_frames, counts.lost_samples, counts.generator_samples), (1, 10, 8_000));
    }

    #[test]
    fn what_the_generator_dropped_before_its_first_frame_is_counted_by_who_saw_that_frame() {
        let counted = |header: &Header| {
            let mut tracker = StreamTracker::new();
            assert_eq!(tracker.arrive(header), Arrival::First);
            (tracker.counts().generator_samples, tracker.counts().lost_samples)
        };
        let held_up = Header { first_sample_index: 70, sg_drops_total: 70, ..frame(0) };
        assert_eq!(counted(&held_up), (70, 0));
        assert_eq!(
            counted(&Header { block_length_samples: 0, ..held_up }),
            (70, 0),
            "it made nothing at all"
        );
        let late = Header { first_sample_index: 80, sg_drops_total: 70, ..frame(1) };
        assert_eq!(counted(&late), (0, 0), "who joins late was not there for them");
        // A stage that numbers its frames anew hands on what it joined late.
        assert_eq!(counted(&Header { sequence: 0, ..late }), (0, 0));
        let mut tracker = StreamTracker::new();
        tracker.arrive(&held_up);
        tracker.arrive(&late);
        let again = Header { first_sample_index: 30, sg_drops_total: 30, producer_ts_ns: 50_000, ..frame(0) };
        assert_eq!(tracker.arrive(&again), Arrival::Restart);
        assert_eq!(tracker.counts().generator_samples, 100, "of each stream from its own beginning");
    }

    #[test]
    fn loss_at_the_tail_is_counted_from_the_end_of_stream() {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(0));
        let end = frame(3).end_of_stream(2_000);
        assert_eq!(
            tracker.arrive(&end),
            Arrival::After(Gap { frames: 3, samples: 30, generator_samples: 0 })
        );
        assert!(tracker.is_ended());
        assert_eq!(tracker.arrive(&end), Arrival::Duplicate);
        assert_eq!(tracker.counts().duplicate_frames, 0, "repeats of the end are meant to be ignored");
        assert_eq!(tracker.counts().frames, 1);
    }

    #[test]
    fn a_sender_that_begins_again_is_a_new_stream_and_a_late_frame_is_not() {
        let mut tracker = StreamTracker::new();
        for sequence in [0, 1, 2, 5] {
            tracker.arrive(&frame(sequence));
        }
        assert_eq!(tracker.arrive(&frame(4)), Arrival::Late);
        let again = Header { producer_ts_ns: 50_000, ..frame(0) };
        assert_eq!(tracker.arrive(&again), Arrival::Restart);
        assert_eq!(tracker.arrive(&Header { producer_ts_ns: 50_001, ..frame(1) }), Arrival::InOrder);
        assert_eq!(tracker.counts().streams, 2);
    }

    #[test]
    fn a_sender_whose_host_was_started_again_begins_again_with_its_first_frame() {
        let stamped = |sequence, producer_ts_ns| Header { producer_ts_ns, ..frame(sequence) };
        let up_for = 3_600_000_000_000;
        // Trackers that saw the beginning, joined later, or joined after long.
        for (first, newest, again_ns) in [(0, 500, 5_000), (300, 500, up_for - 11_000_000_000), (300, 500, 0)]
        {
            let mut tracker = StreamTracker::new();
            (first..=newest).for_each(|sequence| {
                tracker.arrive(&stamped(sequence, up_for + sequence));
            });
            assert_eq!(tracker.arrive(&stamped(0, again_ns)), Arrival::Restart);
            assert_eq!(tracker.arrive(&stamped(1, again_ns + 1)), Arrival::InOrder);
            assert_eq!(tracker.counts().duplicate_frames, 0);
        }
        // Frames sent before the tracker joined belong to the same stream, as do duplicates.
        let mut tracker = StreamTracker::new();
        [300, 301, 303].into_iter().for_each(|sequence| {
            tracker.arrive(&stamped(sequence, up_for + sequence));
        });
        assert_eq!(tracker.arrive(&stamped(299, up_for + 299)), Arrival::Duplicate);
        assert_eq!(tracker.arrive(&stamped(300, up_for + 300)), Arrival::Duplicate);
        assert_eq!(tracker.arrive(&stamped(302, up_for + 302)), Arrival::Late);
    }

    #[test]
    fn a_sender_without_a_clock_that_begins_again_is_found_by_its_run() {
        let mut tracker = StreamTracker::new();
        let clockless = |sequence| Header { producer_ts_ns: 0, ..frame(sequence) };
        for sequence in 0..1000 {
            tracker.arrive(&clockless(sequence));
        }
        let first = (0..100)
            .map(|sequence| tracker.arrive(&clockless(sequence)))
            .position(|arrival| arrival == Arrival::Restart);
        assert_eq!(first, Some(63));
    }

    #[test]
    fn the_position_the_end_and_the_counts_are_told() {
        let mut tracker = StreamTracker::new();
        assert_eq!((tracker.next_sample_index(), tracker.is_ended()), (None, false));
        tracker.arrive(&frame(4));
        tracker.arrive(&frame(5));
        assert_eq!((tracker.next_sample_index(), tracker.is_ended()), (Some(60), false));
        tracker.arrive(&frame(5).end_of_stream(2_000));
        assert_eq!((tracker.next_sample_index(), tracker.is_ended()), (Some(60), true));
        assert_eq!((tracker.counts().frames, tracker.counts().samples), (2, 20));
        tracker.forget();
        assert_eq!((tracker.next_sample_index(), tracker.is_ended()), (None, false));
        assert_eq!(tracker.arrive(&frame(90)), Arrival::First, "a forgotten range is not a gap");
        assert_eq!((tracker.counts().frames, tracker.counts().lost_frames), (3, 0));
    }

    #[test]
    fn an_index_that_runs_back_is_another_stream_and_one_that_stands_still_is_a_gap_of_frames() {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(5));
        let empty_gap = Header { first_sample_index: 60, ..frame(8) };
        let gap = Gap { frames: 2, samples: 0, generator_samples: 0 };
        assert_eq!(tracker.arrive(&empty_gap), Arrival::After(gap));
        let back = Header { first_sample_index: 0, ..frame(9) };
        assert_eq!(tracker.arrive(&back), Arrival::Restart);
        assert_eq!(tracker.counts().lost_samples, 0);
    }

    #[test]
    fn a_frame_of_before_the_end_that_comes_again_is_a_duplicate() {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(0));
        tracker.arrive(&frame(1));
        tracker.arrive(&frame(1).end_of_stream(1_001));
        assert_eq!(tracker.arrive(&frame(1)), Arrival::Duplicate);
        assert_eq!(tracker.counts().duplicate_frames, 1);
    }

    #[test]
    fn a_frame_farther_back_than_any_network_holds_one_is_another_stream() {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(70_000));
        assert_eq!(tracker.arrive(&frame(70_001 - LATE_FRAMES_MAX)), Arrival::Duplicate);
        assert_eq!(tracker.arrive(&frame(70_000 - LATE_FRAMES_MAX)), Arrival::Restart);
    }

    /// Loses `losses` runs of `frames` frames each behind `from`; the last frame that arrived.
    fn lose(tracker: &mut StreamTracker, from: u64, losses: u64, frames: u64) -> u64 {
        (1..=losses).fold(from, |last, _| {
            tracker.arrive(&frame(last + frames + 1));
            last + frames + 1
        })
    }

    #[test]
    fn a_late_frame_within_a_run_of_lost_ones_leaves_those_around_it_missing() {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(0));
        tracker.arrive(&frame(10));
        for sequence in [5, 3, 7, 1, 9, 4, 6, 2, 8] {
            assert_eq!(tracker.arrive(&frame(sequence)), Arrival::Late, "{sequence}");
            assert_eq!(tracker.arrive(&frame(sequence)), Arrival::Duplicate, "{sequence}");
        }
    }

    #[test]
    fn the_oldest_runs_are_forgotten_first() {
        // One run is split in the middle: two ranges, of which the earlier one is the oldest.
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(0));
        tracker.arrive(&frame(10));
        assert_eq!(tracker.arrive(&frame(5)), Arrival::Late);
        let last = lose(&mut tracker, 10, MISSING_RANGES_MAX as u64 - 2, 1);
        assert_eq!(tracker.arrive(&frame(4)), Arrival::Late, "all ranges are remembered");
        lose(&mut tracker, last, 1, 1);
        assert_eq!(tracker.arrive(&frame(1)), Arrival::Duplicate, "the oldest is forgotten");
        assert_eq!(tracker.arrive(&frame(6)), Arrival::Late, "the next is not");
    }

    #[test]
    fn splitting_a_run_while_as_many_are_remembered_as_can_be_forgets_the_oldest() {
        let full = || {
            let mut tracker = StreamTracker::new();
            tracker.arrive(&frame(0));
            let last = lose(&mut tracker, 0, MISSING_RANGES_MAX as u64, 3);
            (tracker, last)
        };
        let (mut tracker, last) = full();
        assert_eq!(tracker.arrive(&frame(last - 2)), Arrival::Late, "the last run, in its middle");
        assert_eq!(tracker.arrive(&frame(2)), Arrival::Duplicate, "the first run is forgotten");
        // All that came before the two halves is pushed out, and then the earlier half.
        lose(&mut tracker, last, MISSING_RANGES_MAX as u64 - 1, 1);
        assert_eq!(tracker.arrive(&frame(last - 3)), Arrival::Duplicate);
        assert_eq!(tracker.arrive(&frame(last - 1)), Arrival::Late);

        let (mut tracker, _) = full();
        assert_eq!(tracker.arrive(&frame(2)), Arrival::Late, "the first run, in its middle");
        assert_eq!(tracker.arrive(&frame(1)), Arrival::Duplicate, "only its later part is kept");
        assert_eq!(tracker.arrive(&frame(3)), Arrival::Late);
    }

    #[test]
    fn what_the_generator_dropped_takes_no_place_among_the_missing_frames() {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(0));
        tracker.arrive(&frame(2));
        for sequence in 3..1_000 {
            let dropped = (sequence - 2) * 10;
            tracker.arrive(&Header {
                first_sample_index: sequence * 10 + dropped,
                sg_drops_total: dropped,
                ..frame(sequence)
            });
        }
        assert_eq!(tracker.counts().lost_frames, 1);
        assert_eq!(tracker.arrive(&frame(1)), Arrival::Late);
        assert_eq!((tracker.counts().lost_frames, tracker.counts().late_frames), (0, 1));
    }

    #[test]
    fn other_channels_are_another_stream() {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(0));
        assert_eq!(tracker.arrive(&Header { channel_count: 2, ..frame(1) }), Arrival::Restart);
    }

    #[test]
    fn extreme_numbers_do_not_overflow() {
        let mut tracker = StreamTracker::new();
        for header in
            [frame(0), Header { sequence: u64::MAX, first_sample_index: u64::MAX, ..frame(0) }, frame(1)]
        {
            tracker.arrive(&header);
        }
        tracker.arrive(&Header { sequence: u64::MAX, first_sample_index: u64::MAX, ..frame(0) });
    }

    proptest! {
        /// Any loss, duplication and reordering: the counts equal those of a set.
        #[test]
        fn counts_equal_a_naive_model(deliveries in prop::collection::vec((0u64..40, 0i64..3), 1..200)) {
            let mut tracker = StreamTracker::new();
            let (mut seen, mut newest) = (HashSet::new(), None::<u64>);
            let (mut frames, mut late, mut duplicates, mut first) = (0u64, 0u64, 0u64, 0);
            for (at, (advance, back)) in deliveries.into_iter().enumerate() {
                let base = newest.map_or(advance, |newest| (newest + advance % 4).saturating_sub(back as u64));
                match newest {
                    None => { first = base; newest = Some(base); frames += 1; }
                    Some(top) if base > top => { newest = Some(base); frames += 1; }
                    Some(_) if !seen.contains(&base) && base >= first => late += 1,
                    Some(_) => duplicates += 1,
                }
                let fresh = seen.insert(base);
                prop_assert!(fresh || at > 0);
                tracker.arrive(&frame(base));
            }
            let counts = tracker.counts();
            prop_assert_eq!((counts.frames, counts.late_frames, counts.duplicate_frames), (frames, late, duplicates));
            let span = newest.map_or(0, |newest| newest - first + 1);
            prop_assert_eq!(counts.lost_frames, span - frames - late, "late is not lost");
            prop_assert_eq!((counts.lost_samples, counts.late_samples), (counts.lost_frames * 10, late * 10));
        }
    }
}
