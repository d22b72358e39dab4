//! Tests the wake-ups of a queue, counted by tasks that wait on its signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use grebe_flow::{Offer, QueueOptions, QueueReceiver, QueueSender, queue};
use grebe_frame::BatchPool;
use grebe_ring::Signal;

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task that always waits.
#[derive(Default)]
struct Sleeper {
    signal: Arc<Signal>,
    woken: Arc<Woken>,
}

impl Sleeper {
    /// Whether `act` woke it.
    fn is_woken_by<T>(&self, act: impl FnOnce() -> T) -> bool {
        let waker = Waker::from(self.woken.clone());
        assert!(self.signal.poll(&mut Context::from_waker(&waker), || false).is_pending());
        let before = self.woken.0.load(Ordering::Relaxed);
        act();
        self.woken.0.load(Ordering::Relaxed) > before
    }
}

struct Ends {
    pool: BatchPool,
    tx: QueueSender,
    rx: QueueReceiver,
    producer: Sleeper,
    consumer: Sleeper,
}

fn open(options: QueueOptions) -> Ends {
    let (producer, consumer) = (Sleeper::default(), Sleeper::default());
    let (tx, rx) = queue(options, producer.signal.clone(), consumer.signal.clone());
    Ends { pool: BatchPool::new(16, 4096), tx, rx, producer, consumer }
}

impl Ends {
    fn offer(&mut self) -> Offer {
        self.tx.offer(self.pool.acquire().unwrap().freeze())
    }

    fn fill(mut self) -> Self {
        while matches!(self.offer(), Offer::Queued) {}
        self
    }
}

#[test]
fn the_consumer_is_woken_by_a_batch_and_by_the_end() {
    let mut ends = open(QueueOptions::block(4));
    assert!(!ends.rx.has_batch() && !ends.rx.is_ended());
    let batch = ends.pool.acquire().unwrap().freeze();
    let tx = &mut ends.tx;
    assert!(ends.consumer.is_woken_by(|| assert!(matches!(tx.offer(batch), Offer::Queued))));
    assert!(ends.rx.has_batch());
    assert!(ends.rx.pop().is_some() && !ends.rx.has_batch());
    let tx = ends.tx;
    assert!(ends.consumer.is_woken_by(|| drop(tx)));
    assert!(ends.rx.is_ended());
}

#[test]
fn a_producer_that_waits_for_room_is_woken_by_the_next_batch_that_is_taken() {
    let mut ends = open(QueueOptions::block(4)).fill();
    let rx = &mut ends.rx;
    assert!(!ends.producer.is_woken_by(|| rx.pop()), "it has not asked");
    assert!(matches!(ends.offer(), Offer::Queued));
    assert!(!ends.tx.has_room(), "so it asks");
    let rx = &mut ends.rx;
    assert!(ends.producer.is_woken_by(|| rx.pop()));

    assert!(matches!(ends.offer(), Offer::Queued), "it goes on");
    let rx = &mut ends.rx;
    assert!(!ends.producer.is_woken_by(|| rx.pop()), "and has not asked again");
    assert!(ends.tx.has_room(), "nor does it ask where there is room");
    let rx = &mut ends.rx;
    assert!(!ends.producer.is_woken_by(|| rx.pop()));
}

#[test]
fn a_waiting_producer_is_woken_when_its_consumer_leaves() {
    let ends = open(QueueOptions::block(4)).fill();
    assert!(!ends.tx.is_closed());
    let rx = ends.rx;
    assert!(ends.producer.is_woken_by(|| drop(rx)));
    assert!(ends.tx.is_closed());
}

#[test]
fn a_producer_that_never_waits_is_never_woken() {
    for options in [QueueOptions::drop_oldest(4), QueueOptions::drop_latest(4)] {
        let mut ends = open(options);
        for _ in 0..6 {
            let _ = ends.offer();
        }
        assert!(!ends.tx.has_room());
        let Ends { tx, mut rx, producer, .. } = ends;
        assert!(!producer.is_woken_by(|| rx.pop()), "{}", options.policy);
        assert!(!producer.is_woken_by(|| drop(rx)), "{}", options.policy);
        assert!(tx.is_closed());
    }
}

const LONG: Duration = Duration::from_secs(100);

#[test]
fn waiting_for_room_ends_with_the_time_and_not_before() {
    let ends = open(QueueOptions::block(4)).fill();
    let (asked, timeout) = (Instant::now(), Duration::from_millis(30));
    ends.tx.wait(timeout, || false);
    assert!(asked.elapsed() >= timeout, "nobody took anything");
}

#[test]
fn waiting_for_room_ends_where_there_is_room_or_no_need() {
    let asked = Instant::now();
    let mut ends = open(QueueOptions::block(4)).fill();
    ends.tx.wait(LONG, || true);
    // Less than half is taken, and no more is expected.
    assert!(ends.rx.pop().is_some());
    ends.tx.wait(LONG, || false);
    drop(ends.rx);
    ends.tx.wait(LONG, || false);
    assert!(asked.elapsed() < LONG);
}

#[test]
fn a_producer_that_sleeps_in_wait_is_woken_once_half_the_queue_is_taken_or_its_consumer_has_left() {
    for leaves in [false, true] {
        let asked = Instant::now();
        let Ends { tx, mut rx, .. } = open(QueueOptions::block(4)).fill();
        let waiting = std::thread::spawn(move || tx.wait(LONG, || false));
        std::thread::sleep(Duration::from_millis(20)); // most likely asleep by now; else the test checks less
        if leaves {
            drop(rx);
            waiting.join().unwrap();
        } else {
            assert!(rx.pop().is_some() && rx.pop().is_some());
            waiting.join().unwrap();
        }
        assert!(asked.elapsed() < LONG);
    }
}
