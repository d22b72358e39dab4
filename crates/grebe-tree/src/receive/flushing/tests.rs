use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use crossbeam_channel::unbounded;

use super::*;
use crate::directories::Directories;
use crate::options::Options;
use crate::receive::destination::Destination;
use crate::receive::stranger::{Reception, Stranger};
use crate::wire::{OfferedNames, TOP};

/// A receiver for these files.
struct Ground {
    at: tempfile::TempDir,
    session: Session,
    flushing: Flushing,
}

impl Ground {
    fn new(fsync: Fsync) -> Self {
        Self::with(fsync, None)
    }

    fn with(fsync: Fsync, stranger: Option<Stranger>) -> Self {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().to_path_buf();
        let directories = Directories::default();
        directories.add_root(Directory::open(&path).unwrap(), b"");
        let destination = Destination { path, new_name: None, is_new: false, of_several: false };
        let session = Session::new(
            Options { recursive: true, fsync, ..Options::default() },
            destination,
            directories,
            false,
            None,
            Arc::default(),
            Default::default(),
            unbounded().0,
            Arc::default(),
            stranger,
        );
        Self { at, flushing: Flushing::new(fsync), session: session.unwrap() }
    }

    /// A file whose content is its name.
    fn write(&self, name: &str) -> (File, Whole) {
        let top = self.session.directories.open(TOP).unwrap();
        let (open, temporary) = self.session.partial.create(&top, 0o600).unwrap();
        system::write_all_at(&open, name.as_bytes(), 0).unwrap();
        let file = Pending {
            id: 1,
            place: TOP,
            name: name.as_bytes().into(),
            bytes: name.len() as u64,
            modified_ns: 0,
            mode: 0o600,
            owner: None,
            attributes: Arc::default(),
            touched: 0,
            is_linked: false,
            replaces: None,
            left_bytes: 0,
            left_blocks: None,
            adopted: None,
            is_hashed: false,
        };
        (open, Whole { bytes: file.bytes, file, then: Then::Name(temporary, None) })
    }

    fn take(&self, (open, whole): (File, Whole)) {
        self.flushing.take(&self.session, open, whole);
    }

    fn during(&self, write: impl FnOnce()) {
        self.flushing.during(&self.session, write);
    }

    fn finish(&self) {
        self.flushing.finish(&self.session);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }

    fn has(&self, name: &str) -> bool {
        fs::read_to_string(self.path(name)).is_ok_and(|content| content == name)
    }

    /// Number of files reported as copied.
    fn told(&self) -> u64 {
        self.session.done.files_copied.load(Ordering::Relaxed)
    }

    fn nothing_of_ours_is_left(&self) -> bool {
        fs::read_dir(self.path(".grebe-partial"))
            .unwrap()
            .all(|entry| entry.unwrap().file_name() == ".grebe-lock")
    }
}

#[test]
fn without_batches_a_file_gets_its_name_at_once() {
    for fsync in [Fsync::Never, Fsync::File] {
        let ground = Ground::new(fsync);
        ground.during(|| {
            ground.take(ground.write("a"));
            assert!(ground.has("a") && ground.told() == 1, "{fsync:?}");
        });
        assert!(ground.nothing_of_ours_is_left(), "{fsync:?}");
    }
}

#[test]
fn files_of_a_batch_are_named_after_a_flush_and_reported_after_the_next() {
    let ground = Ground::new(Fsync::Batch);
    let began = Instant::now();
    ground.during(|| {
        ground.take(ground.write("a"));
        ground.take(ground.write("b"));
        let is_early = ground.has("a") || ground.has("b");
        assert!(!is_early || began.elapsed() >= BATCH_AFTER);
    });
    assert!(ground.has("a") && ground.has("b"), "what is left at the end gets its names");
    assert!(ground.told() == 0 || began.elapsed() >= BATCH_AFTER, "their names are not flushed");
    ground.finish();
    assert_eq!(ground.told(), 2);
    assert!(ground.nothing_of_ours_is_left());
}

