//! Copies samples out of the history, to be saved to files.

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
    /// Samples per channel.
    pub(crate) fn len_samples(&self) -> u64 {
        self.runs.iter().map(|run| run.channels.first().map_or(0, Vec::len) as u64).sum()
    }

    /// Copies at most the newest 2^24 samples per channel of `range`.
    pub(crate) fn of(pyramid: &Pyramid, rate_hz: f64, range: Range<u64>, triggers: Vec<f64>) -> Extract {
        let range = range.start.max(range.end.saturating_sub(SAMPLES_MAX))..range.end;
        let mut runs: Vec<ExtractRun> = Vec::new();
        for channel in 0..pyramid.channels() {
            let mut place = 0;
            let mut next = None;
            pyramid.samples(channel, range.clone(), |first, samples| {
                // A piece also ends where the pyramid's ring wraps; there is no gap there.
                if next == Some(first) {
                    place -= 1;
                } else if channel == 0 {
                    runs.push(ExtractRun { first_sample_index: first, channels: Vec::new() });
                }
                if let Some(run) = runs.get_mut(place) {
                    run.channels.resize_with(run.channels.len().max(channel + 1), Vec::new);
                    run.channels[channel].extend_from_slice(samples);
                }
                place += 1;
                next = Some(first + samples.len() as u64);
            });
        }
        let (start, end) = (range.start as f64, range.end as f64);
        let triggers = triggers.into_iter().filter(|at| (start..end).contains(at)).collect();
        Extract { rate_hz, range, runs, triggers }
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
