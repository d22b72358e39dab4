//! Inner loops of filters and mixers, compiled for several processors and chosen at run time.
//!
//! With fused multiply-add, results differ from the portable ones by one rounding.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Convolves in place: each number becomes the sum of the taps times every `stride`-th number from there on.
/// The last numbers, without enough successors, stay unchanged.
pub fn convolve(taps: &[f32], stride: usize, line: &mut [f32]) {
    debug_assert!(!taps.is_empty() && stride > 0);
    #[cfg(target_arch = "x86_64")]
    if x86::is_usable() {
        // SAFETY: the processor has AVX2 and FMA, as just detected.
        return unsafe { x86::convolve(taps, stride, line) };
    }
    portable::convolve::<false>(taps, stride, line);
}

/// Dot products of the taps with numbers of `line`, separately for even and odd positions. Each result starts
/// `step` numbers after the previous one. There must be numbers for all of them.
pub fn products(taps: &[f32], line: &[f32], step: usize, sums: &mut [[f32; 2]]) {
    debug_assert!(sums.is_empty() || line.len() >= (sums.len() - 1) * step + taps.len());
    #[cfg(target_arch = "x86_64")]
    if x86::is_usable() {
        // SAFETY: the processor has AVX2 and FMA, as just detected.
        return unsafe { x86::products(taps, line, step, sums) };
    }
    portable::products(taps, line, step, sums);
}

/// Multiplies interleaved I and Q by one complex number each, and all of them by another one. `cosines` and
/// `sines` contain every real and imaginary part twice.
pub fn turn(numbers: &mut [f32], cosines: &[f32], sines: &[f32], all: [f32; 2]) {
    debug_assert!(cosines.len() >= numbers.len() && sines.len() >= numbers.len());
    #[cfg(target_arch = "x86_64")]
    if x86::is_usable() {
        // SAFETY: the processor has AVX2 and FMA, as just detected.
        return unsafe { x86::turn(numbers, cosines, sines, all) };
    }
    portable::turn(numbers, cosines, sines, all);
}

/// Copies numbers of 1, 2, 4 or 8 bytes each with reversed byte order. Both slices have the same length;
/// bytes after the last whole number stay unchanged.
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
