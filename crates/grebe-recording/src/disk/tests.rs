use std::fs::File;

use grebe_ring::Cancel;
use proptest::prelude::*;
use twox_hash::XxHash3_64;

use super::*;

const METHODS: [WriteMethod; 3] = [WriteMethod::IoUring, WriteMethod::Threads, WriteMethod::PageCache];

/// Appended bytes, and the next step.
#[derive(Debug, Clone, Copy)]
enum Then {
    Nothing,
    Cut,
    CutIfIdle,
}

fn byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b9) >> 11) as u8
}

fn begin(disk: &Disk, folder: &tempfile::TempDir) -> Appender {
    let path = folder.path().join("x");
    let file = File::create(&path).unwrap();
    Appender::new(DiskFile::new(path, file, disk.is_direct(), true, true))
}

/// Appends as the recorder does: as much as there is room for, a few bytes at a time.
fn append(disk: &mut Disk, end: &mut Appender, at: &mut usize, length: usize) -> io::Result<()> {
    let stop = *at + length;
    while *at < stop {
        if end.room() == 0 {
            end.make_room(disk)?;
        }
        let count = end.room().min(stop - *at);
        end.extend(count).iter_mut().enumerate().for_each(|(skip, place)| *place = byte(*at + skip));
        *at += count;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn files_are_what_was_appended_whatever_the_way(
        method in 0..METHODS.len(),
        steps in prop::collection::vec((0usize..200_000, 0u8..4), 0..12),
    ) {
        let folder = tempfile::tempdir_in(".").unwrap();
        let mut disk = Disk::start(1 << 20, 1, METHODS[method]).unwrap();
        let mut end = begin(&disk, &folder);
        let mut at = 0;
        for (length, then) in steps {
            let then = [Then::Nothing, Then::Nothing, Then::Cut, Then::CutIfIdle][then as usize];
            append(&mut disk, &mut end, &mut at, length).unwrap();
            match then {
                Then::Nothing => {}
                Then::Cut => {
                    end.cut(&mut disk).unwrap();
                    end.file().settle();
                    prop_assert_eq!(end.file().good_bytes(), at as u64);
                }
                Then::CutIfIdle => end.cut_if_idle(&mut disk),
            }
        }
        end.finish(&disk);
        let file = end.file().clone();
        file.settle();
        prop_assert_eq!(file.good_bytes(), at as u64);
        file.close(at as u64).unwrap();
        // If the disk falls behind, nothing is summed.
        let is_summed = disk.report(&file).unsummed_bytes == 0;
        drop(disk);
        let bytes = std::fs::read(file.path()).unwrap();
        let expected: Vec<u8> = (0..at).map(byte).collect();
        prop_assert!(bytes == expected, "{} bytes are not those {}", bytes.len(), expected.len());
        let summed = file.summed(at as u64);
        let xxh3 = is_summed.then(|| XxHash3_64::oneshot(&bytes));
        prop_assert_eq!(summed.xxh3, if at > 0 { vec![xxh3] } else { Vec::new() });
        prop_assert_eq!(summed.sha512.is_some(), is_summed);
    }
}

#[test]
fn a_full_disk_takes_what_fits_and_delays_nobody() {
    for method in METHODS {
        let folder = tempfile::tempdir_in(".").unwrap();
        let mut disk = Disk::start(1 << 20, 1, method).unwrap();
        let mut end = begin(&disk, &folder);
        end.file().limit(300 << 10);
        let mut at = 0;
        let error = append(&mut disk, &mut end, &mut at, 16 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        end.discard();
        let file = end.file().clone();
        file.settle();
        // Whole blocks of 64 KiB that lie before the limit.
        assert_eq!(file.good_bytes(), 256 << 10, "{method:?}");
        file.close(file.good_bytes()).unwrap();
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(bytes.iter().enumerate().all(|(at, &it)| it == byte(at)));
        // The next file of the same disk can be written.
        let mut at = 0;
        let mut end = begin(&disk, &folder);
        append(&mut disk, &mut end, &mut at, 1 << 20).unwrap();
        end.finish(&disk);
        end.file().settle();
        assert_eq!(end.file().good_bytes(), 1 << 20);
    }
}

#[test]
fn a_slow_stream_does_not_wait_for_a_full_block() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let mut disk = Disk::start(64 << 20, 1, WriteMethod::Best).unwrap();
    let mut end = begin(&disk, &folder);
    let mut at = 0;
    for round in 1..=3 {
        append(&mut disk, &mut end, &mut at, 1_001).unwrap();
        end.cut_if_idle(&mut disk);
        // The second call finds nothing new.
        end.cut_if_idle(&mut disk);
        end.cut_if_idle(&mut disk);
        end.file().settle();
        assert_eq!(end.file().good_bytes(), 1_001 * round);
    }
    end.finish(&disk);
    end.file().settle();
    end.file().close(at as u64).unwrap();
    let bytes = std::fs::read(end.file().path()).unwrap();
    assert!(bytes.iter().enumerate().all(|(at, &it)| it == byte(at)) && bytes.len() == at);
}

#[test]
fn a_disk_that_stops_costs_no_more_memory_than_was_granted() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let mut disk = Disk::start(1 << 20, 1, WriteMethod::Best).unwrap();
    let mut end = begin(&disk, &folder);
    let mut at = 0;
    append(&mut disk, &mut end, &mut at, 8 << 20).unwrap();
    end.finish(&disk);
    end.file().settle();
    let report = disk.report(end.file());
    assert_eq!(report.buffer_bytes, 1 << 20);
    assert!(report.fill_bytes_max <= report.buffer_bytes, "{report:?}");
    assert_ne!(report.method, WriteMethod::Best);
}

