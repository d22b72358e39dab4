use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::io::disk::directory::Directory;
use crate::io::disk::journal::Journal;
use crate::io::disk::reader::{Read, Reader};
use crate::io::disk::source::{Content, Source};
use crate::io::disk::target::Folder;

struct Sample {
    from: tempfile::TempDir,
    source: Arc<Source>,
    offer: Offer,
}

impl Sample {
    fn of(bytes: usize) -> Self {
        let from = tempfile::tempdir().unwrap();
        let path = from.path().join("sample");
        fs::write(&path, (0..bytes).map(|at| (at / 777) as u8).collect::<Vec<_>>()).unwrap();
        let source = Arc::new(Source::open(&[path]).unwrap());
        let offer = Offer {
            total_bytes: source.stream_bytes(),
            index_bytes: source.index_bytes(),
            content: source.content(),
            touched: source.touched(),
        };
        Self { from, source, offer }
    }

    fn groups(&self) -> Vec<(u64, Vec<u8>)> {
        let mut reader = Reader::start(Arc::new(Content::new(self.source.clone())));
        let count = groups::count(self.offer.total_bytes);
        let mut next = || match reader.wait(Duration::from_secs(60)) {
            Some(Read::Group(start, bytes)) => (start, bytes),
            _ => panic!("the file is there"),
        };
        (0..count).map(|_| next()).collect()
    }

    fn is_in(&self, directory: &Path) -> bool {
        let names = fs::read_dir(directory).unwrap().count();
        let read = |directory: &Path| fs::read(directory.join("sample")).ok();
        names == 1 && read(directory) == read(self.from.path())
    }
}

fn place(directory: &Path) -> Place {
    Place { directory: directory.to_path_buf(), key: [5; 32], overwrite: false, accept: None, asks: false }
}

