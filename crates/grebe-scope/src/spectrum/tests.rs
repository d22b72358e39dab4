use grebe_testing::Rng;

use super::levels::FLOOR_DB;
use super::*;

const SIZE: usize = 4096;

fn tone(line: f64, amplitude: f64, count: usize) -> Vec<i16> {
    let turn = line / SIZE as f64 * std::f64::consts::TAU;
    (0..count)
        .map(|i| (amplitude * 32768.0 * (i as f64 * turn + 0.4).sin()).round().min(32767.0) as i16)
        .collect()
}

fn of(samples: &[i16], window: Window) -> Spectrum {
    let mut spectrum = Spectrum::new(SIZE, window, Averaging::None).unwrap();
    spectrum.append(0, samples, |_| {});
    spectrum
}

#[test]
fn decibels_are_those_of_the_library() {
    for exponent in -190..60 {
        for step in 0..50 {
            let power = 10f64.powf(f64::from(exponent) / 10.0 + f64::from(step) / 500.0) as f32;
            let expected = 10.0 * f64::from(power).log10();
            assert!(
                (f64::from(decibels(power)) - expected).abs() < 5e-5,
                "{power}: {} {expected}",
                decibels(power)
            );
        }
    }
    assert_eq!(decibels(0.0).round(), FLOOR_DB);
}

#[test]
fn a_tone_on_a_line_reads_its_level_with_every_window() {
    for window in Window::ALL {
        let spectrum = of(&tone(500.0, 0.25, SIZE), window);
        assert!((spectrum.dbfs()[500] + 12.041).abs() < 0.01, "{window:?}");
        // Far away: the noise of rounding to 16 bits (-98 dB in all, less 33 dB a line).
        assert!(spectrum.dbfs()[1500..].iter().all(|&level| level < -105.0), "{window:?}");
    }
}

#[test]
fn a_quiet_transform_after_a_loud_one_has_its_own_levels() {
    let quiet = tone(501.0, 1e-3, SIZE);
    let alone = of(&quiet, Window::Hann);
    let mut after = of(&tone(500.0, 0.99, SIZE), Window::Hann);
    after.set_hop(SIZE);
    after.append(1 << 20, &quiet, |_| {});
    assert_eq!(after.dbfs(), alone.dbfs());
}

#[test]
fn a_tone_between_lines_is_found_in_the_table() {
    for (window, level_error) in [
        (Window::Hann, 0.001),
        (Window::BlackmanHarris, 0.001),
        (Window::FlatTop, 0.001),
        (Window::Rectangular, 0.05),
    ] {
        for line in [700.0, 700.25, 700.5, 700.75] {
            let mut samples = tone(line, 0.5, SIZE);
            for (sample, weak) in samples.iter_mut().zip(tone(900.5, 0.001, SIZE)) {
                *sample += weak;
            }
            let peaks = of(&samples, window).peaks(2, -90.0);
            let line_error = if window == Window::FlatTop { 0.02 } else { 0.005 };
            assert!((peaks[0].line - line).abs() < line_error, "{window:?} {line}: {peaks:?}");
            assert!((peaks[0].dbfs + 6.0206).abs() < level_error, "{window:?} {line}: {peaks:?}");
            if window == Window::Rectangular {
                continue; // the strong tone's side lobes hide the weak one
            }
            assert!((peaks[1].line - 900.5).abs() < 0.1, "{window:?} {line}: {peaks:?}");
        }
    }
}

#[test]
fn noise_has_its_density_with_every_window() {
    // Uniform noise of +-0.5: mean square 1/12, so 10 log10(2 / 12) dBFS in all (0 dBFS is a sine's power 1/2).
    let mut rng = Rng::with_seed(1);
    let noise: Vec<i16> = (0..SIZE * 200).map(|_| rng.i16(..) / 2).collect();
    let rate_hz = 1e6;
    let expected = 10.0 * (2.0f64 / 12.0).log10() - 10.0 * (rate_hz / 2.0f64).log10();
    for window in Window::ALL {
        let mut spectrum = Spectrum::new(SIZE, window, Averaging::All).unwrap();
        spectrum.append(0, &noise, |_| {});
        let inner = &spectrum.dbfs()[20..SIZE / 2 - 20];
        let mean = 10.0
            * (inner.iter().map(|&l| 10f64.powf(f64::from(l) / 10.0)).sum::<f64>() / inner.len() as f64)
                .log10();
        // Noise bandwidth of a window: its mean square over its squared mean, in lines.
        let weights = window.coefficients(SIZE);
        let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
        let bandwidth_lines = squares * SIZE as f64 / weights.iter().sum::<f64>().powi(2);
        let density = mean - 10.0 * (bandwidth_lines * rate_hz / SIZE as f64).log10();
        assert!((density - expected).abs() < 0.1, "{window:?}: {density} is not {expected}");
    }
}

