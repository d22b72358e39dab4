//! Reception of a radio: all samples, losses, errors.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use grebe::frame::Complex;
use grebe::recording::SampleFile;

use super::radio::{calls, counted, module, record, run, start_recording, with_radio};
use crate::support::{finish, signal, text};

/// Where a recording's segments begin in the stream, and how long they are.
fn segments(file: &SampleFile) -> Vec<(u64, u64)> {
    file.segments().iter().map(|it| (it.first_sample_index, it.length_samples)).collect()
}

#[test]
fn every_format_comes_as_the_device_has_it() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (theirs, ours) in
        [("CS16", "ci16"), ("CF32", "cf32"), ("CS8", "ci8"), ("CU8", "cu8"), ("CS12", "ci16")]
    {
        let path = folder.path().join(theirs).with_extension("sigmf-meta");
        let uri =
            format!("soapy:driver=grebe_test, format={theirs}, short=5000?rate=2M&frequency=433.92M&gain=20");
        let (report, said) = record(&uri, &path, "100k");
        assert_eq!(report["losses"]["generator_samples"], 0, "{report}");
        assert!(
            said.contains(&format!("counter (grebe_test): {ours} at 2 MS/s, 433.92 MHz, gain 20 dB")),
            "{said}"
        );
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!((file.format().to_string().as_str(), file.len_samples()), (ours, 100_000));
        assert_eq!(file.rate_hz(), Some(2e6));
        let description = file.description(0).unwrap().clone();
        assert_eq!((description.centre_frequency_hz, description.gain_db), (Some(433.92e6), Some(20.0)));
        assert_eq!(
            (description.bandwidth_hz, description.hardware.as_deref()),
            (Some(1.5e6), Some("counter (grebe_test)"))
        );
        let block = file.block(0, 100_000).unwrap();
        let is_right = match ours {
            "ci16" => (0..).zip(counted(&mut file, 0)).all(|(at, it)| it == (at, 0)),
            "cf32" => {
                let samples = block.channel::<Complex<f32>>(0).unwrap().into_owned();
                samples.iter().enumerate().all(|(at, it)| (it.re, it.im) == (at as f32, 0.0))
            }
            _ => {
                let bytes = block.channel_bytes(0).unwrap().to_vec();
                bytes.chunks(2).enumerate().all(|(at, it)| it == [at as u8, (at >> 8) as u8])
            }
        };
        assert!(is_right, "{theirs}");
    }
}

#[test]
fn channels_of_one_stream_stay_beside_each_other_however_they_are_read() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (number, args) in [
        "",
        ", short=3000, time=1",
        ", short=7, time=1, drop=20000:11",
        ", short=900, time=1, drop=20000:11, hide=1",
    ]
    .iter()
    .enumerate()
    {
        let path = folder.path().join(format!("{number}.sigmf-meta"));
        let uri = format!("soapy:driver=grebe_test, channels=4{args}?rate=10M&channels=3,0,1");
        let (report, _) = record(&uri, &path, "60k");
        let mut file = SampleFile::open(path.with_extension("sigmf-collection")).unwrap();
        assert_eq!((file.channels(), file.len_samples()), (3, 60_000));
        let lost = report["losses"]["generator_samples"].as_u64().unwrap();
        assert_eq!(lost > 0, args.contains("drop"), "{report}");
        let segments = file.segments().to_vec();
        for (place, channel) in [3, 0, 1].into_iter().enumerate() {
            let samples = counted(&mut file, place);
            for segment in &segments {
                let from = segment.position as usize;
                let expected = (segment.first_sample_index..).map(|index| (index, channel));
                let part = &samples[from..from + segment.length_samples as usize];
                assert!(part.iter().copied().eq(expected.take(part.len())), "{args}: channel {channel}");
            }
        }
    }
}

