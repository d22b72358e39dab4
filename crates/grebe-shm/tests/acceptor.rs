//! Tests admission, grants, and the treatment of misbehaving consumers.
#![cfg(all(any(target_os = "linux", windows), not(loom)))]

use std::path::Path;
use std::time::{Duration, Instant};

use grebe_frame::{Batch, BatchPool, Header};
use grebe_shm::{Error, Policy, Publisher, PublisherOptions, Subscriber, SubscriberOptions, Trust};

#[cfg_attr(target_os = "linux", path = "stranger/linux.rs")]
#[cfg_attr(windows, path = "stranger/windows.rs")]
mod stranger;
use stranger::Stranger;

fn stream(folder: &Path, more: impl FnOnce(&mut PublisherOptions)) -> (Publisher, BatchPool) {
    let mut options = PublisherOptions {
        chunk_bytes: 65_536,
        chunks: 32,
        reserve_chunks: 4,
        rest_chunks: Some(0),
        consumers_max: 2,
        directory: Some(folder.to_owned()),
        ..PublisherOptions::default()
    };
    more(&mut options);
    Publisher::create("x", options).unwrap()
}

fn reader(folder: &Path, policy: Policy) -> Result<Subscriber, Error> {
    let options =
        SubscriberOptions { policy, directory: Some(folder.to_owned()), ..SubscriberOptions::default() };
    Subscriber::connect("x", &options)
}

/// A reader that copies.
fn wary(folder: &Path, policy: Policy) -> Subscriber {
    let directory = Some(folder.to_owned());
    let options =
        SubscriberOptions { policy, directory, trust: Trust::Nobody, ..SubscriberOptions::default() };
    Subscriber::connect("x", &options).unwrap()
}

fn batch(pool: &mut BatchPool, sequence: u64) -> Batch {
    let mut batch = pool.acquire().expect("a free chunk");
    let header = Header { sequence, channel_count: 1, block_length_samples: 1024, ..Header::default() };
    batch.push::<i16>(&header, |_, samples| samples.fill(sequence as i16)).unwrap();
    batch.freeze()
}

/// Waits for something that another thread does soon.
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn this_system_has_shared_memory() {
    grebe_shm::check().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn the_samples_can_be_written_by_nobody_else() {
    use std::os::fd::AsFd;
    let folder = tempfile::tempdir().unwrap();
    let (_publisher, _pool) = stream(folder.path(), |_| ());
    let stranger = Stranger::join(folder.path());
    let payload = &stranger.fds[0];
    assert!(rustix::io::pwrite(payload, b"x", 0).is_err(), "write");
    assert!(rustix::fs::ftruncate(payload, 0).is_err(), "shrink");
    assert!(rustix::fs::ftruncate(&stranger.fds[1], 0).is_err(), "shrink the lane");
    let seals = rustix::fs::fcntl_get_seals(payload.as_fd()).unwrap();
    assert!(seals.contains(rustix::fs::SealFlags::FUTURE_WRITE | rustix::fs::SealFlags::SEAL));
}

#[cfg(windows)]
#[test]
fn the_samples_can_be_written_by_nobody_else() {
    use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
    use windows_sys::Win32::Foundation::DuplicateHandle;
    use windows_sys::Win32::System::{Memory::FILE_MAP_WRITE, Threading::GetCurrentProcess};
    let folder = tempfile::tempdir().unwrap();
    let (_publisher, _pool) = stream(folder.path(), |_| ());
    let stranger = Stranger::join(folder.path());
    assert!(!stranger::write_over(&stranger.memory[0], 1));
    assert!(stranger::write_over(&stranger.memory[1], 1), "the test sees the difference");
    // Nor by a duplicate that asks for more.
    let mut more = std::ptr::null_mut();
    let payload = stranger.memory[0].as_raw_handle();
    // SAFETY: the handles are open, and `more` is valid.
    let is_given = unsafe {
        let own = GetCurrentProcess();
        DuplicateHandle(own, payload, own, &mut more, FILE_MAP_WRITE, 0, 0) != 0
    };
    // SAFETY: just made.
    assert!(!is_given || !stranger::write_over(&unsafe { OwnedHandle::from_raw_handle(more) }, 1));
}

#[test]
fn a_reader_that_writes_garbage_is_cut_off_and_another_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) = stream(folder.path(), |_| ());
    let mut honest = reader(folder.path(), Policy::Block).unwrap();
    let mut stranger = Stranger::join(folder.path());
    assert!(publisher.wait_for_consumers(2, Duration::from_secs(30)));
    for sequence in 0..4 {
        publisher.send(&batch(&mut pool, sequence), || false).unwrap();
    }
    stranger.write_over_its_lane();
    publisher.send(&batch(&mut pool, 4), || false).unwrap();
    let descriptions = stranger.hear();
    assert!(String::from_utf8_lossy(&descriptions).contains("a returned word is"), "{descriptions:?}");
    assert!(stranger.hear().is_empty(), "and hung up");
    let mut seen = Vec::new();
    while let Some(batch) = honest.pop().unwrap() {
        seen.extend(batch.frames().map(|frame| frame.header().sequence));
    }
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    assert!(pool.available() < pool.chunks(), "the liar may still read what it was lent");
    drop(stranger);
    soon("what the liar was lent comes home when it has gone", || {
        publisher.reap();
        pool.available() == pool.chunks()
    });
    let totals = publisher.totals();
    assert_eq!((totals.cut_off, totals.consumers), (1, 1));
}

