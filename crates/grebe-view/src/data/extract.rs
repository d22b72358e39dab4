//! Copies samples out of the history, for computations or files.

use std::ops::Range;

use grebe_frame::{Description, Header, SampleFormat, StreamAnnotation};
use grebe_scope::Scale;

use crate::data::descriptions::Descriptions;
use crate::data::lane::{LaneId, LaneMask};
use crate::data::samples::Kind;
use crate::data::tracks::{Runs, Tracks};

/// Samples of all channels, as far as the history still holds them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extract {
    /// Samples per second and channel; 0 = unknown.
    pub rate_hz: f64,
    /// Sample format of the stream.
    pub format: SampleFormat,
    /// The requested range, as absolute sample indices.
    pub range: Range<u64>,
    /// Type of each vector of a run: a real channel, or alternately I and Q of a complex one.
    pub lanes: Vec<LaneId>,
    /// Ranges without a gap, oldest first.
    pub runs: Vec<ExtractRun>,
    /// Descriptions of these samples, each valid from its first sample on, with the time at which that was made.
    /// Without annotations.
    pub descriptions: Vec<Description>,
    /// Annotations that overlap the range.
    pub annotations: Vec<StreamAnnotation>,
    /// Absolute sample indices of triggers within the range.
    pub triggers: Vec<f64>,
    /// The range that the history held at that time, gaps included. Empty for samples from another host.
    pub held: Range<u64>,
    /// Number of streams up to that time. Samples with another number belong to another stream.
    pub streams: u64,
}

/// A request for samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedExtract {
    /// As absolute sample indices.
    pub(crate) range: Range<u64>,
    /// Maximum number of samples, all lanes together. The newest are kept.
    pub(crate) samples_max: u64,
}

impl WantedExtract {
    /// The part of the range within the limit, for a stream of `lanes` lanes.
    pub(crate) fn range_of(&self, lanes: usize) -> Range<u64> {
        let Range { start, end } = self.range;
        let most = (self.samples_max / lanes.max(1) as u64).min(SAMPLES_MAX);
        start.min(end).max(end.saturating_sub(most))..end
    }
}

impl From<Range<u64>> for WantedExtract {
    fn from(range: Range<u64>) -> WantedExtract {
        WantedExtract { range, samples_max: u64::MAX }
    }
}

/// Consecutive samples without a gap.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExtractRun {
    /// Absolute index of the first sample.
    pub first_sample_index: u64,
    /// One vector per lane, all of one length.
    pub samples: ExtractSamples,
}

/// Samples as the scope keeps them: `i16` for real channels of 8 and 16 bits, else `f32`.
#[derive(Debug, Clone, PartialEq)]
pub enum ExtractSamples {
    /// 8 or 16 bits, as they came.
    I16(Vec<Vec<i16>>),
    /// Others, rounded to 24 bits; those of cu8 minus 127.5.
    F32(Vec<Vec<f32>>),
}

impl Default for ExtractSamples {
    fn default() -> ExtractSamples {
        ExtractSamples::I16(Vec::new())
    }
}

impl ExtractSamples {
    /// Samples per lane.
    #[expect(clippy::len_without_is_empty, reason = "a run always has samples")]
    pub fn len(&self) -> usize {
        match self {
            ExtractSamples::I16(lanes) => lanes.first().map_or(0, Vec::len),
            ExtractSamples::F32(lanes) => lanes.first().map_or(0, Vec::len),
        }
    }

    /// A sample, by lane and by place in the run.
    pub(crate) fn value(&self, lane: usize, place: usize) -> Option<f64> {
        match self {
            ExtractSamples::I16(lanes) => lanes.get(lane)?.get(place).map(|&sample| sample.into()),
            ExtractSamples::F32(lanes) => lanes.get(lane)?.get(place).map(|&sample| sample.into()),
        }
    }
}

impl Extract {
    /// Whether samples may differ from the stream's: f64 and long i32 samples are rounded to 24 bits.
    pub fn is_rounded(&self) -> bool {
        let has_more = |value: &f32| value.abs() >= EXACT_BELOW;
        let values = self.runs.iter().filter_map(|run| match &run.samples {
            ExtractSamples::F32(lanes) => Some(lanes),
            ExtractSamples::I16(_) => None,
        });
        match self.format {
            SampleFormat::F64 => !self.runs.is_empty(),
            SampleFormat::I32 => values.flatten().flatten().any(has_more),
            _ => false,
        }
    }

    /// Adds the descriptions of the samples.
    pub(crate) fn told(mut self, told: &Descriptions, newest: &Header) -> Extract {
        let indices =
            |run: &ExtractRun| run.first_sample_index..run.first_sample_index + run.samples.len() as u64;
        let runs: Vec<_> = self.runs.iter().map(indices).collect();
        self.descriptions = told.said_of(&runs, newest);
        self.annotations = told.annotations.within(&self.range);
        self
    }

