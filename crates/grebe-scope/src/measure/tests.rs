//! Measurements against closed forms.

use grebe_testing::Rng;

use super::*;

const RATE_HZ: f64 = 1e6;
const FULL: f64 = 20_000.0;

fn signal(count: usize, value: impl Fn(f64) -> f64) -> Vec<i16> {
    (0..count).map(|i| (value(i as f64) * FULL).round() as i16).collect()
}

fn measure(samples: &[i16]) -> impl Fn(Quantity) -> f64 + use<> {
    let set = Measurer::new().measure(&[samples], RATE_HZ, Scale { factor: 1.0 / FULL, offset: 0.0 });
    move |quantity| set.get(quantity).unwrap_or(f64::NAN)
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} within {tolerance}");
}

fn phase(samples: f64, hz: f64) -> f64 {
    samples / RATE_HZ * hz * std::f64::consts::TAU
}

/// Noise that is the same on every machine: the sum of twelve uniform numbers less 6, deviation 1.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut rng = Rng::with_seed(seed);
    move || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

#[test]
fn a_sine_has_its_closed_forms() {
    // Whole cycles, so that mean and RMS are those of a cycle.
    for hz in [1000.0, 4000.0, 12_500.0] {
        let m = measure(&signal(100_000, |i| 0.9 * phase(i + 0.3, hz).sin() + 0.05));
        assert_near(m(Quantity::PeakToPeak), 1.8, 0.003);
        assert_near(m(Quantity::Mean), 0.05, 1e-4);
        assert_near(m(Quantity::AcRms), 0.9 / 2f64.sqrt(), 1e-4);
        assert_near(m(Quantity::Rms), (0.405f64 + 0.0025).sqrt(), 1e-4);
        assert_near(m(Quantity::Frequency), hz, hz * 1e-5);
        assert_near(m(Quantity::Duty), 0.5, 0.002);
        // From -0.8 to 0.8 of the amplitude (levels found to 0.4 %): 2 asin(0.8) / (2 pi f).
        let rise = 2.0 * 0.8f64.asin() / (std::f64::consts::TAU * hz);
        assert_near(m(Quantity::RiseTime), rise, rise * 0.01);
        assert_near(m(Quantity::FallTime), rise, rise * 0.01);
        assert_near(m(Quantity::Overshoot), 0.0, 0.003);
    }
}

#[test]
fn a_square_wave_has_its_duty_and_widths() {
    for duty in [0.1, 0.37, 0.5, 0.93] {
        let period = 1234.5;
        let m = measure(&signal(200_000, |i| if (i / period).fract() < duty { 0.8 } else { -0.4 }));
        assert_near(m(Quantity::Duty), duty, 1e-3);
        assert_near(m(Quantity::Period), period / RATE_HZ, 1e-8);
        assert_near(m(Quantity::PositiveWidth), duty * period / RATE_HZ, 1e-6);
        assert_near(m(Quantity::NegativeWidth), (1.0 - duty) * period / RATE_HZ, 1e-6);
        assert_near(m(Quantity::Top), 0.8, 1e-4);
        assert_near(m(Quantity::Base), -0.4, 1e-4);
        assert_near(m(Quantity::Mean), 1.2 * duty - 0.4, 0.005);
        assert_near(m(Quantity::RiseTime), 0.8 / RATE_HZ, 1e-9);
    }
}

#[test]
fn rise_fall_and_overshoot_of_a_step_that_rings() {
    // Trapezoid: 100 samples up, 300 down; 10 to 90 % is 0.8 of that.
    let trapezoid = |i: f64| match i % 2000.0 {
        t if t < 100.0 => t / 100.0,
        t if t < 1000.0 => 1.0,
        t if t < 1300.0 => 1.0 - (t - 1000.0) / 300.0,
        _ => 0.0,
    };
    let m = measure(&signal(50_000, trapezoid));
    assert_near(m(Quantity::RiseTime), 80.0 / RATE_HZ, 0.5 / RATE_HZ);
    assert_near(m(Quantity::FallTime), 240.0 / RATE_HZ, 0.5 / RATE_HZ);
    let ringing = |i: f64| {
        let t = i % 5000.0;
        let step = 1.0 - (-t / 60.0).exp() * (t / 20.0).cos();
        if t < 2500.0 { step } else { 0.0 }
    };
    let expected = (0..2500).map(|i| ringing(f64::from(i))).fold(0.0, f64::max) - 1.0;
    let m = measure(&signal(50_000, ringing));
    assert_near(m(Quantity::Overshoot), expected, 0.003);
    assert_near(m(Quantity::Top), 1.0, 0.002);
}

