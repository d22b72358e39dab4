//! Conformance suite for any queue of batches, over a [`Carrier`] that each kind of queue implements.

use std::thread;
use std::time::{Duration, Instant};

use grebe_flow::{Offer, Policy};
use grebe_frame::{Batch, BatchPool, Header};

/// A kind of queue.
pub(crate) trait Carrier {
    type Sender: Sending + Send + 'static;
    type Receiver: Receiving;

    /// Pool of `chunks` chunks of 4096 bytes, and a queue of `capacity` batches for it.
    fn open(chunks: usize, capacity: usize, policy: Policy) -> (BatchPool, Self::Sender, Self::Receiver);
}

/// Producer's end. Dropping it ends the stream.
pub(crate) trait Sending {
    fn offer(&mut self, batch: Batch) -> Offer;
    fn has_room(&mut self) -> bool;
    fn is_closed(&mut self) -> bool;
    /// Sleeps until there is room, at most 30 s. Returns whether there is.
    fn wait_for_room(&mut self) -> bool;
}

/// Consumer's end.
pub(crate) trait Receiving {
    fn pop(&mut self) -> Option<Batch>;
    fn is_ended(&mut self) -> bool;
    /// Sleeps until there is a batch or the end, at most 30 s. Returns whether there is.
    fn wait(&mut self) -> bool;
}

/// Runs the suite over a carrier, with a test per part.
macro_rules! conforms {
    ($carrier:ty) => {
        conforms!(
            $carrier:
            what_fits_comes_out_in_order_under_every_policy,
            a_full_queue_does_what_its_policy_says,
            a_stopped_consumer_pins_no_more_than_its_capacity,
            the_end_is_seen_only_after_everything_was_taken,
            a_gone_consumer_is_noticed_and_nothing_is_queued_for_it,
            across_threads_nothing_is_lost_twice_or_reordered,
        );
    };
    ($carrier:ty: $($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                conformance::$name::<$carrier>();
            }
        )*
    };
}
pub(crate) use conforms;

pub(crate) fn what_fits_comes_out_in_order_under_every_policy<C: Carrier>() {
    for policy in POLICIES {
        let (pool, mut tx, mut rx) = C::open(8, 4, policy);
        let mut source = Source::new(pool);
        for _ in 0..4 {
            assert!(matches!(tx.offer(source.next().unwrap()), Offer::Queued));
        }
        assert!(!tx.has_room());
        assert_eq!(drain(&mut rx), (0..8).collect::<Vec<_>>(), "{policy}");
        assert!(tx.has_room() && !rx.is_ended());
    }
}

pub(crate) fn a_full_queue_does_what_its_policy_says<C: Carrier>() {
    for (policy, kept) in [
        (Policy::Block, [0, 1, 2, 3]),
        (Policy::DropLatest, [0, 1, 2, 3]),
        (Policy::DropOldest, [2, 3, 4, 5]),
    ] {
        let (pool, mut tx, mut rx) = C::open(4, 2, policy);
        let mut source = Source::new(pool);
        for _ in 0..2 {
            assert!(matches!(tx.offer(source.next().unwrap()), Offer::Queued));
        }
        let offer = tx.offer(source.next().unwrap());
        match policy {
            Policy::Block => assert!(matches!(offer, Offer::Full(batch) if sequences(&batch) == [4, 5])),
            Policy::DropLatest => assert!(matches!(offer, Offer::Dropped)),
            Policy::DropOldest => assert!(matches!(offer, Offer::Queued)),
        }
        assert_eq!(drain(&mut rx), kept, "{policy}");
    }
}

pub(crate) fn a_stopped_consumer_pins_no_more_than_its_capacity<C: Carrier>() {
    for policy in [Policy::DropOldest, Policy::DropLatest] {
        let (pool, mut tx, rx) = C::open(6, 4, policy);
        let mut source = Source::new(pool);
        for _ in 0..1000 {
            let _ = tx.offer(source.next().expect("a chunk is free: the queue holds four of six"));
        }
        assert_eq!(source.pool.available(), 2);
        drop((tx, rx));
        // Another process may read its batches until another thread notices its hang-up.
        let until = Instant::now() + Duration::from_secs(30);
        while source.pool.available() < 6 {
            assert!(Instant::now() < until, "what was queued goes home");
            thread::yield_now();
        }
    }
}

