//! Rows of a spectral summary: how many bins they have, where they stand in the file, and their bytes.

use grebe_frame::{Component, SampleFormat};
use grebe_scope::decibels;

use crate::summary::format::{HEAD_BYTES, ROW_LOG2};
use crate::summary::nodes::Lanes;

/// Power of a stretch of samples by frequency, in dBFS; minus infinity where there is none. Bins go from 0 Hz to half the rate, of complex
/// samples from minus half the rate on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpectralRow {
    /// The highest of any transform and line.
    pub highest: Vec<f32>,
    /// The mean of all transforms and lines.
    pub mean: Vec<f32>,
}

/// Position and size of rows, by format and channels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    channels: usize,
    /// Bins of the longest rows.
    pub(super) bins_max: usize,
    /// Bins of the shortest.
    bins_min: usize,
}

impl Layout {
    pub(super) fn new(lanes: Lanes) -> Self {
        let bins_max = if lanes.of_channel == 2 { TRANSFORM_SAMPLES } else { TRANSFORM_SAMPLES / 2 };
        // A part of the data that is the same for all formats.
        let bins_min = (BINS_PER_BYTE * lanes.format.bytes()).min(bins_max);
        Self { channels: lanes.count / lanes.of_channel, bins_max, bins_min }
    }

    /// Bins of the rows of a level, counted from 0.
    pub(super) fn bins(self, level: usize) -> usize {
        (self.bins_min << level).min(self.bins_max)
    }

    /// Bytes of such a row of one channel.
    pub(super) fn row_bytes(self, level: usize) -> usize {
        BASE_BYTES + 2 * self.bins(level) + CHECKSUM_BYTES
    }

    /// Levels of a file with `rows` rows of the first level. The last level has one row.
    pub(super) fn levels(rows: u64) -> usize {
        (1..LEVELS).find(|&level| rows_of(level - 1, rows) <= 1).unwrap_or(LEVELS)
    }

    /// Offset of a row in a file with `rows` rows of the first level. The last of them may still be missing.
    pub(super) fn row_at(self, level: usize, number: u64, channel: usize, rows: u64) -> u64 {
        // It follows the last row that it combines, and the rows of levels between that end there.
        let last = ((number + 1) << (2 * level)).min(rows) - 1;
        let before = |other: usize| match other.cmp(&level) {
            std::cmp::Ordering::Less => rows_of(other, last + 1),
            std::cmp::Ordering::Equal => number,
            std::cmp::Ordering::Greater => last >> (2 * other),
        };
        let bytes = (0..LEVELS).map(|other| before(other) * self.row_bytes(other) as u64);
        let own = (channel * self.row_bytes(level)) as u64;
        HEAD_BYTES as u64 + bytes.sum::<u64>() * self.channels as u64 + own
    }

    /// Bytes of a file with `rows` rows of the first level.
    pub(super) fn file_bytes(self, rows: u64) -> u64 {
        let of = |level: usize| rows_of(level, rows) * self.row_bytes(level) as u64;
        HEAD_BYTES as u64 + (0..Self::levels(rows)).map(of).sum::<u64>() * self.channels as u64
    }
}

/// Rows of a level, of a file with `rows` rows of the first level.
pub(super) fn rows_of(level: usize, rows: u64) -> u64 {
    rows.div_ceil(1 << (2 * level))
}

/// Full scale of the samples of a format, and the value of silence, as [`Lanes::values`] has them.
pub(super) fn full_scale(format: SampleFormat) -> (f64, f32) {
    let zero = if format == SampleFormat::U8 { 128.0 } else { 0.0 };
    let full_scale = match format.component() {
        Component::I8 => 128.0,
        Component::U8 => 127.5,
        Component::I16 => 32_768.0,
        Component::I32 => 2_147_483_648.0,
        Component::F32 | Component::F64 => 1.0,
    };
    (full_scale, zero)
}

/// Writes a row: the level of the highest byte, then a byte a bin of the highest and of the mean power.
pub(super) fn encode(highest: &[f32], mean: &[f32], out: &mut Vec<u8>) {
    let from = out.len();
    let most = highest.iter().chain(mean).copied().fold(0.0, f32::max);
    let base = if most > 0.0 { (decibels(most.min(f32::MAX)) * STEPS_PER_DB).ceil() } else { NOTHING.into() };
    out.extend_from_slice(&(base as i16).to_le_bytes());
    let steps = |&power: &f32| {
        let steps = 255.0 - base + (decibels(power.min(f32::MAX)) * STEPS_PER_DB).round();
        // 0 stands for no power, so the lowest power is 1.
        if power > 0.0 { steps.clamp(1.0, 255.0) as u8 } else { 0 }
    };
    out.extend(highest.iter().chain(mean).map(steps));
    let checksum = crc32c::crc32c(&out[from..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Reads a row; `false` if its bytes are not those that were written.
pub(super) fn decode(bytes: &[u8], row: &mut SpectralRow) -> bool {
    let Some((content, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else { return false };
    let Some((base, cells)) = content.split_first_chunk::<BASE_BYTES>() else { return false };
    if crc32c::crc32c(content).to_le_bytes() != *checksum {
        return false;
    }
    let base = f32::from(i16::from_le_bytes(*base)) - 255.0;
    let level = |&steps: &u8| match steps {
        0 => f32::NEG_INFINITY,
        steps => (base + f32::from(steps)) / STEPS_PER_DB,
    };
    let (highest, mean) = cells.split_at(cells.len() / 2);
    row.highest.clear();
    row.highest.extend(highest.iter().map(level));
    row.mean.clear();
    row.mean.extend(mean.iter().map(level));
    true
}

/// Samples of a transform.
pub(super) const TRANSFORM_SAMPLES: usize = 1024;
/// Samples from one to the next.
pub(super) const HOP_SAMPLES: usize = TRANSFORM_SAMPLES / 2;
/// Levels that a file has at most; each has rows four times as long as those of the one before.
pub(super) const LEVELS: usize = 10;
/// Bins of the shortest rows for each byte of a sample: two bytes a bin, and twice as much for all levels, are 1/128 of the data.
const BINS_PER_BYTE: usize = 1 << (ROW_LOG2 - 9);
/// Half-decibel steps.
const STEPS_PER_DB: f32 = 2.0;
/// The base of a row without power.
const NOTHING: i16 = i16::MIN;
const BASE_BYTES: usize = 2;
const CHECKSUM_BYTES: usize = 4;
