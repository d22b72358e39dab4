//! The producer's end of a stream.
//!
//! ```text
//!   Publisher::send --lock--> Consumers --offer--> Consumer --Lender--> lane (shared memory)
//!                                ^
//!   Acceptor (own thread) --lock-+   admits consumers, reads what they send, notices that they hung up
//! ```
//!
//! Two threads share the `PublisherState`: the one that sends, and the acceptor's. A send takes its one lock once per batch;
//! it is contended only while a consumer comes or goes.
//!
//! **Quotas** never reach the producer's reserve, so that no consumer can starve the source of chunks. Only a consumer under
//! `block` makes the producer wait, and is cut off when it takes nothing for too long.
//!
//! **The chunks sent last rest** (four times a core's own cache): one that was just read lies in the consumer's cache, where writing it is slow.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grebe_frame::{Batch, BatchPool, Description, HEADER_BYTES, Header};
use grebe_ring::Signal;
use rustix::event::{EventfdFlags, eventfd};

use super::acceptor::Acceptor;
use super::busy_poll::BusyPoll;
use super::consumer::Consumer;
use super::consumers::Consumers;
use super::directory::Directory;
use super::map::{self, Mapping};
use super::state::PublisherState;
use crate::error::Error;
use crate::lane::{Descriptor, Shape};
use crate::message::{CHUNK_BYTES_MAX, CHUNKS_MAX, QUEUE_MAX, Welcome, table_words_for};
use crate::options::PublisherOptions;
use crate::said::{FRAME_BYTES_MAX, Said};
use crate::status::{ConsumerStatus, Footprint, Totals};
use crate::sync::{Ordering, Words};

/// The producer's end of a stream: lends batches of its pool to every consumer, under the policy of each.
///
/// A thread of its own lets consumers in and notices when they go. Dropping a publisher without [`end`](Self::end) is what a
/// crash is: consumers drain what is complete, and end with [`Error::ProducerGone`].
///
/// What a consumer was lent is its own to read until it hangs up (until its [`Subscriber`](crate::Subscriber) and all batches of
/// it are gone), also after it was cut off and after the publisher was dropped: the pool does not hand out these chunks before.
#[derive(Debug)]
pub struct Publisher {
    pub(super) state: Arc<PublisherState>,
    pub(super) payload: Mapping,
    tables: Words,
    welcome: Welcome,
    footprint: Footprint,
    said: Said,
    /// What the stream is now, as a frame, and the number of that.
    described: Option<Arc<Description>>,
    description_frame: Vec<u8>,
    serial: u64,
    /// Whether the last description had to be shortened.
    is_shortened: bool,
    busy_poll: BusyPoll,
    acceptor: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Makes a stream of this name, and the pool that its batches are to be written to.
    ///
    /// # Errors
    /// The name is taken or none, a setting is out of its range, or the system gives no memory.
    pub fn create(name: &str, options: PublisherOptions) -> Result<(Self, BatchPool), Error> {
        let welcome = welcome(&options)?;
        let footprint = footprint(&welcome, &options);
        let bytes = welcome.payload_bytes();
        let fd = map::memfd(&format!("grebe:{name}"), bytes).map_err(Error::tried("make shared memory"))?;
        let payload = Mapping::new(&fd, bytes, true).map_err(Error::tried("map shared memory"))?;
        map::seal(&fd, true).map_err(Error::tried("seal shared memory"))?;
        let closing = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(Error::tried("make an event"))?;
        let directory = Directory::make(options.directory.as_deref())?;
        let state = Arc::new(PublisherState {
            name: name.to_owned(),
            consumers: Mutex::new(Consumers::new(&options)),
            options,
            payload: fd,
            welcome,
            closing,
            is_closed: AtomicBool::new(false),
            signal: Signal::new(),
        });
        let pool = BatchPool::over(payload.own(welcome.tables_at()), welcome.chunk_bytes as usize);
        let tables =
            payload.words(welcome.tables_at(), welcome.chunks as usize * welcome.table_words as usize);
        let said = payload.words(welcome.said_at(), Said::words(welcome.chunks));
        let acceptor = Some(Acceptor::start(directory, state.clone())?);
        let this = Self {
            state,
            payload,
            tables,
            welcome,
            footprint,
            said: Said::new(said, welcome.chunks),
            described: None,
            description_frame: Vec::new(),
            serial: 0,
            is_shortened: false,
            busy_poll: BusyPoll::default(),
            acceptor,
        };
        Ok((this, pool))
    }