#[test]
fn a_reader_that_sends_wake_ups_without_a_reason_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let (publisher, _pool) = stream(folder.path(), |_| ());
    let mut stranger = Stranger::join(folder.path());
    stranger.say(b"w");
    let descriptions = stranger.hear();
    assert!(String::from_utf8_lossy(&descriptions).contains("without a reason"), "{descriptions:?}");
    soon("it is gone", || publisher.consumers().is_empty());
}

#[test]
fn whoever_speaks_something_else_is_told_and_sent_away() {
    let folder = tempfile::tempdir().unwrap();
    let (publisher, _pool) = stream(folder.path(), |_| ());
    for (packet, reason) in [
        (&b"GET / HTTP/1.0\r\n"[..], "does not speak this protocol"),
        (&b"GSHM\x01\0\x01\0"[..], "speaks version 1"),
        (&[7; 256][..], "does not speak this protocol"),
    ] {
        let mut stranger = Stranger::connect(folder.path());
        stranger.say(packet);
        let descriptions = stranger.hear();
        assert!(String::from_utf8_lossy(&descriptions).contains(reason), "{descriptions:?}");
        assert!(stranger.hear().is_empty());
    }
    // Silent connections are closed, and meanwhile exclude nobody.
    let silent: Vec<Stranger> = (0..4).map(|_| Stranger::connect(folder.path())).collect();
    assert!(reader(folder.path(), Policy::DropOldest).is_ok());
    for mut stranger in silent {
        assert!(stranger.hear().is_empty(), "hung up after a while");
    }
    assert_eq!(publisher.totals().joined, 1);
}

#[test]
fn readers_beyond_the_number_are_refused_until_one_goes() {
    let folder = tempfile::tempdir().unwrap();
    let (publisher, _pool) = stream(folder.path(), |_| ());
    let (first, _second) =
        (reader(folder.path(), Policy::Block).unwrap(), reader(folder.path(), Policy::DropLatest).unwrap());
    assert!(publisher.wait_for_consumers(2, Duration::from_secs(30)));
    let refused = reader(folder.path(), Policy::DropOldest).unwrap_err().to_string();
    assert!(refused.contains("it has 2 consumers, and takes no more"), "{refused}");
    drop(first);
    soon("its place is free", || publisher.consumers().len() == 1);
    assert!(reader(folder.path(), Policy::DropOldest).is_ok());
}

