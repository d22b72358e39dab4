//! Known modulations: signal to noise and distortion of the tone that comes back, and the formulas of GNU Radio.

use std::time::Duration;

use grebe_flow::StageBench;
use grebe_frame::{Batch, BatchPool, Complex};
use proptest::prelude::*;

use super::*;

/// Sound of a second of a signal at this rate, by its phase and amplitude at a time.
fn heard(demodulate: Demodulate, rate_hz: f64, signal: impl Fn(f64) -> Complex<f32>) -> Vec<f32> {
    demodulate.check().unwrap();
    let mut pool = BatchPool::new(2, 1 << 20);
    let mut bench = StageBench::new(stage(demodulate)).unwrap();
    let mut made: Vec<Batch> = Vec::new();
    for first in (0..rate_hz as u64).step_by(20_000) {
        let header = Header {
            format: SampleFormat::Cf32,
            channel_count: 1,
            block_length_samples: 20_000.min(rate_hz as u64 - first) as u32,
            first_sample_index: first,
            sample_rate_hz: rate_hz,
            ..Header::default()
        };
        let mut batch = pool.acquire().unwrap();
        batch
            .push::<Complex<f32>>(&header, |_, out| {
                for (out, index) in out.iter_mut().zip(first..) {
                    *out = signal(index as f64 / rate_hz);
                }
            })
            .unwrap();
        made.extend(bench.feed(batch.freeze()).unwrap());
    }
    made.extend(bench.end().unwrap());
    let frames = made.iter().flat_map(|batch| batch.frames());
    frames.flat_map(|frame| frame.channel::<f32>(0).unwrap().into_owned()).collect()
}

/// Amplitude of a tone at sample 0's phase zero (as a sine and a cosine), and the rest in dB below it.
fn tone(sound: &[f32], rate_hz: f64, tone_hz: f64) -> ([f64; 2], f64) {
    // Whole periods, away from the edges.
    let range = sound.len() / 4..sound.len() / 4 * 3;
    let period = (1..).find(|&period| (period as f64 * tone_hz / rate_hz).fract() == 0.0).unwrap_or(1);
    let range = range.start..range.end - range.len() % period;
    let part = |of: fn(f64) -> f64| {
        let sum: f64 = range
            .clone()
            .map(|at| f64::from(sound[at]) * of(TAU * (tone_hz * at as f64 / rate_hz).fract()))
            .sum();
        2.0 * sum / range.len() as f64
    };
    let (sine, cosine) = (part(f64::sin), part(f64::cos));
    let mean = range.clone().map(|at| f64::from(sound[at])).sum::<f64>() / range.len() as f64;
    let rest: f64 = range
        .clone()
        .map(|at| {
            let turns = TAU * (tone_hz * at as f64 / rate_hz).fract();
            (f64::from(sound[at]) - mean - sine * turns.sin() - cosine * turns.cos()).powi(2)
        })
        .sum();
    let power = sine.hypot(cosine).powi(2) / 2.0;
    ([sine, cosine], 10.0 * (rest / range.len() as f64 / power).log10())
}

fn at(amplitude: f64, radians: f64) -> Complex<f32> {
    Complex::new((amplitude * radians.cos()) as f32, (amplitude * radians.sin()) as f32)
}

fn mode(mode: Modulation, center_hz: f64) -> Demodulate {
    Demodulate { center: Some(FrequencyHz(center_hz)), ..Demodulate::new(mode) }
}

const RATE_HZ: f64 = 480e3;

#[test]
fn amplitude_modulation_is_recovered_from_any_carrier() {
    for carrier in [1.0, 0.003] {
        let signal = |t: f64| at(carrier * (1.0 + 0.6 * (TAU * 1e3 * t).sin()), TAU * 70e3 * t);
        let sound = heard(mode(Modulation::Am, 70e3), RATE_HZ, signal);
        assert_eq!(sound.len(), 48_000);
        let ([sine, cosine], rest_db) = tone(&sound, 48e3, 1e3);
        assert!(
            (sine - 0.6).abs() < 0.003 && cosine.abs() < 0.003 && rest_db < -55.0,
            "{sine} {cosine} {rest_db} dB"
        );
    }
}

