//! Waterfall rows from the spectral summary of a recording: they include every transform, and need no new one.

use std::ops::Range;

use crate::data::recording::{Recording, RecordingPower};
use crate::data::spectrum::{RowLevels, SUMMARY_SIZE};
use crate::data::viewport::Detector;

/// Reads a summary for rows of one length.
#[derive(Debug, Default)]
pub(super) struct KnownPower {
    /// log2 of the samples of its rows; `None` if ours are too short for it.
    log2: Option<u32>,
    known_samples: u64,
    /// The last row read and its power: neighbours share a row.
    power: RecordingPower,
    last: Option<(usize, u32, u64)>,
}

impl KnownPower {
    /// Prepares for rows of `hop` samples. Returns whether the summary covers them, or is being made.
    pub(super) fn begin(&mut self, recording: &mut dyn Recording, hop: u64) -> bool {
        // Either end of a row overlaps its neighbour by at most a quarter.
        self.log2 = (hop / PARTS_MIN).checked_ilog2().and_then(|log2| recording.power_level(log2));
        // Rows grow while the recording does.
        self.last = None;
        let known = self.log2.and_then(|_| recording.known_power_samples());
        self.known_samples = known.unwrap_or(0);
        known.is_some()
    }

    /// The levels per bin of some indices, raised by `offset_db`; `None` if the summary lacks some of them.
    pub(super) fn bins(
        &mut self,
        recording: &mut dyn Recording,
        channel: usize,
        indices: &Range<u64>,
        detector: Detector,
        offset_db: f32,
    ) -> Option<Vec<f32>> {
        let log2 = self.log2?;
        let outline = recording.outline();
        let positions = outline.position_of(indices.start).0..outline.position_of(indices.end).0;
        let all = outline.len_samples();
        if indices.is_empty() || positions.end.next_multiple_of(1 << log2).min(all) > self.known_samples {
            return None;
        }
        if positions.is_empty() {
            // Within a gap.
            return Some(vec![f32::NAN]);
        }
        let mut levels: Option<RowLevels> = None;
        for number in positions.start >> log2..positions.end.div_ceil(1 << log2) {
            let row = (channel, log2, number);
            if self.last != Some(row) {
                self.last = None;
                recording.power(channel, log2, number, &mut self.power).ok()?;
                self.last = Some(row);
            }
            let power = match detector {
                Detector::Highest => &self.power.highest,
                Detector::Mean => &self.power.mean,
            };
            // Between two files.
            if power.is_empty() {
                continue;
            }
            let levels = levels.get_or_insert_with(|| RowLevels::new(detector, power.len()));
            levels.add(power, offset_db);
        }
        let Some(levels) = levels else { return Some(vec![f32::NEG_INFINITY]) };
        let bins = (0..levels.line_count()).map(|bin| bin..bin + 1);
        Some(levels.dbfs(&RowLevels::new(detector, 0), bins, f32::NEG_INFINITY).collect())
    }

    /// Number of transforms that a summary has for some indices.
    pub(super) fn transforms(indices: &Range<u64>) -> u64 {
        (indices.end - indices.start).div_ceil(HOP_SAMPLES)
    }
}

/// Minimum summary rows per displayed row.
const PARTS_MIN: u64 = 4;
/// Rows of at least this length come from the summary for good if its bins are narrow enough for the picture. Others are
/// transformed completely within seconds, with the requested size and window.
pub(super) const FINAL_SAMPLES: u64 = 1 << 17;
/// Longest window for that.
pub(super) const REPLACED_SAMPLES: u64 = 1 << 28;
/// Bins that are narrow enough for the whole band.
pub(super) const WHOLE_BINS: usize = 512;
/// Samples from one transform of a summary to the next.
const HOP_SAMPLES: u64 = SUMMARY_SIZE as u64 / 2;

#[cfg(test)]
mod tests;
