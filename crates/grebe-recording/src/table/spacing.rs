//! The even spacing of times that were rounded, that jitter, and between which samples are missing.
//!
//! ```text
//!  time i = round(start + (i + missing before i) / rate + jitter, resolution)
//!
//!  1  a first period: the mean of the steps without jumps
//!  2  steps along it: which sample of the grid each time is
//!  3  a line through times and samples, over the longest stretch first, then over all that the error of the rate can bridge
//!  4  all rates that explain the times within their resolution; of these the number with the fewest digits
//! ```

use super::steps::{Spacing, Step, Steps};

/// Why times have no even spacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uneven {
    /// There are not two different ones, or they are written too coarsely.
    Standing,
    /// Most steps are of different lengths.
    Irregular,
}

impl Spacing {
    /// The same at another, nearly equal rate.
    pub fn with_rate(self, rate_hz: f64) -> Self {
        let error = self.error.max((rate_hz / self.rate_hz - 1.0).abs());
        let Self { resolution_s, jitter_s, tolerance_s, gap_s, .. } = self;
        let other = Self::of_period(1.0 / rate_hz, resolution_s, jitter_s, error);
        Self { rate_hz, tolerance_s, gap_s, ..other }
    }

    /// The spacing of these times in seconds, with a resolution of `resolution_s`.
    ///
    /// ```
    /// use grebe_recording::table::Spacing;
    ///
    /// // 860 samples a second, in whole milliseconds.
    /// let times: Vec<f64> = (0..10_000).map(|i| (f64::from(i) / 0.86).floor() / 1e3).collect();
    /// assert_eq!(Spacing::of(&times, 1e-3).unwrap().rate_hz, 860.0);
    /// ```
    ///
    /// # Errors
    /// If they have none.
    pub fn of(times_s: &[f64], resolution_s: f64) -> Result<Self, Uneven> {
        let first_s = first_period(times_s, resolution_s).ok_or(Uneven::Standing)?;
        if resolution_s > first_s * times_s.len() as f64 / 2.0 {
            return Err(Uneven::Standing);
        }
        let walk = Self::of_walk(times_s, resolution_s);
        // Until the period is more precise, only jumps are gaps.
        let jitter_s = if resolution_s > 0.8 * first_s { resolution_s / 2.0 } else { 0.4 * first_s };
        let even = Self::refined(times_s, Self::of_period(first_s, resolution_s, jitter_s, 1e-3));
        let even = even.filter(|(it, gaps)| {
            walk.is_none() || it.jitter_s < 0.3 * it.period_s || *gaps <= times_s.len() / 100
        });
        let found = match (Self::of_multiples(times_s, resolution_s), even) {
            // Rounding makes nearly all of the longer steps.
            (Some((_, longer)), Some((even, gaps)))
                if longer > 2 && gaps <= longer / 8 && even.jitter_s == 0.0 =>
            {
                Some(even)
            }
            (Some((exact, _)), _) => Some(exact),
            (None, Some((even, _))) => Some(even),
            (None, None) => walk.or_else(|| Self::of_bursts(times_s, resolution_s)),
        };
        found.ok_or(Uneven::Irregular)
    }

    /// Spacing in which each step is a multiple of the shortest one; also returns the number of longer steps.
    fn of_multiples(times_s: &[f64], resolution_s: f64) -> Option<(Self, usize)> {
        let units = |pair: &[f64]| {
            let steps = (pair[1] - pair[0]) / resolution_s;
            (steps >= 0.9 && (steps - steps.round()).abs() < 1e-2).then_some(steps.round() as u64)
        };
        let steps = times_s.windows(2).map(units).collect::<Option<Vec<u64>>>()?;
        let shortest = *steps.iter().min()?;
        let longer = steps.iter().filter(|&&step| step != shortest).count();
        let is_plain = longer == 0 && shortest > 1;
        let is_grid = steps.iter().all(|step| step % shortest == 0);
        if is_plain || !is_grid || longer > (times_s.len() / 4).max(1) {
            return None;
        }
        let mut grid = Grid { samples: vec![0], begins: vec![0], odd: 0 };
        for (at, step) in steps.iter().enumerate() {
            grid.samples.push(grid.samples[at] + step / shortest);
        }
        let period_s = shortest as f64 * resolution_s;
        let fit = Fit {
            period_s,
            error: resolution_s / period_s,
            groups: std::iter::once(0..times_s.len()).collect(),
        };
        let (low_s, high_s) = fit.feasible(times_s, &grid, resolution_s);
        let error = (high_s - low_s) / 2.0 / period_s;
        let rate_hz = simplest(1.0 / high_s, 1.0 / low_s);
        // They are closer to the grid than their resolution.
        let found = Self::of_period(1.0 / rate_hz, resolution_s.min(0.5 * period_s), 0.0, error);
        Some((Self { rate_hz, ..found }, longer))
    }

