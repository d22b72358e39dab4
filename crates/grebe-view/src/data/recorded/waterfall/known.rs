//! Rows of a waterfall from the spectral summary of a recording: every transform of their stretch counts, without any being made.

use std::ops::Range;

use crate::data::recording::{Recording, RecordingPower};
use crate::data::spectrum::gather;

/// What is read of a summary for rows of one length.
#[derive(Debug, Default)]
pub(super) struct KnownPower {
    /// log2 of the samples of its rows; `None` where ours are too short for it.
    log2: Option<u32>,
    known_samples: u64,
    /// The row that was read last, and what it is of: neighbours share one.
    power: RecordingPower,
    last: Option<(usize, u32, u64)>,
}

impl KnownPower {
    /// For rows of so many samples; whether the summary has all of them, or is being made.
    pub(super) fn begin(&mut self, recording: &mut dyn Recording, hop: u64) -> bool {
        // Either end of a row reaches a quarter of it into its neighbour at most.
        self.log2 = (hop / PARTS_MIN).checked_ilog2().and_then(|log2| recording.power_level(log2));
        // Rows grow while the recording does.
        self.last = None;
        let known = self.log2.and_then(|_| recording.known_power_samples());
        self.known_samples = known.unwrap_or(0);
        known.is_some()
    }

    /// The highest levels of some indices in so many cells, moved by so many decibels; `None` where not all of them are known.
    pub(super) fn cells(
        &mut self,
        recording: &mut dyn Recording,
        channel: usize,
        indices: &Range<u64>,
        (width, offset_db): (usize, f32),
    ) -> Option<Vec<f32>> {
        let log2 = self.log2?;
        let outline = recording.outline();
        let positions = outline.position_of(indices.start).0..outline.position_of(indices.end).0;
        let all = outline.len_samples();
        if indices.is_empty() || positions.end.next_multiple_of(1 << log2).min(all) > self.known_samples {
            return None;
        }
        // A row that lies in a gap.
        let nothing = if positions.is_empty() { f32::NAN } else { f32::NEG_INFINITY };
        let mut cells = vec![nothing; width];
        for number in positions.start >> log2..positions.end.div_ceil(1 << log2) {
            if positions.is_empty() {
                break;
            }
            let row = (channel, log2, number);
            if self.last != Some(row) {
                self.last = None;
                recording.power(channel, log2, number, &mut self.power).ok()?;
                self.last = Some(row);
            }
            gather(&self.power.highest, &mut cells, |cell, level| cell.max(level + offset_db));
        }
        Some(cells)
    }

    /// Transforms that a summary has of some indices.
    pub(super) fn transforms(indices: &Range<u64>) -> u64 {
        (indices.end - indices.start).div_ceil(HOP_SAMPLES)
    }
}

/// Rows of the summary in one of ours at least.
const PARTS_MIN: u64 = 4;
/// Rows that are longer are the summary's for good. All samples of a picture of shorter ones are transformed within seconds, in the size
/// and with the window that are asked for.
pub(super) const FINAL_SAMPLES: u64 = 1 << 17;
/// Samples from one transform of a summary to the next.
const HOP_SAMPLES: u64 = 512;

#[cfg(test)]
mod tests;
