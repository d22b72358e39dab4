//! What a scope asks of a recording: how it is laid out, its samples, and what is known of them beforehand.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{Description, SampleFormat, StreamAnnotation};

/// A recording of any size, as a [`RecordingScope`](crate::RecordingScope) looks at it. Lanes are the channels; of complex ones I and Q
/// by turns. Positions count samples per channel in the file, in which gaps take no room.
pub trait Recording: Debug + Send {
    /// What it is.
    fn outline(&self) -> &RecordingOutline;

    /// Looks whether it grew or was cut; whether it did. Called twice a second.
    fn refresh(&mut self) -> bool;

    /// Reads samples of all channels into `out`: the bytes of each channel as a frame has them, one channel behind the other.
    ///
    /// # Errors
    /// What cannot be read, or is not there (any more).
    fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> io::Result<()>;

    /// Samples per channel, from the first on, whose extremes and sums are known.
    fn known_samples(&self) -> u64;

    /// log2 of the samples of the longest nodes there are that have at most `1 << log2`.
    fn level(&self, log2: u32) -> Option<u32>;

    /// Appends the smallest and the largest samples of nodes of a level to `out`: node `n` is of the samples
    /// `n << log2 .. (n + 1) << log2`, as far as they are known. Without any but not-a-number, the smallest is above the largest.
    ///
    /// # Errors
    /// What cannot be read.
    fn extremes(
        &mut self,
        lane: usize,
        log2: u32,
        nodes: Range<u64>,
        out: &mut Vec<(f32, f32)>,
    ) -> io::Result<()>;

    /// Sums of the samples of a lane, widened to what they are known of.
    fn sums(&self, lane: usize, samples: Range<u64>) -> RecordingSums;

    /// Samples per channel, from the first on, whose power by frequency is known; `None` where it is not, and will not be.
    fn known_power_samples(&mut self) -> Option<u64> {
        None
    }

    /// log2 of the samples of the longest rows of power that have at most `1 << log2`.
    fn power_level(&self, log2: u32) -> Option<u32> {
        let _ = log2;
        None
    }

    /// The power of the samples `number << log2 .. (number + 1) << log2` of a channel, as far as they are known; `log2` as
    /// [`power_level`](Self::power_level) says.
    ///
    /// # Errors
    /// What cannot be read.
    fn power(
        &mut self,
        channel: usize,
        log2: u32,
        number: u64,
        power: &mut RecordingPower,
    ) -> io::Result<()> {
        let _ = (channel, log2, number, power);
        Err(io::ErrorKind::NotFound.into())
    }

    /// Bytes of memory that what is known of it takes.
    fn memory_bytes(&self) -> usize;

    /// Of a recording that is still being copied, which part of the samples at some positions has come, 0 to 1; `None` where it is all
    /// there.
    fn arrived(&self, positions: Range<u64>) -> Option<f32> {
        let _ = positions;
        None
    }

    /// The first stretch of some positions whose samples can be read: all of them, but of a recording that is still being copied.
    fn readable(&self, positions: Range<u64>) -> Range<u64> {
        positions
    }

    /// Hears what a picture shows of a recording that is still being copied: that is to come next.
    fn want(&mut self, wanted: &WantedSamples) {
        let _ = wanted;
    }

    /// As [`level`](Self::level) for the nodes of some positions, of which longer ones may be all that has come; and whether that is not
    /// so, or they are short enough for a picture that is made once.
    fn level_of(&mut self, log2: u32, positions: Range<u64>) -> Option<(u32, bool)> {
        let _ = positions;
        Some((self.level(log2)?, true))
    }
}

/// What a picture needs of a recording that is still being copied. Positions as [`Recording`] counts them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WantedSamples {
    /// What it shows.
    pub shown: Range<u64>,
    /// Of that, what it needs singly.
    pub singly: Range<u64>,
    /// log2 of the samples of the nodes that it draws the rest from.
    pub node_log2: u32,
}

/// What a recording is.
#[derive(Debug, Clone, Default)]
pub struct RecordingOutline {
    /// What its samples are.
    pub format: SampleFormat,
    /// Channels, 1 to 255.
    pub channels: usize,
    /// Samples per second and channel; 0 = unknown.
    pub rate_hz: f64,
    /// Stretches without a gap, in the order of the file and of the stream, which cover the file.
    pub stretches: Vec<Stretch>,
    /// What it says of itself, each from its own first sample on.
    pub descriptions: Vec<Arc<Description>>,
    /// What it labels.
    pub annotations: Vec<StreamAnnotation>,
}

/// Samples that follow each other without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins in the file.
    pub position: u64,
    /// How long it is; never 0.
    pub length_samples: u64,
    /// The index of its first sample in the stream that was recorded.
    pub first_sample_index: u64,
}

/// Power of some samples by frequency, in dBFS of their format: from 0 Hz to half the rate, of complex samples from minus half the rate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordingPower {
    /// The highest of any transform.
    pub highest: Vec<f32>,
    /// The mean of all.
    pub mean: Vec<f32>,
}

/// Sums over the finite ones of some samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RecordingSums {
    /// Sum of the samples.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_sq: f64,
    /// Samples that are infinite or not a number.
    pub not_finite: u64,
    /// Samples, finite or not.
    pub count: u64,
}

impl RecordingOutline {
    /// Full scale, where its samples have fewer bits than their format.
    pub(crate) fn bits_full_scale(&self) -> Option<f64> {
        self.descriptions.iter().find_map(|description| description.full_scale(self.format))
    }

    /// Samples per channel.
    pub(crate) fn len_samples(&self) -> u64 {
        self.stretches.last().map_or(0, |last| last.position + last.length_samples)
    }

    /// From the first index to behind the last.
    pub(crate) fn indices(&self) -> Range<u64> {
        match (self.stretches.first(), self.stretches.last()) {
            (Some(first), Some(last)) => first.first_sample_index..last.end_index(),
            _ => 0..0,
        }
    }

    pub(crate) fn missing_samples(&self) -> u64 {
        let Range { start, end } = self.indices();
        (end - start).saturating_sub(self.len_samples())
    }

    /// Where the first sample from an index on stands, and whether it is the first behind a gap or the end of the file.
    pub(crate) fn position_of(&self, index: u64) -> (u64, bool) {
        let next = self.stretches.partition_point(|stretch| stretch.first_sample_index <= index);
        let Some(stretch) = next.checked_sub(1).map(|at| self.stretches[at]) else { return (0, true) };
        let within = index - stretch.first_sample_index;
        match within < stretch.length_samples {
            true => (stretch.position + within, within == 0),
            false => (stretch.position + stretch.length_samples, true),
        }
    }

    /// The stretches that reach into some indices.
    pub(crate) fn stretches_in(&self, indices: Range<u64>) -> &[Stretch] {
        let first = self.stretches.partition_point(|stretch| stretch.end_index() <= indices.start);
        let last = self.stretches.partition_point(|stretch| stretch.first_sample_index < indices.end);
        &self.stretches[first..last.max(first)]
    }
}

impl Stretch {
    pub(crate) fn end_index(&self) -> u64 {
        self.first_sample_index + self.length_samples
    }
}
