//! Measurements of tones and of modulated signals, against SciPy 1.17 and NumPy 2.4 on the same samples.
//!
//! Noise is the sum of twelve uniform numbers minus 6, from xorshift32, so that anybody can make the same samples.
//! Each test describes SciPy's method; except for bandwidths, none uses a spectrum where the scope does.

use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};

use grebe_scope::{Averaging, Band, PowerStats, Spectrum, ToneQuality, Window};

const TONE: f64 = 0.0731234;

#[track_caller]
fn assert_near(name: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{name}: {value} is not {expected} within {tolerance}");
}

fn tone_quality<const COMPONENTS: usize>(spectrum: &Spectrum<f32, COMPONENTS>) -> ToneQuality {
    spectrum.tone_quality(6).unwrap()
}

/// 65,536 samples as `f32`, averaged over transforms of 16,384.
fn quality_of(sample: impl FnMut(usize) -> f64) -> ToneQuality {
    let samples: Vec<f32> = (0..65_536).map(sample).map(|value| value as f32).collect();
    let mut spectrum = Spectrum::new(16_384, Window::BlackmanHarris, Averaging::All).unwrap();
    spectrum.append(0, &samples, |_| {});
    let quality = tone_quality(&spectrum);
    assert_near("frequency", spectrum.cycles_per_sample(quality.fundamental.line), TONE, 1e-7);
    quality
}

/// The sine with two harmonics, an offset and noise:
/// `0.9 sin(a + 0.3) + 0.009 sin(2a + 1) + 0.0045 sin(3a + 2) + 0.02 + noise * gauss(seed 12345)`,
/// `a = 2 pi 0.0731234 n`. SciPy: `numpy.linalg.lstsq` of an offset, the fundamental and harmonics 2 to 6 (cosine and
/// sine each), the frequency refined by `scipy.optimize.minimize_scalar` to the least residual (IEEE 1241, sine fit);
/// noise is the mean square of the residual.
#[test]
fn a_real_tone_has_the_quality_that_a_fit_in_time_finds() {
    for (part, snr, sinad, thd, enob) in
        [(0.0005, 62.0587, 39.0102, -39.0318, 6.33897), (0.02, 30.0176, 29.5077, -39.0636, 4.76064)]
    {
        let mut gauss = gauss(12_345);
        let quality = quality_of(|n| {
            let a = TAU * TONE * n as f64;
            let harmonics = 0.009 * (2.0 * a + 1.0).sin() + 0.0045 * (3.0 * a + 2.0).sin();
            0.9 * (a + 0.3).sin() + harmonics + 0.02 + part * gauss()
        });
        assert_near("level", quality.fundamental.dbfs, 20.0 * 0.9f64.log10(), 0.01);
        assert_near("SNR", quality.snr_db, snr, 0.1);
        assert_near("SINAD", quality.sinad_db, sinad, 0.1);
        assert_near("THD", quality.thd_db.unwrap(), thd, 0.2);
        assert_near("ENOB", quality.enob, enob, 0.02);
    }
}

/// An ideal converter of 12 bits: `(floor(0.999 sin(a + 0.3) * 2048) + 0.5) / 2048`. The same fit: SNR 73.982, SINAD
/// 73.980 dB, ENOB 11.9968.
#[test]
fn an_ideal_converter_has_its_bits() {
    let quality =
        quality_of(|n| ((0.999 * (TAU * TONE * n as f64 + 0.3).sin() * 2048.0).floor() + 0.5) / 2048.0);
    assert_near("SNR", quality.snr_db, 73.982, 0.1);
    assert_near("SINAD", quality.sinad_db, 73.980, 0.1);
    assert_near("ENOB", quality.enob, 11.9968, 0.02);
    assert!(quality.thd_db.is_none_or(|thd| thd < -95.0), "{quality:?}");
}

