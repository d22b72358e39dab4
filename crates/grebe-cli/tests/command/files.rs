//! What is done with recordings that lie on a disk: `info`, `play` of a part, `find`, `convert`.

use std::fs;
#[cfg(unix)]
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Stdio;

use crate::support::{example, finish, grebe, run, text};
use grebe::frame::{Complex, SampleFormat};
use grebe::recording::{SampleFile, SigmfSettings, SigmfWriter};
use serde_json::Value;

/// Two channels of 10 samples, of which 90 are missing behind the fourth.
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

#[test]
fn info_says_what_there_is_in_every_kind_of_file() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    with_a_gap(place("gap").as_ref());
    fs::write(place("x.cu8"), [7; 20]).unwrap();
    let ecg = example("ecg.sigmf-meta").display().to_string();
    let (wav, raw) = (example("ecg.wav").display().to_string(), format!("{}?rate=2.4M", place("x.cu8")));
    let files = [&ecg, &wav, &raw, &place("gap.sigmf-collection")];
    let said = run(&[&["info"][..], &files.map(String::as_str)].concat());
    let words = text(&said.stdout);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    for part in [
        "ecg.sigmf-meta",
        "SigMF, i16 in 1 channel\n",
        "108,000 (5 min) at 360 S/s",
        "MLII, sample x 0.005",
        "WAV, i16",
        "raw, cu8 in 1 channel\n",
        "10 (4.17 us) at 2.4 MS/s",
        "SigMF, i16 in 2 channels\n",
        "1: 90 samples (90 ms) are missing; the largest is 90 samples (90 ms), before sample 4\n",
    ] {
        assert!(words.replace('µ', "u").contains(part), "{part} is not in {words}");
    }
    let said = run(&[&["info", "--json"][..], &files.map(String::as_str)].concat());
    let [ecg, wav, raw, gap] = &lines(&said.stdout)[..] else { panic!("{}", text(&said.stdout)) };
    assert_eq!((&ecg["samples"], &ecg["channels"][0]["name"]), (&108_000.into(), &"MLII".into()));
    assert_eq!((&wav["kind"], &wav["duration_s"]), (&"WAV".into(), &300.0.into()));
    assert_eq!((&raw["format"], &raw["data_bytes"]), (&"cu8".into(), &20.into()));
    assert_eq!((&gap["gaps"]["count"], &gap["gaps"]["samples"]), (&1.into(), &90.into()));
    let largest = &gap["gaps"]["largest"];
    assert_eq!((&largest["position"], &largest["first_sample_index"]), (&4.into(), &4.into()));
    assert_eq!((&gap["annotations"], &gap["whole"], &gap["streams"]), (&1.into(), &true.into(), &1.into()));
}

#[test]
fn info_tells_what_is_not_whole_by_its_status_and_goes_on_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let wav = fs::read(example("ecg.wav")).unwrap();
    fs::write(place("cut.wav"), &wav[..1000]).unwrap();
    fs::write(place("odd.i16"), [1; 5]).unwrap();
    fs::write(place("bad.wav"), b"RIFF").unwrap();
    // Some recorders begin another chunk of samples; and `numpy.save` appends to an open file.
    let second = [b"data", &4u32.to_le_bytes()[..], &[1, 0, 2, 0]].concat();
    fs::write(place("second.wav"), [&wav[..], &second].concat()).unwrap();
    let array = numpy(&[1, 2, 3]);
    fs::write(place("second.npy"), [&array[..], &array].concat()).unwrap();
    // As a recorder that was killed leaves it.
    let settings = SigmfSettings { sample_rate_hz: 1e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(place("killed").as_ref(), &settings).unwrap();
    writer.write(0, &[&[1i16, 2, 3]]).unwrap();
    drop(writer);
    for (file, says) in [
        (place("cut.wav"), "the file is truncated"),
        (format!("{}?rate=1k", place("odd.i16")), "ends within a sample: its last 1 bytes"),
        (place("killed.sigmf-meta"), "its recorder was cut off"),
        (place("second.wav"), "in several data chunks"),
        (format!("{}?rate=1k", place("second.npy")), "bytes follow the array"),
    ] {
        let said = run(&["info", &file]);
        assert_eq!(said.status.code(), Some(4), "{file}");
        let words = text(&said.stdout);
        assert!(words.contains("NOT WHOLE") && words.contains(says), "{words}");
    }
    let said = run(&["info", "--json", &place("bad.wav"), &place("cut.wav"), &place("none.wav")]);
    assert_eq!(said.status.code(), Some(1));
    let lines = lines(&said.stdout);
    assert_eq!(lines.len(), 3, "{}", text(&said.stdout));
    assert!(lines[0]["error"].as_str().unwrap().contains("bad.wav is truncated"), "{}", lines[0]);
    assert_eq!((&lines[1]["whole"], &lines[2]["whole"]), (&false.into(), &false.into()));
    assert!(text(&said.stderr).contains("2 files cannot be read"), "{}", text(&said.stderr));
}