pub(crate) fn the_end_is_seen_only_after_everything_was_taken<C: Carrier>() {
    for policy in POLICIES {
        let (pool, mut tx, mut rx) = C::open(1, 2, policy);
        let _ = tx.offer(Source::new(pool).next().unwrap());
        drop(tx);
        assert!(!rx.is_ended());
        assert_eq!(drain(&mut rx), [0, 1]);
        assert!(rx.is_ended());
    }
}

pub(crate) fn a_gone_consumer_is_noticed_and_nothing_is_queued_for_it<C: Carrier>() {
    for policy in POLICIES {
        let (pool, mut tx, rx) = C::open(1, 2, policy);
        drop(rx);
        assert!(tx.is_closed());
        assert!(matches!(tx.offer(Source::new(pool).next().unwrap()), Offer::Closed));
    }
}

pub(crate) fn across_threads_nothing_is_lost_twice_or_reordered<C: Carrier>() {
    for policy in POLICIES {
        let (pool, tx, rx) = C::open(8, 4, policy);
        across_threads(pool, tx, rx, policy);
    }
}

/// Sends many batches through a queue to another thread.
pub(crate) fn across_threads(
    pool: BatchPool,
    mut tx: impl Sending + Send + 'static,
    mut rx: impl Receiving,
    policy: Policy,
) {
    const BATCHES: u64 = 20_000;
    let sender = thread::spawn(move || {
        let mut source = Source::new(pool);
        for _ in 0..BATCHES {
            let mut batch = loop {
                match source.next() {
                    Some(batch) => break batch,
                    None => thread::yield_now(),
                }
            };
            while let Offer::Full(back) = tx.offer(batch) {
                batch = back;
                assert!(tx.wait_for_room(), "a wake-up was lost");
            }
        }
    });
    let mut seen = Vec::new();
    while !rx.is_ended() {
        assert!(rx.wait(), "a wake-up was lost");
        seen.extend(drain(&mut rx));
    }
    sender.join().unwrap();
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{policy}");
    if policy == Policy::Block {
        assert_eq!(seen.len() as u64, BATCHES * 2);
    }
    if policy == Policy::DropOldest {
        assert_eq!(seen.last(), Some(&(BATCHES * 2 - 1)), "the newest is always kept");
    }
}

/// Makes numbered batches of two frames.
pub(crate) struct Source {
    pub(crate) pool: BatchPool,
    pub(crate) sequence: u64,
}

impl Source {
    pub(crate) fn new(pool: BatchPool) -> Self {
        Self { pool, sequence: 0 }
    }

    pub(crate) fn next(&mut self) -> Option<Batch> {
        let mut batch = self.pool.acquire()?;
        for _ in 0..2 {
            let header = Header {
                sequence: self.sequence,
                channel_count: 1,
                block_length_samples: 16,
                first_sample_index: self.sequence * 16,
                ..Header::default()
            };
            batch.push::<i16>(&header, |_, samples| samples.fill(self.sequence as i16)).unwrap();
            self.sequence += 1;
        }
        Some(batch.freeze())
    }
}

pub(crate) fn sequences(batch: &Batch) -> Vec<u64> {
    for frame in batch.frames() {
        assert!(
            frame.channel::<i16>(0).unwrap().iter().all(|&sample| sample == frame.header().sequence as i16),
            "content"
        );
    }
    batch.frames().map(|frame| frame.header().sequence).collect()
}

pub(crate) fn drain(rx: &mut impl Receiving) -> Vec<u64> {
    std::iter::from_fn(|| rx.pop()).flat_map(|batch| sequences(&batch)).collect()
}

pub(crate) const POLICIES: [Policy; 3] = [Policy::Block, Policy::DropOldest, Policy::DropLatest];