#[test]
fn a_reader_that_has_gone_makes_room_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (_publisher, _pool) = stream(folder.path(), |options| options.consumers_max = 1);
    let mut last = None;
    for round in 0..1_000 {
        drop(last.take());
        last = match reader(folder.path(), Policy::DropOldest) {
            Ok(reader) => Some(reader),
            Err(error) => panic!("round {round}: {error}"),
        };
    }
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |change: fn(&mut PublisherOptions)| {
        let mut options =
            PublisherOptions { directory: Some(folder.path().to_owned()), ..PublisherOptions::default() };
        change(&mut options);
        Publisher::create("x", options).unwrap_err().to_string()
    };
    assert!(refused(|options| options.chunk_bytes = 100).contains("size of a chunk is 100"));
    assert!(refused(|options| options.consumers_max = 0).contains("number of consumers is 0"));
    // The default number of resting chunks depends on the processor.
    assert!(refused(|options| options.chunks = options.reserve_chunks + 4).contains("number of chunks is "));
    assert!(refused(|options| options.rest_chunks = Some(usize::MAX)).contains("number of chunks is "));
}

#[test]
fn a_batch_outlives_its_subscriber_and_its_producer() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) = stream(folder.path(), |_| ());
    let mut subscriber = reader(folder.path(), Policy::Block).unwrap();
    assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
    publisher.send(&batch(&mut pool, 7), || false).unwrap();
    let batch = subscriber.pop().unwrap().unwrap();
    drop(subscriber);
    publisher.reap();
    assert_eq!(publisher.consumers().len(), 1, "it still reads");
    assert_eq!(pool.available(), pool.chunks() - 1);
    drop((publisher, pool));
    assert!(batch.frames().next().unwrap().channel::<i16>(0).unwrap().iter().all(|&sample| sample == 7));
}

/// Takes every free chunk of the pool and overwrites it.
fn write_over(pool: &mut BatchPool) -> Vec<Batch> {
    let mut written = Vec::new();
    while let Some(mut batch) = pool.acquire() {
        let header = Header { channel_count: 1, block_length_samples: 1024, ..Header::default() };
        batch.push::<i16>(&header, |_, samples| samples.fill(-1)).unwrap();
        written.push(batch.freeze());
    }
    written
}

/// Value of each batch's samples; -2 if they differ.
fn values(batches: &[Batch]) -> Vec<i16> {
    let value = |batch: &Batch| {
        let samples = batch.frames().next().unwrap().channel::<i16>(0).unwrap().into_owned();
        if samples.iter().all(|&sample| sample == samples[0]) { samples[0] } else { -2 }
    };
    batches.iter().map(value).collect()
}

#[test]
fn what_a_reader_holds_stays_after_it_was_cut_off_and_it_takes_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) =
        stream(folder.path(), |options| options.block_timeout = Duration::from_millis(20));
    let mut slow = reader(folder.path(), Policy::Block).unwrap();
    assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
    let mut held = Vec::new();
    for sequence in 1..20 {
        publisher.send(&batch(&mut pool, sequence), || false).unwrap();
        if held.len() < 6 {
            held.extend(slow.pop().unwrap());
        }
    }
    assert_eq!((publisher.totals().cut_off, publisher.totals().consumers), (1, 0));
    let written = write_over(&mut pool);
    assert!(!written.is_empty());
    assert_eq!(values(&held), [1, 2, 3, 4, 5, 6]);
    let error = slow.pop().unwrap_err();
    assert!(matches!(&error, Error::CutOff { reason, .. } if reason.contains("accepted nothing")), "{error}");
    assert!(matches!(slow.pop(), Err(Error::CutOff { .. })), "and never again");
    assert!(matches!(slow.wait(Duration::from_secs(1)), Err(Error::CutOff { .. })));
    // It keeps its slot and its memory until it has gone.
    drop((slow, written));
    assert!(pool.available() < pool.chunks());
    drop(held);
    soon("what it held comes home", || pool.available() == pool.chunks());
}

#[test]
fn readers_that_were_cut_off_keep_their_place_until_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) = stream(folder.path(), |options| {
        options.block_timeout = Duration::from_millis(1);
        options.consumers_max = 1;
    });
    let slow = reader(folder.path(), Policy::Block).unwrap();
    assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
    let mut sequence = 0;
    while publisher.totals().cut_off == 0 {
        publisher.send(&batch(&mut pool, sequence), || false).unwrap();
        sequence += 1;
    }
    let refused = reader(folder.path(), Policy::Block).unwrap_err().to_string();
    assert!(refused.contains("(1 were cut off and still hold memory)"), "{refused}");
    drop(slow);
    soon("its place is free", || reader(folder.path(), Policy::Block).is_ok());
}