/// An array as NumPy saves it.
fn numpy(samples: &[i16]) -> Vec<u8> {
    let words = format!("{{'descr': '<i2', 'fortran_order': False, 'shape': ({},), }}", samples.len());
    let words = format!("{words:117}\n");
    let samples: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    [&b"\x93NUMPY\x01\x00"[..], &118u16.to_le_bytes(), words.as_bytes(), &samples].concat()
}

#[test]
fn info_lists_each_recording_of_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.sigmf");
    let mut tar = tar::Builder::new(fs::File::create(&path).unwrap());
    for name in ["one", "other"] {
        for (end, kind) in [("meta", "sigmf-meta"), ("data", "sigmf-data")] {
            let from = example(&format!("ecg.sigmf-{end}"));
            tar.append_path_with_name(from, format!("{name}/{name}.{kind}")).unwrap();
        }
    }
    tar.finish().unwrap();
    let said = run(&["info", "--json", path.to_str().unwrap()]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let files: Vec<String> =
        lines(&said.stdout).iter().map(|line| line["file"].as_str().unwrap().to_owned()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files[0].ends_with("two.sigmf/one/one.sigmf-meta"), "{files:?}");
    assert!(files[1].ends_with("two.sigmf/other/other.sigmf-meta"), "{files:?}");
}

/// Plays what the arguments say into a recording; its samples.
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
    let recorded = finish(recorder.unwrap());
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
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

