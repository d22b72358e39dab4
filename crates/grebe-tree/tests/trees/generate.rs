//! Generated trees, and the properties that count in a comparison.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use grebe_testing::Rng;

/// Kind of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    File { content: blake3::Hash, bytes: u64 },
    Directory,
    Symlink(PathBuf),
}

/// All of a tree by path: kind, mode and modification time. `with` excludes properties that an option does
/// not keep.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<PathBuf, (What, u32, SystemTime)> {
    let mut all = BTreeMap::new();
    collect(root, Path::new(""), &mut all);
    all
}

fn collect(root: &Path, below: &Path, all: &mut BTreeMap<PathBuf, (What, u32, SystemTime)>) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let path = below.join(entry.unwrap().file_name());
        let metadata = fs::symlink_metadata(root.join(&path)).unwrap();
        let what = if metadata.is_symlink() {
            What::Symlink(fs::read_link(root.join(&path)).unwrap())
        } else if metadata.is_dir() {
            collect(root, &path, all);
            What::Directory
        } else {
            let content = blake3::hash(&fs::read(root.join(&path)).unwrap());
            What::File { content, bytes: metadata.len() }
        };
        all.insert(path, (what, mode(&metadata), metadata.modified().unwrap()));
    }
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> u32 {
    0
}

/// Asserts equality, and reports the first difference.
pub(crate) fn assert_same(left: &Path, right: &Path) {
    let (left, right) = (snapshot(left), snapshot(right));
    for (path, entry) in &left {
        assert_eq!(Some(entry), right.get(path), "{}", path.display());
    }
    assert_eq!(
        left.len(),
        right.len(),
        "{:?}",
        right.keys().filter(|path| !left.contains_key(*path)).collect::<Vec<_>>()
    );
}

/// A directory in memory if possible, because the tests flush often and a busy disk is slow.
pub(crate) fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// A tree of directories, files from empty to some MB, holes and links.
pub(crate) fn tree(root: &Path, rng: &mut Rng, names: usize) {
    let mut directories = vec![PathBuf::new()];
    fs::create_dir_all(root).unwrap();
    for at in 0..names {
        let above = directories[rng.usize(..directories.len())].clone();
        let path = above.join(name(rng, at));
        match rng.u32(..20) {
            0..=2 => {
                fs::create_dir(root.join(&path)).unwrap();
                directories.push(path);
            }
            #[cfg(unix)]
            3 => {
                let target = ["nowhere", "..", "/etc/passwd", "a b"][rng.usize(..4)];
                std::os::unix::fs::symlink(target, root.join(&path)).unwrap();
            }
            4 => sparse(&root.join(&path), rng),
            _ => file(&root.join(&path), rng),
        }
    }
    // Modes and times last, innermost first, because changes inside a directory change its time.
    let mut all: Vec<_> = snapshot(root).into_iter().collect();
    all.reverse();
    for (path, (what, _, _)) in all {
        if !matches!(what, What::Symlink(_)) {
            dress(&root.join(path), matches!(what, What::Directory), rng);
        }
    }
}

fn name(rng: &mut Rng, at: usize) -> String {
    match rng.u32(..8) {
        0 => format!("with space {at}"),
        1 => format!("ünï {at}"),
        #[cfg(unix)]
        2 => format!("a:b\n{at}"),
        3 => format!("-{at}"),
        _ => format!("n{at}"),
    }
}

/// Content that follows from length and seed.
pub(crate) fn content(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    rng.fill(&mut content);
    content
}

fn file(path: &Path, rng: &mut Rng) {
    let bytes = match rng.u32(..20) {
        0..3 => 0,
        3..16 => rng.usize(1..8_000),
        16..18 => rng.usize(8_000..300_000),
        18 => 256 << 10,
        _ => rng.usize(300_000..3_000_000),
    };
    fs::write(path, content(rng, bytes)).unwrap();
}

fn sparse(path: &Path, rng: &mut Rng) {
    let mut file = File::create(path).unwrap();
    for _ in 0..rng.u32(..4) {
        file.seek(SeekFrom::Start(rng.u64(..5_000_000))).unwrap();
        file.write_all(b"data").unwrap();
    }
    let length = file.metadata().unwrap().len() + rng.u64(..1_000_000);
    file.set_len(length).unwrap();
}

fn dress(path: &Path, is_directory: bool, rng: &mut Rng) {
    let modified = SystemTime::UNIX_EPOCH
        + Duration::new(rng.u64(1..2_000_000_000), rng.u32(..1_000_000_000) / 100 * 100);
    let times = FileTimes::new().set_modified(modified);
    if is_directory {
        #[cfg(unix)]
        File::open(path).unwrap().set_times(times).unwrap();
    } else {
        File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let modes: &[u32] =
            if is_directory { &[0o755, 0o700, 0o555, 0o2775] } else { &[0o644, 0o600, 0o444, 0o4755, 0o666] };
        fs::set_permissions(path, fs::Permissions::from_mode(modes[rng.usize(..modes.len())])).unwrap();
    }
}

/// Changes part of a tree: content, new names, removed names.
pub(crate) fn change(root: &Path, rng: &mut Rng) {
    for (path, (what, _, _)) in snapshot(root) {
        if let What::File { .. } = what
            && rng.u32(..5) == 0
        {
            let path = root.join(path);
            let _ = fs::remove_file(&path);
            if rng.bool() {
                file(&path, rng);
            }
        }
    }
    fs::write(root.join("new at the end"), content(rng, 5_000)).unwrap();
}
