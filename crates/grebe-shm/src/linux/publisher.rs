//! The producer's end: what is lent to whom.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grebe_frame::{Batch, BatchPool, HEADER_BYTES, Header};
use grebe_ring::Signal;
use rustix::event::{EventfdFlags, eventfd};

use super::directory::Directory;
use super::door::Door;
use super::map::{self, Mapping};
use super::packet;
use super::tried;
use crate::lane::{Descriptor, Lender, Offer, Shape, Violation};
use crate::message::{Hello, Message, Welcome};
use crate::sync::{Ordering, Words};
use crate::{ConsumerStatus, Footprint, PublisherOptions, ShmError, Status};

/// The producer's end of a stream: lends batches of its pool to every consumer, under the policy of each.
///
/// A thread of its own lets consumers in and notices when they go. Dropping a publisher without [`end`](Self::end) is what a
/// crash is: consumers drain what is complete, and end with [`ShmError::ProducerGone`].
#[derive(Debug)]
pub struct Publisher {
    hall: Arc<Hall>,
    payload: Mapping,
    tables: Words,
    welcome: Welcome,
    footprint: Footprint,
    door: Option<JoinHandle<()>>,
}

/// What the producer's threads share.
#[derive(Debug)]
pub(super) struct Hall {
    pub(super) name: String,
    pub(super) options: PublisherOptions,
    pub(super) payload: OwnedFd,
    pub(super) welcome: Welcome,
    /// Readable once the publisher is gone.
    pub(super) closing: OwnedFd,
    pub(super) core: Mutex<Core>,
    /// Wakes who waits for room or for consumers.
    pub(super) signal: Signal,
}

/// The consumers. A lock once a batch, contended only when one comes or goes.
#[derive(Debug, Default)]
pub(super) struct Core {
    pub(super) lanes: Vec<Lane>,
    /// The batches sent last; the capacity is fixed.
    resting: VecDeque<Batch>,
    is_ended: bool,
    /// Of consumers that are gone, beside the counts of all.
    status: Status,
}

/// One consumer.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) id: u64,
    pub(super) socket: OwnedFd,
    lender: Lender<Batch>,
    name: String,
    pid: u32,
    policy: crate::Policy,
    shape: Shape,
    quota: u32,
    lent_frames: u64,
    dropped_frames: u64,
    /// The batch that is being sent waits for this consumer, since then.
    waits: Option<Instant>,
    fate: Fate,
}

/// Whether a consumer stays.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Stays,
    HungUp,
    CutOff(String),
}

impl Publisher {
    /// Makes a stream of this name, and the pool that its batches are to be written to.
    ///
    /// # Errors
    /// The name is taken or none, a setting is out of its range, or the system gives no memory.
    pub fn create(name: &str, options: PublisherOptions) -> Result<(Self, BatchPool), ShmError> {
        let quota = quota(&options)?;
        let table_words = (options.chunk_bytes / HEADER_BYTES + 1).div_ceil(2);
        let welcome = Welcome {
            chunk_bytes: options.chunk_bytes as u32,
            chunks: options.chunks as u32,
            table_words: table_words as u32,
            queue_batches: crate::message::QUEUE_MAX,
            quota_chunks: quota,
        };
        let bytes = welcome.payload_bytes();
        let payload = map::memfd(&format!("grebe:{name}"), bytes).map_err(tried("make shared memory"))?;
        let mapping = Mapping::new(&payload, bytes, true).map_err(tried("map shared memory"))?;
        map::seal(&payload, true).map_err(tried("seal shared memory"))?;
        let closing =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(tried("make an event"))?;
        let footprint = Footprint {
            chunks_bytes: welcome.tables_at(),
            tables_bytes: bytes - welcome.tables_at(),
            lane_bytes: Shape::new(quota, quota).words() * 8,
            consumers_max: options.consumers_max,
        };
        let directory = Directory::make(options.directory.as_deref())?;
        let core = Core {
            lanes: Vec::with_capacity(options.consumers_max),
            resting: VecDeque::with_capacity(options.rest_chunks),
            ..Core::default()
        };
        let hall = Arc::new(Hall {
            name: name.to_owned(),
            options,
            payload,
            welcome,
            closing,
            core: Mutex::new(core),
            signal: Signal::new(),
        });
        let pool = BatchPool::over(mapping.chunks(welcome.tables_at()), welcome.chunk_bytes as usize);
        let tables = mapping.words(welcome.tables_at(), welcome.chunks as usize * table_words);
        let door = Door::open(directory, hall.clone())?;
        let door = std::thread::Builder::new()
            .name(format!("shm {name}"))
            .spawn(move || door.keep())
            .map_err(|source| ShmError::System { action: "start a thread", source })?;
        Ok((Self { hall, payload: mapping, tables, welcome, footprint, door: Some(door) }, pool))
    }

