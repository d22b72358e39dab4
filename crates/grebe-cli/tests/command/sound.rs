//! Sound devices, through ALSA's plug-ins that read and write files in place of a card.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::screen::Screen;
use crate::support::{finish, grebe, text, wait_until};
use grebe::recording::SampleFile;
use grebe::stages::sound_library;

/// Devices without a card: `heard` reads a file, `played` writes one, `nothing` does neither.
fn devices(folder: &Path) -> String {
    let config = folder.join("asound.conf");
    let at = |name: &str| folder.join(name).display().to_string();
    let text = format!(
        "pcm.nothing {{ type null }}
pcm.heard {{ type file slave.pcm nothing file /dev/null infile \"{}\" format raw }}
pcm.played {{ type file slave.pcm nothing file \"{}\" format raw }}
pcm.!default {{ type null }}
",
        at("heard.raw"),
        at("played.raw")
    );
    fs::write(&config, text).unwrap();
    config.display().to_string()
}

/// Whether ALSA's library is here.
fn has_sound() -> bool {
    let found = sound_library();
    if let Err(why) = &found {
        println!("skipped: {why} (libasound2 has it)");
    }
    found.is_ok()
}

fn run(config: &str, arguments: &[&str]) -> Output {
    let mut command = grebe(arguments);
    let command = command.env("ALSA_CONFIG_PATH", config);
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn a_sound_device_is_recorded_bit_for_bit() {
    if !has_sound() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = devices(folder.path());
    let heard = bytes(240_000);
    fs::write(folder.path().join("heard.raw"), &heard).unwrap();
    for (query, frame_bytes, channels) in [
        ("", 4, 2),
        ("?format=i32&channels=1&rate=96k", 4, 1),
        ("?format=i24&rate=44100", 6, 2),
        ("?format=ci16", 4, 1),
    ] {
        let file = folder.path().join("x.sigmf-meta");
        let path = file.to_str().unwrap();
        let samples = heard.len() / frame_bytes;
        let uri = format!("audio:heard{query}");
        let output = run(&config, &["record", &uri, path, "--overwrite", "--samples", &samples.to_string()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let recording = SampleFile::open(&file).unwrap();
        assert_eq!((recording.channels(), recording.len_samples()), (channels, samples as u64), "{query}");
        let rate_hz = match query {
            query if query.contains("96k") => 96e3,
            query if query.contains("44100") => 44.1e3,
            _ => 48e3,
        };
        assert_eq!(recording.rate_hz(), Some(rate_hz));
        assert_eq!(recording.gaps().count(), 0);
        // Out again through a pipe, as it stood in the device's file.
        let format = query.split("format=").nth(1).map_or("i16", |rest| rest.split('&').next().unwrap());
        let to = format!("pipe:?format={format}&channels={channels}");
        let output = run(&config, &["play", path, "--free-run", "--to", &to]);
        let whole = if format == "i24" { played_as_i32(path, &config, channels) } else { output.stdout };
        assert!(whole == heard[..samples * frame_bytes], "{query}");
    }
}

/// A recording of i24 plays as i32, whose lower three bytes are the device's.
fn played_as_i32(path: &str, config: &str, channels: usize) -> Vec<u8> {
    let output =
        run(config, &["play", path, "--free-run", "--to", &format!("pipe:?format=i32&channels={channels}")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    output.stdout.as_chunks::<4>().0.iter().flat_map(|sample| sample[..3].to_vec()).collect()
}

#[test]
fn a_sound_device_gets_the_played_samples() {
    if !has_sound() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = devices(folder.path());
    let played = folder.path().join("played.raw");
    for (format, channels) in [("i16", "2"), ("f32", "1"), ("i32", "3"), ("ci16", "1")] {
        let file = folder.path().join("x.sigmf-meta");
        let path = file.to_str().unwrap();
        let wave = if format == "ci16" { "qpsk" } else { "saw" };
        let made =
            ["sg", "--rate", "48k", "--samples", "30000", "--free-run", "--wave", wave, "--format", format];
        let output = run(&config, &[&made[..], &["--channels", channels, "--to", path]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let output = run(&config, &["play", path, "--free-run", "--to", "audio:played"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let to = format!("pipe:?format={format}&channels={channels}");
        let expected = run(&config, &["play", path, "--free-run", "--to", &to]).stdout;
        let got = fs::read(&played).unwrap();
        assert!(expected.len() > 100_000 && got == expected, "{format}: {} of {}", got.len(), expected.len());
        fs::remove_file(&played).unwrap();
        for file in fs::read_dir(folder.path()).unwrap().flatten() {
            if file.file_name().to_string_lossy().starts_with("x") {
                fs::remove_file(file.path()).unwrap();
            }
        }
    }
}

#[test]
fn the_default_device_makes_a_picture() {
    if !has_sound() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = devices(folder.path());
    let png = folder.path().join("x.png");
    let arguments =
        ["record", "audio:", folder.path().join("x.sigmf-meta").to_str().unwrap(), "--samples", "48000"]
            .map(str::to_owned);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = run(&config, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = run(&config, &["view", arguments[2], "--png", png.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    // The oscilloscope that everybody has, without a recording between.
    let output =
        run(&config, &["view", "audio:", "--png", png.to_str().unwrap(), "--after", "200ms", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["sample_rate_hz"], told["channels"].as_array().unwrap().len()), (&48_000.0.into(), 2));
}

/// As [`devices`], where `played` is the default device; and its file.
fn speaker(folder: &Path) -> (String, PathBuf) {
    let config = devices(folder);
    let played = "pcm.!default { type plug slave.pcm played }\n";
    let text = fs::read_to_string(&config).unwrap().replace("pcm.!default { type null }\n", played);
    fs::write(&config, text).unwrap();
    (config, folder.join("played.raw"))
}

/// Takes a line of the list of F6, from 0, which has these words.
fn choose(screen: &mut Screen, words: &str, line: usize) {
    screen.press(b"\x1b[17~");
    screen.sees(words);
    screen.press(&b"\x1b[B".repeat(line));
    screen.press(b"\r");
}

#[test]
fn a_box_of_the_waterfall_is_heard_in_a_loop_until_it_is_stopped() {
    if !has_sound() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (config, played) = speaker(folder.path());
    let file = folder.path().join("x.sigmf-meta");
    let path = file.to_str().unwrap();
    let made = [
        "sg",
        "--rate",
        "48k",
        "--samples",
        "48000",
        "--free-run",
        "--format",
        "ci16",
        "--wave",
        "qpsk",
        "--to",
        path,
    ];
    assert_eq!(run(&config, &made).status.code(), Some(0));
    let boxed = "--box=0.2,0.5,-6.25k,6.25k";
    let to = ["--demodulate", "fm", "--rate", "16k", "--free-run", "--to", "pipe:?format=f32"];
    let once = run(&config, &[&["play", path, boxed][..], &to].concat()).stdout;
    let count = |sample: &[u8; 4]| (f32::from_le_bytes(*sample) * 32_768.0).round_ties_even() as i16;
    let once: Vec<u8> = once.as_chunks().0.iter().flat_map(|sample| count(sample).to_le_bytes()).collect();
    assert_eq!(once.len(), 2 * 16_000 * 3 / 10);

    let arguments = ["view", path, "--term", "--no-session", "--waterfall", boxed];
    let Some(mut screen) = Screen::start_with(&arguments, &[("ALSA_CONFIG_PATH", &config)]) else { return };
    screen.sees("occupied 99 %");
    let mut choose = |words: &str| choose(&mut screen, words, 6);
    choose("listen to it");
    wait_until("nothing is heard", || fs::metadata(&played).is_ok_and(|it| it.len() > 3 * once.len() as u64));
    choose("stop its sound");
    screen.sees("stopped");
    let heard = fs::read(&played).unwrap();
    assert!(heard.chunks(once.len()).all(|it| it == &once[..it.len()]), "{} of {}", heard.len(), once.len());
    screen.quit();
}

#[test]
fn a_band_of_a_stream_is_heard_live_until_it_is_stopped() {
    if !has_sound() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (config, played) = speaker(folder.path());
    let arguments = [
        "view",
        "synth:noise?rate=48k&format=ci16",
        "--term",
        "--no-session",
        "--waterfall",
        "--box=0.2,0.5,-6.25k,6.25k",
    ];
    let Some(mut screen) = Screen::start_with(&arguments, &[("ALSA_CONFIG_PATH", &config)]) else { return };
    screen.sees("occupied 99 %");
    choose(&mut screen, "from now on", 7);
    let length = || fs::metadata(&played).map_or(0, |it| it.len());
    // A second of 8 kS/s.
    wait_until("nothing is heard", || length() > 32_000);
    choose(&mut screen, "stop its sound", 6);
    screen.sees("stopped");
    let heard = fs::read(&played).unwrap();
    let samples = heard.as_chunks().0.iter().map(|sample| f32::from_le_bytes(*sample));
    assert!(samples.clone().all(|it| it.abs() <= 4.0), "samples of f32");
    assert!(samples.filter(|it| it.abs() > 1e-3).count() > 4_000, "it is noise");
    screen.quit();
}

#[test]
fn an_unavailable_device_is_an_error_with_a_remedy() {
    if !has_sound() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = devices(folder.path());
    let file = folder.path().join("x.sigmf-meta");
    let path = file.to_str().unwrap();
    let refused = |arguments: &[&str], says: &str| {
        let output = run(&config, arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(says), "{said}");
    };
    refused(&["record", "audio:hw:77,0", path], "the device does not exist");
    refused(&["sg", "--samples", "10", "--to", "audio:nowhere"], "the device does not exist");
    refused(
        &["sg", "--samples", "10", "--rate", "1.5", "--to", "audio:nothing"],
        "which sound devices do not support",
    );
}