#[test]
fn what_readers_were_lent_stays_after_the_publisher_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) = stream(folder.path(), |_| ());
    let mut ends = reader(folder.path(), Policy::Block).unwrap();
    let _idle = reader(folder.path(), Policy::DropOldest).unwrap();
    assert!(publisher.wait_for_consumers(2, Duration::from_secs(30)));
    for sequence in 1..=4 {
        publisher.send(&batch(&mut pool, sequence), || false).unwrap();
    }
    let mut held = vec![ends.pop().unwrap().unwrap()];
    publisher.end(None);
    drop(publisher);
    assert_eq!(grebe_shm::streams(Some(folder.path())).unwrap(), [""; 0], "the name is free at once");
    let written = write_over(&mut pool);
    while let Some(batch) = ends.pop().unwrap() {
        held.push(batch);
    }
    assert_eq!(values(&held), [1, 2, 3, 4]);
    assert!(ends.is_ended());
    drop((ends, held, _idle, written));
    soon("all comes home once they have gone", || pool.available() == pool.chunks());
}

#[test]
fn a_copy_is_the_readers_own_and_its_chunk_is_free_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) = stream(folder.path(), |_| ());
    let mut wary = wary(folder.path(), Policy::Block);
    assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
    publisher.send(&batch(&mut pool, 7), || false).unwrap();
    let copy = wary.pop().unwrap().unwrap();
    publisher.reap();
    assert_eq!(pool.available(), pool.chunks());
    drop(write_over(&mut pool));
    assert_eq!((values(&[copy]), wary.refused_frames(), wary.is_copied()), (vec![7], 0, true));
    assert!(wary.pop().unwrap().is_none(), "no more waits");
}

#[test]
fn whoever_holds_all_copies_gets_nothing_more_until_one_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) = stream(folder.path(), |_| ());
    let mut wary = wary(folder.path(), Policy::DropOldest);
    assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
    let copies = u64::from(wary.quota_chunks());
    assert!(copies >= 8);
    let mut held: Vec<_> = (0..copies)
        .map(|sequence| {
            publisher.send(&batch(&mut pool, sequence), || false).unwrap();
            wary.pop().unwrap().unwrap()
        })
        .collect();
    publisher.send(&batch(&mut pool, copies), || false).unwrap();
    publisher.end(None);
    assert!(wary.pop().unwrap().is_none());
    assert!(!wary.wait(Duration::from_millis(1)).unwrap() && !wary.is_ended());
    drop(held.remove(0));
    assert!(wary.wait(Duration::from_secs(30)).unwrap());
    held.extend(wary.pop().unwrap());
    assert_eq!(values(&held), (1..=copies as i16).collect::<Vec<_>>());
    assert!(wary.is_ended());
}

#[test]
fn a_batch_of_another_pool_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, _pool) = stream(folder.path(), |_| ());
    let error = publisher.send(&batch(&mut BatchPool::new(1, 65_536), 0), || false).unwrap_err();
    assert!(matches!(error, Error::ForeignBatch { .. }));
}

#[test]
fn a_late_reader_begins_with_the_newest_and_learns_of_the_tail() {
    let folder = tempfile::tempdir().unwrap();
    let (mut publisher, mut pool) = stream(folder.path(), |_| ());
    for sequence in 0..10 {
        publisher.send(&batch(&mut pool, sequence), || false).unwrap();
    }
    let mut late = reader(folder.path(), Policy::Block).unwrap();
    assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
    let last = batch(&mut pool, 10);
    publisher.send(&last, || false).unwrap();
    let end = last.frames().next().unwrap().header().end_of_stream(1);
    publisher.end(Some(&end));
    assert_eq!(late.pop().unwrap().unwrap().frames().next().unwrap().header().sequence, 10);
    assert!(late.is_ended());
    assert_eq!(late.end_header().unwrap().sequence, 11);
    let refused = reader(folder.path(), Policy::Block).unwrap_err().to_string();
    assert!(refused.contains("has ended"), "{refused}");
}
