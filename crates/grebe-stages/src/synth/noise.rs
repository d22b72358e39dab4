//! White noise as a hash of the sample's index: no state, so any block can be made alone.

use super::spec::Scale;

#[derive(Debug, Clone, Copy)]
pub(super) struct Noise {
    key: u64,
    /// Counts, times a uniform sample of 15 fractional bits.
    amplitude: i32,
    /// Counts in 15 fractional bits, with one half to round.
    offset: i32,
}

impl Noise {
    pub(super) fn new(seed: u64, scale: Scale) -> Self {
        // At most 32,768 x 32,767 each: the sum of both and a half fits into an i32.
        let offset = (scale.offset.round() as i32 * (1 << 15)) + (1 << 14);
        Self { key: wyrand(seed.wrapping_add(STEP)), amplitude: scale.amplitude.round() as i32, offset }
    }

    pub(super) fn fill(&self, index: u64, out: &mut [i16]) {
        let lane = (index % LANES as u64) as usize;
        let mut word = index / LANES as u64;
        let head = if lane > 0 { (LANES - lane).min(out.len()) } else { 0 };
        let (head, body) = out.split_at_mut(head);
        if !head.is_empty() {
            head.copy_from_slice(&self.lanes(word)[lane..lane + head.len()]);
            word = word.wrapping_add(1);
        }
        // Hashes first, then samples of them: the compiler makes vectors of the second loop.
        let mut chunks = body.chunks_exact_mut(BLOCK_SAMPLES);
        for chunk in &mut chunks {
            for four in chunk.as_chunks_mut().0 {
                *four = self.uniform(word);
                word = word.wrapping_add(1);
            }
            chunk.iter_mut().for_each(|sample| *sample = self.scale(*sample));
        }
        for chunk in chunks.into_remainder().chunks_mut(LANES) {
            chunk.copy_from_slice(&self.lanes(word)[..chunk.len()]);
            word = word.wrapping_add(1);
        }
    }

    fn lanes(&self, word: u64) -> [i16; LANES] {
        self.uniform(word).map(|uniform| self.scale(uniform))
    }

    /// Four samples between the least and the greatest i16.
    #[inline]
    fn uniform(&self, word: u64) -> [i16; LANES] {
        let hash = wyrand(word.wrapping_mul(STEP).wrapping_add(self.key));
        bytemuck::cast::<u64, [i16; LANES]>(hash.to_le()).map(i16::from_le)
    }

    #[inline]
    fn scale(&self, uniform: i16) -> i16 {
        let sample = (i32::from(uniform) * self.amplitude + self.offset) >> 15;
        sample.clamp(i16::MIN.into(), i16::MAX.into()) as i16
    }
}

/// One step of wyrand (Wang Yi, wyhash): a single wide multiplication for four samples.
#[inline]
fn wyrand(state: u64) -> u64 {
    let product = u128::from(state) * u128::from(state ^ 0xe703_7ed1_a0b4_28db);
    (product >> 64) as u64 ^ product as u64
}

const LANES: usize = 4;
/// Stays in registers and the first-level cache.
const BLOCK_SAMPLES: usize = 256;
/// What wyrand's state grows by a step.
const STEP: u64 = 0xa076_1d64_78bd_642f;