#[test]
fn a_device_loss_is_a_gap_of_the_length_by_its_clock() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    // Overflows reported by the read, beside it, or not at all: the times are the same.
    for (number, told) in ["", ", hide=1", ", status=1", ", utc=1"].iter().enumerate() {
        let path = folder.path().join(format!("{number}.sigmf-meta"));
        let uri = format!("soapy:driver=grebe_test, time=1, drop=30000:777, short=4096{told}?rate=5M");
        let (report, _) = record(&uri, &path, "200k");
        let mut file = SampleFile::open(&path).unwrap();
        let segments = segments(&file);
        assert!(segments.len() >= 5, "{told}: {segments:?}");
        let lost = 777 * (segments.len() as u64 - 1);
        // Losses after the last requested sample may be known, or not.
        let counted_lost = report["losses"]["generator_samples"].as_u64().unwrap();
        assert!([lost, lost + 777].contains(&counted_lost), "{told}: {report}");
        assert_eq!(report["losses"]["unknown_gaps"], 0, "{told}: {report}");
        let samples = counted(&mut file, 0);
        let expected = segments.iter().flat_map(|&(first, length)| first..first + length);
        assert!(samples.iter().map(|it| it.0).eq(expected), "{told}");
        let of_now = file.time_at(0).unwrap().elapsed().unwrap();
        assert!(of_now < Duration::from_secs(600), "{told}: {of_now:?}");
    }
}

#[test]
fn without_a_clock_the_place_of_a_gap_is_known_and_its_length_is_not() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let output = finish(start_recording("soapy:driver=grebe_test, drop=30000:777?rate=5M", &path, "100k"));
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["losses"]["unknown_gaps"], 3, "{report}");
    let mut file = SampleFile::open(&path).unwrap();
    // A block is cut where the driver told.
    let ends: Vec<u64> = file.segments().iter().map(|it| it.position).collect();
    let jumps: Vec<u64> = (1..)
        .zip(counted(&mut file, 0).windows(2))
        .filter_map(|(at, pair)| (pair[1].0 != pair[0].0 + 1).then_some(at))
        .collect();
    assert_eq!((ends[1..].to_vec(), jumps.len()), (jumps, 3));
    let told = run(&[
        "record",
        "soapy:driver=grebe_test, drop=30000:777",
        folder.path().join("y.sigmf-meta").to_str().unwrap(),
        "--samples",
        "50k",
    ]);
    assert!(text(&told.stderr).contains("1 gap of unknown length"), "{}", text(&told.stderr));
}

#[test]
fn losses_of_a_radio_are_visible_while_it_runs() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let uri = "soapy:driver=grebe_test, time=1, drop=30000:777, paced=1?rate=1M";
    let mut recorder =
        with_radio(&["record", uri, path.to_str().unwrap(), "--metrics", "0"]).spawn().unwrap();
    let mut lines = BufReader::new(recorder.stderr.take().unwrap()).lines().map(Result::unwrap);
    let figures = lines.find_map(|line| Some(line.strip_prefix("metrics at http://")?.to_owned())).unwrap();
    let address = figures.strip_suffix("/metrics").unwrap();
    let figure = |name: &str| {
        let mut page = String::new();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
        stream.read_to_string(&mut page).unwrap();
        let start = format!("grebe_stage_{name}_total{{graph=\"record\",stage=\"source\"}} ");
        let value = page.lines().find_map(|line| line.strip_prefix(&start)?.parse::<f64>().ok());
        value.unwrap_or_else(|| panic!("no {start}: {page}"))
    };
    while figure("overflows") < 3.0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(figure("generator_samples") >= 2.0 * 777.0 && figure("unknown_gaps") == 0.0);
    let top = run(&["top", &recorder.id().to_string(), "--once"]);
    let said = text(&top.stdout);
    assert!(said.contains(" overflows") && said.contains(" generator samples"), "{said}");
    signal("-INT", recorder.id());
    lines.for_each(drop);
    assert_eq!(finish(recorder).status.code(), Some(130));
}

#[test]
fn a_radio_is_set_as_its_name_says() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls");
    let uri = format!(
        "soapy:driver=grebe_test, channels=2, calls={}?rate=2.4M&frequency=100M&bandwidth=1M&gain=auto&gain.LNA=24&antenna=B&channels=1&ppm=-2&clock=external&time=gps&setting.biastee=true&stream.buffers=32",
        file.display()
    );
    record(&uri, &folder.path().join("x.sigmf-meta"), "1k");
    let expected = [
        "clock=external",
        "time=gps",
        "setting.biastee=true",
        "antenna=B",
        "rate=2400000.000000",
        "bandwidth=1000000.000000",
        "ppm=-2.000000",
        "frequency=100000000.000000",
        "gain_mode=auto",
        "gain.LNA=24.000000",
        "stream=CS16",
        "stream.buffers=32",
        "activate=",
        "close=",
    ];
    assert_eq!(calls(&file), expected);
}

