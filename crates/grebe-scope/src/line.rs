//! The line between samples that are farther apart than columns.
//!
//! Straight from sample to sample, or by sin(x)/x, with a Hann window that ends 16 samples to either side: it draws a sine
//! below 0.43 of the rate exactly. Both lines pass through every sample. At the end of a run, where samples are
//! missing on one side, the kernel uses the weights of the present samples.

use std::f64::consts::PI;
use std::sync::LazyLock;

use crate::column::{Column, ColumnGrid};
use crate::value::Value;

/// Interpolation between samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Interpolation {
    /// Straight: adds nothing between samples.
    #[default]
    Linear,
    /// sin(x)/x: the signal below half the rate through these samples. It rings beside a step.
    Sinc,
}

/// The line through the samples of one channel, a span a column, and the samples themselves.
///
/// ```
/// use grebe_scope::{ColumnGrid, Interpolation, SampleLine};
/// let mut line = SampleLine::new(8);
/// line.add(ColumnGrid::new(0.25), 0, 0, &[0, 100, 100], Interpolation::Linear);
/// assert_eq!(line.spans[..2], [Some((0.0, 25.0)), Some((25.0, 50.0))]);
/// assert_eq!(line.samples, [(0.0, 0), (4.0, 100)]);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleLine<V: Value = i16> {
    /// Smallest and largest value of the line in a column, in the samples' unit but not rounded; `None` without a
    /// line, such as beside a NaN sample.
    pub spans: Vec<Option<(f32, f32)>>,
    /// The samples of the columns: the place of each in columns from the left edge, and its value.
    pub samples: Vec<(f32, V)>,
}

impl<V: Value> SampleLine<V> {
    /// An empty line over `columns` columns.
    pub fn new(columns: usize) -> SampleLine<V> {
        SampleLine { spans: vec![None; columns], samples: Vec::new() }
    }

    /// Adds samples without a gap, the first of them at `first_sample_index`, to columns that begin with `first_column`.
    /// [`Interpolation::Sinc`] needs [`SINC_REACH`] samples beyond the columns on either side.
    pub fn add(
        &mut self,
        grid: ColumnGrid,
        first_column: u64,
        first_sample_index: u64,
        samples: &[V],
        interpolation: Interpolation,
    ) {
        let Some(last) = samples.len().checked_sub(1) else { return };
        let step = grid.samples_per_column();
        // Counts from the run's first sample, so that large indices cost no digits.
        let left_edge = first_column as f64 * step - first_sample_index as f64;
        let edge = |place: usize| left_edge + place as f64 * step;
        let columns = self.spans.len();
        for (place, &sample) in samples.iter().enumerate() {
            let column = (place as f64 - left_edge) / step;
            if (0.0..columns as f64).contains(&column) {
                self.samples.push((column as f32, sample));
            }
        }
        let value = |at: f64| match interpolation {
            Interpolation::Linear => linear(samples, at),
            Interpolation::Sinc => sinc(samples, at),
        };
        let first_place = (-left_edge / step).floor().max(0.0) as usize;
        for (place, span) in self.spans.iter_mut().enumerate().skip(first_place) {
            let (left, right) = (edge(place).max(0.0), edge(place + 1).min(last as f64));
            if left > last as f64 {
                break;
            }
            if left > right {
                continue;
            }
            // A bend inside the column may be its extreme; sin(x)/x has round ones anywhere.
            let bend = left.ceil().min(right);
            let third = (right - left) / 3.0;
            let passed = [left, right, bend, left + third, right - third].map(value);
            let (low, high) = span.unwrap_or((f32::INFINITY, f32::NEG_INFINITY));
            let low = passed.iter().fold(low, |low, &it| low.min(it as f32));
            let high = passed.iter().fold(high, |high, &it| high.max(it as f32));
            if low <= high {
                *span = Some((low, high));
            }
        }
    }

    /// Inserts `columns` empty columns in front of it.
    pub fn shift_right(&mut self, columns: usize) {
        self.spans.splice(..0, std::iter::repeat_n(None, columns));
        self.samples.iter_mut().for_each(|(place, _)| *place += columns as f32);
    }

    /// The range to draw in a column so that the trace has no holes between neighbours; `None` if the column is empty.
    pub fn joined(&self, place: usize) -> Option<(f32, f32)> {
        let (low, high) = (*self.spans.get(place)?)?;
        let before = place.checked_sub(1).and_then(|before| self.spans[before]);
        Some(before.map_or((low, high), |(below, above)| (low.min(above), high.max(below))))
    }

