//! Tests of changed files: the traffic, and the equality of the result.

use std::fs;
use std::io::{self, Seek, Write, pipe};
use std::path::Path;
use std::sync::Arc;

use grebe_testing::Rng;
use grebe_tree::{Cancel, Options, Progress, ReceiveTree, Report, SendTree, receive, send};

/// Options of two ends of this version.
fn archive() -> Options {
    Options { short_hashes: true, ..Options::archive() }
}

/// Copies `from` into `into` as between two hosts. Returns the receiver's report.
fn sync(from: &Path, into: &Path, options: Options) -> Report {
    sync_and(from, into, options, |_| ())
}

/// Calls `before_said` with each message of the receiver before the sender gets it.
fn sync_and(from: &Path, into: &Path, options: Options, before_said: impl FnMut(&[u8]) + Send) -> Report {
    let (data_read, data_write) = pipe().unwrap();
    let (answers_read, answers) = pipe().unwrap();
    let answers_write = Overheard { answers, before_said };
    let tree = SendTree { sources: vec![from.join("")], options: Some(options), is_fresh: false };
    let destination = ReceiveTree { destination: into.to_path_buf(), options: None, is_fresh: false };
    let progress = || Arc::new(Progress::default());
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| send(answers_read, data_write, &tree, &progress(), &Cancel::default()));
        let received =
            scope.spawn(|| receive(data_read, answers_write, &destination, &progress(), &Cancel::default()));
        let (sent, received) = (sent.join().unwrap().unwrap(), received.join().unwrap().unwrap());
        assert_eq!((sent.files_copied, sent.data_bytes), (received.files_copied, received.data_bytes));
        received
    })
}

struct Overheard<W, F> {
    answers: W,
    before_said: F,
}

impl<W: Write, F: FnMut(&[u8])> Write for Overheard<W, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.before_said)(bytes);
        self.answers.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.answers.flush()
    }
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// Two directories; the second has the old file.
fn two(name: &str, new: &[u8], old: &[u8]) -> [tempfile::TempDir; 2] {
    [new, old].map(|content| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), content).unwrap();
        folder
    })
}

fn older(path: &Path) {
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
}

#[test]
fn a_file_with_few_changes_sends_little_more_than_the_changes() {
    let old = noise(1, 20_000_000);
    let mut new = old.clone();
    for place in 0..10 {
        new[place * 2_000_000 + 700..][..1_000].copy_from_slice(&noise(place as u64, 1_000));
    }
    let [from, into] = two("samples.dat", &new, &old);
    older(&into.path().join("samples.dat"));
    let report = sync(from.path(), into.path(), archive());
    assert_eq!((report.files_copied, report.left_out_count), (1, 0));
    // The finest chunks have 2 KiB on average, so these places get finer chunks.
    assert!((10_000..150_000).contains(&report.data_bytes), "{}", report.data_bytes);
    assert!(report.written_bytes < 40_000, "{}", report.written_bytes);
    assert!(fs::read(into.path().join("samples.dat")).unwrap() == new);
    assert!(!into.path().join(".grebe-partial").exists());
    let again = sync(from.path(), into.path(), archive());
    assert_eq!((again.files_copied, again.files_same, again.data_bytes), (0, 1, 0));
}

#[test]
fn bytes_inserted_at_the_front_cost_a_few_chunks() {
    let old = noise(1, 10_000_000);
    let new = [b"a line more".to_vec(), old.clone()].concat();
    let written = [archive(), Options::archive()].map(|options| {
        let [from, into] = two("log", &new, &old);
        let report = sync(from.path(), into.path(), options);
        assert!((11..50_000).contains(&report.data_bytes), "{}", report.data_bytes);
        assert!(fs::read(into.path().join("log")).unwrap() == new);
        report.written_bytes
    });
    // 4 or 8 bytes of a hash, plus the length.
    assert!(written[0] * 10 < written[1] * 7, "{written:?}");
}

