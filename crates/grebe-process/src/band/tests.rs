//! Cuts beside a slow exact one: mixing, and the same low-pass filter by its definition, in double precision.

use std::f64::consts::TAU;

use grebe_testing::Rng;
use proptest::prelude::*;

use super::*;

/// Complex noise, and tones, some of them next to bands.
fn signal(length: usize, is_complex: bool, seed: u64) -> Vec<f32> {
    let mut rng = Rng::with_seed(seed);
    let numbers = if is_complex { 2 * length } else { length };
    (0..numbers).map(|_| (rng.f64() * 2.0 - 1.0) as f32).collect()
}

fn cut(filters: &[BandFilter], first: i64, signal: &[f32], piece: usize) -> Vec<Vec<[f64; 2]>> {
    let is_complex = filters[0].is_complex;
    let mut cutter = Cutter::new(filters, is_complex);
    cutter.begin(first);
    let mut made = vec![Vec::new(); filters.len()];
    let mut take = |cutter: &mut Cutter| {
        for (band, made) in made.iter_mut().enumerate() {
            made.extend(cutter.made(band).drain(..).map(f64::from));
        }
    };
    for piece in signal.chunks(piece * if is_complex { 2 } else { 1 }) {
        cutter.push(piece);
        take(&mut cutter);
    }
    cutter.end();
    take(&mut cutter);
    let pairs = |made: Vec<f64>| made.as_chunks::<2>().0.to_vec();
    made.into_iter().map(pairs).collect()
}

/// By the definition: each output is the sum of all samples around it, turned, times a windowed sinc.
fn exact(filter: &BandFilter, first: i64, signal: &[f32]) -> Vec<[f64; 2]> {
    let width = if filter.is_complex { 2 } else { 1 };
    let length = (signal.len() / width) as i64;
    let low_pass = LowPass::new(
        filter.band.bandwidth_hz / 2.0 / filter.input_hz,
        filter.stop_hz / filter.input_hz,
        ATTENUATION_DB,
    );
    let gain = if filter.is_complex { 1.0 } else { 2.0 };
    let reach = low_pass.reach.ceil() as i64;
    let sum: f64 = (-reach..=reach).map(|at| low_pass.at(at as f64)).sum();
    let turned = |index: i64| {
        let at = (index - first) as usize * width;
        let (re, im) = (f64::from(signal[at]), if width == 2 { f64::from(signal[at + 1]) } else { 0.0 });
        let turns = (filter.band.centre_hz / filter.input_hz * index as f64).rem_euclid(1.0);
        let (sin, cos) = (-turns * TAU).sin_cos();
        [re * cos - im * sin, re * sin + im * cos]
    };
    let outputs = filter.grid.first_at(first)..filter.grid.first_at(first + length);
    let output = |n: i64| {
        let (whole, rest) = filter.grid.position(n);
        let mut total = [0.0; 2];
        for index in (whole - reach).max(first)..=(whole + reach + 1).min(first + length - 1) {
            let tap = low_pass.at((index - whole) as f64 - rest) / sum * gain;
            let [re, im] = turned(index);
            total = [total[0] + re * tap, total[1] + im * tap];
        }
        total
    };
    outputs.map(output).collect()
}

fn power(samples: impl Iterator<Item = [f64; 2]>) -> f64 {
    samples.map(|[re, im]| re * re + im * im).sum()
}

/// Difference in dB of the power of the signal as it came, per sample of it.
fn error_db(got: &[[f64; 2]], expected: &[[f64; 2]]) -> f64 {
    let apart = got.iter().zip(expected).map(|(a, b)| [a[0] - b[0], a[1] - b[1]]);
    10.0 * (power(apart) / power(expected.iter().copied())).log10()
}

