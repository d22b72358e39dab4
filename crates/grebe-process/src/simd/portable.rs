//! Loops in plain Rust for any processor.

/// Like [`super::convolve`]. `FUSED` if the processor has fused multiply-add; otherwise that would be a
/// function call.
#[inline(always)]
pub(super) fn convolve<const FUSED: bool>(taps: &[f32], stride: usize, line: &mut [f32]) {
    let count = line.len().saturating_sub((taps.len() - 1) * stride);
    let mut at = 0;
    while at + LANES * REGISTERS <= count {
        sum::<FUSED, LANES, REGISTERS>(taps, stride, line, at);
        at += LANES * REGISTERS;
    }
    while at + LANES <= count {
        sum::<FUSED, LANES, 1>(taps, stride, line, at);
        at += LANES;
    }
    while at < count {
        sum::<FUSED, 1, 1>(taps, stride, line, at);
        at += 1;
    }
}

/// Computes as many sums as fit into registers, tap by tap, so that they do not depend on each other. Each is
/// added in tap order, whatever its neighbours.
#[inline(always)]
fn sum<const FUSED: bool, const LANES: usize, const REGISTERS: usize>(
    taps: &[f32],
    stride: usize,
    line: &mut [f32],
    at: usize,
) {
    let mut sums = [[0.0; LANES]; REGISTERS];
    for (position, &tap) in taps.iter().enumerate() {
        let start = at + position * stride;
        let (numbers, _) = line[start..start + LANES * REGISTERS].as_chunks::<LANES>();
        for register in 0..REGISTERS {
            for lane in 0..LANES {
                let number = numbers[register][lane];
                let sum = &mut sums[register][lane];
                *sum = if FUSED { tap.mul_add(number, *sum) } else { tap * number + *sum };
            }
        }
    }
    line[at..at + LANES * REGISTERS].copy_from_slice(sums.as_flattened());
}

/// Like [`super::products`].
pub(super) fn products(taps: &[f32], line: &[f32], step: usize, sums: &mut [[f32; 2]]) {
    for (at, sum) in sums.iter_mut().enumerate() {
        *sum = product(taps, &line[at * step..at * step + taps.len()]);
    }
}

fn product(taps: &[f32], numbers: &[f32]) -> [f32; 2] {
    let mut sums = [0.0f32; PLACES];
    let (taps, last_taps) = taps.as_chunks::<PLACES>();
    let (numbers, last_numbers) = numbers.as_chunks::<PLACES>();
    for (taps, numbers) in taps.iter().zip(numbers) {
        for place in 0..PLACES {
            sums[place] += taps[place] * numbers[place];
        }
    }
    for ((sum, tap), number) in sums.iter_mut().zip(last_taps).zip(last_numbers) {
        *sum += tap * number;
    }
    let (pairs, _) = sums.as_chunks::<2>();
    pairs.iter().fold([0.0; 2], |[even, odd], [a, b]| [even + a, odd + b])
}

/// Like [`super::turn`].
pub(super) fn turn(numbers: &mut [f32], cosines: &[f32], sines: &[f32], [cos, sin]: [f32; 2]) {
    let (numbers, _) = numbers.as_chunks_mut::<2>();
    let (cosines, _) = cosines.as_chunks::<2>();
    let (sines, _) = sines.as_chunks::<2>();
    for ((pair, [c, _]), [s, _]) in numbers.iter_mut().zip(cosines).zip(sines) {
        let (c, s) = (cos * c - sin * s, cos * s + sin * c);
        *pair = [pair[0] * c - pair[1] * s, pair[0] * s + pair[1] * c];
    }
}

/// Like [`super::copy_swapped`].
#[inline(always)]
pub(super) fn copy_swapped(number_bytes: usize, from: &[u8], to: &mut [u8]) {
    match number_bytes {
        1 => to.copy_from_slice(from),
        2 => turn_round::<2>(from, to, |number| u16::from_ne_bytes(number).swap_bytes().to_ne_bytes()),
        4 => turn_round::<4>(from, to, |number| u32::from_ne_bytes(number).swap_bytes().to_ne_bytes()),
        _ => turn_round::<8>(from, to, |number| u64::from_ne_bytes(number).swap_bytes().to_ne_bytes()),
    }
}

#[inline(always)]
fn turn_round<const N: usize>(from: &[u8], to: &mut [u8], turn: impl Fn([u8; N]) -> [u8; N]) {
    for (to, from) in to.as_chunks_mut::<N>().0.iter_mut().zip(from.as_chunks::<N>().0) {
        *to = turn(*from);
    }
}

/// Register width of AVX2, and two registers of every x86-64 and Arm.
const LANES: usize = 8;
/// Sums at once: enough to hide the latency of additions and loads, with registers left for the taps.
const REGISTERS: usize = 8;
/// Partial sums per result.
const PLACES: usize = 16;