/// A recording of one channel at 1 kS/s from index 100 on, behind which 50 samples are missing, and then the same again.
fn twice(folder: &Path, samples: &[i16]) -> String {
    let path = folder.join("x.sigmf-meta");
    let settings = SigmfSettings { sample_rate_hz: 1e3, overwrite: true, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    writer.write(100, &[samples]).unwrap();
    writer.write(150 + samples.len() as u64, &[samples]).unwrap();
    writer.finish().unwrap();
    path.display().to_string()
}

/// What is found: positions in the file, and lengths.
fn found(file: &str, arguments: &[&str]) -> Vec<(u64, u64)> {
    let said = run(&[&["find", file, "--json"][..], arguments].concat());
    assert_eq!(said.status.code(), Some(0), "{arguments:?}: {}", text(&said.stderr));
    let events = lines(&said.stdout);
    let number = |event: &Value, name: &str| event[name].as_u64().unwrap();
    events.iter().map(|event| (number(event, "position"), number(event, "samples"))).collect()
}

#[test]
fn find_lists_every_event_of_each_kind_and_none_across_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = vec![0i16; 1_000];
    samples[200] = 900; // one sample
    samples[400..450].fill(900);
    samples[600..610].fill(500);
    samples[995..].fill(900); // to the end: it ends with what is there
    let file = twice(folder.path(), &samples);
    let both = |events: &[(u64, u64)]| -> Vec<(u64, u64)> {
        [0, 1_000]
            .iter()
            .flat_map(|at| events.iter().map(move |(index, length)| (index + at, *length)))
            .collect()
    };
    let edge = ["--trigger", "edge", "--level", "700"];
    assert_eq!(found(&file, &edge), both(&[(200, 0), (400, 0), (995, 0)]));
    let falling = [&edge[..], &["--slope", "falling"]].concat();
    assert_eq!(found(&file, &falling), both(&[(201, 0), (450, 0)]));
    // 1,200 lies 255 ms behind 995, as 50 samples are missing between.
    let held_off = [&edge[..], &["--holdoff", "300ms"]].concat();
    assert_eq!(found(&file, &held_off), [(200, 0), (995, 0), (1_400, 0), (1_995, 0)]);
    let pulse = ["--trigger", "pulse", "--level", "700", "--longer", "2ms"];
    assert_eq!(found(&file, &pulse), both(&[(450, 0)]));
    let runt = ["--trigger", "runt", "--low", "300", "--high", "800"];
    assert_eq!(found(&file, &runt), both(&[(610, 0)]));
    let window = ["--trigger", "window", "--low", "-100", "--high", "600"];
    assert_eq!(found(&file, &window), both(&[(200, 0), (400, 0), (995, 0)]));
    let level = ["--trigger", "level", "--level", "400"];
    assert_eq!(found(&file, &level), both(&[(200, 1), (400, 50), (600, 10), (995, 5)]));
    let short = [&level[..], &["--shorter", "10ms", "--longer", "5ms"]].concat();
    assert_eq!(found(&file, &short), both(&[(600, 10), (995, 5)]));
    let below = ["--trigger", "level", "--level", "100", "--slope", "falling", "--longer", "300ms"];
    assert_eq!(found(&file, &below), both(&[(610, 385)]));
    let dropout = ["--trigger", "dropout", "--level", "700", "--longer", "300ms"];
    assert_eq!(found(&file, &dropout), both(&[(750, 0)]));
    assert_eq!(found(&file, &["--trigger", "gap"]), [(1_000, 50)]);
    // 900 of full scale are -31.2 dB of a sine, 25 of 50 of them three less.
    let power = ["--trigger", "power", "--level=-32", "--window", "50ms"];
    assert_eq!(found(&file, &power), both(&[(400, 50)]));
    let silence = ["--trigger", "silence", "--level=-80", "--window", "50ms", "--longer", "100ms"];
    assert_eq!(found(&file, &silence), both(&[(0, 200), (250, 150), (450, 150), (650, 300)]));
    // Of a part, the places are those of the file.
    let part = [&edge[..], &["--start", "350ms", "--duration", "200ms"]].concat();
    assert_eq!(found(&file, &part), [(400, 0)]);
    assert_eq!(found(&file, &[&edge[..], &["--max", "2"]].concat()), [(200, 0), (400, 0)]);
}

