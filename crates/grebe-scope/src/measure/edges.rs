//! Edges: crossings of the middle that continue to the other side, and the times between them.

use std::ops::Range;

use super::levels::LevelSet;
use crate::comparator::Comparator;
use crate::value::Value;

/// Edges of all runs so far. Times are in samples.
#[derive(Debug)]
pub(super) struct Edges<V: Value> {
    thresholds: [f64; 3],
    comparator: Comparator<V>,
    /// Rise times that lie within one run.
    rise: Mean,
    fall: Mean,
    /// Edges, with and without such a time.
    rising: u64,
    falling: u64,
    pub(super) high: Mean,
    pub(super) low: Mean,
    rising_cycles: Mean,
    falling_cycles: Mean,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    #[inline]
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

impl<V: Value> Edges<V> {
    pub(super) fn new(levels: &LevelSet) -> Edges<V> {
        let at = |part: f64| levels.base + part * (levels.top - levels.base);
        // An edge counts when it has passed 60 % (or 40 % downwards), or further under noise, so that noise does not count.
        let beyond = (3.0 * levels.noise / (levels.top - levels.base)).clamp(HYSTERESIS_MIN, HYSTERESIS_MAX);
        let (high, low) = (V::level_up(at(0.5 + beyond)), V::level_down(at(0.5 - beyond)));
        Edges {
            thresholds: [at(0.1), at(0.5), at(0.9)],
            comparator: Comparator::new(high, if low < high { low } else { high }),
            rise: Mean::default(),
            fall: Mean::default(),
            rising: 0,
            falling: 0,
            high: Mean::default(),
            low: Mean::default(),
            rising_cycles: Mean::default(),
            falling_cycles: Mean::default(),
        }
    }

    /// Adds a run.
    pub(super) fn add(&mut self, run: &[V]) {
        let (mut last_rise, mut last_fall): (Option<f64>, Option<f64>) = (None, None);
        let mut since = 0;
        self.comparator.clone().each_change(run, |index, rising| {
            let at = self.edge(run, std::mem::replace(&mut since, index)..index, rising);
            if rising {
                if let Some(before) = last_rise.replace(at) {
                    self.rising_cycles.add(at - before);
                }
                if let Some(before) = last_fall {
                    self.low.add(at - before);
                }
            } else {
                if let Some(before) = last_fall.replace(at) {
                    self.falling_cycles.add(at - before);
                }
                if let Some(before) = last_rise {
                    self.high.add(at - before);
                }
            }
        });
    }

    /// Samples from 10 % to 90 % (or back) of the edges of one direction; `None` if only some peaks extend that far.
    pub(super) fn transition(&self, rising: bool) -> Option<f64> {
        let times = if rising { self.rise } else { self.fall };
        times.mean().filter(|_| times.count as f64 >= WHOLE * self.count(rising) as f64)
    }

    /// Edges of one direction.
    pub(super) fn count(&self, rising: bool) -> u64 {
        if rising { self.rising } else { self.falling }
    }

    /// The comparator that separates edges from noise.
    pub(super) fn comparator(&self) -> Comparator<V> {
        self.comparator.clone()
    }

    /// Mean samples per cycle, from the direction with more edges.
    pub(super) fn period(&self) -> Option<f64> {
        let (rising, falling) = (&self.rising_cycles, &self.falling_cycles);
        if rising.count >= falling.count { rising.mean() } else { falling.mean() }
    }

    /// Place where an edge crosses the middle; adds its rise or fall time. The comparator noticed it at the end of `range`,
    /// and the previous edge at its start.
    fn edge(&mut self, run: &[V], range: Range<usize>, rising: bool) -> f64 {
        let (since, index) = (range.start.max(1), range.end);
        let [low, middle, high] = self.thresholds;
        let (near, far) = if rising { (low, high) } else { (high, low) };
        let beyond = |i: usize, level: f64| {
            let sample = run[i].to_f64();
            if rising { sample >= level } else { sample <= level }
        };
        let cross = |i: usize, level: f64| {
            let (a, b) = (run[i - 1].to_f64(), run[i].to_f64());
            let part = (b - level) / (b - a);
            // Equal samples and infinity have no line between them.
            i as f64 - if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
        };
        // Backwards to the sample before each crossing: there is one, because the state came from the other side.
        let mut at = index;
        while at > 1 && beyond(at - 1, middle) {
            at -= 1;
        }
        let crossing = cross(at, middle);
        let mut begin = at;
        while begin > since && beyond(begin - 1, near) {
            begin -= 1;
        }
        // Forwards while the edge continues.
        let mut end = index;
        while end < run.len() && !beyond(end, far) && beyond(end, middle) {
            end += 1;
        }
        let begun = !beyond(begin - 1, near);
        if begun && end < run.len() && beyond(end, far) {
            let time = cross(end, far) - cross(begin, near);
            if rising { self.rise.add(time) } else { self.fall.add(time) }
        }
        let edges = if rising { &mut self.rising } else { &mut self.falling };
        *edges += 1;
        crossing
    }
}

/// Part of its height that an edge must pass beyond the middle.
const HYSTERESIS_MIN: f64 = 0.1;
const HYSTERESIS_MAX: f64 = 0.45;
/// The part of the edges that must go from 10 % to 90 %.
const WHOLE: f64 = 0.25;