/// Whether this is the last piece of a signature: the file was read completely, and nothing copied yet.
fn ends_signature(said: &[u8]) -> bool {
    let Some((9, rest)) = said.split_first() else { return false };
    let head = rest.iter().take_while(|byte| **byte >= 0x80).count() + 1;
    // Few files, so the number is short.
    rest.get(head + 1) == Some(&1)
}

#[test]
fn a_basis_that_changes_during_a_copy_is_sent_again_and_never_mixed() {
    let old = noise(1, 30_000_000);
    // The second half comes first. Nobody knows its place early enough, so it is copied with the plan.
    let new = [b"a line more", &old[15_000_000..], &old[..15_000_000]].concat();
    let middle = [&old[..22_000_000], &noise(2, 100), &old[22_000_100..]].concat();
    let end = [&old[..27_000_000], &noise(2, 3_000_000)].concat();
    for (other, at_least, at_most) in [
        (&middle[..], 1_000_000, 12_000_000),
        (&end[..], 3_000_000, 12_000_000),
        (&old[..29_000_000], 1_000_000, 10_000_000),
        (&[], 14_000_000, 31_000_000),
    ] {
        let [from, into] = two("log", &new, &old);
        let report = sync_and(from.path(), into.path(), archive(), |said| {
            if ends_signature(said) {
                fs::write(into.path().join("log"), other).unwrap();
            }
        });
        assert_eq!((report.files_copied, report.left_out_count), (1, 0));
        assert!((at_least..at_most).contains(&report.data_bytes), "{}", report.data_bytes);
        assert!(fs::read(into.path().join("log")).unwrap() == new);
        assert!(!into.path().join(".grebe-partial").exists());
    }
}

#[test]
fn bytes_already_in_the_new_file_are_not_read_from_the_basis() {
    let old = noise(1, 30_000_000);
    let mut new = old.clone();
    new[12_345_678..][..1_000].copy_from_slice(&noise(2, 1_000));
    let [from, into] = two("log", &new, &old);
    older(&into.path().join("log"));
    let report = sync_and(from.path(), into.path(), archive(), |said| {
        if ends_signature(said) {
            fs::write(into.path().join("log"), noise(3, 30_000_000)).unwrap();
        }
    });
    assert_eq!((report.files_copied, report.left_out_count), (1, 0));
    assert!((1_000..200_000).contains(&report.data_bytes), "{}", report.data_bytes);
    assert!(fs::read(into.path().join("log")).unwrap() == new);
    assert!(!into.path().join(".grebe-partial").exists());
}

#[test]
fn bytes_placed_in_vain_are_not_in_the_file() {
    let old = noise(1, 20_000_000);
    // New content that partly matches, shorter files, and holes in place of data.
    let other = [&noise(2, 15_000_000)[..], &old[..500_000]].concat();
    let moved = [&old[9_000_000..], &noise(3, 100), &old[..9_000_000]].concat();
    let (holes, tail) = (vec![0; 6_000_000], vec![0; 9_000_000]);
    let sparse = [&old[..5_000_000], &holes, &old[11_000_000..]].concat();
    for new in [&other[..], &moved, &sparse, &old[..6_000_000], &[&old[..6_000_000], &tail].concat()] {
        let [from, into] = two("data", &[], &old);
        older(&into.path().join("data"));
        let mut file = fs::File::create(from.path().join("data")).unwrap();
        // Zeros become holes if the system has them.
        for piece in new.chunks(1_000_000) {
            if piece.iter().any(|byte| *byte != 0) {
                file.write_all(piece).unwrap();
            } else {
                file.seek_relative(piece.len() as i64).unwrap();
            }
        }
        file.set_len(new.len() as u64).unwrap();
        drop(file);
        let report = sync(from.path(), into.path(), archive());
        assert_eq!((report.files_copied, report.left_out_count), (1, 0));
        assert!(fs::read(into.path().join("data")).unwrap() == new, "{}", new.len());
        assert!(!into.path().join(".grebe-partial").exists());
    }
}