#[test]
fn cuts_are_those_of_the_definition() {
    for (input_hz, is_complex, centre_hz, bandwidth_hz, rate_hz, length) in [
        (1e6, true, 123_456.7, 20e3, None, 60_000),
        (1e6, true, -420e3, 150e3, None, 20_000),
        (1e6, true, 0.0, 900e3, None, 6_000),
        (1e6, true, 33.3e3, 20e3, Some(48e3), 60_000),
        (1e6, true, 250e3, 3e3, Some(3_777.7), 300_000),
        (48e3, false, 12_345.0, 800.0, None, 60_000),
        (48e3, false, 10_000.0, 19e3, Some(44_100.0), 6_000),
        (1e4, true, -1_000.0, 500.0, Some(48_000.0), 9_000),
    ] {
        let filter = Band { centre_hz, bandwidth_hz, rate_hz }.of(input_hz, is_complex).unwrap();
        for first in [0, 777] {
            let signal = signal(length, is_complex, 1);
            let got = cut(std::slice::from_ref(&filter), first, &signal, 1_000).remove(0);
            let expected = exact(&filter, first, &signal);
            assert_eq!(got.len(), expected.len(), "{filter:?}");
            let error_db = error_db(&got, &expected);
            println!(
                "{centre_hz} {bandwidth_hz} {rate_hz:?} of {input_hz}: {error_db:.1} dB, step {}, transform {}",
                filter.step, filter.length
            );
            assert!(error_db < -80.0, "{filter:?}: {error_db} dB");
        }
    }
}

#[test]
fn several_bands_in_one_pass_are_each_alone() {
    let band =
        |centre_hz, bandwidth_hz, rate_hz| Band { centre_hz, bandwidth_hz, rate_hz }.of(1e6, true).unwrap();
    let filters = [
        band(100e3, 1e3, None),
        band(-200e3, 150e3, None).starting_at(20_123),
        band(0.0, 940e3, None),
        band(450e3, 90e3, Some(100e3)),
    ];
    let signal = signal(200_000, true, 2);
    let together = cut(&filters, 5, &signal, 3_333);
    for (filter, together) in filters.iter().zip(&together) {
        let alone = cut(std::slice::from_ref(filter), 5, &signal, 70_000).remove(0);
        assert_eq!(alone.len(), together.len());
        assert!(error_db(together, &alone) < -100.0, "{filter:?}");
    }
}

/// Root raised cosine with a roll-off of 0.25, at this many symbols from its middle.
fn root_raised_cosine(t: f64) -> f64 {
    const ROLL_OFF: f64 = 0.25;
    let pi = std::f64::consts::PI;
    if t.abs() < 1e-9 {
        return 1.0 - ROLL_OFF + 4.0 * ROLL_OFF / pi;
    }
    if (t.abs() - 1.0 / (4.0 * ROLL_OFF)).abs() < 1e-9 {
        let quarter = pi / (4.0 * ROLL_OFF);
        return ROLL_OFF / 2f64.sqrt()
            * ((1.0 + 2.0 / pi) * quarter.sin() + (1.0 - 2.0 / pi) * quarter.cos());
    }
    let sum = (pi * t * (1.0 - ROLL_OFF)).sin() + 4.0 * ROLL_OFF * t * (pi * t * (1.0 + ROLL_OFF)).cos();
    sum / (pi * t * (1.0 - (4.0 * ROLL_OFF * t).powi(2)))
}

/// SNR of symbols after a matched filter, at 0 Hz with `per_symbol` samples per symbol; the first symbol is at sample 0.
fn snr_db(samples: &[[f64; 2]], per_symbol: usize, symbols: &[[f64; 2]]) -> f64 {
    let reach = 12 * per_symbol as i64;
    let taps: Vec<f64> =
        (-reach..=reach).map(|at| root_raised_cosine(at as f64 / per_symbol as f64)).collect();
    let range = 40..symbols.len() - 40;
    let heard = |symbol: usize| {
        let first = (symbol * per_symbol) as i64 - reach;
        let at = |tap: usize| samples[(first + tap as i64) as usize];
        taps.iter()
            .enumerate()
            .fold([0.0; 2], |[re, im], (tap, value)| [re + at(tap)[0] * value, im + at(tap)[1] * value])
    };
    let heard: Vec<[f64; 2]> = range.clone().map(heard).collect();
    // The least squares fit of one complex gain.
    let pairs = || heard.iter().zip(&symbols[range.clone()]);
    let [re, im] = pairs()
        .fold([0.0; 2], |[re, im], (a, b)| [re + a[0] * b[0] + a[1] * b[1], im + a[1] * b[0] - a[0] * b[1]]);
    let norm = power(symbols[range.clone()].iter().copied());
    let gain = [re / norm, im / norm];
    let fitted = |b: &[f64; 2]| [gain[0] * b[0] - gain[1] * b[1], gain[0] * b[1] + gain[1] * b[0]];
    let noise = power(pairs().map(|(a, b)| [a[0] - fitted(b)[0], a[1] - fitted(b)[1]]));
    10.0 * (power(symbols[range.clone()].iter().map(fitted)) / noise).log10()
}

