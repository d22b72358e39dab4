//! Counts of received and missing frames and samples, and the place of their loss.

mod missing;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::format::SampleFormat;
use crate::header::Header;
use crate::tracker::missing::Missing;

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
    missing: Missing,
    /// Sequence and stamp of the first frame of the stream that was seen.
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
            missing: Missing::new(),
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

    /// A tracker of the same stream on its next path: it counts losses from here on.
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
            self.missing.add(position.sequence..header.sequence);
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
        if self.missing.take(header.sequence) {
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
        // The same total tells a late reader about drops before it joined.
        if header.sequence == 0 && header.sg_drops_total == header.first_sample_index {
            let drops = header.sg_drops_total;
            self.counts.generator_samples = self.counts.generator_samples.saturating_add(drops);
        }
        self.missing.clear();
        self.first = (header.sequence, header.producer_ts_ns);
        self.behind = (0, 0);
        arrival
    }
}

impl Default for StreamTracker {
    fn default() -> Self {
        Self::new()
    }
}

/// The stream's position after the newest frame.
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
    /// Whether the frame's samples can continue the previous ones.
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
/// A sender without a usable clock that began again shows as a run of old frames; a network does not replay that many.
const RESTART_RUN_FRAMES: u32 = 64;
