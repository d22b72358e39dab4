//! The application's side of a connection: reader, writer and status. They share one state with the
//! connection's thread.
//!
//! ```text
//!  ConnectionWriter --blocks--> [        ] --blocks--> the connection's thread
//!                   <--room---- [ State  ] <--room----
//!  ConnectionReader <--chunks-- [        ] <--chunks--
//! ```
//!
//! Blocks and chunks move under the lock. Their bytes are copied outside it.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::wake::Wake;
use crate::error::{Error, Result};
use crate::proto::congestion::{Phase, PhaseCost};
use crate::proto::sender::{Limit, SendCounters};
use crate::proto::stream_buffer::{BLOCK_BYTES, Chunk};
use crate::proto::wire::{STREAM_BYTES_MAX, Verdict};

/// Reads the other end's stream in order. Returns 0 bytes only after the other end has finished and all data
/// was read. A broken connection is an error.
///
/// Dropping the reader tells the other end that nobody reads. Data that still arrives is discarded.
pub struct ConnectionReader {
    shared: Arc<Shared>,
    chunk: Chunk,
    /// Length of the chunk on arrival.
    chunk_bytes: u64,
}

/// Writes to the other end. Written data leaves soon, and flushed data at once. `write` blocks while the
/// other end does not read, or while the path is slower than the writer.
///
/// Dropping the writer ends the stream like [`finish`](Self::finish), but without waiting.
pub struct ConnectionWriter {
    shared: Arc<Shared>,
}

/// Status of a connection, usable from any thread.
#[derive(Clone)]
pub struct ConnectionStatus {
    shared: Arc<Shared>,
}

/// Snapshot of a connection's progress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConnectionProgress {
    /// Bytes written at this end.
    pub written_bytes: u64,
    /// Bytes of `written_bytes` that the other end has.
    pub confirmed_bytes: u64,
    /// Bytes received from the other end, in order or not.
    pub received_bytes: u64,
    /// Bytes sent, including retransmissions and UDP and IP headers.
    pub wire_bytes: u64,
    /// Confirmed rate on the wire, in bits per second.
    pub rate_bits_per_s: f64,
    /// Smoothed round trip in microseconds; 0 while unknown.
    pub rtt_us: u64,
    /// Latest queue delay in microseconds.
    pub queue_us: u64,
    /// Share of sent packets that were lost: 0 to 1.
    pub loss: f64,
    /// Bottleneck of this end's stream. [`Limit::Source`]: the application writes no faster.
    pub limit: Limit,
    /// Microseconds since the last packet from the other end, as of the thread's last turn. A live end sends
    /// at least once per second, whatever its application does.
    pub silent_us: u64,
    /// Whether the connection uses TCP.
    pub is_over_tcp: bool,
    /// Counters of this end's stream, including retransmissions.
    pub counters: SendCounters,
    /// Cost of each phase of congestion control, in the order of [`Phase`](crate::Phase).
    pub phases: [PhaseCost; Phase::COUNT],
    /// Present maximum datagram length, in bytes of UDP payload.
    pub datagram_bytes: usize,
}

/// Why a connection ended before both streams did.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    Silent { waited: Duration },
    Ended { verdict: Verdict },
    Cancelled,
    Socket { kind: io::ErrorKind, what: String },
}

pub(super) struct Shared {
    state: Mutex<State>,
    /// Data is readable, or never will be.
    readable: Condvar,
    /// There is room to write, or never will be.
    writable: Condvar,
    /// A stream or the connection has ended.
    ended: Condvar,
    pub(super) wake: Wake,
}