/// `0.7 exp(j(a + 0.3)) + 0.007 exp(j(2a + 1)) + 0.001 (gauss(seed 777) + j gauss(seed 999))`. The same fit, of
/// complex exponentials: SNR 53.903, SINAD 39.835, THD -40.009 dB, ENOB 6.83854.
#[test]
fn a_complex_tone_has_the_quality_that_a_fit_in_time_finds() {
    let (mut gauss_i, mut gauss_q) = (gauss(777), gauss(999));
    let (i, q): (Vec<f32>, Vec<f32>) = (0..65_536)
        .map(|n| {
            let a = TAU * TONE * f64::from(n);
            let i = 0.7 * (a + 0.3).cos() + 0.007 * (2.0 * a + 1.0).cos() + 0.001 * gauss_i();
            let q = 0.7 * (a + 0.3).sin() + 0.007 * (2.0 * a + 1.0).sin() + 0.001 * gauss_q();
            (i as f32, q as f32)
        })
        .unzip();
    let mut spectrum = Spectrum::complex(16_384, Window::BlackmanHarris, Averaging::All).unwrap();
    spectrum.append(0, &i, &q, |_| {});
    let quality = tone_quality(&spectrum);
    assert_near("frequency", spectrum.cycles_per_sample(quality.fundamental.line), TONE, 1e-7);
    assert_near("SNR", quality.snr_db, 53.903, 0.1);
    assert_near("SINAD", quality.sinad_db, 39.835, 0.1);
    assert_near("THD", quality.thd_db.unwrap(), -40.009, 0.1);
    assert_near("ENOB", quality.enob, 6.83854, 0.02);
}

/// QPSK, 8192 symbols (bits 31 and 30 of xorshift32, seed 42) of 8 samples, root raised cosine of 0.25 over 16
/// symbols, a tenth in amplitude, moved to 0.1 of the rate; with noise (seeds 2024 and 4048) 15 dB below it in its
/// channel of 1.25 symbol rates.
///
/// NumPy, of the samples: mean power -20.0045 dBFS clean and -19.2033 noisy, peak to average 4.8419 and 7.7767 dB; of
/// the parts before they were added: SNR 14.9914 dB, channel power -19.8690 dBFS. SciPy: `signal.welch`
/// (Blackman-Harris, 4096, half over), cumulative sum, 0.5 % and 99.5 %: bandwidth 0.137949 clean; 0.151792 noisy,
/// within 0.1 of the rate on either side.
#[test]
fn qpsk_at_a_known_snr_has_it_and_its_bandwidth() {
    let samples = 8192 * 8;
    let (clean_i, clean_q) = qpsk();
    let mean = |c: &[f64]| c.iter().map(|c| c * c).sum::<f64>() / samples as f64;
    let width = 1.25 / 8.0;
    let density = (mean(&clean_i) + mean(&clean_q)) / width / 10f64.powf(1.5);
    let noisy = |clean: &[f64], seed| -> Vec<f32> {
        let mut gauss = gauss(seed);
        clean.iter().map(|clean| (clean + (density / 2.0).sqrt() * gauss()) as f32).collect()
    };
    let single = |clean: &[f64]| -> Vec<f32> { clean.iter().map(|&clean| clean as f32).collect() };
    let everything = Band { low: -0.5, high: 0.5 };
    let around = Band { low: 0.0, high: 0.2 };
    for (i, q, mean_dbfs, peak_db, within, bandwidth) in [
        (single(&clean_i), single(&clean_q), -20.0045, 4.8419, everything, 0.137949),
        (noisy(&clean_i, 2024), noisy(&clean_q, 4048), -19.2033, 7.7767, around, 0.151792),
    ] {
        let mut power = PowerStats::default();
        i.chunks(1000).zip(q.chunks(1000)).for_each(|(i, q)| power.add(i, q));
        assert_near("mean power", power.mean_dbfs(1.0).unwrap(), mean_dbfs, 1e-3);
        assert_near("peak to average", power.peak_to_average_db().unwrap(), peak_db, 1e-3);
        let mut spectrum = Spectrum::complex(4096, Window::BlackmanHarris, Averaging::All).unwrap();
        spectrum.append(0, &i, &q, |_| {});
        assert_near("power of all lines", spectrum.band_power_dbfs(everything), mean_dbfs, 0.02);
        let occupied = spectrum.occupied_band(0.99, within).unwrap();
        assert_near("occupied bandwidth", occupied.width(), bandwidth, bandwidth * 0.01);
        assert_near("its middle", occupied.center(), 0.1, 0.002);
        let channel = Band { low: 0.1 - width / 2.0, high: 0.1 + width / 2.0 };
        let beside = Band { low: -0.4, high: -0.1 };
        if within == around {
            assert_near("SNR", spectrum.channel_snr_db(channel, &[beside]).unwrap(), 14.9914, 0.1);
            assert_near("channel power", spectrum.band_power_dbfs(channel), -19.8690, 0.05);
            assert_eq!(spectrum.channel_snr_db(beside, &[channel]), None);
        }
    }
}

