//! The same numbers as NumPy and SciPy on a real signal: five minutes of an electrocardiogram, as a SigMF recording
//! and as a WAV file. `tests/reference/reference.py` writes the expected values.

use std::collections::HashMap;
use std::path::Path;

use grebe_scope::{
    Averaging, Condition, Measurer, Pyramid, Quantity, Scale, Slope, Spectrum, Trigger, TriggerFilter, Window,
};

const RATE: usize = 360;

fn expected() -> HashMap<&'static str, f64> {
    let lines = include_str!("reference/expected.tsv").lines();
    lines
        .map(|line| line.split_once('\t').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect()
}

fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn samples(bytes: &[u8]) -> Vec<i16> {
    bytes.as_chunks::<2>().0.iter().map(|&pair| i16::from_le_bytes(pair)).collect()
}

fn ecg() -> Vec<i16> {
    samples(&data("ecg.sigmf-data"))
}

/// The samples of a WAV file of one channel of 16 bits.
fn wav() -> Vec<i16> {
    let file = data("ecg.wav");
    assert_eq!((&file[..4], &file[8..12]), (&b"RIFF"[..], &b"WAVE"[..]));
    let mut rest = &file[12..];
    loop {
        let size = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        if &rest[..4] == b"data" {
            return samples(&rest[8..8 + size]);
        }
        rest = &rest[8 + size.next_multiple_of(2)..];
    }
}

#[track_caller]
fn assert_near(name: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{name}: {value} is not {expected} within {tolerance}");
}

#[test]
fn levels_agree_with_numpy() {
    let (ecg, expected) = (ecg(), expected());
    assert_eq!(ecg.len() as f64, expected["samples"]);
    let set = Measurer::new().measure(&[&ecg], expected["rate_hz"], Scale::COUNTS);
    for (name, quantity) in [
        ("min", Quantity::Min),
        ("max", Quantity::Max),
        ("mean", Quantity::Mean),
        ("rms", Quantity::Rms),
        ("deviation", Quantity::AcRms),
    ] {
        assert_near(name, set.get(quantity).unwrap(), expected[name], 1e-6);
    }
    // The same from the pyramid's nodes, long after the samples are gone.
    let mut pyramid = Pyramid::new(1, 20 << 10).unwrap();
    for (place, block) in ecg.chunks(700).enumerate() {
        pyramid.append(700 * place as u64, &[block]).unwrap();
    }
    pyramid.samples(0, 0..1, |_, _| panic!("the first sample is still there"));
    let range = pyramid.range_stats(0, 0..ecg.len() as u64);
    assert_near("rms", range.rms().unwrap(), expected["rms"], 1e-6);
    assert_near("mean", range.mean().unwrap(), expected["mean"], 1e-6);
    assert_near("deviation", range.deviation().unwrap(), expected["deviation"], 1e-6);
}

#[test]
fn spectra_agree_with_scipy() {
    let (ecg, expected) = (ecg(), expected());
    for (name, window) in
        [("hann", Window::Hann), ("blackmanharris", Window::BlackmanHarris), ("flattop", Window::FlatTop)]
    {
        let mut spectrum = Spectrum::new(4096, window, Averaging::All).unwrap();
        spectrum.append(0, &ecg, |_| {});
        for line in [13, 40, 55, 170, 683, 1000, 1500] {
            let name = format!("dbfs_{name}_{line}");
            assert_near(&name, spectrum.dbfs()[line].into(), expected[name.as_str()], 0.005);
        }
    }
}

#[test]
fn the_heart_rate_is_within_a_beat_a_minute_of_scipy() {
    let expected = expected();
    for (file, signal) in [("SigMF", ecg()), ("WAV", wav())] {
        let energy = qrs_energy(&signal);
        for start in [0, 60, 120, 180, 240] {
            let minute: Vec<(u64, i16)> = energy
                .iter()
                .copied()
                .filter(|(index, _)| *index as usize / RATE / 60 * 60 == start)
                .collect();
            let rate = beats_per_minute(&minute);
            assert_near(
                &format!("{file}, minute {start}"),
                rate,
                expected[format!("beats_per_minute_{start}").as_str()],
                1.0,
            );
        }
    }
}

