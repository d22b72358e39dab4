//! Annotations in recordings, collections, and files beside them.

use serde_json::{Map, json};

use super::*;
use crate::sample_file::SampleFile;
use crate::sigmf::{RecordingSet, SigmfSettings, SigmfWriter};

fn annotate(path: &Path, annotations: &[Annotation]) -> Result<usize, Error> {
    let adds: Vec<AnnotationEdit<Annotation>> =
        annotations.iter().cloned().map(AnnotationEdit::Add).collect();
    edit(path, &adds, true).map(|edited| edited.added)
}

fn annotation(position: u64, length_samples: u64, label: &str) -> Annotation {
    let fields = Map::from_iter([("core:label".to_owned(), Value::from(label))]);
    Annotation { position, length_samples, fields }
}

#[test]
fn annotations_come_between_those_that_are_there_once_and_nothing_else_changes() {
    let folder = tempfile::tempdir().unwrap();
    for channels in [1, 2] {
        let base = folder.path().join(format!("x{channels}"));
        let settings = SigmfSettings { channels, sample_rate_hz: 1e3, ..SigmfSettings::default() };
        let mut writer = SigmfWriter::create(&base, &settings).unwrap();
        writer.write(0, &vec![&[1i16, 2, 3, 4][..]; channels]).unwrap();
        writer.annotate(2, 1, "there").unwrap();
        let files = writer.finish().unwrap().files;
        let found = [annotation(3, 0, "late"), annotation(0, 2, "early"), annotation(2, 1, "there")];
        assert_eq!(annotate(&files[0], &found).unwrap(), 2);
        assert_eq!(annotate(&files[0], &found).unwrap(), 0, "they are there");
        let file = SampleFile::open(&files[0]).unwrap();
        assert_eq!(
            file.annotations(),
            [annotation(0, 2, "early"), annotation(2, 1, "there"), annotation(3, 0, "late")]
        );
        for meta in files.iter().filter(|path| path.extension().is_some_and(|it| it == "sigmf-meta")) {
            let meta: Value = serde_json::from_slice(&std::fs::read(meta).unwrap()).unwrap();
            assert_eq!(meta["global"]["core:sample_rate"], json!(1000));
            assert_eq!(meta["annotations"].as_array().unwrap().len(), 3);
        }
    }
    // A collection names the sums of its files.
    let collection = std::fs::read(folder.path().join("x2.sigmf-collection")).unwrap();
    let collection: Value = serde_json::from_slice(&collection).unwrap();
    let first = &collection["collection"]["core:streams"][0];
    let meta = std::fs::File::open(folder.path().join("x2_ch1.sigmf-meta")).unwrap();
    let bytes = meta.metadata().unwrap().len();
    let sum = super::super::checksum::Sum::from(meta, 0).finish(bytes).unwrap();
    assert_eq!(first["hash"], json!(sum));
}

/// Whether each sum in a collection is that of the metadata that are there.
fn check_sums(collection: &Path) {
    let said: Value = serde_json::from_slice(&std::fs::read(collection).unwrap()).unwrap();
    for stream in said["collection"]["core:streams"].as_array().unwrap() {
        let base = Base::of(collection).beside(stream["name"].as_str().unwrap());
        let sum = collection::sum_of(&base).unwrap();
        assert_eq!(stream["hash"], json!(sum), "{} in {}", base.name(), collection.display());
    }
}

