//! What is sent is what is recorded, to the last bit: over UDP, through a pipe, from every kind of file.

mod support;

use std::fs;
use std::process::Stdio;

use grebe::stages::SampleFile;
use grebe::stages::synth::{ChannelSpec, Generator, Wave};
use support::{Listener, example, finish, grebe, run, text};

#[test]
fn an_electrocardiogram_over_udp_and_its_end_ends_the_recorder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.sigmf-meta");
    let recorder = Listener::record(&file, &[]);
    let ecg = example("ecg.sigmf-meta");
    let played = run(&["play", ecg.to_str().unwrap(), "--to", &recorder.uri(), "--speed", "100"]);
    assert!(played.status.success(), "{}", text(&played.stderr));
    let (status, report, said) = recorder.finish();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(report["samples"], 108_000);
    assert_eq!(report["losses"]["network_frames"], 0);
    let recorded = fs::read(folder.path().join("out.sigmf-data")).unwrap();
    assert_eq!(recorded, fs::read(example("ecg.sigmf-data")).unwrap());
    let meta: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(meta["global"]["core:sample_rate"], 360);
    assert_eq!(meta["captures"].as_array().unwrap().len(), 1);
}

#[test]
fn files_of_both_kinds_through_a_pipe() {
    for name in ["ecg.sigmf-meta", "ecg.wav"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.sigmf-meta");
        let ecg = example(name);
        let mut player = grebe(&["play", ecg.to_str().unwrap(), "--to", "pipe:", "--speed", "5000"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let recorder = grebe(&["record", "pipe:", file.to_str().unwrap()])
            .stdin(player.stdout.take().unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let recorded = finish(recorder);
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        assert!(player.wait().unwrap().success());
        let data = fs::read(folder.path().join("out.sigmf-data")).unwrap();
        assert_eq!(data, fs::read(example("ecg.sigmf-data")).unwrap(), "{name}");
    }
}

#[test]
fn four_channels_are_a_file_each_and_a_collection_and_play_back_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (first, again) = (folder.path().join("four.sigmf-meta"), folder.path().join("again.sigmf-meta"));
    let recorder = Listener::record(&first, &[]);
    let waves = "sine,square,chirp,noise";
    let sent = run(&[
        "sg",
        "--channels",
        "4",
        "--rate",
        "1M",
        "--samples",
        "300_000",
        "--wave",
        waves,
        "--datagram-size",
        "1400",
        "--to",
        &recorder.uri(),
    ]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let (status, report, said) = recorder.finish();
    assert_eq!((status, report["samples"].as_u64()), (Some(0), Some(300_000)), "{said}");
    let collection = folder.path().join("four.sigmf-collection");
    let mut file = SampleFile::open(&collection).unwrap();
    assert_eq!((file.channels(), file.len_samples(), file.sample_rate_hz()), (4, 300_000, 1e6));
    let waves =
        [Wave::Sine, Wave::Square, Wave::Chirp { end_hz: 50_000.0, sweep_s: 0.02 }, Wave::Noise { seed: 4 }];
    let block = file.block(0, 300_000).unwrap();
    for (channel, wave) in waves.into_iter().enumerate() {
        let frequency_hz = 400.0 * f64::from(1 << channel);
        let spec = ChannelSpec { wave, frequency_hz, amplitude: 0.8, ..ChannelSpec::default() };
        let mut expected = vec![0; 300_000];
        Generator::new(&spec, 1e6).unwrap().fill(0, &mut expected);
        assert_eq!(block.channel(channel), expected, "channel {channel}");
    }
    let recorder = Listener::record(&again, &[]);
    let played = run(&["play", collection.to_str().unwrap(), "--to", &recorder.uri(), "--speed", "2"]);
    assert!(played.status.success(), "{}", text(&played.stderr));
    assert_eq!(recorder.finish().0, Some(0));
    for channel in 1..=4 {
        let data =
            |name: &str| fs::read(folder.path().join(format!("{name}_ch{channel}.sigmf-data"))).unwrap();
        assert_eq!(data("four"), data("again"), "channel {channel}");
    }
}

#[test]
fn a_duration_is_kept_to_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.sigmf-meta");
    let recorded = run(&[
        "record",
        example("ecg.wav").to_str().unwrap(),
        file.to_str().unwrap(),
        "--duration",
        "10.01s",
    ]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let data = fs::read(folder.path().join("cut.sigmf-data")).unwrap();
    // 360 Hz x 10.01 s, rounded.
    assert_eq!(data, &fs::read(example("ecg.sigmf-data")).unwrap()[..3604 * 2]);
}
