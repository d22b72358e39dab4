//! Tests the behaviour that users of cp, scp and rsync expect.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use grebe_tree::{
    Cancel, Done, Error, Options, Progress, ReceiveTree, SendTree, copy, is_fresh, receive, send,
};

use crate::ends::{copied, over_pipes, progress, sorted};
use crate::generate::{scratch, snapshot};

fn recursive() -> Options {
    Options { recursive: true, ..Options::default() }
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn names(root: &Path) -> Vec<String> {
    snapshot(root).into_keys().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn age(path: &Path) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
}

#[test]
fn a_slash_after_a_source_means_its_contents() {
    let from = scratch();
    write(from.path(), &[("run/a", "1"), ("run/deep/b", "2"), ("single", "3")]);
    let run = from.path().join("run");
    for (source, destination, expected) in [
        (
            run.clone(),
            "there",
            vec!["there", "there/run", "there/run/a", "there/run/deep", "there/run/deep/b"],
        ),
        (run.join(""), "there", vec!["there", "there/a", "there/deep", "there/deep/b"]),
        (run.join("."), "there", vec!["there", "there/a", "there/deep", "there/deep/b"]),
        (
            run.clone(),
            "there/new",
            vec!["there", "there/new", "there/new/a", "there/new/deep", "there/new/deep/b"],
        ),
        (
            run.join(""),
            "there/new",
            vec!["there", "there/new", "there/new/a", "there/new/deep", "there/new/deep/b"],
        ),
        (from.path().join("single"), "there", vec!["there", "there/single"]),
        (from.path().join("single"), "there/new", vec!["there", "there/new"]),
        (from.path().join("single"), "there/new/", vec!["there", "there/new", "there/new/single"]),
    ] {
        let into = scratch();
        fs::create_dir(into.path().join("there")).unwrap();
        let report = copied(std::slice::from_ref(&source), &into.path().join(destination), &recursive());
        assert_eq!(report.left_out, [], "{source:?} {destination}");
        assert_eq!(names(into.path()), expected, "{source:?} {destination}");
    }
}

#[test]
fn several_go_into_a_directory_and_one_name_only_once() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("one/a", "1"), ("two/a", "2"), ("b", "3"), ("two/b", "4")]);
    let paths: Vec<PathBuf> =
        ["one/a", "two/a", "b", "gone", "two"].map(|name| from.path().join(name)).into();
    let report = copied(&paths, &into.path().join("new"), &recursive());
    assert_eq!(names(into.path()), ["new", "new/a", "new/b", "new/two", "new/two/a", "new/two/b"]);
    assert_eq!(fs::read(into.path().join("new/a")).unwrap(), b"1");
    let left_out = sorted(&report);
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(
        left_out.iter().any(|(name, why)| name.ends_with("gone") && why.contains("no such file")),
        "{left_out:?}"
    );
    assert!(left_out.iter().any(|(name, why)| name == "a" && why.contains("same name")), "{left_out:?}");
}

#[test]
fn a_directory_needs_the_option_r() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("run/a", "1"), ("single", "3")]);
    let sources = ["run", "single"].map(|name| from.path().join(name));
    let report = copied(&sources, into.path(), &Options::default());
    assert_eq!(names(into.path()), ["single"]);
    assert!(sorted(&report)[0].1.contains("-r"), "{report:?}");
}

