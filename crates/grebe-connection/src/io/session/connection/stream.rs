//! The application's side of a connection: reader, writer and status.

use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::shared::{ConnectionProgress, Shared, State};
use crate::error::Result;
use crate::proto::stream_buffer::{BLOCK_BYTES, Chunk};
use crate::proto::wire::STREAM_BYTES_MAX;

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

/// Makes the application's handles. The other end's `greeting` is read first.
pub(super) fn ends(
    shared: &Arc<Shared>,
    greeting: Vec<u8>,
) -> (ConnectionReader, ConnectionWriter, ConnectionStatus) {
    let reader = ConnectionReader { shared: shared.clone(), chunk: Chunk::of(greeting), chunk_bytes: 0 };
    (reader, ConnectionWriter { shared: shared.clone() }, ConnectionStatus { shared: shared.clone() })
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