    /// Spacing of a program that waits between its lines: steps vary, and none skips a sample.
    fn of_walk(times_s: &[f64], resolution_s: f64) -> Option<Self> {
        let count = times_s.len() - 1;
        let period_s = (times_s[count] - times_s[0]) / count as f64;
        let steps = || times_s.windows(2).map(|pair| pair[1] - pair[0]);
        let is_usual = |step: &f64| (0.2 * period_s..WALK * period_s).contains(step);
        if !(period_s > 0.0 && steps().filter(|step| !is_usual(step)).count() <= count / 1_000) {
            return None;
        }
        let square = steps().map(|step| (step - period_s).powi(2)).sum::<f64>() / count as f64;
        let error = 4.0 * (square / count as f64).sqrt() / period_s;
        let rate_hz = simplest((1.0 - error) / period_s, (1.0 + error) / period_s);
        let found = Self::of_period(1.0 / rate_hz, resolution_s, 0.45 * period_s, error);
        Some(Self { rate_hz, gap_s: WALK * period_s, ..found })
    }

    fn of_period(period_s: f64, resolution_s: f64, jitter_s: f64, error: f64) -> Self {
        Self {
            rate_hz: 1.0 / period_s,
            period_s,
            error,
            resolution_s,
            jitter_s,
            tolerance_s: (resolution_s / 2.0).max(0.01 * period_s) * 1.001 + jitter_s,
            drift_s: error.clamp(1e-9, 1e-2) * period_s,
            gap_s: 1.9 * period_s - resolution_s - (2.0 * jitter_s).min(0.7 * period_s),
        }
    }

    /// A better spacing from the times, and the number of gaps; `None` if the times are irregular.
    fn refined(times_s: &[f64], begin: Self) -> Option<(Self, usize)> {
        let mut spacing = begin;
        let mut grid = Grid::default();
        for turn in 0..TURNS {
            grid.place(times_s, &spacing);
            let fit = Fit::of(times_s, &grid, &spacing, turn == 0)?;
            let jitter_s = grid.jitter_s(times_s, fit.period_s, spacing.resolution_s);
            spacing = Self::of_period(fit.period_s, spacing.resolution_s, jitter_s, fit.error);
        }
        grid.place(times_s, &spacing);
        if !grid.is_even() {
            return None;
        }
        let fit = Fit::of(times_s, &grid, &spacing, false)?;
        let (low_s, high_s) = fit.feasible(times_s, &grid, spacing.resolution_s);
        let rate_hz = simplest(1.0 / high_s, 1.0 / low_s);
        let error = (high_s - low_s) / 2.0 / fit.period_s;
        let found = Self::of_period(1.0 / rate_hz, spacing.resolution_s, spacing.jitter_s, error);
        Some((Self { rate_hz, ..found }, grid.begins.len() - 1))
    }