/// THD of a saw with nine harmonics is that of 1/2 to 1/10, -2.598 dB, and of a pulse of 30 % that of sin(0.3 pi n) / n, -2.947 dB. Exact
/// where a period is many samples.
#[test]
fn distortion_of_low_tones_is_right_or_absent() {
    let thd = |amplitude: fn(f64) -> f64| {
        let harmonics: f64 = (2..=10).map(|n| amplitude(f64::from(n)).powi(2)).sum();
        10.0 * (harmonics / amplitude(1.0).powi(2)).log10()
    };
    let (of_saw, of_pulse) = (thd(|n| 1.0 / n), thd(|n| (0.3 * std::f64::consts::PI * n).sin() / n));
    assert!((of_saw + 2.598).abs() < 1e-3 && (of_pulse + 2.947).abs() < 1e-3, "{of_saw} {of_pulse}");
    let saw = |cycles: f64| (cycles.fract() * 2.0 - 1.0) * 29_000.0;
    let pulse = |cycles: f64| if cycles.fract() < 0.3 { 29_000.0 } else { -29_000.0 };
    // Lines of the fundamental, and whether harmonics can be told from each other there.
    for (lines, is_told) in [
        (0.7, false),
        (2.3, false),
        (4.9, false),
        (7.5, false),
        (8.4, true),
        (10.24, true),
        (15.3, true),
        (82.0, true),
    ] {
        for (name, wave, expected) in
            [("saw", &saw as &dyn Fn(f64) -> f64, of_saw), ("pulse", &pulse, of_pulse)]
        {
            let samples: Vec<i16> =
                (0..SIZE * 8).map(|n| wave(0.1 + lines * n as f64 / SIZE as f64) as i16).collect();
            let mut spectrum = Spectrum::new(SIZE, Window::BlackmanHarris, Averaging::All).unwrap();
            spectrum.append(0, &samples, |_| {});
            let told = spectrum.tone_quality(10);
            assert_eq!(told.is_some(), is_told, "{name} {lines}: {told:?}");
            if let Some(told) = told {
                let thd_db = told.thd_db.unwrap();
                assert!((thd_db - expected).abs() < 0.1, "{name} {lines}: {thd_db}, not {expected}");
                assert!(told.sinad_db <= -expected + 0.1, "{name} {lines}: {told:?}");
            }
        }
    }
}

#[test]
fn distortion_below_the_noise_is_not_reported() {
    let mut rng = Rng::with_seed(9);
    let noise: Vec<f32> = (0..SIZE * 64).map(|_| f32::from(rng.i16(..)) / 3.3e7).collect();
    for (third, is_told) in [(0.0, false), (1e-3, true)] {
        let sample = |n: usize| {
            let angle = n as f64 * 0.012_345 * std::f64::consts::TAU;
            (angle.sin() * 0.7 + (3.0 * angle).sin() * 0.7 * third) as f32 + noise[n]
        };
        let samples: Vec<f32> = (0..noise.len()).map(sample).collect();
        let mut spectrum = Spectrum::new(SIZE, Window::BlackmanHarris, Averaging::All).unwrap();
        spectrum.append(0, &samples, |_| {});
        let thd_db = spectrum.tone_quality(10).unwrap().thd_db;
        assert_eq!(thd_db.is_some(), is_told, "{thd_db:?}");
        assert!(thd_db.is_none_or(|thd| (thd + 60.0).abs() < 0.2), "{thd_db:?}");
    }
    // A quarter of the rate: the third harmonic falls on the fundamental.
    let pure: Vec<f32> = (0..SIZE * 4).map(|n| [0.3, 0.4, -0.3, -0.4][n % 4]).collect();
    let mut spectrum = Spectrum::new(SIZE, Window::BlackmanHarris, Averaging::All).unwrap();
    spectrum.append(0, &pure, |_| {});
    assert_eq!(spectrum.tone_quality(10).unwrap().thd_db, None);
}

