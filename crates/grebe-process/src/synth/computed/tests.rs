use grebe_frame::{Complex, Sample};

use super::super::Generator;
use super::*;

const RATE_HZ: f64 = 1e6;

fn samples<T: Sample>(spec: &ChannelSpec, first: u64, count: usize) -> Vec<T> {
    let mut bytes = vec![0; count * T::FORMAT.bytes()];
    Generator::of_format(spec, RATE_HZ, T::FORMAT).unwrap().fill_bytes(first, &mut bytes);
    bytes.chunks_exact(T::FORMAT.bytes()).map(bytemuck::pod_read_unaligned).collect()
}

fn floats(spec: &ChannelSpec, count: usize) -> Vec<Complex<f64>> {
    samples::<Complex<f32>>(spec, 0, count).iter().map(|c| Complex::new(c.re.into(), c.im.into())).collect()
}

fn power_of(samples: &[Complex<f64>]) -> f64 {
    samples.iter().map(|c| c.norm_sqr()).sum::<f64>() / samples.len() as f64
}

/// Power at each frequency for a whole number of periods, by a direct Fourier sum.
fn spectrum(samples: &[Complex<f64>]) -> Vec<f64> {
    let length = samples.len();
    let turn: Vec<Complex<f64>> = (0..length)
        .map(|at| (at as f64 / length as f64 * TAU).sin_cos())
        .map(|(s, c)| Complex::new(c, -s))
        .collect();
    let bin = |bin: usize| {
        let sum: Complex<f64> = samples.iter().enumerate().map(|(at, c)| c * turn[at * bin % length]).sum();
        (sum / length as f64).norm_sqr()
    };
    (0..length).map(bin).collect()
}