    /// Lends a batch to every consumer, under the policy of each. Waits where one that blocks has no room, until it has, is
    /// gone, or has been cut off; or until `is_stopping` (asked every 50 ms) says so: then the batch is dropped for
    /// who did not get it. Answers whether everybody has it whose policy was not to drop it.
    ///
    /// # Errors
    /// [`ShmError::ForeignBatch`].
    pub fn send(&mut self, batch: &Batch, mut is_stopping: impl FnMut() -> bool) -> Result<bool, ShmError> {
        let what = self.describe(batch)?;
        let mut waits = self.hall.enter().offer(batch, what, &self.hall, false);
        while waits {
            if is_stopping() {
                self.hall.enter().give_up(batch);
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
    /// [`ShmError::ForeignBatch`].
    pub fn try_send(&mut self, batch: &Batch) -> Result<bool, ShmError> {
        let what = self.describe(batch)?;
        Ok(self.hall.enter().offer(batch, what, &self.hall, false))
    }

    /// Offers the batch of the last [`try_send`](Self::try_send) to those that had no room for it.
    ///
    /// # Errors
    /// [`ShmError::ForeignBatch`].
    pub fn send_again(&mut self, batch: &Batch) -> Result<bool, ShmError> {
        let what = self.describe(batch)?;
        Ok(self.offer_again(batch, what))
    }

    /// Sleeps until there may be room for the batch that waits; 50 ms at most.
    pub fn wait_for_room(&self) {
        let hall = &*self.hall;
        for _ in 0..SPINS {
            if hall.enter().has_room() {
                return;
            }
            std::hint::spin_loop();
        }
        hall.enter().arm();
        hall.signal.wait(LOOK_AROUND, || hall.enter().has_room());
        hall.enter().disarm();
    }

    /// Takes back what consumers returned. Sending does this too; a producer that has nothing to send need not.
    pub fn reap(&self) {
        let mut core = self.hall.enter();
        core.lanes.iter_mut().for_each(Lane::reap);
        core.settle(&self.hall.name);
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
        let mut core = self.hall.enter();
        core.is_ended = true;
        for lane in &core.lanes {
            lane.lender.end(header.as_ref());
            lane.wake(true);
        }
    }

    /// Waits until so many consumers are there; whether they came in time.
    pub fn wait_for_consumers(&self, count: usize, timeout: Duration) -> bool {
        self.hall.signal.wait(timeout, || self.hall.enter().lanes.len() >= count)
    }

    /// How the stream is doing.
    pub fn status(&self) -> Status {
        let core = self.hall.enter();
        Status { consumers: core.lanes.iter().map(Lane::status).collect(), ..core.status.clone() }
    }

    /// What the stream costs in memory.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    fn offer_again(&self, batch: &Batch, what: Descriptor) -> bool {
        self.hall.enter().offer(batch, what, &self.hall, true)
    }

    fn chunk_of(&self, batch: &Batch) -> Option<u32> {
        let offset = self.payload.offset_of(batch.chunk().as_ptr())?;
        let (chunk, rest) =
            (offset / self.welcome.chunk_bytes as usize, offset % self.welcome.chunk_bytes as usize);
        (rest == 0 && chunk < self.welcome.chunks as usize).then_some(chunk as u32)
    }

    /// Where the frames are: as a row where they stand evenly, else in the chunk's table.
    fn describe(&self, batch: &Batch) -> Result<Descriptor, ShmError> {
        let foreign = || ShmError::ForeignBatch { name: self.hall.name.clone() };
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
        // The door's thread removes the socket, and hangs up by dropping the lanes.
        let _ = rustix::io::write(&self.hall.closing, &1u64.to_ne_bytes());
        if let Some(door) = self.door.take() {
            let _ = door.join();
        }
        let mut core = self.hall.enter();
        core.lanes.clear();
        core.resting.clear();
    }
}

impl Hall {
    pub(super) fn enter(&self) -> MutexGuard<'_, Core> {
        // Nothing under the lock panics but by a mistake; the lanes are good then, as each step leaves them.
        self.core.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Lets a consumer in.
    ///
    /// # Errors
    /// Why not, for it to be told.
    pub(super) fn admit(
        &self,
        id: u64,
        socket: OwnedFd,
        hello: Hello,
        pid: u32,
    ) -> Result<(), (OwnedFd, String)> {
        let refusal = {
            let core = self.enter();
            if core.is_ended {
                Some("the stream has ended".to_owned())
            } else if core.lanes.len() >= self.options.consumers_max {
                Some(format!("it has {} consumers, and takes no more", self.options.consumers_max))
            } else if hello.policy == crate::Policy::Block && !self.options.allow_block {
                Some("it waits for nobody: use drop_oldest or drop_latest instead of block".to_owned())
            } else {
                None
            }
        };
        if let Some(why) = refusal {
            return Err((socket, why));
        }
        let quota = hello.quota_chunks.min(self.welcome.quota_chunks);
        // More than its quota can never wait.
        let shape = Shape::new(hello.queue_batches.min(quota), quota);
        let welcome = Welcome { queue_batches: shape.queue(), quota_chunks: quota, ..self.welcome };
        let lane = || -> rustix::io::Result<(OwnedFd, Words)> {
            let bytes = shape.words() * 8;
            let fd = map::memfd("grebe:lane", bytes)?;
            let mapping = Mapping::new(&fd, bytes, true)?;
            map::seal(&fd, false)?;
            Ok((fd, mapping.words(0, shape.words())))
        };
        let (fd, words) = match lane() {
            Ok(lane) => lane,
            Err(errno) => return Err((socket, format!("it has no memory for another consumer: {errno}"))),
        };
        let lender = Lender::new(words, shape, hello.policy, quota, self.welcome.chunks);
        let handed_over =
            packet::say(&socket, &Message::Welcome(welcome), &[self.payload.as_fd(), fd.as_fd()]);
        if handed_over.is_err() {
            // Gone already.
            return Ok(());
        }
        let mut core = self.enter();
        if core.is_ended {
            lender.end(None);
        }
        core.status.joined += 1;
        core.lanes.push(Lane {
            id,
            socket,
            lender,
            name: hello.name,
            pid,
            policy: hello.policy,
            shape,
            quota,
            lent_frames: 0,
            dropped_frames: 0,
            waits: None,
            fate: Fate::Stays,
        });
        drop(core);
        self.signal.notify();
        Ok(())
    }

    /// A consumer's socket has something to say, or has hung up.
    pub(super) fn attend(&self, id: u64) {
        let mut core = self.enter();
        let Some(lane) = core.lanes.iter_mut().find(|lane| lane.id == id) else { return };
        lane.listen();
        lane.reap();
        core.settle(&self.name);
        drop(core);
        self.signal.notify();
    }
}

impl Core {
    /// Offers a batch to all, or again to those that it waits for; whether anybody has no room for it.
    fn offer(&mut self, batch: &Batch, what: Descriptor, hall: &Hall, again: bool) -> bool {
        let mut waits = false;
        let frames = batch.len() as u64;
        if !again && hall.options.rest_chunks > 0 {
            if self.resting.len() == hall.options.rest_chunks {
                self.resting.pop_front();
            }
            self.resting.push_back(batch.clone());
        }
        for lane in &mut self.lanes {
            if again && lane.waits.is_none() {
                continue;
            }
            let dropped = lane.offer(batch, what, hall.options.block_timeout);
            if let Some(dropped) = dropped {
                let count = dropped.len() as u64;
                self.status.dropped_frames += count;
                self.status.dropped_samples += dropped.samples();
                lane.dropped_frames += count;
                lane.lender.say_dropped(lane.dropped_frames);
            }
            if lane.waits.is_some() {
                waits = true;
            } else {
                self.status.lent_frames += frames;
            }
        }
        self.settle(&hall.name);
        waits && self.lanes.iter().any(|lane| lane.waits.is_some())
    }

    /// The batch that waits is dropped for those it waits for.
    fn give_up(&mut self, batch: &Batch) {
        for lane in self.lanes.iter_mut().filter(|lane| lane.waits.is_some()) {
            lane.waits = None;
            lane.dropped_frames += batch.len() as u64;
            lane.lender.say_dropped(lane.dropped_frames);
            self.status.dropped_frames += batch.len() as u64;
            self.status.dropped_samples += batch.samples();
        }
    }

    /// Whether nobody keeps the batch waiting any more that could take it now, or is to be cut off for not taking it.
    fn has_room(&mut self) -> bool {
        let mut has_room = true;
        for lane in self.lanes.iter_mut().filter(|lane| lane.waits.is_some()) {
            lane.reap();
            has_room &= lane.fate != Fate::Stays || lane.lender.has_room();
        }
        has_room
    }

    fn arm(&mut self) {
        self.waiting().for_each(|lane| lane.lender.arm());
    }

    fn disarm(&mut self) {
        self.waiting().for_each(|lane| lane.lender.disarm());
    }

    fn waiting(&mut self) -> impl Iterator<Item = &mut Lane> {
        self.lanes.iter_mut().filter(|lane| lane.waits.is_some())
    }

    /// Parts with consumers that are gone or have to go; all they were lent comes home.
    fn settle(&mut self, name: &str) {
        if self.lanes.iter().all(|lane| lane.fate == Fate::Stays) {
            return;
        }
        for lane in self.lanes.extract_if(.., |lane| lane.fate != Fate::Stays) {
            match &lane.fate {
                Fate::CutOff(why) => {
                    let why = format!("{why} ('{name}', policy {})", lane.policy);
                    // Who does not read it is told by the hang-up.
                    let _ = packet::say(&lane.socket, &Message::Bye(why), &[]);
                    self.status.cut_off += 1;
                }
                Fate::HungUp | Fate::Stays => self.status.hung_up += 1,
            }
        }
    }
}

impl Lane {
    /// Offers a batch; what was dropped for it or in its place.
    fn offer(&mut self, batch: &Batch, what: Descriptor, block_timeout: Duration) -> Option<Batch> {
        self.reap();
        if self.fate != Fate::Stays {
            self.waits = None;
            return None;
        }
        match self.lender.offer(batch.clone(), what) {
            Ok(Offer::Queued(evicted)) => {
                self.waits = None;
                self.lent_frames += batch.len() as u64;
                self.wake(false);
                evicted
            }
            Ok(Offer::Dropped(batch)) => Some(batch),
            Ok(Offer::Full(_)) => {
                let since = *self.waits.get_or_insert_with(Instant::now);
                if since.elapsed() >= block_timeout {
                    self.cut_off(format!("it took nothing for {block_timeout:?}"));
                }
                None
            }
            Err(violation) => {
                self.violates(violation);
                None
            }
        }
    }

    /// Takes back what was returned.
    fn reap(&mut self) {
        if let Err(violation) = self.lender.reap(drop).and_then(|_| self.lender.look()) {
            self.violates(violation);
        }
    }

    fn listen(&mut self) {
        loop {
            match packet::hear(&self.socket) {
                packet::Packet::Message(Message::Wake, _) => {
                    if let Err(violation) = self.lender.knocked() {
                        return self.violates(violation);
                    }
                }
                packet::Packet::Nothing => return,
                packet::Packet::HungUp => {
                    self.fate = Fate::HungUp;
                    self.waits = None;
                    return;
                }
                packet::Packet::Message(..) | packet::Packet::Malformed(_) => {
                    return self.cut_off("it said what has no place here".to_owned());
                }
            }
        }
    }

    fn wake(&self, always: bool) {
        if self.lender.must_wake() || always {
            // A full socket means that it has been woken often enough, a broken one that it is gone.
            let _ = packet::say(&self.socket, &Message::Wake, &[]);
        }
    }

    fn violates(&mut self, violation: Violation) {
        self.cut_off(violation.to_string());
    }

    fn cut_off(&mut self, why: String) {
        self.fate = Fate::CutOff(why);
        self.waits = None;
    }

    fn status(&self) -> ConsumerStatus {
        ConsumerStatus {
            name: self.name.clone(),
            pid: self.pid,
            policy: self.policy,
            queued_batches: self.lender.queued(),
            queue_batches: self.shape.queue(),
            out_chunks: self.lender.out(),
            quota_chunks: self.quota,
            lent_frames: self.lent_frames,
            dropped_frames: self.dropped_frames,
        }
    }
}

/// Each consumer's share of the chunks.
fn quota(options: &PublisherOptions) -> Result<u32, ShmError> {
    let setting = |what, got: usize, must| Err(ShmError::Setting { what, got: got as u64, must });
    let bytes = options.chunk_bytes;
    if bytes == 0 || !bytes.is_multiple_of(64) || bytes > CHUNK_BYTES_MAX {
        return setting("size of a chunk", bytes, "give a multiple of 64 bytes, at most 64 MiB");
    }
    if options.consumers_max == 0 || options.consumers_max > CONSUMERS_MAX {
        return setting("number of consumers", options.consumers_max, "give 1 to 64");
    }
    if options.rest_chunks > options.reserve_chunks {
        return setting(
            "number of resting chunks",
            options.rest_chunks,
            "it is part of the producer's reserve",
        );
    }
    let shared = options.chunks.saturating_sub(options.reserve_chunks) / options.consumers_max;
    if shared == 0 || options.chunks > CHUNKS_MAX {
        return setting(
            "number of chunks",
            options.chunks,
            "give at least the producer's own and one a consumer, at most a million",
        );
    }
    Ok(shared as u32)
}

const CHUNK_BYTES_MAX: usize = 64 << 20;
const CHUNKS_MAX: usize = 1 << 20;
const CONSUMERS_MAX: usize = 64;
const LOOK_AROUND: Duration = Duration::from_millis(50);
/// A few microseconds: a consumer that is at work has room again by then.
const SPINS: u32 = 64;
