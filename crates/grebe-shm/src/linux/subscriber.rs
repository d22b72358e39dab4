//! The consumer's end: what is lent to this process.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_frame::{Batch, BatchImport, BatchMut, DescriptionReader, Header};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::connect;

use super::busy_poll::BusyPoll;
use super::directory::{Directory, seqpacket};
use super::map::{self, Mapping};
use super::packet::{self, Packet};
use crate::error::Error;
use crate::lane::{Borrower, Descriptor, Shape, Violation};
use crate::message::{Hello, Message, Welcome};
use crate::options::SubscriberOptions;
use crate::said::Said;
use crate::sync::{Ordering, Words};

/// The consumer's end of a stream: batches that lie in the producer's memory, to be read where they are.
///
/// A batch that is dropped goes back to the producer, from whichever thread. The producer learns that a consumer is gone when
/// the subscriber *and* all its batches are: nothing is overwritten that is still read.
///
/// That holds with a producer that keeps to it, as [`Publisher`](super::Publisher) does. The memory stays writable for its
/// process, and a hostile one could change samples while they are read: a batch of [`pop`](Self::pop) is a `&[u8]` into that
/// memory, so what such a program makes of it is undefined. The directory is the user's own, and who makes a stream is this
/// user's process; where even that is too much trust, [`pop_into`](Self::pop_into) copies, and reads nothing twice.
#[derive(Debug)]
pub struct Subscriber {
    name: String,
    socket: Arc<OwnedFd>,
    borrower: Borrower,
    import: BatchImport,
    tables: Words,
    said: Said,
    /// The number of what was said of the chunk that was taken last.
    serial: u64,
    descriptions: DescriptionReader,
    welcome: Welcome,
    busy_poll: BusyPoll,
    hung_up: bool,
    /// The producer's reason when it cut this consumer off.
    bye: Option<String>,
    refused_frames: u64,
    /// Bytes of chunks taken since this thread slept or yielded.
    taken_bytes: usize,
}

