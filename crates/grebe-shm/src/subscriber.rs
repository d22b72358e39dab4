//! Consumer's end: batches lent to this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_frame::{Batch, Description, DescriptionReader, Header, TrustedBatchImport};

use crate::busy_poll::BusyPoll;
use crate::copies::Copies;
use crate::descriptions::Descriptions;
use crate::directory::Directory;
use crate::error::Error;
use crate::lane::{Borrower, Descriptor, Shape, Violation};
use crate::map::Mapping;
use crate::message::{Hello, MEMORIES_MAX, Message, Welcome};
use crate::options::{SubscriberOptions, Trust};
use crate::packet::{self, Packet};
use crate::platform::{Connection, Memory};
use crate::sync::{Ordering, Words};

/// Consumer's end of a stream. Batches of a producer of this user stay in place; those of any other are
/// copied.
///
/// In place, a dropped batch returns to the producer, from whichever thread. The producer learns that a
/// consumer is gone when the subscriber *and* all its batches are. So nothing is overwritten while it is
/// read, if the producer keeps its promise as [`Publisher`](super::Publisher) does. [`Trust`] describes the
/// risks of others, and which batches are copied.
#[derive(Debug)]
pub struct Subscriber {
    name: String,
    connection: Arc<Connection>,
    borrower: Borrower,
    lent: Lent,
    tables: Words,
    chunk_descriptions: Descriptions,
    /// Serial number of the last chunk's description.
    serial: u64,
    descriptions: DescriptionReader,
    welcome: Welcome,
    busy_poll: BusyPoll,
    hung_up: bool,
    /// The producer's reason for cutting this consumer off.
    bye: Option<String>,
    refused_frames: u64,
    /// Bytes of chunks taken since this thread last slept or yielded.
    taken_bytes: usize,
}

impl Subscriber {
    /// Joins the stream with this name at its newest batch.
    ///
    /// # Errors
    /// The stream does not exist ([`Error::NoStream`]), or its producer refuses.
    pub fn connect(name: &str, options: &SubscriberOptions) -> Result<Self, Error> {
        let file = Directory::file_to_join(name, options.directory.as_deref())?;
        let connection = Connection::connect(name, &file, ANSWER_TIMEOUT)?;
        let hello = Message::Hello(Hello {
            policy: options.policy,
            queue_batches: options.queue_batches.max(1),
            quota_chunks: options.quota_chunks.unwrap_or(u32::MAX).max(1),
            name: options.name.clone(),
        });
        // A producer that hangs up at once may have given a reason.
        let sent = packet::send_message(&connection, &hello, &[]);
        let (welcome, payload, lane) = answer(name, &connection)?;
        sent.map_err(Error::tried("speak to the producer"))?;
        let damaged = |what: &str| Error::Damaged { name: name.to_owned(), what: what.to_owned() };
        let shape = Shape::new(welcome.queue_batches, welcome.quota_chunks);
        for (memory, bytes) in [(&payload, welcome.payload_bytes()), (&lane, shape.words() * 8)] {
            if !memory.is_fixed_at(bytes).map_err(Error::tried("look at shared memory"))? {
                return Err(damaged("its size differs from the announced one, or can change"));
            }
        }
        let is_trusted = options.trust == Trust::OwnUser && connection.is_from_own_user(&payload);
        let payload = Mapping::new(&payload, welcome.payload_bytes(), false)
            .map_err(Error::tried("map shared memory"))?;
        let lane = Mapping::new(&lane, shape.words() * 8, true).map_err(Error::tried("map shared memory"))?;
        let borrower = Borrower::new(lane.words(0, shape.words()), shape, options.policy);
        let connection = Arc::new(connection);
        let lent = if is_trusted {
            let (returns, producer) = (borrower.returns().clone(), connection.clone());
            let chunks = payload.trusted(welcome.tables_at());
            Lent::InPlace(TrustedBatchImport::new(chunks, welcome.chunk_bytes as usize, move |chunk| {
                if returns.give_back(chunk) {
                    wake(&producer);
                }
            }))
        } else {
            Lent::Copied(Copies::new(&payload, &welcome).map_err(Error::tried("make memory for copies"))?)
        };
        let tables =
            payload.words(welcome.tables_at(), welcome.chunks as usize * welcome.table_words as usize);
        Ok(Self {
            name: name.to_owned(),
            connection,
            borrower,
            lent,
            tables,
            chunk_descriptions: Descriptions::new(
                payload.words(welcome.descriptions_at(), Descriptions::words(welcome.chunks)),
                welcome.chunks,
            ),
            serial: 0,
            descriptions: DescriptionReader::default(),
            welcome,
            busy_poll: BusyPoll::default(),
            hung_up: false,
            bye: None,
            refused_frames: 0,
            taken_bytes: 0,
        })
    }

