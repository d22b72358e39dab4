//! Names of recordings: taken, replaced and refused.

use super::*;
use crate::repair;

#[test]
fn a_name_in_any_spelling_has_one_recorder_at_a_time() {
    let (folder, path) = scratch("same.sigmf-meta");
    let first = record(&path, &settings(1), &[(0, 10)]);
    let overwrite = SigmfSettings { overwrite: true, ..settings(1) };
    for name in ["same.sigmf-meta", "./same", "same.sigmf-data", "x/../same"] {
        fs::create_dir_all(folder.path().join("x")).unwrap();
        let error = SigmfWriter::create(&folder.path().join(name), &overwrite).unwrap_err();
        assert!(matches!(error, Error::Busy { .. }), "{name}: {error}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&path, folder.path().join("other.sigmf-meta")).unwrap();
        let error = SigmfWriter::create(&folder.path().join("other"), &overwrite).unwrap_err();
        assert!(matches!(error, Error::Busy { .. }), "{error}");
        fs::remove_file(folder.path().join("other.sigmf-meta")).unwrap();
    }
    first.finish().unwrap();
    record(&path, &overwrite, &[(0, 20)]).finish().unwrap();
    assert_eq!(names(&folder), ["same.sigmf-data", "same.sigmf-meta", "x"]);
    assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 20);
}

#[test]
fn a_recording_that_cannot_get_its_names_leaves_the_old_one() {
    let (folder, path) = scratch("x.sigmf-meta");
    record(&path, &settings(2), &[(0, 10)]).finish().unwrap();
    let was = names(&folder);
    let overwrite = SigmfSettings { overwrite: true, ..settings(2) };
    let next = record(&path, &overwrite, &[(0, 20)]);
    // The last of the names cannot be given.
    fs::remove_file(folder.path().join(".x_ch2.sigmf-data.tmp")).unwrap();
    let error = next.finish().unwrap_err().to_string();
    assert!(error.contains("x_ch2.sigmf-data"), "{error}");
    let old = SampleFile::open(&path).unwrap();
    assert_eq!((old.len_samples(), old.is_whole()), (10, true));
    // The samples of the new one stay, for who wants to save them.
    let mut is = names(&folder);
    assert_eq!(
        is.extract_if(.., |name| name.starts_with('.')).collect::<Vec<_>>(),
        [".x_ch1.sigmf-data.tmp"]
    );
    assert_eq!(is, was);
}

#[test]
fn a_repair_removes_the_rest_of_a_summary() {
    let (folder, path) = scratch("x.sigmf-meta");
    drop(record(&path, &settings(1), &[(0, 10)]));
    let part = folder.path().join(".x.grebe-summary.4711.0.part");
    fs::write(&part, "rest").unwrap();
    repair(&path).unwrap();
    assert!(!part.exists());
}

#[cfg(unix)]
#[test]
fn a_recording_follows_links_and_replaces_nothing_special() {
    let (folder, path) = scratch("link.sigmf-meta");
    let target = folder.path().join("target.sigmf-meta");
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let overwrite = SigmfSettings { overwrite: true, ..settings(1) };
    record(&path, &overwrite, &[(0, 10)]).finish().unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(SampleFile::open(&target).unwrap().len_samples(), 10);
    let fifo = folder.path().join("fifo.sigmf-data");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let error = SigmfWriter::create(&folder.path().join("fifo"), &overwrite).unwrap_err().to_string();
    assert!(error.contains("fifo.sigmf-data is not a regular file"), "{error}");
}

#[test]
fn overwrite_replaces_a_recording_without_leftovers() {
    let (folder, path) = scratch("x.sigmf-meta");
    record(&path, &settings(3), &[(0, 10)]).finish().unwrap();
    let was = names(&folder);
    fs::write(folder.path().join("x_ch7.sigmf-data"), "another's").unwrap();
    for channels in [1, 2, 3] {
        let error = SigmfWriter::create(&path, &settings(channels)).unwrap_err().to_string();
        assert!(error.ends_with("x.sigmf-collection exists already: choose another name, or remove it"));
    }
    fs::remove_file(folder.path().join("x_ch7.sigmf-data")).unwrap();
    assert_eq!(names(&folder), was);

    let overwrite = |channels| SigmfSettings { overwrite: true, ..settings(channels) };
    record(&path, &overwrite(1), &[(0, 7)]).finish().unwrap();
    assert_eq!(names(&folder), ["x.sigmf-data", "x.sigmf-meta"]);
    assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 7);
    record(&path, &overwrite(2), &[(0, 5)]).finish().unwrap();
    assert_eq!(names(&folder).len(), 5);
    assert_eq!(SampleFile::open(&path).unwrap().channels(), 2);
}

#[test]
fn a_recording_that_cannot_be_created_leaves_nothing_behind() {
    let (folder, _) = scratch("");
    let path = folder.path().join("none/x.sigmf-meta");
    let error = SigmfWriter::create(&path, &settings(2)).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot create ") && error.contains("none/x.sigmf-meta: No such file"),
        "{error}"
    );

    // The second channel's name is taken by a folder, the metadata's temporary name by another.
    let path = folder.path().join("x");
    for taken in ["x_ch2.sigmf-data", ".x_ch1.sigmf-meta.tmp"] {
        fs::create_dir(folder.path().join(taken)).unwrap();
        for overwrite in [false, true] {
            SigmfWriter::create(&path, &SigmfSettings { overwrite, ..settings(2) }).unwrap_err();
            assert_eq!(names(&folder), [taken]);
        }
        fs::remove_dir(folder.path().join(taken)).unwrap();
    }

    let message = |settings, path: &Path| SigmfWriter::create(path, &settings).unwrap_err().to_string();
    assert_eq!(message(settings(256), &path), "number of channels is 256: give 1 to 255");
    let rate = SigmfSettings { sample_rate_hz: -1.0, ..settings(1) };
    assert_eq!(message(rate, &path), "sample rate is -1: give 0 (unknown) to 10^12 Hz");
    let archive = message(settings(1), "x.sigmf".as_ref());
    assert_eq!(
        archive,
        "x.sigmf: unknown kind of file; known are NAME.sigmf-meta (a .sigmf archive cannot be written)"
    );
    for name in ["x.cf32", "x.bin?format=u8"] {
        assert!(message(settings(1), name.as_ref()).contains("a separate raw file: name it NAME.sigmf-meta"));
    }
    assert_eq!(names(&folder), [] as [&str; 0]);
}

#[test]
#[cfg(unix)]
fn a_recording_to_a_device_is_refused() {
    let error = SigmfWriter::create(std::path::Path::new("/dev/null"), &settings(1)).unwrap_err().to_string();
    assert!(error.starts_with("/dev/null is not a regular file"), "{error}");
}