impl Subscriber {
    /// Joins the stream of this name, at the newest.
    ///
    /// # Errors
    /// There is no such stream ([`Error::NoStream`]), or its producer refuses.
    pub fn connect(name: &str, options: &SubscriberOptions) -> Result<Self, Error> {
        let socket = reach(name, options)?;
        let hello = Message::Hello(Hello {
            policy: options.policy,
            queue_batches: options.queue_batches.max(1),
            quota_chunks: options.quota_chunks.unwrap_or(u32::MAX).max(1),
            name: options.name.clone(),
        });
        // Where it hangs up at once it may have said why.
        let said = packet::send_message(&socket, &hello, &[]);
        let (welcome, payload, lane) = answer(name, &socket)?;
        said.map_err(Error::tried("speak to the producer"))?;
        let damaged = |what: &str| Error::Damaged { name: name.to_owned(), what: what.to_owned() };
        let shape = Shape::new(welcome.queue_batches, welcome.quota_chunks);
        for (fd, bytes) in [(&payload, welcome.payload_bytes()), (&lane, shape.words() * 8)] {
            if !map::is_sealed_at(fd, bytes).map_err(Error::tried("look at shared memory"))? {
                return Err(damaged("its size is not what was said, or not sealed"));
            }
        }
        let payload = Mapping::new(payload, welcome.payload_bytes(), false)
            .map_err(Error::tried("map shared memory"))?;
        let lane = Mapping::new(lane, shape.words() * 8, true).map_err(Error::tried("map shared memory"))?;
        let borrower = Borrower::new(lane.words(0, shape.words()), shape, options.policy);
        let socket = Arc::new(socket);
        let (returns, producer) = (borrower.returns().clone(), socket.clone());
        let chunks = payload.lent(welcome.tables_at());
        let import = BatchImport::new(chunks, welcome.chunk_bytes as usize, move |chunk| {
            if returns.give_back(chunk) {
                wake(&producer);
            }
        });
        let tables =
            payload.words(welcome.tables_at(), welcome.chunks as usize * welcome.table_words as usize);
        Ok(Self {
            name: name.to_owned(),
            socket,
            borrower,
            import,
            tables,
            said: Said::new(payload.words(welcome.said_at(), Said::words(welcome.chunks)), welcome.chunks),
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

    /// The next batch, if one waits. A thread that took much without sleeping yields first: where another consumer shares its
    /// processor, that one would wait for the scheduler's next tick, up to 4 ms, and miss batches.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::CutOff`], at once: what still waited is not to be had any more. How else the stream ended is
    /// told by [`wait`](Self::wait).
    pub fn pop(&mut self) -> Result<Option<Batch>, Error> {
        let Some(what) = self.take()? else { return Ok(None) };
        let offsets = offsets(&self.tables, self.welcome.table_words, what);
        let lent_twice = || Error::Damaged {
            name: self.name.clone(),
            what: format!("chunk {} was lent twice", what.chunk),
        };
        let (batch, refused) = self.import.batch(what.chunk, offsets).ok_or_else(lent_twice)?;
        self.refused_frames += refused as u64;
        Ok(Some(batch))
    }

    /// Copies the next batch, if one waits, into `to`, and gives its chunk back at once; whether one waited. For a producer
    /// that is not trusted: whatever it writes meanwhile or later, the copy was validated as it is, and stays.
    ///
    /// # Errors
    /// As [`pop`](Self::pop), and [`Error::Setting`] where `to` has less room than a chunk of the stream.
    pub fn pop_into(&mut self, to: &mut BatchMut) -> Result<bool, Error> {
        let free_bytes = to.capacity_bytes() - to.filled_bytes();
        if free_bytes < self.welcome.chunk_bytes as usize {
            let must = "copy into an empty batch of chunks that are as large as the stream's";
            return Err(Error::Setting { what: "room for a copy", got: free_bytes as u64, must });
        }
        let Some(what) = self.take()? else { return Ok(false) };
        let offsets = offsets(&self.tables, self.welcome.table_words, what);
        self.refused_frames += self.import.copy(what.chunk, offsets, to) as u64;
        if self.borrower.returns().give_back(what.chunk) {
            wake(&self.socket);
        }
        Ok(true)
    }

    /// The next descriptor, in range.
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
            wake(&self.socket);
        }
        if what.frames > self.welcome.table_words * 2 || what.chunk >= self.welcome.chunks {
            return Err(damaged(format!("{} frames in chunk {}", what.frames, what.chunk)));
        }
        self.taken_bytes += self.welcome.chunk_bytes as usize;
        if self.said.serial(what.chunk) != self.serial {
            self.describe(what.chunk);
        }
        Ok(Some(what))
    }

    /// Takes what the producer says of this chunk's stream; what cannot be read is counted, and changes nothing.
    #[cold]
    fn describe(&mut self, chunk: u32) {
        self.serial = self.said.serial(chunk);
        if self.serial == 0 {
            self.descriptions.forget();
            return self.import.describe(None);
        }
        match self.descriptions.take(&self.said.read(chunk)) {
            Ok(Some(description)) => self.import.describe(Some(Arc::new(description))),
            // As before.
            Ok(None) => {}
            Err(_) => self.refused_frames += 1,
        }
    }

    /// That the producer has cut this consumer off, and why.
    fn cut_off(&mut self) -> Error {
        // Said just before, or it never will be.
        let _ = self.listen(Duration::from_millis(100));
        let reason = self.bye.clone().unwrap_or_else(|| "it did not say why".to_owned());
        Error::CutOff { name: self.name.clone(), reason }
    }

    /// Sleeps until a batch waits, the stream has ended, or `timeout` has passed; whether a batch waits.
    ///
    /// # Errors
    /// Once nothing waits any more: [`Error::ProducerGone`] or [`Error::CutOff`].
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, Error> {
        let began = Instant::now();
        if self.busy_poll.look(|| self.borrower.has_value()) {
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
            // In this order: what was queued before the end is seen after it.
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
                // Woken for what was taken before it slept, or by a signal.
                (None, false) => {}
            }
        }
    }

    /// Chunks that may be out to this consumer, waiting and held, as its producer granted: who holds as many gets nothing more.
    pub fn quota_chunks(&self) -> u32 {
        self.welcome.quota_chunks
    }

    /// Whether the stream has ended, and everything was taken.
    pub fn is_ended(&self) -> bool {
        self.borrower.end().is_some() && !self.borrower.has_value()
    }

    /// The header that ended the stream, once it has: what is missing before it was lost.
    pub fn end_header(&self) -> Option<Header> {
        self.borrower.end().flatten().and_then(|bytes| Header::parse(&bytes).ok())
    }