#[test]
fn an_observer_gets_every_block_or_learns_of_missing_ones() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let mut disk = Disk::start(1 << 20, 1, WriteMethod::Best).unwrap();
    let mut end = begin(&disk, &folder);
    let (blocks, lag) = disk.tap(std::iter::once(&mut end), false);
    let (mut at, mut seen) = (0, Vec::new());
    for length in [70_000, 1, 150_000] {
        append(&mut disk, &mut end, &mut at, length).unwrap();
        end.cut(&mut disk).unwrap();
        seen.extend(blocks.try_iter().flat_map(|block| block.bytes().to_vec()));
    }
    assert!(seen == (0..at).map(byte).collect::<Vec<u8>>() && !lag.is_lost());
    // Without a receiver the disk continues.
    append(&mut disk, &mut end, &mut at, 8 << 20).unwrap();
    end.cut(&mut disk).unwrap();
    assert!(lag.is_lost());
    end.untap();
    let left = blocks.try_iter().count();
    assert!(left <= disk.pool.chunks() / 2 + 1, "{left}");
    end.file().settle();
    assert_eq!(end.file().good_bytes(), at as u64);
}

#[test]
fn a_disk_without_room_is_full_and_not_slow() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let error =
        measure_disk(folder.path(), Duration::MAX, Some(0), &Cancel::default(), &mut |_, _| ()).unwrap_err();
    assert!(error.is_full() && error.to_string().contains("no storage space"), "{error}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_file_whose_direct_writes_are_refused_continues_through_the_page_cache() {
    for method in METHODS {
        let folder = tempfile::tempdir_in(".").unwrap();
        let mut disk = Disk::start(1 << 20, 1, method).unwrap();
        let mut end = begin(&disk, &folder);
        let mut at = 0;
        append(&mut disk, &mut end, &mut at, 300_001).unwrap();
        end.cut(&mut disk).unwrap();
        end.file().go_buffered();
        assert!(!disk.report(end.file()).is_direct);
        append(&mut disk, &mut end, &mut at, 300_001).unwrap();
        end.finish(&disk);
        let file = end.file().clone();
        file.settle();
        file.close(at as u64).unwrap();
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(bytes.len() == at && bytes.iter().enumerate().all(|(at, &it)| it == byte(at)), "{method:?}");
    }
}

#[test]
fn the_free_bytes_of_a_disk_are_known() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let of_folder = free_bytes(folder.path()).unwrap();
    let of_file = free_bytes_of(&File::create(folder.path().join("x")).unwrap()).unwrap();
    // Others write to this disk meanwhile.
    assert!(of_folder > 0 && of_file > of_folder / 2 && of_file / 2 < of_folder, "{of_folder}, {of_file}");
}

#[test]
fn reserved_room_neither_extends_nor_truncates_a_file() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, "samples").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    for end in [1 << 20, 3] {
        // A file system may be unable to.
        let _ = sys::reserve(&file, 0, end);
        assert_eq!(std::fs::read(&path).unwrap(), b"samples");
    }
}
