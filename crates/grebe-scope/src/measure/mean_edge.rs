//! Rise and fall times under noise.
//!
//! Noise crosses 10 % and 90 % repeatedly, and the crossings nearest to the middle give an edge that is too short: 15
//! samples of 20 at a noise of a seventh of the amplitude. So the edges of one direction are laid over each other,
//! and their mean is measured, which has less noise.
//!
//! The place of an edge follows from an area: in a window of `2 w` samples around it, the samples above the middle
//! balance those below. The window is as wide as the edge, which is as exact as any method in noise (a deviation of
//! `sigma sqrt(2 w) / amplitude` samples), and no single sample decides.

use super::levels::LevelSet;
use crate::comparator::Comparator;
use crate::value::Value;

/// Working memory: the mean edge, by the time from its middle.
#[derive(Debug)]
pub(super) struct MeanEdge {
    bins: Box<[Bin]>,
}

/// Samples of all edges at one time from their middles.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    sum: f64,
    count: f64,
}

/// The edges to be measured.
#[derive(Debug)]
pub(super) struct NoisyEdges<'a, V: Value> {
    pub(super) runs: &'a [&'a [V]],
    pub(super) levels: &'a LevelSet,
    pub(super) comparator: Comparator<V>,
    pub(super) rising: bool,
    /// Number of edges.
    pub(super) count: u64,
}

impl Default for MeanEdge {
    fn default() -> MeanEdge {
        MeanEdge { bins: vec![Bin::default(); BINS].into() }
    }
}

impl MeanEdge {
    /// Samples from 10 % to 90 % (or back) of the mean edge; `None` if there are too few edges for the noise. `room` is the
    /// distance from an edge to the next, in samples.
    pub(super) fn time<V: Value>(&mut self, edges: &NoisyEdges<'_, V>, room: f64) -> Option<f64> {
        let noise = edges.levels.noise / (edges.levels.top - edges.levels.base);
        let mut half_width = room / 2.0;
        // From a window that holds any edge, to one as wide as these.
        for _ in 0..PASSES {
            let wide = half_width.max(HALF_WIDTH_MIN);
            self.average(edges, wide);
            let time = self.transition(wide, noise)?;
            half_width = time.samples * HALF_WIDTH;
            if half_width.max(HALF_WIDTH_MIN) > wide * SETTLED {
                // As for edges without noise, a straight line connects two samples.
                let samples = time.samples.max(TRANSITION);
                return (time.deviation <= DEVIATION_MAX * samples.max(SHORT)).then_some(samples);
            }
        }
        None
    }

    fn average<V: Value>(&mut self, edges: &NoisyEdges<'_, V>, half_width: f64) {
        self.bins.fill(Bin::default());
        let half_width_samples = half_width.round() as usize;
        let (reach, bins_per_sample) = (half_width * REACH, BINS as f64 / (2.0 * half_width * REACH));
        // Of very many edges, a part is enough.
        let every = ((edges.count as f64 * 2.0 * reach / SAMPLES) as u64).max(1);
        let mut seen = 0;
        for run in edges.runs {
            edges.comparator.clone().each_change(run, |index, rising| {
                seen += u64::from(rising == edges.rising);
                if rising != edges.rising || seen % every != 0 {
                    return;
                }
                let Some(middle) = edges.middle(run, index, half_width_samples) else { return };
                let begin = (middle - reach).ceil().max(0.0) as usize;
                let end = ((middle + reach) as usize).min(run.len());
                for (i, &sample) in run.iter().enumerate().take(end).skip(begin) {
                    let part = edges.part(sample);
                    let bin = ((i as f64 - middle + reach) * bins_per_sample) as usize;
                    if part.is_finite()
                        && let Some(bin) = self.bins.get_mut(bin)
                    {
                        bin.sum += part;
                        bin.count += 1.0;
                    }
                }
            });
        }
    }

