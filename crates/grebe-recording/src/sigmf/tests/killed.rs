//! State after a process is killed between two of the files that take their places together.

use super::super::StagingFolder;
use super::super::archive::Files;
use super::super::captured::Captured;
use super::super::collection::members;
use super::super::create::{metadata, prepare};
use super::super::layout::Base;
use super::super::metadata::{Metadata, State};
use super::*;
use grebe_frame::AnnotationEdit;

use crate::{Cancel, repair, verify};

/// Opens every file as a reader would; returns the errors of those refused.
fn contradictions(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().unwrap_or_default();
        if path.file_name().unwrap().to_string_lossy().starts_with('.') {
            continue;
        }
        if extension == "sigmf-meta" || extension == "sigmf-collection" {
            match verify(&path, &Cancel::default(), &mut |_| {}) {
                Err(error) => found.push(error.to_string()),
                Ok(files) if files.iter().any(|file| !file.changed.is_empty()) => {
                    found.push(format!("{}: changed", path.display()));
                }
                Ok(_) => {}
            }
        }
        if extension == "sigmf-collection" {
            for stream in read_json(&path)["collection"]["core:streams"].as_array().unwrap() {
                let meta = folder.join(format!("{}.sigmf-meta", stream["name"].as_str().unwrap()));
                let sum = digest(&SHA512, &fs::read(&meta).unwrap());
                if stream["hash"] != hex(sum.as_ref()) {
                    found.push(format!("{}: its sum is another", meta.display()));
                }
            }
        }
    }
    found
}

fn metas(folder: &Path) -> Vec<Value> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_meta = |path: &PathBuf| path.extension().is_some_and(|it| it == "sigmf-meta");
    paths.filter(is_meta).map(|path| read_json(&path)).collect()
}

fn is_open(meta: &Value) -> bool {
    meta["global"].get("grebe:known_samples").is_some()
}

/// Metadata of a recording of three channels and a hundred samples.
fn three(base: &Base, known_samples: u64) -> Metadata {
    let mut metadata = metadata(&settings(3), base);
    let (recorded_at, description, stripe_start) = (None, None, None);
    metadata.enter(Captured { position: 0, first_sample_index: 0, recorded_at, description, stripe_start });
    metadata.known_samples = known_samples;
    metadata
}

#[test]
fn metadata_that_are_being_replaced_never_contradict_their_collection() {
    let mut kills = 0;
    for (is_closed, known_samples) in [(false, 90), (true, 100)] {
        for steps in 0.. {
            let (folder, path) = scratch("x.sigmf-meta");
            record(&path, &settings(3), &[(0, 100)]).finish().unwrap();
            // Only closed metadata have sums of the data.
            let state = State { is_closed, is_durable: false, sums: &[] };
            let is_before_last =
                three(&Base::of(&path), known_samples).stage(&state).unwrap().kill_behind(steps);
            assert_eq!(contradictions(folder.path()), [""; 0], "killed behind {steps}");
            // A closed channel determines the end of all.
            let all_open = metas(folder.path()).iter().all(is_open);
            let length = if all_open { 90 } else { 100 };
            let check = |file: &mut SampleFile| {
                assert_eq!((file.channels(), file.len_samples()), (3, length), "killed behind {steps}");
                for number in 0..3 {
                    let expected: Vec<i16> = (0..length).map(|index| sample(number, index)).collect();
                    assert_eq!(channel(file, number), expected);
                }
            };
            let mut file = SampleFile::open(&path).unwrap();
            check(&mut file);
            let is_missing = !path.with_extension("sigmf-collection").exists();
            let notes = file.notes().iter().filter(|note| note.contains("x.sigmf-collection is missing, as"));
            assert_eq!(notes.count(), usize::from(is_missing), "{:?}", file.notes());
            kills += usize::from(is_missing);
            // A channel is named, and all are closed.
            let repaired = repair(&folder.path().join("x_ch2.sigmf-meta")).unwrap();
            assert_eq!(repaired[0].is_changed, is_missing || !file.is_whole(), "killed behind {steps}");
            assert_eq!(contradictions(folder.path()), [""; 0], "killed behind {steps}");
            assert!(
                !metas(folder.path()).iter().any(is_open) && path.with_extension("sigmf-collection").exists()
            );
            let mut file = SampleFile::open(&path).unwrap();
            check(&mut file);
            assert!(file.is_whole() && file.notes().is_empty(), "{:?}", file.notes());
            assert!(!repair(&path).unwrap()[0].is_changed);
            if (is_closed, steps) == (false, 3) {
                // One recording was closed by its recorder, and two were not.
                (1..=3).for_each(|number| validate(&folder.path().join(format!("x_ch{number}.sigmf-meta"))));
            }
            if !is_before_last {
                break;
            }
        }
    }
    assert_eq!(kills, 2 * 4, "behind the removal and each of three");
}

