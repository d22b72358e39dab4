//! The math lane: computed from other lanes for each picture, over the visible samples.

use std::ops::Range;

use grebe_scope::{Error as ScopeError, Pyramid, Scale};
use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;
use crate::data::samples::Kind;
use crate::data::tracks::{Runs, Track, Tracks};

/// The math operation and its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct MathSettings {
    pub(crate) operation: MathOperation,
    pub(crate) a: MathInput,
    pub(crate) b: MathInput,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct MathInput {
    pub(crate) lane: LaneId,
    /// Unit per count, and the value of count 0.
    #[serde(flatten)]
    pub(crate) scale: Scale,
    /// Whether the mean of the visible samples is subtracted first.
    #[serde(default)]
    pub(crate) is_ac: bool,
}

/// The operations, in units of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MathOperation {
    /// `A + B`.
    Add,
    /// `A - B`.
    Subtract,
    /// `A * B`.
    Multiply,
    /// The slope of `A` per second (per sample where the rate is unknown).
    Derivative,
    /// The sum of `A` over time from the left edge, or from the last gap.
    Integral,
}

impl MathOperation {
    pub(crate) const ALL: [MathOperation; 5] = [
        MathOperation::Add,
        MathOperation::Subtract,
        MathOperation::Multiply,
        MathOperation::Derivative,
        MathOperation::Integral,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            MathOperation::Add => "A + B",
            MathOperation::Subtract => "A \u{2212} B",
            MathOperation::Multiply => "A \u{d7} B",
            MathOperation::Derivative => "dA/dt",
            MathOperation::Integral => "\u{222b} A dt",
        }
    }

    pub(crate) fn is_binary(self) -> bool {
        matches!(self, MathOperation::Add | MathOperation::Subtract | MathOperation::Multiply)
    }

    /// The unit of the result. `a` and `b` are the units of the inputs, `time` is the unit of time.
    pub(crate) fn unit(self, a: &str, b: &str, time: &str) -> String {
        match self {
            MathOperation::Add | MathOperation::Subtract => a.to_owned(),
            MathOperation::Multiply if a.is_empty() => b.to_owned(),
            MathOperation::Multiply if b.is_empty() => a.to_owned(),
            MathOperation::Multiply if a == b => format!("{a}\u{b2}"),
            MathOperation::Multiply => format!("{a}{b}"),
            MathOperation::Derivative => format!("{a}/{time}"),
            MathOperation::Integral => format!("{a}{time}"),
        }
    }

    /// The operation in words, for channels with these names.
    pub(crate) fn words(self, a: &str, b: &str) -> String {
        match self {
            MathOperation::Derivative => format!("d {a}/dt"),
            MathOperation::Integral => format!("\u{222b} {a} dt"),
            binary => binary.name().replace('A', "\u{1}").replace('B', b).replace('\u{1}', a),
        }
    }
}

/// Computes a window of the math lane into a small history, so that it is drawn and measured as any other lane.
#[derive(Debug)]
pub(crate) struct MathLane<K: Kind> {
    history: Pyramid<f32>,
    /// The value of the history's zero, so that values far from 0 keep their digits.
    offset: f64,
    a: Runs<K>,
    b: Runs<K>,
    values: Vec<f64>,
    kept: Vec<f32>,
}

impl<K: Kind> MathLane<K> {
    /// Computes a window at `rate` samples per second, and reuses the memory of the last picture. `None` without a
    /// math lane, or without memory.
    pub(super) fn renew(
        kept: Option<MathLane<K>>,
        tracks: &Tracks<K>,
        wanted: Option<MathSettings>,
        rate: f64,
        window: Range<f64>,
    ) -> Option<MathLane<K>> {
        let settings = wanted?;
        let mut math = kept.or_else(|| MathLane::new().ok())?;
        math.compute(tracks, &settings, rate, window);
        Some(math)
    }