/// State that the application's threads and the connection's thread share.
pub(super) struct State {
    /// Written blocks that the connection's thread has not taken yet.
    pub(super) written: VecDeque<Vec<u8>>,
    pub(super) written_bytes: u64,
    pub(super) flushed_bytes: u64,
    pub(super) is_finished: bool,
    /// Bytes that the other end has confirmed, and the room for more beyond them.
    pub(super) confirmed_bytes: u64,
    pub(super) room_bytes: u64,
    /// Blocks to reuse for writing.
    spare: Vec<Vec<u8>>,
    /// Ordered chunks that the application has not read yet.
    pub(super) chunks: VecDeque<Chunk>,
    pub(super) read_bytes: u64,
    /// Memory of chunks that were read, to reuse.
    pub(super) read_memory: Vec<Vec<u8>>,
    /// Number of read bytes at which to wake the connection's thread.
    pub(super) call_at_read_bytes: u64,
    /// The reader was dropped.
    pub(super) is_unread: bool,
    /// All data of the other end has arrived.
    pub(super) is_ended: bool,
    /// The other end has all data of this end.
    pub(super) is_delivered: bool,
    /// The other end has confirmed in its stream that it has all data.
    pub(super) is_leaving: bool,
    /// Silence after which the other end counts as gone.
    pub(super) silence_us_max: u64,
    /// The connection's thread has ended.
    is_over: bool,
    pub(super) failure: Option<Failure>,
    pub(super) progress: ConnectionProgress,
    /// A change that the connection's thread has not seen yet.
    pub(super) has_news: bool,
    pub(super) thread_sleeps: bool,
    writer_waits: bool,
    reader_waits: bool,
}

impl ConnectionReader {
    /// Waits for the next chunk. `false`: end of the stream.
    fn next_chunk(&mut self) -> io::Result<bool> {
        let memory = std::mem::take(&mut self.chunk).into_memory();
        let read_bytes = std::mem::take(&mut self.chunk_bytes);
        let mut state = self.shared.lock();
        state.read_bytes += read_bytes;
        if memory.len() == BLOCK_BYTES {
            state.read_memory.push(memory);
        }
        if state.read_bytes >= state.call_at_read_bytes {
            state.call_at_read_bytes = u64::MAX;
            self.shared.tell(state);
            state = self.shared.lock();
        }
        loop {
            if state.is_unread {
                // Discarded data must not look like the end of the stream.
                return Err(io::Error::new(
                    io::ErrorKind::ConnectionAborted,
                    "the connection was closed at this end",
                ));
            }
            if let Some(chunk) = state.chunks.pop_front() {
                (self.chunk_bytes, self.chunk) = (chunk.bytes().len() as u64, chunk);
                return Ok(true);
            }
            if state.is_ended {
                return Ok(false);
            }
            if let Some(failure) = &state.failure {
                return Err(failure.into());
            }
            state.reader_waits = true;
            state = self.shared.readable.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.reader_waits = false;
        }
    }
}

impl Read for ConnectionReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let bytes = there.len().min(out.len());
        out[..bytes].copy_from_slice(&there[..bytes]);
        self.consume(bytes);
        Ok(bytes)
    }
}

impl BufRead for ConnectionReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.chunk.bytes().is_empty() && self.next_chunk()? {}
        Ok(self.chunk.bytes())
    }

    fn consume(&mut self, bytes: usize) {
        self.chunk.consume(bytes);
    }
}

impl Drop for ConnectionReader {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stop_reading();
        self.shared.tell(state);
    }
}

impl ConnectionWriter {
    /// Ends the stream and waits until the other end has all data, so that it reads to the end.
    ///
    /// # Errors
    /// The reason if the connection broke before that.
    pub fn finish(self) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.is_finished = true;
        self.shared.tell(state);
        state = self.shared.lock();
        while !state.is_delivered {
            if let Some(failure) = &state.failure {
                return Err(failure.into());
            }
            state = self.shared.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

impl Write for ConnectionWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        let room = loop {
            if let Some(failure) = &state.failure {
                return Err(failure.into());
            }
            if state.is_finished {
                return Err(io::Error::new(
                    io::ErrorKind::BrokenPipe,
                    "the connection was closed at this end",
                ));
            }
            if state.written_bytes + BLOCK_BYTES as u64 >= STREAM_BYTES_MAX {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    "a connection carries 256 TiB each way at most",
                ));
            }
            let room = state.room();
            if room > 0 || bytes.is_empty() {
                break room;
            }
            state.writer_waits = true;
            state = self.shared.writable.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.writer_waits = false;
        };
        let bytes = &bytes[..bytes.len().min(BLOCK_BYTES).min(usize::try_from(room).unwrap_or(BLOCK_BYTES))];
        if bytes.is_empty() {
            return Ok(0);
        }
        match state.written.back_mut() {
            Some(last) if bytes.len() <= SMALL_BYTES && last.capacity() - last.len() >= bytes.len() => {
                last.extend_from_slice(bytes);
            }
            _ => {
                let spare = state.spare.pop();
                // This is the only writer, so nobody else takes the room.
                drop(state);
                let mut block = spare.unwrap_or_else(|| Vec::with_capacity(BLOCK_BYTES));
                block.clear();
                block.extend_from_slice(bytes);
                state = self.shared.lock();
                state.written.push_back(block);
            }
        }
        state.written_bytes += bytes.len() as u64;
        self.shared.tell(state);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut state = self.shared.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.into());
        }
        if state.flushed_bytes < state.written_bytes {
            state.flushed_bytes = state.written_bytes;
            self.shared.tell(state);
        }
        Ok(())
    }
}

