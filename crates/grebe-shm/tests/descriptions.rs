//! Tests descriptions of a stream, and their end.
#![cfg(all(any(target_os = "linux", target_os = "macos", windows), not(loom)))]

use std::sync::Arc;
use std::time::Duration;

use grebe_frame::{Batch, BatchPool, Description, Header};
use grebe_shm::{Policy, Publisher, PublisherOptions, Subscriber, SubscriberOptions};

/// Frame of the stream that began at `producer_ts_ns`.
fn batch(pool: &mut BatchPool, first_sample_index: u64, producer_ts_ns: u64, name: Option<&str>) -> Batch {
    let mut batch = pool.acquire().expect("a free chunk");
    let header = Header {
        sequence: first_sample_index / 8,
        producer_ts_ns,
        channel_count: 1,
        block_length_samples: 8,
        first_sample_index,
        ..Header::default()
    };
    batch.push::<i16>(&header, |_, samples| samples.fill(1)).unwrap();
    let described = |name: &str| Arc::new(Description { name: Some(name.into()), ..Description::default() });
    batch.describe(name.map(described).as_ref());
    batch.freeze()
}

fn heard(subscriber: &mut Subscriber) -> Vec<Option<String>> {
    let mut names = Vec::new();
    while subscriber.wait(Duration::from_millis(1)).unwrap() {
        let batch = subscriber.pop().unwrap().unwrap();
        names.push(batch.description().map(|description| description.name.clone().unwrap()));
    }
    names
}

#[test]
fn a_new_stream_that_says_nothing_is_not_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        PublisherOptions { directory: Some(folder.path().to_owned()), ..PublisherOptions::default() };
    let (mut publisher, mut pool) = Publisher::create("x", options).unwrap();
    let connect = || {
        let directory = Some(folder.path().to_owned());
        let options = SubscriberOptions { policy: Policy::Block, directory, ..SubscriberOptions::default() };
        Subscriber::connect("x", &options).unwrap()
    };
    let mut reader = connect();
    // The rest of the first stream is taken after the second has begun.
    for (index, stamp, name) in [(80, 1_000, Some("first")), (88, 1_010, Some("first")), (0, 2_000, None)] {
        publisher.send(&batch(&mut pool, index, stamp, name), || false).unwrap();
    }
    let first = || Some("first".to_owned());
    assert_eq!(heard(&mut reader), [first(), first(), None]);
    let mut late = connect();
    publisher.send(&batch(&mut pool, 8, 2_010, None), || false).unwrap();
    assert_eq!(heard(&mut late), [None]);
    publisher.send(&batch(&mut pool, 0, 3_000, Some("third")), || false).unwrap();
    assert_eq!(heard(&mut reader), [None, Some("third".to_owned())]);
    assert_eq!(late.refused_frames() + reader.refused_frames(), 0);
}
