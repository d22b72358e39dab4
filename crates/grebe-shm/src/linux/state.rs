//! Shared state of the producer's threads, and the admission of consumers.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use grebe_frame::Batch;
use grebe_ring::{Policy, Signal};

use super::consumer::{Consumer, Presence};
use super::consumers::Consumers;
use super::map::{self, Mapping};
use super::packet;
use crate::lane::{Lender, Shape};
use crate::message::{Hello, Message, Welcome};
use crate::options::PublisherOptions;
use crate::sync::Words;

/// Shared state of the sender's and the acceptor's threads.
#[derive(Debug)]
pub(super) struct PublisherState {
    pub(super) name: String,
    pub(super) options: PublisherOptions,
    /// Sealed memory that every consumer gets.
    pub(super) payload: OwnedFd,
    /// Maximum grants of a consumer.
    pub(super) welcome: Welcome,
    /// Readable after the publisher is gone.
    pub(super) closing: OwnedFd,
    /// Whether nobody listens under the name any more.
    pub(super) is_closed: AtomicBool,
    pub(super) consumers: Mutex<Consumers>,
    /// Wakes a thread that waits for room or for consumers.
    pub(super) signal: Signal,
}

struct Lane {
    fd: OwnedFd,
    shape: Shape,
    quota: u32,
    lender: Lender<Batch>,
}

impl PublisherState {
    pub(super) fn lock(&self) -> MutexGuard<'_, Consumers> {
        // A panic under the lock would be a bug. The consumers are valid even then, because each step leaves
        // them so.
        self.consumers.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Admits a consumer: makes a lane, sends it with the payload, and registers the consumer.
    pub(super) fn admit(
        &self,
        id: u64,
        socket: OwnedFd,
        hello: Hello,
        pid: u32,
    ) -> Result<(), (OwnedFd, String)> {
        if let Some(why) = self.refusal(&hello) {
            return Err((socket, why));
        }
        let lane = match self.make_lane(&hello) {
            Ok(lane) => lane,
            Err(errno) => return Err((socket, format!("it has no memory for another consumer: {errno}"))),
        };
        let welcome = Welcome { queue_batches: lane.shape.queue(), quota_chunks: lane.quota, ..self.welcome };
        let descriptors = [self.payload.as_fd(), lane.fd.as_fd()];
        // A failure means that the consumer is gone already.
        if packet::send_message(&socket, &Message::Welcome(welcome), &descriptors).is_ok() {
            self.enter(id, socket, hello, pid, lane);
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
    fn make_lane(&self, hello: &Hello) -> rustix::io::Result<Lane> {
        let quota = hello.quota_chunks.min(self.welcome.quota_chunks);
        // More than its quota can never be queued.
        let shape = Shape::new(hello.queue_batches.min(quota), quota);
        let fd = map::memfd("grebe:lane", shape.words() * 8)?;
        let mapping = Mapping::new(&fd, shape.words() * 8, true)?;
        map::seal(&fd, false)?;
        let words: Words = mapping.words(0, shape.words());
        let lender = Lender::new(words, shape, hello.policy, quota, self.welcome.chunks);
        Ok(Lane { fd, shape, quota, lender })
    }

    fn enter(&self, id: u64, socket: OwnedFd, hello: Hello, pid: u32, lane: Lane) {
        let mut consumers = self.lock();
        if consumers.is_ended {
            lane.lender.end(None);
        }
        consumers.counted.joined += 1;
        consumers.all.push(Consumer {
            id,
            socket,
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
        drop(consumers);
        self.signal.notify();
    }

    /// Handles a message or hang-up of a consumer.
    pub(super) fn attend(&self, id: u64) {
        self.lock().attend(id, &self.name);
        self.signal.notify();
    }
}