    /// Where the mean edge passes 10 % and 90 %, outwards from its middle.
    fn transition(&self, half_width: f64, noise: f64) -> Option<Time> {
        let samples_per_bin = 2.0 * half_width * REACH / BINS as f64;
        let smooth = ((half_width * SMOOTH / samples_per_bin) as usize).max(1);
        let all: f64 = self.bins.iter().map(|bin| bin.count).sum();
        let least = all / BINS as f64 * (2 * smooth + 1) as f64 * STRAYS;
        // The mean around a bin, and its number of samples; straight lines bridge bins that are almost empty.
        let around = |bin: usize| {
            let bins = self.bins.get(bin.checked_sub(smooth)?..=bin + smooth)?;
            let (sum, count) = bins.iter().fold((0.0, 0.0), |all, bin| (all.0 + bin.sum, all.1 + bin.count));
            (count > least).then_some((sum / count, count))
        };
        let cross = |level: f64, bins: &mut dyn Iterator<Item = usize>| {
            // The middle of a step that fits the sample rate lies between samples.
            let mut inner = around(BINS / 2).unwrap_or((0.5, 0.0));
            let mut at = BINS / 2;
            for bin in bins {
                let Some(outer) = around(bin) else { continue };
                if (outer.0 - level) * (inner.0 - level) <= 0.0 && outer.0 != inner.0 {
                    let part = (level - inner.0) / (outer.0 - inner.0);
                    return Some((at as f64 + part * (bin as f64 - at as f64), outer.1));
                }
                (inner, at) = (outer, bin);
            }
            None
        };
        let (begin, few) = cross(0.1, &mut (0..BINS / 2).rev())?;
        let (end, others) = cross(0.9, &mut (BINS / 2 + 1..BINS))?;
        let samples = (end - begin) * samples_per_bin;
        // For each crossing: the remaining noise, divided by the slope.
        let deviation = noise * (1.0 / few + 1.0 / others).sqrt() * samples / TRANSITION;
        Some(Time { samples, deviation })
    }
}

/// A time, and its standard deviation, in samples.
#[derive(Debug, Clone, Copy)]
struct Time {
    samples: f64,
    deviation: f64,
}

impl<V: Value> NoisyEdges<'_, V> {
    /// Position of a sample between the two levels of the edge.
    fn part(&self, sample: V) -> f64 {
        let LevelSet { base, top, .. } = *self.levels;
        let part = (sample.to_f64() - base) / (top - base);
        if self.rising { part } else { 1.0 - part }
    }

    /// The middle of the edge noticed at `index`; `None` if it is not an edge, or the run ends within it.
    fn middle(&self, run: &[V], index: usize, half_width: usize) -> Option<f64> {
        let total = |range: std::ops::Range<usize>| -> f64 {
            run[range].iter().map(|&sample| self.part(sample)).sum()
        };
        let mut at = index;
        for _ in 0..STEPS {
            let width = half_width.min(at).min(run.len() - at);
            if width < 2 {
                return None;
            }
            // Samples above the middle on one side balance those below on the other.
            let late = total(at - width..at + width) - width as f64;
            if !late.is_finite() {
                return None;
            }
            let next = (at as f64 - late).round().clamp(0.0, run.len() as f64) as usize;
            if next == at {
                let quarter = width / 2;
                let (before, after) = (total(at - width..at - quarter), total(at + quarter..at + width));
                let outer = (width - quarter) as f64;
                let is_edge = before < STANDS_OUT * outer && after > (1.0 - STANDS_OUT) * outer;
                return is_edge.then_some(at as f64 - late - 0.5);
            }
            at = next;
        }
        None
    }
}

const BINS: usize = 128;
/// Minimum samples of a mean edge, if there are more: at 20 samples per edge, 330 edges.
const SAMPLES: f64 = 16_384.0;
const PASSES: usize = 8;
const STEPS: usize = 8;
/// Part of a straight edge between 10 % and 90 %.
pub(super) const TRANSITION: f64 = 0.8;
/// Half of the window that finds an edge, in multiples of its 10-90 % time: all of a straight edge.
const HALF_WIDTH: f64 = 0.625;
const HALF_WIDTH_MIN: f64 = 2.0;
/// Extent of the mean edge to both sides, in half windows.
const REACH: f64 = 2.0;
/// Smoothing of the mean edge to both sides, in half windows: half the distance from the corner of a straight edge to 10 %.
const SMOOTH: f64 = 0.15;
const SETTLED: f64 = 0.8;
/// If a signal fits the sample rate, samples lie at certain times of the edge only, and noise scatters a few to
/// others. Bins with less than this part of the usual number are ignored.
const STRAYS: f64 = 0.25;
const STANDS_OUT: f64 = 0.3;
/// Maximum standard deviation of a displayed time, as a part of it.
const DEVIATION_MAX: f64 = 0.035;
/// Edges shorter than this are displayed with the precision of this length.
const SHORT: f64 = 2.0;