/// Only settings of a person: the baseline wanders by more than the height of an R peak.
#[test]
fn a_level_trigger_with_filter_finds_the_r_peaks() {
    let expected = expected();
    let ecg = ecg();
    let edge = Condition::Edge { slope: Slope::Rising, level: 120, hysteresis: 50 };
    let beats_by_minute = |trigger: Trigger| {
        let mut trigger = trigger;
        let mut beats: Vec<Vec<f64>> = vec![Vec::new(); 5];
        for (place, block) in ecg.chunks(250).enumerate() {
            trigger.scan(250 * place as u64, block, |event| {
                beats[event.index as usize / RATE / 60].push(event.position());
            });
        }
        beats
    };
    let rate =
        |beats: &[f64]| 60.0 * RATE as f64 * (beats.len() - 1) as f64 / (beats[beats.len() - 1] - beats[0]);
    let holdoff = RATE as u64 / 5;
    let of_hertz = |hertz: f64| TriggerFilter::high_pass(hertz / RATE as f64).unwrap();
    let coupled = Trigger::new(edge.clone(), holdoff).unwrap().with_filter(of_hertz(1.0));
    let found = beats_by_minute(coupled);
    for (minute, beats) in found.iter().enumerate() {
        let name = format!("beats_per_minute_{}", 60 * minute);
        assert_near(&name, rate(beats), expected[name.as_str()], 1.5);
    }
    assert_near("beats", found.iter().flatten().count() as f64, expected["beats"], 3.0);
    let high = Condition::Edge { slope: Slope::Rising, level: 280, hysteresis: 50 };
    let dc = beats_by_minute(Trigger::new(high, holdoff).unwrap());
    let missed = expected["beats"] - dc.iter().flatten().count() as f64;
    assert!(missed > 20.0, "without it, the level that only R peaks reach misses {missed}");
}

#[test]
fn a_noisy_tone_agrees_with_numpy() {
    let expected = expected();
    let turn = std::f64::consts::TAU;
    let tone = |n: f64| 12000.0 * (turn * n * 0.00731 + 0.7).sin() + 500.0 * (turn * n * 0.2).sin();
    let tone: Vec<i16> = (0..20_000).map(|n| tone(f64::from(n)).round_ties_even() as i16).collect();
    let set = Measurer::new().measure(&[&tone], 1.0, Scale::COUNTS);
    assert_near("RMS", set.get(Quantity::Rms).unwrap(), expected["tone_rms"], 1e-3);
    assert_near("frequency", set.get(Quantity::Frequency).unwrap(), 0.00731, 1e-6);
    let edge = Condition::Edge { slope: Slope::Either, level: 0, hysteresis: 2000 };
    let mut trigger = Trigger::new(edge, 0).unwrap();
    trigger.scan(0, &tone, |_| {});
    assert_eq!(trigger.found() as f64, expected["tone_crossings"]);
}

/// Energy of the QRS band of an electrocardiogram: band-pass, square, smooth. With the index of each sample.
fn qrs_energy(signal: &[i16]) -> Vec<(u64, i16)> {
    let rate = RATE as f64;
    let signal: Vec<f64> = signal.iter().map(|&sample| f64::from(sample)).collect();
    let (upper, lower) = (low_pass(15.0 / rate, 201), low_pass(5.0 / rate, 201));
    let band_taps: Vec<f64> = upper.iter().zip(lower).map(|(upper, lower)| upper - lower).collect();
    let squares: Vec<f64> = filtered(&signal, &band_taps).iter().map(|band| band * band * 0.1).collect();
    let energy = filtered(&squares, &low_pass(4.0 / rate, 101));
    // Each filter shifts by half its length.
    (150..).zip(energy.into_iter().map(|energy| energy.round() as i16)).collect()
}

/// Windowed sinc (Blackman) with `taps` taps and its corner at `cutoff` cycles per sample.
fn low_pass(cutoff: f64, taps: usize) -> Vec<f64> {
    let turn = std::f64::consts::TAU;
    let tap = |n: usize| {
        let (x, part) = (n as f64 - (taps / 2) as f64, n as f64 / (taps - 1) as f64 * turn);
        let sinc =
            if x == 0.0 { 2.0 * cutoff } else { (turn * cutoff * x).sin() / (std::f64::consts::PI * x) };
        sinc * (0.42 - 0.5 * part.cos() + 0.08 * (2.0 * part).cos())
    };
    (0..taps).map(tap).collect()
}

/// The samples with all taps inside the signal.
fn filtered(samples: &[f64], taps: &[f64]) -> Vec<f64> {
    let sum = |window: &[f64]| window.iter().zip(taps).map(|(sample, tap)| sample * tap).sum();
    samples.windows(taps.len()).map(sum).collect()
}

fn beats_per_minute(energy: &[(u64, i16)]) -> f64 {
    let samples: Vec<i16> = energy.iter().map(|&(_, sample)| sample).collect();
    let mut sorted = samples.clone();
    sorted.sort_unstable();
    let level = sorted[sorted.len() - 3 * RATE] / 5;
    let edge = Condition::Edge { slope: Slope::Rising, level, hysteresis: level as u16 / 5 };
    // No heart beats twice within 0.3 s.
    let mut trigger = Trigger::new(edge, (3 * RATE / 10) as u64).unwrap();
    let mut beats = Vec::new();
    trigger.scan(energy[0].0, &samples, |event| beats.push(event.position()));
    60.0 * RATE as f64 * (beats.len() - 1) as f64 / (beats[beats.len() - 1] - beats[0])
}
