//! A disk that is full.

use super::*;

/// A disk that has room for a part of one channel's data.
#[test]
fn a_full_disk_ends_the_recording_and_keeps_what_was_written() {
    let (folder, path) = scratch("full.sigmf-meta");
    let mut writer = record(&path, &settings(2), &[(0, 1_000)]);
    writer.flush().unwrap();
    writer.limit(1, 3_000);
    // A writer that was kept waiting hands over by itself: which of the calls fails is not asserted.
    let written = try_write(&mut writer, 2, 1_000, 1_000)
        .and_then(|()| try_write(&mut writer, 2, 5_000, 1_000))
        .and_then(|()| writer.flush());
    let error = written.unwrap_err();
    assert!(error.is_full());
    let error = error.to_string();
    assert!(error.starts_with("cannot write ") && error.contains("full_ch2.sigmf-data: "), "{error}");
    assert!(error.ends_with("the 1000 samples per channel before that are good"), "{error}");
    writer.limit(1, u64::MAX);
    let error = writer.write(9_000, &[&[1i16], &[1]]).unwrap_err().to_string();
    assert!(error.contains("an earlier write failed"), "{error}");
    assert_eq!(writer.finish().unwrap().len_samples, 1_000);
    assert_eq!(names(&folder).len(), 5);
    let file = SampleFile::open(&path).unwrap();
    assert_eq!(stretches(&file), [(0, 1_000, 0)]);
    assert!(file.notes().is_empty());
}

#[test]
fn a_full_disk_ends_a_steady_slow_stream_long_before_the_next_block_is_full() {
    let (_folder, path) = scratch("slow.sigmf-meta");
    let mut writer = record(&path, &settings(1), &[(0, 1_000)]);
    writer.flush().unwrap();
    writer.limit(0, 2_000);
    let began = Instant::now();
    let failed = (1_000..).step_by(10).find_map(|index| {
        std::thread::sleep(Duration::from_millis(1));
        assert!(began.elapsed() < Duration::from_secs(60), "the disk is full, and nobody says so");
        try_write(&mut writer, 1, index, 10).err()
    });
    assert!(failed.unwrap().is_full());
    assert_eq!(writer.finish().unwrap().len_samples, 1_000);
}
