//! Durations, gaps and restarts.

use std::thread::sleep;

use grebe_flow::StageBench;
use grebe_frame::{Batch, BatchPool};
use grebe_testing::stream::batches_of;

use super::*;
use crate::SampleFile;

#[test]
fn a_duration_is_of_the_signal_and_the_counts_are_of_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    // At 1 MS/s: 64 samples, a gap of 64, and 22 of the next block.
    let options = RecordOptions { duration: Some(Duration::from_micros(150)), ..RecordOptions::default() };
    let mut bench = StageBench::new(SigmfSink::create(&path, options).unwrap()).unwrap();
    for batch in batches_of(1, &[(0, 64), (128, 64), (192, 64)], 1) {
        bench.feed(batch).unwrap();
    }
    bench.end().unwrap();
    let snapshot = bench.snapshot();
    let own = |name: &str| snapshot.stage("stage").unwrap().own(name);
    assert_eq!((own("recorded_samples"), own("recorded_frames")), (Some(86), Some(2)));
    let file = SampleFile::open(&path).unwrap();
    let lengths: Vec<u64> = file.segments().iter().map(|segment| segment.length_samples).collect();
    assert_eq!(lengths, [64, 22]);
}

#[test]
fn a_gap_beyond_the_duration_ends_the_recording_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let options = RecordOptions { duration: Some(Duration::from_micros(100)), ..RecordOptions::default() };
    let mut bench = StageBench::new(SigmfSink::create(&path, options).unwrap()).unwrap();
    for batch in batches_of(1, &[(0, 64), (500, 64)], 1) {
        bench.feed(batch).unwrap();
    }
    bench.end().unwrap();
    assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 64);
}

/// A frame of 64 samples.
fn frame(sequence: u64, index: u64, stamp_ms: u64) -> Batch {
    let mut batch = BatchPool::new(1, 4_096).acquire().unwrap();
    let header = Header {
        sequence,
        first_sample_index: index,
        producer_ts_ns: 1_000_000 * stamp_ms,
        channel_count: 1,
        block_length_samples: 64,
        sample_rate_hz: 1e6,
        ..Header::default()
    };
    batch.push::<i16>(&header, |_, samples| samples.fill(1)).unwrap();
    batch.freeze()
}

#[test]
fn the_clock_gives_the_gap_before_a_restarted_sender() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let sink = SigmfSink::create(&path, RecordOptions::default()).unwrap();
    let mut bench = StageBench::new(sink).unwrap();
    bench.feed(frame(0, 0, 1)).unwrap();
    bench.feed(frame(1, 64, 2)).unwrap();
    sleep(Duration::from_millis(120));
    bench.feed(frame(0, 0, 130)).unwrap();
    // At once, as a sender does that was not away.
    bench.feed(frame(1, 64, 131)).unwrap();
    bench.feed(frame(0, 0, 132)).unwrap();
    bench.end().unwrap();
    let snapshot = bench.snapshot();
    let own = |name: &str| snapshot.stage("stage").unwrap().own(name).unwrap();
    assert!((100..100_000).contains(&own("restart_missing_ms")), "{}", own("restart_missing_ms"));
    assert_eq!((own("gaps"), own("gap_samples")), (0, 0));
    let file = SampleFile::open(&path).unwrap();
    let gaps: Vec<_> = file.clock_gaps().collect();
    assert!(gaps.len() == 1 && gaps[0].position == 128 && gaps[0].seconds > 0.1, "{gaps:?}");
    assert_eq!((file.gaps().count(), file.stream_count()), (0, 3));
    let label = |number: usize| file.annotations()[number].fields["core:label"].as_str().unwrap();
    assert!(
        label(0).starts_with("about 1")
            && label(0).ends_with("missing, by the clock: the sender began again")
    );
    assert_eq!(label(1), "the sender began again");
}

#[test]
fn a_continued_index_gives_the_gap_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let sink = SigmfSink::create(&path, RecordOptions::default()).unwrap();
    let mut bench = StageBench::new(sink).unwrap();
    bench.feed(frame(7, 0, 1)).unwrap();
    bench.feed(frame(0, 500, 130)).unwrap();
    bench.end().unwrap();
    let snapshot = bench.snapshot();
    let own = |name: &str| snapshot.stage("stage").unwrap().own(name).unwrap();
    assert_eq!((own("gaps"), own("gap_samples"), own("restart_missing_ms")), (1, 436, 0));
    assert_eq!(SampleFile::open(&path).unwrap().gaps().next().unwrap().length_samples, 436);
}