#[test]
fn with_checksum_a_file_of_equal_length_sends_only_changes() {
    let old = noise(1, 10_000_000);
    let mut new = old.clone();
    new[5_000_000..5_000_100].fill(7);
    for (options, at_least, at_most) in [
        (Options { checksum: true, ..archive() }, 100, 200_000),
        (Options { checksum: true, index: true, ..archive() }, 100, 200_000),
        (Options { checksum: true, whole_file: true, ..archive() }, 10_000_000, 10_000_010),
    ] {
        let [from, into] = two("log", &new, &old);
        fs::write(from.path().join("small"), "new").unwrap();
        fs::write(into.path().join("small"), "old").unwrap();
        for name in ["log", "small"] {
            let modified = fs::metadata(from.path().join(name)).unwrap().modified().unwrap();
            let there = fs::File::options().write(true).open(into.path().join(name)).unwrap();
            there.set_modified(modified).unwrap();
        }
        let report = sync(from.path(), into.path(), options);
        assert_eq!((report.files_copied, report.left_out_count), (2, 0));
        assert!((at_least..at_most).contains(&report.data_bytes), "{}", report.data_bytes);
        assert!(fs::read(into.path().join("log")).unwrap() == new);
        assert_eq!(fs::read(into.path().join("small")).unwrap(), b"new");
    }
}

#[test]
fn whole_file_sends_whole_files() {
    let old = noise(1, 3_000_000);
    let new = [&old[..], b"more"].concat();
    let [from, into] = two("log", &new, &old);
    let report = sync(from.path(), into.path(), Options { whole_file: true, ..archive() });
    assert_eq!(report.data_bytes, 3_000_004);
    assert!(fs::read(into.path().join("log")).unwrap() == new);
}

#[test]
fn many_changed_files_are_equal_afterwards() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut rng = Rng::with_seed(5);
    let mut expected = 0;
    for n in 0..120 {
        let name = format!("{n}");
        let old = noise(n, rng.usize(0..1_500_000));
        let mut new = old.clone();
        let at = rng.usize(0..=new.len());
        match n % 6 {
            0 => new.truncate(at),
            1 => drop(new.splice(at..at, noise(n + 1_000, 5_000))),
            2 => new.extend(noise(n + 1_000, 300_000)),
            3 => new = noise(n + 1_000, old.len()),
            4 => new.rotate_left(at),
            _ => new.clear(),
        }
        fs::write(from.path().join(&name), &new).unwrap();
        fs::write(into.path().join(&name), &old).unwrap();
        older(&into.path().join(&name));
        expected += new.len() as u64;
    }
    let report = sync(from.path(), into.path(), archive());
    assert_eq!((report.files_copied, report.left_out_count), (120, 0));
    assert!(report.data_bytes < expected * 3 / 4, "{} of {expected}", report.data_bytes);
    for n in 0..120 {
        let read = |folder: &Path| fs::read(folder.join(format!("{n}"))).unwrap();
        assert!(read(from.path()) == read(into.path()), "{n}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn holes_stay_holes() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let make = |folder: &Path, len: u64| {
        let file = fs::File::create(folder.join("disk")).unwrap();
        file.set_len(len).unwrap();
        file.write_all_at(&noise(1, 100_000), 50_000_000).unwrap();
    };
    make(from.path(), 300_000_000);
    make(into.path(), 200_000_000);
    let report = sync(from.path(), into.path(), archive());
    assert!(report.data_bytes < 300_000, "{}", report.data_bytes);
    assert!(report.written_bytes < 10_000, "{}", report.written_bytes);
    let made = fs::File::open(into.path().join("disk")).unwrap();
    let metadata = made.metadata().unwrap();
    assert_eq!(metadata.len(), 300_000_000);
    assert!(metadata.blocks() * 512 < 1_000_000, "{}", metadata.blocks());
    let mut bytes = vec![0; 100_000];
    made.read_exact_at(&mut bytes, 50_000_000).unwrap();
    assert!(bytes == noise(1, 100_000));
}

