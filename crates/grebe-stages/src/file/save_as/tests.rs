//! Recordings that become other kinds of files.

use std::path::Path;

use grebe_frame::Complex;
use grebe_ring::Cancel;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::file::sigmf::{SigmfSettings, SigmfWriter};
use crate::{Error, SampleFile};

fn saved(from: &Path, to: &Path) -> Result<(), Error> {
    SampleFile::open(from)?.save_as(to, false, &Cancel::default()).map(drop)
}

/// As Python's `wave` and SciPy write it.
fn wav(tag: u16, channels: u16, bits: u16, samples: &[u8]) -> Vec<u8> {
    let frame_bytes = channels * bits / 8;
    let mut format = [&tag.to_le_bytes()[..], &channels.to_le_bytes(), &48_000u32.to_le_bytes()].concat();
    format.extend((48_000 * u32::from(frame_bytes)).to_le_bytes());
    format.extend([frame_bytes.to_le_bytes(), bits.to_le_bytes()].concat());
    let mut chunks = Vec::new();
    if tag == 3 {
        format.extend([0; 2]);
    }
    chunks.extend([&b"WAVEfmt "[..], &(format.len() as u32).to_le_bytes(), &format].concat());
    if tag == 3 {
        let count = samples.len() as u32 / u32::from(frame_bytes);
        chunks.extend([&b"fact"[..], &4u32.to_le_bytes(), &count.to_le_bytes()].concat());
    }
    chunks.extend([&b"data"[..], &(samples.len() as u32).to_le_bytes(), samples].concat());
    if samples.len() % 2 == 1 {
        chunks.push(0);
    }
    [&b"RIFF"[..], &(chunks.len() as u32).to_le_bytes(), &chunks].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_wav_of_any_width_comes_back_as_it_was(
        kind in prop::sample::select(vec![(1u16, 8u16), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)]),
        channels in prop_oneof![1u16..=12, Just(255)],
        length in 1usize..60,
        seed in any::<u8>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let count = length * usize::from(channels * kind.1 / 8);
        let samples: Vec<u8> = (0..count).map(|at| (at * 37 + at / 256) as u8 ^ seed).collect();
        let bytes = wav(kind.0, channels, kind.1, &samples);
        std::fs::write(place("in.wav"), &bytes).unwrap();
        saved(&place("in.wav"), &place("x.sigmf-meta")).unwrap();
        saved(&place("x.sigmf-meta"), &place("out.wav")).unwrap();
        prop_assert_eq!(std::fs::read(place("out.wav")).unwrap(), bytes);
    }
}

#[test]
fn sigmf_keeps_gaps_descriptions_times_and_annotations() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let samples: Vec<u8> = (0..40).collect();
    std::fs::write(place("a.sigmf-data"), &samples).unwrap();
    let channels = json!([{"name": "x", "unit": "V", "scale": 2.0, "offset": 0.0}]);
    let meta = json!({
        "global": {
            "core:datatype": "ci8", "core:version": "1.2.0", "core:sample_rate": 8, "core:author": "N.N.",
            "core:license": "https://example.org/", "grebe:channels": channels,
        },
        "captures": [
            {"core:sample_start": 0, "core:global_index": 7, "core:frequency": 1e6, "core:datetime": "2026-01-02T03:04:05Z"},
            {"core:sample_start": 6, "core:global_index": 13, "core:frequency": 2e6},
            {"core:sample_start": 10, "core:global_index": 90, "core:frequency": 2e6},
        ],
        "annotations": [
            {"core:sample_start": 2, "core:sample_count": 3, "core:label": "a", "core:freq_lower_edge": 5.0},
            {"core:sample_start": 12, "core:sample_count": 8, "core:comment": "b"},
        ],
    });
    std::fs::write(place("a.sigmf-meta"), meta.to_string()).unwrap();
    saved(&place("a.sigmf-meta"), &place("b.sigmf-meta")).unwrap();
    assert_eq!(std::fs::read(place("b.sigmf-data")).unwrap(), samples);
    let text = std::fs::read(place("b.sigmf-meta")).unwrap();
    let got: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(got["annotations"], meta["annotations"]);
    for name in ["core:datatype", "core:author", "core:license", "grebe:channels"] {
        assert_eq!(got["global"][name], meta["global"][name], "{name}");
    }
    let captures = |meta: &Value| -> Vec<_> {
        let captures = meta["captures"].as_array().unwrap();
        let of = |name: &str, capture: &Value| capture[name].as_f64();
        let names = ["core:sample_start", "core:global_index", "core:frequency"];
        captures.iter().map(|capture| names.map(|name| of(name, capture))).collect()
    };
    assert_eq!(captures(&got), captures(&meta));
    assert_eq!(got["captures"][0]["core:datetime"], "2026-01-02T03:04:05.000000Z");
    assert_eq!(got["captures"][1].get("core:datetime"), None, "nobody knows");
}