#[test]
fn a_chirp_has_the_frequency_of_its_middle() {
    // Linear from 1 to 5 kHz in 1 s: the mean frequency of a window is that of its middle.
    let chirp = signal(1_000_000, |i| {
        let t = i / RATE_HZ;
        (std::f64::consts::TAU * (1000.0 * t + 2000.0 * t * t)).sin()
    });
    for from in [0, 300_000, 900_000] {
        let m = measure(&chirp[from..from + 100_000]);
        let middle = 1000.0 + 4000.0 * (from as f64 + 50_000.0) / RATE_HZ;
        assert_near(m(Quantity::Frequency), middle, middle * 0.005);
    }
}

#[test]
fn noise_has_its_deviation_and_a_noisy_sine_its_frequency() {
    let mut gauss = noise(1);
    let only: Vec<i16> = (0..400_000).map(|_| (gauss() * 1000.0).round() as i16).collect();
    let m = measure(&only);
    assert_near(m(Quantity::AcRms), 1000.0 / FULL, 5.0 / FULL);
    assert_near(m(Quantity::Mean), 0.0, 6.0 / FULL);
    let sine: Vec<i16> = signal(100_000, |i| 0.8 * phase(i, 2000.0).sin());
    let noisy: Vec<i16> = sine.iter().map(|&s| s + (gauss() * 300.0) as i16).collect();
    assert_near(measure(&noisy)(Quantity::Frequency), 2000.0, 0.5);
    assert_near(measure(&noisy)(Quantity::Duty), 0.5, 0.01);
}

#[test]
fn a_gap_joins_nothing() {
    let period = 500.0;
    let square = signal(10_000, |i| if (i / period).fract() < 0.5 { 0.5 } else { -0.5 });
    // 130 samples are lost in the middle: no width and no period may reach across.
    let set = Measurer::new().measure(&[&square[..4900], &square[5030..]], RATE_HZ, Scale::COUNTS);
    assert_near(set.get(Quantity::Period).unwrap(), period / RATE_HZ, 1e-9);
    assert_near(set.get(Quantity::PositiveWidth).unwrap(), 250.0 / RATE_HZ, 1e-9);
}

#[test]
fn a_negative_factor_turns_the_table_over() {
    let square = signal(10_000, |i| if i % 100.0 < 30.0 { 0.6 } else { -0.2 });
    let scale = Scale { factor: -1.0 / FULL, offset: 1.0 };
    let set = Measurer::new().measure(&[&square], RATE_HZ, scale);
    assert_near(set.get(Quantity::Max).unwrap(), 1.2, 1e-9);
    assert_near(set.get(Quantity::Min).unwrap(), 0.4, 1e-9);
    assert_near(set.get(Quantity::Top).unwrap(), 1.2, 1e-9);
    assert_near(set.get(Quantity::Duty).unwrap(), 0.7, 1e-9);
}

#[test]
fn quantities_that_a_signal_lacks_are_omitted() {
    let mut measurer = Measurer::new();
    let empty = measurer.measure(&[], RATE_HZ, Scale::COUNTS);
    assert!(Quantity::ALL.iter().all(|&q| empty.get(q).is_none()));
    let flat = measurer.measure(&[&[7; 100]], RATE_HZ, Scale::COUNTS);
    assert_eq!((flat.get(Quantity::Mean), flat.get(Quantity::Frequency)), (Some(7.0), None));
    let rateless = measurer.measure(&[&[0, 9, 0, 9, 0, 9]], 0.0, Scale::COUNTS);
    assert_eq!((rateless.get(Quantity::Max), rateless.get(Quantity::Period)), (Some(9.0), None));
    for (place, quantity) in Quantity::ALL.into_iter().enumerate() {
        assert_eq!(quantity as usize, place, "{}", quantity.name());
    }

    let mut statistics = MeasurementStatistics::default();
    statistics.add(&flat);
    statistics.add(&empty);
    assert_eq!(statistics.get(Quantity::Mean).count(), 1);
    assert_eq!(statistics.get(Quantity::Frequency).count(), 0);
}

/// A signal with known values: its levels, period, duty and times are those of its shape, under any noise.
struct Known {
    name: &'static str,
    /// Between 0 (base) and 1 (top), by the sample number.
    shape: fn(f64) -> f64,
    period: f64,
    duty: f64,
    /// From 10 % to 90 %, in samples; 0 if the shape has no edge to measure.
    rise: f64,
}

fn ramp(t: f64, from: f64, length: f64) -> f64 {
    ((t - from) / length).clamp(0.0, 1.0)
}

