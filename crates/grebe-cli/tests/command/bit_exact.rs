//! Recorded samples equal the sent ones bit for bit: over UDP, through a pipe, from each kind of file.

use std::fs;
use std::process::Stdio;

use crate::support::{Good, Listener, example, finish, grebe, run, text};
use grebe::process::synth::{ChannelSpec, Generator, Wave};
use grebe::recording::SampleFile;

#[test]
fn an_electrocardiogram_over_udp_and_its_end_ends_the_recorder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.sigmf-meta");
    let recorder = Listener::record(&file, &[]);
    let ecg = example("ecg.sigmf-meta");
    run(&["play", ecg.to_str().unwrap(), "--to", &recorder.uri(), "--speed", "100"]).good();
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
        finish(recorder).good();
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
    run(&[
        "sg",
        "--channels",
        "4",
        "--rate",
        "1M",
        "--samples",
        "90_000",
        "--wave",
        waves,
        "--datagram-size",
        "1400",
        "--to",
        &recorder.uri(),
    ])
    .good();
    let (status, report, said) = recorder.finish();
    assert_eq!((status, report["samples"].as_u64()), (Some(0), Some(90_000)), "{said}");
    let collection = folder.path().join("four.sigmf-collection");
    let mut file = SampleFile::open(&collection).unwrap();
    assert_eq!((file.channels(), file.len_samples(), file.rate_hz()), (4, 90_000, Some(1e6)));
    let waves =
        [Wave::Sine, Wave::Square, Wave::Chirp { end_hz: 50_000.0, sweep_s: 0.02 }, Wave::Noise { seed: 4 }];
    let block = file.block(0, 90_000).unwrap();
    for (channel, wave) in waves.into_iter().enumerate() {
        let frequency_hz = 400.0 * f64::from(1 << channel);
        let spec = ChannelSpec { wave, frequency_hz, amplitude: 0.8, ..ChannelSpec::default() };
        let mut expected = vec![0; 90_000];
        Generator::new(&spec, 1e6).unwrap().fill(0, &mut expected);
        assert_eq!(block.channel::<i16>(channel).unwrap(), expected, "channel {channel}");
    }
    let recorder = Listener::record(&again, &[]);
    run(&["play", collection.to_str().unwrap(), "--to", &recorder.uri(), "--speed", "2"]).good();
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
    run(&["record", example("ecg.wav").to_str().unwrap(), file.to_str().unwrap(), "--duration", "10.01s"])
        .good();
    let data = fs::read(folder.path().join("cut.sigmf-data")).unwrap();
    // 360 Hz x 10.01 s, rounded.
    assert_eq!(data, &fs::read(example("ecg.sigmf-data")).unwrap()[..3604 * 2]);
}

#[test]
fn an_archive_is_read_where_it_lies_and_of_several_recordings_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let pack = |archive: &str, names: &[&str]| {
        let path = folder.path().join(archive);
        let mut tar = tar::Builder::new(fs::File::create(&path).unwrap());
        for name in names {
            for kind in ["sigmf-meta", "sigmf-data"] {
                let place = format!("{name}/{name}.{kind}");
                tar.append_path_with_name(example(&format!("ecg.{kind}")), place).unwrap();
            }
        }
        tar.finish().unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (one, two) = (pack("one.sigmf", &["ecg"]), pack("two.sigmf", &["ecg", "late"]));
    for (place, path) in [one.clone(), format!("{two}/late/late.sigmf-meta")].iter().enumerate() {
        let file = folder.path().join(format!("out{place}"));
        run(&["record", path, &format!("{}.sigmf-meta", file.display())]).good();
        let data = fs::read(file.with_extension("sigmf-data")).unwrap();
        assert_eq!(data, fs::read(example("ecg.sigmf-data")).unwrap(), "{path}");
    }
    let png = folder.path().join("one.png");
    let shown = run(&["view", &one, "--png", png.to_str().unwrap(), "--json"]);
    assert_eq!(json(&shown.stdout)["channels"][0]["samples"], 108_000, "{}", text(&shown.stderr));
    let refused = run(&["play", &two]);
    let said = text(&refused.stderr).replace('\\', "/");
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("two.sigmf holds 2 recordings: name one of them"), "{said}");
    assert!(said.contains("ecg/ecg.sigmf-meta, late/late.sigmf-meta"), "{said}");
}