/// Creates files of several lengths with distinct times below `folder`.
fn make_tree(folder: &Path, files: u64) -> u64 {
    let mut bytes = 0;
    for n in 0..files {
        let content = noise(n, 50_000 + n as usize * 40_000);
        let path = folder.join(format!("{}/{n}.dat", n % 3));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &content).unwrap();
        let modified = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000 + n, 5);
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        bytes += content.len() as u64;
    }
    bytes
}

fn assert_same_tree(one: &Path, two: &Path, files: u64) {
    for n in 0..files {
        let name = format!("{}/{n}.dat", n % 3);
        assert!(fs::read(one.join(&name)).unwrap() == fs::read(two.join(&name)).unwrap(), "{name}");
        let modified = |folder: &Path| fs::metadata(folder.join(&name)).unwrap().modified().unwrap();
        assert_eq!(modified(one), modified(two), "{name}");
    }
}

#[test]
fn a_directory_that_was_renamed_costs_its_names_and_hashes() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = make_tree(&from.path().join("old name"), 20);
    assert_eq!(sync(from.path(), into.path(), archive()).data_bytes, bytes);
    fs::rename(from.path().join("old name"), from.path().join("new name")).unwrap();
    let report = sync(from.path(), into.path(), Options { delete: true, ..archive() });
    assert_eq!((report.files_copied, report.data_bytes, report.left_out_count), (20, 0, 0));
    assert!(report.read_bytes + report.written_bytes < 2_500, "{report:?}");
    assert_same_tree(&from.path().join("new name"), &into.path().join("new name"), 20);
    assert!(!into.path().join("old name").exists() && !into.path().join(".grebe-partial").exists());
}

#[test]
fn content_of_the_searched_directory_is_not_sent_under_any_name() {
    let [from, into, other] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let bytes = make_tree(&from.path().join("run"), 10);
    make_tree(&other.path().join("kept/elsewhere"), 10);
    // One file with other content but the same length and time, and one edited under the same name.
    let wrong = other.path().join("kept/elsewhere/1/4.dat");
    let modified = fs::metadata(&wrong).unwrap().modified().unwrap();
    fs::write(&wrong, noise(99, 210_000)).unwrap();
    fs::File::options().write(true).open(&wrong).unwrap().set_modified(modified).unwrap();
    let edited = other.path().join("kept/elsewhere/0/9.dat");
    fs::write(&edited, [b"a line more".to_vec(), noise(9, 410_000)].concat()).unwrap();
    let options = Options { also_look_in: vec![other.path().to_path_buf()], ..archive() };
    let report = sync(from.path(), into.path(), options);
    assert_eq!((report.files_copied, report.left_out_count), (10, 0));
    assert!((210_000..240_000).contains(&report.data_bytes), "{} of {bytes}", report.data_bytes);
    assert_same_tree(&from.path().join("run"), &into.path().join("run"), 10);
    assert!(!into.path().join(".grebe-partial").exists());
}

#[test]
fn logs_that_were_turned_over_are_known_by_their_new_names() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_tree(&from.path().join("a"), 1);
    let name = |n: u64| from.path().join(format!("log.{n}"));
    for n in 0..5_u64 {
        fs::write(name(n), noise(n, 100_000 + n as usize)).unwrap();
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(9_000 - n);
        fs::File::options().write(true).open(name(n)).unwrap().set_modified(modified).unwrap();
    }
    sync(from.path(), into.path(), archive());
    (0..5).rev().for_each(|n| fs::rename(name(n), name(n + 1)).unwrap());
    fs::write(name(0), noise(77, 90_000)).unwrap();
    let report = sync(from.path(), into.path(), archive());
    assert_eq!((report.files_copied, report.files_same, report.left_out_count), (6, 1, 0));
    // The new file. If a thread sleeps too long, another one may be replaced before it is copied.
    assert!((90_000..300_000).contains(&report.data_bytes), "{}", report.data_bytes);
    for n in 0..6 {
        let read = |folder: &Path| fs::read(folder.join(format!("log.{n}"))).unwrap();
        assert!(read(from.path()) == read(into.path()), "log.{n}");
    }
}

