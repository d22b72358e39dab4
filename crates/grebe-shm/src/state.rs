//! Shared state of the producer's threads, and the admission of consumers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use grebe_frame::Batch;
use grebe_ring::{Policy, Signal};

use crate::consumer::{Consumer, Presence};
use crate::consumers::Consumers;
use crate::lane::{Lender, Shape};
use crate::map::Mapping;
use crate::message::{Hello, Message, Welcome};
use crate::options::PublisherOptions;
use crate::packet;
use crate::platform::{Closer, Connection, Memory};
use crate::sync::Words;

/// Shared state of the sender's and the acceptor's threads.
#[derive(Debug)]
pub(crate) struct PublisherState {
    pub(crate) name: String,
    pub(crate) options: PublisherOptions,
    /// Read-only memory that every consumer gets.
    pub(crate) payload: Memory,
    /// Maximum grants of a consumer.
    pub(crate) welcome: Welcome,
    /// Tells the acceptor that the publisher is gone.
    pub(crate) closer: Arc<Closer>,
    /// Whether nobody listens under the name any more.
    pub(crate) is_closed: AtomicBool,
    pub(crate) consumers: Mutex<Consumers>,
    /// Wakes a thread that waits for room or for consumers.
    pub(crate) signal: Signal,
}

struct Lane {
    memory: Memory,
    shape: Shape,
    quota: u32,
    lender: Lender<Batch>,
}

impl PublisherState {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Consumers> {
        // A panic under the lock would be a bug. The consumers are valid even then, because each step leaves
        // them so.
        self.consumers.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Admits a consumer: makes a lane, sends it with the payload, and registers the consumer.
    pub(crate) fn admit(
        &self,
        id: u64,
        connection: Connection,
        hello: Hello,
        pid: u32,
    ) -> Result<(), (Connection, String)> {
        if let Some(why) = self.refusal(&hello) {
            return Err((connection, why));
        }
        let lane = match self.make_lane(&hello) {
            Ok(lane) => lane,
            Err(error) => {
                return Err((connection, format!("it has no memory for another consumer: {error}")));
            }
        };
        let welcome = Welcome { queue_batches: lane.shape.queue(), quota_chunks: lane.quota, ..self.welcome };
        let memory = [&self.payload, &lane.memory];
        // Under the lock: a consumer that has the welcome is offered every batch from then on.
        let consumers = self.lock();
        match packet::send_message(&connection, &Message::Welcome(welcome), &memory) {
            Ok(()) => {
                #[cfg(test)]
                tests::preempt(&self.name);
                enter(consumers, id, connection, hello, pid, lane);
                self.signal.notify();
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err((connection, format!("it cannot give memory to process {pid}: {error}")));
            }
            // The consumer is gone already.
            Err(_) => {}
        }
        Ok(())
    }

    fn refusal(&self, hello: &Hello) -> Option<String> {
        let consumers = self.lock();
        if consumers.is_ended {
            Some("the stream has ended".to_owned())
        } else if consumers.all.len() + consumers.leaving.len() >= self.options.consumers_max {
            let leaving = match consumers.leaving.len() {
                0 => String::new(),
                count => format!(" ({count} were cut off and still hold memory)"),
            };
            Some(format!("it has {} consumers{leaving}, and takes no more", self.options.consumers_max))
        } else if hello.policy == Policy::Block && !self.options.allow_block {
            Some("it refuses block: use drop_oldest or drop_latest".to_owned())
        } else {
            None
        }
    }

    /// Grants the consumer's request up to the maximum.
    fn make_lane(&self, hello: &Hello) -> io::Result<Lane> {
        let quota = hello.quota_chunks.min(self.welcome.quota_chunks);
        // More than its quota can never be queued.
        let shape = Shape::new(hello.queue_batches.min(quota), quota);
        let mut memory = Memory::make("grebe:lane", shape.words() * 8)?;
        let mapping = Mapping::new(&memory, shape.words() * 8, true)?;
        memory.seal(false)?;
        let words: Words = mapping.words(0, shape.words());
        let lender = Lender::new(words, shape, hello.policy, quota, self.welcome.chunks);
        Ok(Lane { memory, shape, quota, lender })
    }

    /// Handles a message or hang-up of a consumer.
    pub(crate) fn attend(&self, id: u64) {
        self.lock().attend(id, &self.name);
        self.signal.notify();
    }
}

fn enter(
    mut consumers: MutexGuard<'_, Consumers>,
    id: u64,
    connection: Connection,
    hello: Hello,
    pid: u32,
    lane: Lane,
) {
    if consumers.is_ended {
        lane.lender.end(None);
    }
    consumers.counted.joined += 1;
    consumers.all.push(Consumer {
        id,
        connection,
        lender: lane.lender,
        name: hello.name,
        pid,
        policy: hello.policy,
        shape: lane.shape,
        quota: lane.quota,
        lent_frames: 0,
        dropped_frames: 0,
        waits: None,
        presence: Presence::Connected,
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grebe_frame::Header;

    use crate::options::{PublisherOptions, SubscriberOptions};
    use crate::publisher::Publisher;
    use crate::subscriber::Subscriber;

    const PREEMPTED: &str = "preempted";

    /// The acceptor's thread stops between its words to the consumer and the list of consumers.
    pub(super) fn preempt(stream: &str) {
        if stream == PREEMPTED {
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    #[test]
    fn a_consumer_that_is_connected_gets_the_next_batch() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Some(folder.path().to_owned());
        let options = PublisherOptions { directory: directory.clone(), ..PublisherOptions::default() };
        let (mut publisher, mut pool) = Publisher::create(PREEMPTED, options).unwrap();
        let options = SubscriberOptions { directory, ..SubscriberOptions::default() };
        let mut subscriber = Subscriber::connect(PREEMPTED, &options).unwrap();
        let mut batch = pool.acquire().unwrap();
        let header = Header { channel_count: 1, block_length_samples: 100, ..Header::default() };
        batch.push::<i16>(&header, |_, samples| samples.fill(7)).unwrap();
        publisher.send(&batch.freeze(), || false).unwrap();
        publisher.end(None);
        assert_eq!(subscriber.pop().unwrap().map(|batch| batch.len()), Some(1));
    }
}