const KNOWN: [Known; 6] = [
    Known { name: "square", shape: |i| f64::from(i % 400.0 < 200.0), period: 400.0, duty: 0.5, rise: 0.8 },
    Known {
        name: "trapezoid",
        shape: |i| ramp(i % 400.0, 20.0, 25.0) - ramp(i % 400.0, 220.0, 25.0),
        period: 400.0,
        duty: 0.5,
        rise: 20.0,
    },
    Known {
        name: "pulses of 1 %",
        shape: |i| f64::from(i % 1000.0 < 10.0),
        period: 1000.0,
        duty: 0.01,
        rise: 0.8,
    },
    Known {
        name: "gaps of 1 %",
        shape: |i| f64::from(i % 1000.0 >= 10.0),
        period: 1000.0,
        duty: 0.99,
        rise: 0.8,
    },
    Known {
        name: "ringing",
        shape: |i| {
            let t = i % 1000.0;
            let ring = |t: f64| 1.0 - (-t / 25.0).exp() * (t / 6.0).cos();
            if t < 500.0 { ring(t) } else { 1.0 - ring(t - 500.0) }
        },
        period: 1000.0,
        duty: 0.5,
        rise: 0.0,
    },
    Known {
        name: "sine of 50 samples",
        shape: |i| 0.5 + 0.5 * (i / 50.0 * std::f64::consts::TAU).sin(),
        period: 50.0,
        duty: 0.5,
        rise: 50.0 * 2.0 * 0.926 / std::f64::consts::TAU,
    },
];

#[test]
fn levels_duty_and_times_are_the_truth_whatever_noise_there_is() {
    against_the_truth(&mut |signal| {
        let samples: Vec<i16> = signal.map(|value| value.round() as i16).collect();
        Measurer::new().measure(&[&samples], RATE_HZ, Scale::COUNTS)
    });
}

/// The same of `f32`, whatever unit the samples are in: from picovolts to teravolts.
#[test]
fn levels_duty_and_times_are_the_truth_of_reals() {
    for unit in [1e-12, 1.0 / 32768.0, 1.0, 1e12] {
        against_the_truth(&mut |signal| {
            let samples: Vec<f32> = signal.map(|value| (value * unit) as f32).collect();
            Measurer::new().measure(&[&samples], RATE_HZ, Scale { factor: 1.0 / unit, offset: 0.0 })
        });
    }
}

