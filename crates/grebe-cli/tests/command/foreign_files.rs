//! Files of other programs through the built command: `info`, a picture, and a round trip through SigMF.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Good, run, text};

/// Expected `info --json` of a file; `None` if it is not checked.
struct Expected {
    format: &'static str,
    rate_hz: Option<f64>,
    samples: u64,
    frequency_hz: Option<f64>,
    time: Option<&'static str>,
    is_whole: bool,
    /// A part of one of the notes; empty: there is none.
    note: &'static str,
}

const PLAIN: Expected = Expected {
    format: "ci16",
    rate_hz: Some(48e3),
    samples: 100,
    frequency_hz: None,
    time: None,
    is_whole: true,
    note: "",
};

/// 400 bytes: a tone of 100 complex samples of 16 bits.
pub(crate) fn tone() -> Vec<u8> {
    let sample = |at: u32| {
        let angle = f64::from(at) * std::f64::consts::TAU / 20.0;
        [(angle.cos() * 16e3) as i16, (angle.sin() * 16e3) as i16]
    };
    (0..100).flat_map(sample).flat_map(i16::to_le_bytes).collect()
}

pub(crate) fn chunk(name: &[u8; 4], bytes: &[u8]) -> Vec<u8> {
    [&name[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

/// A stereo WAV at 48 kS/s with these chunks before the samples, and this length in its header.
pub(crate) fn wav(before: &[u8], size: u32) -> Vec<u8> {
    let mut format = [1u16, 2].map(u16::to_le_bytes).concat();
    format.extend([48_000u32, 192_000].map(u32::to_le_bytes).concat());
    format.extend([4u16, 16].map(u16::to_le_bytes).concat());
    let mut data = chunk(b"data", &tone());
    data[4..8].copy_from_slice(&size.to_le_bytes());
    let rest = [&b"WAVE"[..], &chunk(b"fmt ", &format), before, &data].concat();
    [&b"RIFF"[..], &(rest.len() as u32).to_le_bytes(), &rest].concat()
}

pub(crate) fn auxi() -> Vec<u8> {
    let start = [2026u16, 9, 4, 24, 12, 0, 0, 250].map(u16::to_le_bytes).concat();
    chunk(b"auxi", &[&start[..], &start, &7_074_000u32.to_le_bytes(), &[0; 128]].concat())
}

pub(crate) fn rf64_killed() -> Vec<u8> {
    let mut file = wav(b"", u32::MAX);
    file[..8].copy_from_slice(b"RF64\xff\xff\xff\xff");
    file.splice(12..12, chunk(b"ds64", &[0; 28]));
    file
}

pub(crate) fn meta(datatype: &str, capture: Value) -> Vec<u8> {
    let global = json!({"core:datatype": datatype, "core:version": "1.2.0", "core:sample_rate": 48_000});
    json!({"global": global, "captures": [capture], "annotations": []}).to_string().into_bytes()
}

fn said(path: &str) -> Value {
    let output = run(&["info", "--json", path]);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{path}: {}", text(&output.stderr)))
}

fn check(typed: &str, expected: &Expected) {
    let said = said(typed);
    let number = |value: Option<f64>| value.map_or(Value::Null, Value::from);
    assert_eq!(said["format"], expected.format, "{typed}: {said}");
    assert_eq!(said["samples"], expected.samples, "{typed}: {said}");
    assert_eq!(said["sample_rate_hz"], number(expected.rate_hz), "{typed}: {said}");
    assert_eq!(said["centre_frequency_hz"], number(expected.frequency_hz), "{typed}: {said}");
    assert_eq!(said["recorded_at"], expected.time.map_or(Value::Null, Value::from), "{typed}: {said}");
    assert_eq!(said["whole"], expected.is_whole, "{typed}: {said}");
    let notes = said["notes"].to_string();
    assert!(
        if expected.note.is_empty() { notes == "[]" } else { notes.contains(expected.note) },
        "{typed}: {said}"
    );
}

#[test]
fn every_file_is_read_as_what_it_is_and_what_was_decided_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, bytes: &[u8]| fs::write(at(name), bytes).unwrap();
    let tone = tone();
    let sigmf = |name: &str, datatype: &str, capture: Value, data: &[u8]| {
        write(&format!("{name}.sigmf-meta"), &meta(datatype, capture));
        write(&format!("{name}.sigmf-data"), data);
    };
    let start = |fields: Value| {
        let mut capture = json!({"core:sample_start": 0});
        capture.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        capture
    };
    let stereo = Expected { format: "i16", ..PLAIN };
    let cut = Expected { format: "i16", is_whole: false, note: "does not say how long", ..PLAIN };
    let mut cases: Vec<(String, Expected)> = Vec::new();
    let mut wavs = |name: &str, bytes: Vec<u8>, query: &str, expected: Expected| {
        write(name, &bytes);
        cases.push((format!("{name}{query}"), expected));
    };
    wavs("plain.wav", wav(b"", 400), "", stereo);
    wavs("iq.wav", wav(b"", 400), "?iq&frequency=1M", Expected { frequency_hz: Some(1e6), ..PLAIN });
    wavs("rate.wav", wav(b"", 400), "?rate=2.4M", Expected { format: "i16", rate_hz: Some(2.4e6), ..PLAIN });
    let tuned = Expected {
        frequency_hz: Some(7.074e6),
        time: Some("2026-09-24T12:00:00.25Z"),
        note: "a receiver wrote it (auxi)",
        ..PLAIN
    };
    wavs("auxi.wav", wav(&auxi(), 400), "", tuned);
    wavs(
        "baseband_433920000Hz_12-00-00_01-02-2020.wav",
        wav(b"", 400),
        "",
        Expected {
            frequency_hz: Some(433.92e6),
            time: Some("2020-02-01T12:00:00Z"),
            note: "taken as UTC",
            ..PLAIN
        },
    );
    for size in [0, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        wavs(&format!("size{size:x}.wav"), wav(b"", size), "", Expected { ..cut });
    }
    wavs("killed.wav", rf64_killed(), "", cut);
    wavs(
        "stale.wav",
        wav(b"", 40),
        "",
        Expected { format: "i16", is_whole: false, note: "the file goes on", ..PLAIN },
    );
    for (number, time, kept) in [
        (0, "2026-09-24T12:00:00", "2026-09-24T12:00:00Z"),
        (1, "2026-09-24T12:34:56.123456789012Z", NANOSECONDS),
        (2, "2026-09-24 12:00:00 UTC", "2026-09-24T12:00:00Z"),
        (3, "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
    ] {
        let name = format!("time{number}.iq");
        sigmf(&name, "ci16_le", start(json!({"core:datetime": time})), &tone);
        let expected = Expected { time: Some(kept), note: "is not as SigMF has it", ..PLAIN };
        cases.push((format!("{name}.sigmf-meta"), expected));
    }
    for (datatype, format, samples) in [
        ("ci32_le", "cf32", 50),
        ("cf64_be", "cf32", 25),
        ("cu16_le", "cf32", 100),
        ("ru16_be", "i32", 200),
        ("ru32_le", "f64", 100),
        ("ri64_be", "f64", 50),
    ] {
        // Of other bytes these are some numbers, too; as floats of 64 bits they may be none.
        let data = if datatype.starts_with("cf") { vec![0; 400] } else { tone.clone() };
        sigmf(datatype, datatype, start(json!({})), &data);
        cases.push((
            format!("{datatype}.sigmf-meta"),
            Expected { format, samples, note: "are read as", ..PLAIN },
        ));
    }
    sigmf("half", "ci16_le", start(json!({})), &[&tone[..], &[7]].concat());
    let half = Expected { is_whole: false, note: "end within a sample", ..PLAIN };
    cases.push(("half.sigmf-meta".to_owned(), half));
    let mut named = |name: &str, expected: Expected| {
        write(name, &tone);
        cases.push((name.to_owned(), expected));
    };
    named(
        "gqrx_20240101_120000_100000000_2400000_fc.raw",
        Expected {
            format: "cf32",
            samples: 50,
            rate_hz: Some(2.4e6),
            frequency_hz: Some(1e8),
            time: Some("2024-01-01T12:00:00Z"),
            note: "2400000 S/s, 100000000 Hz",
            ..PLAIN
        },
    );
    let cu8 = Expected { format: "cu8", samples: 200, note: "the name of the file says", ..PLAIN };
    named("g001_433.92M_250k.cu8", Expected { rate_hz: Some(250e3), frequency_hz: Some(433.92e6), ..cu8 });
    named("FM_100.1M_2.4Msps.cu8", Expected { rate_hz: Some(2.4e6), frequency_hz: Some(100.1e6), ..cu8 });
    let iridium =
        Expected { format: "cf32", samples: 50, rate_hz: Some(1e6), frequency_hz: Some(1.6265e9), ..cu8 };
    named("osmo-f1.6265e9-s1e6-t20260924.cfile", iridium);
    named(
        "capture.complex16s",
        Expected { format: "ci8", samples: 200, rate_hz: None, note: "is taken as ci8", ..PLAIN },
    );
    named(
        "BBD_0001.C16",
        Expected { rate_hz: Some(500e3), frequency_hz: Some(433.92e6), note: "BBD_0001.TXT says", ..PLAIN },
    );
    write("BBD_0001.TXT", b"sample_rate=500000\ncenter_frequency=433920000\n");
    for (name, expected) in &cases {
        check(&at(name), expected);
    }
    let (out, picture) = (at("out.sigmf-meta"), at("out.png"));
    for (name, expected) in &cases {
        let typed = at(name);
        let drawn = run(&["view", &typed, "--png", &picture, "--json"]).good();
        assert!(text(&drawn.stderr).contains(expected.note), "{name}: {}", text(&drawn.stderr));
        let shown: Value = serde_json::from_slice(&drawn.stdout).unwrap();
        assert_eq!(shown["missing_samples"], 0, "{name}: {shown}");
        assert_eq!(
            shown["centre_frequency_hz"],
            expected.frequency_hz.map_or(Value::Null, Value::from),
            "{name}"
        );
        let converted = run(&["convert", &typed, &out, "--overwrite"]).good();
        assert!(text(&converted.stderr).contains(expected.note), "{name}: {}", text(&converted.stderr));
        let made = if expected.format == "i16" { at("out.sigmf-collection") } else { out.clone() };
        let told = said(&made);
        assert_eq!(
            (&told["format"], &told["samples"]),
            (&expected.format.into(), &expected.samples.into()),
            "{name}"
        );
        for (field, value) in
            [("sample_rate_hz", expected.rate_hz), ("centre_frequency_hz", expected.frequency_hz)]
        {
            assert_eq!(told[field], value.map_or(Value::Null, Value::from), "{name}: {told}");
        }
        // The only remaining note is the unknown rate.
        let notes =
            if expected.rate_hz.is_some() { "[]" } else { r#"["the metadata do not say the sample rate"]"# };
        assert_eq!((&told["whole"], told["notes"].to_string().as_str()), (&true.into(), notes), "{name}");
        // SigMF has microseconds up to 1 MS/s.
        let kept = told["recorded_at"].as_str().map(|text| text.trim_end_matches('Z'));
        assert!(
            expected.time.is_none_or(|time| kept.is_some_and(|kept| time.starts_with(kept))),
            "{name}: {told}"
        );
    }
}

#[test]
fn complex_samples_go_into_a_wav_and_come_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("x.cs16"), tone()).unwrap();
    let typed = format!("{}?rate=48k&frequency=433.92M", at("x.cs16"));
    for (from, to) in [
        (typed.as_str(), "out.wav"),
        (&at("out.wav"), "back.sigmf-meta"),
        (&at("back.sigmf-meta"), "back.cs16"),
    ] {
        run(&["convert", from, &at(to)]).good();
    }
    assert_eq!(fs::read(at("back.cs16")).unwrap(), tone());
    let back = said(&at("back.sigmf-meta"));
    assert_eq!((&back["format"], &back["centre_frequency_hz"]), (&"ci16".into(), &433.92e6.into()));
    assert!(Path::new(&at("out.wav")).is_file());
    let told = text(&run(&["info", &at("back.sigmf-meta")]).stdout);
    assert!(told.contains("433.92 MHz\n") && told.contains("at 48 kS/s"), "{told}");
}

#[test]
fn a_killed_wav_is_closed_by_repair_and_a_header_is_never_read_as_samples() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (name, bytes) in
        [("killed.wav", rf64_killed()), ("stale.wav", wav(b"", 40)), ("zero.wav", wav(b"", 0))]
    {
        fs::write(at(name), bytes).unwrap();
        run(&["repair", &at(name)]).good();
        check(&at(name), &Expected { format: "i16", ..PLAIN });
    }
    for typed in
        ["zero.wav?format=cf32&rate=1M", "x.csv?format=f32&rate=1M", "x.sigmf-meta?format=cu8&rate=1M"]
    {
        for name in ["x.csv", "x.sigmf-meta"] {
            fs::write(at(name), b"1,2\n3,4\n5,6\n7,8\n").unwrap();
        }
        let refused = run(&["info", &at(typed)]);
        let said = text(&refused.stderr);
        assert!(!refused.status.success() && !said.is_empty(), "{typed}: {}", text(&refused.stdout));
    }
}

#[test]
fn a_recording_is_opened_by_the_name_that_it_was_made_with() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    run(&["record", "synth:sine?channels=2&rate=1M", &at("out"), "-d", "10ms"]).good();
    for command in [&["info"][..], &["view", "--png", &at("a.png")], &["info", "--verify"], &["repair"]] {
        run(&[command, &[&at("out")]].concat()).good();
    }
}

