//! Tests copies of generated trees, whole and cut.

use std::fs;
use std::slice::from_ref;

use grebe_testing::Rng;
use grebe_tree::{Cancel, Fsync, Options, SendTree, copy};

use crate::ends::{copied, progress, run};
use crate::generate::{assert_same, change, scratch, snapshot, tree};

#[test]
fn trees_arrive_as_they_are_and_are_not_sent_twice() {
    for seed in 0..12 {
        let mut rng = Rng::with_seed(seed);
        let (from, into) = (scratch(), scratch());
        let source = from.path().join("tree");
        tree(&source, &mut rng, 120);
        let options = Options::archive();
        let first = copied(from_ref(&source), into.path(), &options);
        assert_eq!(first.left_out, [], "seed {seed}");
        assert_same(from.path(), into.path());
        let files = first.files_copied;

        let second = copied(from_ref(&source), into.path(), &options);
        assert_eq!((second.files_copied, second.files_same, second.data_bytes), (0, files, 0), "seed {seed}");
        assert!(second.written_bytes < 100 + files * 2, "{}", second.written_bytes);
        assert_same(from.path(), into.path());

        change(&source, &mut rng);
        copied(from_ref(&source), into.path(), &Options { delete: true, ..options });
        assert_same(from.path(), into.path());
        assert!(!into.path().join(".grebe-partial").exists());
    }
}

#[test]
fn a_receiver_that_knows_how_gets_the_same() {
    let mut rng = Rng::with_seed(7);
    let (from, into) = (scratch(), scratch());
    tree(&from.path().join("tree"), &mut rng, 100);
    let (sent, received) = run(&[from.path().join("tree")], into.path(), &Options::archive(), false, None);
    assert_eq!(sent.unwrap().files_copied, received.unwrap().files_copied);
    assert_same(from.path(), into.path());
}

#[test]
fn copies_in_one_process_are_the_same() {
    for seed in 100..106 {
        let mut rng = Rng::with_seed(seed);
        let (from, into) = (scratch(), scratch());
        let source = from.path().join("tree");
        tree(&source, &mut rng, 120);
        let sending = SendTree {
            sources: vec![source.clone()],
            options: Some(Options { delete: true, ..Options::archive() }),
            is_fresh: false,
        };
        let first = copy(&sending, into.path(), &progress(), &Cancel::default()).unwrap();
        assert_eq!(first.left_out, [], "seed {seed}");
        assert_same(from.path(), into.path());
        let again = copy(&sending, into.path(), &progress(), &Cancel::default()).unwrap();
        assert_eq!((again.files_copied, again.files_same), (0, first.files_copied), "seed {seed}");
        change(&source, &mut rng);
        copy(&sending, into.path(), &progress(), &Cancel::default()).unwrap();
        assert_same(from.path(), into.path());
    }
}

#[test]
fn the_same_copy_finishes_an_interrupted_one() {
    let options = Options { delete: true, ..Options::archive() };
    let mut resumed_bytes = 0;
    for seed in 0..200 {
        let mut rng = Rng::with_seed(1_000 + seed);
        let (from, into) = (scratch(), scratch());
        let source = from.path().join("tree");
        tree(&source, &mut rng, 30);
        fs::write(source.join("large"), crate::generate::content(&mut rng, 2_500_000)).unwrap();
        let total: i64 = snapshot(&source).len() as i64 * 40 + 2_500_000;
        // Cut at any point, up to three times, in either direction; then not at all.
        for _ in 0..rng.u32(1..4) {
            let cut = Some(rng.i64(1..total * 5 / 4));
            let (sent, received) = run(from_ref(&source), into.path(), &options, rng.bool(), cut);
            assert_eq!(sent.is_ok(), received.is_ok() && sent.is_ok(), "seed {seed}");
            // Only complete files have their names.
            let whole = snapshot(from.path());
            for (path, (what, _, _)) in snapshot(into.path()) {
                let is_ours = path.to_string_lossy().contains(".grebe-");
                assert!(is_ours || whole[&path].0 == what, "seed {seed}: {}", path.display());
            }
        }
        let last = copied(from_ref(&source), into.path(), &options);
        assert_eq!(last.left_out, [], "seed {seed}");
        resumed_bytes += last.bytes_copied.saturating_sub(last.data_bytes);
        assert_same(from.path(), into.path());
        assert!(!into.path().join(".grebe-partial").exists(), "seed {seed}");
    }
    assert!(resumed_bytes > 10_000_000, "parts were resumed: {resumed_bytes}");
}