    /// Next batch, if one is queued. A thread that took much data without sleeping yields first. Otherwise
    /// another consumer on the same processor would wait for the scheduler's next tick, up to 4 ms, and miss
    /// batches.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::CutOff`] at once, without the queued batches. [`wait`](Self::wait)
    /// reports any other end of the stream.
    pub fn pop(&mut self) -> Result<Option<Batch>, Error> {
        if !self.lent.has_room() {
            return Ok(None);
        }
        let Some(what) = self.take()? else { return Ok(None) };
        let offsets = offsets(&self.tables, self.welcome.table_words, what);
        let batch = match &mut self.lent {
            Lent::InPlace(import) => import.batch(what.chunk, offsets),
            Lent::Copied(copies) => {
                let batch = copies.batch(what.chunk, offsets);
                if self.borrower.returns().give_back(what.chunk) {
                    wake(&self.connection);
                }
                batch
            }
        };
        let lent_twice = || Error::Damaged {
            name: self.name.clone(),
            what: format!("chunk {} was lent twice", what.chunk),
        };
        let (batch, refused) = batch.ok_or_else(lent_twice)?;
        self.refused_frames += refused as u64;
        Ok(Some(batch))
    }

    /// Whether batches are copies, because the maker of the stream is not trusted.
    pub fn is_copied(&self) -> bool {
        matches!(self.lent, Lent::Copied(_))
    }

    /// Next descriptor, checked to be in range.
    fn take(&mut self) -> Result<Option<Descriptor>, Error> {
        if self.taken_bytes >= YIELD_BYTES {
            self.taken_bytes = 0;
            std::thread::yield_now();
        }
        let damaged = |what: String| Error::Damaged { name: self.name.clone(), what };
        let taken = self.borrower.pop().map_err(|violation: Violation| damaged(violation.to_string()))?;
        let Some(what) = taken else {
            return if self.borrower.is_cut_off() { Err(self.cut_off()) } else { Ok(None) };
        };
        if self.borrower.must_wake() {
            wake(&self.connection);
        }
        if what.frames > self.welcome.table_words * 2 || what.chunk >= self.welcome.chunks {
            return Err(damaged(format!("{} frames in chunk {}", what.frames, what.chunk)));
        }
        self.taken_bytes += self.welcome.chunk_bytes as usize;
        if self.chunk_descriptions.serial(what.chunk) != self.serial {
            self.describe(what.chunk);
        }
        Ok(Some(what))
    }

    /// Reads the producer's description for this chunk. An unreadable one is counted and changes nothing.
    #[cold]
    fn describe(&mut self, chunk: u32) {
        self.serial = self.chunk_descriptions.serial(chunk);
        if self.serial == 0 {
            self.descriptions.forget();
            return self.lent.describe(None);
        }
        match self.descriptions.take(&self.chunk_descriptions.read(chunk)) {
            Ok(Some(description)) => self.lent.describe(Some(Arc::new(description))),
            // Unchanged.
            Ok(None) => {}
            Err(_) => self.refused_frames += 1,
        }
    }

    /// Error for a consumer that was cut off, with the reason.
    fn cut_off(&mut self) -> Error {
        // The reason arrived just before, or never will.
        let _ = self.listen(Duration::from_millis(100));
        let reason = self.bye.clone().unwrap_or_else(|| "it gave no reason".to_owned());
        Error::CutOff { name: self.name.clone(), reason }
    }