#[test]
fn excluded_names_are_neither_copied_nor_deleted() {
    let (from, into) = (scratch(), scratch());
    write(
        from.path(),
        &[("t/a.o", "1"), ("t/a.c", "2"), ("t/cache/x", "3"), ("t/deep/b.o", "4"), ("t/deep/cache", "5")],
    );
    write(
        into.path(),
        &[
            ("t/old.o", "1"),
            ("t/old.c", "2"),
            ("t/gone/deep/x", "3"),
            ("t/half/keep.o", "4"),
            ("t/half/x", "5"),
        ],
    );
    write(into.path(), &[("beside", "not in what is copied")]);
    let exclude = vec!["*.o".to_owned(), "cache/".to_owned()];
    let options = Options { exclude, delete: true, ..recursive() };
    let dry = copied(&[from.path().join("t")], into.path(), &Options { dry_run: true, ..options.clone() });
    assert!(into.path().join("t/old.c").exists() && !into.path().join("t/a.c").exists());
    let report = copied(&[from.path().join("t")], into.path(), &options);
    assert_eq!(
        names(into.path()),
        ["beside", "t", "t/a.c", "t/deep", "t/deep/cache", "t/half", "t/half/keep.o", "t/old.o"]
    );
    // old.c, gone, gone/deep, gone/deep/x, half/x
    assert_eq!((report.deleted, report.files_copied, report.directories_made), (5, 2, 1));
    assert_eq!((dry.files_copied, dry.directories_made, dry.data_bytes), (2, 1, 0));
}

#[test]
fn a_dry_run_changes_nothing_and_lists_the_copies() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("t/new", "1"), ("t/same", "2"), ("t/sub/changed", "long")]);
    copied(&[from.path().join("t")], into.path(), &recursive());
    fs::remove_file(into.path().join("t/new")).unwrap();
    write(into.path(), &[("t/sub/changed", "x"), ("t/extra", "y")]);
    let before = snapshot(into.path());
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = told.clone();
    let watching = Progress::with_notify(move |event| {
        let done = match event.done {
            Done::Copied => "copied",
            Done::Same => "same",
            Done::Deleted => "deleted",
            _ => "other",
        };
        telling.lock().unwrap().push(format!("{done} {}", String::from_utf8_lossy(event.name)));
    });
    let options = Options { dry_run: true, delete: true, ..recursive() };
    let tree = SendTree { sources: vec![from.path().join("t")], options: Some(options), is_fresh: false };
    let report = copy(&tree, into.path(), &Arc::new(watching), &Cancel::default()).unwrap();
    let mut told = told.lock().unwrap().clone();
    told.sort();
    assert_eq!(told, ["copied t/new", "copied t/sub/changed", "deleted t/extra", "same t/same"]);
    assert_eq!((report.files_copied, report.files_same, report.deleted), (2, 1, 1));
    assert_eq!(snapshot(into.path()), before);
    // Nothing is created at a new name either.
    let tree = SendTree { sources: tree.sources, options: tree.options, is_fresh: false };
    copy(&tree, &into.path().join("nowhere"), &progress(), &Cancel::default()).unwrap();
    assert_eq!(snapshot(into.path()), before);
}

#[test]
fn with_checksums_the_content_counts_and_not_the_time() {
    let (from, into) = (scratch(), scratch());
    let big = "x".repeat(700_000);
    write(from.path(), &[("t/a", "new"), ("t/b", "same"), ("t/big", &big)]);
    let sources = [from.path().join("t")];
    copied(&sources, into.path(), &recursive());
    // Other content with the same size and time, and another time with the same content.
    fs::write(into.path().join("t/a"), "old").unwrap();
    let modified = fs::metadata(from.path().join("t/a")).unwrap().modified().unwrap();
    fs::File::options().write(true).open(into.path().join("t/a")).unwrap().set_modified(modified).unwrap();
    age(&into.path().join("t/b"));
    age(&into.path().join("t/big"));
    let by_time = copied(&sources, into.path(), &Options { dry_run: true, ..recursive() });
    assert_eq!((by_time.files_copied, by_time.files_same), (2, 1));
    let options = Options { checksum: true, ..recursive() };
    let dry = copied(&sources, into.path(), &Options { dry_run: true, ..options.clone() });
    assert_eq!((dry.files_copied, dry.files_same, dry.data_bytes), (1, 2, 0));
    let report = copied(&sources, into.path(), &options);
    assert_eq!((report.files_copied, report.files_same, report.data_bytes), (1, 2, 3));
    assert_eq!(snapshot(from.path()), snapshot(into.path()));
}