#[test]
fn bytes_without_sign_have_no_offset() {
    let bytes: Vec<i16> = tone(100.0, 0.5, SIZE).iter().map(|sample| 128 + sample / 256).collect();
    let mut spectrum = Spectrum::new(SIZE, Window::Hann, Averaging::None).unwrap();
    spectrum.set_full_scale(128.0);
    spectrum.set_zero(128.0);
    spectrum.append(0, &bytes, |_| {});
    assert!(
        spectrum.dbfs()[0] < -45.0 && (spectrum.dbfs()[100] + 6.02).abs() < 0.1,
        "{}",
        spectrum.dbfs()[0]
    );
}

#[test]
fn blocks_change_nothing_and_gaps_start_anew() {
    let samples = tone(37.3, 0.5, SIZE * 4);
    let run = |block: usize| {
        let mut spectrum = Spectrum::new(SIZE, Window::Hann, Averaging::Exponential(4)).unwrap();
        spectrum.set_peak_hold(true);
        let mut count = 0;
        for (place, piece) in samples.chunks(block).enumerate() {
            spectrum.append(100 + (place * block) as u64, piece, |_| count += 1);
        }
        (spectrum.dbfs().to_vec(), spectrum.hold_dbfs().unwrap().to_vec(), count)
    };
    let whole = run(samples.len());
    assert_eq!(whole.2, 7);
    for block in [1, 100, 4095, 4096, 4097, 10_000] {
        assert_eq!(run(block), whole, "{block}");
    }
    let mut spectrum = Spectrum::new(SIZE, Window::Hann, Averaging::None).unwrap();
    spectrum.append(0, &samples[..SIZE - 1], |_| {});
    spectrum.append(SIZE as u64, &samples[..SIZE - 1], |_| {});
    assert_eq!(spectrum.count(), 0);
}

#[test]
fn offset_and_half_rate_have_their_level() {
    // An offset of A has the power of a sine of amplitude sqrt(2) A; shown as its amplitude: 20 log10(A).
    let spectrum = of(&[16384; SIZE], Window::Rectangular);
    assert!((spectrum.dbfs()[0] + 6.02).abs() < 0.01);
    let alternating: Vec<i16> = (0..SIZE).map(|i| if i % 2 == 0 { 16384 } else { -16384 }).collect();
    assert!((of(&alternating, Window::Rectangular).dbfs()[SIZE / 2] + 6.02).abs() < 0.01);
}

#[test]
fn a_size_that_is_no_power_of_two_is_refused() {
    assert!(Spectrum::<i16>::new(100, Window::Hann, Averaging::None).is_err());
    assert!(Spectrum::<f32, 2>::complex(8, Window::Hann, Averaging::None).is_err());
}

/// A complex tone of a whole or broken number of lines from the middle.
fn complex_tone(line: f64, amplitude: f64, count: usize) -> (Vec<f32>, Vec<f32>) {
    let turn = line / SIZE as f64 * std::f64::consts::TAU;
    let angle = |n: usize| n as f64 * turn + 0.4;
    (0..count).map(|n| ((amplitude * angle(n).cos()) as f32, (amplitude * angle(n).sin()) as f32)).unzip()
}

