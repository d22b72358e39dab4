//! Waves whose period is a whole number of samples: computed once, copied from then on.

use std::sync::Arc;

use super::phase::Shape;

/// Writes the samples from `index` on of a wave that repeats with `tile`.
#[inline]
pub(super) fn fill(tile: &[i16], index: u64, mut out: &mut [i16]) {
    let mut at = (index % tile.len() as u64) as usize;
    while !out.is_empty() {
        let length = out.len().min(tile.len() - at);
        let (now, rest) = out.split_at_mut(length);
        now.copy_from_slice(&tile[at..at + length]);
        (out, at) = (rest, 0);
    }
}

/// The smallest block of a wave of `frequency` periods per sample: how many periods it holds, in how many samples.
///
/// Walks the convergents of the continued fraction of `frequency`; one that is as good as an f64 can say is exact.
pub(super) fn periods(frequency: f64, samples_max: u64) -> Option<(u64, u64)> {
    let (mut before, mut now) = ((1u64, 0u64), (0u64, 1u64));
    let mut rest = frequency;
    for _ in 0..CONVERGENTS_MAX {
        let ratio = now.0 as f64 / now.1 as f64;
        if (ratio - frequency).abs() <= frequency * f64::EPSILON {
            return Some(now);
        }
        rest = rest.fract().recip();
        if !rest.is_finite() || rest > samples_max as f64 {
            return None;
        }
        let digit = rest as u64;
        let next = (digit * now.0 + before.0, digit * now.1 + before.1);
        if next.1 > samples_max {
            return None;
        }
        (before, now) = (now, next);
    }
    None
}

/// Computes `periods` periods in `samples` samples, repeated to a length that is worth copying.
pub(super) fn compute(shape: &Shape, phase_turns: f64, periods: u64, samples: u64) -> Arc<[i16]> {
    let sample = |index: u64| {
        // Exact: the product stays below 2^41.
        let turns = (index * periods % samples) as f64 / samples as f64;
        shape.sample(turns + phase_turns)
    };
    let once: Vec<i16> = (0..samples).map(sample).collect();
    once.repeat(copies(samples)).into()
}

/// One period that `fill` computes, repeated to a length that is worth copying.
pub(super) fn repeat(samples: u64, fill: impl FnOnce(&mut [i16])) -> Arc<[i16]> {
    let mut once = vec![0; samples as usize];
    fill(&mut once);
    once.repeat(copies(samples)).into()
}

fn copies(samples: u64) -> usize {
    TILE_SAMPLES_MIN.div_ceil(samples) as usize
}

/// 64 KiB: a block rarely needs more than two copies, and eight channels' tiles stay in the second-level cache.
const TILE_SAMPLES_MIN: u64 = 1 << 15;
/// A continued fraction's denominators at least double every other step.
const CONVERGENTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::periods;

    #[test]
    fn rational_frequencies_are_found_and_others_are_not() {
        for (frequency_hz, rate_hz, expected) in [
            (0.0, 1e6, Some((0, 1))),
            (500_000.0, 1e6, Some((1, 2))),
            (1_000.0, 25e6, Some((1, 25_000))),
            (440.0, 48_000.0, Some((11, 1_200))),
            (0.1, 360.0, Some((1, 3_600))),
            (1.25e6, 100e6, Some((1, 80))),
            (333_333.25, 1e6, Some((1_333_333, 4_000_000))),
            (1e6 / 3.0, 1e6, Some((1, 3))),
            (1e-3, 1e9, None),
            (std::f64::consts::PI, 1e3, None),
        ] {
            let expected = expected.filter(|&(_, samples)| samples <= 1 << 20);
            assert_eq!(periods(frequency_hz / rate_hz, 1 << 20), expected, "{frequency_hz} at {rate_hz}");
        }
    }
}
