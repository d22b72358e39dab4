//! The inner loops of filters and mixers, compiled for what the processor has and chosen at run time.
//!
//! Where the processor multiplies and adds in one rounding, results differ from the portable ones by that rounding.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Convolves in place: each number becomes the sum of the taps times every `stride`-th number from there on. The numbers that the
/// last sum needs but has no place for stay at the end as they were.
pub fn convolve(taps: &[f32], stride: usize, line: &mut [f32]) {
    debug_assert!(!taps.is_empty() && stride > 0);
    #[cfg(target_arch = "x86_64")]
    if x86::is_usable() {
        // SAFETY: the processor has AVX2 and FMA, as just detected.
        return unsafe { x86::convolve(taps, stride, line) };
    }
    portable::convolve::<false>(taps, stride, line);
}

/// Sums of the products of taps and as many numbers of `line`, those at even and those at odd places apart; each result begins
/// `step` numbers behind the one before. There must be numbers for all of them.
pub fn products(taps: &[f32], line: &[f32], step: usize, sums: &mut [[f32; 2]]) {
    debug_assert!(sums.is_empty() || line.len() >= (sums.len() - 1) * step + taps.len());
    #[cfg(target_arch = "x86_64")]
    if x86::is_usable() {
        // SAFETY: the processor has AVX2 and FMA, as just detected.
        return unsafe { x86::products(taps, line, step, sums) };
    }
    portable::products(taps, line, step, sums);
}

/// Multiplies I and Q in turn with a complex number each, and all of them with one more. Of the former, `cosines` and `sines`
/// have every real and every imaginary part twice.
pub fn turn(numbers: &mut [f32], cosines: &[f32], sines: &[f32], all: [f32; 2]) {
    debug_assert!(cosines.len() >= numbers.len() && sines.len() >= numbers.len());
    #[cfg(target_arch = "x86_64")]
    if x86::is_usable() {
        // SAFETY: the processor has AVX2 and FMA, as just detected.
        return unsafe { x86::turn(numbers, cosines, sines, all) };
    }
    portable::turn(numbers, cosines, sines, all);
}

/// Copies numbers of 1, 2, 4 or 8 bytes each with their bytes turned round: from big-endian to little-endian, or back. Both have the
/// same length; bytes behind the last whole number stay as they were.
pub fn copy_swapped(number_bytes: usize, from: &[u8], to: &mut [u8]) {
    debug_assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    if x86::is_usable() {
        // SAFETY: the processor has AVX2 and FMA, as just detected.
        return unsafe { x86::copy_swapped(number_bytes, from, to) };
    }
    portable::copy_swapped(number_bytes, from, to);
}

#[cfg(test)]
mod tests;