fn db(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

#[test]
fn a_complex_tone_stands_on_its_side_of_zero_and_its_image_nowhere() {
    fn check<T: Sample>(full_scale: f64, middle: f64, clean_db: f64, parts: fn(T) -> [f64; 2]) {
        for bin in [37i64, -300, 1] {
            let frequency_hz = bin as f64 / 1_024.0 * RATE_HZ;
            let spec =
                ChannelSpec { wave: Wave::Sine, frequency_hz, amplitude: 0.5, ..ChannelSpec::default() };
            let of = |sample: T| parts(sample).map(|part| (part - middle) / full_scale);
            let samples: Vec<Complex<f64>> = samples::<T>(&spec, 5_000, 1_024)
                .into_iter()
                .map(of)
                .map(|[i, q]| Complex::new(i, q))
                .collect();
            let powers = spectrum(&samples);
            let at = bin.rem_euclid(1_024) as usize;
            assert!((db(powers[at]) - db(0.25)).abs() < 0.05, "{}: {} dB", T::FORMAT, db(powers[at]));
            let rest: f64 =
                powers.iter().enumerate().filter(|&(other, _)| other != at).map(|(_, power)| power).sum();
            assert!(
                db(rest / powers[at]) < -clean_db,
                "{} at {bin}: {} dB",
                T::FORMAT,
                db(rest / powers[at])
            );
            let image = powers[(1_024 - at) % 1_024];
            assert!(db(image / powers[at]) < -clean_db, "{} has an image", T::FORMAT);
        }
    }
    check::<Complex<f32>>(1.0, 0.0, 130.0, |c| [c.re.into(), c.im.into()]);
    check::<Complex<i16>>(32_767.0, 0.0, 85.0, |c| [c.re.into(), c.im.into()]);
    check::<Complex<i8>>(127.0, 0.0, 38.0, |c| [c.re.into(), c.im.into()]);
    check::<Complex<u8>>(127.5, 127.5, 38.0, |c| [c.re.into(), c.im.into()]);
}

#[test]
fn real_formats_reach_full_scale_and_no_further() {
    let square = ChannelSpec {
        wave: Wave::Square,
        frequency_hz: RATE_HZ / 4.0,
        amplitude: 1.0,
        ..ChannelSpec::default()
    };
    assert_eq!(samples::<i8>(&square, 0, 4), [127, 127, -127, -127]);
    assert_eq!(samples::<u8>(&square, 0, 4), [255, 255, 1, 1]);
    assert_eq!(samples::<i32>(&square, 0, 4), [i32::MAX, i32::MAX, -i32::MAX, -i32::MAX]);
    assert_eq!(samples::<f64>(&square, 1, 2), [1.0, -1.0]);
    let above = ChannelSpec { offset: 0.5, ..square };
    assert_eq!(samples::<i32>(&above, 0, 1), [i32::MAX]);
    assert_eq!(samples::<f32>(&above, 0, 1), [1.5]);
    assert_eq!(samples::<Complex<u8>>(&square, 0, 2), [Complex::new(255, 255), Complex::new(0, 255)]);
}

#[test]
fn a_stream_is_the_same_however_it_is_cut_and_a_seed_makes_its_own() {
    let wave =
        |wave| ChannelSpec { wave, frequency_hz: 12_345.678, snr_db: Some(20.0), ..ChannelSpec::default() };
    for wave in [
        wave(Wave::Qpsk { symbol_rate_hz: 99_000.0, roll_off: 0.35, seed: 3 }),
        wave(Wave::Gaussian { seed: 3 }),
        wave(Wave::TwoTone { second_hz: -50_000.0 }),
        wave(Wave::Chirp { end_hz: 40_000.0, sweep_s: 0.01 }),
        ChannelSpec { snr_db: None, ..wave(Wave::Sine) },
    ] {
        let whole = samples::<Complex<i16>>(&wave, 1_000, 500);
        assert_eq!(whole[123..456], samples::<Complex<i16>>(&wave, 1_123, 333));
        assert_ne!(whole, samples::<Complex<i16>>(&wave, 1_001, 500));
    }
    let noise = |seed| samples::<f32>(&wave(Wave::Gaussian { seed }), 0, 100);
    assert_eq!(noise(7), noise(7));
    assert_ne!(noise(7), noise(8));
}

#[test]
fn gaussian_noise_is_gaussian_white_and_of_its_power() {
    let spec = ChannelSpec { wave: Wave::Gaussian { seed: 5 }, amplitude: 0.8, ..ChannelSpec::default() };
    let samples = floats(&spec, 400_000);
    let count = samples.len() as f64;
    assert!((db(power_of(&samples)) - db(0.04)).abs() < 0.03, "{} dB", db(power_of(&samples)));
    let variance = 0.02;
    for part in [|c: &Complex<f64>| c.re, |c: &Complex<f64>| c.im] {
        let moment = |power: i32| samples.iter().map(|c| part(c).powi(power)).sum::<f64>() / count;
        assert!(moment(1).abs() < 0.001 && (moment(2) / variance - 1.0).abs() < 0.01);
        assert!(
            (moment(4) / (3.0 * variance * variance) - 1.0).abs() < 0.03,
            "a normal distribution's kurtosis is 3"
        );
    }
    for lag in 1..5 {
        let product: Complex<f64> = samples.windows(lag + 1).map(|pair| pair[lag] * pair[0].conj()).sum();
        assert!(
            (product / count).norm_sqr().sqrt() < 0.01 * 0.04,
            "samples {lag} apart know nothing of each other"
        );
    }
    let cross: f64 = samples.iter().map(|c| c.re * c.im).sum::<f64>() / count;
    assert!(cross.abs() < 0.01 * variance, "neither do I and Q");
}

#[test]
fn noise_lies_as_far_below_the_wave_as_it_is_said() {
    let qpsk = Wave::Qpsk { symbol_rate_hz: 125_000.0, roll_off: 0.25, seed: 1 };
    for wave in [Wave::Sine, Wave::Square, Wave::Saw, Wave::TwoTone { second_hz: 30_000.0 }, qpsk] {
        for snr_db in [0.0, 13.0, 40.0] {
            let clean = ChannelSpec { wave, frequency_hz: 12_345.0, ..ChannelSpec::default() };
            let noisy = ChannelSpec { snr_db: Some(snr_db), noise_seed: 9, ..clean };
            let (clean, noisy) = (floats(&clean, 100_000), floats(&noisy, 100_000));
            let noise: Vec<_> = noisy.iter().zip(&clean).map(|(noisy, clean)| noisy - clean).collect();
            let got_db = db(power_of(&clean) / power_of(&noise));
            assert!((got_db - snr_db).abs() < 0.1, "{wave:?}: {got_db} dB instead of {snr_db}");
        }
    }
    let sine = ChannelSpec { frequency_hz: 12_345.0, ..ChannelSpec::default() };
    let clean = samples::<i16>(&sine, 0, 100_000);
    let noisy = samples::<i16>(&ChannelSpec { snr_db: Some(20.0), ..sine }, 0, 100_000);
    let power = |of: &dyn Fn(usize) -> f64| (0..100_000).map(|at| of(at).powi(2)).sum::<f64>();
    let ratio = power(&|at| clean[at].into()) / power(&|at| f64::from(noisy[at]) - f64::from(clean[at]));
    assert!((db(ratio) - 20.0).abs() < 0.1, "{} dB", db(ratio));
}

#[test]
fn qpsk_behind_its_matched_filter_is_a_square_within_its_band() {
    for (symbol_rate_hz, roll_off) in [(125_000.0, 0.35), (62_500.0, 0.22), (250_000.0, 1.0)] {
        let wave = Wave::Qpsk { symbol_rate_hz, roll_off, seed: 11 };
        let spec = ChannelSpec { wave, amplitude: 0.8, ..ChannelSpec::default() };
        let samples = floats(&spec, 40_000);
        assert!((db(power_of(&samples)) - db(0.04)).abs() < 0.1, "{} dB", db(power_of(&samples)));
        let per_symbol = (RATE_HZ / symbol_rate_hz) as usize;
        let reach = SPAN as usize * per_symbol;
        let mut corners = [0; 4];
        let mut error = 0.0;
        let symbols: Vec<usize> = (reach..samples.len() - reach).step_by(per_symbol).collect();
        for &middle in &symbols {
            let filtered: Complex<f64> = (middle - reach..=middle + reach)
                .map(|at| {
                    let t = (at as f64 - middle as f64) / per_symbol as f64;
                    samples[at] * root_raised_cosine(t, roll_off) / per_symbol as f64
                })
                .sum();
            let point = filtered / 0.2;
            let corner = Complex::new(point.re.signum(), point.im.signum()) / SQRT_2;
            error += (point - corner).norm_sqr();
            corners[usize::from(point.re > 0.0) + 2 * usize::from(point.im > 0.0)] += 1;
        }
        let error_db = db(error / symbols.len() as f64);
        assert!(error_db < -45.0, "{symbol_rate_hz} at {roll_off}: {error_db} dB");
        assert!(corners.iter().all(|&count| count > symbols.len() / 5), "{corners:?}");
        // A window with negligible side lobes.
        let window = |at: usize| (at as f64 / 4_096.0 * PI).sin().powi(4);
        let part: Vec<_> = samples[1_000..5_096].iter().enumerate().map(|(at, c)| c * window(at)).collect();
        let powers = spectrum(&part);
        let edge_hz = symbol_rate_hz * (1.0 + roll_off) / 2.0 * 1.05;
        let is_outside = |bin: usize| (bin.min(4_096 - bin) as f64 / 4_096.0 * RATE_HZ) > edge_hz;
        let outside: f64 =
            powers.iter().enumerate().filter(|&(bin, _)| is_outside(bin)).map(|(_, power)| power).sum();
        assert!(
            db(outside / powers.iter().sum::<f64>()) < -45.0,
            "{} dB outside",
            db(outside / powers.iter().sum::<f64>())
        );
    }
}

#[test]
fn two_tones_are_two_of_half_the_amplitude() {
    let (first, second) = (100, 1_024 - 41);
    let hz = |bin: i32| f64::from(bin) / 1_024.0 * RATE_HZ;
    let wave = Wave::TwoTone { second_hz: hz(-41) };
    let spec = ChannelSpec { wave, frequency_hz: hz(100), amplitude: 0.8, ..ChannelSpec::default() };
    let powers = spectrum(&floats(&spec, 1_024));
    assert!((powers[first] - 0.16).abs() < 1e-6 && (powers[second] - 0.16).abs() < 1e-6);
    assert!(powers.iter().sum::<f64>() - 0.32 < 1e-6);
}

#[test]
fn a_copied_block_equals_the_computed_one() {
    for (wave, frequency_hz) in [
        (Wave::Sine, 12_500.0),
        (Wave::Triangle, -40_000.0),
        (Wave::TwoTone { second_hz: -30_000.0 }, 20_000.0),
        (Wave::Chirp { end_hz: 100_000.0, sweep_s: 0.001 }, 1_000.0),
    ] {
        let spec = ChannelSpec { wave, frequency_hz, phase_turns: 0.1, ..ChannelSpec::default() };
        let computed = Computed::new(&spec, RATE_HZ, SampleFormat::Ci16);
        assert!(computed.tile(&spec, RATE_HZ, 1 << 20).is_some(), "{wave:?}");
        let mut expected = vec![Complex::<i16>::default(); 3_000];
        computed.fill(1 << 36, bytemuck::cast_slice_mut(&mut expected));
        let got = samples::<Complex<i16>>(&spec, 1 << 36, 3_000);
        let apart = |(a, b): (&Complex<i16>, &Complex<i16>)| (a.re - b.re).abs().max((a.im - b.im).abs());
        assert!(got.iter().zip(&expected).all(|pair| apart(pair) <= 1), "{wave:?}");
    }
    let spec = ChannelSpec { frequency_hz: 1e6 / PI / 10.0, ..ChannelSpec::default() };
    assert!(Computed::new(&spec, RATE_HZ, SampleFormat::Cf32).tile(&spec, RATE_HZ, 1 << 18).is_none());
}

#[test]
fn settings_that_no_format_or_rate_allows_are_refused() {
    let refused =
        |spec: ChannelSpec, format| Generator::of_format(&spec, RATE_HZ, format).unwrap_err().to_string();
    let qpsk = |symbol_rate_hz, roll_off| ChannelSpec {
        wave: Wave::Qpsk { symbol_rate_hz, roll_off, seed: 0 },
        ..ChannelSpec::default()
    };
    assert!(refused(qpsk(1e5, 0.3), SampleFormat::F32).contains("needs a complex one"));
    assert!(refused(qpsk(6e5, 0.3), SampleFormat::Cf32).contains("symbol rate"));
    assert!(refused(qpsk(1e5, 1.3), SampleFormat::Cf32).contains("roll-off"));
    let negative = ChannelSpec { frequency_hz: -1_000.0, ..ChannelSpec::default() };
    assert!(refused(negative, SampleFormat::F32).contains("half the sample rate"));
    assert!(Generator::of_format(&negative, RATE_HZ, SampleFormat::Cf32).is_ok());
    let second = ChannelSpec { wave: Wave::TwoTone { second_hz: 6e5 }, ..ChannelSpec::default() };
    assert!(refused(second, SampleFormat::Cf32).contains("second frequency"));
}
