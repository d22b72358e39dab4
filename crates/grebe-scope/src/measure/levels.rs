//! Levels of a signal: extremes, mean, and the levels where it rests when low and when high.

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
    /// Standard deviation of the noise on the noisier level; 0 if none is visible.
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
        let (min, max) = V::finite_extremes((all.stats.min, all.stats.max), runs)?;
        self.bins.fill((0, V::Sum::default()));
        runs.iter().for_each(|run| V::count(run, min, max, &mut self.bins));
        // Each half is searched from its outer end, so that both are treated alike.
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

/// The densest place in a half of the histogram.
#[derive(Debug, Clone, Copy)]
struct Mode {
    level: f64,
    noise_bins: f64,
}

/// The mode of `count` bins, the outermost first; `None` if the signal rests nowhere in them: a ramp, or noise alone.
///
/// A single bin is a poor mode: noise spreads a level over many bins, and a sine that fits the sample rate fills all
/// equally. So the mode is the narrowest range that holds a fifth of the samples.
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
        // Of equal ranges, the outermost.
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
    // Without noise, nothing lies beyond a level: for a sine, it is the very end.
    if total(0..densest.start) as f64 <= OUTERMOST * all as f64 && densest.start <= densest.len() {
        let outermost = (1..=count).find(|&end| total(0..end) as f64 >= OUTERMOST * all as f64)?;
        return Some(Mode { level: mean(0..outermost), noise_bins: 0.0 });
    }
    // Around the middle of the noise, equally wide to both sides.
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
/// Part of a half's samples in its densest range.
const DENSEST: f64 = 0.2;
/// Minimum ratio of a level's density to that between it and the middle: a ramp has 1, a noisy sine 2.
const STANDS_OUT: f64 = 1.3;
/// Bins at the middle between the extremes that no level may include: noise alone is densest there.
const MIDDLE: usize = BINS / 32;
/// The part of a half's samples at its very end: 1.25 of the 25 of a sine of 50 samples.
const OUTERMOST: f64 = 0.05;
const RECENTRES: usize = 3;
/// Width of the range around the middle of a normal distribution that holds a fifth of it, in standard deviations.
const NORMAL_WIDTH: f64 = 0.507;
