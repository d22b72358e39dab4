//! `convert --center`, `--box` and `--demodulate`.

use std::f64::consts::TAU;
use std::path::PathBuf;
use std::sync::Arc;

use grebe::frame::Description;

use super::*;

const RATE_HZ: f64 = 500e3;

/// Two channels of a FM carrier 60 kHz above the centre: 1 kHz, 2.5 kHz of deviation. Channel 2 is quieter by half.
fn record(path: &Path, indexes: std::ops::Range<u64>) {
    let settings = SigmfSettings {
        format: SampleFormat::Ci16,
        channels: 2,
        sample_rate_hz: RATE_HZ,
        ..SigmfSettings::default()
    };
    let mut writer = SigmfWriter::create(path, &settings).unwrap();
    writer
        .describe(Some(Arc::new(Description { centre_frequency_hz: Some(100e6), ..Description::default() })));
    let sample = |index: u64, size: f64| {
        let t = index as f64 / RATE_HZ;
        let (sin, cos) = (TAU * 60e3 * t - 2.5 * (TAU * 1e3 * t).cos()).sin_cos();
        Complex::new((size * cos) as i16, (size * sin) as i16)
    };
    let one: Vec<_> = indexes.clone().map(|index| sample(index, 16_384.0)).collect();
    let two: Vec<_> = indexes.clone().map(|index| sample(index, 8_192.0)).collect();
    writer.write(indexes.start, &[&one, &two]).unwrap();
    writer.finish().unwrap();
}

fn sizes(path: &Path, channel: usize) -> Vec<f32> {
    let mut file = SampleFile::open(path).unwrap();
    let length = file.len_samples() as usize;
    let samples = file.block(0, length).unwrap().channel::<Complex<f32>>(channel).unwrap().into_owned();
    samples.iter().map(|it| it.re.hypot(it.im)).collect()
}