    /// # Errors
    /// [`ScopeError::OutOfMemory`].
    fn new() -> Result<MathLane<K>, ScopeError> {
        Ok(MathLane {
            history: Pyramid::new(1, HISTORY_BYTES)?,
            offset: 0.0,
            a: Runs::default(),
            b: Runs::default(),
            values: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// The results and their scale.
    pub(crate) fn track(&self) -> (Track<'_, f32>, Scale) {
        (Track { pyramid: &self.history, place: 0 }, Scale { factor: 1.0, offset: self.offset })
    }

    /// Computes the newest 262,144 samples of a window.
    fn compute(&mut self, tracks: &Tracks<K>, settings: &MathSettings, rate: f64, window: Range<f64>) {
        let end = (window.end.max(0.0).ceil() as u64).min(tracks.sampled().next_index());
        // One sample before the left edge, for the slope there.
        let start = (window.start.max(1.0) as u64 - 1).max(end.saturating_sub(SAMPLES_MAX));
        let first = LaneId::first_of(0, tracks.format().is_complex());
        for (input, runs) in [(&settings.a, &mut self.a), (&settings.b, &mut self.b)] {
            if let Some(track) = tracks.track(input.lane).or_else(|| tracks.track(first)) {
                runs.copy(track, start..end);
            }
        }
        self.calculate(settings, rate);
        self.keep();
    }

    fn calculate(&mut self, settings: &MathSettings, rate: f64) {
        let MathLane { a, b, values, .. } = self;
        let runs = a.iter().map(|(_, run)| run.len());
        let (a, b) = (Input::new(&settings.a, &a.samples), Input::new(&settings.b, &b.samples));
        values.clear();
        let (mut place, mut sum, mut before) = (0, 0.0, 0.0);
        for length in runs {
            for at in place..place + length {
                let is_first = at == place;
                let now = a.value(at);
                values.push(match settings.operation {
                    MathOperation::Add => now + b.value(at),
                    MathOperation::Subtract => now - b.value(at),
                    MathOperation::Multiply => now * b.value(at),
                    MathOperation::Derivative => {
                        let slope = if is_first { f64::NAN } else { (now - before) * rate };
                        before = now;
                        slope
                    }
                    MathOperation::Integral => {
                        sum = if is_first { 0.0 } else { sum } + now / rate;
                        sum
                    }
                });
            }
            place += length;
        }
    }

    /// Stores the results as distances from the middle of their range.
    fn keep(&mut self) {
        let MathLane { history, a, values, kept, offset, .. } = self;
        let (min, max) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), &value| {
            // Comparisons ignore NaN.
            (min.min(value), max.max(value))
        });
        let middle = (min + max) / 2.0;
        *offset = if middle.is_finite() { middle } else { 0.0 };
        history.clear();
        let mut rest = &values[..];
        for (first, samples) in a.iter() {
            let run = rest.split_off(..samples.len()).unwrap_or_default();
            let missing = usize::from(run.first().is_some_and(|value| value.is_nan()));
            kept.clear();
            kept.extend(run[missing..].iter().map(|value| (value - *offset) as f32));
            // The history has one channel, and indices only grow, so this cannot fail.
            let _ = history.append(first + missing as u64, &[kept]);
        }
    }
}

/// The samples of a lane in units.
struct Input<'a, K: Kind> {
    samples: &'a [K],
    factor: f64,
    offset: f64,
}

impl<K: Kind> Input<'_, K> {
    fn new<'a>(input: &MathInput, samples: &'a [K]) -> Input<'a, K> {
        let Scale { factor, offset } = input.scale;
        let mean = || samples.iter().map(|sample| sample.to_f64()).sum::<f64>() / samples.len().max(1) as f64;
        let offset = if input.is_ac { -mean() * factor } else { offset };
        Input { samples, factor, offset }
    }

    /// The value at a place. The default of 0 never occurs: the channels of a stream have equal lengths.
    fn value(&self, at: usize) -> f64 {
        self.samples.get(at).map_or(0.0, |sample| sample.to_f64() * self.factor + self.offset)
    }
}