    /// Times that many samples share, as a driver hands them over: they say the rate on the whole.
    fn of_bursts(times_s: &[f64], resolution_s: f64) -> Option<Self> {
        let grid = Grid { samples: (0..times_s.len() as u64).collect(), begins: vec![0], ..Grid::default() };
        let fit = Fit::of(times_s, &grid, &Self::of_period(1.0, 0.0, 0.0, 0.0), false)?;
        let range_s = range(times_s, &grid, 0..times_s.len(), fit.period_s);
        let count = times_s.len() as f64;
        let steps = || times_s.windows(2).map(|pair| pair[1] - pair[0]);
        let shared = steps().filter(|step| step.abs() < 0.1 * fit.period_s).count();
        if steps().any(|step| step < 0.0)
            || shared < times_s.len() / 2
            || range_s > fit.period_s * count / 16.0
        {
            return None;
        }
        let error = range_s / fit.period_s / count;
        let rate_hz = simplest((1.0 - error) / fit.period_s, (1.0 + error) / fit.period_s);
        let found = Self::of_period(1.0 / rate_hz, resolution_s, range_s, error);
        Some(Self { rate_hz, ..found })
    }
}

/// The mean of the steps without jumps.
fn first_period(times_s: &[f64], resolution_s: f64) -> Option<f64> {
    let steps = || times_s.windows(2).map(|pair| pair[1] - pair[0]);
    let mut forward: Vec<f64> = steps().filter(|&step| step > 0.0).collect();
    let at = forward.len().checked_sub(1)? / 2;
    let (_, &mut median, _) = forward.select_nth_unstable_by(at, f64::total_cmp);
    let mean_to = |most: f64| {
        let usual = steps().filter(|&step| step >= 0.0 && step <= most);
        let (sum, count) = usual.fold((0.0, 0u64), |(sum, count), step| (sum + step, count + 1));
        sum / count as f64
    };
    let mean = mean_to(JUMP * median);
    // If several samples share a time, only steps to the next time count.
    let mean = if mean < 0.95 * resolution_s { mean_to(1.5 * resolution_s) } else { mean };
    Some(mean).filter(|period| *period > 0.0 && period.is_finite())
}

/// Assignment of times to samples of a grid.
#[derive(Debug, Default)]
struct Grid {
    samples: Vec<u64>,
    /// Begins of stretches without a gap.
    begins: Vec<usize>,
    /// Steps that are explained by no grid.
    odd: usize,
}

impl Grid {
    fn place(&mut self, times_s: &[f64], spacing: &Spacing) {
        let mut steps = Steps::new(*spacing);
        self.samples.clear();
        self.begins.clear();
        self.begins.push(0);
        self.odd = 0;
        let mut sample = 0u64;
        for at in 0..times_s.len() {
            let step = steps.take(times_s, at);
            let advance = match step {
                Step::Next => u64::from(at > 0),
                Step::Gap(missing) => missing + 1,
                Step::Doubled => 0,
                Step::Back => 1,
            };
            if matches!(step, Step::Gap(_) | Step::Back) {
                self.begins.push(at);
            }
            sample = sample.saturating_add(advance);
            self.samples.push(sample);
            let is_off = || {
                let off = times_s[at] - times_s[at - 1] - advance as f64 * spacing.period_s;
                off.abs() > 0.7 * spacing.period_s + spacing.resolution_s
            };
            self.odd += usize::from(matches!(step, Step::Doubled | Step::Back) || at > 0 && is_off());
        }
    }

    fn stretches(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let ends = self.begins.iter().skip(1).copied().chain([self.samples.len()]);
        self.begins.iter().copied().zip(ends).map(|(begin, end)| begin..end)
    }

    /// How far times are off beyond their resolution, within short runs, so that a clock that drifts is none that jitters.
    fn jitter_s(&self, times_s: &[f64], period_s: f64, resolution_s: f64) -> f64 {
        let mut ranges = Vec::new();
        for stretch in self.stretches() {
            let (mut begin, end) = (stretch.start, stretch.end);
            while begin + 1 < end {
                let run = begin..end.min(begin + RUN);
                begin = run.end;
                ranges.push(range(times_s, self, run, period_s));
            }
        }
        if ranges.is_empty() {
            return 0.0;
        }
        let at = (ranges.len() - 1) * 49 / 50;
        let (_, &mut most, _) = ranges.select_nth_unstable_by(at, f64::total_cmp);
        let beyond_s = (most - resolution_s) / 2.0;
        if beyond_s <= 0.01 * period_s { 0.0 } else { (beyond_s * 1.1).min(0.45 * period_s) }
    }

