//! The scope's view of a recording: its layout, its samples, and its summaries.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{Description, SampleFormat, StreamAnnotation};

/// A recording of any size, for a [`RecordingScope`](crate::RecordingScope). Its lanes are the channels, or
/// alternately I and Q of complex ones. Positions count samples per channel in the file, where gaps take no room. Between
/// the files of a recording in several files, there may be positions without samples.
pub trait Recording: Debug + Send {
    /// Format, rate and layout.
    fn outline(&self) -> &RecordingOutline;

    /// Checks whether the recording grew or was cut; returns whether it did. Called twice a second.
    fn refresh(&mut self) -> bool;

    /// Reads samples of all channels into `out`: the bytes of each channel as in a frame, one channel after the other.
    ///
    /// # Errors
    /// If the samples cannot be read, or no longer exist.
    fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> io::Result<()>;

    /// Samples per channel, from the first on, with extremes and sums in the summary.
    fn known_samples(&self) -> u64;

    /// log2 of the samples of the longest available nodes with at most `1 << log2` samples.
    fn level(&self, log2: u32) -> Option<u32>;

    /// Appends the smallest and the largest samples of nodes of a level to `out`: node `n` covers the samples
    /// `n << log2 .. (n + 1) << log2`, as far as the summary goes. If all are NaN, the smallest is above the largest.
    ///
    /// # Errors
    /// If the summary cannot be read.
    fn extremes(
        &mut self,
        lane: usize,
        log2: u32,
        nodes: Range<u64>,
        out: &mut Vec<(f32, f32)>,
    ) -> io::Result<()>;

    /// Sums of a lane's samples, for a range widened to whole nodes.
    fn sums(&self, lane: usize, samples: Range<u64>) -> RecordingSums;

    /// Samples per channel, from the first on, with a spectral summary; `None` if there is none and none is being made.
    fn known_power_samples(&mut self) -> Option<u64> {
        None
    }

    /// log2 of the samples of the longest available power rows with at most `1 << log2` samples.
    fn power_level(&self, log2: u32) -> Option<u32> {
        let _ = log2;
        None
    }

    /// The power of the samples `number << log2 .. (number + 1) << log2` of a channel, as far as the summary goes;
    /// `log2` is from [`power_level`](Self::power_level).
    ///
    /// # Errors
    /// If the summary cannot be read.
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

    /// Memory of its summaries, in bytes.
    fn memory_bytes(&self) -> usize;

    /// While the recording is being copied: the part of the samples at some positions that has arrived, 0 to 1.
    /// `None` if it is complete.
    fn arrived(&self, positions: Range<u64>) -> Option<f32> {
        let _ = positions;
        None
    }

    /// The first readable run of some positions: all of them, except while the recording is being copied.
    fn readable(&self, positions: Range<u64>) -> Range<u64> {
        positions
    }

    /// While the recording is being copied: takes the samples that a picture needs next.
    fn want(&mut self, wanted: &WantedSamples) {
        let _ = wanted;
    }

    /// As [`level`](Self::level), for the nodes of some positions, where only longer nodes may have arrived. Also
    /// returns whether the nodes are final, or short enough for a single picture.
    fn level_of(&mut self, log2: u32, positions: Range<u64>) -> Option<(u32, bool)> {
        let _ = positions;
        Some((self.level(log2)?, true))
    }
}

/// Samples that a picture needs of a recording that is still being copied. Positions count as in [`Recording`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WantedSamples {
    /// The visible range.
    pub shown: Range<u64>,
    /// The part of it that the picture needs as single samples.
    pub singly: Range<u64>,
    /// log2 of the samples of the nodes for the rest.
    pub node_log2: u32,
}

/// Format, rate and layout of a recording.
#[derive(Debug, Clone, Default)]
pub struct RecordingOutline {
    /// Sample format.
    pub format: SampleFormat,
    /// Channels, 1 to 255.
    pub channels: usize,
    /// Samples per second and channel; 0 = unknown.
    pub rate_hz: f64,
    /// Runs without a gap that cover the file, in the order of the file and of the stream.
    pub stretches: Vec<Stretch>,
    /// Descriptions, each valid from its first sample on.
    pub descriptions: Vec<Arc<Description>>,
    /// Annotations.
    pub annotations: Vec<StreamAnnotation>,
}

/// Consecutive samples without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Its start in the file.
    pub position: u64,
    /// Its length; never 0.
    pub length_samples: u64,
    /// Index of its first sample in the recorded stream.
    pub first_sample_index: u64,
}

/// Power of some samples by frequency, in dBFS of their format: from 0 Hz to half the rate; of complex samples from
/// minus half the rate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordingPower {
    /// The highest of all transforms.
    pub highest: Vec<f32>,
    /// The mean of all transforms.
    pub mean: Vec<f32>,
}

/// Sums over the finite values of some samples.
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
    /// Full scale, if the samples have fewer bits than their format.
    pub(crate) fn bits_full_scale(&self) -> Option<f64> {
        self.descriptions.iter().find_map(|description| description.full_scale(self.format))
    }

    /// Samples per channel.
    pub(crate) fn samples(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.length_samples).sum()
    }

    /// The position after the last sample.
    pub(crate) fn len_samples(&self) -> u64 {
        self.stretches.last().map_or(0, |last| last.position + last.length_samples)
    }

    /// From the first index to the last, end exclusive.
    pub(crate) fn indices(&self) -> Range<u64> {
        match (self.stretches.first(), self.stretches.last()) {
            (Some(first), Some(last)) => first.first_sample_index..last.end_index(),
            _ => 0..0,
        }
    }

    pub(crate) fn missing_samples(&self) -> u64 {
        let Range { start, end } = self.indices();
        (end - start).saturating_sub(self.samples())
    }

    /// File position of the first sample from an index on, and whether a gap or the end of the file comes before it.
    pub(crate) fn position_of(&self, index: u64) -> (u64, bool) {
        let next = self.stretches.partition_point(|stretch| stretch.first_sample_index <= index);
        let Some(stretch) = next.checked_sub(1).map(|at| self.stretches[at]) else { return (0, true) };
        let within = index - stretch.first_sample_index;
        match within < stretch.length_samples {
            true => (stretch.position + within, within == 0),
            false => (stretch.position + stretch.length_samples, true),
        }
    }

    /// The run without a gap that has a position of the file, as positions.
    pub(crate) fn run_at(&self, position: u64) -> (u64, u64) {
        let next = self.stretches.partition_point(|stretch| stretch.position <= position);
        let end = self.stretches.get(next).map_or(self.len_samples(), |stretch| stretch.position);
        (next.checked_sub(1).map_or(0, |at| self.stretches[at].position), end.max(position + 1))
    }

    /// The runs that overlap some indices.
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
