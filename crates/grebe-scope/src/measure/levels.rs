//! Levels of a signal: extremes, mean, and where it rests when low and when high.

use std::fmt::Debug;
use std::ops::Range;

use crate::pyramid::RangeStats;
use crate::value::Value;

/// In values of the samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelSet {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) base: f64,
    pub(super) top: f64,
    /// Standard deviation of the noise on the level that has more of it; 0 where there is none to be seen.
    pub(super) noise: f64,
}

/// Working memory: a histogram of the range between the extremes, count and sum by bin.
#[derive(Debug)]
pub(super) struct Levels<V: Value> {
    bins: Vec<(u64, V::Sum)>,
}

impl<V: Value> Default for Levels<V> {
    fn default() -> Levels<V> {
        Levels { bins: vec![(0, V::Sum::default()); BINS] }
    }
}

impl<V: Value> Levels<V> {
    /// Base and top of `runs`, the rest of `whole`; `None` without samples.
    pub(super) fn find(&mut self, whole: &RangeStats<V>, runs: &[&[V]]) -> Option<LevelSet> {
        let all = RangeStats::of(runs);
        let all = if all.count == 0 { whole } else { &all };
        let (min, max) = V::finite_extremes(all, runs)?;
        self.bins.fill((0, V::Sum::default()));
        runs.iter().for_each(|run| V::count(run, min, max, &mut self.bins));
        // Each half is looked at from its outer end, so that both are treated alike.
        let at = |bin: usize| (self.bins[bin].0, V::sum_to_f64(self.bins[bin].1));
        let lower = mode(BINS / 2, at);
        let upper = mode(BINS / 2, |bin| at(BINS - 1 - bin));
        let bin_width = V::span(min, max) / BINS as f64;
        let noise_bins =
            lower.map_or(0.0, |mode| mode.noise_bins).max(upper.map_or(0.0, |mode| mode.noise_bins));
        Some(LevelSet {
            min: whole.stats.min.to_f64(),
            max: whole.stats.max.to_f64(),
            mean: whole.mean()?,
            deviation: whole.deviation()?,
            base: lower.map_or(min.to_f64(), |mode| mode.level),
            top: upper.map_or(max.to_f64(), |mode| mode.level),
            noise: noise_bins * bin_width,
        })
    }
}

/// What a histogram asks of each kind of value.
pub trait Bins: Sized {
    /// Sum of the samples of a bin.
    type Sum: Copy + Debug + Send + Default;
    /// The sum as a number.
    fn sum_to_f64(sum: Self::Sum) -> f64;
    /// The smallest and the largest finite sample of `all`, which are those of `runs`; `None` without any.
    fn finite_extremes(all: &RangeStats<Self>, runs: &[&[Self]]) -> Option<(Self, Self)>
    where
        Self: Value;
    /// Height of all bins between two extremes.
    fn span(min: Self, max: Self) -> f64;
    /// Counts the finite samples in bins of equal height from `min` to `max`.
    fn count(samples: &[Self], min: Self, max: Self, bins: &mut [(u64, Self::Sum)]);
    /// Whether two levels differ by so much that edges can lie between them.
    fn are_apart(base: f64, top: f64) -> bool;
}

impl Bins for i16 {
    type Sum = i64;

    fn sum_to_f64(sum: i64) -> f64 {
        sum as f64
    }

    fn finite_extremes(all: &RangeStats, _: &[&[i16]]) -> Option<(i16, i16)> {
        let (min, max) = (all.stats.min, all.stats.max);
        (min <= max).then_some((min, max))
    }

    fn span(min: i16, max: i16) -> f64 {
        f64::from(max) - f64::from(min) + 1.0
    }

    fn count(samples: &[i16], min: i16, max: i16, bins: &mut [(u64, i64)]) {
        let (min, max) = (i32::from(min), i32::from(max));
        let bins_per_count = ((BINS as u64) << 32) / (max - min + 1) as u64;
        for &sample in samples {
            let bin = ((i32::from(sample) - min) as u64 * bins_per_count) >> 32;
            let (count, sum) = &mut bins[bin as usize];
            *count += 1;
            *sum += i64::from(sample);
        }
    }

    fn are_apart(base: f64, top: f64) -> bool {
        top - base >= 1.0
    }
}

impl Bins for f32 {
    type Sum = f64;

    fn sum_to_f64(sum: f64) -> f64 {
        sum
    }

