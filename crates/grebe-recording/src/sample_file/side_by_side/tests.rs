use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use crate::{Alignment, SampleFile};

/// A recording of `ri16_le` of these captures: where each begins in the stream and when, and how long it is. A sample
/// is the low bits of its index in the stream and `mark`.
fn recorded(
    folder: &Path,
    name: &str,
    rate_hz: f64,
    captures: &[(u64, Option<&str>, u64)],
    mark: i16,
) -> PathBuf {
    let (mut said, mut data) = (Vec::new(), Vec::new());
    for &(index, datetime, length) in captures {
        let mut capture =
            json!({ "core:sample_start": data.len() / 2, "core:global_index": index, "core:frequency": 1e6 });
        if let Some(datetime) = datetime {
            capture["core:datetime"] = datetime.into();
        }
        said.push(capture);
        data.extend((index..index + length).flat_map(|index| ((index % 4096) as i16 | mark).to_le_bytes()));
    }
    let annotation = json!({ "core:sample_start": 2, "core:sample_count": 4, "core:label": name });
    let global = json!({ "core:datatype": "ri16_le", "core:sample_rate": rate_hz, "core:version": "1.2.0" });
    let meta = json!({ "global": global, "captures": said, "annotations": [annotation] });
    std::fs::write(folder.join(format!("{name}.sigmf-data")), data).unwrap();
    let path = folder.join(format!("{name}.sigmf-meta"));
    std::fs::write(&path, meta.to_string()).unwrap();
    path
}

fn together(paths: &[PathBuf], alignment: Alignment) -> Result<SampleFile, crate::Error> {
    let files = paths.iter().map(SampleFile::open).collect::<Result<_, _>>()?;
    SampleFile::side_by_side(files, alignment)
}

fn samples(file: &mut SampleFile) -> Vec<Vec<i16>> {
    let (length, channels) = (file.len_samples() as usize, file.channels());
    let block = file.block(0, length).unwrap();
    (0..channels).map(|channel| block.channel::<i16>(channel).unwrap().into_owned()).collect()
}

const A: i16 = 0;
const B: i16 = 1 << 12;

#[test]
fn samples_of_the_same_time_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let at = |text| Some(text);
    // B began 250 samples after A, by A's clock; each lacks some samples.
    let a = [
        (1000, at("2026-01-02T03:04:05.000000Z"), 500),
        // Within a stream the index counts; this time is of an arrival.
        (1600, at("2026-01-02T03:04:05.601300Z"), 400),
    ];
    let b = [(7, at("2026-01-02T03:04:05.250000Z"), 100), (127, None, 1000)];
    let paths = [recorded(folder.path(), "a", 1e3, &a, A), recorded(folder.path(), "b", 1e3, &b, B)];
    let mut file = together(&paths, Alignment::Time).unwrap();
    let expected = [(1250, 7, 100), (1370, 127, 130), (1600, 357, 400)];
    let of = |index: u64, length: u64, mark| (index..index + length).map(move |at| (at % 4096) as i16 | mark);
    let first: Vec<i16> = expected.iter().flat_map(|&(a, _, length)| of(a, length, A)).collect();
    let second: Vec<i16> = expected.iter().flat_map(|&(_, b, length)| of(b, length, B)).collect();
    assert_eq!(samples(&mut file), [first.clone(), second.clone()]);
    let segments: Vec<(u64, u64)> =
        file.segments().iter().map(|it| (it.first_sample_index, it.length_samples)).collect();
    assert_eq!(segments, expected.map(|(a, _, length)| (a, length)));
    let began = time_of(&file, 0);
    assert_eq!(began, Duration::new(1_767_323_045, 250_000_000), "as the first file says");
    let description = file.description(0).unwrap();
    let names: Vec<&str> = description.channels.iter().map(|channel| channel.name.as_str()).collect();
    assert_eq!((names, description.centre_frequency_hz), (vec!["a", "b"], Some(1e6)));
    // A's label lies before B's begin; B's begins with its third sample.
    let labels: Vec<(u64, u64)> =
        file.annotations().iter().map(|it| (it.position, it.length_samples)).collect();
    assert_eq!(labels, [(2, 4)]);
    let notes = file.notes().join("\n");
    assert!(
        notes.contains(
            "a.sigmf-data: samples that the others lack are ignored: 250 at its beginning, 20 within it"
        ),
        "{notes}"
    );
    assert!(
        notes.contains(
            "b.sigmf-data: samples that the others lack are ignored: 100 within it, 370 at its end"
        ),
        "{notes}"
    );

    let mut part = together(&paths, Alignment::Time).unwrap();
    part = part.stretch(Duration::from_millis(90), Some(Duration::from_millis(60))).unwrap();
    assert_eq!(samples(&mut part), [[&first[90..100], &first[100..130]].concat(), second[90..130].to_vec()]);
    let mut swapped = together(&paths, Alignment::Time).unwrap().select(&[1, 0]).unwrap();
    assert_eq!(samples(&mut swapped), [second, first]);
}