#[test]
fn a_refused_setting_lists_the_accepted_ones() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    for (uri, status, says) in [
        ("soapy:driver=grebe_test, serial=78", 1, "(grebe devices lists the radios)"),
        ("soapy:driver=nothing", 1, "(grebe devices lists the radios)"),
        (
            "soapy:driver=grebe_test?rate=50M",
            1,
            "cannot set rate=50000000 of soapy:driver=grebe_test: too fast; valid: 1k to 20M",
        ),
        ("soapy:driver=grebe_test?frequency=10k", 1, "cannot tune there; valid: 1M to 6G"),
        ("soapy:driver=grebe_test?gain=99", 1, "gain out of range; valid: 0 to 60 dB"),
        (
            "soapy:driver=grebe_test?gain.PGA=9",
            1,
            "cannot set gain.PGA=9 of soapy:driver=grebe_test: it has LNA, VGA",
        ),
        ("soapy:driver=grebe_test?antenna=C", 1, "it has A, B"),
        ("soapy:driver=grebe_test?channels=0,1", 1, "it has no channel 1 to receive by, only channel 0"),
        ("soapy:driver=grebe_test?format=f64", 1, "it does not support f64; supported: ci16, cf32, ci8, cu8"),
        ("soapy:driver=grebe_test?gain=loud", 2, "give dB"),
        ("soapy:driver=grebe_test, fail=stream?rate=1M", 1, "cannot receive from soapy:"),
        (
            "soapy:driver=grebe_test, fail=activate?rate=1M",
            1,
            "cannot start soapy:driver=grebe_test, fail=activate: failed on purpose in activate",
        ),
    ] {
        let output = run(&["record", uri, path.to_str().unwrap(), "--samples", "1k"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{uri}: {said}");
        assert!(said.contains(says), "{uri}: {said}");
        assert!(!path.exists(), "{uri}");
    }
    let nearest =
        run(&["record", "soapy:driver=grebe_test?rate=1500.5", path.to_str().unwrap(), "--samples", "100"]);
    let said = text(&nearest.stderr);
    assert!(said.contains("has 1000 samples per second instead of the requested 1500.5"), "{said}");
    assert_eq!(SampleFile::open(&path).unwrap().rate_hz(), Some(1e3));
}

#[test]
fn a_radio_that_is_unplugged_ends_the_recording_which_is_good() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    for gone in ["error", "throw", "silent"] {
        let path = folder.path().join(gone).with_extension("sigmf-meta");
        let uri = format!("soapy:driver=grebe_test, unplug=50000, gone={gone}");
        let output = run(&["record", &uri, path.to_str().unwrap(), "--samples", "1M"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("is lost") && said.contains("reconnect"), "{said}");
        assert_eq!(said.contains("LIBUSB_ERROR_NO_DEVICE"), gone == "throw", "{said}");
        let mut file = SampleFile::open(&path).unwrap();
        let numbers = counted(&mut file, 0);
        assert!(numbers.len() >= 50_000 && (0..).zip(&numbers).all(|(at, it)| it.0 == at), "{gone}");
    }
}

#[test]
fn a_returning_radio_continues_after_a_gap_with_its_tuning() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    for gone in ["error", "silent"] {
        let (plug, path) = (folder.path().join(format!("plug-{gone}")), folder.path().join(gone));
        let (calls_file, path) =
            (folder.path().join(format!("calls-{gone}")), path.with_extension("sigmf-meta"));
        fs::write(&plug, "").unwrap();
        let uri = format!(
            "soapy:driver=grebe_test, time=1, unplug=50000, gone={gone}, plug={}, calls={}?rate=1M&frequency=50M&reconnect",
            plug.display(),
            calls_file.display()
        );
        let recorder = start_recording(&uri, &path, "80k");
        while plug.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Not found at first, then connected.
        std::thread::sleep(Duration::from_millis(500));
        fs::write(&plug, "").unwrap();
        let output = finish(recorder);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        let segments = segments(&file);
        let lost = report["losses"]["network_samples"].as_u64().unwrap();
        assert_eq!((segments.len(), segments[1].0), (2, segments[0].1 + lost), "{report}");
        // Half a second at least was away.
        assert!(lost >= 500_000, "{lost}");
        // The radio counts anew.
        let expected: Vec<u64> = (0..segments[0].1).chain(0..segments[1].1).collect();
        assert!(counted(&mut file, 0).iter().map(|it| it.0).eq(expected), "{gone}");
        let tuned = calls(&calls_file).iter().filter(|it| it.starts_with("frequency=50000000")).count();
        assert!(tuned >= 2, "{tuned}");
    }
}