fn wait(writer: &Writer) -> Result<Named> {
    let began = Instant::now();
    loop {
        if let Some(outcome) = writer.outcome() {
            return outcome;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_slow_disk_gets_a_thread_on_the_way() {
    let sample = Sample::of(2_000_000);
    for slow_after in [0, 3, usize::MAX] {
        let into = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
        // The last one first: the index comes late, and what came before it waits.
        for (number, (start, bytes)) in sample.groups().iter().rev().enumerate() {
            if number == slow_after {
                writer.patience = Patience::none();
            }
            writer.put(*start, bytes, |_| true).unwrap();
        }
        assert_eq!(wait(&writer).unwrap().paths, [into.path().join("sample")]);
        assert!(sample.is_in(into.path()), "slow after {slow_after}");
    }
}

#[test]
fn a_changed_byte_is_found_and_nothing_gets_its_name() {
    let sample = Sample::of(1_000_000);
    for changed in [0, 1, 3] {
        let into = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
        for (number, (start, mut bytes)) in sample.groups().into_iter().enumerate() {
            bytes[1_000] ^= u8::from(number == changed);
            writer.put(start, &bytes, |_| true).unwrap();
        }
        match wait(&writer) {
            Ok(named) => assert_eq!((changed, named.paths.len(), named.left_out.len()), (1, 0, 1)),
            Err(error) => assert!(matches!(error, Error::HashDiffers), "{error}"),
        }
        drop(writer);
        assert!(!into.path().join("sample").exists());
    }
}

#[test]
fn what_is_dropped_half_way_is_held_the_next_time() {
    let sample = Sample::of(2_000_000);
    for slow in [false, true] {
        let into = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
        if slow {
            writer.patience = Patience::none();
        }
        let groups = sample.groups();
        let (half, rest) = groups.split_at(4);
        half.iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
        drop(writer);
        let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
        assert_eq!((writer.held.iter().count(), writer.held.prefix_end()), (1, rest[0].0), "slow: {slow}");
        rest.iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
        wait(&writer).unwrap();
        assert!(sample.is_in(into.path()));
    }
}

#[test]
fn what_was_left_out_for_its_name_is_not_noted() {
    let sample = Sample::of(600_000);
    let into = tempfile::tempdir().unwrap();
    let groups = sample.groups();
    let name_is_taken = [false, true, false];
    for (is_taken, (start, bytes)) in name_is_taken.into_iter().zip(&groups) {
        let name = into.path().join("sample");
        if is_taken {
            fs::write(&name, b"of another length").unwrap();
        }
        let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
        // While the name is taken its file need not come.
        assert!(is_taken || writer.held.prefix_end() <= groups[1].0, "it was not written");
        writer.put(*start, bytes, |_| true).unwrap();
        drop(writer);
        let _ = fs::remove_file(&name);
    }
}

#[test]
fn a_kill_while_names_were_given_is_made_good() {
    let sample = Sample::of(600_000);
    let into = tempfile::tempdir().unwrap();
    let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
    sample.groups().iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
    wait(&writer).unwrap();
    // As if the process had been killed before it removed what it needs no more.
    let index = sample.groups()[0].1[..sample.offer.index_bytes as usize].to_vec();
    let open = Directory::open(into.path()).unwrap();
    let folder = Folder::make(&open, into.path(), &sample.offer.content).unwrap();
    fs::create_dir(folder.path_of("tree")).unwrap();
    fs::write(folder.path_of("status"), [0]).unwrap();
    Journal::create(&folder, [5; 32], &sample.offer, &index).unwrap().add_whole().unwrap();
    let writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
    assert_eq!(writer.held.covered(), sample.offer.total_bytes);
    assert_eq!(wait(&writer).unwrap().paths, [into.path().join("sample")]);
    drop(writer);
    assert!(sample.is_in(into.path()));
}

#[test]
fn what_somebody_may_have_changed_is_compared_and_not_sent_again() {
    let sample = Sample::of(2_000_000);
    let touched = Offer { touched: [9; 8], ..sample.offer };
    for is_changed in [false, true] {
        let into = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(&place(into.path()), &sample.offer).unwrap();
        let groups = sample.groups();
        groups[..5].iter().for_each(|(start, bytes)| writer.put(*start, bytes, |_| true).unwrap());
        drop(writer);
        let mut writer = Writer::start(&place(into.path()), &touched).unwrap();
        let held = writer.held.clone();
        assert_eq!(held.covered(), 4 * groups::GROUP_BYTES, "the first has the list of files");
        for (number, (start, bytes)) in groups.iter().enumerate() {
            let mut missing = Vec::new();
            let range = *start..*start + bytes.len() as u64;
            held.missing(range, |part| missing.push(part));
            for part in missing {
                let mut bytes = bytes[(part.start - start) as usize..(part.end - start) as usize].to_vec();
                if is_changed && number == 3 {
                    bytes[0] ^= 1;
                }
                writer.put(part.start, &bytes, |_| true).unwrap();
            }
        }
        let named = wait(&writer).unwrap();
        drop(writer);
        assert_eq!(named.left_out.len(), usize::from(is_changed));
        assert_eq!(sample.is_in(into.path()), !is_changed);
    }
}

/// Another user of the receiver's machine, in a directory where they may rename what is not theirs, puts links in the place of the
/// folder, over and over.
#[cfg(unix)]
#[test]
fn a_thousand_swaps_of_the_folder_lead_nowhere_else() {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    let sample = Sample::of(1_000);
    let groups = sample.groups();
    let shared = if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    let temporary = || tempfile::tempdir_in(&shared).unwrap();
    let (into, victim) = (temporary(), temporary());
    let precious: Vec<_> = {
        // As a folder of this content is laid out.
        let open = Directory::open(victim.path()).unwrap();
        let folder = Folder::make(&open, victim.path(), &sample.offer.content).unwrap();
        fs::create_dir(folder.path_of("tree")).unwrap();
        ["tree/sample", "status", "journal"].map(|name| folder.path_of(name)).into()
    };
    precious.iter().for_each(|path| fs::write(path, b"precious").unwrap());
    let target = victim.path().join(".grebe-partial");
    /// However the test ends, the other thread ends.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    let swaps = AtomicUsize::new(0);
    let mut whole = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let at = |name: &str| into.path().join(name);
            while !is_over.load(Ordering::Relaxed) {
                let is_moved = fs::rename(at(".grebe-partial"), at("moved")).is_ok();
                let _ = symlink(&target, at(".grebe-partial"));
                std::thread::sleep(Duration::from_micros(100));
                if fs::read_link(at(".grebe-partial")).is_ok() {
                    let _ = fs::remove_file(at(".grebe-partial"));
                }
                let _ = is_moved.then(|| fs::rename(at("moved"), at(".grebe-partial")));
                swaps.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let _over = Over(&is_over);
        while swaps.load(Ordering::Relaxed) < 1_000 {
            let written = Writer::start(&place(into.path()), &sample.offer).and_then(|mut writer| {
                groups.iter().try_for_each(|(start, bytes)| writer.put(*start, bytes, |_| true))?;
                wait(&writer)
            });
            let content = fs::read(into.path().join("sample")).unwrap_or_default();
            if written.is_ok_and(|named| !named.paths.is_empty()) {
                assert!(Some(content) == fs::read(sample.from.path().join("sample")).ok());
                fs::remove_file(into.path().join("sample")).unwrap();
                whole += 1;
            }
            precious.iter().for_each(|path| assert!(fs::read(path).unwrap() == b"precious"));
        }
    });
    assert!(whole > 10, "only {whole} came");
}