    /// Sleeps until a batch is queued, the stream has ended, or `timeout` has passed. Returns whether a batch
    /// is queued.
    ///
    /// # Errors
    /// Once nothing is queued: [`Error::ProducerGone`] or [`Error::CutOff`].
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        let began = Instant::now();
        if !self.lent.wait_for_room(timeout) {
            return Ok(false);
        }
        if self.busy_poll.spin(|| self.borrower.has_value()) {
            return Ok(true);
        }
        let waited = self.wait_asleep(began, timeout);
        self.busy_poll.slept(began.elapsed());
        waited
    }

    fn wait_asleep(&mut self, began: Instant, timeout: Duration) -> Result<bool, Error> {
        loop {
            let left = timeout.saturating_sub(began.elapsed());
            if !self.hung_up && self.borrower.end().is_none() {
                self.sleep(left)?;
            }
            // In this order: a batch queued before the end is visible after it.
            let is_ended = self.borrower.end().is_some();
            if self.borrower.has_value() {
                return Ok(true);
            }
            match (&self.bye, self.hung_up) {
                _ if is_ended => return Ok(false),
                _ if self.borrower.is_cut_off() => return Err(self.cut_off()),
                (Some(_), _) => return Err(self.cut_off()),
                (None, true) => return Err(Error::ProducerGone(self.name.clone())),
                (None, false) if left.is_zero() => return Ok(false),
                // Woken for a batch taken before the sleep, or by a signal.
                (None, false) => {}
            }
        }
    }

    /// Maximum batches on loan to this consumer; with as many it gets nothing more. In place they share the
    /// grant with queued batches.
    pub fn quota_chunks(&self) -> u32 {
        match &self.lent {
            Lent::InPlace(_) => self.welcome.quota_chunks,
            Lent::Copied(copies) => copies.count() as u32,
        }
    }

    /// Whether the stream has ended, and everything was taken.
    pub fn is_ended(&self) -> bool {
        self.borrower.end().is_some() && !self.borrower.has_value()
    }

    /// Final header of the stream, once it has ended. Samples missing before it were lost.
    pub fn end_header(&self) -> Option<Header> {
        self.borrower.end().flatten().and_then(|bytes| Header::parse(&bytes).ok())
    }

    /// Frames that the producer dropped for this consumer under its policy.
    pub fn dropped_frames(&self) -> u64 {
        self.borrower.dropped_frames()
    }

    /// Promised frames or descriptions that were not found.
    pub fn refused_frames(&self) -> u64 {
        self.refused_frames
    }

    fn sleep(&mut self, timeout: Duration) -> Result<(), Error> {
        self.taken_bytes = 0;
        if self.borrower.prepare_sleep() {
            wake(&self.connection);
        }
        if !self.borrower.has_value() && self.borrower.end().is_none() {
            self.listen(timeout)?;
        }
        self.borrower.end_sleep();
        Ok(())
    }

    /// Waits for a message or a hang-up.
    fn listen(&mut self, timeout: Duration) -> Result<(), Error> {
        if !self.connection.wait(timeout).map_err(Error::tried("wait for the producer"))? {
            return Ok(());
        }
        loop {
            match packet::receive(&self.connection) {
                Packet::Message(Message::Bye(reason), _) => self.bye = Some(reason),
                Packet::Message(..) | Packet::Malformed(_) => {}
                Packet::Nothing => return Ok(()),
                Packet::HungUp => {
                    self.hung_up = true;
                    return Ok(());
                }
            }
        }
    }
}

/// Access to lent chunks.
#[derive(Debug)]
enum Lent {
    InPlace(TrustedBatchImport),
    Copied(Copies),
}

impl Lent {
    fn describe(&mut self, description: Option<Arc<Description>>) {
        match self {
            Lent::InPlace(import) => import.describe(description),
            Lent::Copied(copies) => copies.describe(description),
        }
    }

    fn has_room(&self) -> bool {
        match self {
            Lent::InPlace(_) => true,
            Lent::Copied(copies) => copies.has_room(),
        }
    }

    fn wait_for_room(&self, timeout: Duration) -> bool {
        match self {
            Lent::InPlace(_) => true,
            Lent::Copied(copies) => copies.wait_for_room(timeout),
        }
    }
}

/// The producer's answer to the hello.
fn answer(name: &str, connection: &Connection) -> Result<(Welcome, Memory, Memory), Error> {
    let name = || name.to_owned();
    let until = Instant::now() + ANSWER_TIMEOUT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Silent { name: name(), timeout: ANSWER_TIMEOUT });
        }
        connection.wait(left).map_err(Error::tried("wait for the producer"))?;
        return match packet::receive(connection) {
            Packet::Nothing => continue,
            Packet::Message(Message::Welcome(welcome), memory) => {
                match <[Memory; MEMORIES_MAX]>::try_from(memory) {
                    Ok([payload, lane]) => Ok((welcome, payload, lane)),
                    Err(_) => Err(Error::Damaged { name: name(), what: "no memory was received".to_owned() }),
                }
            }
            Packet::Message(Message::Refused(reason), _) => Err(Error::Refused { name: name(), reason }),
            Packet::HungUp => Err(Error::ProducerGone(name())),
            Packet::Message(..) => {
                Err(Error::Refused { name: name(), reason: "it sent an unexpected message".to_owned() })
            }
            Packet::Malformed(why) => Err(Error::Refused { name: name(), reason: why.to_string() }),
        };
    }
}

/// Offsets of a chunk's frames: a row, or the chunk's table. The import refuses an offset outside of the
/// chunk.
fn offsets(tables: &Words, table_words: u32, what: Descriptor) -> impl Iterator<Item = u32> {
    let Descriptor { chunk, frames, first, stride } = what;
    let row = move |frame: u32| first.wrapping_add(frame.wrapping_mul(stride));
    let table = move |frame: u32| {
        let word = chunk as usize * table_words as usize + frame as usize / 2;
        (tables.at(word).load(Ordering::Relaxed) >> (32 * (frame & 1))) as u32
    };
    (0..frames).map(move |frame| if stride == 0 { table(frame) } else { row(frame) })
}

fn wake(connection: &Connection) {
    // With a full connection enough wake-ups are pending; with a broken one the producer is gone.
    let _ = packet::send_message(connection, &Message::Wake, &[]);
}

const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Some 50 us of reading; a yield without waiting threads takes one.
const YIELD_BYTES: usize = 1 << 20;