#[test]
fn obstacles_stay_without_force() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("t/x/inner", "1"), ("t/y", "2"), ("t/z", "3")]);
    write(into.path(), &[("t/x", "a file"), ("t/y/inner", "a directory")]);
    let sources = [from.path().join("t")];
    let report = copied(&sources, into.path(), &recursive());
    assert_eq!(names(into.path()), ["t", "t/x", "t/y", "t/y/inner", "t/z"]);
    let left_out: Vec<_> = sorted(&report).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left_out, ["t/x", "t/y"]);
    let report = copied(&sources, into.path(), &Options { force: true, ..recursive() });
    assert_eq!(report.left_out, []);
    assert_eq!(snapshot(from.path()), snapshot(into.path()));
}

/// Appends to a file at every read of the stream. The file exceeds the buffers of both ends, so it changes
/// more than once while it is read.
struct Touching {
    from: io::PipeReader,
    path: PathBuf,
}

impl Read for Touching {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        fs::File::options().append(true).open(&self.path)?.write_all(b"more")?;
        self.from.read(buffer)
    }
}

#[test]
fn a_file_that_does_not_hold_still_is_left_out_and_the_others_arrive() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("t/growing", &"x".repeat(20_000_000)), ("t/a", "1"), ("t/z", "2")]);
    let (sent_out, sent_in) = io::pipe().unwrap();
    let (said_out, said_in) = io::pipe().unwrap();
    let sending =
        SendTree { sources: vec![from.path().join("t")], options: Some(recursive()), is_fresh: false };
    let sender =
        std::thread::spawn(move || send(said_out, sent_in, &sending, &progress(), &Cancel::default()));
    let reader = Touching { from: sent_out, path: from.path().join("t/growing") };
    let receiving = ReceiveTree { destination: into.path().to_path_buf(), options: None, is_fresh: false };
    let received = receive(reader, said_in, &receiving, &progress(), &Cancel::default());
    for report in [sender.join().unwrap().unwrap(), received.unwrap()] {
        let left_out = sorted(&report);
        assert_eq!(left_out.len(), 1, "{left_out:?}");
        assert!(left_out[0].0 == "t/growing" && left_out[0].1.contains("changed"), "{left_out:?}");
        assert_eq!(report.files_copied, 2);
        assert!(report.data_bytes > 60_000_000, "it was read three times");
    }
    assert_eq!(names(into.path()), ["t", "t/a", "t/z"]);
}

/// Holds back the other end's data until enough was sent.
struct Late {
    from: io::PipeReader,
    sent: std::sync::mpsc::Receiver<()>,
    waits: bool,
}

impl Read for Late {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if std::mem::take(&mut self.waits) {
            let sent = self.sent.recv_timeout(Duration::from_secs(60));
            sent.map_err(|_| io::Error::other("it waits to be told what it knows"))?;
        }
        self.from.read(buffer)
    }
}

/// Signals after a number of bytes.
struct Counted {
    from: io::PipeReader,
    left: usize,
    tells: std::sync::mpsc::Sender<()>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        let before = self.left;
        self.left = before.saturating_sub(read);
        if before > 0 && self.left == 0 {
            let _ = self.tells.send(());
        }
        Ok(read)
    }
}