#[test]
fn a_setting_refused_by_a_returning_radio_is_reported_once() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (plug, path) = (folder.path().join("plug"), folder.path().join("x.sigmf-meta"));
    fs::write(&plug, "").unwrap();
    let uri = format!(
        "soapy:driver=grebe_test, time=1, unplug=50000, plug={}?rate=1M&frequency=50M&gain=20&reconnect",
        plug.display()
    );
    let recorder = start_recording(&uri, &path, "80k");
    while plug.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::write(&plug, "frequency").unwrap();
    let output = finish(recorder);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("has gone (") && said.contains("; waiting for it\n"), "{said}");
    assert!(said.contains("is there again, after "), "{said}");
    let told: Vec<&str> =
        said.lines().filter(|line| line.contains("continues with its own setting")).collect();
    assert_eq!(told.len(), 1, "{said}");
    assert!(told[0].starts_with("cannot set frequency=50000000 of soapy:driver=grebe_test"), "{said}");
    let says = "it has no frequency now; valid: 1M to 6G; it continues with its own setting: ci16 at 1 MS/s, 100 MHz, gain 20 dB";
    assert!(told[0].ends_with(says), "{said}");
    let file = SampleFile::open(&path).unwrap();
    let centres: Vec<_> =
        file.segments().iter().map(|it| file.description(it.position).unwrap().centre_frequency_hz).collect();
    assert_eq!(centres, [Some(50e6), Some(100e6)]);
}

#[test]
fn a_failing_driver_call_loses_no_good_sample() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..=12 {
        let path = folder.path().join(format!("{seed}.sigmf-meta"));
        let uri =
            format!("soapy:driver=grebe_test, time=1, random={seed}?rate=5M&frequency=50M&gain=3&reconnect");
        let output = finish(start_recording(&uri, &path, "400k"));
        let said = text(&output.stderr);
        // A radio that is missing at the start is an error.
        let is_told = output.status.code() == Some(1) && said.contains("failed by chance");
        assert!(is_told || output.status.code() == Some(0), "seed {seed}: {:?} {said}", output.status);
        assert!(!said.contains("panicked"), "{said}");
        if output.status.code() == Some(0) {
            let mut file = SampleFile::open(&path).unwrap();
            assert_eq!(file.len_samples(), 400_000, "seed {seed}");
            let segments = file.segments().to_vec();
            let numbers = counted(&mut file, 0);
            for segment in segments {
                let part = &numbers[segment.position as usize..][..segment.length_samples as usize];
                assert!(part.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "seed {seed}");
            }
        }
    }
}

#[test]
fn ctrl_c_leaves_a_recording_that_can_be_read() {
    let Some(_) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("x.sigmf-meta");
    let calls_file = folder.path().join("calls");
    let uri = format!("soapy:driver=grebe_test, paced=1, calls={}", calls_file.display());
    let recorder = with_radio(&["record", &uri, path.to_str().unwrap()]).spawn().unwrap();
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    signal("-INT", recorder.id());
    assert_eq!(finish(recorder).status.code(), Some(130));
    let mut file = SampleFile::open(path).unwrap();
    assert!(file.is_whole() && file.len_samples() > 0);
    let length = file.len_samples().min(1_000_000);
    let block = file.block(0, length as usize).unwrap();
    let samples = block.channel::<Complex<i16>>(0).unwrap();
    assert!((0..).zip(samples.iter()).all(|(at, it)| it.re == (at & 0x7fff) as i16));
    assert_eq!(calls(&calls_file).last().map(String::as_str), Some("close="), "the device is given back");
}