/// Bounds the time of a picture on the data path.
const SAMPLES_MAX: u64 = 1 << 18;
/// Enough for that many samples and the levels above them.
const HISTORY_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use grebe_frame::SampleFormat;

    use super::*;
    use crate::testing::batch;

    fn tracks(blocks: &[(u64, &[i16], &[i16])]) -> Tracks<i16> {
        let mut tracks = Tracks::new(SampleFormat::I16, 2, 1 << 20).unwrap();
        for &(first, a, b) in blocks {
            let value = |channel: usize, index: u64| [a, b][channel][(index - first) as usize];
            let batch = batch(first, 2, a.len() as u32, 100.0, value);
            tracks.append(&batch.frames().next().unwrap(), first, |_| {}).unwrap();
        }
        tracks
    }

    fn settings(operation: MathOperation) -> MathSettings {
        let input = |channel, factor, offset| MathInput {
            lane: LaneId::real(channel),
            scale: Scale { factor, offset },
            is_ac: false,
        };
        MathSettings { operation, a: input(0, 0.1, 0.0), b: input(1, 0.01, 1.0) }
    }

    fn results(run: &mut MathLane<i16>, tracks: &Tracks<i16>, settings: &MathSettings) -> Vec<(u64, f64)> {
        run.compute(tracks, settings, 100.0, 0.0..1000.0);
        let (track, scale) = run.track();
        let mut found = Vec::new();
        track.samples(0..1000, |first, samples| {
            found.extend((first..).zip(samples.iter().map(|&value| scale.value(value.into()))));
        });
        found
    }

    #[track_caller]
    fn assert_near(found: &[(u64, f64)], expected: &[(u64, f64)]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.0 == expected.0 && (found.1 - expected.1).abs() < 1e-3, "{found:?} {expected:?}");
        }
    }

    #[test]
    fn each_operation_is_what_its_name_says_in_units() {
        let tracks = tracks(&[(10, &[10, 20, 40], &[100, 0, -100])]);
        let mut run = MathLane::new().unwrap();
        let mut of = |operation| results(&mut run, &tracks, &settings(operation));
        // A is 1, 2, 4; B is 2, 1, 0.
        assert_near(&of(MathOperation::Add), &[(10, 3.0), (11, 3.0), (12, 4.0)]);
        assert_near(&of(MathOperation::Subtract), &[(10, -1.0), (11, 1.0), (12, 4.0)]);
        assert_near(&of(MathOperation::Multiply), &[(10, 2.0), (11, 2.0), (12, 0.0)]);
        assert_near(&of(MathOperation::Derivative), &[(11, 100.0), (12, 200.0)]);
        assert_near(&of(MathOperation::Integral), &[(10, 0.01), (11, 0.03), (12, 0.07)]);
    }

    #[test]
    fn nothing_is_computed_across_a_gap_and_what_is_flat_stays_so() {
        let tracks = tracks(&[(0, &[10, 20], &[0, 0]), (100, &[50, 60], &[0, 0])]);
        let mut run = MathLane::new().unwrap();
        let slopes = results(&mut run, &tracks, &settings(MathOperation::Derivative));
        assert_near(&slopes, &[(1, 100.0), (101, 100.0)]);
        let areas = results(&mut run, &tracks, &settings(MathOperation::Integral));
        assert_near(&areas, &[(0, 0.01), (1, 0.03), (100, 0.05), (101, 0.11)]);
        let mut ac = settings(MathOperation::Subtract);
        ac.b = ac.a;
        assert_near(&results(&mut run, &tracks, &ac), &[(0, 0.0), (1, 0.0), (100, 0.0), (101, 0.0)]);
        ac.b.is_ac = true;
        assert_near(&results(&mut run, &tracks, &ac)[..1], &[(0, 3.5)]);
    }

    #[test]
    fn units_and_words_follow_the_inputs() {
        use MathOperation::{Add, Derivative, Integral, Multiply};
        let units = [(Add, "V", "V", "V"), (Multiply, "V", "A", "VA"), (Multiply, "V", "V", "V\u{b2}")];
        let more = [(Derivative, "V", "", "V/s"), (Integral, "A", "", "As"), (Multiply, "", "A", "A")];
        for (operation, a, b, unit) in units.into_iter().chain(more) {
            assert_eq!(operation.unit(a, b, "s"), unit);
        }
        assert_eq!(Add.words("CH1", "B2"), "CH1 + B2");
        assert_eq!(MathOperation::Subtract.words("AB", "A"), "AB \u{2212} A");
    }
}