impl Drop for ConnectionWriter {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_finished = true;
        self.shared.tell(state);
    }
}

impl ConnectionStatus {
    /// Returns a snapshot of the progress.
    pub fn progress(&self) -> ConnectionProgress {
        let state = self.shared.lock();
        ConnectionProgress { written_bytes: state.written_bytes, ..state.progress }
    }

    /// Stops reading, and waits until both streams have ended and both ends know it. Call
    /// [`finish`](ConnectionWriter::finish) on the writer or drop it before, or from another thread: this
    /// function waits for it. A program that exits earlier may lose its last packets.
    ///
    /// # Errors
    /// The reason if the connection broke before that.
    pub fn close(&self) -> Result<()> {
        self.end(|_| {})
    }

    /// Like [`close`](Self::close), for an end that has written its last word. Treats the other end as gone
    /// once it is silent for `silence`.
    ///
    /// # Errors
    /// The reason if the connection broke before that.
    pub fn close_within(&self, silence: Duration) -> Result<()> {
        self.end(|state| state.silence_us_max = silence.as_micros() as u64)
    }

    /// Like [`close`](Self::close), but one round trip shorter. The other end must have written, as its last
    /// word, that it has all data. This end tells it that it leaves, and waits for nothing more.
    ///
    /// # Errors
    /// The reason if the connection broke before that.
    pub fn leave(&self) -> Result<()> {
        self.end(|state| state.is_leaving = true)
    }

    fn end(&self, how: impl FnOnce(&mut State)) -> Result<()> {
        let mut state = self.shared.lock();
        how(&mut state);
        state.stop_reading();
        self.shared.tell(state);
        state = self.shared.lock();
        while !state.is_over {
            state = self.shared.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.failure.as_ref().map_or(Ok(()), |failure| Err(failure.into()))
    }
}

impl Shared {
    pub(super) fn new(room_bytes: u64, is_over_tcp: bool) -> io::Result<Self> {
        let state = State {
            written: VecDeque::new(),
            written_bytes: 0,
            flushed_bytes: 0,
            is_finished: false,
            confirmed_bytes: 0,
            room_bytes,
            spare: Vec::new(),
            chunks: VecDeque::new(),
            read_bytes: 0,
            read_memory: Vec::new(),
            call_at_read_bytes: u64::MAX,
            is_unread: false,
            is_ended: false,
            is_delivered: false,
            is_leaving: false,
            silence_us_max: u64::MAX,
            is_over: false,
            failure: None,
            progress: ConnectionProgress {
                written_bytes: 0,
                confirmed_bytes: 0,
                received_bytes: 0,
                wire_bytes: 0,
                rate_bits_per_s: 0.0,
                rtt_us: 0,
                queue_us: 0,
                loss: 0.0,
                limit: Limit::Start,
                silent_us: 0,
                is_over_tcp,
                counters: SendCounters::default(),
                phases: [PhaseCost::default(); Phase::COUNT],
                datagram_bytes: 0,
            },
            has_news: false,
            thread_sleeps: false,
            writer_waits: false,
            reader_waits: false,
        };
        Ok(Self {
            state: Mutex::new(state),
            readable: Condvar::new(),
            writable: Condvar::new(),
            ended: Condvar::new(),
            wake: Wake::new()?,
        })
    }

