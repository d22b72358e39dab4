//! Filters samples with given taps.

use std::ops::Range;
use std::path::PathBuf;

use grebe_flow::{Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageResult};
use grebe_frame::{BatchMut, Header, SampleFormat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::continuity::Continuity;
use super::convolution::Convolution;
use super::in_place::InPlace;
use crate::error::Error;
use crate::numbers::{load, store};

/// Filters each channel with a finite impulse response of real taps.
///
/// A sample becomes the sum of itself times the first tap, the sample before it times the second, and so on.
/// Symmetric taps delay by half of their number less one; indices are not corrected for it. Samples before
/// the stream and in gaps count as zero, so the filter starts anew after a gap. I and Q of complex samples
/// are filtered separately with the same taps. Computes in 32-bit floating point, and in the frequency domain
/// for many taps. The error is some millionths of the largest samples nearby. Integers are rounded, ties to
/// even, and saturated, which is counted.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fir {
    /// Taps, beginning with that of the newest sample: 1 to 16384 numbers.
    pub taps: Option<Vec<f64>>,
    /// File with the taps instead, one number per line; # begins a comment.
    pub file: Option<PathBuf>,
}

impl Kind for Fir {
    const NAME: &'static str = "fir";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        match (&self.taps, &self.file) {
            (None, None) => Err(Fault::new("taps", "give 'taps', or a 'file' that holds them")),
            (Some(_), Some(_)) => Err(Fault::new("file", "give 'taps' or 'file', not both")),
            (Some(taps), None) => check_taps(taps).map_err(|why| Fault::new("taps", why)),
            (None, Some(_)) => Ok(()),
        }
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(FirStage::new(&self.load()?)))
    }
}

impl Fir {
    fn load(self) -> Result<Vec<f64>, Error> {
        let Some(path) = self.file else { return Ok(self.taps.unwrap_or_default()) };
        let wrong = |what: String| Error::Taps { path: path.clone(), what };
        let text =
            std::fs::read_to_string(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let mut taps = Vec::new();
        for (line, text) in text.lines().enumerate() {
            let number = text.split('#').next().unwrap_or_default().trim();
            if !number.is_empty() {
                taps.push(
                    number.parse().map_err(|_| {
                        wrong(format!("line {} is {number}: write one number a line", line + 1))
                    })?,
                );
            }
        }
        check_taps(&taps).map_err(wrong)?;
        Ok(taps)
    }
}

fn check_taps(taps: &[f64]) -> Result<(), String> {
    if taps.is_empty() || taps.len() > TAPS_MAX {
        return Err(format!("{} taps: give 1 to {TAPS_MAX}", taps.len()));
    }
    match taps.iter().find(|tap| !tap.is_finite()) {
        Some(tap) => Err(format!("invalid tap {tap}: give finite numbers")),
        None => Ok(()),
    }
}

#[derive(Debug)]
pub(crate) struct FirStage {
    convolution: Convolution,
    continuity: Continuity,
    /// By channel: history as long as the taps reach back, then numbers of the present frames.
    lines: Vec<Vec<f32>>,
    in_place: InPlace,
    saturated_samples: u64,
    counters: Counted,
}

impl FirStage {
    pub(crate) fn new(taps: &[f64]) -> Self {
        Self {
            convolution: Convolution::new(taps),
            continuity: Continuity::default(),
            lines: Vec::new(),
            in_place: InPlace::default(),
            saturated_samples: 0,
            counters: Counted::default(),
        }
    }

    /// Filters contiguous frames from `first` on as one. Returns the first frame after a gap.
    fn filter(&mut self, batch: &mut BatchMut, first: usize) -> usize {
        let mut end = first;
        let mut format = SampleFormat::I16;
        for frame in batch.frames().skip(first) {
            let header = frame.header();
            if !self.continuity.goes_on(&header) {
                if end > first {
                    break;
                }
                self.begin(&header);
            }
            self.continuity.note(&header);
            (format, end) = (header.format, end + 1);
            for (channel, line) in self.lines.iter_mut().enumerate() {
                // The lines are for its channels.
                let bytes = frame.channel_bytes(channel).unwrap_or_default();
                let start = line.len();
                line.resize(start + bytes.len() / format.component().bytes(), 0.0);
                load(format, bytes, &mut line[start..]);
            }
        }
        let stride = format.components();
        for line in &mut self.lines {
            self.convolution.apply(stride, line);
        }
        self.store(batch, first..end);
        let past = self.convolution.past(stride);
        for line in &mut self.lines {
            let done = line.len().saturating_sub(past);
            line.copy_within(done.., 0);
            line.truncate(past);
        }
        end
    }

