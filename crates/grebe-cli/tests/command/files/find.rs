//! `find`.

use super::*;
use crate::support::Good;

/// A recording of one channel at 1 kS/s from index 100 on, then a gap of 50 samples, and the same again.
fn twice(folder: &Path, samples: &[i16]) -> String {
    let path = folder.join("x.sigmf-meta");
    let settings = SigmfSettings { sample_rate_hz: 1e3, overwrite: true, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    writer.write(100, &[samples]).unwrap();
    writer.write(150 + samples.len() as u64, &[samples]).unwrap();
    writer.finish().unwrap();
    path.display().to_string()
}

/// Events: positions in the file, and lengths.
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
    // 1,200 is 255 ms after 995, because 50 samples are missing between them.
    let held_off = [&edge[..], &["--holdoff", "300ms"]].concat();
    assert_eq!(found(&file, &held_off), [(200, 0), (995, 0), (1_400, 0), (1_995, 0)]);
    let pulse = ["--trigger", "pulse", "--level", "700", "--longer", "2ms"];
    assert_eq!(found(&file, &pulse), both(&[(400, 50)]));
    let runt = ["--trigger", "runt", "--low", "300", "--high", "800"];
    assert_eq!(found(&file, &runt), both(&[(600, 10)]));
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
        words.starts_with("     0.020000000 s  sample          120  channel 1  level  1 sample (1 ms)"),
        "{words}"
    );
    assert!(text(&said.stderr).contains("found 2 events in 200 samples"), "{}", text(&said.stderr));
    for (arguments, says) in [
        (&["--trigger", "edge"][..], "--trigger edge needs --level VALUE"),
        (&["--trigger", "runt", "--low", "1"], "needs --low VALUE and --high VALUE"),
        (&["--trigger", "dropout", "--level", "1"], "needs --longer TIME"),
        (&["--trigger", "edge", "--level", "1", "--channels", "2"], "--channels 2: there is 1 channel"),
        (&["--trigger", "edge", "--level", "1", "--channels", "1.phase"], "have no parts"),
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
    assert_eq!(found(&file, &[&power[..], &["--channels", "2"]].concat()), [(300, 50)]);
    let magnitude = ["--trigger", "level", "--level", "0.4", "--channels", "1.magnitude,2.db"];
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
    run(&["convert", &wav, &recording]).good();
    for file in [&wav, &recording] {
        assert_eq!(power(file, "-3.5").len(), 1, "{file}");
        assert_eq!(power(file, "-2.5").len(), 0, "{file}");
    }
    let float = place("x.npy");
    run(&["convert", &wav, &float, "--format", "f32"]).good();
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
}

#[test]
fn find_annotates_a_channel_in_its_own_file_of_a_collection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let settings = SigmfSettings { sample_rate_hz: 1e3, channels: 2, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    let pulses = |places: &[usize]| {
        let mut samples = vec![0i16; 100];
        places.iter().for_each(|&at| samples[at..at + 5].fill(900));
        samples
    };
    writer.write(0, &[&pulses(&[20, 80]), &pulses(&[60, 80])]).unwrap();
    writer.finish().unwrap();
    let file = path.with_extension("sigmf-collection").display().to_string();
    let find = ["find", &file, "--trigger", "level", "--level", "700", "--annotate"];
    for says in ["wrote 4 annotations into 2 files of ", "wrote 0 annotations into "] {
        let said = run(&find);
        assert!(text(&said.stderr).contains(says), "{}", text(&said.stderr));
    }
    let annotate = ["annotate", &file, "--add", "both", "--position", "40", "--samples", "1"];
    run(&annotate).good();
    let told = |file: &Path| {
        let opened = SampleFile::open(file).unwrap();
        assert_eq!(opened.notes(), [""; 0]);
        let told = |it: &grebe::recording::Annotation| (it.position, it.text("core:comment").to_owned());
        opened.annotations().iter().map(told).collect::<Vec<_>>()
    };
    let of = |position: u64, comment: &str| (position, comment.to_owned());
    let (one, two, both) = ("channel 1", "channel 2", of(40, ""));
    let own = |channel: usize| told(&folder.path().join(format!("x_ch{channel}.sigmf-meta")));
    assert_eq!(own(1), [of(20, one), both.clone(), of(80, one)]);
    assert_eq!(own(2), [both.clone(), of(60, two), of(80, two)]);
    assert_eq!(told(file.as_ref()), [of(20, one), both, of(60, two), of(80, one), of(80, two)]);
    // One of a channel can be changed and removed like others.
    run(&["annotate", &file, "--edit", "3", "--comment", "door"]).good();
    run(&["annotate", &file, "--delete", "1"]).good();
    assert_eq!(own(1), [of(40, ""), of(80, one)]);
    assert_eq!(own(2), [of(40, ""), of(60, "door"), of(80, two)]);
}

