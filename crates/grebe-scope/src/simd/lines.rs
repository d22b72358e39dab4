//! The loops over the lines of a transform, of which the search for bursts is made. Each place stands alone, so all kernels yield the
//! same to the last bit.

use realfft::num_complex::Complex;

use crate::value::Value;

/// A loop that is compiled for several instruction sets, one of which is selected at run time.
macro_rules! compiled {
    ($(#[$doc:meta])* $name:ident, $avx2:ident, $avx512:ident: $portable:ident $([$value:ident])?
        ($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name$(<$value: Value>)?($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has AVX-512F, as just detected.
                    return unsafe { $avx512($($argument),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2, as just detected.
                    return unsafe { $avx2($($argument),*) };
                }
            }
            $portable($($argument),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $avx2$(<$value: Value>)?($($argument: $type),*) $(-> $result)? {
            $portable($($argument),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f")]
        fn $avx512$(<$value: Value>)?($($argument: $type),*) $(-> $result)? {
            $portable($($argument),*)
        }
    };
}

compiled! {
    /// Complex samples around zero, times the weights of a window. Returns whether all samples are finite.
    weigh, weigh_avx2, weigh_avx512: weigh_portable[V]
    (i: &[V], q: &[V], zero: f32, weights: &[f32], lines: &mut [Complex<f32>]) -> bool
}

#[inline(always)]
fn weigh_portable<V: Value>(
    i: &[V],
    q: &[V],
    zero: f32,
    weights: &[f32],
    lines: &mut [Complex<f32>],
) -> bool {
    // Without an early exit, which would prevent vector code.
    let mut is_finite = true;
    for ((line, weight), (i, q)) in lines.iter_mut().zip(weights).zip(i.iter().zip(q)) {
        let (i, q) = (i.to_f32(), q.to_f32());
        is_finite &= i.is_finite() & q.is_finite();
        *line = Complex::new((i - zero) * weight, (q - zero) * weight);
    }
    is_finite
}

compiled! {
    /// As [`weigh`], of samples whose I and Q are side by side.
    weigh_pairs, weigh_pairs_avx2, weigh_pairs_avx512: weigh_pairs_portable
    (samples: &[[f32; 2]], zero: f32, weights: &[f32], lines: &mut [Complex<f32>]) -> bool
}

#[inline(always)]
fn weigh_pairs_portable(
    samples: &[[f32; 2]],
    zero: f32,
    weights: &[f32],
    lines: &mut [Complex<f32>],
) -> bool {
    let mut is_finite = true;
    for ((line, weight), [i, q]) in lines.iter_mut().zip(weights).zip(samples) {
        is_finite &= i.is_finite() & q.is_finite();
        *line = Complex::new((i - zero) * weight, (q - zero) * weight);
    }
    is_finite
}

compiled! {
    /// The power of lines.
    power, power_avx2, power_avx512: power_portable(lines: &[Complex<f32>], power: &mut [f32])
}

#[inline(always)]
fn power_portable(lines: &[Complex<f32>], power: &mut [f32]) {
    power.iter_mut().zip(lines).for_each(|(power, line)| *power = line.norm_sqr());
}

compiled! {
    /// Whether a line has more than `factor` floors, of which each counts as `least` at least.
    any_over, any_over_avx2, any_over_avx512: any_over_portable
    (row: &[f32], floor: &[f32], least: f32, factor: f32) -> bool
}

#[inline(always)]
fn any_over_portable(row: &[f32], floor: &[f32], least: f32, factor: f32) -> bool {
    row.iter().zip(floor).fold(false, |any, (&power, floor)| any | (power > factor * floor.max(least)))
}

compiled! {
    /// By line: the sum of four rows.
    sum, sum_avx2, sum_avx512: sum_portable(rows: [&[f32]; 4], sums: &mut [f32])
}

#[inline(always)]
fn sum_portable([a, b, c, d]: [&[f32]; 4], sums: &mut [f32]) {
    for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *sum = a + b + c + d;
    }
}

compiled! {
    /// Adds a row to sums.
    add, add_avx2, add_avx512: add_portable(row: &[f32], sums: &mut [f64])
}

#[inline(always)]
fn add_portable(row: &[f32], sums: &mut [f64]) {
    sums.iter_mut().zip(row).for_each(|(sum, &power)| *sum += f64::from(power));
}

compiled! {
    /// Marks the lines with more than `factors` floors, of the row or of the sum of four. Returns whether there are any.
    mark, mark_avx2, mark_avx512: mark_portable
    (row: &[f32], four: &[f32], floor: &[f32], least: f32, factors: [f32; 2], cells: &mut [bool]) -> bool
}

#[inline(always)]
fn mark_portable(
    row: &[f32],
    four: &[f32],
    floor: &[f32],
    least: f32,
    factors: [f32; 2],
    cells: &mut [bool],
) -> bool {
    let mut is_any = false;
    for (((cell, &power), &sum), floor) in cells.iter_mut().zip(row).zip(four).zip(floor) {
        let floor = floor.max(least);
        *cell = (power > factors[0] * floor) | (sum > factors[1] * floor);
        is_any |= *cell;
    }
    is_any
}

compiled! {
    /// Moves a floor by `share` towards a row. Power beyond `clip` floors counts as that, and `gain` makes up for it.
    follow, follow_avx2, follow_avx512: follow_portable
    (row: &[f32], clip: f32, gain: f32, share: f32, floor: &mut [f32])
}

#[inline(always)]
fn follow_portable(row: &[f32], clip: f32, gain: f32, share: f32, floor: &mut [f32]) {
    for (floor, power) in floor.iter_mut().zip(row) {
        *floor += (power.min(clip * *floor) * gain - *floor) * share;
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use grebe_testing::Rng;

    use super::*;

    /// What all loops make of a row.
    #[derive(Debug, PartialEq)]
    struct Made {
        bits: Vec<u32>,
        sums: Vec<u64>,
        cells: Vec<bool>,
        is_any: [bool; 3],
    }

    /// The same with each instruction set, in any length.
    macro_rules! made {
        ($rows:expr, $weigh:ident, $pairs:ident, $power:ident, $any:ident, $sum:ident, $add:ident, $mark:ident, $follow:ident) => {{
            let [a, b, c, d]: [&[f32]; 4] = $rows;
            let length = a.len();
            let mut lines = vec![Complex::default(); length];
            let (mut powers, mut four) = (vec![0.0; length], vec![0.0; length]);
            let (mut floor, mut sums) = (d.iter().map(|it| it.abs()).collect::<Vec<_>>(), vec![0.5; length]);
            let mut cells = vec![true; length];
            let is_finite = $weigh(a, b, 0.25, c, &mut lines);
            let pairs: Vec<[f32; 2]> = a.iter().zip(b).map(|(&i, &q)| [i, q]).collect();
            let mut same = vec![Complex::default(); length];
            assert_eq!($pairs(&pairs, 0.25, c, &mut same), is_finite);
            assert_eq!(format!("{same:?}"), format!("{lines:?}"));
            $power(&lines, &mut powers);
            let is_over = $any(&powers, &floor, 0.01, 20.0);
            $sum([a, b, c, d], &mut four);
            $add(&four, &mut sums);
            let is_any = $mark(&powers, &four, &floor, 0.01, [3.0, 2.0], &mut cells);
            $follow(&powers, 4.0, 1.02, 0.1, &mut floor);
            let numbers = [powers, four, floor].concat();
            Made {
                bits: numbers.into_iter().map(f32::to_bits).collect(),
                sums: sums.into_iter().map(f64::to_bits).collect(),
                cells,
                is_any: [is_finite, is_over, is_any],
            }
        }};
    }

    #[test]
    fn all_instruction_sets_yield_the_same_to_the_last_bit() {
        let mut rng = Rng::with_seed(49);
        let (mut seen, mut found) = ([[false; 2]; 3], 0);
        for length in (0..70usize).chain([1024, 1025, 1039]) {
            for odd in [None, None, Some(f32::INFINITY), Some(1e30)] {
                let mut row = || (0..length).map(|_| rng.f32() * 2.0 - 1.0).collect::<Vec<f32>>();
                let mut rows = [row(), row(), row(), row()];
                if let (Some(odd), Some(place)) = (odd, length.checked_sub(1)) {
                    rows[0][place] = odd;
                }
                let rows = [&rows[0][..], &rows[1], &rows[2], &rows[3]];
                let plain = made!(
                    rows,
                    weigh_portable,
                    weigh_pairs_portable,
                    power_portable,
                    any_over_portable,
                    sum_portable,
                    add_portable,
                    mark_portable,
                    follow_portable
                );
                for (seen, is) in seen.iter_mut().zip(plain.is_any) {
                    seen[usize::from(is)] = true;
                }
                found += plain.cells.iter().filter(|&&is_cell| is_cell).count();
                assert_eq!(
                    plain,
                    made!(rows, weigh, weigh_pairs, power, any_over, sum, add, mark, follow),
                    "dispatched"
                );
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2, as just detected.
                    let own = unsafe {
                        made!(
                            rows,
                            weigh_avx2,
                            weigh_pairs_avx2,
                            power_avx2,
                            any_over_avx2,
                            sum_avx2,
                            add_avx2,
                            mark_avx2,
                            follow_avx2
                        )
                    };
                    assert_eq!(plain, own, "AVX2, {length} lines");
                }
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has AVX-512F, as just detected.
                    let own = unsafe {
                        made!(
                            rows,
                            weigh_avx512,
                            weigh_pairs_avx512,
                            power_avx512,
                            any_over_avx512,
                            sum_avx512,
                            add_avx512,
                            mark_avx512,
                            follow_avx512
                        )
                    };
                    assert_eq!(plain, own, "AVX-512F, {length} lines");
                }
            }
        }
        assert!(seen == [[true; 2]; 3] && found > 1000, "{seen:?}, {found} cells");
    }
}