    /// The sample that lies nearest to a place, in columns from the left edge.
    pub fn nearest(&self, place: f32) -> Option<V> {
        let distance = |sample: &&(f32, V)| (sample.0 - place).abs();
        let nearest = self.samples.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.map(|&(_, value)| value)
    }

    /// Columns from a sample to the next; 0 below two samples.
    pub fn spacing(&self) -> f32 {
        let pairs = self.samples.windows(2).map(|pair| pair[1].0 - pair[0].0);
        pairs.reduce(f32::min).unwrap_or(0.0)
    }

    /// Replaces columns by the line's values, rounded to counts for integer samples.
    pub fn round_into(&self, columns: &mut [Column<V>]) {
        let near = |value: f32| V::from_f64(value.into());
        for (column, span) in columns.iter_mut().zip(&self.spans) {
            (column.min, column.max) = match span {
                Some((low, high)) => (near(*low), near(*high)),
                None => (V::HIGHEST, V::LOWEST),
            };
        }
    }
}

/// The value of a straight line at `at` samples after the first, which lies within them.
fn linear<V: Value>(samples: &[V], at: f64) -> f64 {
    let last = samples.len() - 1;
    let before = (at as usize).min(last);
    let part = at - before as f64;
    let (here, after) = (samples[before].to_f64(), samples[(before + 1).min(last)].to_f64());
    // At a sample, the next one must not matter, because it may be NaN.
    if part == 0.0 { here } else { here * (1.0 - part) + after * part }
}

fn sinc<V: Value>(samples: &[V], at: f64) -> f64 {
    let before = (at as usize).min(samples.len() - 1);
    let phase = (at - before as f64) * PHASES as f64;
    let (row, part) = ((phase as usize).min(PHASES - 1), phase - (phase as usize).min(PHASES - 1) as f64);
    let (here, after) = (&KERNEL[row], &KERNEL[row + 1]);
    let (mut sum, mut weights) = (0.0, 0.0);
    // The kernel's first tap lies this many samples before `before`.
    let reach = SINC_REACH as usize - 1;
    let first = before.saturating_sub(reach);
    let taps = &samples[first..(before + SINC_REACH as usize + 1).min(samples.len())];
    let skipped = first + reach - before;
    for (tap, &sample) in taps.iter().enumerate().map(|(tap, sample)| (tap + skipped, sample)) {
        let weight = here[tap] * (1.0 - part) + after[tap] * part;
        sum += weight * sample.to_f64();
        weights += weight;
    }
    sum / weights
}

/// The weights of the samples around a place, by its phase between two samples. Linear interpolation between two phases
/// differs from the kernel by less than five millionths.
static KERNEL: LazyLock<Vec<[f64; TAPS]>> = LazyLock::new(|| {
    let row = |phase: usize| {
        std::array::from_fn(|tap| {
            let distance = phase as f64 / PHASES as f64 + (SINC_REACH - 1) as f64 - tap as f64;
            let window = 0.5 + 0.5 * (PI * distance / SINC_REACH as f64).cos();
            let sinc = if distance == 0.0 { 1.0 } else { (PI * distance).sin() / (PI * distance) };
            // At whole samples, computed sines are not exactly 0.
            let is_whole = phase.is_multiple_of(PHASES);
            if is_whole { f64::from(distance.abs() < 0.5) } else { sinc * window }
        })
    };
    (0..=PHASES).map(row).collect()
});

