use std::f64::consts::TAU;

use grebe_frame::Complex;
use grebe_testing::Rng;

use super::*;
use crate::data::core::ScopeCore;
use crate::data::history::Viewer;
use crate::testing::{batch, complex_batch};

const SAMPLES: u64 = 1 << 20;
const BURST: Range<u64> = 400_000..460_000;
/// Samples per symbol, and symbols of its pulse to either side.
const SYMBOL: u64 = 25;
const PULSE: u64 = 6;

/// QPSK of -20 dBFS at 0.125 of the rate, whose pulses fill 0.04 of it.
fn qpsk(rng: &mut Rng) -> Vec<Complex<f64>> {
    let length = BURST.end - BURST.start;
    let mut side = || if rng.f64() < 0.5 { -1.0 } else { 1.0 };
    let symbols: Vec<(f64, f64)> = (0..length / SYMBOL + 2 * PULSE).map(|_| (side(), side())).collect();
    let pulse = |time: f64| {
        let angle = std::f64::consts::PI * time;
        let sinc = if time == 0.0 { 1.0 } else { angle.sin() / angle };
        sinc * (0.5 + 0.5 * (angle / PULSE as f64).cos())
    };
    let sample = |index: u64| {
        let (symbol, part) = (index / SYMBOL, (index % SYMBOL) as f64 / SYMBOL as f64);
        let near = (0..2 * PULSE).map(|at| {
            let (i, q) = symbols[(symbol + at) as usize];
            let height = pulse(part + PULSE as f64 - 1.0 - at as f64);
            (i * height, q * height)
        });
        let (i, q) = near.fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let (sin, cos) = ((0.125 * index as f64).fract() * TAU).sin_cos();
        Complex { re: i * cos - q * sin, im: i * sin + q * cos }
    };
    let made: Vec<Complex<f64>> = (0..length).map(sample).collect();
    let power = made.iter().map(|it| it.re * it.re + it.im * it.im).sum::<f64>() / length as f64;
    let gain = 0.1 / power.sqrt();
    made.into_iter().map(|it| Complex { re: it.re * gain, im: it.im * gain }).collect()
}

/// Noise of -60 dBFS, with QPSK in the burst, and a tone of -30 dBFS at -0.3.
fn samples() -> Vec<Complex<f32>> {
    let mut rng = Rng::with_seed(45);
    let burst = qpsk(&mut rng);
    let sigma = 1e-3 / 2f64.sqrt();
    let mut noise = || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    let sample = |index: u64| {
        let (sin, cos) = ((-0.3 * index as f64).fract() * TAU).sin_cos();
        let tone = 10f64.powf(-1.5);
        let inside = index.checked_sub(BURST.start).and_then(|at| burst.get(at as usize));
        let Complex { re, im } = inside.copied().unwrap_or(Complex { re: 0.0, im: 0.0 });
        Complex {
            re: (re + tone * cos + sigma * noise()) as f32,
            im: (im + tone * sin + sigma * noise()) as f32,
        }
    };
    (0..SAMPLES).map(sample).collect()
}

fn core(samples: &[Complex<f32>]) -> ScopeCore {
    let mut core = ScopeCore::new(160 << 20);
    for first in (0..samples.len() as u64).step_by(4096) {
        core.ingest(&complex_batch(first, 1, 4096, 1e6, |index| samples[index as usize]), 1).unwrap();
    }
    core
}

fn measured(core: &mut ScopeCore, samples: Range<u64>, band: (f64, f64), now_ns: u64) -> RegionMeasurements {
    let region = Region { channel: 0, samples, band: band.into() };
    let viewport = Viewport { region: Some(region.clone()), ..Viewport::latest(10) };
    let measured = core.answer(&viewport, now_ns).region.expect("its samples are held");
    assert_eq!(measured.region, region);
    measured
}

#[track_caller]
fn assert_near(got: Option<f64>, expected: f64, reach: f64) {
    let got = got.unwrap();
    assert!((got - expected).abs() <= reach, "{got}, not {expected}");
}