    /// Lends a batch to every consumer, under the policy of each. Waits where one that blocks has no room, until it has, is
    /// gone, or has been cut off; or until `is_stopping` (asked every 50 ms) says so: then the batch is dropped for
    /// who did not get it. Answers whether everybody has it whose policy was not to drop it.
    ///
    /// # Errors
    /// [`Error::ForeignBatch`].
    pub fn send(&mut self, batch: &Batch, mut is_stopping: impl FnMut() -> bool) -> Result<bool, Error> {
        let what = self.locate(batch)?;
        self.describe(what.chunk, batch);
        let mut waits = self.state.lock().offer(batch, what, &self.state.name);
        while waits {
            if is_stopping() {
                self.state.lock().give_up(batch);
                return Ok(false);
            }
            self.wait_for_room();
            waits = self.offer_again(batch, what);
        }
        Ok(true)
    }

    /// Lends a batch to every consumer that has room or whose policy drops; never waits. Answers whether a consumer that blocks
    /// had no room: [`send_again`](Self::send_again) is for it.
    ///
    /// # Errors
    /// [`Error::ForeignBatch`].
    pub fn try_send(&mut self, batch: &Batch) -> Result<bool, Error> {
        let what = self.locate(batch)?;
        self.describe(what.chunk, batch);
        Ok(self.state.lock().offer(batch, what, &self.state.name))
    }

    /// Offers the batch of the last [`try_send`](Self::try_send) to those that had no room for it.
    ///
    /// # Errors
    /// [`Error::ForeignBatch`].
    pub fn send_again(&mut self, batch: &Batch) -> Result<bool, Error> {
        let what = self.locate(batch)?;
        Ok(self.offer_again(batch, what))
    }

    /// Sleeps until there may be room for the batch that waits; 50 ms at most.
    pub fn wait_for_room(&mut self) {
        let state = &*self.state;
        let began = Instant::now();
        if self.busy_poll.look(|| state.lock().has_room()) {
            return;
        }
        state.lock().waiting().for_each(|consumer| consumer.lender.arm());
        state.signal.wait(STOP_CHECK_EVERY, || state.lock().has_room());
        state.lock().waiting().for_each(|consumer| consumer.lender.disarm());
        self.busy_poll.slept(began.elapsed());
    }

    /// Takes back what consumers returned. Sending does this too; a producer that has nothing to send need not.
    pub fn reap(&self) {
        self.state.lock().reap(&self.state.name);
    }

    /// Whether a batch lies in the stream's own pool, so that it can be lent as it is.
    pub fn is_own(&self, batch: &Batch) -> bool {
        self.chunk_of(batch).is_some()
    }

    /// Ends the stream: consumers take what waits for them, and end well. With the header that ends it
    /// ([`Header::end_of_stream`]) they know what they miss at its tail.
    pub fn end(&mut self, header: Option<&Header>) {
        let header = header.map(|header| {
            let mut bytes = [0; HEADER_BYTES];
            header.write(&mut bytes);
            bytes
        });
        let mut consumers = self.state.lock();
        consumers.is_ended = true;
        for consumer in &consumers.all {
            consumer.lender.end(header.as_ref());
            consumer.wake(true);
        }
    }

    /// Waits until so many consumers are there; whether they came in time.
    pub fn wait_for_consumers(&self, count: usize, timeout: Duration) -> bool {
        self.state.signal.wait(timeout, || self.state.lock().all.len() >= count)
    }

    /// Each consumer that is there now.
    pub fn consumers(&self) -> Vec<ConsumerStatus> {
        self.state.lock().all.iter().map(Consumer::status).collect()
    }

    /// How the stream is doing, without an allocation.
    pub fn totals(&self) -> Totals {
        self.state.lock().totals()
    }