    pub(crate) fn len_samples(&self) -> u64 {
        self.runs.iter().map(|run| run.samples.len() as u64).sum()
    }

    /// Measures a lane at a rate of 1, in samples and raw counts.
    pub(crate) fn measured(&self, lane: usize) -> grebe_scope::Measurements {
        fn of<'a, K: Kind>(runs: impl Iterator<Item = &'a Vec<K>>) -> grebe_scope::Measurements {
            let runs: Vec<&[K]> = runs.map(Vec::as_slice).collect();
            grebe_scope::Measurer::new().measure(&runs, 1.0, Scale::COUNTS)
        }
        let short = self.runs.iter().filter_map(|run| match &run.samples {
            ExtractSamples::I16(lanes) => lanes.get(lane),
            ExtractSamples::F32(_) => None,
        });
        let long = self.runs.iter().filter_map(|run| match &run.samples {
            ExtractSamples::F32(lanes) => lanes.get(lane),
            ExtractSamples::I16(_) => None,
        });
        match self.runs.first().map(|run| &run.samples) {
            Some(ExtractSamples::F32(_)) => of(long),
            _ => of(short),
        }
    }

    /// Copies the samples of `range`.
    pub(crate) fn of<K: Kind>(
        tracks: &Tracks<K>,
        rate_hz: f64,
        range: Range<u64>,
        triggers: Vec<f64>,
        run: impl Fn(Vec<Vec<K>>) -> ExtractSamples,
    ) -> Extract {
        let lanes: Vec<LaneId> =
            LaneMask::ALL.lanes(tracks.channels(), tracks.format().is_complex()).collect();
        let (mut copied, mut runs) = (Runs::default(), Vec::new());
        for track in lanes.iter().filter_map(|&lane| tracks.track(lane)) {
            copied.copy(track, range.clone());
            // A gap is in all channels at the same time.
            runs.resize_with(copied.iter().count(), || (0, Vec::new()));
            for (run, (first_sample_index, samples)) in runs.iter_mut().zip(copied.iter()) {
                run.0 = first_sample_index;
                run.1.push(samples.to_vec());
            }
        }
        let (start, end) = (range.start as f64, range.end as f64);
        let triggers = triggers.into_iter().filter(|at| (start..end).contains(at)).collect();
        let runs = runs.into_iter();
        let runs =
            runs.map(|(first_sample_index, lanes)| ExtractRun { first_sample_index, samples: run(lanes) });
        let held = tracks.held();
        let format = tracks.format();
        let runs = runs.collect();
        Extract { rate_hz, format, range, lanes, runs, triggers, held, ..Extract::default() }
    }
}

/// Limit per channel.
const SAMPLES_MAX: u64 = 1 << 24;
/// Below it, every integer is an exact `f32`, and no other value rounds to it.
const EXACT_BELOW: f32 = 16_777_216.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::core::ScopeCore;
    use crate::data::history::Viewer;
    use crate::testing::batch;

    #[test]
    fn the_samples_of_a_stretch_come_as_they_are_with_their_gap() {
        let mut core = ScopeCore::new(64 << 10);
        let value = |channel: usize, index: u64| (index % 1000) as i16 * if channel == 0 { 1 } else { -1 };
        for block in (0..400).filter(|&block| block != 395) {
            core.ingest(&batch(block * 50, 2, 50, 1e3, value), 1).unwrap();
        }
        let extract = core.extract(Viewer::default(), (19_500..19_900).into());
        assert_eq!((extract.rate_hz, extract.len_samples()), (1e3, 350));
        let firsts: Vec<u64> = extract.runs.iter().map(|run| run.first_sample_index).collect();
        assert_eq!(firsts, [19_500, 19_800]);
        for run in &extract.runs {
            let ExtractSamples::I16(channels) = &run.samples else { panic!("{run:?}") };
            for (channel, samples) in channels.iter().enumerate() {
                for (&sample, index) in samples.iter().zip(run.first_sample_index..) {
                    assert_eq!(sample, value(channel, index), "{channel} {index}");
                }
            }
        }
        assert_eq!(
            core.extract(Viewer::default(), (0..100).into()).len_samples(),
            0,
            "no longer held singly"
        );
        assert_eq!(extract.format, SampleFormat::I16);
    }

    #[test]
    fn what_was_rounded_says_so() {
        let of = |format, value: f32| Extract {
            format,
            runs: vec![ExtractRun {
                first_sample_index: 0,
                samples: ExtractSamples::F32(vec![vec![0.0, value]]),
            }],
            ..Extract::default()
        };
        assert!(!of(SampleFormat::I32, -16_777_215.0).is_rounded());
        assert!(of(SampleFormat::I32, -16_777_216.0).is_rounded());
        assert!(of(SampleFormat::F64, 0.5).is_rounded());
        assert!(!of(SampleFormat::F32, 1e30).is_rounded() && !Extract::default().is_rounded());
    }
}