    fn is_even(&self) -> bool {
        let count = self.samples.len();
        self.begins.len() - 1 <= (count / 4).max(2) && self.odd <= (count / 16).max(1)
    }
}

/// How far apart times are, taken back to one sample.
fn range(times_s: &[f64], grid: &Grid, run: std::ops::Range<usize>, period_s: f64) -> f64 {
    let first = grid.samples[run.start];
    let off = |at: usize| times_s[at] - (grid.samples[at] - first) as f64 * period_s;
    let (low, high) =
        run.map(off).fold((f64::MAX, f64::MIN), |(low, high), off| (low.min(off), high.max(off)));
    high - low
}

/// A line through times and samples.
#[derive(Debug)]
struct Fit {
    period_s: f64,
    /// As a part of it.
    error: f64,
    /// Fitted stretches whose gaps could be bridged.
    groups: Vec<std::ops::Range<usize>>,
}

impl Fit {
    fn of(times_s: &[f64], grid: &Grid, spacing: &Spacing, is_first: bool) -> Option<Self> {
        let groups = if is_first {
            vec![grid.stretches().max_by_key(std::ops::Range::len)?]
        } else {
            grouped(times_s, grid, spacing)
        };
        let (mut across, mut along, mut count) = (0.0, 0.0, 0.0);
        let mut centres = Vec::with_capacity(groups.len());
        for group in &groups {
            let centre = Centre::of(times_s, grid, group);
            for at in group.clone() {
                let (x, y) = centre.from(times_s, grid, at);
                (across, along) = (across + x * y, along + x * x);
            }
            count += group.len() as f64 - 1.0;
            centres.push(centre);
        }
        let period_s = across / along;
        if !(period_s > 0.0 && period_s.is_finite()) {
            return is_first.then_some(Self { period_s: spacing.period_s, error: spacing.error, groups });
        }
        let squares = groups.iter().zip(&centres).flat_map(|(group, centre)| {
            group.clone().map(move |at| {
                let (x, y) = centre.from(times_s, grid, at);
                (y - x * period_s).powi(2)
            })
        });
        let square = squares.sum::<f64>() / (count - 1.0).max(1.0);
        let least = (spacing.resolution_s / 4.0).powi(2);
        let error = 4.0 * ((square + least) / along).sqrt() / period_s;
        let fit = Self { period_s, error, groups };
        // Rounding is not noise: its remainders may have the same sign for thousands of samples.
        Some(if spacing.resolution_s > 0.2 * period_s {
            fit.within(times_s, grid, spacing.resolution_s)
        } else {
            fit
        })
    }

    fn within(self, times_s: &[f64], grid: &Grid, resolution_s: f64) -> Self {
        let (low_s, high_s) = self.feasible(times_s, grid, resolution_s);
        let period_s = f64::midpoint(low_s, high_s);
        Self { period_s, error: (high_s - low_s) / 2.0 / period_s, ..self }
    }

    /// The least and the greatest period that the times may have: those that explain all of them within their
    /// resolution, or as well as this one does.
    fn feasible(&self, times_s: &[f64], grid: &Grid, resolution_s: f64) -> (f64, f64) {
        let widest = |period_s: f64| {
            self.groups.iter().map(|group| range(times_s, grid, group.clone(), period_s)).fold(0.0, f64::max)
        };
        // Rounding leaves less than that.
        let within_s = resolution_s * (1.0 - 1e-7);
        let is_good = |period_s: f64| widest(period_s) <= within_s;
        let error_s = self.period_s * self.error;
        let samples = grid.samples.last().map_or(1.0, |last| (*last as f64).max(1.0));
        // The fit of coarse times may lie beside all that explain them.
        let tries =
            (0..=16).map(|at| self.period_s + f64::from(at - 8) / 8.0 * (error_s + resolution_s / samples));
        let nearest = |one: &f64, other: &f64| widest(*one).total_cmp(&widest(*other));
        let best = tries.min_by(nearest).filter(|&period_s| is_good(period_s));
        let Some(best) = best else {
            return ((self.period_s - error_s).max(0.5 * self.period_s), self.period_s + error_s);
        };
        let end = |sign: f64| {
            let reach_s = (2.0 * (error_s + resolution_s / samples)).min(0.5 * best);
            let (mut good, mut bad) = (best, best + sign * reach_s);
            for _ in 0..BISECTIONS {
                let middle = f64::midpoint(good, bad);
                *(if is_good(middle) { &mut good } else { &mut bad }) = middle;
            }
            good
        };
        (end(-1.0), end(1.0))
    }
}

