use grebe_testing::Rng;

use super::*;

/// Numbers from -1 to 1.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = Rng::with_seed(seed);
    (0..count).map(|_| rng.f32() * 2.0 - 1.0).collect()
}

fn near(got: f32, expected: f64, terms: usize) {
    // Each step may round by half a unit of a sum, which is at most the number of terms.
    let error = (f64::from(got) - expected).abs();
    assert!(error <= terms as f64 * f64::from(f32::EPSILON) * 2.0, "{got} where {expected} is expected");
}

#[test]
fn both_kernels_convolve_in_place_and_keep_later_elements() {
    for (length, taps, stride) in
        [(1, 1, 1), (7, 3, 1), (64, 64, 2), (65, 5, 2), (63, 1, 2), (200, 17, 1), (333, 64, 2)]
    {
        let taps = numbers(taps, 1);
        let past = (taps.len() - 1) * stride;
        let line = numbers(length + past, 2);
        for kernel in [convolve, portable::convolve::<false>] {
            let mut made = line.clone();
            kernel(&taps, stride, &mut made);
            for (at, got) in made[..length].iter().enumerate() {
                let exact = |(position, &tap): (usize, &f32)| {
                    f64::from(tap) * f64::from(line[at + position * stride])
                };
                near(*got, taps.iter().enumerate().map(exact).sum(), taps.len());
            }
            assert_eq!(made[length..], line[length..]);
        }
    }
    let mut short = [1.0, 2.0];
    convolve(&[1.0; 5], 1, &mut short);
    assert_eq!(short, [1.0, 2.0]);
}

#[test]
fn a_sum_is_the_same_to_the_last_bit_wherever_it_stands() {
    let (taps, line) = (numbers(33, 3), numbers(500, 4));
    let mut whole = line.clone();
    convolve(&taps, 1, &mut whole);
    for start in 1..100 {
        let mut part = line[start..].to_vec();
        convolve(&taps, 1, &mut part);
        assert_eq!(part[..468 - start], whole[start..468], "from {start} on");
    }
}

#[test]
fn both_kernels_multiply_and_add_by_rows_and_read_nothing_else() {
    for taps in [1, 2, 7, 8, 15, 16, 17, 31, 54, 106, 523] {
        for (rows, step) in [(0, 1), (1, 1), (5, 2), (6, 3), (13, 20)] {
            let taps = numbers(taps, 5);
            let mut line = numbers((rows.max(1) - 1) * step + taps.len(), 6);
            let length = line.len();
            // A value after the last row that would spoil it.
            line.push(f32::NAN);
            for kernel in [products, portable::products] {
                let mut sums = vec![[f32::NAN; 2]; rows];
                kernel(&taps, &line[..length], step, &mut sums);
                kernel(&taps, &line, step, &mut sums);
                for (row, [even, odd]) in sums.into_iter().enumerate() {
                    let mut exact = [0.0; 2];
                    for (at, &tap) in taps.iter().enumerate() {
                        exact[at % 2] += f64::from(tap) * f64::from(line[row * step + at]);
                    }
                    near(even, exact[0], taps.len());
                    near(odd, exact[1], taps.len());
                }
            }
        }
    }
}

#[test]
fn both_kernels_turn_pairs() {
    let twice = |numbers: Vec<f32>| numbers.iter().flat_map(|&number| [number, number]).collect::<Vec<_>>();
    for pairs in [0, 1, 3, 4, 5, 9, 256] {
        let (cosines, sines) = (twice(numbers(pairs, 7)), twice(numbers(pairs, 8)));
        let before = numbers(2 * pairs, 9);
        for kernel in [turn, portable::turn] {
            let mut after = before.clone();
            kernel(&mut after, &cosines, &sines, [0.8, -0.6]);
            for (at, pair) in after.chunks_exact(2).enumerate() {
                let [i, q, cos, sin] =
                    [before[2 * at], before[2 * at + 1], cosines[2 * at], sines[2 * at]].map(f64::from);
                let (i, q) = (i * cos - q * sin, i * sin + q * cos);
                near(pair[0], i * 0.8 + q * 0.6, 4);
                near(pair[1], i * -0.6 + q * 0.8, 4);
            }
        }
    }
}

#[test]
fn both_kernels_turn_numbers_round_as_they_copy_them() {
    let from: Vec<u8> = (0..1_000u32).map(|at| (at * 7 + at / 251) as u8).collect();
    for number_bytes in [1, 2, 4, 8] {
        for numbers in [0, 1, 3, 31, 32, 33, 100] {
            let from = &from[1..][..numbers * number_bytes];
            let turned: Vec<u8> =
                from.chunks(number_bytes).flat_map(|number| number.iter().rev().copied()).collect();
            for kernel in [copy_swapped, portable::copy_swapped] {
                let mut to = vec![0xee; from.len()];
                kernel(number_bytes, from, &mut to);
                assert_eq!(to, turned, "{number_bytes} {numbers}");
            }
        }
    }
}