/// With an index, in a private state directory. Each test is a process.
#[test]
#[cfg(target_os = "linux")]
fn with_an_index_unchanged_files_are_not_read_again() {
    if std::env::var_os("GREBE_TEST_INDEX").is_none() {
        let state = tempfile::tempdir().unwrap();
        let test = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "with_an_index_unchanged_files_are_not_read_again", "--nocapture"])
            .env("GREBE_TEST_INDEX", "1")
            .env("XDG_STATE_HOME", state.path())
            .status()
            .unwrap();
        assert!(test.success());
        assert_eq!(fs::read_dir(state.path().join("grebe/index")).unwrap().count(), 2, "one for each tree");
        return;
    }
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let old = noise(1, 4_000_000);
    for folder in [&from, &into] {
        fs::write(folder.path().join("same"), &old).unwrap();
        fs::write(folder.path().join("changed"), &old).unwrap();
        older(&folder.path().join("same"));
        older(&folder.path().join("changed"));
    }
    let options = Options { checksum: true, index: true, ..archive() };
    let run = || sync(from.path(), into.path(), options.clone());
    // Files changed within the last two seconds are not kept.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    assert_eq!(run().files_same, 2);
    let read_bytes = || {
        let text = fs::read_to_string("/proc/self/io").unwrap();
        let rchar = text.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        rchar.parse::<u64>().unwrap()
    };
    let before = read_bytes();
    assert_eq!(run().files_same, 2);
    assert!(read_bytes() - before < 1_000_000, "{}", read_bytes() - before);
    // Signatures and hashes must be those of the changed file.
    fs::write(from.path().join("changed"), [b"a line more".to_vec(), old.clone()].concat()).unwrap();
    let report = run();
    assert_eq!((report.files_copied, report.files_same), (1, 1));
    assert!(report.data_bytes < 100_000, "{}", report.data_bytes);
    // A file that got its time back, but not its content.
    let same = into.path().join("same");
    fs::write(&same, noise(2, 4_000_000)).unwrap();
    older(&same);
    let report = run();
    assert_eq!((report.files_copied, report.files_same), (1, 1));
    assert!(fs::read(&same).unwrap() == old);
}

#[test]
#[cfg(unix)]
fn files_that_go_while_they_are_compared_stop_nothing() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // More files than are compared at once.
    for n in 0..150 {
        let (old, name) = (noise(n, 200_000), format!("{n:03}"));
        fs::write(into.path().join(&name), &old).unwrap();
        older(&into.path().join(&name));
        fs::write(from.path().join(&name), [b"a line more".to_vec(), old].concat()).unwrap();
    }
    let mut is_gone = false;
    let report = sync_and(from.path(), into.path(), archive(), |said| {
        // At the first signature, while others wait for it.
        if said.len() > 500 && !is_gone {
            is_gone = true;
            (0..150).step_by(2).for_each(|n| fs::remove_file(from.path().join(format!("{n:03}"))).unwrap());
        }
    });
    assert!(is_gone && report.left_out_count <= 75, "{}", report.left_out_count);
    assert_eq!(report.files_copied + report.left_out_count, 150);
    for n in (1..150).step_by(2) {
        let read = |folder: &Path| fs::read(folder.join(format!("{n:03}"))).unwrap();
        assert!(read(from.path()) == read(into.path()), "{n}");
    }
}