/// Samples that [`Interpolation::Sinc`] uses on either side of a place.
pub const SINC_REACH: u64 = 16;
const TAPS: usize = SINC_REACH as usize * 2;
const PHASES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(samples: &[i16], step: f64, interpolation: Interpolation) -> SampleLine {
        let mut line = SampleLine::new(((samples.len() - 1) as f64 / step) as usize);
        line.add(ColumnGrid::new(step), 0, 0, samples, interpolation);
        line
    }

    #[test]
    fn both_lines_pass_through_every_sample_and_between_counts() {
        let samples: Vec<i16> = (0..100).map(|at| (at * 7919 % 200 - 100) as i16).collect();
        for interpolation in [Interpolation::Linear, Interpolation::Sinc] {
            let line = line(&samples, 0.125, interpolation);
            for (&sample, place) in samples.iter().zip((0..line.spans.len()).step_by(8)) {
                let (low, high) = line.spans[place].unwrap();
                let sample = f32::from(sample);
                assert!(low <= sample + 1e-3 && high >= sample - 1e-3, "{interpolation:?} {place}");
            }
        }
        let line = line(&[0, 1, 0], 0.125, Interpolation::Linear);
        assert_eq!(line.spans[2], Some((0.25, 0.375)), "an average or a slow signal has no steps");
    }

    #[test]
    fn a_sine_of_less_than_three_samples_a_period_is_drawn_as_it_was() {
        let truth = |at: f64| (at * 0.4 * std::f64::consts::TAU + 0.3).sin() * 10_000.0;
        let samples: Vec<i16> = (0..200).map(|at| truth(f64::from(at)).round() as i16).collect();
        let at_most = |interpolation| {
            let line = line(&samples, 0.1, interpolation);
            // Away from the ends, where samples are missing on one side.
            let inside = 300..line.spans.len() - 300;
            inside.fold(0.0f64, |worst, place| {
                let (low, high) = line.spans[place].unwrap();
                let places = (0..=10).map(|part| truth((place as f64 + f64::from(part) / 10.0) * 0.1));
                let (least, most) =
                    places.fold((f64::MAX, f64::MIN), |(low, high), it| (low.min(it), high.max(it)));
                worst.max((f64::from(low) - least).abs()).max((f64::from(high) - most).abs())
            })
        };
        assert!(at_most(Interpolation::Sinc) < 150.0, "{}", at_most(Interpolation::Sinc));
        assert!(at_most(Interpolation::Linear) > 3000.0, "a straight line cuts the tops off");
    }

    #[test]
    fn a_straight_line_invents_nothing_and_the_other_rings_beside_a_step() {
        let step: Vec<i16> = (0..100).map(|at| if at < 50 { 0 } else { 1000 }).collect();
        let extremes = |interpolation| {
            let spans = line(&step, 0.1, interpolation).spans;
            let spans = spans.iter().flatten();
            spans.fold((f32::MAX, f32::MIN), |(low, high), span| (low.min(span.0), high.max(span.1)))
        };
        assert_eq!(extremes(Interpolation::Linear), (0.0, 1000.0));
        let (low, high) = extremes(Interpolation::Sinc);
        assert!((-150.0..-50.0).contains(&low) && (1050.0..1150.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn reals_have_the_line_of_integers_and_none_beside_a_hole() {
        let samples: Vec<i16> = (0..100).map(|at| (at * 7919 % 200 - 100) as i16).collect();
        let mut real: Vec<f32> = samples.iter().map(|&sample| sample.into()).collect();
        let grid = ColumnGrid::new(0.125);
        for interpolation in [Interpolation::Linear, Interpolation::Sinc] {
            let mut line = SampleLine::new(99 * 8);
            line.add(grid, 0, 0, &real, interpolation);
            let integers = self::line(&samples, 0.125, interpolation);
            assert_eq!(line.spans, integers.spans, "{interpolation:?}");
        }
        real[50] = f32::NAN;
        let mut line = SampleLine::new(99 * 8);
        line.add(grid, 0, 0, &real, Interpolation::Linear);
        let holes: Vec<usize> = (0..99 * 8).filter(|&place| line.spans[place].is_none()).collect();
        // Up to the samples before and after; the columns that touch those still have them.
        assert!(!holes.is_empty() && holes.iter().all(|hole| (49 * 8..51 * 8).contains(hole)), "{holes:?}");
        assert!(holes.contains(&(50 * 8)) && line.samples[50].1.is_nan());
    }

    #[test]
    fn a_constant_stays_one_up_to_the_ends_and_samples_far_into_a_stream_keep_their_places() {
        let flat = line(&[777; 40], 0.1, Interpolation::Sinc);
        assert!(
            flat.spans.iter().flatten().all(|(low, high)| (low - 777.0).abs() + (high - 777.0).abs() < 0.1)
        );
        let begin = 1u64 << 45;
        let mut far = SampleLine::new(400);
        far.add(ColumnGrid::new(0.125), begin * 8, begin, &[5; 50], Interpolation::Linear);
        assert_eq!(far.samples[49], (392.0, 5));
        assert_eq!((far.spacing(), far.nearest(3.9)), (8.0, Some(5)));
    }
}
