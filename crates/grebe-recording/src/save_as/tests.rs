//! Recordings that become other kinds of files.

use std::path::Path;

use grebe_frame::Complex;
use grebe_ring::Cancel;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::samples::tests::with_room;
use crate::sigmf::{SigmfSettings, SigmfWriter};
use crate::{CsvOptions, Error, GapPolicy, SampleFile, SaveOptions, import_csv};

fn saved(from: &Path, to: &Path) -> Result<(), Error> {
    SampleFile::open(from)?.save_as(to, &SaveOptions::default(), &Cancel::default()).map(drop)
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
        ("whole.sigmf-meta", "x.cf32", "its name says cf32, but the samples are i16: name it NAME.i16"),
        ("whole.sigmf-meta", "x.f32", "name it NAME.i16, or add --format f32"),
        ("whole.sigmf-meta", "x.cf64", "no stream has such samples"),
        ("whole.sigmf-meta", "y.i16?rate=1", "remove them"),
        (
            "gap.sigmf-meta",
            "x.wav",
            "samples are missing at 1 place, which this kind of file cannot mark: fill them with zeros",
        ),
        ("gap.sigmf-meta", "x.i16", "samples are missing at 1 place, "),
        (
            "c.sigmf-meta",
            "x.wav",
            "a WAV cannot hold samples of ci8: convert them (--format ci16), or write NAME.sigmf-meta or NAME.ci8",
        ),
    ] {
        let error = saved(&place(from), &place(to)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(!place("x.wav").exists() && !place("x.cf32").exists(), "nothing half-written is left");
    let cancel = Cancel::default();
    cancel.cancel();
    let cancelled = SampleFile::open(place("whole.sigmf-meta")).unwrap().save_as(
        &place("z.i16"),
        &SaveOptions::default(),
        &cancel,
    );
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

#[test]
fn gaps_are_closed_or_filled_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let settings = SigmfSettings { channels: 2, sample_rate_hz: 48e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&place("gap"), &settings).unwrap();
    writer.write(0, &[&[1i16, 2], &[-1, -2]]).unwrap();
    writer.write(4, &[&[3i16], &[-3]]).unwrap();
    writer.finish().unwrap();
    for (gaps, to, expected) in [
        (GapPolicy::Close, "x.wav", vec![1i16, 2, 3]),
        (GapPolicy::Zeros, "y.wav", vec![1, 2, 0, 0, 3]),
        (GapPolicy::Zeros, "y.npy", vec![1, 2, 0, 0, 3]),
    ] {
        let options = SaveOptions { gaps, ..SaveOptions::default() };
        let mut file = SampleFile::open(place("gap.sigmf-meta")).unwrap();
        file.save_as(&place(to), &options, &Cancel::default()).unwrap();
        let mut made = SampleFile::open(place(to)).unwrap();
        assert_eq!(made.len_samples(), expected.len() as u64, "{to}");
        let block = made.block(0, expected.len()).unwrap();
        assert_eq!(block.channel::<i16>(0).unwrap().as_ref(), expected);
        let second: Vec<i16> = expected.iter().map(|sample| -sample).collect();
        assert_eq!(block.channel::<i16>(1).unwrap().as_ref(), second);
    }
    for (gaps, times, expected) in [
        (GapPolicy::Close, false, "ch1,ch2\n1,-1\n2,-2\n3,-3\n"),
        (GapPolicy::Zeros, false, "ch1,ch2\n1,-1\n2,-2\n0,0\n0,0\n3,-3\n"),
        (
            GapPolicy::Refuse,
            true,
            "time_s,ch1,ch2\n0.0,1,-1\n0.000020833333333333333,2,-2\n0.00008333333333333333,3,-3\n",
        ),
    ] {
        let options = SaveOptions { gaps, times, overwrite: true, ..SaveOptions::default() };
        let mut file = SampleFile::open(place("gap.sigmf-meta")).unwrap();
        file.save_as(&place("x.csv"), &options, &Cancel::default()).unwrap();
        assert_eq!(std::fs::read_to_string(place("x.csv")).unwrap(), expected);
    }
    let refused = SampleFile::open(place("gap.sigmf-meta")).unwrap();
    let refused = { refused }.save_as(&place("z.csv"), &SaveOptions::default(), &Cancel::default());
    assert!(refused.unwrap_err().to_string().contains("samples are missing at 1 place, "));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Samples survive the conversion from each kind of file to each other and back.
    #[test]
    fn conversions_between_all_kinds_and_back_keep_every_sample(
        number in 0usize..10, channels in prop_oneof![1usize..=3, Just(9)], length in 1usize..50, seed in any::<u8>(),
    ) {
        let format = grebe_frame::SampleFormat::ALL[number];
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let count = length * channels * format.bytes();
        let samples: Vec<u8> = (0..count).map(|at| (at * 37 + at / 256) as u8 ^ seed).collect();
        std::fs::write(place(&format!("a.{format}")), &samples).unwrap();
        let raw = format!("?rate=8k&channels={channels}");
        let raw_at = |name: &str| folder.path().join(format!("{name}.{format}{raw}"));
        saved(&raw_at("a"), &place("b.sigmf-meta")).unwrap();
        saved(&place("b.sigmf-meta"), &place("c.npy")).unwrap();
        let npy = folder.path().join("c.npy?rate=8k");
        let is_wav = !format.is_complex() && format != grebe_frame::SampleFormat::I8;
        let last = if is_wav {
            saved(&npy, &place("d.wav")).unwrap();
            place("d.wav")
        } else {
            npy
        };
        saved(&last, &place("e.sigmf-meta")).unwrap();
        for times in [false, true] {
            let options = SaveOptions { times, overwrite: true, ..SaveOptions::default() };
            let mut file = SampleFile::open(place("e.sigmf-meta")).unwrap();
            file.save_as(&place("g.csv"), &options, &Cancel::default()).unwrap();
            let named = folder.path().join(format!("g.csv?format={format}"));
            let out = place(&format!("h{times}"));
            let imported = import_csv(&named, &out, &CsvOptions::default(), &Cancel::default()).unwrap();
            let mut imported = SampleFile::open(&imported.path).unwrap();
            prop_assert_eq!(imported.rate_hz(), (times && length > 1).then_some(8e3));
            let back = place(&format!("i{times}.{format}"));
            imported.save_as(&back, &SaveOptions::default(), &Cancel::default()).unwrap();
            let back = std::fs::read(back).unwrap();
            prop_assert!(is_same(&back, &samples, format), "by text");
        }
        saved(&place("e.sigmf-meta"), &place(&format!("f.{format}"))).unwrap();
        prop_assert_eq!(std::fs::read(place(&format!("f.{format}"))).unwrap(), samples);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        prop_assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{:?}", left);
    }
}

/// Whether samples are equal; a text keeps only the fact that a value is not a number.
fn is_same(one: &[u8], other: &[u8], format: grebe_frame::SampleFormat) -> bool {
    let same = |bytes: usize, is_nan: &dyn Fn(&[u8]) -> bool| {
        let pairs = one.chunks(bytes).zip(other.chunks(bytes));
        one.len() == other.len()
            && pairs.into_iter().all(|(one, other)| one == other || is_nan(one) && is_nan(other))
    };
    match format.component() {
        grebe_frame::Component::F32 => same(4, &|it| f32::from_le_bytes(it.try_into().unwrap()).is_nan()),
        grebe_frame::Component::F64 => same(8, &|it| f64::from_le_bytes(it.try_into().unwrap()).is_nan()),
        _ => one == other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The disk fills up repeatedly: each run continues where the last one stopped, and the result equals
    /// that of one run.
    #[test]
    fn an_interrupted_conversion_resumes_and_makes_the_same_file(
        kind in prop::sample::select(vec!["wav", "npy", "i16", "csv"]),
        channels in 1usize..=3,
        rooms in prop::collection::vec(1u64..4_000_000, 1..4),
        seed in any::<u8>(),
    ) {
        let folder = tempfile::tempdir_in(".").unwrap();
        let place = |name: &str| folder.path().join(name);
        let samples: Vec<u8> = (0..3_000_000 / channels * channels).map(|at| (at * 37 + at / 256) as u8 ^ seed).collect();
        std::fs::write(place("a.i16"), &samples).unwrap();
        let from = folder.path().join(format!("a.i16?rate=8k&channels={channels}"));
        saved(&from, &place(&format!("whole.{kind}"))).unwrap();
        let to = place(&format!("x.{kind}"));
        let mut resumed = 0;
        for room in rooms {
            let options = SaveOptions::default();
            let result = with_room(room, || SampleFile::open(&from).unwrap().save_as(&to, &options, &Cancel::default()));
            let before = options.resumed_samples.load(std::sync::atomic::Ordering::Relaxed);
            prop_assert!(before >= resumed, "what was good stays good");
            resumed = before;
            match result {
                Ok(_) => break,
                Err(error) => prop_assert!(error.is_full(), "{error}"),
            }
            prop_assert!(!to.exists());
        }
        let cancel = Cancel::default();
        cancel.cancel();
        if !to.exists() {
            let cancelled = SampleFile::open(&from).unwrap().save_as(&to, &SaveOptions::default(), &cancel);
            prop_assert!(matches!(cancelled, Err(Error::Cancelled)) && !to.exists());
            saved(&from, &to).unwrap();
        }
        let whole = std::fs::read(place(&format!("whole.{kind}"))).unwrap();
        prop_assert!(std::fs::read(&to).unwrap() == whole, "of {} bytes", whole.len());
        let is_left = place(&format!("x.{kind}.part")).exists();
        prop_assert!(!is_left);
    }
}

#[test]
fn a_part_of_something_else_is_refused_until_it_may_be_replaced() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("a.i16"), vec![1; 12 << 20]).unwrap();
    std::fs::write(place("b.i16"), [5, 0, 6, 0]).unwrap();
    let open = |name: &str| SampleFile::open(format!("{}?rate=8k", place(name).display())).unwrap();
    let (save, cancel) = (SaveOptions::default(), Cancel::default());
    // Cancelled, once something of it is written.
    std::thread::scope(|scope| {
        let done = save.done_samples.clone();
        let (cancel, file) = (cancel.clone(), &mut open("a.i16"));
        scope.spawn({
            let cancel = cancel.clone();
            move || {
                while done.load(std::sync::atomic::Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
                cancel.cancel();
            }
        });
        match file.save_as(&place("x.wav"), &save, &cancel) {
            Err(Error::Cancelled) => {}
            // It was faster than the other thread.
            other => {
                other.unwrap();
                std::fs::create_dir(place("x.wav.part")).unwrap();
                std::fs::remove_file(place("x.wav")).unwrap();
                let note =
                    json!({"made_from": {"files": [{"path": "a.i16"}]}, "good": {"bytes": 44, "samples": 1}});
                std::fs::write(place("x.wav.part/note.json"), note.to_string()).unwrap();
            }
        }
    });
    assert!(place("x.wav.part/note.json").exists() && !place("x.wav").exists());
    let refused = open("b.i16").save_as(&place("x.wav"), &SaveOptions::default(), &Cancel::default());
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("x.wav.part was started from ") && said.contains("a.i16, with other options"),
        "{said}"
    );
    let overwrite = SaveOptions { overwrite: true, ..SaveOptions::default() };
    open("b.i16").save_as(&place("x.wav"), &overwrite, &Cancel::default()).unwrap();
    assert_eq!(SampleFile::open(place("x.wav")).unwrap().len_samples(), 2);
    assert!(!place("x.wav.part").exists());
    // Folders that belong to no part stay.
    std::fs::create_dir(place("y.npy.part")).unwrap();
    std::fs::write(place("y.npy.part/mine"), [1]).unwrap();
    let said =
        open("b.i16").save_as(&place("y.npy"), &overwrite, &Cancel::default()).unwrap_err().to_string();
    assert!(said.contains("is not a part of a conversion") && place("y.npy.part/mine").exists(), "{said}");
}

