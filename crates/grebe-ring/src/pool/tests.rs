use std::sync::{Arc, Mutex};

use super::*;

#[test]
fn the_chunk_given_back_last_is_taken_first() {
    let mut pool = Pool::new(4, 64, || ());
    let chunks: Vec<_> = (0..4).map(|_| pool.acquire().unwrap()).collect();
    assert!(pool.acquire().is_none());
    let order: Vec<u32> = [2, 0, 3, 1].into_iter().collect();
    let mut chunks: Vec<Option<_>> = chunks.into_iter().map(Some).collect();
    for &index in &order {
        chunks[index as usize] = None;
    }
    let again: Vec<u32> =
        (0..4).map(|_| pool.acquire().unwrap()).map(|chunk| chunk.freeze().index()).collect();
    // Each was dropped at once, so the hottest chunk comes again and again.
    assert_eq!(again, [1, 1, 1, 1]);
}

#[test]
fn only_a_sole_lease_can_be_written_again() {
    let mut pool = Pool::new(1, 64, || 0_u8);
    let lease = pool.acquire().unwrap().freeze();
    let other = lease.clone();
    let lease = lease.try_unique().unwrap_err();
    drop(other);
    assert!(lease.try_unique().is_ok());
}

#[test]
fn leases_outlive_their_pool_and_memory_is_freed_once() {
    let token = Arc::new(());
    let meta = token.clone();
    let mut pool = Pool::new(3, 64, move || meta.clone());
    let mut chunk = pool.acquire().unwrap();
    chunk.bytes_mut()[0] = 7;
    let lease = chunk.freeze();
    let other = pool.acquire().unwrap().freeze();
    drop(pool);
    drop(other);
    assert_eq!(lease.bytes()[0], 7);
    drop(lease);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn chunks_come_home_from_other_threads() {
    let mut pool = Pool::new(8, 64, || ());
    let (tx, rx) = std::sync::mpsc::channel::<Lease<()>>();
    let reader = std::thread::spawn(move || rx.into_iter().map(|lease| lease.bytes()[0] as u64).sum::<u64>());
    let (mut sent, mut sum) = (0u64, 0);
    while sent < 100_000 {
        match pool.acquire() {
            None => std::thread::yield_now(),
            Some(mut chunk) => {
                chunk.bytes_mut()[0] = sent as u8;
                sum += u64::from(sent as u8);
                tx.send(chunk.freeze()).unwrap();
                sent += 1;
            }
        }
    }
    drop(tx);
    assert_eq!(reader.join().unwrap(), sum);
    assert_eq!(pool.available(), 8);
}

#[test]
fn an_import_says_once_that_a_chunk_may_go_home_and_refuses_one_it_holds() {
    let home = Arc::new(Mutex::new(Vec::new()));
    let told = home.clone();
    let mut import = TrustedImport::<u32>::new(
        Box::new(Heap::zeroed(256)),
        64,
        || 0,
        move |index| told.lock().unwrap().push(index),
    );
    let lease = import.lease(2, |meta, bytes| *meta = bytes.len() as u32).unwrap();
    assert_eq!(*lease.meta(), 64);
    assert!(import.lease(2, |_, _| ()).is_none());
    assert!(import.lease(4, |_, _| ()).is_none());
    let clone = lease.clone();
    drop(lease);
    assert!(home.lock().unwrap().is_empty());
    // Memory of another process is never written, not even by a sole holder.
    drop(clone.try_unique().unwrap_err());
    assert_eq!(*home.lock().unwrap(), [2]);
}

#[test]
fn a_pool_counts_its_chunks_and_wakes_who_waits_for_one() {
    let mut pool = Pool::new(3, 100, || ());
    let signal = Arc::new(Signal::new());
    pool.wake_on_return(signal.clone());
    assert_eq!((pool.chunks(), pool.chunk_bytes(), pool.available(), pool.has_free()), (3, 128, 3, true));
    let lent: Vec<_> = (0..3).map(|_| pool.acquire().unwrap()).collect();
    assert_eq!((pool.chunks(), pool.available(), pool.has_free()), (3, 0, false));
    let (timeout, asked) = (std::time::Duration::from_secs(100), std::time::Instant::now());
    let returned = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = returned.clone();
    let waiting =
        std::thread::spawn(move || signal.wait(timeout, || seen.load(std::sync::atomic::Ordering::Acquire)));
    std::thread::sleep(std::time::Duration::from_millis(50)); // asleep by now; else the test checks less
    returned.store(true, std::sync::atomic::Ordering::Release);
    drop(lent);
    assert!(waiting.join().unwrap());
    assert!(asked.elapsed() < timeout, "a chunk that comes back wakes who waits");
    assert_eq!((pool.available(), pool.has_free()), (3, true));
}

#[test]
fn chunks_are_distinguished_by_index_bytes_and_metadata() {
    let mut made = 0_u8;
    let mut pool = Pool::new(3, 64, || {
        made += 1;
        made
    });
    let mut chunks: Vec<_> = (0..3).map(|_| pool.acquire().unwrap()).collect();
    for chunk in &mut chunks {
        assert_eq!((chunk.bytes(), u32::from(*chunk.meta())), ([0; 64].as_slice(), chunk.index() + 1));
        let index = chunk.index() as u8;
        chunk.bytes_mut().fill(10 + index);
        *chunk.meta_mut() += 20;
    }
    assert!(chunks.iter().all(|chunk| chunk.bytes() == [10 + chunk.index() as u8; 64]));
    let leases: Vec<_> = chunks.into_iter().map(ChunkMut::freeze).collect();
    let indices: Vec<u32> = leases.iter().map(Lease::index).collect();
    assert_eq!(indices, [0, 1, 2]);
    for lease in &leases {
        let index = lease.index() as u8;
        assert_eq!((lease.bytes(), *lease.meta()), ([10 + index; 64].as_slice(), 21 + index));
    }
}

#[test]
fn the_memory_of_an_import_is_freed_with_its_last_lease_and_not_before() {
    let token = Arc::new(());
    let mut import = TrustedImport::new(Box::new(Heap::zeroed(128)), 64, || token.clone(), |_| ());
    let (first, second) = (import.lease(0, |_, _| ()).unwrap(), import.lease(1, |_, _| ()).unwrap());
    drop(first);
    drop(import);
    assert_eq!((second.bytes(), Arc::strong_count(&token)), ([0; 64].as_slice(), 3));
    drop(second);
    assert_eq!(Arc::strong_count(&token), 1);

    let mut import = TrustedImport::new(Box::new(Heap::zeroed(128)), 64, || token.clone(), |_| ());
    drop(import.lease(0, |_, _| ()).unwrap());
    assert_eq!(Arc::strong_count(&token), 3, "the import itself may lend again");
    drop(import);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn debug_output_identifies_chunks_and_leases() {
    let mut pool = Pool::new(2, 64, || ());
    assert_eq!(format!("{pool:?}"), "Pool { chunks: 2, chunk_bytes: 64 }");
    let chunk = pool.acquire().unwrap();
    assert_eq!(format!("{chunk:?}"), "ChunkMut { index: 0, .. }");
    assert_eq!(format!("{:?}", chunk.freeze()), "Lease { index: 0, .. }");
    let import = TrustedImport::new(Box::new(Heap::zeroed(64)), 64, || (), |_| ());
    assert_eq!(format!("{import:?}"), "TrustedImport { .. }");
}