    fn begin(&mut self, header: &Header) {
        let past = self.convolution.past(header.format.components());
        self.lines.resize_with(header.channel_count as usize, Vec::new);
        for line in &mut self.lines {
            line.clear();
            line.resize(past, 0.0);
        }
    }

    /// Writes the results at the start of the lines to these frames.
    fn store(&mut self, batch: &mut BatchMut, frames: Range<usize>) {
        let (lines, saturated) = (&self.lines, &mut self.saturated_samples);
        let (mut begun, mut numbers) = (0, 0..0);
        batch.update_bytes(|header, channel, bytes| {
            begun += usize::from(channel == 0);
            if !frames.contains(&(begun - 1)) {
                return;
            }
            if channel == 0 {
                let count = bytes.len() / header.format.component().bytes();
                numbers = numbers.end..numbers.end + count;
            }
            *saturated += store(header.format, &lines[channel][numbers.clone()], bytes);
        });
    }
}

impl Stage for FirStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let mut batch = match self.in_place.next(input, ctx) {
            Ok(batch) => batch,
            Err(outcome) => return Ok(outcome),
        };
        let mut done = 0;
        while done < batch.len() {
            done = self.filter(&mut batch, done);
        }
        self.counters.copied_frames.set(self.in_place.copied_frames());
        self.counters.saturated_samples.set(self.saturated_samples);
        output.send(batch.freeze(), ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }

    fn ports(&self) -> Ports {
        Fir::PORTS
    }
}