/// Power in dBFS within a band: sum over the lines of a plain transform.
fn brute_force(samples: &[Complex<f32>], (low, high): (f64, f64)) -> f64 {
    let size = samples.len() as f64;
    let lines = (low * size).ceil() as i64..=(high * size).floor() as i64;
    let power = lines.map(|line| {
        let (mut re, mut im) = (0.0, 0.0);
        for (at, sample) in samples.iter().enumerate() {
            let (sin, cos) = (-(line as f64 * at as f64 / size).fract() * TAU).sin_cos();
            let (i, q) = (f64::from(sample.re), f64::from(sample.im));
            (re, im) = (re + i * cos - q * sin, im + i * sin + q * cos);
        }
        (re * re + im * im) / (size * size)
    });
    10.0 * power.sum::<f64>().log10()
}

#[test]
fn a_box_has_the_power_and_the_band_of_what_is_in_it_and_finds_its_burst() {
    let samples = samples();
    let mut core = core(&samples);
    let exact = measured(&mut core, BURST, (0.09, 0.16), 1);
    let signal = exact.signal;
    assert_near(signal.channel_power_dbfs, -20.0, 0.1);
    // Noise within 0.07 of the rate.
    assert_near(signal.channel_snr_db, -20.0 + 60.0 - 10.0 * 0.07f64.log10(), 0.3);
    let occupied = signal.occupied.unwrap();
    assert!((occupied.center() - 0.125).abs() < 0.001, "{occupied:?}");
    assert!((0.036..0.042).contains(&occupied.width()), "{occupied:?}");
    let (at, dbfs) = exact.peak.unwrap();
    assert!((0.1..0.15).contains(&at) && (-40.0..-15.0).contains(&dbfs), "{at} {dbfs}");
    // Twice as long and twice as wide, beside it.
    let loose = measured(&mut core, 380_000..500_000, (0.08, 0.2), 2);
    let burst = loose.burst.unwrap();
    let size = burst_size(&loose.region) as u64;
    for (edge, truth) in [(burst.samples.start, BURST.start), (burst.samples.end, BURST.end)] {
        assert!(edge.abs_diff(truth) <= size, "{:?}, {size} samples a transform", burst.samples);
    }
    assert!((burst.band.center() - 0.125).abs() < 0.001, "{burst:?}");
    assert!((burst.band.width() - occupied.width()).abs() < 0.004, "{burst:?} {occupied:?}");
    // A third of its samples: as a plain transform of them says.
    let part = measured(&mut core, 420_000..422_048, (0.09, 0.16), 3);
    let plain = brute_force(&samples[420_000..422_048], (0.09, 0.16));
    assert_near(part.signal.channel_power_dbfs, plain, 0.3);
    // A tone, and noise alone.
    let tone = measured(&mut core, 100_000..300_000, (-0.31, -0.29), 4);
    assert_near(tone.signal.channel_power_dbfs, -30.0, 0.05);
    assert_near(tone.peak.map(|(cycles, _)| cycles), -0.3, 1e-5);
    assert_near(tone.peak.map(|(_, dbfs)| dbfs), -30.0, 0.05);
    let noise = measured(&mut core, 500_000..700_000, (0.2, 0.3), 5);
    assert_near(noise.signal.channel_power_dbfs, -70.0, 0.1);
    assert_eq!(noise.burst, None);
    assert!(noise.signal.channel_snr_db.is_none_or(|snr| snr < -15.0), "{:?}", noise.signal);
}

#[test]
fn real_samples_have_their_power_too_and_a_box_beside_all_samples_has_none() {
    let tone = |index: u64| (index as f64 * 0.05).fract() * TAU;
    let mut core = ScopeCore::new(16 << 20);
    for first in (0..100_000).step_by(1000) {
        let value = |_: usize, index: u64| (tone(index).sin() * 3276.8).round() as i16;
        core.ingest(&batch(first, 1, 1000, 1e6, value), 1).unwrap();
    }
    let tone = measured(&mut core, 20_000..60_000, (0.04, 0.06), 1);
    assert_near(tone.signal.channel_power_dbfs, -20.0, 0.02);
    assert_near(tone.peak.map(|(_, dbfs)| dbfs), -20.0, 0.02);
    // The part that is there.
    assert_eq!(measured(&mut core, 90_000..200_000, (0.04, 0.06), 2).signal.samples, 10_000);
    for (samples, band) in [(200_000..300_000, (0.0, 0.1)), (0..1000, (0.2, 0.1)), (5..5, (0.0, 0.1))] {
        let region = Some(Region { channel: 0, samples, band: band.into() });
        assert_eq!(core.answer(&Viewport { region, ..Viewport::latest(10) }, 3).region, None);
    }
    let far = Some(Region { channel: 9, samples: 0..u64::MAX, band: (0.0, 0.1).into() });
    assert!(
        core.answer(&Viewport { region: far, ..Viewport::latest(10) }, 4)
            .region
            .is_none_or(|it| it.signal.samples == 0)
    );
}