#[test]
fn find_lists_bursts_with_their_bands_on_the_air() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let settings =
        SigmfSettings { format: SampleFormat::Cf32, sample_rate_hz: 1e6, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    let tuned = |hz: f64| {
        std::sync::Arc::new(grebe::frame::Description {
            centre_frequency_hz: Some(hz),
            ..grebe::frame::Description::default()
        })
    };
    writer.describe(Some(tuned(433e6)));
    // The last burst reaches to a gap and goes on after it.
    let all = [(200_000, 5_000, 100e3), (240_000, 20_000, -200e3), (295_000, 10_000, 300e3)];
    let samples = tones(400_000, &all, 1);
    writer.write(0, &[&samples[..300_000]]).unwrap();
    writer.write(301_000, &[&samples[301_000..400_000]]).unwrap();
    writer.describe(Some(tuned(435e6)));
    writer.write(400_000, &[&tones(200_000, &[(150_000, 3_000, -100e3)], 2)]).unwrap();
    writer.finish().unwrap();
    let file = folder.path().join("r.sigmf-meta").display().to_string();
    let found = |more: &[&str]| {
        let said = run(&[&["find", &file, "--trigger", "burst", "--json"][..], more].concat()).good();
        lines(&said.stdout)
    };
    let events = found(&[]);
    let expected = [
        (200_000, 5_000, 433.1e6, false),
        (240_000, 20_000, 432.8e6, false),
        (295_000, 5_000, 433.3e6, true),
        (301_000, 4_000, 433.3e6, true),
        (550_000, 3_000, 434.9e6, false),
    ];
    assert_eq!(events.len(), expected.len(), "{events:#?}");
    for (event, (index, length, centre_hz, is_cut)) in events.iter().zip(expected) {
        let number = |name: &str| event[name].as_f64().unwrap();
        assert!((number("sample_index") - f64::from(index)).abs() <= 512.0, "{event}");
        assert!((number("samples") - f64::from(length)).abs() <= 1024.0, "{event}");
        assert!((number("centre_frequency_hz") - centre_hz).abs() < 100.0, "{event}");
        assert!((number("power_dbfs") + 20.0).abs() < 0.3, "{event}");
        assert!((1e3..8e3).contains(&number("bandwidth_hz")) && number("snr_db") > 40.0, "{event}");
        assert_eq!((&event["is_cut"], &event["channel"]), (&is_cut.into(), &"1".into()), "{event}");
    }
    assert_eq!(found(&["--band", "433.05M,433.2M"]).len(), 1);
    assert_eq!(found(&["--band", "434M..435M"]).len(), 1, "after the receiver was tuned");
    assert_eq!(found(&["--above", "70dB"]).len(), 0);
    assert_eq!(found(&["--longer", "10ms"]).len(), 1);
    let said =
        run(&["find", &file, "--trigger", "burst", "--csv", "--start", "150ms", "--duration", "60ms"]).good();
    let csv = text(&said.stdout);
    assert!(csv.starts_with("event,channel,seconds,position,sample_index,samples,duration_s,time,centre_frequency_hz,bandwidth_hz,power_dbfs,snr_db,is_cut\nburst,1,0.199"), "{csv}");
    run(&["find", &file, "--trigger", "burst", "--annotate"]).good();
    let opened = SampleFile::open(&file).unwrap();
    let fields = &opened.annotations()[0].fields;
    let edge = |name: &str| fields[name].as_f64().unwrap();
    let (low, high) = (edge("core:freq_lower_edge"), edge("core:freq_upper_edge"));
    assert!((low + high - 2.0 * 433.1e6).abs() < 200.0 && (1e3..8e3).contains(&(high - low)), "{fields:?}");
    assert!(fields["core:comment"].as_str().unwrap().starts_with("channel 1, SNR "), "{fields:?}");
    let said = run(&["find", &file, "--trigger", "burst", "--max", "1"]).good();
    assert!(text(&said.stdout).contains(" kHz wide, -20.0 dBFS, SNR "), "{}", text(&said.stdout));
    let real = example("ecg.sigmf-meta").display().to_string();
    for (file, arguments, says) in [
        (&file, &["--band", "100M,101M"][..], "the signal covers 434.5 MHz to 435.5 MHz"),
        (&file, &["--band", "434M,433M"], "invalid band"),
        (&file, &["--above", "0dB"], "decibels above 0"),
        (&file, &["--above=-3"], "decibels above 0"),
        (&file, &["--false-alarms", "0"], "1e-15 to 0.01"),
        (&file, &["--transform", "1000"], "power of two"),
        (&file, &["--level", "1"], "--above DB"),
        (&file, &["--channels", "1.phase"], "give 1"),
        (&real, &["--band", "-20,-10"], "the signal covers 0 Hz to 180 Hz"),
    ] {
        let said = run(&[&["find", file, "--trigger", "burst"][..], arguments].concat());
        assert_eq!(said.status.code(), Some(2), "{arguments:?}: {}", text(&said.stderr));
        assert!(text(&said.stderr).contains(says), "{}", text(&said.stderr));
    }
    let said = run(&["find", &file, "--trigger", "edge", "--level", "1", "--above", "3dB"]);
    assert!(text(&said.stderr).contains("--above needs --trigger burst"), "{}", text(&said.stderr));
}