#[test]
fn find_tells_events_as_text_and_csv_with_indexes_and_times_of_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = vec![0i16; 100];
    samples[20] = 900;
    let file = twice(folder.path(), &samples);
    let said = run(&["find", &file, "--trigger", "level", "--level", "700", "--csv"]);
    let csv = text(&said.stdout);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows[0],
        ["event", "channel", "seconds", "position", "sample_index", "samples", "duration_s", "time"]
    );
    assert_eq!(rows[1][..7], ["level", "1", "0.02", "20", "120", "1", "0.001"]);
    assert_eq!(rows[2][..7], ["level", "1", "0.17", "120", "270", "1", "0.001"], "50 are missing before it");
    assert!(rows[1][7].ends_with('Z') && rows[1][7].starts_with("20"), "{csv}");
    let said = run(&["find", &file, "--trigger", "level", "--level", "700"]);
    let words = text(&said.stdout);
    assert!(
        words.starts_with("     0.020000000 s  sample          120  channel 1  level  1 samples (1 ms)"),
        "{words}"
    );
    assert!(text(&said.stderr).contains("found 2 events in 200 samples"), "{}", text(&said.stderr));
    for (arguments, says) in [
        (&["--trigger", "edge"][..], "--trigger edge needs --level VALUE"),
        (&["--trigger", "runt", "--low", "1"], "needs --low VALUE and --high VALUE"),
        (&["--trigger", "dropout", "--level", "1"], "needs --longer TIME"),
        (&["--trigger", "edge", "--level", "1", "--channel", "2"], "--channel 2: there is 1 channel"),
        (&["--trigger", "edge", "--level", "1", "--channel", "1.phase"], "have no parts"),
    ] {
        let said = run(&[&["find", &file][..], arguments].concat());
        assert_eq!(said.status.code(), Some(2), "{arguments:?}");
        assert!(text(&said.stderr).contains(says), "{}", text(&said.stderr));
    }
}

#[test]
fn find_knows_units_complex_samples_and_several_channels() {
    let folder = tempfile::tempdir().unwrap();
    // The peaks of the ECG, in millivolts.
    let ecg = example("ecg.sigmf-meta").display().to_string();
    let millivolts = found(&ecg, &["--trigger", "edge", "--level", "1", "--hysteresis", "0.5"]);
    let wav = example("ecg.wav").display().to_string();
    let counts = found(&wav, &["--trigger", "edge", "--level", "200", "--hysteresis", "100"]);
    assert!(millivolts == counts && millivolts.len() > 300, "{}", millivolts.len());
    let path = folder.path().join("c");
    let settings = SigmfSettings {
        format: SampleFormat::Cf32,
        channels: 2,
        sample_rate_hz: 1e3,
        ..SigmfSettings::default()
    };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    let tone = |at: usize, burst: std::ops::Range<usize>| {
        let size = if burst.contains(&at) { 0.5 } else { 0.01 };
        let phase = at as f32 * std::f32::consts::FRAC_PI_2;
        Complex::new(size * phase.cos(), size * phase.sin())
    };
    let of = |burst: std::ops::Range<usize>| {
        (0..500).map(|at| tone(at, burst.clone())).collect::<Vec<Complex<f32>>>()
    };
    writer.write(0, &[&of(100..200), &of(300..350)]).unwrap();
    writer.finish().unwrap();
    let file = folder.path().join("c.sigmf-collection").display().to_string();
    let power = ["--trigger", "power", "--level=-7", "--window", "10ms"];
    assert_eq!(found(&file, &power), [(100, 100), (300, 50)]);
    assert_eq!(found(&file, &[&power[..], &["--channel", "2"]].concat()), [(300, 50)]);
    let magnitude = ["--trigger", "level", "--level", "0.4", "--channel", "1.magnitude,2.db"];
    assert_eq!(found(&file, &magnitude), [(100, 100)], "decibels are below 0.4");
}

