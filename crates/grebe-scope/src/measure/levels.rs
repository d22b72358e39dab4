//! Levels of a signal: extremes, mean, and where it rests when low and when high.

use crate::pyramid::RangeStats;
use crate::simd::{Stats, stats};

/// In raw counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelSet {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) base: f64,
    pub(super) top: f64,
}

/// Working memory: a histogram of the range between the extremes.
#[derive(Debug)]
pub(super) struct Levels {
    bins: Vec<(u64, i64)>,
}

impl Default for Levels {
    fn default() -> Levels {
        Levels { bins: vec![(0, 0); BINS] }
    }
}

impl Levels {
    /// `None` without samples.
    pub(super) fn find(&mut self, runs: &[&[i16]]) -> Option<LevelSet> {
        let mut all = Stats::EMPTY;
        let mut count = 0u64;
        for run in runs {
            all.merge(&stats(run));
            count += run.len() as u64;
        }
        if count == 0 {
            return None;
        }
        let (min, max) = (i32::from(all.min), i32::from(all.max));
        let range = RangeStats { stats: all, count, range: 0..count };
        self.fill(runs, min, max);
        let (lower, upper) = self.bins.split_at(BINS / 2);
        Some(LevelSet {
            min: min.into(),
            max: max.into(),
            mean: range.mean()?,
            deviation: range.deviation()?,
            base: mode(lower).unwrap_or(min.into()),
            top: mode(upper).unwrap_or(max.into()),
        })
    }

    fn fill(&mut self, runs: &[&[i16]], min: i32, max: i32) {
        self.bins.fill((0, 0));
        let bins_per_count = ((BINS as u64) << 32) / (max - min + 1) as u64;
        for &sample in runs.iter().copied().flatten() {
            let bin = ((i32::from(sample) - min) as u64 * bins_per_count) >> 32;
            let (count, sum) = &mut self.bins[bin as usize];
            *count += 1;
            *sum += i64::from(sample);
        }
    }
}

/// Mean of the samples of the fullest bin, if it stands out: a ramp or noise has no level it rests at.
fn mode(half: &[(u64, i64)]) -> Option<f64> {
    let all: u64 = half.iter().map(|bin| bin.0).sum();
    let (count, sum) = half.iter().max_by_key(|bin| bin.0)?;
    (*count > 0 && *count as f64 >= STANDS_OUT * all as f64).then(|| *sum as f64 / *count as f64)
}

const BINS: usize = 256;
/// A sine has 8 % of a half in its outermost bin, noise 2.5 % and a ramp 0.8 % in any.
const STANDS_OUT: f64 = 0.05;