#[test]
fn an_offset_and_a_sine_have_their_power_in_their_bands() {
    // Of real samples: an offset of 0.25 has twice the power of a sine of that amplitude, 0 dBFS being a sine of 1.
    let samples: Vec<f32> =
        (0..8192).map(|n| 0.25 + (0.5 * (TAU * 0.2 * f64::from(n)).sin()) as f32).collect();
    for window in Window::ALL {
        let mut spectrum = Spectrum::new(4096, window, Averaging::All).unwrap();
        spectrum.append(0, &samples, |_| {});
        let power = |low, high| spectrum.band_power(Band { low, high });
        // Without a window, or with a simple one, a tone between lines leaks.
        let tolerance = if window == Window::Rectangular { 0.01 } else { 2e-4 };
        assert_near(window.name(), power(0.0, 0.1), 2.0 * 0.0625, tolerance);
        assert_near(window.name(), power(0.1, 0.3), 0.25, tolerance);
        assert_near(window.name(), power(0.0, 0.5), 0.375, tolerance);
    }
    let silent = Spectrum::<i16>::new(1024, Window::Hann, Averaging::None).unwrap();
    assert_eq!(silent.tone_quality(5), None);
    assert_eq!(silent.occupied_band(0.99, Band { low: 0.0, high: 0.5 }), None);
}

fn qpsk() -> (Vec<f64>, Vec<f64>) {
    const PER_SYMBOL: usize = 8;
    let taps: Vec<f64> = (0..=PER_SYMBOL * 16).map(|n| root_raised_cosine(n as f64 / 8.0 - 8.0)).collect();
    let bits = xorshift(42);
    let sign = |bit: u32| if bit & 1 != 0 { FRAC_1_SQRT_2 } else { -FRAC_1_SQRT_2 };
    let symbols: Vec<(f64, f64)> =
        std::iter::repeat_with(bits).take(8192).map(|bits| (sign(bits >> 31), sign(bits >> 30))).collect();
    let sample = |n: usize| {
        let (mut i, mut q) = (0.0, 0.0);
        for symbol in (n.saturating_sub(taps.len() - 1)).div_ceil(PER_SYMBOL)..=n / PER_SYMBOL {
            let tap = 0.1 * taps[n - symbol * PER_SYMBOL];
            (i, q) = (i + tap * symbols[symbol].0, q + tap * symbols[symbol].1);
        }
        let (sin, cos) = (TAU * 0.1 * n as f64).sin_cos();
        (i * cos - q * sin, i * sin + q * cos)
    };
    (0..8192 * PER_SYMBOL).map(sample).unzip()
}

/// Roll-off 0.25, `x` in symbols.
fn root_raised_cosine(x: f64) -> f64 {
    if x == 0.0 {
        return 0.75 + 1.0 / PI;
    }
    if x.abs() == 1.0 {
        let (sin, cos) = PI.sin_cos();
        return 0.25 * FRAC_1_SQRT_2 * ((1.0 + 2.0 / PI) * sin + (1.0 - 2.0 / PI) * cos);
    }
    ((PI * x * 0.75).sin() + x * (PI * x * 1.25).cos()) / (PI * x * (1.0 - x * x))
}

fn gauss(seed: u32) -> impl FnMut() -> f64 {
    let mut uniform = xorshift(seed);
    move || (0..12).map(|_| f64::from(uniform() >> 8) / 16_777_216.0).sum::<f64>() - 6.0
}

fn xorshift(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    }
}
