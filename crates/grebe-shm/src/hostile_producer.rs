//! Tests a producer that writes to lent chunks, with each kind of reader.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use grebe_frame::{Batch, BatchPool, HEADER_BYTES, Header};
use grebe_ring::Policy;
use proptest::prelude::*;

use crate::options::{PublisherOptions, SubscriberOptions, Trust};
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::sync::{Ordering, Words};

const CHUNK_BYTES: usize = 4096;

fn publisher(folder: &Path, allow_uids: Vec<u32>) -> (Publisher, BatchPool) {
    let options = PublisherOptions {
        chunk_bytes: CHUNK_BYTES,
        chunks: 16,
        reserve_chunks: 4,
        rest_chunks: Some(0),
        consumers_max: 1,
        allow_uids,
        directory: Some(folder.to_owned()),
        ..PublisherOptions::default()
    };
    Publisher::create("x", options).unwrap()
}

fn subscriber(folder: &Path, trust: Trust) -> Subscriber {
    let directory = Some(folder.to_owned());
    let options =
        SubscriberOptions { policy: Policy::Block, trust, directory, ..SubscriberOptions::default() };
    Subscriber::connect("x", &options).unwrap()
}

fn header(sequence: u64, block_length_samples: u32) -> Header {
    Header { sequence, channel_count: 1, block_length_samples, ..Header::default() }
}

/// The chunks, writable for a producer that keeps no promise.
fn chunks(publisher: &Publisher, pool: &BatchPool) -> Words {
    publisher.payload.words(0, pool.chunks() * CHUNK_BYTES / 8)
}

/// Present header and payload of each frame.
fn bytes(batch: &Batch) -> Vec<Vec<u8>> {
    batch.frames().map(|frame| [&frame.header_bytes()[..], frame.payload()].concat()).collect()
}

/// Sends and pops a frame, lets the producer overwrite all of its memory, and returns whether the frame is
/// unchanged.
fn is_kept(publisher: &mut Publisher, pool: &mut BatchPool, subscriber: &mut Subscriber) -> bool {
    let mut batch = pool.acquire().unwrap();
    batch.push::<i16>(&header(1, 100), |_, samples| samples.fill(7)).unwrap();
    publisher.send(&batch.freeze(), || false).unwrap();
    let popped = subscriber.pop().unwrap().unwrap();
    let before = bytes(&popped);
    assert_eq!((before.len(), before[0].len()), (1, HEADER_BYTES + 200));
    let chunks = chunks(publisher, pool);
    (0..chunks.len()).for_each(|word| chunks.at(word).store(u64::MAX, Ordering::Relaxed));
    bytes(&popped) == before
}

#[test]
fn what_is_copied_stays_whatever_its_producer_writes() {
    for (trust, kept) in [(Trust::Nobody, true), (Trust::OwnUser, false)] {
        let folder = tempfile::tempdir().unwrap();
        let (mut publisher, mut pool) = publisher(folder.path(), Vec::new());
        let mut subscriber = subscriber(folder.path(), trust);
        assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
        assert_eq!(subscriber.is_copied(), kept);
        assert_eq!(is_kept(&mut publisher, &mut pool, &mut subscriber), kept);
    }
}

#[test]
fn frames_that_change_while_they_are_copied_pass_their_checks_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) = publisher(folder.path(), Vec::new());
    let mut subscriber = subscriber(folder.path(), Trust::Nobody);
    assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
    let mut heads = [[0; HEADER_BYTES]; 2];
    header(1, 8).write(&mut heads[0]);
    header(2, 1_900).write(&mut heads[1]);
    let chunks = chunks(&publisher, &pool);
    let is_done = AtomicBool::new(false);
    let (mut taken, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        // Alternates two headers, each valid, word by word; a read in between gives neither.
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                for head in &heads {
                    for chunk in (0..chunks.len()).step_by(CHUNK_BYTES / 8) {
                        for (at, word) in head.chunks_exact(8).enumerate() {
                            let word = u64::from_ne_bytes(word.try_into().unwrap());
                            chunks.at(chunk + at).store(word, Ordering::Relaxed);
                        }
                    }
                }
            }
        });
        for _ in 0..SENT {
            let mut batch = pool.acquire().unwrap();
            batch.adopt(0, &header(0, 16)).unwrap();
            publisher.send(&batch.freeze(), || false).unwrap();
            let batch = subscriber.pop().unwrap().unwrap();
            for frame in batch.frames() {
                let found = Header::parse(frame.header_bytes()).unwrap();
                assert_eq!(frame.payload().len() + HEADER_BYTES, found.frame_bytes());
                let samples = frame.channel::<i16>(0).unwrap().len();
                assert_eq!(samples, found.block_length_samples as usize);
                taken += 1;
            }
            refused = subscriber.refused_frames();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(taken + refused, SENT);
}