#[test]
fn a_band_and_boxes_become_recordings_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    record(place("wide").as_ref(), 0..500_000);
    let wide = place("wide.sigmf-collection");
    let converted = |arguments: &[&str]| {
        let said = run(&[&["convert", &wide][..], arguments].concat());
        (said.status.code(), text(&said.stderr))
    };
    let band = ["--center", "100.06M", "--bandwidth", "20k"];
    let (status, said) =
        converted(&[&[place("band").as_str(), "--start", "200ms", "-d", "500ms"][..], &band].concat());
    assert!(status == Some(0) && said.contains("cutting 100.05 MHz to 100.07 MHz on the air"), "{said}");
    assert!(!said.contains("attenuated"), "{said}");
    let file = SampleFile::open(place("band.sigmf-collection")).unwrap();
    assert_eq!((file.rate_hz(), file.len_samples(), file.channels()), (Some(25e3), 12_500, 2));
    assert_eq!(file.description(0).unwrap().centre_frequency_hz, Some(100.06e6));
    let whole = SampleFile::open(&wide).unwrap();
    let later = file.time_at(0).unwrap().duration_since(whole.time_at(0).unwrap()).unwrap();
    assert_eq!(later.as_micros(), 200_000);
    for (channel, size) in [(0, 0.5), (1, 0.25)] {
        let sizes = sizes(place("band.sigmf-collection").as_ref(), channel);
        assert!(sizes.iter().all(|it| (it - size).abs() < 2e-3), "{channel}");
    }
    let comment = file.annotations()[0].fields["core:comment"].as_str().unwrap().to_owned();
    assert!(
        comment.contains("samples 100000 to 350000") && comment.contains("its edges are whole"),
        "{comment}"
    );
    // Another kind of file, one channel, an explicit rate.
    let asked = ["--rate", "48k", "--format", "ci16", "--channels", "2"];
    let (status, said) = converted(&[&[place("band.wav").as_str()][..], &band, &asked].concat());
    assert!(status == Some(0) && said.contains("first 52 and last 51 samples are attenuated"), "{said}");
    let wav = SampleFile::open(place("band.wav")).unwrap();
    assert_eq!((wav.rate_hz(), wav.len_samples(), wav.format()), (Some(48e3), 48_000, SampleFormat::Ci16));
    // Several boxes.
    let boxes = ["--box", "0.1,0.2,100.05M,100.07M", "--box", "150ms,300ms,99.9M,99.95M"];
    let (status, said) =
        converted(&[&[place("part.sigmf-meta").as_str(), "--channels", "1"][..], &boxes].concat());
    assert_eq!(status, Some(0), "{said}");
    let loud = sizes(place("part_0.1s_0.2s_100.05MHz_100.07MHz.sigmf-meta").as_ref(), 0);
    let quiet = sizes(place("part_0.15s_0.3s_99.9MHz_99.95MHz.sigmf-meta").as_ref(), 0);
    assert!(loud.len() == 2_500 && loud.iter().all(|it| (it - 0.5).abs() < 2e-3), "{}", loud.len());
    assert!(!quiet.is_empty() && quiet.iter().all(|it| *it < 1e-4));
    for (arguments, says) in [
        (&["--center", "60k", "--bandwidth", "20k"][..], "the recording's centre is 100 MHz"),
        (&["--center", "100M"], "add --bandwidth"),
        (&["--bandwidth", "20k"], "add --center"),
        (&["--rate", "20k"], "--rate belongs to a band"),
        (&["--box", "1,0,1k,2k"], "T1 must be later than T0"),
        (&["--box", "2,3,100M,100.01M"], "the recording has 1s of signal: it must lie before the end"),
        (&[boxes[0], boxes[1], boxes[0], boxes[1]], "two boxes would be"),
        (&["--box", "0,1,0,1k", "--center", "1k"], "cannot be used with"),
        (&["--center", "100M", "--bandwidth", "20k", "--rate", "20k"], "give at least 21 kS/s"),
        (&["--demodulate", "usb", "--rate", "4k"], "at least 6.7 kS/s"),
    ] {
        let (status, said) = converted(&[&[place("no").as_str()][..], arguments].concat());
        assert!(status != Some(0) && said.contains(says), "{arguments:?}: {said}");
    }
    let left = fs::read_dir(folder.path()).unwrap().flatten().map(|it| it.file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.starts_with("no") || name.starts_with('.')).count(), 0);
}

#[test]
fn samples_that_are_not_finite_are_counted_for_each_box() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let settings =
        SigmfSettings { format: SampleFormat::Cf32, sample_rate_hz: 1e5, ..SigmfSettings::default() };
    let mut samples = vec![Complex::new(0.5f32, 0.0); 100_000];
    samples[10_000..10_007].fill(Complex::new(f32::NAN, 0.0));
    samples[60_000].im = f32::INFINITY;
    let mut writer = SigmfWriter::create(place("wide").as_ref(), &settings).unwrap();
    writer.write(0, &[&samples]).unwrap();
    writer.finish().unwrap();
    let boxes = ["--box", "0.05,0.2,-1k,1k", "--box", "0.55,0.7,-1k,1k", "--box", "0.3,0.4,-1k,1k"];
    let said = run(&[&["convert", &place("wide.sigmf-meta"), &place("part")][..], &boxes].concat());
    assert_eq!(said.status.code(), Some(0));
    let lines = text(&said.stderr);
    let counts: Vec<_> = lines.lines().filter(|line| line.contains("not finite")).collect();
    assert!(
        counts.len() == 2 && counts[0].contains(": 7 samples") && counts[1].contains(": 1 sample"),
        "{lines}"
    );
}