#[test]
fn labels_of_one_recording_leave_no_old_sum_in_the_collections_that_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let set = RecordingSet::create(&folder.path().join("both"), false).unwrap();
    for (number, channels) in [(1, 1), (2, 2)] {
        let settings = SigmfSettings { channels, sample_rate_hz: 1e3, ..SigmfSettings::default() };
        let mut writer = SigmfWriter::create(&set.recording(number), &settings).unwrap();
        writer.write(0, &vec![&[1i16; 5_000][..]; channels]).unwrap();
        writer.finish().unwrap();
    }
    let both = set.tie(&[set.recording(1), set.recording(2)]).unwrap();
    drop(set);
    let second = folder.path().join("both_2.sigmf-collection");
    for (number, name) in
        ["both_1.sigmf-meta", "both_2.sigmf-meta", "both_2_ch2.sigmf-meta"].iter().enumerate()
    {
        let label = annotation(number as u64, 1, name);
        assert_eq!(annotate(&folder.path().join(name), &[label]).unwrap(), 1);
        check_sums(&both);
        check_sums(&second);
    }
    let said: Value = serde_json::from_slice(&std::fs::read(&both).unwrap()).unwrap();
    assert_eq!(said["collection"]["grebe:alignment"], "time", "all else stays");
    assert_eq!(SampleFile::open(&both).unwrap().channels(), 3);
    // A recording without sums gets none, and stays valid.
    let unsummed =
        json!({ "collection": { "core:version": "1.2.0", "core:streams": [{ "name": "both_1" }] } });
    std::fs::write(&both, unsummed.to_string()).unwrap();
    annotate(&folder.path().join("both_1.sigmf-meta"), &[annotation(9, 1, "later")]).unwrap();
    let said: Value = serde_json::from_slice(&std::fs::read(&both).unwrap()).unwrap();
    assert_eq!(said, unsummed);
}

/// Records a stream that began `later_ms` later, at 1,000 samples per second.
fn recorded(folder: &Path, name: &str, later_ms: u64) {
    let global = json!({ "core:datatype": "ri8", "core:sample_rate": 1_000, "core:version": "1.2.0" });
    let began = format!("2026-01-02T03:04:05.{later_ms:03}Z");
    let captures = json!([{ "core:sample_start": 0, "core:datetime": began }]);
    let meta = json!({ "global": global, "captures": captures, "annotations": [] });
    std::fs::write(folder.join(format!("{name}.sigmf-data")), [1; 500]).unwrap();
    std::fs::write(folder.join(format!("{name}.sigmf-meta")), meta.to_string()).unwrap();
}

#[test]
fn labels_of_several_streams_stand_in_each_where_it_was_read() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path(), "both_1", 100);
    recorded(folder.path(), "both_2", 140);
    let set = RecordingSet::create(&folder.path().join("both"), false).unwrap();
    let both = set.tie(&[set.recording(1), set.recording(2)]).unwrap();
    drop(set);
    let found = [annotation(10, 20, "loud"), annotation(50, 0, "click")];
    assert_eq!(annotate(&both, &found).unwrap(), 2);
    assert_eq!(annotate(&both, &found).unwrap(), 0, "they are there");
    let there = |name: &str| SampleFile::open(folder.path().join(name)).unwrap().annotations().to_vec();
    assert_eq!(there("both_1.sigmf-meta"), [annotation(50, 20, "loud"), annotation(90, 0, "click")]);
    assert_eq!(there("both_2.sigmf-meta"), found);
    assert_eq!(there("both.sigmf-collection"), found, "and once where they are side by side");
    check_sums(&both);
}

fn there(path: &Path) -> Vec<Annotation> {
    SampleFile::open(path).unwrap().annotations().to_vec()
}

#[test]
fn annotations_of_what_is_being_recorded_stand_beside_it_and_stay_when_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let mut writer = SigmfWriter::create(&path, &SigmfSettings::default()).unwrap();
    writer.write(0, &[&[1i16; 8]]).unwrap();
    writer.flush().unwrap();
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let before = std::fs::read(&path).unwrap();
    let early = annotation(0, 1, "early");
    let edited = edit(&path, &[AnnotationEdit::Add(early.clone())], true).unwrap();
    assert_eq!((edited.added, &edited.places[..]), (1, &[folder.path().join("x.sigmf-annotations")][..]));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    writer.finish().unwrap();
    let late = annotation(3, 2, "late");
    assert_eq!(place(&path, true).unwrap(), path);
    let edited = edit(&path, &[AnnotationEdit::Add(late.clone())], true).unwrap();
    assert_eq!(edited.places, [path.as_path()]);
    assert_eq!(there(&path), [early.clone(), late.clone()]);
    // Each changes in place.
    let renamed = annotation(0, 1, "renamed");
    let edits =
        [AnnotationEdit::Replace { before: early, after: renamed.clone() }, AnnotationEdit::Remove(late)];
    let edited = edit(&path, &edits, true).unwrap();
    assert_eq!((edited.changed, edited.removed, edited.places.len()), (1, 1, 2));
    assert_eq!(there(&path), [renamed]);
    std::fs::write(&path, "{\"global\": {}, \"annotations\": 5}").unwrap();
    let error = annotate(&path, &[annotation(0, 1, "a")]).unwrap_err().to_string();
    assert!(error.contains("annotations is not a list"), "{error}");
}