#[test]
fn small_frames_that_lie_back_to_back_are_all_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) = publisher(folder.path(), Vec::new());
    let mut subscriber = subscriber(folder.path(), Trust::Nobody);
    assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
    for samples in [0, 1, 5, 10, 33] {
        let mut batch = pool.acquire().unwrap();
        let frame_bytes = header(0, samples).frame_bytes();
        let frames = CHUNK_BYTES / frame_bytes;
        for frame in 0..frames {
            let at = frame * frame_bytes;
            let header = header(frame as u64, samples);
            header.write((&mut batch.chunk()[at..at + HEADER_BYTES]).try_into().unwrap());
            batch.chunk()[at + HEADER_BYTES..at + frame_bytes].fill(frame as u8);
            batch.adopt(at, &header).unwrap();
        }
        let batch = batch.freeze();
        publisher.send(&batch, || false).unwrap();
        let copy = subscriber.pop().unwrap().unwrap();
        assert_eq!((copy.len(), subscriber.refused_frames()), (frames, 0), "{samples} samples");
        assert_eq!(bytes(&copy), bytes(&batch));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any chunk and table: each frame is taken whole, once and unchanged, or refused.
    #[test]
    fn garbage_is_refused_and_the_rest_is_taken(
        offsets in prop::collection::vec((0u32..CHUNK_BYTES as u32 + 128, 0u32..3000), 1..12),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut publisher, mut pool) = publisher(folder.path(), Vec::new());
        let mut subscriber = subscriber(folder.path(), Trust::Nobody);
        prop_assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
        let mut batch = pool.acquire().unwrap();
        let mut entered = 0;
        for &(at, samples) in &offsets {
            let header = header(u64::from(at), samples);
            if let Some(head) = batch.chunk().get_mut(at as usize..at as usize + HEADER_BYTES) {
                header.write(head.try_into().unwrap());
            }
            entered += u64::from(batch.adopt(at as usize, &header).is_ok());
        }
        publisher.send(&batch.freeze(), || false).unwrap();
        let copy = subscriber.pop().unwrap().unwrap();
        let mut end = 0;
        for (frame, at) in copy.frames().zip(copy.offsets()) {
            let found = Header::parse(frame.header_bytes()).unwrap();
            prop_assert!(at >= end);
            end = at + found.frame_bytes() as u32;
            prop_assert!(end as usize <= CHUNK_BYTES);
        }
        prop_assert_eq!(copy.len() as u64 + subscriber.refused_frames(), entered);
    }
}

#[cfg(target_os = "linux")]
mod other_users {
    use rustix::fs::{Gid, Uid};

    use super::*;

    #[test]
    fn a_stream_of_another_user_is_copied() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can make a stream of another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        rustix::fs::chown(path, Some(Uid::from_raw(OTHER)), Some(Gid::from_raw(OTHER))).unwrap();
        // Changes the user of one thread and its children.
        let other = || {
            let uid = Uid::from_raw(OTHER);
            rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            publisher(path, vec![0])
        };
        let (mut publisher, mut pool) = std::thread::scope(|scope| scope.spawn(other).join().unwrap());
        let mut subscriber = subscriber(path, Trust::OwnUser);
        assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
        assert!(subscriber.is_copied());
        assert!(is_kept(&mut publisher, &mut pool, &mut subscriber));
    }

    #[test]
    fn a_user_that_was_not_admitted_gets_nothing() {
        use std::os::unix::fs::MetadataExt;
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can make a stream of another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        rustix::fs::chown(path, Some(Uid::from_raw(OTHER)), Some(Gid::from_raw(OTHER))).unwrap();
        let other = || {
            let uid = Uid::from_raw(OTHER);
            rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            publisher(path, Vec::new())
        };
        let _producer = std::thread::scope(|scope| scope.spawn(other).join().unwrap());
        assert_eq!(std::fs::metadata(path.join("x.shm")).unwrap().mode() & 0o777, 0o600);
        // Root passes the mode, but not the producer.
        let options = SubscriberOptions { directory: Some(path.to_owned()), ..SubscriberOptions::default() };
        let refused = Subscriber::connect("x", &options).err().map(|error| error.to_string());
        assert!(refused.as_ref().is_some_and(|why| why.contains("not for user 0")), "{refused:?}");
    }

    #[test]
    fn memory_that_another_user_made_is_copied_whoever_hands_it_over() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give memory to another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (publisher, _pool) = publisher(folder.path(), Vec::new());
        let other = Some(Uid::from_raw(OTHER));
        rustix::fs::fchown(&publisher.state.payload, other, None).unwrap();
        assert!(subscriber(folder.path(), Trust::OwnUser).is_copied());
    }

    /// A user that no system has.
    const OTHER: u32 = 54_321;
}

const SENT: u64 = 5_000;
