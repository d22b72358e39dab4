//! When samples were made: from a producer's clock into a recording, and from there into the stream that is played.

use std::sync::Arc;

use grebe_frame::{Batch, ClockReading, Description};
use grebe_testing::stream::batches_of;

use super::formats::{played, recorded};
use super::*;

/// 2026-01-02T03:04:05Z.
const THEN_NS: i64 = 1_767_323_045_000_000_000;

fn described(batches: Vec<Batch>, description: Description) -> Vec<Batch> {
    let description = Arc::new(description);
    let of = |batch: Batch| {
        let mut batch = batch.try_unique().unwrap();
        batch.describe(Some(&description));
        batch.freeze()
    };
    batches.into_iter().map(of).collect()
}

/// A clock that stamps sample 0 of [`batches_of`] at [`THEN_NS`].
fn clock(error_ns: Option<u64>) -> Description {
    let clock = ClockReading { producer_ts_ns: 1_000_000, unix_time_ns: THEN_NS, error_ns, clock: None };
    Description { clock: Some(clock), ..Description::default() }
}

fn times(path: &Path) -> Vec<(Option<String>, Option<u64>)> {
    let captures = read_json(path)["captures"].as_array().unwrap().clone();
    let of = |it: &Value| {
        (it["core:datetime"].as_str().map(str::to_owned), it["grebe:datetime_error_ns"].as_u64())
    };
    captures.iter().map(of).collect()
}

#[test]
fn each_capture_has_its_time_to_the_sample_and_playing_it_gives_it_back() {
    let (folder, path) = scratch("a.sigmf-meta");
    let sent = described(batches_of(1, &[(0, 64), (500_000, 64), (500_064, 64)], 2), clock(Some(30_500)));
    recorded(&path, &sent);
    let expected = [
        (Some("2026-01-02T03:04:05.000000Z".to_owned()), Some(30_500)),
        (Some("2026-01-02T03:04:05.500000Z".to_owned()), Some(30_500)),
    ];
    assert_eq!(times(&path), expected);
    validate(&path);

    let batches = played(&path);
    for batch in &batches {
        let description = batch.description().unwrap();
        assert_eq!(description.clock, None, "it is not made now");
        let header = batch.frames().next().unwrap().header();
        let time = description.time_of(&header, header.first_sample_index).unwrap();
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since.as_nanos(), THEN_NS as u128 + u128::from(header.first_sample_index) * 1_000);
        assert_eq!(description.time_error_ns(), Some(30_500));
    }
    let again = folder.path().join("b.sigmf-meta");
    recorded(&again, &batches);
    assert_eq!(times(&again), expected);
    let copy = folder.path().join("c.sigmf-meta");
    SampleFile::open(&again).unwrap().save_as(&copy, &Default::default(), &Default::default()).unwrap();
    assert_eq!(times(&copy), expected);
}

#[test]
fn a_loss_on_the_way_of_a_played_recording_changes_no_time() {
    let (folder, path) = scratch("a.sigmf-meta");
    recorded(&path, &described(batches_of(1, &[(0, 9_000)], 1), clock(None)));
    let mut batches = played(&path);
    assert!(batches.len() == 1 && batches[0].len() > 2);
    let frames: Vec<u64> = batches[0].frames().map(|frame| frame.header().first_sample_index).collect();
    let description = batches.remove(0).description().cloned().unwrap();
    // The stream as received: without the second frame.
    let lost = stream_without(&frames);
    let out = folder.path().join("b.sigmf-meta");
    recorded(&out, &described(lost, (*description).clone()));
    let second = format!("2026-01-02T03:04:05.{:06}Z", frames[2]);
    assert_eq!(times(&out)[1].0.as_deref(), Some(second.as_str()));
}

fn stream_without(frames: &[u64]) -> Vec<Batch> {
    batches_of(1, &[(0, frames[1] as u32), (frames[2], 64)], 1)
}

#[test]
fn a_recording_without_times_is_played_without_and_one_with_a_restart_has_those_that_are_known() {
    let (_folder, path) = scratch("a.sigmf-meta");
    let meta = |captures: Value| {
        let meta = json!({
            "global": {"core:datatype": "ri8", "core:version": "1.2.0", "core:sample_rate": 1_000},
            "captures": captures,
        });
        fs::write(&path, meta.to_string()).unwrap();
        fs::write(path.with_extension("sigmf-data"), [1; 300]).unwrap();
    };
    let heard = || -> Vec<(u64, Option<SystemTime>)> {
        let mut heard = Vec::new();
        for batch in played(&path) {
            for header in batch.frames().map(|frame| frame.header()) {
                let said = batch.description();
                let time = said.and_then(|said| said.time_of(&header, header.first_sample_index));
                heard.push((header.first_sample_index, time));
            }
        }
        heard
    };
    meta(json!([{"core:sample_start": 0}]));
    assert!(heard().iter().all(|(_, time)| time.is_none()));
    let at = |ms: u64| Some(SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
    meta(json!([
        {"core:sample_start": 0, "core:global_index": 1_000},
        {"core:sample_start": 100, "core:global_index": 2_000, "core:datetime": "1970-01-01T00:00:05Z"},
        {"core:sample_start": 150, "core:global_index": 2_100},
        {"core:sample_start": 200, "core:global_index": 7},
    ]));
    let expected = [(1_000, None), (2_000, at(5_000)), (2_100, at(5_100)), (7, None)];
    let heard = heard();
    for expected in expected {
        assert!(heard.contains(&expected), "{expected:?} in {heard:?}");
    }
}

#[test]
fn times_are_as_fine_as_the_samples() {
    use super::super::layout::datetime;
    use crate::sample_file::RecordedAt;
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_040);
    let known_to = |error_ns| RecordedAt { time, error_ns, axis: None };
    assert_eq!(datetime(known_to(None), 1e6).unwrap(), "1970-01-01T00:00:00.000001Z");
    assert_eq!(datetime(known_to(Some(1_000)), 1e6).unwrap(), "1970-01-01T00:00:00.000001Z");
    assert_eq!(datetime(known_to(Some(999)), 1e6).unwrap(), "1970-01-01T00:00:00.000001040Z");
    assert_eq!(datetime(known_to(None), 25e6).unwrap(), "1970-01-01T00:00:00.000001040Z");
}
