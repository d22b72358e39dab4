//! Rotation of complex samples at a constant frequency.

use std::f64::consts::TAU;

use crate::simd::turn;

/// Rotation at a constant frequency. The phase is a function of the sample's index.
#[derive(Debug, Clone)]
pub(crate) struct Oscillator {
    /// Step per sample; 2^64 is a turn.
    step: u64,
    /// Rotation of each sample of a piece relative to its first: each cosine twice, for I and Q.
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Oscillator {
    /// With a step per sample of this part of a turn, at most half of one.
    pub(crate) fn new(turns: f64) -> Self {
        // Fits, because it is at most half a turn.
        let step = (turns * TURN).round() as i64 as u64;
        let mut made = Self { step, cosines: vec![1.0; 2 * PIECE], sines: vec![0.0; 2 * PIECE] };
        for index in 0..PIECE {
            let [cos, sin] = made.at(index as u64);
            made.cosines[2 * index..2 * index + 2].fill(cos);
            made.sines[2 * index..2 * index + 2].fill(sin);
        }
        made
    }

    /// Rotation at a sample.
    fn at(&self, index: u64) -> [f32; 2] {
        let turns = self.step.wrapping_mul(index) as i64 as f64 / TURN;
        let (sin, cos) = (turns * TAU).sin_cos();
        [cos as f32, sin as f32]
    }

    /// Rotates samples, I and Q each, from this index on.
    pub(crate) fn turn(&self, index: u64, numbers: &mut [f32]) {
        for (piece, numbers) in numbers.chunks_mut(2 * PIECE).enumerate() {
            let index = index.wrapping_add((piece * PIECE) as u64);
            turn(numbers, &self.cosines, &self.sines, self.at(index));
        }
    }
}

/// Samples per piece, with one sine of the processor each.
pub(crate) const PIECE: usize = 256;
/// 2^64.
const TURN: f64 = 18_446_744_073_709_551_616.0;