#[test]
fn samples_that_are_no_numbers_do_not_count_in_a_box() {
    let tone = |index: u64| (0.1 * index as f64).fract() * TAU;
    let mut core = ScopeCore::new(64 << 20);
    for first in (0..200_000).step_by(1000) {
        let value = |index: u64| match index {
            50_000 => Complex { re: f32::NAN, im: 0.0 },
            90_001 => Complex { re: 0.0, im: f32::INFINITY },
            _ => Complex { re: 0.1 * tone(index).cos() as f32, im: 0.1 * tone(index).sin() as f32 },
        };
        core.ingest(&complex_batch(first, 1, 1000, 1e6, value), 1).unwrap();
    }
    let RegionMeasurements { signal, peak, .. } = measured(&mut core, 40_000..100_000, (0.09, 0.11), 1);
    assert_eq!(signal.samples, 59_998);
    assert_near(signal.power_dbfs, -20.0, 0.01);
    assert_near(signal.peak_to_average_db, 0.0, 0.01);
    assert_near(signal.channel_power_dbfs, -20.0, 0.02);
    assert_near(peak.map(|(_, dbfs)| dbfs), -20.0, 0.02);
    // Nothing but such samples.
    let none = measured(&mut core, 50_000..50_001, (0.09, 0.11), 2);
    assert_eq!((none.signal.samples, none.signal.power_dbfs, none.peak), (0, None, None));
}

#[test]
fn a_growing_box_is_measured_again_and_one_that_is_gone_keeps_its_numbers() {
    let mut core = ScopeCore::new(1 << 20);
    let feed = |core: &mut ScopeCore, blocks: Range<u64>| {
        for block in blocks {
            let value = |_: usize, index: u64| ((index as f64 * 0.05).fract() * TAU).sin() * 3276.8;
            core.ingest(&batch(block * 1000, 1, 1000, 1e6, |c, index| value(c, index) as i16), 1).unwrap();
        }
    };
    feed(&mut core, 0..15);
    let samples =
        |core: &mut ScopeCore, now_ns| measured(core, 10_000..30_000, (0.04, 0.06), now_ns).signal.samples;
    assert_eq!(samples(&mut core, 1), 5_000);
    feed(&mut core, 15..20);
    assert_eq!(samples(&mut core, 2), 5_000, "a little later");
    assert_eq!(samples(&mut core, INTERVAL_NS + 2), 10_000);
    feed(&mut core, 20..100);
    assert_eq!(samples(&mut core, INTERVAL_NS + 3), 10_000, "a little later");
    let region = Some(Region { channel: 0, samples: 10_000..30_000, band: (0.04, 0.06).into() });
    let exact = Viewport { region, is_exact: true, ..Viewport::latest(10) };
    assert_eq!(core.answer(&exact, INTERVAL_NS + 4).region.unwrap().signal.samples, 20_000);
    feed(&mut core, 100..10_000);
    // Another viewer finds extremes only.
    let region = Some(Region { channel: 0, samples: 10_000..30_000, band: (0.04, 0.06).into() });
    let other = core.answer_for(Viewer(1), &Viewport { region, ..Viewport::latest(10) }, 1).region.unwrap();
    assert_eq!((other.signal.samples, other.signal.power_dbfs, other.peak), (0, None, None));
    assert_eq!(samples(&mut core, 9 * INTERVAL_NS), 20_000);
}

#[test]
fn pieces_of_a_long_box_are_spread_over_all_of_it() {
    assert!(matches!(&pieces(&(5..1000))[..], [all] if *all == (5..1000)));
    for length in [SAMPLES_MAX + 1, 1 << 40, u64::MAX - 7] {
        let pieces = pieces(&(7..7 + length));
        assert_eq!((pieces[0].start, pieces[15].end, pieces.len()), (7, 7 + length, 16));
        assert_eq!(pieces.iter().map(|piece| piece.end - piece.start).sum::<u64>(), SAMPLES_MAX);
        assert!(pieces.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}