#[test]
fn a_ring_is_cut_across_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let ring = folder.path().join("ring");
    fs::create_dir(&ring).unwrap();
    for part in 1..=3u64 {
        record(&ring.join(format!("ring_{part:06}")), (part - 1) * 100_000..part * 100_000);
    }
    let to = folder.path().join("band");
    let said = run(&[
        "convert",
        ring.to_str().unwrap(),
        to.to_str().unwrap(),
        "--center",
        "100.06M",
        "--bandwidth",
        "20k",
        "--start",
        "100ms",
        "--duration",
        "400ms",
    ]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let band: PathBuf = folder.path().join("band.sigmf-collection");
    let sizes = sizes(&band, 0);
    assert!(sizes.len() == 10_000 && sizes.iter().all(|it| (it - 0.5).abs() < 2e-3), "{}", sizes.len());
    assert_eq!(SampleFile::open(&band).unwrap().segments().len(), 1);
}

#[test]
fn a_station_becomes_sound() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    record(place("wide").as_ref(), 0..500_000);
    let said = run(&[
        "convert",
        &place("wide.sigmf-collection"),
        &place("sound.wav"),
        "--demodulate",
        "fm",
        "--center",
        "100.06M",
        "--channels",
        "1",
        "--format",
        "i16",
    ]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let mut wav = SampleFile::open(place("sound.wav")).unwrap();
    assert_eq!((wav.rate_hz(), wav.len_samples(), wav.channels()), (Some(48e3), 48_000, 1));
    let sound = wav.block(12_000, 24_000).unwrap().channel::<i16>(0).unwrap().into_owned();
    let tone = sound.iter().enumerate().map(|(at, it)| f64::from(*it) * (TAU * at as f64 / 48.0).sin());
    // 2.5 of the 5 kHz that are full scale.
    let amplitude = 2.0 * tone.sum::<f64>() / sound.len() as f64 / 32_768.0;
    assert!((amplitude - 0.5).abs() < 0.005, "{amplitude}");
}

#[test]
fn a_recording_plays_the_sound_that_convert_writes() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    record(place("wide").as_ref(), 0..500_000);
    let wide = place("wide.sigmf-collection");
    let converted = place("converted.sigmf-meta");
    let band = ["--demodulate", "fm", "--center", "100.06M", "--rate", "24k"];
    let said = run(&[&["convert", &wide, &converted, "--format", "f32"], &band[..]].concat());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let played = place("played.sigmf-meta");
    let said = run(&[&["play", &wide, "--free-run", "--to", &played], &band[..]].concat());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let sound = |name: &str| {
        let mut file = SampleFile::open(folder.path().join(name).with_extension("sigmf-collection")).unwrap();
        let length = file.len_samples() as usize;
        let block = file.block(0, length).unwrap();
        [0, 1].map(|channel| block.channel::<f32>(channel).unwrap().into_owned())
    };
    let truth = sound("converted");
    assert_eq!(truth[0].len(), 24_000);
    assert_eq!(sound("played"), truth);

    // A box is a part of it.
    let boxed = place("boxed.sigmf-meta");
    let place = ["--demodulate", "fm", "--rate", "24k", "--box", "0.25,0.75,100.05375M,100.06625M"];
    let said = run(&[&["play", &wide, "--free-run", "--to", &boxed], &place[..]].concat());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let part = sound("boxed");
    assert_eq!(part[0].len(), 12_000);
    let is_near = |(one, other): (&f32, &f32)| (one - other).abs() < 1e-3;
    // The filter reaches a little beyond its ends.
    assert!(part[0][500..11_500].iter().zip(&truth[0][6_500..]).all(is_near));

    for (arguments, says) in [
        (&["--center", "100M"][..], "--demodulate"),
        (&["--demodulate", "usb", "--rate", "4k"], "at least 6.7 kS/s"),
        (
            &["--demodulate", "fm", "--to", "udp://127.0.0.1:5000", "--to", "udp://127.0.0.1:5001"],
            "needs a single stream",
        ),
    ] {
        let said = run(&[&["play", &wide], arguments].concat());
        assert_eq!(said.status.code(), Some(2), "{}", text(&said.stderr));
        assert!(text(&said.stderr).contains(says), "{}", text(&said.stderr));
    }
}
