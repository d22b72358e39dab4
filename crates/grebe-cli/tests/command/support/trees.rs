//! Trees of files: made, and compared by everything that a copy keeps.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// File, directory or link of a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    File { contents: Vec<u8>, mode: u32, mtime_ns: i128 },
    Directory { mode: u32, mtime_ns: i128 },
    Link(PathBuf),
}

/// Bytes that look random and are the same for the same number.
pub(crate) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// A small tree of every kind of thing: files of all sizes, odd names, an empty directory, modes, times, links.
pub(crate) fn plant(at: &Path) {
    fs::create_dir_all(at.join("deep/er/est")).unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    let odd = [
        OsStr::new("plain.txt"),
        OsStr::new("two words"),
        OsStr::new("new\nline"),
        OsStr::new("with:colon"),
        OsStr::new("-dash"),
        OsStr::from_bytes(b"no\xfftext"),
        OsStr::new("größe"),
    ];
    for (number, name) in odd.into_iter().enumerate() {
        file(&at.join(name), &noise(number * 1_000, number as u64), number as u64);
    }
    file(&at.join("deep/empty.bin"), b"", 10);
    file(&at.join("deep/er/large.bin"), &noise(3_000_000, 11), 11);
    for number in 0..50 {
        file(&at.join(format!("deep/er/est/{number}")), &noise(4_096, 100 + number), 100 + number);
    }
    fs::set_permissions(at.join("deep/er/est/1"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(at.join("deep/er/est/2"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("deep/er/large.bin", at.join("link")).unwrap();
    symlink("nowhere", at.join("dangling")).unwrap();
    fs::hard_link(at.join("plain.txt"), at.join("deep/same as plain.txt")).unwrap();
    for (folder, age) in [("deep/er/est", 20), ("deep/er", 21), ("deep", 22), ("empty", 23)] {
        fs::File::open(at.join(folder)).unwrap().set_modified(then(age)).unwrap();
    }
}

/// A file that was written some days ago.
pub(crate) fn file(path: &Path, contents: &[u8], days: u64) {
    fs::write(path, contents).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(then(days)).unwrap();
}

/// All that is below a folder, by name.
pub(crate) fn things(at: &Path) -> BTreeMap<PathBuf, Thing> {
    let mut things = BTreeMap::new();
    let mut folders = vec![at.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let mtime_ns = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
            let mode = meta.mode() & 0o7777;
            let thing = if meta.is_symlink() {
                Thing::Link(fs::read_link(&path).unwrap())
            } else if meta.is_dir() {
                folders.push(path.clone());
                Thing::Directory { mode, mtime_ns }
            } else {
                Thing::File { contents: fs::read(&path).unwrap(), mode, mtime_ns }
            };
            things.insert(path.strip_prefix(at).unwrap().to_path_buf(), thing);
        }
    }
    things
}

/// Compares trees. A difference prints names only, because contents are long.
pub(crate) fn assert_same(one: &Path, other: &Path, why: &str) {
    let (one, other) = (things(one), things(other));
    let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let differ: Vec<_> = names.into_iter().filter(|name| one.get(*name) != other.get(*name)).collect();
    assert!(differ.is_empty(), "{differ:?} differ: {why}");
}

fn then(days: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000 - days * 86_400, 123_456_789)
}