#[test]
fn content_does_not_wait_for_an_empty_receiver() {
    let (from, into) = (scratch(), scratch());
    let content = "x".repeat(40_000);
    let files: Vec<_> = (0..20).map(|number| format!("t/{number}")).collect();
    for file in &files {
        write(from.path(), &[(file, &content)]);
    }
    // Files appear there meanwhile: new ones replace them, and the rest stays.
    let came_late = into.path().join("new");
    assert!(is_fresh(&came_late) && is_fresh(into.path()));
    write(into.path(), &[("new/3", "older"), ("new/else", "stays")]);
    assert!(!is_fresh(&came_late) && !is_fresh(into.path()));

    let (sent_out, sent_in) = io::pipe().unwrap();
    let (said_out, said_in) = io::pipe().unwrap();
    let (tells, sent) = std::sync::mpsc::channel();
    let sending =
        SendTree { sources: vec![from.path().join("t/")], options: Some(recursive()), is_fresh: true };
    // Everything, before the sender has received a byte.
    let answers = Late { from: said_out, sent, waits: true };
    let stream = Counted { from: sent_out, left: files.len() * content.len(), tells };
    let sender =
        std::thread::spawn(move || send(answers, sent_in, &sending, &progress(), &Cancel::default()));
    let receiving = ReceiveTree { destination: came_late, options: None, is_fresh: true };
    let received = receive(stream, said_in, &receiving, &progress(), &Cancel::default()).unwrap();
    let sent = sender.join().unwrap().unwrap();
    assert_eq!((sent.files_copied, received.files_copied), (20, 20));
    assert_eq!(names(into.path()).len(), 22);
    assert_eq!(fs::read_to_string(into.path().join("new/3")).unwrap(), content);
    assert_eq!(fs::read_to_string(into.path().join("new/else")).unwrap(), "stays");
}

#[test]
fn a_tree_is_not_copied_into_itself() {
    let from = scratch();
    write(from.path(), &[("t/a", "1"), ("t/deep/b", "2")]);
    let t = from.path().join("t");
    let before = names(from.path());
    let into = |source: PathBuf, destination: &str, exclude: &[&str]| {
        let exclude = exclude.iter().map(|pattern| (*pattern).to_owned()).collect();
        let options = Options { exclude, ..recursive() };
        let tree = SendTree { sources: vec![source], options: Some(options), is_fresh: false };
        copy(&tree, &from.path().join(destination), &progress(), &Cancel::default())
    };
    for (source, destination) in [
        (t.clone(), "t"),
        (t.clone(), "t/deep"),
        (t.clone(), "t/new"),
        (t.join(""), "t/new"),
        (t.join(""), "t/deep"),
    ] {
        let told = into(source.clone(), destination, &[]);
        assert!(matches!(told, Err(Error::Destination { .. })), "{source:?} {destination}: {told:?}");
        assert_eq!(names(from.path()), before);
    }
    // Copying onto itself or beside itself is allowed; so is copying into an excluded directory.
    assert_eq!(into(t.join(""), "t", &[]).unwrap().files_same, 2);
    assert_eq!(into(t.clone(), "t-2", &[]).unwrap().files_copied, 2);
    assert_eq!(into(t.join(""), "t/deep/new", &["/deep"]).unwrap().files_copied, 1);
    assert_eq!(into(t.clone(), "t/new", &["new/", "deep"]).unwrap().files_copied, 1);
}

#[test]
fn nothing_of_a_copy_stays_and_the_top_keeps_its_time() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("a", "1"), ("deep/b", "2")]);
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::open(from.path()).unwrap().set_modified(long_ago).unwrap();
    let top = || fs::metadata(into.path()).unwrap().modified().unwrap();
    copied(&[from.path().join("")], into.path(), &Options::archive());
    assert_eq!(top(), long_ago);
    // A copy that was killed after its last byte.
    fs::create_dir(into.path().join(".grebe-partial")).unwrap();
    #[cfg(unix)]
    fs::set_permissions(
        into.path().join(".grebe-partial"),
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    write(into.path(), &[(".grebe-partial/.grebe-lock", "")]);
    let looked =
        copied(&[from.path().join("")], into.path(), &Options { dry_run: true, ..Options::archive() });
    assert_eq!(looked.files_copied, 0);
    assert!(into.path().join(".grebe-partial/.grebe-lock").exists(), "it only looked");
    let again = copied(&[from.path().join("")], into.path(), &Options::archive());
    assert_eq!((again.files_copied, again.files_same), (0, 2));
    assert_eq!(names(into.path()), ["a", "deep", "deep/b"]);
    assert_eq!(top(), long_ago);
}