#[test]
fn a_large_recording_has_its_summary_when_it_takes_its_place() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let place = |name: &str| folder.path().join(name);
    let samples: Vec<u8> = (0..64 << 20).map(|at: u32| (at.wrapping_mul(0x9e37_79b9) >> 20) as u8).collect();
    std::fs::write(place("a.i16"), &samples).unwrap();
    let from = folder.path().join("a.i16?rate=1M&channels=3");
    saved(&from, &place("x.sigmf-meta")).unwrap();
    let recording = crate::SummarizedFile::open(&place("x.sigmf-collection")).unwrap();
    let length = recording.file().len_samples();
    assert_eq!((recording.state(), recording.known_samples()), (crate::SummaryState::Whole, length));
    let bytes = std::fs::metadata(place("x.grebe-summary")).unwrap().len();
    assert!(bytes < samples.len() as u64 / 50, "at most 2 %: {bytes}");
}

#[test]
fn a_whole_recording_replaces_the_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("a.i16"), [1, 0, 2, 0, 3, 0, 4, 0]).unwrap();
    let open = |query: &str| SampleFile::open(format!("{}{query}", place("a.i16").display())).unwrap();
    let overwrite = SaveOptions { overwrite: true, ..SaveOptions::default() };
    open("?rate=1k&channels=2").save_as(&place("x"), &SaveOptions::default(), &Cancel::default()).unwrap();
    let again = open("?rate=1k").save_as(&place("x"), &SaveOptions::default(), &Cancel::default());
    assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
    let cancel = Cancel::default();
    cancel.cancel();
    let cancelled = open("?rate=1k").save_as(&place("x"), &overwrite, &cancel);
    assert!(matches!(cancelled, Err(Error::Cancelled)));
    assert_eq!(SampleFile::open(place("x.sigmf-collection")).unwrap().channels(), 2, "it is as it was");
    // As a converter that was killed leaves it.
    std::fs::create_dir(place(".x.partial")).unwrap();
    std::fs::write(place(".x.partial/x.sigmf-data"), [7]).unwrap();
    open("?rate=1k").save_as(&place("x"), &overwrite, &Cancel::default()).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.i16", "x.sigmf-data", "x.sigmf-meta"], "of two channels and one");
}