#[test]
fn a_host_clock_precedes_utc_and_its_best_statement_applies_to_all_samples() {
    let folder = tempfile::tempdir().unwrap();
    // By UTC both began at once.
    let began = Some("2026-01-02T03:04:05Z");
    let captures = [(0, began, 1_000), (1_000, began, 9_000)];
    let paths =
        [recorded(folder.path(), "a", 1e3, &captures, A), recorded(folder.path(), "b", 1e3, &captures, B)];
    let say = |path: &Path, axes: [Option<serde_json::Value>; 2]| {
        let mut meta: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        for (number, axis) in axes.into_iter().enumerate() {
            if let Some(axis) = axis {
                meta["captures"][number]["grebe:axis"] = axis;
            }
        }
        std::fs::write(path, meta.to_string()).unwrap();
    };
    let axis = |clock: &str, ns: i64, error_ns: u64, drift_ppb: i64| {
        Some(json!({ "clock": clock, "ns": ns, "error_ns": error_ns, "drift_ppb": drift_ppb }))
    };
    say(&paths[0], [axis("00000000000000aa", 5_000_000_000, 100, 0), None]);
    // At first it knew only its own host's clock, then that it began 20 ms later than a, and runs a tenth of a
    // percent faster.
    say(
        &paths[1],
        [axis("00000000000000bb", 0, 0, 0), axis("00000000000000aa", 6_019_000_000, 1_000, 1_000_000)],
    );
    let [a, b] = [0, 1].map(|which: usize| SampleFile::open(&paths[which]).unwrap());
    assert_eq!((b.axis_clocks(), b.axis_at(10).unwrap().clock), (vec![0xbb, 0xaa], 0xbb));
    assert_eq!(b.axis_by(0xaa, 0).unwrap().ns, 5_020_000_000, "a thousand samples before that was known");
    assert_eq!((a.axis_by(0xaa, 7).unwrap().ns, a.axis_by(0xbb, 7)), (5_007_000_000, None));
    let mut both = together(&paths, Alignment::Time).unwrap();
    let pair = samples(&mut both).into_iter().map(|channel| channel[0] & !B).collect::<Vec<_>>();
    assert_eq!(pair, [20, 0]);
    // One sample of b in a thousand is skipped: its samples align with those of a, to three quarters of a
    // sample.
    let pairs = samples(&mut both);
    assert!(pairs[0].len() > 9_960, "{} pairs", pairs[0].len());
    for (number, (&a, &b)) in pairs[0].iter().zip(&pairs[1]).enumerate() {
        assert_eq!(i64::from(a & !B), (20 + number as i64) % 4096);
        let off = f64::from(b & !B) - (number as f64 / 0.999) % 4096.0;
        assert!(off.abs() < 0.77 || off.abs() > 4095.0, "{off} samples off at {number}");
    }
    assert_eq!(both.gaps().count(), 0);
    let note = both.notes().iter().find(|note| note.contains("clock drifts")).unwrap();
    assert!(note.contains("of its samples 10 left out,"), "{note}");
}