    /// What the stream costs in memory.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    fn offer_again(&self, batch: &Batch, what: Descriptor) -> bool {
        self.state.lock().offer_again(batch, what, &self.state.name)
    }

    fn chunk_of(&self, batch: &Batch) -> Option<u32> {
        let offset = self.payload.offset_of(batch.chunk().as_ptr())?;
        let (chunk, rest) =
            (offset / self.welcome.chunk_bytes as usize, offset % self.welcome.chunk_bytes as usize);
        (rest == 0 && chunk < self.welcome.chunks as usize).then_some(chunk as u32)
    }

    /// Says of a chunk what its batch says that the stream is, or that it says nothing: before it is lent.
    #[inline]
    fn describe(&mut self, chunk: u32, batch: &Batch) {
        if self.described.as_ref().map(Arc::as_ptr) != batch.description().map(Arc::as_ptr) {
            self.describe_anew(batch);
        }
        let serial = if self.described.is_some() { self.serial } else { 0 };
        if self.said.serial(chunk) != serial {
            self.said.write(chunk, serial, if serial > 0 { &self.description_frame } else { &[] });
        }
    }

    #[cold]
    fn describe_anew(&mut self, batch: &Batch) {
        self.described = batch.description().cloned();
        self.serial += 1;
        let Some(description) = &self.described else { return };
        let next = batch.frames().next().map(|frame| frame.header()).unwrap_or_default();
        let (frames, shortened) = description.frames_that_fit(&next, FRAME_BYTES_MAX);
        self.is_shortened |= shortened.is_some();
        // As long as the longest text: it is one.
        self.description_frame = frames.into_iter().next().unwrap_or_default();
    }

    /// Whether a description has been longer than any may be since this was asked last: it was shortened.
    pub fn take_shortened(&mut self) -> bool {
        std::mem::take(&mut self.is_shortened)
    }

    /// Where the frames are: as a row where they stand evenly, else in the chunk's table.
    fn locate(&self, batch: &Batch) -> Result<Descriptor, Error> {
        let foreign = || Error::ForeignBatch(self.state.name.clone());
        let chunk = self.chunk_of(batch).ok_or_else(foreign)?;
        let mut offsets = batch.offsets();
        let frames = offsets.len() as u32;
        let first = offsets.next().unwrap_or(0);
        let mut stride = 64;
        let mut expected = offsets.next();
        if let Some(second) = expected {
            stride = second.wrapping_sub(first);
            let mut last = second;
            for offset in offsets {
                if offset.wrapping_sub(last) != stride {
                    expected = None;
                    break;
                }
                last = offset;
            }
            if expected.is_none() || second <= first {
                self.write_table(chunk, batch);
                stride = 0;
            }
        }
        Ok(Descriptor { chunk, frames, first, stride })
    }

    fn write_table(&self, chunk: u32, batch: &Batch) {
        let base = chunk as usize * self.welcome.table_words as usize;
        let mut offsets = batch.offsets().map(u64::from);
        for word in base..base + self.welcome.table_words as usize {
            let Some(one) = offsets.next() else { break };
            let two = offsets.next().unwrap_or(0);
            // Relaxed: published with the descriptor.
            self.tables.at(word).store(one | two << 32, Ordering::Relaxed);
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.state.lock().part();
        // The acceptor's thread removes the socket, and stays as long as a consumer may read what it was lent.
        let _ = rustix::io::write(&self.state.closing, &1u64.to_ne_bytes());
        self.state.signal.wait(CLOSE_TIMEOUT, || self.state.is_closed.load(Ordering::Acquire));
        if let Some(acceptor) = self.acceptor.take()
            && self.state.lock().leaving.is_empty()
        {
            let _ = acceptor.join();
        }
    }
}

/// What the stream's memory is made of, and what a consumer is granted at most.
fn welcome(options: &PublisherOptions) -> Result<Welcome, Error> {
    let quota = quota(options)?;
    Ok(Welcome {
        chunk_bytes: options.chunk_bytes as u32,
        chunks: options.chunks as u32,
        table_words: table_words_for(options.chunk_bytes) as u32,
        queue_batches: QUEUE_MAX,
        quota_chunks: quota,
    })
}

fn footprint(welcome: &Welcome, options: &PublisherOptions) -> Footprint {
    Footprint {
        chunks_bytes: welcome.tables_at(),
        tables_bytes: welcome.said_at() - welcome.tables_at(),
        lane_bytes: Shape::new(welcome.quota_chunks, welcome.quota_chunks).words() * 8,
        consumers_max: options.consumers_max,
    }
}

/// Each consumer's share of the chunks.
fn quota(options: &PublisherOptions) -> Result<u32, Error> {
    let setting = |what, got: usize, must| Err(Error::Setting { what, got: got as u64, must });
    let bytes = options.chunk_bytes;
    if bytes == 0 || !bytes.is_multiple_of(64) || bytes > CHUNK_BYTES_MAX {
        return setting("size of a chunk", bytes, "give a multiple of 64 bytes, at most 64 MiB");
    }
    if options.consumers_max == 0 || options.consumers_max > CONSUMERS_MAX {
        return setting("number of consumers", options.consumers_max, "give 1 to 64");
    }
    let own = options.reserve_chunks.saturating_add(options.resting_chunks());
    let shared = options.chunks.saturating_sub(own) / options.consumers_max;
    if shared == 0 || options.chunks > CHUNKS_MAX {
        return setting(
            "number of chunks",
            options.chunks,
            "give at least the producer's own, those that rest and one a consumer, at most a million",
        );
    }
    Ok(shared as u32)
}

const CONSUMERS_MAX: usize = 64;
/// More than it takes to remove a socket.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a sender that waits is asked whether it is stopping.
const STOP_CHECK_EVERY: Duration = Duration::from_millis(50);