grebe_flow::counters! {
    struct Counted { copied_frames, saturated_samples }
}
const TAPS_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_frame::{Batch, BatchPool, Complex, Sample};
    use proptest::prelude::*;

    use super::*;

    /// Frames of two channels; the second is the negated first.
    fn batch<T: Sample>(frames: &[(u64, Vec<T>)]) -> Batch {
        let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
        for (first, samples) in frames {
            let header = Header {
                format: T::FORMAT,
                channel_count: 2,
                block_length_samples: samples.len() as u32,
                first_sample_index: *first,
                ..Header::default()
            };
            let fill = |channel, out: &mut [T]| {
                out.copy_from_slice(samples);
                if channel == 1 {
                    out.reverse();
                }
            };
            batch.push::<T>(&header, fill).unwrap();
        }
        batch.freeze()
    }

    fn filtered<T: Sample>(taps: &[f64], frames: &[(u64, Vec<T>)]) -> (Vec<T>, u64) {
        let mut bench = StageBench::new(FirStage::new(taps)).unwrap();
        let made = bench.feed(batch(frames)).unwrap();
        let frames = made.iter().flat_map(|batch| batch.frames());
        let samples = frames.flat_map(|frame| frame.channel::<T>(0).unwrap().into_owned()).collect();
        (samples, bench.snapshot().stage("stage").unwrap().own("saturated_samples").unwrap())
    }

    proptest! {
        #[test]
        fn every_sample_is_the_sum_however_the_stream_is_cut(
            taps in prop::collection::vec(-2.0..2.0f64, 1..40), samples in prop::collection::vec(-1.0..1.0f32, 1..300),
            length in 1usize..90,
        ) {
            let frames: Vec<_> =
                samples.chunks(length).enumerate().map(|(at, part)| ((at * length) as u64, part.to_vec())).collect();
            let (got, _) = filtered(&taps, &frames);
            for (index, got) in got.iter().enumerate() {
                let expected: f64 =
                    taps.iter().enumerate().filter(|(tap, _)| *tap <= index).map(|(tap, value)| value * f64::from(samples[index - tap])).sum();
                prop_assert!((f64::from(*got) - expected).abs() < 1e-4, "{} where {} is expected", got, expected);
            }
        }
    }

    #[test]
    fn complex_samples_and_integers_are_filtered_rounded_and_saturated() {
        let pulse = |at: usize| {
            (0..50)
                .map(move |index| if index == at { Complex::new(1.0f32, -2.0) } else { Complex::default() })
        };
        let (got, _) = filtered(&[0.0, 0.5, 0.25], &[(0, pulse(20).collect())]);
        assert_eq!(
            (got[20], got[21], got[22]),
            (Complex::default(), Complex::new(0.5, -1.0), Complex::new(0.25, -0.5))
        );
        assert_eq!(filtered(&[0.5], &[(0, vec![1i16, 3, -1, -3, 5])]), (vec![0, 2, 0, -2, 2], 0));
        assert_eq!(filtered(&[2.0], &[(0, vec![100i8, -100, 3])]), (vec![127, -128, 6], 4));
        assert_eq!(
            filtered(&[2.0], &[(0, vec![Complex::new(128u8, 127)])]),
            (vec![Complex::new(128, 126)], 0)
        );
    }

    #[test]
    fn a_gap_begins_anew() {
        let taps = [1.0, 1.0, 1.0];
        let (whole, _) = filtered(&taps, &[(0, vec![1.0f64; 4]), (4, vec![1.0; 3])]);
        assert_eq!(whole, [1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0]);
        let (torn, _) = filtered(&taps, &[(0, vec![1.0f64; 4]), (5, vec![1.0; 3])]);
        assert_eq!(torn, [1.0, 2.0, 3.0, 3.0, 1.0, 2.0, 3.0]);
    }

    /// Double precision result for samples from 0 on, of which only the given ranges exist.
    fn exact(taps: &[f64], sample: impl Fn(u64) -> f64, there: &[Range<u64>], index: u64) -> f64 {
        let stretch = there.iter().find(|stretch| stretch.contains(&index)).unwrap();
        let reach = (taps.len() as u64 - 1).min(index - stretch.start);
        (0..=reach).map(|back| taps[back as usize] * sample(index - back)).sum()
    }

    /// Frames of several batches, with gaps within one and between two.
    fn many_taps<T: Sample>(make: impl Fn(u64) -> T, parts: impl Fn(&T) -> [f64; 2], allowed: f64) {
        let mut rng = grebe_testing::Rng::with_seed(7);
        let taps: Vec<f64> = (0..300).map(|_| (rng.f64() - 0.5) / 50.0).collect();
        let there = [5..1_705, 1_800..2_000, 2_300..6_300, 6_301..7_000];
        let mut bench = StageBench::new(FirStage::new(&taps)).unwrap();
        let mut waiting: Vec<(u64, Vec<T>)> = Vec::new();
        let mut got = Vec::new();
        let mut feed = |frames: &[(u64, Vec<T>)]| {
            for batch in bench.feed(batch(frames)).unwrap() {
                for frame in batch.frames() {
                    got.extend(frame.channel::<T>(0).unwrap().iter().copied());
                }
            }
        };
        for stretch in &there {
            let mut at = stretch.start;
            while at < stretch.end {
                // Coprime to everything, so that frames and batches end anywhere.
                let end = stretch.end.min(at + 349);
                waiting.push((at, (at..end).map(&make).collect()));
                at = end;
                if waiting.len() == 5 {
                    feed(&std::mem::take(&mut waiting));
                }
            }
        }
        feed(&waiting);
        let indexes = there.iter().flat_map(Clone::clone);
        assert_eq!(got.len(), indexes.clone().count());
        for (index, got) in indexes.zip(&got) {
            for (part, got) in parts(got).into_iter().enumerate() {
                let expected = exact(&taps, |at| parts(&make(at))[part], &there, index);
                assert!((got - expected).abs() <= allowed, "{index}: {got} where {expected} is expected");
            }
        }
    }

    #[test]
    fn many_taps_make_the_same_sums_and_never_reach_across_a_gap() {
        let number = |index: u64| (index as f64 * 0.37).sin();
        many_taps(|index| number(index) as f32, |&sample| [sample.into(), 0.0], 2e-6);
        let pair = |index: u64| Complex::new(number(index) as f32, number(3 * index + 1) as f32);
        many_taps(pair, |sample| [sample.re.into(), sample.im.into()], 2e-6);
        // Half a unit of rounding, and the error of single precision for 20000.
        let integer = |index: u64| (number(index) * 20_000.0) as i16;
        many_taps(integer, |&sample| [sample.into(), 0.0], 0.55);
    }

    #[test]
    fn taps_come_from_a_file_and_what_are_none_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taps.txt");
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Fir { file: Some(path.clone()), taps: None }.load().map_err(|error| error.to_string())
        };
        assert_eq!(load("# a filter\n0.5\n\n-1e-3 # small\n").unwrap(), [0.5, -1e-3]);
        assert!(load("0.5\nhalf\n").unwrap_err().contains("line 2 is half"));
        assert!(load("").unwrap_err().contains("0 taps"));
        let with = |taps: Vec<f64>| Fir { taps: Some(taps), file: None };
        assert!(
            with(vec![]).check().is_err()
                && with(vec![f64::NAN]).check().is_err()
                && with(vec![1.0]).check().is_ok()
        );
        assert!(Fir::default().check().is_err());
        assert!(Fir { file: Some("x".into()), ..with(vec![1.0]) }.check().is_err());
    }
}
