//! grebe's queues beside crossbeam's and rtrb, interleaved: one producer and one consumer, the same element, the same capacity,
//! both spinning where there is nothing to do (crossbeam's channel and grebe's queue of batches sleep, as they do in use).
//!
//! `cargo run --release -- [PAIRS] [SECONDS]`. Every element is checked for order.

use std::hint::spin_loop;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use grebe_bench::flow::{Beside, beside};
use grebe_bench::markdown;
use grebe_flow::{Offer, QueueOptions};
use grebe_frame::{Batch, BatchPool, Header};
use grebe_ring::{Policy, Signal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pairs: usize = arguments.next().map_or(Ok(9), |text| text.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(0.1), |text| text.parse())?;
    let (elements, batches) = ((seconds * 50e6) as u64, (seconds * 5e6) as u64);
    let rejects = "ring that rejects, 16-byte elements";
    let evicts = "ring that may evict, 16-byte elements";
    let queue = "queue of batches (counted, sleeps)";
    let cases: [(&str, &str, Pass, Pass, f64, u64); 8] = [
        (rejects, "crossbeam ArrayQueue", ring_rejects, array_queue, 1.0, elements),
        (rejects, "crossbeam channel::bounded", ring_rejects, channel, 1.0, elements),
        (rejects, "rtrb", ring_rejects, rtrb, 0.8, elements),
        (evicts, "crossbeam ArrayQueue", ring_evicts, array_queue, 1.0, elements),
        (evicts, "rtrb", ring_evicts, rtrb, 0.8, elements),
        (queue, "crossbeam ArrayQueue (spins)", queue_of_batches, array_queue_of_batches, 1.0, batches),
        (queue, "crossbeam channel::bounded", queue_of_batches, channel_of_batches, 1.0, batches),
        (queue, "rtrb (spins)", queue_of_batches, rtrb_of_batches, 0.8, batches),
    ];
    let mut rows = Vec::new();
    for (case, name, ours, theirs, least, count) in cases {
        let of = Beside { bench: "queue", case, unit: "M elements/s", baseline: name, pairs };
        let row = beside(of, least, || Ok(ours(count)), || Ok(theirs(count)))?;
        eprintln!("{}", row.line());
        rows.push(row);
    }
    println!("{}", markdown(&rows));
    Ok(())
}

/// Passes `n` elements from a thread to this one. Returns millions per second.
type Pass = fn(u64) -> f64;

/// As large as the handle of a batch.
type Element = [u64; 2];

fn ring_rejects(count: u64) -> f64 {
    ring(count, Policy::Block)
}

fn ring_evicts(count: u64) -> f64 {
    ring(count, Policy::DropOldest)
}

fn ring(count: u64, policy: Policy) -> f64 {
    let (mut tx, mut rx) = grebe_ring::ring(CAPACITY, policy);
    numbers(count, move |element| tx.push(element).err(), move || rx.pop())
}

fn array_queue(count: u64) -> f64 {
    let queue = Arc::new(ArrayQueue::new(CAPACITY));
    let other = queue.clone();
    numbers(count, move |element| queue.push(element).err(), move || other.pop())
}

fn rtrb(count: u64) -> f64 {
    let (mut tx, mut rx) = rtrb::RingBuffer::new(CAPACITY);
    let push = move |element| tx.push(element).err().map(|rtrb::PushError::Full(element)| element);
    numbers(count, push, move || rx.pop().ok())
}

fn channel(count: u64) -> f64 {
    let (tx, rx) = crossbeam_channel::bounded(CAPACITY);
    numbers(count, move |element| tx.send(element).err().map(|error| error.0), move || rx.recv().ok())
}

fn numbers(
    count: u64,
    mut push: impl FnMut(Element) -> Option<Element> + Send,
    mut pop: impl FnMut() -> Option<Element>,
) -> f64 {
    let producer = move || {
        for number in 0..count {
            let mut element = [number, !number];
            while let Some(back) = push(element) {
                element = back;
                spin_loop();
            }
        }
    };
    let consumer = || {
        for number in 0..count {
            let element = loop {
                match pop() {
                    Some(element) => break element,
                    None => spin_loop(),
                }
            };
            assert_eq!(element, [number, !number]);
        }
    };
    timed(count, producer, consumer)
}

fn queue_of_batches(count: u64) -> f64 {
    let (producer, consumer) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
    let (mut tx, mut rx) = grebe_flow::queue(QueueOptions::block(CAPACITY), producer, consumer.clone());
    let push = move |batch| match tx.offer(batch) {
        Offer::Full(batch) => {
            tx.wait(WAIT, || false);
            Some(batch)
        }
        _ => None,
    };
    let pop = move || {
        rx.pop().or_else(|| {
            consumer.wait(WAIT, || rx.has_batch());
            rx.pop()
        })
    };
    batches(count, push, pop)
}

fn array_queue_of_batches(count: u64) -> f64 {
    let queue = Arc::new(ArrayQueue::new(CAPACITY));
    let other = queue.clone();
    batches(count, move |batch| queue.push(batch).err(), move || other.pop())
}

fn rtrb_of_batches(count: u64) -> f64 {
    let (mut tx, mut rx) = rtrb::RingBuffer::new(CAPACITY);
    let push = move |batch| tx.push(batch).err().map(|rtrb::PushError::Full(batch)| batch);
    batches(count, push, move || rx.pop().ok())
}

fn channel_of_batches(count: u64) -> f64 {
    let (tx, rx) = crossbeam_channel::bounded(CAPACITY);
    batches(count, move |batch| tx.send(batch).err().map(|error| error.0), move || rx.recv().ok())
}

/// Lends clones of as many batches as the queue holds, so that each reference count is touched by one side at a time.
fn batches(
    count: u64,
    mut push: impl FnMut(Batch) -> Option<Batch> + Send,
    mut pop: impl FnMut() -> Option<Batch>,
) -> f64 {
    let lent: Vec<Batch> = make_batches(CAPACITY * 2);
    let producer = {
        let lent = lent.clone();
        move || {
            for number in 0..count {
                let mut batch = lent[number as usize % lent.len()].clone();
                while let Some(back) = push(batch) {
                    batch = back;
                    spin_loop();
                }
            }
        }
    };
    let consumer = || {
        for number in 0..count {
            let batch = loop {
                match pop() {
                    Some(batch) => break batch,
                    None => spin_loop(),
                }
            };
            let sequence = batch.frames().next().map(|frame| frame.header().sequence);
            assert_eq!(sequence, Some(number % lent.len() as u64));
        }
    };
    timed(count, producer, consumer)
}

fn make_batches(count: usize) -> Vec<Batch> {
    let mut pool = BatchPool::new(count, 1_024);
    (0..count as u64)
        .map(|sequence| {
            let header = Header { sequence, channel_count: 1, block_length_samples: 32, ..Header::default() };
            let mut batch = pool.acquire().expect("enough chunks");
            batch.push::<i16>(&header, |_, samples| samples.fill(1)).expect("a frame fits");
            batch.freeze()
        })
        .collect()
}

fn timed(count: u64, producer: impl FnOnce() + Send, consumer: impl FnOnce()) -> f64 {
    std::thread::scope(|scope| {
        let began = Instant::now();
        scope.spawn(producer);
        consumer();
        count as f64 / began.elapsed().as_secs_f64() / 1e6
    })
}

const CAPACITY: usize = 64;
const WAIT: Duration = Duration::from_millis(100);