    /// Makes the application's handles.
    pub(super) fn ends(self: &Arc<Self>) -> (ConnectionReader, ConnectionWriter, ConnectionStatus) {
        let reader = ConnectionReader { shared: self.clone(), chunk: Chunk::default(), chunk_bytes: 0 };
        (reader, ConnectionWriter { shared: self.clone() }, ConnectionStatus { shared: self.clone() })
    }

    /// Ignores poisoning: a panic leaves no value half changed.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the connection's thread of a change.
    fn tell(&self, mut state: MutexGuard<'_, State>) {
        state.has_news = true;
        if std::mem::take(&mut state.thread_sleeps) {
            // Wakes with the lock held. A later wake-up would be spurious and stay pending.
            self.wake.call();
        }
    }

    /// Wakes the threads that can continue.
    pub(super) fn let_go(&self, state: &State) {
        let has_failed = state.failure.is_some();
        if state.reader_waits && (!state.chunks.is_empty() || state.is_ended || state.is_unread || has_failed)
        {
            self.readable.notify_all();
        }
        // A writer that wakes for each packet would do little else.
        let has_room = state.room() >= ROOM_BYTES || state.confirmed_bytes == state.written_bytes;
        if state.writer_waits && (has_room || has_failed || state.is_finished) {
            self.writable.notify_all();
        }
        if state.is_delivered || state.is_over || has_failed {
            self.ended.notify_all();
        }
    }

    /// Marks the end of the connection's thread.
    pub(super) fn end(&self, failure: impl FnOnce() -> Failure) {
        let mut state = self.lock();
        state.is_over = true;
        if state.failure.is_none() && !(state.is_ended && state.is_delivered) {
            state.failure = Some(failure());
        }
        self.let_go(&state);
    }
}

impl State {
    /// Bytes that the application may write now.
    fn room(&self) -> u64 {
        (self.confirmed_bytes + self.room_bytes).saturating_sub(self.written_bytes)
    }

    /// Keeps a block for reuse.
    pub(super) fn recycle(&mut self, block: Vec<u8>) {
        if block.capacity() >= BLOCK_BYTES && self.spare.len() < SPARE_BLOCKS_MAX {
            self.spare.push(block);
        }
    }

    fn stop_reading(&mut self) {
        self.is_unread = true;
        self.read_bytes += self.chunks.drain(..).map(|chunk| chunk.bytes().len() as u64).sum::<u64>();
    }
}

impl From<&Failure> for Error {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::Silent { waited } => Self::Silent { waited: *waited },
            Failure::Ended { verdict } => Self::Ended { verdict: *verdict },
            Failure::Cancelled => Self::Cancelled,
            Failure::Socket { kind, what } => {
                Self::Socket(grebe_datagram::Error::Receive { source: io::Error::new(*kind, what.clone()) })
            }
        }
    }
}

impl From<&Failure> for io::Error {
    fn from(failure: &Failure) -> Self {
        let kind = match failure {
            Failure::Silent { .. } => io::ErrorKind::TimedOut,
            Failure::Ended { verdict: Verdict::Taken } => io::ErrorKind::ConnectionRefused,
            Failure::Ended { .. } => io::ErrorKind::ConnectionReset,
            // Not `Interrupted`, because callers retry after that.
            Failure::Cancelled => io::ErrorKind::ConnectionAborted,
            Failure::Socket { kind, .. } => *kind,
        };
        Self::new(kind, Error::from(failure))
    }
}

impl fmt::Debug for ConnectionReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionReader").finish_non_exhaustive()
    }
}

impl fmt::Debug for ConnectionWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionWriter").finish_non_exhaustive()
    }
}

impl fmt::Debug for ConnectionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionStatus").field("progress", &self.progress()).finish()
    }
}

/// Up to this length, bytes are copied under the lock.
const SMALL_BYTES: usize = 4 << 10;

/// Room at which a waiting writer wakes.
const ROOM_BYTES: u64 = 2 * BLOCK_BYTES as u64;

/// Maximum spare blocks.
const SPARE_BLOCKS_MAX: usize = 64;
