//! Waves computed from a phase that is an integer: 2^64 is a turn, so that it wraps exactly and never drifts.

use std::sync::Arc;

use super::spec::{ChannelSpec, Scale};

/// How the phase advances from sample to sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    /// At sample 0.
    phase: u64,
    /// From sample 0 to 1.
    step: u64,
    /// What the step grows by per sample.
    growth: u64,
    /// The course begins again after this many samples; 0 = never.
    samples: u64,
}

/// What a phase becomes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Sine(Scale),
    Square(Scale),
    Triangle(Scale),
    Saw(Scale),
}

impl Course {
    pub(super) fn constant(spec: &ChannelSpec, rate_hz: f64) -> Self {
        Self {
            phase: turns(spec.phase_turns),
            step: turns(spec.frequency_hz / rate_hz),
            growth: 0,
            samples: 0,
        }
    }

    pub(super) fn sweep(spec: &ChannelSpec, end_hz: f64, samples: u64, rate_hz: f64) -> Self {
        let growth = (end_hz - spec.frequency_hz) / rate_hz / samples as f64;
        // Half a growth on top: the frequency is right in the middle of each step.
        let step = spec.frequency_hz / rate_hz + growth / 2.0;
        Self { phase: turns(spec.phase_turns), step: turns(step), growth: signed_turns(growth), samples }
    }

    /// Phase and step at a sample.
    #[inline]
    fn at(&self, index: u64) -> (u64, u64) {
        let index = if self.samples > 0 { index % self.samples } else { index };
        // index (index - 1) / 2 modulo 2^64: the even factor is halved first.
        let (half, whole) =
            if index.is_multiple_of(2) { (index / 2, index.wrapping_sub(1)) } else { (index / 2, index) };
        let triangle = half.wrapping_mul(whole);
        let phase = self
            .phase
            .wrapping_add(self.step.wrapping_mul(index))
            .wrapping_add(self.growth.wrapping_mul(triangle));
        (phase, self.step.wrapping_add(self.growth.wrapping_mul(index)))
    }

    /// Samples from `index` to where the course begins again.
    #[inline]
    fn left(&self, index: u64) -> usize {
        if self.samples == 0 { usize::MAX } else { (self.samples - index % self.samples) as usize }
    }
}

impl Shape {
    /// One sample, to the last bit.
    pub(super) fn sample(&self, turns: f64) -> i16 {
        let turns = turns.rem_euclid(1.0);
        let (wave, scale) = match *self {
            Shape::Sine(scale) => ((turns * std::f64::consts::TAU).sin(), scale),
            Shape::Square(scale) => (if turns < 0.5 { 1.0 } else { -1.0 }, scale),
            Shape::Triangle(scale) => (1.0 - 4.0 * ((turns + 0.25).rem_euclid(1.0) - 0.5).abs(), scale),
            Shape::Saw(scale) => (2.0 * turns - 1.0, scale),
        };
        // `as` saturates.
        (wave * scale.amplitude + scale.offset).round() as i16
    }
}

/// One period of a shape, finely enough that looking a sample up is within one count: half an entry away, the steepest wave
/// is off by 0.4 counts, and rounding adds half a count. (A polynomial instead took three times as long.)
#[derive(Debug, Clone)]
pub(super) struct Table(Arc<[i16]>);

impl Table {
    pub(super) fn new(shape: &Shape) -> Self {
        let middle = |entry: usize| (entry as f64 + 0.5) / TABLE_SAMPLES as f64;
        Self((0..TABLE_SAMPLES).map(|entry| shape.sample(middle(entry))).collect())
    }

    /// Writes the samples from `index` on.
    pub(super) fn fill(&self, course: &Course, mut index: u64, mut out: &mut [i16]) {
        let Some(table) = self.0.first_chunk::<TABLE_SAMPLES>() else { return };
        while !out.is_empty() {
            let length = out.len().min(course.left(index));
            let (now, rest) = out.split_at_mut(length);
            let (mut phase, mut step) = course.at(index);
            for sample in now {
                *sample = table[(phase >> (u64::BITS - TABLE_SAMPLES.ilog2())) as usize];
                phase = phase.wrapping_add(step);
                step = step.wrapping_add(course.growth);
            }
            index = index.wrapping_add(length as u64);
            out = rest;
        }
    }
}

/// Turns as an integer; whole turns are dropped.
fn turns(turns: f64) -> u64 {
    let fraction = turns - turns.floor();
    // 2^64 itself saturates to the largest phase, one part in 2^64 away.
    (fraction * 18_446_744_073_709_551_616.0) as u64
}

/// Less than half a turn either way, as precise as an f64 is near 0.
fn signed_turns(turns: f64) -> u64 {
    (turns * 18_446_744_073_709_551_616.0).round() as i64 as u64
}

/// 512 KiB: the second-level cache of most machines holds one.
const TABLE_SAMPLES: usize = 1 << 18;