#[test]
fn files_without_metadata_have_them_beside_and_what_is_not_there_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("x.i16");
    std::fs::write(&raw, [0; 64]).unwrap();
    let named = folder.path().join("x.i16?rate=1k");
    let marked = annotation(3, 5, "marked");
    let edits = [AnnotationEdit::Add(marked.clone())];
    assert_eq!(edit(&named, &edits, false).unwrap().added, 1);
    assert_eq!(edit(&raw, &edits, false).unwrap().added, 0, "it is there");
    assert_eq!((there(&raw), there(&named)), (vec![marked.clone()], vec![marked.clone()]));
    let beside = folder.path().join("x.i16.sigmf-annotations");
    let before = std::fs::read(&beside).unwrap();
    let meta: Value = serde_json::from_slice(&before).unwrap();
    assert_eq!(meta["global"]["core:dataset"], "x.i16");
    let edits =
        [AnnotationEdit::Add(annotation(0, 1, "new")), AnnotationEdit::Remove(annotation(4, 5, "marked"))];
    let error = edit(&raw, &edits, false).unwrap_err().to_string();
    assert!(error.contains("no longer exists"), "{error}");
    assert_eq!(std::fs::read(&beside).unwrap(), before, "all or nothing");
    // Another file of this name has none of them.
    std::fs::write(&raw, [0; 32]).unwrap();
    let file = SampleFile::open(&raw).unwrap();
    assert!(file.annotations().is_empty() && file.notes()[1].contains("another file"), "{:?}", file.notes());
}

#[test]
fn read_only_metadata_stay_and_an_archive_has_them_beside() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path(), "x", 0);
    let meta = folder.path().join("x.sigmf-meta");
    let mut permissions = std::fs::metadata(&meta).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&meta, permissions).unwrap();
    let marked = annotation(3, 5, "marked");
    let edited = edit(&meta, &[AnnotationEdit::Add(marked.clone())], true).unwrap();
    assert_eq!(edited.places, [folder.path().join("x.sigmf-annotations")]);
    assert_eq!(there(&folder.path().join("x.sigmf-data")), std::slice::from_ref(&marked));
    let mut archive = tar::Builder::new(std::fs::File::create(folder.path().join("a.sigmf")).unwrap());
    for name in ["x.sigmf-meta", "x.sigmf-data"] {
        archive.append_path_with_name(folder.path().join(name), format!("x/{name}")).unwrap();
    }
    archive.finish().unwrap();
    for named in ["a.sigmf", "a.sigmf/x/x.sigmf-meta"] {
        let path = folder.path().join(named);
        let label = annotation(1, 1, named);
        edit(&path, &[AnnotationEdit::Add(label.clone())], true).unwrap();
        assert_eq!(there(&path), [label], "{named}");
    }
}

#[test]
fn a_change_that_is_killed_leaves_the_old_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path(), "x", 0);
    let meta = folder.path().join("x.sigmf-meta");
    let before = std::fs::read(&meta).unwrap();
    for steps in 0.. {
        let mut staged = Staged::default();
        let mut recording = Recording::open(&meta).unwrap().unwrap();
        let (mut is_done, mut edited) = ([false], AnnotationsEdited::default());
        let edits = [AnnotationEdit::Add(annotation(steps as u64, 1, "a"))];
        recording.apply(&edits, &mut is_done, &mut edited).unwrap();
        recording.stage(&mut edited, &mut staged).unwrap();
        let is_before_last = staged.kill_behind(steps);
        if !is_before_last {
            assert_eq!(there(&meta), [annotation(steps as u64, 1, "a")]);
            break;
        }
        assert_eq!(std::fs::read(&meta).unwrap(), before);
    }
    // Its leftovers do not disturb others.
    assert_eq!(annotate(&meta, &[annotation(0, 1, "b")]).unwrap(), 1);
}