    fn finite_extremes(all: &RangeStats<f32>, runs: &[&[f32]]) -> Option<(f32, f32)> {
        let (min, max) = (all.stats.min, all.stats.max);
        if min.is_finite() && max.is_finite() {
            return (min <= max).then_some((min, max));
        }
        let finite = runs.iter().copied().flatten().copied().filter(|sample| sample.is_finite());
        finite.fold(None, |found, sample| {
            let (min, max) = found.unwrap_or((sample, sample));
            Some((sample.min(min), sample.max(max)))
        })
    }

    fn span(min: f32, max: f32) -> f64 {
        f64::from(max) - f64::from(min)
    }

    fn count(samples: &[f32], min: f32, max: f32, bins: &mut [(u64, f64)]) {
        let last = bins.len() - 1;
        // A flat signal has one bin.
        let bins_per_unit = (bins.len() as f64 / f32::span(min, max).max(f64::MIN_POSITIVE)).min(f64::MAX);
        for &sample in samples.iter().filter(|sample| sample.is_finite()) {
            let bin = ((f64::from(sample) - f64::from(min)) * bins_per_unit) as usize;
            let (count, sum) = &mut bins[bin.min(last)];
            *count += 1;
            *sum += f64::from(sample);
        }
    }

    fn are_apart(base: f64, top: f64) -> bool {
        // Sums of equal samples are exact: a level is no other for having been averaged.
        top > base
    }
}

/// Where a half of the histogram is densest.
#[derive(Debug, Clone, Copy)]
struct Mode {
    level: f64,
    noise_bins: f64,
}

/// The mode of `count` bins, the outermost first; `None` where the signal rests nowhere in them: a ramp, or noise alone.
///
/// One bin alone is a poor mode: noise spreads a level over many, and a sine that fits the sample rate fills all alike.
/// So the narrowest stretch that holds a fifth of the samples is looked for.
fn mode(count: usize, bin: impl Fn(usize) -> (u64, f64)) -> Option<Mode> {
    let total = |range: Range<usize>| range.map(|at| bin(at).0).sum::<u64>();
    let all = total(0..count);
    let wanted = (all as f64 * DENSEST).ceil() as u64;
    let (mut densest, mut end, mut held) = (None::<Range<usize>>, 0, 0);
    for start in 0..count {
        while held < wanted && end < count {
            held += bin(end).0;
            end += 1;
        }
        if held < wanted || all == 0 {
            break;
        }
        // Of equals, the outermost.
        if densest.as_ref().is_none_or(|densest| end - start < densest.len()) {
            densest = Some(start..end);
        }
        held -= bin(start).0;
    }
    let densest = densest?;
    let density = |range: Range<usize>| total(range.clone()) as f64 / range.len() as f64;
    let reaches_middle = densest.end > count - MIDDLE;
    if reaches_middle || density(densest.clone()) < STANDS_OUT * density(densest.end..count) {
        return None;
    }
    let mean = |range: Range<usize>| {
        let (number, sum) = range.map(&bin).fold((0, 0.0), |all, bin| (all.0 + bin.0, all.1 + bin.1));
        sum / number as f64
    };
    // Nothing lies beyond a level without noise: that of a sine is the very end.
    if total(0..densest.start) as f64 <= OUTERMOST * all as f64 && densest.start <= densest.len() {
        let outermost = (1..=count).find(|&end| total(0..end) as f64 >= OUTERMOST * all as f64)?;
        return Some(Mode { level: mean(0..outermost), noise_bins: 0.0 });
    }
    // Around the middle of the noise, as wide to both sides.
    let width = densest.len();
    let mut middle = (densest.start + densest.end) / 2;
    let around =
        |middle: usize| middle.saturating_sub(width * 3 / 2)..(middle + width * 3 / 2 + 1).min(count);
    for _ in 0..RECENTRES {
        let (number, sum) =
            around(middle).fold((0, 0), |all, at| (all.0 + bin(at).0, all.1 + bin(at).0 * at as u64));
        middle = (sum as f64 / number.max(1) as f64).round() as usize;
    }
    Some(Mode { level: mean(around(middle)), noise_bins: (width - 1) as f64 / NORMAL_WIDTH })
}

const BINS: usize = 512;
/// The part of a half's samples that its densest stretch holds.
const DENSEST: f64 = 0.2;
/// How much denser a level is than what lies between it and the middle: a ramp has 1, a noisy sine 2.
const STANDS_OUT: f64 = 1.3;
/// Bins next to the middle between the extremes that no level reaches into: noise alone is densest there.
const MIDDLE: usize = BINS / 32;
/// The part of a half's samples at its very end: 1.25 of the 25 of a sine of 50 samples.
const OUTERMOST: f64 = 0.05;
const RECENTRES: usize = 3;
/// Width of the stretch around the middle of a normal distribution that holds a fifth of it, in deviations.
const NORMAL_WIDTH: f64 = 0.507;
