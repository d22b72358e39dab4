//! Filters samples with given taps.

use std::path::PathBuf;

use grebe_flow::{
    Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageResult, Workspace,
};
use grebe_frame::{Batch, SampleFormat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::continuity::Continuity;
use crate::error::Error;
use crate::numbers::{load, store};

/// Filters each channel with a finite impulse response of real taps.
///
/// A sample becomes the sum of itself times the first tap, the sample before it times the second, and so on: symmetric taps delay
/// by half of their number less one, and no index is corrected for it. Samples before the stream, and those that are missing in a
/// gap, count as zero: behind a gap the filter begins anew. Of complex samples I and Q are filtered alike. Computed in 32-bit
/// floating point; integers are rounded, ties to even, and saturated, which is counted.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fir {
    /// The taps, the first of which meets the newest sample: 1 to 16384 numbers.
    pub taps: Option<Vec<f64>>,
    /// A file that holds them instead, a number a line; what follows a # is a comment.
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
        let text = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        let mut taps = Vec::new();
        for (line, text) in text.lines().enumerate() {
            let number = text.split('#').next().unwrap_or_default().trim();
            if !number.is_empty() {
                let field = format!("line {}", line + 1);
                taps.push(
                    number
                        .parse()
                        .map_err(|_| Error::field(&path, &field, number, "write one number a line"))?,
                );
            }
        }
        check_taps(&taps).map_err(|what| Error::Field { path, what })?;
        Ok(taps)
    }
}

fn check_taps(taps: &[f64]) -> Result<(), String> {
    if taps.is_empty() || taps.len() > TAPS_MAX {
        return Err(format!("{} taps: give 1 to {TAPS_MAX}", taps.len()));
    }
    match taps.iter().find(|tap| !tap.is_finite()) {
        Some(tap) => Err(format!("{tap} is no tap: give finite numbers")),
        None => Ok(()),
    }
}

#[derive(Debug)]
pub(crate) struct FirStage {
    /// The last first.
    taps: Vec<f32>,
    continuity: Continuity,
    /// By channel: as many numbers of the past as the taps reach back, and the frame's behind them.
    lines: Vec<Vec<f32>>,
    filtered: Vec<f32>,
    workspace: Workspace,
    pending: Option<Batch>,
    saturated_samples: u64,
    counters: Counters,
}

impl FirStage {
    pub(crate) fn new(taps: &[f64]) -> Self {
        Self {
            taps: taps.iter().rev().map(|&tap| tap as f32).collect(),
            continuity: Continuity::default(),
            lines: Vec::new(),
            filtered: Vec::new(),
            workspace: Workspace::default(),
            pending: None,
            saturated_samples: 0,
            counters: Counters::new(COUNTERS),
        }
    }

    fn filter(&mut self, format: SampleFormat, channel: usize, bytes: &mut [u8]) {
        let numbers = bytes.len() / format.component().bytes();
        let stride = format.components();
        let past = (self.taps.len() - 1) * stride;
        let line = &mut self.lines[channel];
        line.resize(past + numbers, 0.0);
        load(format, bytes, &mut line[past..]);
        self.filtered.resize(numbers, 0.0);
        convolve(&self.taps, stride, line, &mut self.filtered);
        self.saturated_samples += store(format, &self.filtered, bytes);
        line.copy_within(numbers.., 0);
        line.truncate(past);
    }
}

impl Stage for FirStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = self.pending.take().or_else(|| input.next()) else {
            return Ok(Outcome::WantsInput);
        };
        let mut batch = match self.workspace.own(batch, ctx) {
            Ok(batch) => batch,
            Err(batch) => {
                self.pending = Some(batch);
                return Ok(Outcome::Again);
            }
        };
        batch.update_bytes(|header, channel, bytes| {
            if channel == 0 && !self.continuity.goes_on(header) {
                self.lines.resize_with(header.channel_count as usize, Vec::new);
                let past = (self.taps.len() - 1) * header.format.components();
                for line in &mut self.lines {
                    line.clear();
                    line.resize(past, 0.0);
                }
            }
            self.filter(header.format, channel, bytes);
        });
        self.counters.set(COPIED, self.workspace.copied_frames());
        self.counters.set(SATURATED, self.saturated_samples);
        output.send(batch.freeze(), ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }

    fn ports(&self) -> Ports {
        Fir::PORTS
    }
}

/// Each number is the sum of the taps times every `stride`-th number from there on.
fn convolve(taps: &[f32], stride: usize, line: &[f32], out: &mut [f32]) {
    let mut at = 0;
    for piece in out.chunks_mut(LANES) {
        // As many sums as fit into registers, for each tap one after the other.
        let mut sums = [0.0; LANES];
        if piece.len() == LANES {
            for (position, tap) in taps.iter().enumerate() {
                let start = at + position * stride;
                for (sum, number) in sums.iter_mut().zip(&line[start..start + LANES]) {
                    *sum += tap * number;
                }
            }
        } else {
            for (lane, sum) in sums.iter_mut().enumerate().take(piece.len()) {
                *sum = taps
                    .iter()
                    .zip(line[at + lane..].iter().step_by(stride))
                    .map(|(tap, number)| tap * number)
                    .sum();
            }
        }
        piece.copy_from_slice(&sums[..piece.len()]);
        at += LANES;
    }
}

const COUNTERS: &[&str] = &["copied_frames", "saturated_samples"];
const COPIED: usize = 0;
const SATURATED: usize = 1;
const TAPS_MAX: usize = 16_384;
const LANES: usize = 32;

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Complex, Header, Sample};
    use proptest::prelude::*;

    use super::*;

    /// Frames of two channels; the second is the first turned around.
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