#[test]
fn an_unfinished_directory_under_a_new_name_resumes_and_takes_no_other() {
    let exclude = vec!["/tree/mine".to_owned()];
    let options = Options { delete: true, exclude, ..Options::archive() };
    let mut cut_in_between = 0;
    for seed in 0..60 {
        let mut rng = Rng::with_seed(7_000 + seed);
        let (from, into) = (scratch(), scratch());
        let source = from.path().join("tree");
        tree(&source, &mut rng, 20);
        fs::write(source.join("large"), crate::generate::content(&mut rng, 1_500_000)).unwrap();
        let new = into.path().join("new");
        let cut = Some(rng.i64(1..1_800_000));
        let (_, received) = run(from_ref(&source), &new, &options, true, cut);
        if received.is_ok() {
            continue;
        }
        cut_in_between += usize::from(new.exists());
        // Exclude patterns refer to names at the source.
        if new.exists() {
            fs::write(new.join("mine"), "stays").unwrap();
            fs::write(new.join("not at the source"), "goes").unwrap();
        }
        let was_begun = new.exists();
        copied(from_ref(&source), &new, &options);
        if was_begun {
            assert_eq!(fs::read(new.join("mine")).unwrap(), b"stays", "seed {seed}");
            fs::remove_file(new.join("mine")).unwrap();
            let modified = fs::metadata(&source).unwrap().modified().unwrap();
            fs::File::open(&new).unwrap().set_modified(modified).unwrap();
        }
        assert_same(&source, &new);
        assert!(!into.path().join(".grebe-partial").exists(), "seed {seed}");
        // Once it exists, the same command means the same as for cp: into it.
        copied(from_ref(&source), &new, &options);
        assert_same(&source, &new.join("tree"));
    }
    assert!(cut_in_between > 20, "{cut_in_between}");
}

#[test]
fn a_cancelled_copy_resumes() {
    let (from, into) = (scratch(), scratch());
    let mut rng = Rng::with_seed(3);
    tree(&from.path().join("tree"), &mut rng, 200);
    let sending = SendTree {
        sources: vec![from.path().join("tree")],
        options: Some(Options::archive()),
        is_fresh: false,
    };
    let cancel = Cancel::default();
    let (count, at) = (std::sync::atomic::AtomicU32::new(0), cancel.clone());
    let watching = grebe_tree::Progress::with_notify(move |_| {
        if count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 40 {
            at.cancel();
        }
    });
    let ended = copy(&sending, into.path(), &std::sync::Arc::new(watching), &cancel);
    assert!(matches!(ended, Err(grebe_tree::Error::Cancelled)), "{ended:?}");
    copy(&sending, into.path(), &progress(), &Cancel::default()).unwrap();
    assert_same(from.path(), into.path());
}

#[test]
fn whenever_it_is_brought_to_the_disk_the_same_arrives_and_nothing_else_stays() {
    for (seed, fsync) in [Fsync::Never, Fsync::Batch, Fsync::File].into_iter().enumerate() {
        let mut rng = Rng::with_seed(300 + seed as u64);
        let (from, into) = (scratch(), scratch());
        let tree_there = from.path().join("tree");
        tree(&tree_there, &mut rng, 120);
        // The contents.
        let source = tree_there.join("");
        let options = Options { fsync, delete: true, ..Options::archive() };
        fs::create_dir(into.path().join("old")).unwrap();
        for destination in ["old", "new"].map(|name| into.path().join(name)) {
            let first = copied(from_ref(&source), &destination, &options);
            assert_eq!(first.left_out, [], "{fsync:?}");
            assert_same(&source, &destination);
            change(&source, &mut rng);
            // A file that only lost its time gets it back without being sent.
            let checked = Options { checksum: true, ..options.clone() };
            copied(from_ref(&source), &destination, &checked);
            assert_same(&source, &destination);
            change(&source, &mut rng);
            let sending =
                SendTree { sources: vec![source.clone()], options: Some(options.clone()), is_fresh: false };
            copy(&sending, &destination, &progress(), &Cancel::default()).unwrap();
            assert_same(&source, &destination);
            assert!(!destination.join(".grebe-partial").exists(), "{fsync:?}");
        }
    }
}
