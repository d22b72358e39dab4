//! State that the application's handles share with the connection's thread.
//!
//! ```text
//!  ConnectionWriter --blocks--> [        ] --blocks--> the connection's thread
//!                   <--room---- [ State  ] <--room----
//!  ConnectionReader <--chunks-- [        ] <--chunks--
//! ```
//!
//! Blocks and chunks move under the lock. Their bytes are copied outside it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::wake::Wake;
use crate::error::Error;
use crate::proto::congestion::{Phase, PhaseCost};
use crate::proto::sender::{Limit, SendCounters};
use crate::proto::stream_buffer::{BLOCK_BYTES, Chunk};
use crate::proto::wire::Verdict;

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
    pub(super) readable: Condvar,
    /// There is room to write, or never will be.
    pub(super) writable: Condvar,
    /// A stream or the connection has ended.
    pub(super) ended: Condvar,
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
    pub(super) spare: Vec<Vec<u8>>,
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
    pub(super) is_over: bool,
    pub(super) failure: Option<Failure>,
    pub(super) progress: ConnectionProgress,
    /// A change that the connection's thread has not seen yet.
    pub(super) has_news: bool,
    pub(super) thread_sleeps: bool,
    pub(super) writer_waits: bool,
    pub(super) reader_waits: bool,
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

    /// Ignores poisoning: a panic leaves no value half changed.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the connection's thread of a change.
    pub(super) fn tell(&self, mut state: MutexGuard<'_, State>) {
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
    pub(super) fn room(&self) -> u64 {
        (self.confirmed_bytes + self.room_bytes).saturating_sub(self.written_bytes)
    }

    /// Keeps a block for reuse.
    pub(super) fn recycle(&mut self, block: Vec<u8>) {
        if block.capacity() >= BLOCK_BYTES && self.spare.len() < SPARE_BLOCKS_MAX {
            self.spare.push(block);
        }
    }

    pub(super) fn stop_reading(&mut self) {
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

/// Room at which a waiting writer wakes.
const ROOM_BYTES: u64 = 2 * BLOCK_BYTES as u64;

/// Maximum spare blocks.
const SPARE_BLOCKS_MAX: usize = 64;