#[test]
fn frequency_modulation_comes_back() {
    let fm = |carrier_hz: f64, deviation_hz: f64, tone_hz: f64| {
        move |t: f64| at(0.5, TAU * carrier_hz * t - deviation_hz / tone_hz * (TAU * tone_hz * t).cos())
    };
    let sound = heard(mode(Modulation::Fm, -50e3), RATE_HZ, fm(-50e3, 2_500.0, 1e3));
    let ([sine, cosine], rest_db) = tone(&sound, 48e3, 1e3);
    assert!(
        (sine - 0.5).abs() < 0.002 && cosine.abs() < 0.08 && rest_db < -60.0,
        "{sine} {cosine} {rest_db} dB"
    );
    let none = Demodulate { de_emphasis: Some(Time(Duration::ZERO)), ..mode(Modulation::Wfm, 100e3) };
    let sound = heard(none.clone(), RATE_HZ, fm(100e3, 75e3, 1e3));
    let ([sine, _], rest_db) = tone(&sound, 48e3, 1e3);
    assert!((sine - 1.0).abs() < 0.003 && rest_db < -50.0, "{sine} {rest_db} dB");
    // An audio rate without a whole ratio.
    let other = Demodulate { rate: RateHz(44_100.0), ..none };
    let sound = heard(other, RATE_HZ, fm(100e3, 60e3, 441.0));
    let ([sine, _], rest_db) = tone(&sound, 44_100.0, 441.0);
    assert!((sine - 0.8).abs() < 0.003 && rest_db < -50.0, "{sine} {rest_db} dB");
}

#[test]
fn a_band_is_heard_as_it_is_drawn_at_a_rate_that_keeps_it() {
    // A tone 1 kHz beside the carrier of a sideband that was drawn from 300 Hz to 3 kHz beside it.
    for (mode, low_hz, high_hz, side) in
        [(Modulation::Usb, 50.3e3, 53e3, 1.0), (Modulation::Lsb, 47e3, 49.7e3, -1.0)]
    {
        let kind = Demodulate::of_band(mode, low_hz, high_hz).at_lowest_rate();
        assert_eq!((kind.center, kind.rate), (Some(FrequencyHz(50e3 + side * 100.0)), RateHz(8e3)));
        let sound = heard(kind, RATE_HZ, |t| at(0.5, TAU * (50e3 + side * 1_100.0) * t));
        let ([sine, cosine], rest_db) = tone(&sound, 8e3, 1e3);
        assert!((sine.hypot(cosine) - 0.5).abs() < 0.005 && rest_db < -50.0, "{sine} {cosine} {rest_db} dB");
    }
    for (mode, bandwidth_hz, rate_hz) in [
        (Modulation::Am, 10e3, 12e3),
        (Modulation::Fm, 12.5e3, 16e3),
        (Modulation::Fm, 1e6, 48e3),
        (Modulation::Wfm, 200e3, 48e3),
        (Modulation::Cw, 5e3, 16e3),
    ] {
        let kind = Demodulate::of_band(mode, 1e6, 1e6 + bandwidth_hz).at_lowest_rate();
        assert_eq!(kind.rate, RateHz(rate_hz), "{mode:?}");
        kind.check().unwrap();
    }
    assert!(Demodulate::of_band(Modulation::Usb, 0.0, 30e3).at_lowest_rate().check().is_err());
}

/// `fm_deemph` of GNU Radio (gr-analog/python/analog/fm_emph.py), and the analogue filter that it is made from.
#[test]
fn de_emphasis_is_that_of_gnu_radio() {
    for (time_s, rate_hz) in [(50e-6f64, 240e3f64), (75e-6, 48e3)] {
        let warped = 2.0 * rate_hz * (1.0 / time_s / (2.0 * rate_hz)).tan();
        let k = -warped / (2.0 * rate_hz);
        let (b0, p1) = (-k / (1.0 - k), (1.0 + k) / (1.0 - k));
        let mut filter = DeEmphasis::new(time_s, rate_hz);
        let (mut last_in, mut last_out) = (0.0, 0.0);
        for at in 0..500 {
            let number = f64::from((at as f32 * 0.37).sin());
            let out = b0 * number + b0 * last_in + p1 * last_out;
            (last_in, last_out) = (number, out);
            assert!((f64::from(filter.next(number as f32)) - out).abs() < 1e-6);
        }
    }
    let fm = |t: f64| at(1.0, TAU * 100e3 * t - 10.0 * (TAU * 3e3 * t).cos());
    let sound = heard(mode(Modulation::Wfm, 100e3), RATE_HZ, fm);
    let ([sine, cosine], _) = tone(&sound, 48e3, 3e3);
    let expected = 30.0 / 75.0 / (TAU * 3e3 * 50e-6).hypot(1.0);
    assert!((sine.hypot(cosine) - expected).abs() < 0.003, "{sine} {cosine}, {expected}");
}

