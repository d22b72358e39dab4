//! What an application has of a connection: a reader, a writer, and how it goes. They share a state with the connection's thread.
//!
//! ```text
//!  ConnectionWriter --blocks--> [        ] --blocks--> the connection's thread
//!                   <--room---- [ State  ] <--room----
//!  ConnectionReader <--chunks-- [        ] <--chunks--
//! ```
//!
//! Bytes are copied outside of the lock; blocks and chunks move through it.

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

/// Reads what the other end writes, in order. Reading returns 0 bytes only when the other end has finished and everything was read: where a
/// connection breaks, that is an error.
///
/// Dropping it says that nothing more will be read; what still comes is thrown away.
pub struct ConnectionReader {
    shared: Arc<Shared>,
    chunk: Chunk,
    /// Bytes of the chunk as it came.
    chunk_bytes: u64,
}

/// Writes to the other end. What is written leaves soon, and what was flushed at once; `write` waits while the other end does not read, or the
/// path does not bring as much.
///
/// Dropping it ends the stream, as [`finish`](Self::finish) does, without waiting.
pub struct ConnectionWriter {
    shared: Arc<Shared>,
}

/// How a connection goes, from any thread.
#[derive(Clone)]
pub struct ConnectionStatus {
    shared: Arc<Shared>,
}

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConnectionProgress {
    /// Bytes that were written at this end.
    pub written_bytes: u64,
    /// Bytes of them that the other end has.
    pub confirmed_bytes: u64,
    /// Bytes that have come from the other end, in order or not.
    pub received_bytes: u64,
    /// Bytes sent, with repeats and with UDP and IP headers.
    pub wire_bytes: u64,
    /// The confirmed rate on the wire, in bits per second.
    pub rate_bits_per_s: f64,
    /// The smoothed round trip; 0: not known yet.
    pub rtt_us: u64,
    /// The queueing delay last seen.
    pub queue_us: u64,
    /// Packets that were lost, of those sent so far: 0 to 1.
    pub loss: f64,
    /// What keeps this end from sending faster; [`Limit::Source`]: nobody writes more.
    pub limit: Limit,
    /// Microseconds for which nothing has come from the other end, as the connection's thread knew when it looked last. An end that is there
    /// is heard each second, whatever its application does.
    pub silent_us: u64,
    /// It goes over TCP.
    pub is_over_tcp: bool,
    /// What was sent so far, with repeats.
    pub counters: SendCounters,
    /// What each phase of the congestion control has cost, in the order of [`Phase`](crate::Phase).
    pub phases: [PhaseCost; Phase::COUNT],
    /// Bytes of UDP payload of the longest datagrams now.
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
    /// There is something to read, or never will be.
    readable: Condvar,
    /// There is room to write, or never will be.
    writable: Condvar,
    /// Something has come to its end.
    ended: Condvar,
    pub(super) wake: Wake,
}

/// What the application's threads and the connection's thread know together.
pub(super) struct State {
    /// Written, and not taken by the connection's thread yet.
    pub(super) written: VecDeque<Vec<u8>>,
    pub(super) written_bytes: u64,
    pub(super) flushed_bytes: u64,
    pub(super) is_finished: bool,
    /// What of it the other end has, and how much more than that may be written.
    pub(super) confirmed_bytes: u64,
    pub(super) room_bytes: u64,
    /// Blocks to write into again.
    spare: Vec<Vec<u8>>,
    /// In order, and not read yet.
    pub(super) chunks: VecDeque<Chunk>,
    pub(super) read_bytes: u64,
    /// Memory of chunks that were read.
    pub(super) read_memory: Vec<Vec<u8>>,
    /// When so much was read, the connection's thread wants to know.
    pub(super) call_at_read_bytes: u64,
    /// Nobody reads any more.
    pub(super) is_unread: bool,
    /// Everything has come.
    pub(super) is_ended: bool,
    /// The other end has everything.
    pub(super) is_delivered: bool,
    /// The other end has said that it has everything.
    pub(super) is_leaving: bool,
    /// Another end that is silent for so long has left.
    pub(super) silence_us_max: u64,
    /// The connection's thread has ended.
    is_over: bool,
    pub(super) failure: Option<Failure>,
    pub(super) progress: ConnectionProgress,
    /// Something happened that the connection's thread has not seen.
    pub(super) has_news: bool,
    pub(super) thread_sleeps: bool,
    writer_waits: bool,
    reader_waits: bool,
}