fn time_of(file: &SampleFile, position: u64) -> Duration {
    file.time_at(position).unwrap().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap()
}

#[test]
fn recordings_that_do_not_fit_together_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let time = |text| [(0, Some(text), 100)];
    let record = |name: &str, rate_hz, captures: &[_]| recorded(folder.path(), name, rate_hz, captures, 0);
    let one = record("one", 1e3, &time("2026-01-02T03:04:05Z"));
    for (other, alignment, says) in [
        (
            record("fast", 2e3, &time("2026-01-02T03:04:05Z")),
            Alignment::Time,
            "its rate is 2000 Hz, and that of",
        ),
        (record("timeless", 1e3, &[(0, None, 100)]), Alignment::Time, "align by start, or by index"),
        (
            record("later", 1e3, &time("2026-01-02T03:04:06Z")),
            Alignment::Time,
            "has no samples at the times of",
        ),
        (record("behind", 1e3, &[(100, None, 100)]), Alignment::Index, "has no samples at the times of"),
    ] {
        let error = together(&[one.clone(), other], alignment).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    std::fs::write(folder.path().join("x.u8"), [1; 100]).unwrap();
    let bytes = folder.path().join("x.u8?rate=1k");
    let error = together(&[one.clone(), bytes], Alignment::Start).unwrap_err().to_string();
    assert!(error.contains("its samples are u8, but"), "{error}");
    let by_start = together(&[one.clone(), record("timeless", 1e3, &[(5, None, 70)])], Alignment::Start);
    assert_eq!(by_start.unwrap().len_samples(), 70);
    let mut many = Vec::new();
    for _ in 0..256 {
        many.push(one.clone());
    }
    assert!(
        together(&many, Alignment::Start).unwrap_err().to_string().contains("channels side by side: 256")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// With any gaps, the result has the common indices, and from each file the samples at them.
    #[test]
    fn exactly_what_all_have_is_there(
        files in prop::collection::vec(prop::collection::vec((0u64..40, 1u64..60), 1..8), 1..4),
        asked in 0usize..200,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut paths, mut had) = (Vec::new(), Vec::new());
        for (number, steps) in files.iter().enumerate() {
            let (mut captures, mut index, mut has) = (Vec::new(), 5, Vec::new());
            for &(gap, length) in steps {
                captures.push((index + gap, None, length));
                has.extend(index + gap..index + gap + length);
                index += gap + length;
            }
            paths.push(recorded(folder.path(), &format!("x{number}"), 1e3, &captures, (number as i16) << 12));
            had.push(has);
        }
        let all: Vec<u64> =
            had[0].iter().copied().filter(|index| had.iter().all(|has| has.contains(index))).collect();
        let Ok(mut file) = together(&paths, Alignment::Index) else {
            prop_assert!(all.is_empty());
            return Ok(());
        };
        let indexes: Vec<u64> = file.segments().iter()
            .flat_map(|it| it.first_sample_index..it.first_sample_index + it.length_samples).collect();
        prop_assert_eq!(&indexes, &all);
        let expected: Vec<Vec<i16>> = (0..files.len())
            .map(|number| all.iter().map(|&index| index as i16 | (number as i16) << 12).collect()).collect();
        prop_assert_eq!(&samples(&mut file), &expected);
        // Here and there, past the window.
        let (position, mut bytes) = (asked % all.len(), Vec::new());
        let length = (all.len() - position).min(17);
        file.read(position as u64, length, &mut bytes).unwrap();
        let wanted: Vec<u8> = expected.iter()
            .flat_map(|channel| &channel[position..position + length]).flat_map(|it| it.to_le_bytes()).collect();
        prop_assert_eq!(bytes, wanted);
    }
}
