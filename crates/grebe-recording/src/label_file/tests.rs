//! An import restores an export exactly.

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::fields::{HIGH, LABEL, LOW};
use super::*;
use crate::{SigmfSettings, SigmfWriter};

/// 50 samples with a gap of 1,000 in their middle.
fn recording(rate_hz: f64) -> (tempfile::TempDir, SampleFile) {
    let folder = tempfile::tempdir().unwrap();
    let settings = SigmfSettings { channels: 1, sample_rate_hz: rate_hz, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&folder.path().join("x.sigmf-meta"), &settings).unwrap();
    writer.write(7, &[&[1i16; 25]]).unwrap();
    writer.write(1_032, &[&[1i16; 25]]).unwrap();
    let files = writer.finish().unwrap().files;
    (folder, SampleFile::open(&files[0]).unwrap())
}

fn back(kind: LabelFile, file: &SampleFile, annotations: &[Annotation]) -> Vec<Annotation> {
    let times = Times::of(file);
    let text = match kind {
        LabelFile::Csv => csv::write(annotations, &times),
        LabelFile::Audacity => audacity::write(annotations, &times).0,
        LabelFile::SigMf => unreachable!(),
    };
    let read = kind.read(&PathBuf::from("x"), &text, file);
    let read = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(read.outside, 0, "{text}");
    read.annotations
}

fn place() -> impl Strategy<Value = (u64, u64)> {
    (0..50u64).prop_flat_map(|position| (Just(position), 0..=50 - position))
}

fn field() -> impl Strategy<Value = (String, Value)> {
    let number = prop_oneof![any::<u32>().prop_map(Value::from), (-1e12..1e12f64).prop_map(Value::from)];
    prop_oneof![
        ("core:(label|comment|generator|uuid)|presentation:color", "[ a,\"\n\r\t;\u{e9}\u{4e2d}']{0,9}")
            .prop_map(|(name, text)| (name, text.into())),
        (prop::sample::select(vec![LOW, HIGH]), number).prop_map(|(name, it)| (name.to_owned(), it)),
        (
            "[a-z]{1,4}:[a-z]{1,4}",
            prop_oneof![Just(json!({"a": [1, "\"\n,"]})), Just(json!(1.5)), Just(json!(null))]
        ),
        (prop::sample::select(vec![LABEL, LOW]), Just(json!([3])))
            .prop_map(|(name, it)| (name.to_owned(), it)),
    ]
}

proptest! {
    #[test]
    fn csv_keeps_every_field(all in prop::collection::vec((place(), prop::collection::vec(field(), 0..5)), 0..8)) {
        let (_folder, file) = recording(48e3);
        let of = |((position, length_samples), fields): ((u64, u64), Vec<(String, Value)>)| Annotation {
            position, length_samples, fields: fields.into_iter().collect(),
        };
        let all: Vec<Annotation> = all.into_iter().map(of).collect();
        prop_assert_eq!(back(LabelFile::Csv, &file, &all), all);
    }

    #[test]
    fn audacity_keeps_places_labels_and_frequencies(
        all in prop::collection::vec((place(), "[^\t\n\r\\x00-\\x1f\u{85}\u{2028}\u{2029}]{0,9}", prop::option::of((0..10_000u32, -2e6..6e9f64))), 0..8),
        rate in prop::sample::select(vec![0.5, 1e3, 44_100.0, 2.4e6, 1.0e9 / 3.0, 10e9]),
    ) {
        let (_folder, file) = recording(rate);
        let of = |((position, length_samples), label, band): ((u64, u64), String, Option<(u32, f64)>)| {
            let label = (!label.is_empty()).then(|| (LABEL.to_owned(), Value::from(label)));
            let band = band.into_iter().flat_map(|(low, high)| [(LOW, json!(low)), (HIGH, json!(high))]);
            let band = band.map(|(name, it)| (name.to_owned(), it));
            Annotation { position, length_samples, fields: label.into_iter().chain(band).collect() }
        };
        let all: Vec<Annotation> = all.into_iter().map(of).collect();
        prop_assert_eq!(back(LabelFile::Audacity, &file, &all), all);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9.,\t\n\\\\\"a-f_-]{0,80}", head in any::<bool>()) {
        let (_folder, file) = recording(1e3);
        let text = if head { format!("start_s,end_s,label,other\n{text}") } else { text };
        for kind in [LabelFile::Csv, LabelFile::Audacity, LabelFile::SigMf] {
            if let Ok(read) = kind.read(Path::new("x.txt"), &text, &file) {
                prop_assert!(read.annotations.iter().all(|it| it.position + it.length_samples <= 50));
            }
        }
    }
}

#[test]
fn labels_as_audacity_and_others_write_them_are_read() {
    let (_folder, file) = recording(1e3);
    let text = "\u{feff}0.003000\t0.003000\tpoint\r\n\\\t6928.456055\t6928.456055\r\n\r\n0,001\t1.030\tacross the gap\n\\\t-1.000000\t6334.588867\n9\t9.5\tlater\n-1\t0\tbefore\n0.004\t0.005\n";
    let read = LabelFile::Audacity.read(Path::new("x.txt"), text, &file).unwrap();
    assert_eq!(read.outside, 2);
    let said = |it: &Annotation| {
        (it.position, it.length_samples, it.text(LABEL).to_owned(), it.number(LOW), it.number(HIGH))
    };
    let said: Vec<_> = read.annotations.iter().map(said).collect();
    let edge = Some(6928.456055);
    assert_eq!(said[0], (3, 0, "point".into(), edge, edge));
    assert_eq!(said[1], (1, 29, "across the gap".into(), None, Some(6334.588867)));
    assert_eq!(said[2], (4, 1, String::new(), None, None));
    // As grebe find prints events.
    let events =
        "event,channel,seconds,position,sample_index,samples,duration_s,time\nlevel,1,0.003,3,10,4,0.004,\n";
    let read = LabelFile::Csv.read(Path::new("x.csv"), events, &file).unwrap().annotations;
    let fields = Map::from_iter([(LABEL.to_owned(), "level".into())]);
    assert_eq!(read, [Annotation { position: 3, length_samples: 4, fields }]);
    // By hand, in seconds.
    let times = "start_s,duration_s,Label\n0.001,0.002,\"a, \"\"b\"\"\"\n";
    let read = LabelFile::Csv.read(Path::new("x.csv"), times, &file).unwrap().annotations;
    assert_eq!((read[0].position, read[0].length_samples, read[0].text(LABEL)), (1, 2, "a, \"b\""));
    for (kind, text, why) in [
        (LabelFile::Audacity, "a\tb\tc\n", "line 1: not a label"),
        (LabelFile::Audacity, "\n2\t1\tc\n", "line 2: the end is before the begin"),
        (LabelFile::Audacity, "\\\t1\t2\n", "line 1: frequencies without a label"),
        (LabelFile::Csv, "", "is empty"),
        (LabelFile::Csv, "label\na\n", "no column sample_start"),
        (LabelFile::Csv, "sample_start\n1\n\nx\n", "line 4: sample_start \"x\""),
        (LabelFile::SigMf, "{}x", "is not valid metadata"),
    ] {
        let error = kind.read(Path::new("x"), text, &file).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