fn against_the_truth(measure: &mut dyn FnMut(&mut dyn Iterator<Item = f64>) -> Measurements) {
    let (base, amplitude) = (5000.0, 7000.0);
    let mut wrong = Vec::new();
    for known in &KNOWN {
        for noise_part in [0.0, 0.01, 0.03, 0.05, 0.08, 1.0 / 7.0] {
            let mut gauss = noise(7);
            let sample = |i| base + amplitude * ((known.shape)(i) + noise_part * gauss());
            let set = measure(&mut (0..100_000).map(f64::from).map(sample));
            let get = |quantity| set.get(quantity).unwrap_or(f64::NAN);
            let is_sine = known.name.starts_with("sine");
            if is_sine && noise_part > 0.1 {
                continue;
            }
            // Noise hides a sine's crests: its levels lie one and a half deviations further inside.
            let level = amplitude * (0.01 + noise_part * if is_sine { 1.5 } else { 0.1 });
            let rise = known.rise * if is_sine { 0.05 + 3.0 * noise_part } else { 0.1 };
            let rise = if known.rise > 0.0 { rise.max(0.2) } else { f64::INFINITY };
            for (what, value, truth, tolerance) in [
                ("base", get(Quantity::Base), base, level),
                ("top", get(Quantity::Top), base + amplitude, level),
                ("period", get(Quantity::Period) * RATE_HZ, known.period, known.period * 0.002),
                ("duty", get(Quantity::Duty), known.duty, 0.002 + 0.02 * noise_part),
                ("rise", get(Quantity::RiseTime) * RATE_HZ, known.rise, rise),
            ] {
                // A shape without a measurable rise may have none.
                let is_right = (value - truth).abs() <= tolerance;
                let may_be_missing = value.is_nan() && tolerance.is_infinite();
                if !is_right && !may_be_missing {
                    wrong.push(format!(
                        "{} with {noise_part:.2}: {what} {value:.3}, not {truth:.3}",
                        known.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn levels_ignore_non_finite_samples() {
    let mut square: Vec<f32> = (0..10_000).map(|n| if n % 100 < 30 { 0.75 } else { -0.25 }).collect();
    let clean = Measurer::new().measure(&[&square], RATE_HZ, Scale::COUNTS);
    square[4010] = f32::NAN;
    square[4050] = f32::NAN;
    square[6010] = f32::INFINITY;
    let holed = Measurer::new().measure(&[&square], RATE_HZ, Scale::COUNTS);
    assert_eq!(holed.get(Quantity::Max), Some(f64::INFINITY));
    for quantity in [Quantity::Min, Quantity::Base, Quantity::Top, Quantity::Frequency, Quantity::Duty] {
        assert_near(holed.get(quantity).unwrap(), clean.get(quantity).unwrap(), 1e-9);
    }
    assert_near(holed.get(Quantity::Mean).unwrap(), 0.05, 1e-3);
    assert_eq!(holed.get(Quantity::PositiveWidth), clean.get(Quantity::PositiveWidth));
    let nothing = Measurer::new().measure(&[&[f32::NAN; 100]], RATE_HZ, Scale::COUNTS);
    assert!(Quantity::ALL.iter().all(|&quantity| nothing.get(quantity).is_none()));
    // A constant signal has no edges.
    let flat = Measurer::new().measure(&[&[0.1f32; 1000]], RATE_HZ, Scale::COUNTS);
    assert_eq!((flat.get(Quantity::Frequency), flat.get(Quantity::Overshoot)), (None, None));
    assert_eq!(flat.get(Quantity::PeakToPeak), Some(0.0));
}

/// Edges of `length` samples up, and of half as many more down, between 5 and 12.
fn edges(length: f64, cycles: f64) -> (impl Fn(f64) -> f64, usize) {
    let fall = length * 1.5;
    // Not an integer, so that samples lie anywhere in an edge.
    let period = 10.0 * length + 57.3;
    let shape = move |i: f64| {
        let t = i % period;
        5.0 + 7.0 * (ramp(t, 2.0 * length, length) - ramp(t, 2.0 * length + period / 2.0, fall))
    };
    (shape, (period * cycles) as usize)
}

/// The same signal, with samples of both kinds.
fn measure_both(shape: impl Fn(f64) -> f64, count: usize, noise_part: f64, seed: u64) -> [Measurements; 2] {
    let mut gauss = noise(seed);
    let noisy: Vec<f64> = (0..count).map(|i| shape(i as f64) + 7.0 * noise_part * gauss()).collect();
    let reals: Vec<f32> = noisy.iter().map(|&value| value as f32).collect();
    let counts: Vec<i16> = noisy.iter().map(|value| (value * 1000.0).round() as i16).collect();
    [
        Measurer::new().measure(&[&reals], RATE_HZ, Scale::COUNTS),
        Measurer::new().measure(&[&counts], RATE_HZ, Scale::COUNTS),
    ]
}

#[test]
fn rise_and_fall_are_the_truth_whatever_noise_there_is() {
    let mut wrong = Vec::new();
    for rise in [2.0, 20.0, 200.0] {
        for noise_part in [0.0, 0.01, 0.04, 1.0 / 7.0] {
            let (shape, count) = edges(rise / 0.8, 400.0_f64.min(60_000.0 / rise));
            for set in measure_both(shape, count, noise_part, 3) {
                for (quantity, truth) in [(Quantity::RiseTime, rise), (Quantity::FallTime, rise * 1.5)] {
                    let value = set.get(quantity).unwrap_or(f64::NAN) * RATE_HZ;
                    // Straight lines between samples cut corners: by up to a third of a sample.
                    let tolerance = if noise_part < 0.03 { 0.01 * truth + 0.3 } else { 0.1 * truth };
                    if (value - truth).abs() > tolerance || value.is_nan() {
                        wrong
                            .push(format!("{} of {truth} with {noise_part:.2}: {value:.2}", quantity.name()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_rise_that_noise_hides_is_left_out() {
    for (rise, cycles) in [(2.0, 3.0), (20.0, 1.0), (20.0, 4.0), (200.0, 1.0)] {
        let (shape, count) = edges(rise / 0.8, cycles);
        for set in measure_both(&shape, count, 1.0 / 7.0, 11) {
            assert_eq!(set.get(Quantity::RiseTime), None, "{rise} of {cycles} edges");
        }
    }
    // Displayed values of few edges are right.
    let (mut shown, mut left_out) = (0, 0);
    for (rise, cycles) in [(20.0, 3.0), (20.0, 10.0), (20.0, 30.0), (200.0, 1.0), (200.0, 3.0)] {
        let (shape, count) = edges(rise / 0.8, cycles);
        for (seed, noise_part) in [(1, 0.06), (2, 0.1), (3, 1.0 / 7.0), (4, 0.06), (5, 0.1), (6, 1.0 / 7.0)] {
            for set in measure_both(&shape, count, noise_part, seed) {
                match set.get(Quantity::RiseTime) {
                    Some(value) => {
                        shown += 1;
                        assert_near(value * RATE_HZ, rise, rise * 0.1);
                    }
                    None => left_out += 1,
                }
            }
        }
    }
    assert!(shown > 10 && left_out > 10, "{shown} shown, {left_out} left out");
    // Such noise hides base and top of a sine: its peaks are those of the noise.
    let sine = |i: f64| 5.0 + 3.5 * (i / 50.0 * std::f64::consts::TAU).sin();
    for set in measure_both(sine, 50_000, 1.0 / 7.0, 11) {
        assert_eq!((set.get(Quantity::RiseTime), set.get(Quantity::FallTime)), (None, None));
    }
}