#[test]
fn levels_of_24_bits_count_from_24_bits() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    // A square wave of half the full scale: 3 dB less than a sine of full scale has.
    let samples: Vec<u8> = (0..1_000)
        .flat_map(|at| {
            let sample: i32 = if at % 20 < 10 { 4_194_304 } else { -4_194_304 };
            sample.to_le_bytes()[..3].to_vec()
        })
        .collect();
    let (one, three) = (1u16.to_le_bytes(), 3u16.to_le_bytes());
    let head = [
        &b"RIFF"[..],
        &(36 + samples.len() as u32).to_le_bytes(),
        b"WAVEfmt ",
        &16u32.to_le_bytes(),
        &one,
        &one,
        &1_000u32.to_le_bytes(),
        &3_000u32.to_le_bytes(),
        &three,
        &24u16.to_le_bytes(),
        b"data",
        &(samples.len() as u32).to_le_bytes(),
    ]
    .concat();
    let wav = place("x.wav");
    fs::write(&wav, [head, samples].concat()).unwrap();
    let power = |file: &str, level: &str| {
        found(file, &["--trigger", "power", &format!("--level={level}"), "--window", "20ms"])
    };
    let recording = place("x.sigmf-meta");
    let converted = run(&["convert", &wav, &recording]);
    assert!(converted.status.success(), "{}", text(&converted.stderr));
    for file in [&wav, &recording] {
        assert_eq!(power(file, "-3.5").len(), 1, "{file}");
        assert_eq!(power(file, "-2.5").len(), 0, "{file}");
    }
    let float = place("x.npy");
    let converted = run(&["convert", &wav, &float, "--format", "f32"]);
    assert!(converted.status.success(), "{}", text(&converted.stderr));
    let mut file = SampleFile::open(float).unwrap();
    assert_eq!(file.block(0, 1).unwrap().channel::<f32>(0).unwrap()[0], 0.5);
}

#[test]
fn find_writes_annotations_once_that_the_recording_then_has() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = vec![0i16; 100];
    samples[20..25].fill(900);
    let file = twice(folder.path(), &samples);
    let find = ["find", &file, "--trigger", "level", "--level", "700", "--annotate", "--label", "burst"];
    for says in ["wrote 2 annotations into", "wrote 0 annotations into"] {
        let said = run(&find);
        assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
        assert!(text(&said.stderr).contains(says), "{}", text(&said.stderr));
    }
    let opened = SampleFile::open(file).unwrap();
    let places: Vec<_> = opened.annotations().iter().map(|it| (it.position, it.length_samples)).collect();
    assert_eq!(places, [(20, 5), (120, 5)]);
    assert_eq!(opened.annotations()[0].fields["core:label"], "burst");
    let wav = example("ecg.wav").display().to_string();
    let said = run(&["find", &wav, "--trigger", "gap", "--annotate"]);
    assert_eq!(said.status.code(), Some(1));
    assert!(text(&said.stderr).contains("annotations are written into SigMF only"), "{}", text(&said.stderr));
}