#[test]
fn a_constellation_keeps_its_snr_when_it_is_cut_out_and_pasted() {
    // 10,000 symbols per second, 137 kHz above the centre of 400 kS/s.
    let (centre_hz, input_hz, per_symbol, count) = (137e3, 400e3, 40usize, 600usize);
    let mut rng = Rng::with_seed(11);
    let sign = |rng: &mut Rng| if rng.bool() { 1.0 } else { -1.0 };
    let symbols: Vec<[f64; 2]> = (0..count).map(|_| [sign(&mut rng), sign(&mut rng)]).collect();
    let mut gauss = || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    let length = count * per_symbol;
    let mut wide = vec![0f32; 2 * length];
    for at in 0..length {
        let (near, mut sum) = (at / per_symbol, [0.0; 2]);
        for (symbol, [re, im]) in symbols.iter().enumerate().take(near + 13).skip(near.saturating_sub(12)) {
            let value = root_raised_cosine(at as f64 / per_symbol as f64 - symbol as f64);
            sum = [sum[0] + re * value, sum[1] + im * value];
        }
        let (sin, cos) = (TAU * (centre_hz / input_hz * at as f64).fract()).sin_cos();
        let noise = [0.45 * gauss(), 0.45 * gauss()];
        // A stronger neighbour, which only the filter keeps away.
        let (other_sin, other_cos) = (TAU * (0.1 * at as f64).fract()).sin_cos();
        wide[2 * at] = (sum[0] * cos - sum[1] * sin + noise[0] + 10.0 * other_cos) as f32;
        wide[2 * at + 1] = (sum[0] * sin + sum[1] * cos + noise[1] + 10.0 * other_sin) as f32;
    }
    let shifted: Vec<[f64; 2]> = wide
        .as_chunks::<2>()
        .0
        .iter()
        .enumerate()
        .map(|(at, &[re, im])| {
            let (sin, cos) = (-TAU * (centre_hz / input_hz * at as f64).fract()).sin_cos();
            let (other_sin, other_cos) = (TAU * (0.1 * at as f64).fract()).sin_cos();
            let (re, im) = (f64::from(re) - 10.0 * other_cos, f64::from(im) - 10.0 * other_sin);
            [re * cos - im * sin, re * sin + im * cos]
        })
        .collect();
    let before_db = snr_db(&shifted, per_symbol, &symbols);
    let band = Band { centre_hz, bandwidth_hz: 13e3, rate_hz: Some(40e3) }.of(input_hz, true).unwrap();
    let narrow = cut(&[band], 0, &wide, 5_000).remove(0);
    let cut_db = snr_db(&narrow, 4, &symbols);
    let numbers: Vec<f32> = narrow.iter().flatten().map(|&number| number as f32).collect();
    let back = Band { centre_hz: 0.0, bandwidth_hz: 13e3, rate_hz: Some(input_hz) }.of(40e3, true).unwrap();
    let pasted_db = snr_db(&cut(&[back], 0, &numbers, 5_000)[0], per_symbol, &symbols);
    println!("{before_db:.3} dB, {cut_db:.3} dB cut, {pasted_db:.3} dB pasted");
    assert!((15.0..30.0).contains(&before_db), "{before_db}");
    assert!(
        (cut_db - before_db).abs() < 0.1 && (pasted_db - before_db).abs() < 0.1,
        "{before_db} {cut_db} {pasted_db}"
    );
}