/// The middle of a group, from which a line through it is fitted.
#[derive(Debug, Clone, Copy)]
struct Centre {
    first: usize,
    sample: f64,
    time_s: f64,
}

impl Centre {
    fn of(times_s: &[f64], grid: &Grid, group: &std::ops::Range<usize>) -> Self {
        let first = group.start;
        let zero = Self { first, sample: 0.0, time_s: 0.0 };
        let (x, y) = group
            .clone()
            .map(|at| zero.from(times_s, grid, at))
            .fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let count = group.len() as f64;
        Self { first, sample: x / count, time_s: y / count }
    }

    fn from(&self, times_s: &[f64], grid: &Grid, at: usize) -> (f64, f64) {
        let sample = (grid.samples[at] - grid.samples[self.first]) as f64;
        (sample - self.sample, times_s[at] - times_s[self.first] - self.time_s)
    }
}

/// Stretches of which the gaps between are known to a sample.
fn grouped(times_s: &[f64], grid: &Grid, spacing: &Spacing) -> Vec<std::ops::Range<usize>> {
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    for stretch in grid.stretches() {
        match groups.last_mut() {
            Some(group) => {
                let missing = (grid.samples[stretch.start] - grid.samples[group.end - 1]) as f64;
                let is_later = times_s[stretch.start] > times_s[group.end - 1];
                if is_later && missing * spacing.error < 0.2 {
                    group.end = stretch.end;
                } else {
                    groups.push(stretch);
                }
            }
            None => groups.push(stretch),
        }
    }
    groups
}

/// The rate in a range with the fewest digits; or that of the period with the fewest.
fn simplest(low_hz: f64, high_hz: f64) -> f64 {
    // Times of many digits leave a range that the rounding of an f64 is wider than.
    let (low_hz, high_hz) = (low_hz * (1.0 - ROUNDING), high_hz * (1.0 + ROUNDING));
    let rounded = |number: f64, digits: usize| format!("{number:.digits$e}").parse().unwrap_or(number);
    let middle_hz = f64::midpoint(low_hz, high_hz);
    let middle_s = f64::midpoint(1.0 / low_hz, 1.0 / high_hz);
    for digits in 0..DIGITS_MAX {
        let rate_hz: f64 = rounded(middle_hz, digits);
        if (low_hz..=high_hz).contains(&rate_hz) {
            return rate_hz;
        }
        let by_period_hz = reciprocal(rounded(middle_s, digits));
        if (low_hz..=high_hz).contains(&by_period_hz) {
            return by_period_hz;
        }
    }
    middle_hz
}

/// The rate of a rounded period, at the precision of its digits.
pub(crate) fn reciprocal(seconds: f64) -> f64 {
    let rate_hz = 1.0 / seconds;
    let short: f64 = format!("{rate_hz:.9e}").parse().unwrap_or(rate_hz);
    if (short * seconds - 1.0).abs() < 1e-12 { short } else { rate_hz }
}

/// A step of this many usual ones is a jump.
const JUMP: f64 = 2.5;
/// Longer steps do not come from a program that only waits.
const WALK: f64 = 1.8;
const TURNS: usize = 4;
const RUN: usize = 64;
const BISECTIONS: usize = 40;
const DIGITS_MAX: usize = 12;
const ROUNDING: f64 = 1e-12;