    /// Frames that the producer dropped for this consumer, under its policy.
    pub fn dropped_frames(&self) -> u64 {
        self.borrower.dropped_frames()
    }

    /// Places at which the producer promised a frame, or a description, and none was found.
    pub fn refused_frames(&self) -> u64 {
        self.refused_frames
    }

    fn sleep(&mut self, timeout: Duration) -> Result<(), Error> {
        self.taken_bytes = 0;
        if self.borrower.prepare_sleep() {
            wake(&self.socket);
        }
        if !self.borrower.has_value() && self.borrower.end().is_none() {
            self.listen(timeout)?;
        }
        self.borrower.end_sleep();
        Ok(())
    }

    /// Waits for the socket to say something, or to hang up.
    fn listen(&mut self, timeout: Duration) -> Result<(), Error> {
        match poll(&mut [PollFd::new(&*self.socket, PollFlags::IN)], Some(&timespec(timeout))) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(Error::tried("wait for the producer")(errno)),
        }
        loop {
            match packet::receive(&*self.socket) {
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

fn reach(name: &str, options: &SubscriberOptions) -> Result<OwnedFd, Error> {
    let directory = options.directory.as_deref();
    let absent = |path| Error::NoStream { name: name.to_owned(), path };
    let Some(directory) = Directory::find(directory)? else {
        return Err(absent(Directory::path(directory).join(format!("{name}.shm"))));
    };
    let path = directory.socket_path(name)?;
    let address = directory.address(name)?;
    let until = Instant::now() + ANSWER_TIMEOUT;
    loop {
        let socket = seqpacket()?;
        match connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(Errno::NOENT | Errno::CONNREFUSED) => return Err(absent(path)),
            // The listener's queue is full: others connect too.
            Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            Err(Errno::AGAIN) => {
                return Err(Error::Silent { name: name.to_owned(), timeout: ANSWER_TIMEOUT });
            }
            Err(errno) => return Err(Error::tried("connect to the producer")(errno)),
        }
    }
}

/// The producer's answer to the hello.
fn answer(name: &str, socket: &OwnedFd) -> Result<(Welcome, OwnedFd, OwnedFd), Error> {
    let name = || name.to_owned();
    let until = Instant::now() + ANSWER_TIMEOUT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Silent { name: name(), timeout: ANSWER_TIMEOUT });
        }
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timespec(left))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::tried("wait for the producer")(errno)),
        }
        return match packet::receive(socket) {
            Packet::Nothing => continue,
            Packet::Message(Message::Welcome(welcome), fds) => match <[OwnedFd; 2]>::try_from(fds) {
                Ok([payload, lane]) => Ok((welcome, payload, lane)),
                Err(_) => Err(Error::Damaged { name: name(), what: "no memory was handed over".to_owned() }),
            },
            Packet::Message(Message::Refused(reason), _) => Err(Error::Refused { name: name(), reason }),
            Packet::HungUp => Err(Error::ProducerGone(name())),
            Packet::Message(..) => {
                Err(Error::Refused { name: name(), reason: "it said something else".to_owned() })
            }
            Packet::Malformed(why) => Err(Error::Refused { name: name(), reason: why.to_string() }),
        };
    }
}

/// Where the frames of a chunk are: in a row, or by the chunk's table. An offset that leads out of the chunk is refused by the
/// import.
fn offsets(tables: &Words, table_words: u32, what: Descriptor) -> impl Iterator<Item = u32> {
    let Descriptor { chunk, frames, first, stride } = what;
    let row = move |frame: u32| first.wrapping_add(frame.wrapping_mul(stride));
    let table = move |frame: u32| {
        let word = chunk as usize * table_words as usize + frame as usize / 2;
        (tables.at(word).load(Ordering::Relaxed) >> (32 * (frame & 1))) as u32
    };
    (0..frames).map(move |frame| if stride == 0 { table(frame) } else { row(frame) })
}

fn wake(socket: &OwnedFd) {
    // Behind a full socket the producer has been woken often enough; behind a broken one there is none.
    let _ = packet::send_message(socket, &Message::Wake, &[]);
}

fn timespec(timeout: Duration) -> Timespec {
    let timeout = timeout.min(Duration::from_secs(3600));
    Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() }
}

const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Some 50 us of reading, of which a yield with nobody waiting takes one.
const YIELD_BYTES: usize = 1 << 20;