#[test]
fn a_truncated_wav_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (cut, file) = (folder.path().join("cut.wav"), folder.path().join("cut.sigmf-meta"));
    let wav = fs::read(example("ecg.wav")).unwrap();
    let samples = 50_000;
    fs::write(&cut, &wav[..wav.len() - 2 * (108_000 - samples) + 1]).unwrap();
    let recorded = run(&["record", cut.to_str().unwrap(), file.to_str().unwrap()]);
    let said = text(&recorded.stderr);
    assert!(recorded.status.success(), "{said}");
    assert!(said.contains("the file is truncated: 50000 of 108000 samples per channel are there"), "{said}");
    assert!(said.contains("58000 are missing"), "{said}");
    let data = fs::read(folder.path().join("cut.sigmf-data")).unwrap();
    assert_eq!(data, &fs::read(example("ecg.sigmf-data")).unwrap()[..2 * samples]);
}

#[test]
fn a_generator_has_the_same_words_in_a_command_a_uri_and_a_graph() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let words = "--wave square,saw --channels 2 --rate 200k --frequency 1.5k --amplitude 0.5,0.25 --offset -0.125 \
                 --samples 30k --free-run";
    let (to, files) = (format!("file:{}", path("sg")), path("uri.sigmf-meta"));
    run(&[&["sg", "--to", &to], &words.split_whitespace().collect::<Vec<_>>()[..]].concat()).good();
    let uri =
        "synth:square,saw?channels=2&rate=200k&frequency=1.5k&amplitude=0.5,0.25&offset=-0.125&free_run";
    run(&["record", uri, &files, "--samples", "30k"]).good();
    let params = "channels = 2, rate = '200k', wave = ['square', 'saw'], frequency = '1.5k', amplitude = [0.5, 0.25], \
                  offset = -0.125, samples = '30k', free_run = true";
    let graph = format!(
        "stage = [{{ id = 'a', kind = 'synth', params = {{ {params} }} }}, \
         {{ id = 'b', kind = 'record', params = {{ file = '{}' }} }}]\nedge = [{{ from = 'a', to = 'b' }}]",
        path("graph.sigmf-meta")
    );
    fs::write(path("graph.toml"), graph).unwrap();
    run(&["run", &path("graph.toml")]).good();
    for channel in ["ch1", "ch2"] {
        let data = |name: &str| fs::read(path(&format!("{name}_{channel}.sigmf-data"))).unwrap();
        assert_eq!(data("sg").len(), 60_000);
        assert_eq!(data("uri"), data("sg"), "{channel}");
        assert_eq!(data("graph"), data("sg"), "{channel}");
    }
    let mut file = SampleFile::open(folder.path().join("sg.sigmf-collection")).unwrap();
    let first = file.block(0, 1).unwrap().channel::<i16>(0).unwrap()[0];
    assert_eq!(
        first,
        ((0.5 - 0.125) * 32_767.0f64).round() as i16,
        "the square wave's upper half, with its offset"
    );
}

#[test]
fn a_recording_is_repeated_up_to_a_number_of_samples() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let to = format!("file:{}", out.display());
    let ecg = example("ecg.wav");
    let all = ["play", ecg.to_str().unwrap(), "--to", &to, "--repeat", "--samples", "250_000", "--free-run"];
    run(&all).good();
    let once = fs::read(example("ecg.sigmf-data")).unwrap();
    assert_eq!(fs::read(out.with_extension("sigmf-data")).unwrap(), &once.repeat(3)[..500_000]);
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

#[test]
fn a_generator_that_writes_a_recording_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tone.sigmf-meta");
    let output =
        run(&["sg", "--rate", "1 MS/s", "--frequency", "1kHz", "-o", file.to_str().unwrap(), "-d", "10ms"]);
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("wrote ") && said.contains("tone.sigmf-meta"), "{said}");
    assert_eq!(SampleFile::open(&file).unwrap().len_samples(), 10_000);
}
