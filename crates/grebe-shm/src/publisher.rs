//! Producer's end of a stream.
//!
//! ```text
//!   Publisher::send --lock--> Consumers --offer--> Consumer --Lender--> lane (shared memory)
//!                                ^
//!   Acceptor (own thread) --lock-+   admits consumers, reads their messages, notices hang-ups
//! ```
//!
//! Two threads share the `PublisherState`: the sender's and the acceptor's. A send takes its lock once per
//! batch; it is contended only while a consumer joins or leaves.
//!
//! **Quotas** never reach the producer's reserve, so no consumer can starve the source of chunks. Only a
//! consumer under `block` makes the producer wait, and is cut off when it takes nothing for too long.
//!
//! **The last chunks rest** (four times a core's own cache), because a chunk that was just read is in the
//! consumer's cache, where writing it is slow.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grebe_frame::{Batch, BatchPool, Description, HEADER_BYTES, Header};
use grebe_ring::Signal;

use crate::acceptor::Acceptor;
use crate::busy_poll::BusyPoll;
use crate::consumer::Consumer;
use crate::consumers::Consumers;
use crate::descriptions::{Descriptions, FRAME_BYTES_MAX};
use crate::directory::Directory;
use crate::error::Error;
use crate::lane::{Descriptor, Shape};
use crate::map::Mapping;
use crate::message::{CHUNK_BYTES_MAX, CHUNKS_MAX, QUEUE_MAX, Welcome, table_words_for};
use crate::options::PublisherOptions;
use crate::platform::{Closer, Memory};
use crate::state::PublisherState;
use crate::status::{ConsumerStatus, Footprint, Totals};
use crate::sync::{Ordering, Words};

/// Producer's end of a stream: lends batches of its pool to every consumer, under each consumer's policy.
///
/// A background thread admits consumers and notices when they leave. Dropping a publisher without
/// [`end`](Self::end) equals a crash: consumers drain complete batches, and end with [`Error::ProducerGone`].
///
/// A consumer may read its chunks until it hangs up, that is, until its [`Subscriber`](crate::Subscriber) and
/// all batches of it are dropped. This holds even after it was cut off or the publisher was dropped. The pool
/// does not reuse these chunks before.
#[derive(Debug)]
pub struct Publisher {
    pub(crate) state: Arc<PublisherState>,
    pub(crate) payload: Mapping,
    tables: Words,
    welcome: Welcome,
    footprint: Footprint,
    descriptions: Descriptions,
    /// Present description as a frame, and its serial number.
    described: Option<Arc<Description>>,
    description_frame: Vec<u8>,
    serial: u64,
    /// Whether the last description had to be shortened.
    is_shortened: bool,
    busy_poll: BusyPoll,
    acceptor: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Makes a stream with this name, and the pool for its batches.
    ///
    /// # Errors
    /// The name is taken or invalid, a setting is out of range, or the system has no memory.
    pub fn create(name: &str, options: PublisherOptions) -> Result<(Self, BatchPool), Error> {
        let welcome = welcome(&options)?;
        let footprint = footprint(&welcome, &options);
        let bytes = welcome.payload_bytes();
        let mut memory =
            Memory::make(&format!("grebe:{name}"), bytes).map_err(Error::tried("make shared memory"))?;
        let payload = Mapping::new(&memory, bytes, true).map_err(Error::tried("map shared memory"))?;
        memory.seal(true).map_err(Error::tried("seal shared memory"))?;
        let closer = Arc::new(Closer::new().map_err(Error::tried("make an event"))?);
        let directory = Directory::make(options.directory.as_deref())?;
        let state = Arc::new(PublisherState {
            name: name.to_owned(),
            consumers: Mutex::new(Consumers::new(&options)),
            options,
            payload: memory,
            welcome,
            closer,
            is_closed: AtomicBool::new(false),
            signal: Signal::new(),
        });
        let pool = BatchPool::over(payload.own(welcome.tables_at()), welcome.chunk_bytes as usize);
        let tables =
            payload.words(welcome.tables_at(), welcome.chunks as usize * welcome.table_words as usize);
        let descriptions = payload.words(welcome.descriptions_at(), Descriptions::words(welcome.chunks));
        let acceptor = Some(Acceptor::start(directory, state.clone())?);
        let this = Self {
            state,
            payload,
            tables,
            welcome,
            footprint,
            descriptions: Descriptions::new(descriptions, welcome.chunks),
            described: None,
            description_frame: Vec::new(),
            serial: 0,
            is_shortened: false,
            busy_poll: BusyPoll::default(),
            acceptor,
        };
        Ok((this, pool))
    }