impl ConnectionReader {
    /// Waits for the next chunk; `false`: that was all.
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
                // What was thrown away must not look like the end.
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
    /// Ends the stream, and waits until the other end has everything: the other end then reads to the end.
    ///
    /// # Errors
    /// Why the connection broke before that.
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
                // Nobody else writes, so that the room stays.
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
    /// How it goes now.
    pub fn progress(&self) -> ConnectionProgress {
        let state = self.shared.lock();
        ConnectionProgress { written_bytes: state.written_bytes, ..state.progress }
    }

    /// Reads no more, and waits until both streams are over and both ends know it. The writer is to be [finished](ConnectionWriter::finish) or
    /// dropped before, or by another thread meanwhile: it is waited for. A program that ends before may take the last words with it.
    ///
    /// # Errors
    /// Why the connection broke before that.
    pub fn close(&self) -> Result<()> {
        self.end(|_| {})
    }

    /// As [`close`](Self::close), for an end whose last word is written: another end that is silent for `silence` has left.
    ///
    /// # Errors
    /// Why the connection broke before that.
    pub fn close_within(&self, silence: Duration) -> Result<()> {
        self.end(|state| state.silence_us_max = silence.as_micros() as u64)
    }

    /// As [`close`](Self::close), a round trip earlier: the other end has written that it has all, and nothing behind that. It is told that
    /// this end is gone, and waits for no more.
    ///
    /// # Errors
    /// Why the connection broke before that.
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

    /// What the application has of it.
    pub(super) fn ends(self: &Arc<Self>) -> (ConnectionReader, ConnectionWriter, ConnectionStatus) {
        let reader = ConnectionReader { shared: self.clone(), chunk: Chunk::default(), chunk_bytes: 0 };
        (reader, ConnectionWriter { shared: self.clone() }, ConnectionStatus { shared: self.clone() })
    }

    /// No value is left half changed by a thread that panics.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the connection's thread that something changed.
    fn tell(&self, mut state: MutexGuard<'_, State>) {
        state.has_news = true;
        if std::mem::take(&mut state.thread_sleeps) {
            // With the lock held: a call that came later would be one for nothing, which nobody forgets.
            self.wake.call();
        }
    }

    /// Lets those go on who wait for what is there now.
    pub(super) fn let_go(&self, state: &State) {
        let has_failed = state.failure.is_some();
        if state.reader_waits && (!state.chunks.is_empty() || state.is_ended || state.is_unread || has_failed)
        {
            self.readable.notify_all();
        }
        // A writer that is woken for each packet would do little else.
        let has_room = state.room() >= ROOM_BYTES || state.confirmed_bytes == state.written_bytes;
        if state.writer_waits && (has_room || has_failed || state.is_finished) {
            self.writable.notify_all();
        }
        if state.is_delivered || state.is_over || has_failed {
            self.ended.notify_all();
        }
    }

    /// The connection's thread ends.
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
    /// Bytes that may be written now.
    fn room(&self) -> u64 {
        (self.confirmed_bytes + self.room_bytes).saturating_sub(self.written_bytes)
    }

    /// Keeps a block to be written into again.
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
            // Not `Interrupted`, after which callers try again.
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

/// So few bytes are copied while the lock is held.
const SMALL_BYTES: usize = 4 << 10;

/// A writer that waits goes on with so much room.
const ROOM_BYTES: u64 = 2 * BLOCK_BYTES as u64;

/// Blocks that wait to be written into again.
const SPARE_BLOCKS_MAX: usize = 64;