#[test]
fn convert_takes_parts_channels_formats_and_rates() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    with_a_gap(place("gap").as_ref());
    let gap = place("gap.sigmf-collection");
    let converted = |arguments: &[&str]| {
        let said = run(&[&["convert"][..], arguments].concat());
        (said.status.code(), text(&said.stderr))
    };
    let samples = |name: &str, channel: usize| {
        let mut file = SampleFile::open(place(name)).unwrap();
        let length = file.len_samples() as usize;
        file.block(0, length).unwrap().channel::<i16>(channel).unwrap().into_owned()
    };
    let (status, said) = converted(&[&gap, &place("a.wav")]);
    assert!(status == Some(1) && said.contains("--gaps zeros"), "{said}");
    let (status, said) = converted(&[&gap, &place("a.wav"), "--gaps", "zeros", "--channels", "2"]);
    assert!(status == Some(0) && said.contains("90 in 1 gaps") && said.contains("1 are left out"), "{said}");
    let expected: Vec<i16> = (1..=4).chain([0; 90]).chain(5..=10).map(|sample| -sample).collect();
    assert_eq!(samples("a.wav", 0), expected);
    let (status, said) = converted(&[&gap, &place("b.npy"), "--start", "95ms", "--duration", "3ms"]);
    assert_eq!((status, samples("b.npy", 1)), (Some(0), vec![-6, -7, -8]), "{said}");
    let (status, said) = converted(&[
        &gap,
        &place("c.f32"),
        "--format",
        "f32",
        "--scale",
        "counts",
        "--gaps",
        "close",
        "--channels",
        "1",
    ]);
    assert_eq!(status, Some(0), "{said}");
    let floats: Vec<u8> = (1..=10).flat_map(|sample| (sample as f32).to_le_bytes()).collect();
    assert_eq!(fs::read(place("c.f32")).unwrap(), floats);
    let (status, said) =
        converted(&[&gap, &place("d"), "--format", "i8", "--scale", "counts", "--channels", "2,1"]);
    assert_eq!(status, Some(0), "{said}");
    let file = SampleFile::open(place("d.sigmf-collection")).unwrap();
    assert_eq!((file.gaps().count(), file.annotations().len(), file.format()), (1, 1, SampleFormat::I8));
    let ecg = example("ecg.sigmf-meta").display().to_string();
    let (status, said) = converted(&[&ecg, &place("slow.wav"), "--decimate", "4"]);
    assert_eq!(status, Some(0), "{said}");
    let slow = SampleFile::open(place("slow.wav")).unwrap();
    assert_eq!((slow.len_samples(), slow.sample_rate_hz()), (27_000, 90.0));
    let (status, said) = converted(&[&ecg, &place("slow.wav"), "--decimate", "1"]);
    assert!(status == Some(2) && said.contains("give 2 to 1000"), "{said}");
    let (status, said) = converted(&[&ecg, &place("x.wav"), "--channels", "2"]);
    assert!(status == Some(2) && said.contains("channel 2 of 1"), "{said}");
    let hidden =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let hidden: Vec<String> = hidden.filter(|name| name.starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[cfg(unix)]
#[test]
fn a_converter_that_is_killed_or_interrupted_leaves_no_file_of_that_name_and_the_same_command_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    // 8 GB of which the disk has nothing.
    fs::File::create(place("long.i16")).unwrap().set_len(8 << 30).unwrap();
    let long = format!("{}?rate=1M", place("long.i16"));
    for (signal, out) in
        [("-KILL", "x.sigmf-meta"), ("-KILL", "x.wav"), ("-INT", "y.sigmf-meta"), ("-TERM", "y.npy")]
    {
        // What others left.
        let before = large_files(folder.path());
        let child = grebe(&["convert", &long, &place(out)]).stderr(Stdio::piped()).spawn().unwrap();
        let began = std::time::Instant::now();
        // Until there is something of it on the disk.
        let is_begun = || large_files(folder.path()).iter().any(|file| !before.contains(file));
        while !is_begun() && began.elapsed() < std::time::Duration::from_secs(30) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        crate::support::signal(signal, child.id());
        let ended = finish(child);
        assert_ne!(ended.status.code(), Some(0), "{out}: {}", text(&ended.stderr));
        let names =
            fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with("long")).collect();
        if signal == "-TERM" {
            let said = text(&ended.stderr);
            let is_left = names.iter().any(|name| name == "y.npy.part");
            assert_eq!(said.contains("y.npy.part has what was written"), is_left, "{said}");
        }
        names.retain(|name| !name.starts_with('.') && !name.ends_with(".part"));
        assert!(names.is_empty(), "{out}: {names:?}");
    }
    // Another part of it is something else.
    let said = run(&["convert", &long, &place("x.wav"), "--duration", "1s", "--overwrite"]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    assert_eq!(SampleFile::open(place("x.wav")).unwrap().len_samples(), 1_000_000);
    let said = run(&["convert", &long, &place("x.sigmf-meta"), "--duration", "1s"]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    assert!(!folder.path().join(".x.partial").exists(), "what was left is gone");
}

#[cfg(unix)]
#[test]
fn a_converter_goes_on_where_it_was_killed_or_interrupted() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let samples: Vec<u8> = (0..24u32 << 20).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 20) as u8).collect();
    fs::write(place("a.i16"), &samples).unwrap();
    let from = format!("{}?rate=48k", place("a.i16"));
    let convert = |to: &str| ["convert".to_owned(), from.clone(), place(to), "--times".to_owned()];
    let words = convert("x.csv");
    let noted = || {
        let note = fs::read(place("x.csv.part/note.json")).unwrap_or_default();
        let note: Value = serde_json::from_slice(&note).unwrap_or_default();
        note["good"]["samples"].as_u64().unwrap_or(0)
    };
    let length = || fs::metadata(place("x.csv.part/x.csv")).map_or(0, |file| file.len());
    // Room is taken beforehand, so that a length says nothing; no byte of text is zero.
    let is_written = |at: u64| {
        let mut byte = [0];
        let file = fs::File::open(place("x.csv.part/x.csv"));
        let read =
            file.and_then(|mut file| file.seek(SeekFrom::Start(at)).and_then(|_| file.read(&mut byte)));
        read.is_ok() && byte != [0]
    };
    let mut before = 0;
    for signal in ["-INT", "-KILL", "-INT"] {
        let begun = length();
        let mut child = grebe(&words_of(&words)).stderr(Stdio::piped()).spawn().unwrap();
        let is_over = loop {
            // One that is killed has what it noted; one that is interrupted has all that it wrote.
            let is_on = if signal == "-KILL" { noted() > before } else { is_written(begun + (8 << 20)) };
            let is_over = child.try_wait().unwrap().is_some();
            if is_on || is_over {
                break is_over;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        if !is_over {
            crate::support::signal(signal, child.id());
        }
        let ended = finish(child);
        if ended.status.code() == Some(0) {
            // It was faster.
            break;
        }
        if signal == "-INT" {
            let said = text(&ended.stderr);
            assert_eq!(ended.status.code(), Some(130), "{:?} {said}", ended.status);
            assert!(said.contains("x.csv.part has what was written; the same command goes on"), "{said}");
        }
        if folder.path().join("x.csv").exists() {
            // It was faster, and was killed before it had tidied up.
            let _ = fs::remove_dir_all(place("x.csv.part"));
            break;
        }
        let said = text(&ended.stderr);
        assert!(ended.status.code().is_none_or(|code| code == 130), "{signal}: {:?}: {said}", ended.status);
        assert!(noted() >= before, "{signal}: {} of {before} are left: {said}", noted());
        if noted() == before {
            // Not seen where this was written.
            println!("{signal}: nothing was noted behind {before}: {said}");
        }
        before = noted();
    }
    assert!(
        before > 0 || folder.path().join("x.csv").exists(),
        "neither what was written nor all of it is there"
    );
    if !folder.path().join("x.csv").exists() {
        let said = run(&["convert", &from, &place("x.csv")]);
        let words = text(&said.stderr);
        assert!(said.status.code() == Some(1) && words.contains("x.csv.part was begun from"), "{words}");
        let said = run(&words_of(&convert("x.csv")));
        let (status, said) = (said.status.code(), text(&said.stderr));
        assert!(status == Some(0) && said.contains(" of them before"), "{said}");
    }
    assert!(!folder.path().join("x.csv.part").exists());
    assert_eq!(run(&words_of(&convert("whole.csv"))).status.code(), Some(0));
    assert!(fs::read(place("x.csv")).unwrap() == fs::read(place("whole.csv")).unwrap());
    let named = format!("{}?format=i16", place("x.csv"));
    let said = run(&["convert", &named, &place("b.wav"), "--start", "10s", "--duration", "1s"]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let mut wav = SampleFile::open(place("b.wav")).unwrap();
    assert_eq!((wav.len_samples(), wav.sample_rate_hz()), (48_000, 48_000.0));
    let block = wav.block(0, 48_000).unwrap();
    assert!(block.channel_bytes(0).unwrap() == &samples[960_000..][..96_000]);
}

/// Files of more than a megabyte in a folder and those inside.
#[cfg(unix)]
fn large_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(there) if there.is_dir() => folders.push(entry.path()),
                Ok(there) if there.len() > 1 << 20 => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}

#[cfg(unix)]
fn words_of(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}