    /// Lends a batch to every consumer, under each consumer's policy. Waits for a blocking consumer without
    /// room, until it has room, is gone, or has been cut off. If `is_stopping` (called every 50 ms) returns
    /// true, the batch is dropped for the remaining consumers. Returns whether every consumer has it, except
    /// for drops by their policies.
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
            waits = self.retry_offer(batch, what);
        }
        Ok(true)
    }

    /// Lends a batch to every consumer that has room or whose policy drops; never waits. Returns whether a
    /// blocking consumer had no room: use [`retry_send`](Self::retry_send) for it.
    ///
    /// # Errors
    /// [`Error::ForeignBatch`].
    pub fn try_send(&mut self, batch: &Batch) -> Result<bool, Error> {
        let what = self.locate(batch)?;
        self.describe(what.chunk, batch);
        Ok(self.state.lock().offer(batch, what, &self.state.name))
    }

    /// Offers the batch of the last [`try_send`](Self::try_send) again to consumers that had no room.
    ///
    /// # Errors
    /// [`Error::ForeignBatch`].
    pub fn retry_send(&mut self, batch: &Batch) -> Result<bool, Error> {
        let what = self.locate(batch)?;
        Ok(self.retry_offer(batch, what))
    }

    /// Sleeps until there may be room for the waiting batch, at most 50 ms.
    pub fn wait_for_room(&mut self) {
        let state = &*self.state;
        let began = Instant::now();
        if self.busy_poll.spin(|| state.lock().has_room()) {
            return;
        }
        state.lock().waiting().for_each(|consumer| consumer.lender.arm());
        state.signal.wait(STOP_CHECK_EVERY, || state.lock().has_room());
        state.lock().waiting().for_each(|consumer| consumer.lender.disarm());
        self.busy_poll.slept(began.elapsed());
    }

    /// Takes back returned chunks. Sending does this too; a producer with nothing to send need not call it.
    pub fn reap(&self) {
        self.state.lock().reap(&self.state.name);
    }

    /// Whether a batch is in the stream's own pool, so that it can be lent as it is.
    pub fn is_own(&self, batch: &Batch) -> bool {
        self.chunk_of(batch).is_some()
    }

    /// Ends the stream: consumers take their queued batches and end normally. The final header
    /// ([`Header::end_of_stream`]) shows them the loss at its tail.
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

    /// Waits until `count` consumers are connected. Returns whether they came in time.
    pub fn wait_for_consumers(&self, count: usize, timeout: Duration) -> bool {
        self.state.signal.wait(timeout, || self.state.lock().all.len() >= count)
    }

    /// Status of each connected consumer.
    pub fn consumers(&self) -> Vec<ConsumerStatus> {
        self.state.lock().all.iter().map(Consumer::status).collect()
    }

    /// Totals of the stream, without an allocation.
    pub fn totals(&self) -> Totals {
        self.state.lock().totals()
    }

    /// Memory use of the stream.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    fn retry_offer(&self, batch: &Batch, what: Descriptor) -> bool {
        self.state.lock().retry_offer(batch, what, &self.state.name)
    }

    fn chunk_of(&self, batch: &Batch) -> Option<u32> {
        let offset = self.payload.offset_of(batch.chunk().as_ptr())?;
        let (chunk, rest) =
            (offset / self.welcome.chunk_bytes as usize, offset % self.welcome.chunk_bytes as usize);
        (rest == 0 && chunk < self.welcome.chunks as usize).then_some(chunk as u32)
    }

    /// Writes the description of a batch, or its absence, to a chunk before it is lent.
    #[inline]
    fn describe(&mut self, chunk: u32, batch: &Batch) {
        if self.described.as_ref().map(Arc::as_ptr) != batch.description().map(Arc::as_ptr) {
            self.describe_anew(batch);
        }
        let serial = if self.described.is_some() { self.serial } else { 0 };
        if self.descriptions.serial(chunk) != serial {
            self.descriptions.write(chunk, serial, if serial > 0 { &self.description_frame } else { &[] });
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
        // At the maximum text length, so it is a single frame.
        self.description_frame = frames.into_iter().next().unwrap_or_default();
    }

    /// Whether a description was too long and shortened, since the last call.
    pub fn take_shortened(&mut self) -> bool {
        std::mem::take(&mut self.is_shortened)
    }

    /// Positions of the frames: a regular row if possible, otherwise the chunk's table.
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

/// Whether this system has memory that producers can share, without a stream.
///
/// # Errors
/// The system lacks it, or refuses.
pub fn check() -> Result<(), Error> {
    let closer = Closer::new();
    let mut memory = Memory::make("grebe:check", CHECK_BYTES).map_err(Error::tried("make shared memory"))?;
    memory.seal(true).map_err(Error::tried("seal shared memory"))?;
    closer.map(drop).map_err(Error::tried("make an event"))
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.state.lock().part();
        // The acceptor's thread frees the name, and stays as long as a consumer may read its chunks.
        self.state.closer.close();
        self.state.signal.wait(CLOSE_TIMEOUT, || self.state.is_closed.load(Ordering::Acquire));
        if let Some(acceptor) = self.acceptor.take()
            && self.state.lock().leaving.is_empty()
        {
            let _ = acceptor.join();
        }
    }
}

/// Memory layout of the stream, and the maximum grants of a consumer.
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
        tables_bytes: welcome.descriptions_at() - welcome.tables_at(),
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

const CHECK_BYTES: usize = 4096;
const CONSUMERS_MAX: usize = 64;
/// Generous time for freeing a name.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval for checking whether a waiting sender is stopping.
const STOP_CHECK_EVERY: Duration = Duration::from_millis(50);
