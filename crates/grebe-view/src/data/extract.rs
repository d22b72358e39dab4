//! Copies samples out of the history: to be computed with, or saved to files.

use std::ops::Range;

use grebe_scope::Pyramid;

/// Samples of all channels, as far as the history still holds each of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extract {
    /// Samples per second and channel; 0 = unknown.
    pub rate_hz: f64,
    /// The stretch that was asked for, as absolute sample indices.
    pub range: Range<u64>,
    /// Stretches without a gap, oldest first.
    pub runs: Vec<ExtractRun>,
    /// Absolute sample indices of triggers within it.
    pub triggers: Vec<f64>,
}

/// Samples that follow each other without a gap.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExtractRun {
    /// Absolute index of the first sample.
    pub first_sample_index: u64,
    /// One vector per channel, all of one length.
    pub channels: Vec<Vec<i16>>,
}

impl Extract {
    pub(crate) fn len_samples(&self) -> u64 {
        self.runs.iter().map(|run| run.channels.first().map_or(0, Vec::len) as u64).sum()
    }

    /// Copies at most the newest 2^24 samples per channel of `range`.
    pub(crate) fn of(pyramid: &Pyramid, rate_hz: f64, range: Range<u64>, triggers: Vec<f64>) -> Extract {
        let range = range.start.max(range.end.saturating_sub(SAMPLES_MAX))..range.end;
        let (mut copied, mut runs) = (Runs::default(), Vec::new());
        for channel in 0..pyramid.channels() {
            copied.copy(pyramid, channel, range.clone());
            // What is missing is missing in all channels.
            runs.resize_with(copied.iter().count(), ExtractRun::default);
            for (run, (first_sample_index, samples)) in runs.iter_mut().zip(copied.iter()) {
                run.first_sample_index = first_sample_index;
                run.channels.push(samples.to_vec());
            }
        }
        let (start, end) = (range.start as f64, range.end as f64);
        let triggers = triggers.into_iter().filter(|at| (start..end).contains(at)).collect();
        Extract { rate_hz, range, runs, triggers }
    }
}

/// A copy of the samples of one channel.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) samples: Vec<i16>,
    /// The index of the first sample of each stretch without a gap, and its length.
    runs: Vec<(u64, usize)>,
}

impl Runs {
    /// Takes the samples of `range` that are still kept singly.
    pub(super) fn copy(&mut self, pyramid: &Pyramid, channel: usize, range: Range<u64>) {
        self.samples.clear();
        self.runs.clear();
        pyramid.samples(channel, range, |first, piece| {
            self.samples.extend_from_slice(piece);
            match self.runs.last_mut() {
                // A piece also ends where the pyramid's ring wraps; there is no gap there.
                Some((begin, length)) if *begin + *length as u64 == first => *length += piece.len(),
                _ => self.runs.push((first, piece.len())),
            }
        });
    }

    /// The stretches without a gap, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &[i16])> {
        let mut rest = &self.samples[..];
        self.runs.iter().map(move |&(first, length)| (first, rest.split_off(..length).unwrap_or_default()))
    }
}

const SAMPLES_MAX: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use crate::data::core::ScopeCore;
    use crate::testing::batch;

    #[test]
    fn the_samples_of_a_stretch_come_as_they_are_with_their_gap() {
        let mut core = ScopeCore::new(64 << 10);
        let value = |channel: usize, index: u64| (index % 1000) as i16 * if channel == 0 { 1 } else { -1 };
        for block in (0..400).filter(|&block| block != 395) {
            core.ingest(&batch(block * 50, 2, 50, 1e3, value), 1).unwrap();
        }
        let extract = core.extract(19_500..19_900);
        assert_eq!((extract.rate_hz, extract.len_samples()), (1e3, 350));
        let firsts: Vec<u64> = extract.runs.iter().map(|run| run.first_sample_index).collect();
        assert_eq!(firsts, [19_500, 19_800]);
        for run in &extract.runs {
            for (channel, samples) in run.channels.iter().enumerate() {
                for (&sample, index) in samples.iter().zip(run.first_sample_index..) {
                    assert_eq!(sample, value(channel, index), "{channel} {index}");
                }
            }
        }
        assert_eq!(core.extract(0..100).len_samples(), 0, "no longer held singly");
    }
}
