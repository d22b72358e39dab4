//! Runs the conformance suite on the queue between threads.

#[path = "conformance/bytes.rs"]
mod bytes;
mod conformance;

use std::sync::Arc;
use std::time::Duration;

use conformance::{Carrier, Receiving, Sending, conforms};
use grebe_flow::{Offer, Policy, QueueOptions, QueueReceiver, QueueSender, queue};
use grebe_frame::{Batch, BatchPool};
use grebe_ring::Signal;

struct InProcess;

impl Carrier for InProcess {
    type Sender = Tx;
    type Receiver = Rx;

    fn open(chunks: usize, capacity_batches: usize, policy: Policy) -> (BatchPool, Tx, Rx) {
        let (tx, rx) = open(QueueOptions { policy, ..QueueOptions::block(capacity_batches) });
        (BatchPool::new(chunks, 4096), tx, rx)
    }
}

fn open(options: QueueOptions) -> (Tx, Rx) {
    let (producer, consumer) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
    let (tx, rx) = queue(options, producer.clone(), consumer.clone());
    let tx = Tx { queue: tx, signal: producer, waits_in_queue: false };
    (tx, Rx { queue: rx, signal: consumer })
}

struct Tx {
    queue: QueueSender,
    signal: Arc<Signal>,
    /// Not on its own signal.
    waits_in_queue: bool,
}

impl Sending for Tx {
    fn offer(&mut self, batch: Batch) -> Offer {
        self.queue.offer(batch)
    }

    fn has_room(&mut self) -> bool {
        self.queue.has_room()
    }

    fn is_closed(&mut self) -> bool {
        self.queue.is_closed()
    }

    fn wait_for_room(&mut self) -> bool {
        if self.waits_in_queue {
            self.queue.wait(Duration::from_secs(30), || false);
            return self.queue.has_room();
        }
        self.signal.wait(Duration::from_secs(30), || self.queue.has_room())
    }
}

struct Rx {
    queue: QueueReceiver,
    signal: Arc<Signal>,
}

impl Receiving for Rx {
    fn pop(&mut self) -> Option<Batch> {
        self.queue.pop()
    }

    fn is_ended(&mut self) -> bool {
        self.queue.is_ended()
    }

    fn wait(&mut self) -> bool {
        self.signal.wait(Duration::from_secs(30), || self.queue.has_batch() || self.queue.is_ended())
    }
}

conforms!(InProcess);

#[test]
fn drop_oldest_never_drops_the_newest() {
    for capacity_bytes in [None, Some(2 * 4096)] {
        let options = QueueOptions { capacity_bytes, ..QueueOptions::drop_oldest(2) };
        let (mut tx, mut rx) = queue(options, Arc::new(Signal::new()), Arc::new(Signal::new()));
        let consumer = std::thread::spawn(move || while rx.pop().is_some() || !rx.is_ended() {});
        let mut pool = BatchPool::new(8, 4096);
        for offered in 0..300_000 {
            let batch = pool.acquire().expect("two are queued, and one is just taken").freeze();
            assert!(matches!(tx.offer(batch), Offer::Queued), "offer {offered}");
        }
        drop(tx);
        consumer.join().unwrap();
    }
}