#[test]
fn a_first_channel_without_the_others_is_never_seen() {
    for steps in 0.. {
        let (folder, path) = scratch("x.sigmf-meta");
        let files = record(&path, &settings(3), &[(0, 100)]).finish().unwrap().files;
        files.iter().filter(|path| path.extension().is_none_or(|it| it != "sigmf-data")).for_each(|path| {
            fs::remove_file(path).unwrap();
        });
        let state = State { is_closed: false, is_durable: false, sums: &[] };
        let is_before_last = three(&Base::of(&path), 100).stage(&state).unwrap().kill_behind(steps);
        assert_eq!(contradictions(folder.path()), [""; 0], "killed behind {steps}");
        let channels = SampleFile::open(&path).map_or(0, |file| file.channels());
        assert!(channels == 0 || channels == 3, "killed behind {steps}: {channels}");
        if !is_before_last {
            break;
        }
    }
}

#[test]
fn an_overwritten_recording_never_has_samples_of_the_other() {
    let overwrite = SigmfSettings { overwrite: true, ..settings(3) };
    // By a recorder, of which the data get their names before there are metadata.
    for steps in 0.. {
        let (folder, path) = scratch("x.sigmf-meta");
        record(&path, &settings(3), &[(0, 100)]).finish().unwrap();
        let is_before_last = prepare(&Base::of(&path), &overwrite, false).unwrap().kill_behind(steps);
        assert_eq!(contradictions(folder.path()), [""; 0], "killed behind {steps}");
        if !is_before_last {
            break;
        }
    }
    // A complete replacement.
    for steps in 0.. {
        let (folder, path) = scratch("x.sigmf-meta");
        record(&path, &settings(3), &[(0, 100)]).finish().unwrap();
        let apart = StagingFolder::create(&path, &overwrite).unwrap();
        let mut writer = apart.writer(&settings(3)).unwrap();
        write(&mut writer, 3, 0, 50);
        let files = writer.finish().unwrap().files;
        let places: Vec<PathBuf> =
            files.iter().map(|it| path.with_file_name(it.file_name().unwrap())).collect();
        let is_before_last = apart.staged(&files, &places).unwrap().kill_behind(steps);
        assert_eq!(contradictions(folder.path()), [""; 0], "killed behind {steps}");
        if !is_before_last {
            assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 50);
            break;
        }
    }
}

#[test]
fn recordings_without_their_collection_are_one_where_they_say_so() {
    let (folder, path) = scratch("x.sigmf-meta");
    let collection = path.with_extension("sigmf-collection");
    record(&path, &settings(2), &[(0, 10)]).finish().unwrap();
    fs::remove_file(&collection).unwrap();
    // Somebody else's: its metadata name no collection.
    record(&folder.path().join("x_ch3"), &settings(1), &[(0, 10)]).finish().unwrap();
    for named in [&path, &collection] {
        assert_eq!(SampleFile::open(named).unwrap().channels(), 2);
        assert_eq!(verify(named, &Cancel::default(), &mut |_| {}).unwrap().len(), 2);
    }
    // While they are being copied, the collection may be on its way.
    let error = members(&Files::Arriving(Vec::new()), &collection).err().unwrap().to_string();
    assert!(error.contains("x.sigmf-collection: ") && error.ends_with("(os error 2)"), "{error}");
    // Labels bring it back.
    let label = crate::Annotation { position: 3, length_samples: 1, fields: Default::default() };
    let label = [AnnotationEdit::Add(label)];
    assert_eq!(SampleFile::edit_annotations(&path, &label).unwrap().added, 1);
    assert_eq!(contradictions(folder.path()), [""; 0]);
    assert!(collection.exists() && SampleFile::open(&path).unwrap().notes().is_empty());
    // Another recording takes their place whole.
    fs::remove_file(&collection).unwrap();
    let error = SigmfWriter::create(&path, &settings(1)).unwrap_err().to_string();
    assert!(error.contains("x_ch1.sigmf-meta exists already"), "{error}");
    let overwrite = SigmfSettings { overwrite: true, ..settings(1) };
    record(&path, &overwrite, &[(0, 7)]).finish().unwrap();
    assert_eq!(names(&folder), ["x.sigmf-data", "x.sigmf-meta", "x_ch3.sigmf-data", "x_ch3.sigmf-meta"]);
}
