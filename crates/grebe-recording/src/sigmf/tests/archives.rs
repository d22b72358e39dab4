//! Recordings in `.sigmf` archives.

use super::*;

/// Packs files, each from a path to a place in the archive.
fn pack(archive: &Path, files: &[(PathBuf, &str)]) {
    let mut tar = tar::Builder::new(fs::File::create(archive).unwrap());
    tar.append_dir("empty", archive.parent().unwrap()).unwrap();
    for (file, place) in files {
        tar.append_path_with_name(file, place).unwrap();
    }
    tar.finish().unwrap();
}

fn refused(path: &Path, says: &[&str]) {
    let error = SampleFile::open(path).unwrap_err().to_string().replace(std::path::MAIN_SEPARATOR, "/");
    for part in says {
        assert!(error.contains(part), "no '{part}' in: {error}");
    }
}

/// Two recordings of one channel, `a` with a gap, and an archive of both.
fn two() -> (TempDir, PathBuf) {
    let (folder, path) = scratch("both.sigmf");
    for (name, blocks) in [("a", &[(100, 700), (5_000, 300)][..]), ("b", &[(0, 50)])] {
        record(&folder.path().join(name), &settings(1), blocks).finish().unwrap();
    }
    let file = |name: &str| folder.path().join(name);
    pack(
        &path,
        &[
            (file("b.sigmf-data"), "b/b.sigmf-data"),
            (file("b.sigmf-meta"), "b/b.sigmf-meta"),
            (file("a.sigmf-meta"), "a/a.sigmf-meta"),
            (file("a.sigmf-data"), "a/a.sigmf-data"),
        ],
    );
    (folder, path)
}

#[test]
fn a_recording_in_an_archive_is_read_as_it_is_outside() {
    let (folder, both) = two();
    let only = folder.path().join("only.SIGMF");
    let long = format!("./{}/a", "folder/".repeat(30));
    pack(
        &only,
        &[
            (folder.path().join("a.sigmf-meta"), &format!("{long}.sigmf-meta")),
            (folder.path().join("a.sigmf-data"), &format!("{long}.sigmf-data")),
        ],
    );
    let expected: Vec<i16> = (100..800).chain(5_000..5_300).map(|index| sample(0, index)).collect();
    for path in [only, both.join("a/a.sigmf-meta"), both.join("a/a.sigmf-data")] {
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!(stretches(&file), [(0, 700, 100), (700, 300, 5_000)], "{}", path.display());
        assert_eq!(channel(&mut file, 0), expected, "{}", path.display());
        assert!(file.notes().is_empty());
    }
    let mut b = SampleFile::open(both.join("b/b.sigmf-meta")).unwrap();
    assert_eq!(channel(&mut b, 0), (0..50).map(|index| sample(0, index)).collect::<Vec<_>>());
}

#[test]
fn a_collection_is_found_beside_its_recordings_and_above_their_folders() {
    let (folder, path) = scratch("take");
    let files = record(&path, &settings(2), &[(0, 400)]).finish().unwrap().files;
    let named = |part: &str| {
        fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.file_name().unwrap().to_string_lossy() == part)
    };
    assert!(files[0].extension().is_some_and(|extension| extension == "sigmf-collection"));
    for (at, inside) in [("flat.sigmf", ["", ""]), ("deep.sigmf", ["take_ch1/", "take_ch2/"])] {
        let archive = folder.path().join(at);
        let places: Vec<(PathBuf, String)> = [("take.sigmf-collection", "")]
            .into_iter()
            .chain(["take_ch1.sigmf-meta", "take_ch1.sigmf-data"].map(|name| (name, inside[0])))
            .chain(["take_ch2.sigmf-meta", "take_ch2.sigmf-data"].map(|name| (name, inside[1])))
            .map(|(name, folder)| (named(name).unwrap(), format!("{folder}{name}")))
            .collect();
        pack(
            &archive,
            &places.iter().map(|(file, place)| (file.clone(), place.as_str())).collect::<Vec<_>>(),
        );
        let mut file = SampleFile::open(&archive).unwrap();
        assert_eq!(file.channels(), 2, "{at}");
        for number in 0..2 {
            let expected: Vec<i16> = (0..400).map(|index| sample(number, index)).collect();
            assert_eq!(channel(&mut file, number), expected, "channel {number} of {at}");
        }
    }
}

#[test]
fn an_archive_of_several_recordings_needs_a_name() {
    let (_folder, path) = two();
    refused(
        &path,
        &[
            "both.sigmf holds 2 recordings: name one of them, as in ",
            "both.sigmf/a/a.sigmf-meta; there are a/a.sigmf-meta, b/b.sigmf-meta",
        ],
    );
    refused(&path.join("c.sigmf-meta"), &["both.sigmf/c.sigmf-meta", "the archive does not hold it"]);
}

#[test]
fn a_damaged_or_foreign_archive_is_an_error() {
    let (folder, path) = two();
    let good = fs::read(&path).unwrap();
    let a = path.join("a/a.sigmf-meta");
    // The last file is a's data: 2,000 bytes.
    let data = good.len() - 1_024 - 2_048;
    fs::write(&path, &good[..data + 1_500]).unwrap();
    refused(&a, &["is truncated: a/a.sigmf-data should have 2000 bytes, but has 1500"]);
    let mut flipped = good;
    flipped[data + 1_999] ^= 1;
    fs::write(&path, &flipped).unwrap();
    refused(&a, &["does not match core:sha512"]);

    fs::write(&path, [7; 2_000]).unwrap();
    refused(&path, &["both.sigmf is not a SigMF archive (a tar)"]);
    pack(&path, &[]);
    refused(&path, &["both.sigmf holds no recording"]);
    refused(&folder.path().join("none.sigmf"), &["cannot open ", "none.sigmf"]);
}

proptest! {
    #[test]
    fn no_bytes_of_an_archive_make_the_reader_panic(
        changes in prop::collection::vec((0usize..9_000, any::<u8>()), 0..6),
        keep in 0usize..9_000,
    ) {
        let (_folder, path) = two();
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        bytes.truncate(keep.max(512));
        fs::write(&path, bytes).unwrap();
        for path in [path.clone(), path.join("a/a.sigmf-meta"), path.join("b/b.sigmf-meta")] {
            if let Ok(mut file) = SampleFile::open(&path) {
                let length = file.len_samples() as usize;
                prop_assert_eq!(channel(&mut file, 0).len(), length);
            }
        }
    }
}