/// `quadrature_demod_cf` of GNU Radio: gain times the argument of a sample times the conjugate of the one before.
#[test]
fn frequencies_are_those_of_gnu_radio() {
    let demodulate =
        Demodulate { rate: RateHz(250e3), bandwidth: Some(RateHz(150e3)), ..Demodulate::new(Modulation::Fm) };
    let mut detector = Detector::new(&demodulate, 0);
    let gain = 250e3 / TAU / 5e3;
    let mut last = num(0.3, 0.1);
    detector.sound([0.3, 0.1]);
    for at in 0..100 {
        let (re, im) = ((f64::from(at) * 0.7).sin(), (f64::from(at) * 1.3).cos());
        let now = num(re, im);
        let product = now * last.conj();
        last = now;
        let sound = f64::from(detector.sound([re as f32, im as f32]));
        assert!((sound - gain * product.im.atan2(product.re)).abs() < 1e-4);
    }
}

fn num(re: f64, im: f64) -> rustfft::num_complex::Complex<f64> {
    rustfft::num_complex::Complex::new(re, im)
}

#[test]
fn one_sideband_is_demodulated_and_the_other_is_not() {
    for (sideband, sign) in [(Modulation::Usb, 1.0), (Modulation::Lsb, -1.0)] {
        for tone_hz in [200.0, 1e3, 3e3] {
            let of = |sign: f64| {
                let signal = |t: f64| at(0.25, TAU * (30e3 + sign * tone_hz) * t);
                tone(&heard(mode(sideband, 30e3), RATE_HZ, signal), 48e3, tone_hz)
            };
            let ([sine, cosine], rest_db) = of(sign);
            assert!(
                (cosine - 0.25).abs() < 1e-3 && sine.abs() < 1e-3 && rest_db < -75.0,
                "{sine} {cosine} {rest_db} dB"
            );
            let ([sine, cosine], _) = of(-sign);
            assert!(sine.hypot(cosine) < 0.25e-4, "{sine} {cosine}");
        }
    }
    let signal = |t: f64| at(0.01, TAU * 30e3 * t);
    let ([_, cosine], rest_db) = tone(&heard(mode(Modulation::Cw, 30e3), RATE_HZ, signal), 48e3, 700.0);
    assert!((cosine - 0.01).abs() < 1e-5 && rest_db < -75.0, "{cosine} {rest_db} dB");
    let leveled = Demodulate { level: true, ..mode(Modulation::Cw, 30e3) };
    let ([_, cosine], rest_db) = tone(&heard(leveled, RATE_HZ, signal), 48e3, 700.0);
    assert!((cosine - 0.5).abs() < 1e-2 && rest_db < -45.0, "{cosine} {rest_db} dB");
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let check = |demodulate: Demodulate| demodulate.check().map_err(|fault| fault.to_string());
    let usb = Demodulate::new(Modulation::Usb);
    assert_eq!(check(usb.clone()), Ok(()));
    assert!(
        check(Demodulate { rate: RateHz(4e3), ..usb.clone() }).unwrap_err().contains("at least 6.7 kS/s")
    );
    let cw = Demodulate { pitch: RateHz(100.0), ..Demodulate::new(Modulation::Cw) };
    assert!(check(cw).unwrap_err().contains("pitch"));
    assert!(check(Demodulate { rate: RateHz(10.0), ..usb }).unwrap_err().contains("1 kHz"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_signal_makes_finite_sound_in_its_time(
        which in 0usize..6, rate_hz in 20e3..3e5f64, sound_hz in prop_oneof![Just(48e3), 7e3..2e5f64], bandwidth_hz in prop::option::of(10.0..3e4f64),
        seed: u64,
    ) {
        use Modulation::{Am, Cw, Fm, Lsb, Usb, Wfm};
        let mode = [Am, Fm, Wfm, Usb, Lsb, Cw][which];
        let demodulate = Demodulate { rate: RateHz(sound_hz), bandwidth: bandwidth_hz.map(RateHz), ..Demodulate::new(mode) };
        if demodulate.check().is_err() {
            return Ok(());
        }
        let mut bench = StageBench::new(stage(demodulate)).unwrap();
        let header = Header { format: SampleFormat::Ci16, channel_count: 1, block_length_samples: 5_000, sample_rate_hz: rate_hz, ..Header::default() };
        let mut batch = BatchPool::new(1, 1 << 20).acquire().unwrap();
        let mut rng = grebe_testing::Rng::with_seed(seed);
        batch.push::<Complex<i16>>(&header, |_, out| out.fill_with(|| Complex::new(rng.u16(..) as i16, rng.u16(..) as i16))).unwrap();
        // A band that the signal does not have is an error.
        let Ok(mut made) = bench.feed(batch.freeze()) else { return Ok(()) };
        made.extend(bench.end().unwrap());
        let sound: Vec<f32> = made.iter().flat_map(|batch| batch.frames()).flat_map(|frame| frame.channel::<f32>(0).unwrap().into_owned()).collect();
        prop_assert_eq!(sound.len() as i64, Grid::between(rate_hz, sound_hz).unwrap().first_at(5_000));
        prop_assert!(sound.iter().all(|number| number.is_finite()));
    }
}
