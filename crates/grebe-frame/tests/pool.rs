//! Pools and imports as their users see them.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use grebe_frame::{BatchPool, Header, TrustedBatchImport};
use grebe_ring::{Memory, Signal};

const CHUNK_BYTES: usize = 256;

/// Stands for memory that another process lends.
#[repr(align(64))]
struct Lent([u8; 2 * CHUNK_BYTES]);

// SAFETY: boxed, so it stays in place; aligned to 64 bytes; nothing writes to it after its creation.
unsafe impl Memory for Lent {
    fn base(&self) -> NonNull<u8> {
        NonNull::from(&self.0).cast()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

fn header(sequence: u64, block_length_samples: u32) -> Header {
    Header { sequence, channel_count: 1, block_length_samples, ..Header::default() }
}

/// A frame of 8 samples at byte 0 of the first chunk, one of 32 samples that ends with it, one in the second chunk.
fn lent() -> Lent {
    let mut lent = Lent([0; 2 * CHUNK_BYTES]);
    for (at, header) in [(0, header(1, 8)), (128, header(2, 32)), (CHUNK_BYTES, header(3, 8))] {
        let head: &mut [u8; 64] = (&mut lent.0[at..at + 64]).try_into().unwrap();
        header.write(head);
    }
    lent
}

#[test]
fn a_pool_counts_its_chunks_and_wakes_who_waits_for_one() {
    let mut pool = BatchPool::new(2, 250);
    let signal = Arc::new(Signal::new());
    pool.wake_on_return(signal.clone());
    assert_eq!(
        (pool.chunks(), pool.available(), pool.has_free(), pool.chunk_bytes()),
        (2, 2, true, CHUNK_BYTES)
    );
    let (first, second) = (pool.acquire().unwrap(), pool.acquire().unwrap());
    assert_eq!((pool.chunks(), pool.available(), pool.has_free()), (2, 0, false));
    assert!(pool.acquire().is_none());
    let timeout = Duration::from_secs(100);
    let returned = Arc::new(AtomicBool::new(false));
    let (seen, asked) = (returned.clone(), Instant::now());
    let waiting = std::thread::spawn(move || signal.wait(timeout, || seen.load(Ordering::Acquire)));
    std::thread::sleep(Duration::from_millis(50)); // by now it most likely sleeps; where not, the test asks less
    returned.store(true, Ordering::Release);
    drop(first.freeze());
    assert!(waiting.join().unwrap());
    assert!(asked.elapsed() < timeout, "a chunk that comes back wakes who waits");
    assert_eq!((pool.available(), pool.has_free()), (1, true));
    drop(second);
    assert_eq!(pool.available(), 2);
}

#[test]
fn an_import_reads_only_frames_that_are_whole_and_says_how_many_it_refused() {
    let returned = Arc::new(AtomicU32::new(u32::MAX));
    let home = returned.clone();
    let mut import = TrustedBatchImport::new(Box::new(lent()), CHUNK_BYTES, move |index| {
        home.store(index, Ordering::Relaxed)
    });

    let (batch, refused) = import.batch(0, [0, 128].into_iter()).unwrap();
    assert_eq!((batch.len(), refused), (2, 0));
    let sequences: Vec<u64> = batch.frames().map(|frame| frame.header().sequence).collect();
    assert_eq!(sequences, [1, 2]);
    assert!(import.batch(0, [0].into_iter()).is_none(), "the chunk is held");
    assert!(import.batch(2, [0].into_iter()).is_none(), "an unknown chunk");
    drop(batch);
    assert_eq!(returned.load(Ordering::Relaxed), 0, "nobody reads chunk 0 any more");

    // No header there; behind the chunk; at its end; and a frame that would reach 64 bytes into the next chunk.
    let (batch, refused) = import.batch(0, [64, 1000, 255].into_iter()).unwrap();
    assert_eq!((batch.len(), refused), (0, 3));
    drop(batch);
    // The same frame again and again: the table has places for as many headers as the chunk could hold, and one.
    let (batch, refused) = import.batch(0, [0; 9].into_iter()).unwrap();
    assert_eq!((batch.len(), refused), (5, 4));
    drop(batch);
    let mut long = lent();
    let head: &mut [u8; 64] = (&mut long.0[192..CHUNK_BYTES]).try_into().unwrap();
    header(4, 32).write(head);
    let mut import = TrustedBatchImport::new(Box::new(long), CHUNK_BYTES, |_| ());
    let (batch, refused) = import.batch(0, [192, 0].into_iter()).unwrap();
    assert_eq!((batch.len(), refused), (1, 1), "a frame that reaches beyond its chunk is refused");
}