#[test]
fn a_bad_pattern_and_an_invalid_destination_are_reported_at_both_ends() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("a", "1")]);
    let bad = Options { exclude: vec!["[".to_owned()], ..Options::default() };
    let (sent, received) = over_pipes(&[from.path().join("a")], into.path(), &bad);
    assert!(matches!(sent, Err(Error::Pattern { .. })), "{sent:?}");
    assert!(matches!(received, Err(Error::Closed)), "{received:?}");
    let nowhere = into.path().join("no/where");
    let (sent, received) = over_pipes(&[from.path().join("a")], &nowhere, &Options::default());
    assert!(matches!(received, Err(Error::Destination { .. })), "{received:?}");
    let Err(Error::Peer { what }) = sent else { panic!("{sent:?}") };
    assert!(what.contains("make it first"), "{what}");
}

#[test]
fn a_part_of_other_content_does_not_resume() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("large", &"a".repeat(6_000_000))]);
    let sources = [from.path().join("large")];
    let cut = |at| crate::ends::run(&sources, into.path(), &Options::default(), true, Some(at));
    assert!(cut(4_000_000).1.is_err());
    let parts = fs::read_dir(into.path().join(".grebe-partial")).unwrap().count();
    assert!(parts >= 2, "a part and its journal");
    // The same length with another time.
    write(from.path(), &[("large", &"b".repeat(6_000_000))]);
    let report = copied(&sources, into.path(), &Options::default());
    assert_eq!(report.data_bytes, 6_000_000);
    assert_eq!(fs::read(into.path().join("large")).unwrap(), "b".repeat(6_000_000).into_bytes());
    assert_eq!(names(into.path()), ["large"]);
    // And so is the same content.
    fs::remove_file(into.path().join("large")).unwrap();
    age(&from.path().join("large"));
    assert!(cut(4_000_000).1.is_err());
    let report = copied(&sources, into.path(), &Options::default());
    assert!(report.data_bytes < 4_000_000 && report.bytes_copied == 6_000_000, "{report:?}");
    assert_eq!(fs::read(into.path().join("large")).unwrap(), "b".repeat(6_000_000).into_bytes());
}

#[test]
fn a_journal_without_its_part_is_no_obstacle() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("large", &"a".repeat(6_000_000))]);
    age(&from.path().join("large"));
    let sources = [from.path().join("large")];
    assert!(crate::ends::run(&sources, into.path(), &Options::default(), true, Some(4_000_000)).1.is_err());
    // As if it had been killed after renaming the part, and the file was removed since.
    for entry in fs::read_dir(into.path().join(".grebe-partial")).unwrap().flatten() {
        if entry.metadata().unwrap().len() > 1_000_000 {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let report = copied(&sources, into.path(), &Options::default());
    assert_eq!((report.data_bytes, report.left_out.len()), (6_000_000, 0), "{report:?}");
    assert_eq!(names(into.path()), ["large"]);
}

#[test]
fn a_remote_time_that_ends_in_zeros_does_not_make_files_equal() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("a", "new")]);
    write(into.path(), &[("a", "old")]);
    let at = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
    for (path, ms) in [(from.path(), 1_000_000_000_700), (into.path(), 1_000_000_000_000)] {
        fs::File::options().write(true).open(path.join("a")).unwrap().set_modified(at(ms)).unwrap();
    }
    let report = copied(&[from.path().join("a")], into.path(), &Options::default());
    assert_eq!((report.files_copied, report.files_same), (1, 0));
    assert_eq!(fs::read(into.path().join("a")).unwrap(), b"new");
}