#[test]
fn a_large_batch_does_not_wait_and_a_small_one_not_for_long() {
    for bytes in [BATCH_BYTES, 1] {
        let ground = Ground::new(Fsync::Batch);
        ground.during(|| {
            let (open, whole) = ground.write("a");
            ground.take((open, Whole { bytes, ..whole }));
            // Nothing else arrives, and the end is not near.
            let until = Instant::now() + 30 * BATCH_AFTER;
            while ground.told() == 0 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(ground.has("a") && ground.told() == 1, "{bytes} bytes");
        });
    }
}

#[test]
fn more_files_than_two_batches_hold_all_get_their_names() {
    let ground = Ground::new(Fsync::Batch);
    let files = 2 * BATCH_FILES + 100;
    ground.during(|| {
        for number in 0..files {
            ground.take(ground.write(&number.to_string()));
        }
    });
    ground.finish();
    assert_eq!(ground.told(), files as u64);
    assert!((0..files).all(|number| ground.has(&number.to_string())));
}

/// A file opened in a way that forbids flushing stands for a failing disk.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_the_disk_refuses_gets_no_name_and_ends_the_copy() {
    use rustix::fs::{CWD, Mode, OFlags, openat};

    for fsync in [Fsync::Never, Fsync::Batch, Fsync::File] {
        let ground = Ground::new(fsync);
        let refused = || File::from(openat(CWD, ground.at.path(), OFlags::PATH, Mode::empty()).unwrap());
        ground.during(|| {
            let (_, whole) = ground.write("a");
            ground.take((refused(), whole));
            ground.take(ground.write("b"));
        });
        ground.finish();
        let is_given = fsync == Fsync::Never;
        assert_eq!((ground.has("a"), ground.has("b")), (is_given, is_given), "{fsync:?}");
        assert_eq!(ground.told(), if is_given { 2 } else { 0 }, "{fsync:?}");
        assert!(ground.nothing_of_ours_is_left(), "{fsync:?}");
        match ground.session.failure() {
            None => assert!(is_given, "{fsync:?}"),
            Some(error) => assert!(error.to_string().contains("bring to the disk"), "{error}"),
        }
    }
}

#[test]
fn a_name_taken_by_another_before_the_flush_stays_theirs() {
    for fsync in [Fsync::Never, Fsync::Batch, Fsync::File] {
        let reception = Reception {
            directory: std::env::temp_dir(),
            overwrite: false,
            accept: None,
            sender_waits: false,
        };
        let (stranger, _) = reception.take(OfferedNames::default()).unwrap();
        let ground = Ground::with(fsync, Some(stranger));
        fs::write(ground.path("a"), "precious").unwrap();
        ground.during(|| {
            ground.take(ground.write("a"));
            ground.take(ground.write("b"));
        });
        ground.finish();
        assert_eq!(fs::read_to_string(ground.path("a")).unwrap(), "precious", "{fsync:?}");
        assert!(ground.has("b") && ground.told() == 1, "{fsync:?}");
        assert!(ground.nothing_of_ours_is_left(), "{fsync:?}");
        let (left_out, _) = ground.session.left_out.take();
        assert!(left_out.len() == 1 && left_out[0].why.contains("--overwrite"), "{left_out:?}");
    }
}

#[test]
fn an_existing_file_gets_its_time_after_its_content_is_on_disk() {
    for fsync in [Fsync::Never, Fsync::Batch, Fsync::File] {
        let ground = Ground::new(fsync);
        ground.during(|| {
            let (_, whole) = ground.write("a");
            fs::write(ground.path("a"), "a").unwrap();
            let open = File::open(ground.path("a")).unwrap();
            ground.take((open, Whole { then: Then::Dress, ..whole }));
        });
        ground.finish();
        let modified = fs::metadata(ground.path("a")).unwrap().modified().unwrap();
        assert_eq!(modified, std::time::UNIX_EPOCH, "{fsync:?}");
        assert_eq!(ground.session.done.files_same.load(Ordering::Relaxed), 1, "{fsync:?}");
    }
}