/// The names of a recording's files say SigMF, whatever its own name ends in.
#[test]
fn a_recording_may_be_called_as_the_file_that_it_was_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("x.csv"), "t,a\n0,1\n1,2\n2,3\n").unwrap();
    fs::write(at("x.wav"), wav(&auxi(), 400)).unwrap();
    fs::write(at("x.cu8"), tone()).unwrap();
    for (from, samples) in [("x.csv", 3), ("x.wav", 100), ("x.cu8", 200)] {
        let out = at(&format!("{from}.sigmf-meta"));
        run(&["convert", &at(from), &out]).good();
        assert_eq!(said(&out)["samples"], samples, "{from}");
    }
    // The advice about a table can be typed as it stands.
    let refused = text(&run(&["info", &at("x.csv")]).stderr);
    let names: Vec<&str> = refused.split('\'').collect();
    run(&["convert", names[1], names[3]]).good();
    assert_eq!(said(names[3])["samples"], 3, "{refused}");
}

/// Its unpacked size is unknown before all of it is unpacked.
#[test]
fn a_large_compressed_file_is_described_without_being_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.cu8.gz");
    fs::File::create(&path).unwrap().set_len(65 << 20).unwrap();
    let said = said(&format!("{}?rate=1k", path.display()));
    assert_eq!((&said["kind"], &said["data_bytes"]), (&json!("raw"), &json!(65 << 20)));
    assert!(
        said["samples"].is_null() && said["notes"][0].as_str().unwrap().contains("grebe convert"),
        "{said}"
    );
}

/// Windows keeps times in steps of 100 ns.
const NANOSECONDS: &str =
    if cfg!(windows) { "2026-09-24T12:34:56.1234567Z" } else { "2026-09-24T12:34:56.123456789Z" };