#[test]
fn raw_samples_come_back_and_what_a_file_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let settings = SigmfSettings { channels: 2, sample_rate_hz: 48e3, ..SigmfSettings::default() };
    let write = |name: &str, second: u64| {
        let mut writer = SigmfWriter::create(&place(name), &settings).unwrap();
        writer.write(0, &[&[1i16, 2], &[-1, -2]]).unwrap();
        writer.write(second, &[&[3i16], &[-3]]).unwrap();
        writer.finish().unwrap();
    };
    write("whole.sigmf-meta", 2);
    write("gap.sigmf-meta", 5);
    let complex = SigmfSettings { format: grebe_frame::SampleFormat::Ci8, channels: 1, ..settings.clone() };
    let mut writer = SigmfWriter::create(&place("c"), &complex).unwrap();
    writer.write(0, &[&[Complex::new(1i8, 2)]]).unwrap();
    writer.finish().unwrap();
    saved(&place("whole.sigmf-meta"), &place("x.s16")).unwrap();
    let expected: Vec<u8> = [1i16, -1, 2, -2, 3, -3].into_iter().flat_map(i16::to_le_bytes).collect();
    assert_eq!(std::fs::read(place("x.s16")).unwrap(), expected);
    for (from, to, says) in [
        ("whole.sigmf-meta", "x.s16", "exists already"),
        ("whole.sigmf-meta", "x.cf32", "its name says cf32, and the samples are i16: name it NAME.i16"),
        ("whole.sigmf-meta", "x.cf64", "no stream has such samples"),
        ("whole.sigmf-meta", "y.i16?rate=1", "leave it out"),
        ("gap.sigmf-meta", "x.wav", "1 gaps are in the recording: fill them first"),
        ("gap.sigmf-meta", "x.i16", "1 gaps are in the recording"),
        (
            "c.sigmf-meta",
            "x.wav",
            "a WAV cannot hold samples of ci8; convert them, or write NAME.sigmf-meta or NAME.ci8",
        ),
    ] {
        let error = saved(&place(from), &place(to)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(!place("x.wav").exists() && !place("x.cf32").exists(), "nothing half-written is left");
    let cancel = Cancel::default();
    cancel.cancel();
    let cancelled =
        SampleFile::open(&place("whole.sigmf-meta")).unwrap().save_as(&place("z.i16"), false, &cancel);
    assert!(matches!(cancelled, Err(Error::Cancelled)) && !place("z.i16").exists());
}

#[test]
fn samples_that_need_more_than_the_bits_that_are_named_are_no_24_bit_wav() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let global =
        json!({"core:datatype": "ri32_le", "core:version": "1.2.0", "core:sample_rate": 8, "grebe:bits": 24});
    std::fs::write(place("a.sigmf-meta"), json!({"global": global, "captures": []}).to_string()).unwrap();
    let data = [5i32, 8_388_607, 8_388_608].map(i32::to_le_bytes).concat();
    std::fs::write(place("a.sigmf-data"), data).unwrap();
    let error = saved(&place("a.sigmf-meta"), &place("a.wav")).unwrap_err().to_string();
    assert!(error.contains("sample 2 does not fit into the 24 bits"), "{error}");
}