#[test]
fn response_is_as_promised() {
    for (bandwidth_hz, rate_hz) in [(200e3, None), (10e3, None), (40e3, Some(42e3)), (700e3, None)] {
        let filter = Band { centre_hz: 50e3, bandwidth_hz, rate_hz }.of(1e6, true).unwrap();
        let level_db = |offset_hz: f64| {
            let tone = |at: i64| (TAU * ((50e3 + offset_hz) / 1e6 * at as f64).rem_euclid(1.0)).sin_cos();
            let length = 6 * filter.reach() as i64 + 5_000;
            let signal: Vec<f32> =
                (0..length).map(tone).flat_map(|(sin, cos)| [cos as f32, sin as f32]).collect();
            let made = cut(std::slice::from_ref(&filter), 0, &signal, 10_000).remove(0);
            let edge = 2 * filter.edge_samples() as usize;
            let settled = &made[edge..made.len() - edge];
            let levels = settled.iter().map(|[re, im]| 20.0 * re.hypot(*im).max(1e-9).log10());
            levels.fold((f64::MAX, f64::MIN), |(low, high), level| (low.min(level), high.max(level)))
        };
        for part in [-1.0, -0.9, -0.3, 0.0, 0.5, 1.0] {
            let (low, high) = level_db(part * bandwidth_hz / 2.0);
            assert!(low > -0.01 && high < 0.01, "{part} of {bandwidth_hz}: {low} to {high} dB");
        }
        let stop_hz = filter.stop_hz();
        let out = [stop_hz, -stop_hz, 1.1 * stop_hz, filter.rate_hz() - bandwidth_hz / 2.0, filter.rate_hz()];
        for offset_hz in out.into_iter().chain([440e3]).filter(|it| *it < 1e6 - bandwidth_hz / 2.0) {
            let (_, high) = level_db(offset_hz);
            assert!(high < -80.0, "{offset_hz} Hz beside {bandwidth_hz}: {high} dB");
        }
    }
}

#[test]
fn samples_that_are_no_numbers_count_as_zero() {
    let filter = Band { centre_hz: 0.0, bandwidth_hz: 100.0, rate_hz: None }.of(1_000.0, true).unwrap();
    let mut signal = signal(5_000, true, 3);
    (signal[100], signal[3_001], signal[5_000]) = (0.0, 0.0, 0.0);
    let expected = cut(std::slice::from_ref(&filter), 0, &signal, 99);
    (signal[100], signal[3_001], signal[5_000]) = (f32::NAN, f32::INFINITY, -3e38);
    let mut cutter = Cutter::new(std::slice::from_ref(&filter), true);
    cutter.begin(0);
    cutter.push(&signal);
    cutter.end();
    assert_eq!(cutter.invalid_numbers(), 3);
    let made: Vec<[f64; 2]> = cutter.made(0).as_chunks::<2>().0.iter().map(|it| it.map(f64::from)).collect();
    assert_eq!(made, expected[0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_band_is_cut_or_refused(
        input_hz in prop_oneof![Just(48e3), Just(2.4e6), 1.0..1e9f64], is_complex: bool,
        centre in -0.6..0.6f64, bandwidth in prop_oneof![0.0..1.1f64, 1e-3..1e-2f64], rate in prop::option::of(0.0..3.0f64),
        first in 0i64..1 << 50, length in 0usize..3_000,
    ) {
        let band = Band { centre_hz: centre * input_hz, bandwidth_hz: bandwidth * input_hz, rate_hz: rate.map(|rate| rate * input_hz) };
        let Ok(filter) = band.of(input_hz, is_complex) else { return Ok(()) };
        let signal = signal(length, is_complex, 4);
        let made = cut(std::slice::from_ref(&filter), first, &signal, 500).remove(0);
        let grid = filter.grid();
        let expected = grid.first_at(first + length as i64) - grid.first_at(first);
        prop_assert_eq!(made.len() as i64, expected);
        prop_assert!(made.iter().all(|[re, im]| re.abs() < 30.0 && im.abs() < 30.0));
    }

    #[test]
    fn any_numbers_make_a_filter_or_an_error(centre_hz: f64, bandwidth_hz: f64, rate_hz: Option<f64>, input_hz: f64, is_complex: bool) {
        let _ = Band { centre_hz, bandwidth_hz, rate_hz }.of(input_hz, is_complex);
    }
}
