//! A long-running stream allocates nothing and leaks nothing.
#![cfg(all(target_os = "linux", not(loom)))]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use grebe_frame::{BatchPool, HEADER_BYTES, Header};
use grebe_shm::{Policy, Publisher, PublisherOptions, Subscriber, SubscriberOptions};
use grebe_testing::{CountingAllocator, allocations_of_this_thread};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn twenty_million_frames_allocate_nothing_and_leak_nothing() {
    run(20_000_000);
}

/// `cargo test --release -p grebe-shm --test steady -- --ignored --nocapture`
#[test]
#[ignore = "half a minute"]
fn a_billion_frames_allocate_nothing_and_leak_nothing() {
    run(1_000_000_000);
}

/// Sends small frames through a stream with a blocking reader that sees each.
fn run(frames: u64) {
    let folder = tempfile::tempdir().unwrap();
    let directory = Some(folder.path().to_owned());
    let options =
        PublisherOptions { directory: directory.clone(), consumers_max: 1, ..PublisherOptions::default() };
    let (mut publisher, mut pool) = Publisher::create("x", options).unwrap();
    let began = Instant::now();
    let reader = std::thread::spawn(move || read(directory.as_deref().unwrap(), frames));
    assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
    // Allocations and mappings at the beginning belong to the stream.
    let warm = frames / 20;
    let mut sequence = 0;
    send(&mut publisher, &mut pool, &mut sequence, warm);
    let (memory, files, allocations) = (resident_kib(), open_files(), allocations_of_this_thread());
    send(&mut publisher, &mut pool, &mut sequence, frames);
    assert_eq!(allocations_of_this_thread() - allocations, 0, "the producer allocates");
    let grown_kib = resident_kib().saturating_sub(memory);
    let files_more = open_files().saturating_sub(files);
    publisher.end(None);
    assert_eq!(reader.join().unwrap(), 0, "the consumer allocates");
    let until = Instant::now() + Duration::from_secs(30);
    // The last batches rest with the producer.
    while pool.available() < pool.chunks() - PublisherOptions::default().resting_chunks() {
        assert!(Instant::now() < until, "{} of {} chunks came home", pool.available(), pool.chunks());
        publisher.reap();
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{frames} frames in {seconds:.1} s ({:.1} M/s): 0 allocations, {grown_kib} KiB more resident, {files_more} more open files, \
         all {} chunks home",
        frames as f64 / seconds / 1e6,
        pool.chunks(),
    );
    assert!(grown_kib < 1024, "{grown_kib} KiB more after {frames} frames");
    assert_eq!(files_more, 0);
}

fn send(publisher: &mut Publisher, pool: &mut BatchPool, sequence: &mut u64, until: u64) {
    while *sequence < until {
        let Some(mut batch) = pool.acquire() else {
            publisher.reap();
            std::thread::yield_now();
            continue;
        };
        for at in (0..batch.capacity_bytes() / FRAME_BYTES).map(|frame| frame * FRAME_BYTES) {
            let header = Header {
                sequence: *sequence,
                channel_count: 1,
                block_length_samples: ((FRAME_BYTES - HEADER_BYTES) / 2) as u32,
                first_sample_index: *sequence * ((FRAME_BYTES - HEADER_BYTES) / 2) as u64,
                ..Header::default()
            };
            let place = &mut batch.chunk()[at..at + FRAME_BYTES];
            if let Some((head, payload)) = place.split_first_chunk_mut::<HEADER_BYTES>() {
                header.write_unchecked(head);
                payload.fill(*sequence as u8);
            }
            batch.adopt(at, &header).unwrap();
            *sequence += 1;
        }
        publisher.send(&batch.freeze(), || false).unwrap();
    }
}

/// Allocations of the reader between its first and last batches.
fn read(directory: &Path, frames: u64) -> u64 {
    let options = SubscriberOptions {
        policy: Policy::Block,
        directory: Some(directory.to_owned()),
        ..SubscriberOptions::default()
    };
    let mut subscriber = Subscriber::connect("x", &options).unwrap();
    let (mut next, mut batches, mut before) = (0, 0, 0);
    while !subscriber.is_ended() {
        while let Some(batch) = subscriber.pop().unwrap() {
            for frame in batch.frames() {
                assert_eq!(frame.header().sequence, next);
                assert!(frame.payload().iter().all(|&byte| byte == next as u8));
                next += 1;
            }
            batches += 1;
            if batches == 16 {
                before = allocations_of_this_thread();
            }
        }
        if next < frames {
            subscriber.wait(Duration::from_millis(100)).unwrap();
        } else {
            break;
        }
    }
    let allocations = allocations_of_this_thread() - before;
    assert!(next >= frames);
    allocations
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

const FRAME_BYTES: usize = 128;