#[test]
fn a_complex_tone_stands_on_its_side_of_the_middle_and_its_image_nowhere() {
    for window in [Window::Hann, Window::BlackmanHarris, Window::FlatTop] {
        for line in [-2048.0, -700.25, -3.0, 0.0, 0.5, 500.0, 2047.5] {
            let (i, q) = complex_tone(line, 0.25, SIZE);
            let mut spectrum = Spectrum::complex(SIZE, window, Averaging::None).unwrap();
            spectrum.append(0, &i, &q, |_| {});
            let peak = spectrum.peaks(3, -90.0)[0];
            let place = (peak.line - 2048.0 - line).rem_euclid(SIZE as f64);
            assert!(place.min(SIZE as f64 - place) < 0.02, "{window:?} {line}: {peak:?}");
            assert!((peak.dbfs + 12.041).abs() < 0.002, "{window:?} {line}: {peak:?}");
            // Where the image of a real tone would stand, and everywhere else.
            let reach = if line.fract() == 0.0 { 5.0 } else { 800.0 };
            for (place, &level) in spectrum.dbfs().iter().enumerate() {
                let away = (place as f64 - 2048.0 - line).rem_euclid(SIZE as f64);
                let is_near = away.min(SIZE as f64 - away) < reach;
                assert!(is_near || level < -100.0, "{window:?} {line}: {level} in {place}");
            }
        }
    }
}

#[test]
fn reals_have_the_spectrum_of_integers_and_components_that_of_complex_samples() {
    let samples = tone(333.3, 0.5, SIZE * 2);
    let real: Vec<f32> = samples.iter().map(|&sample| f32::from(sample) / 32768.0).collect();
    let mut spectrum = Spectrum::new(SIZE, Window::Hann, Averaging::All).unwrap();
    spectrum.append(0, &real, |_| {});
    let mut integers = Spectrum::new(SIZE, Window::Hann, Averaging::All).unwrap();
    integers.append(0, &samples, |_| {});
    assert_eq!(spectrum.dbfs(), integers.dbfs());
    // In counts, with the full scale of counts.
    let counts: Vec<f32> = samples.iter().map(|&sample| sample.into()).collect();
    let mut scaled = Spectrum::new(SIZE, Window::Hann, Averaging::All).unwrap();
    scaled.set_full_scale(32768.0);
    scaled.append(0, &counts, |_| {});
    assert_eq!(scaled.dbfs(), integers.dbfs());
    // A real signal has both sides alike, each 6 dB below the sine.
    let mut complex = Spectrum::complex(SIZE, Window::Hann, Averaging::All).unwrap();
    complex.append(0, &samples, &vec![0; samples.len()], |_| {});
    for line in 1..SIZE / 2 {
        let [below, above] = [complex.dbfs()[SIZE / 2 - line], complex.dbfs()[SIZE / 2 + line]];
        let expected = integers.dbfs()[line] - 6.0206;
        if expected > -110.0 {
            assert!(
                (below - expected).abs() < 0.01 && (above - expected).abs() < 0.01,
                "{line}: {below} {above} {expected}"
            );
        }
    }
    // However it is cut.
    let (i, q) = complex_tone(-37.3, 0.5, SIZE * 3);
    let run = |block: usize| {
        let mut spectrum = Spectrum::complex(SIZE, Window::Hann, Averaging::Exponential(4)).unwrap();
        for (place, (i, q)) in i.chunks(block).zip(q.chunks(block)).enumerate() {
            spectrum.append((place * block) as u64, i, q, |_| {});
        }
        (spectrum.dbfs().to_vec(), spectrum.count())
    };
    for block in [1000, 4095, 5000] {
        assert_eq!(run(block), run(i.len()), "{block}");
    }
}

#[test]
fn a_transform_with_a_hole_is_left_out() {
    let (mut i, q) = complex_tone(100.0, 0.5, SIZE * 4);
    i[SIZE * 2 + 7] = f32::NAN;
    let mut spectrum = Spectrum::complex(SIZE, Window::Hann, Averaging::All).unwrap();
    spectrum.set_hop(SIZE);
    let mut calls = 0;
    spectrum.append(0, &i, &q, |_| calls += 1);
    assert_eq!((spectrum.count(), spectrum.left_out(), calls), (3, 1, 3));
    assert!((spectrum.dbfs()[SIZE / 2 + 100] + 6.0206).abs() < 0.001);
    let mut real = Spectrum::new(SIZE, Window::Hann, Averaging::All).unwrap();
    i[SIZE + 7] = f32::INFINITY;
    real.append(0, &i[..SIZE * 2], |_| {});
    assert_eq!((real.count(), real.left_out()), (1, 2));
}
