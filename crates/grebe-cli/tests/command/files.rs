//! Commands on recordings: `info`, `play` of a range, `find`, `convert`.

mod annotate;
mod convert;
mod cut;
mod find;
mod info;

use std::fs;
#[cfg(unix)]
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Stdio;

use crate::support::{Good, example, finish, grebe, run, text};
use grebe::frame::{Complex, SampleFormat};
use grebe::recording::{SampleFile, SigmfSettings, SigmfWriter};
use serde_json::Value;

/// Two channels of 10 samples, with 90 missing after the fourth.
fn with_a_gap(path: &Path) {
    let settings = SigmfSettings { channels: 2, sample_rate_hz: 1e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(path, &settings).unwrap();
    writer.write(0, &[&[1i16, 2, 3, 4], &[-1, -2, -3, -4]]).unwrap();
    writer.write(94, &[&[5i16, 6, 7, 8, 9, 10], &[-5, -6, -7, -8, -9, -10]]).unwrap();
    writer.annotate(95, 3, "there").unwrap();
    writer.finish().unwrap();
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    text(bytes).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Complex noise at 1 MS/s with tones of (start, length, hertz) that are 20 dB over it in the whole band.
pub(crate) fn tones(length: usize, tones: &[(usize, usize, f64)], seed: u64) -> Vec<Complex<f32>> {
    let mut state = seed;
    // Knuth's generator; its high bits are good.
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let turn = |part: f64| (part * std::f64::consts::TAU).sin_cos();
    (0..length)
        .map(|at| {
            let (sin, cos) = turn(random());
            let radius = 0.01 * (-(1.0 - random()).ln()).sqrt();
            let is_on = |tone: &&(usize, usize, f64)| (tone.0..tone.0 + tone.1).contains(&at);
            tones.iter().filter(is_on).fold(
                Complex::new((radius * cos) as f32, (radius * sin) as f32),
                |sum, tone| {
                    let (sin, cos) = turn((tone.2 / 1e6 * at as f64).fract());
                    Complex::new(sum.re + 0.1 * cos as f32, sum.im + 0.1 * sin as f32)
                },
            )
        })
        .collect()
}

/// Plays with these arguments into a recording; returns its samples.
fn played(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let file = folder.join("played.sigmf-meta");
    let player = grebe(&[&["play", "--to", "pipe:", "--free-run"][..], arguments].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut player = player.unwrap();
    let recorder = grebe(&["record", "pipe:", file.to_str().unwrap(), "--overwrite"])
        .stdin(player.stdout.take().unwrap())
        .stderr(Stdio::piped())
        .spawn();
    finish(recorder.unwrap()).good();
    assert!(player.wait().unwrap().success());
    fs::read(folder.join("played.sigmf-data")).unwrap()
}

#[test]
fn a_part_is_played_and_repeated_without_a_seam() {
    let folder = tempfile::tempdir().unwrap();
    let ecg = example("ecg.wav").display().to_string();
    let all = fs::read(example("ecg.sigmf-data")).unwrap();
    let part = &all[3_600 * 2..5_400 * 2];
    assert_eq!(played(folder.path(), &[&ecg, "--start", "10s", "--duration", "5s"]), part);
    let repeated = played(
        folder.path(),
        &[&ecg, "--start", "10s", "--duration", "5s", "--repeat", "--samples", "4_000"],
    );
    assert_eq!(repeated, [part, part, &part[..400 * 2]].concat());
    assert_eq!(played(folder.path(), &[&ecg, "--start", "299s"]), all[107_640 * 2..]);
    let said = run(&["play", &ecg, "--start", "301s"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("it must lie before the end"), "{}", text(&said.stderr));
}
