//! `udp://` as a source: frames are views into the slabs that the kernel filled.

use std::cell::RefCell;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use grebe_datagram::{Options, Receiver};
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{BatchMut, BatchPool, Description, StreamTracker};
use grebe_link::arrival::ArrivalCounters;
use grebe_process::stream::CHUNK_BYTES;

use super::intake::Intake;
use crate::session::{Bounded, Limit, Silence};
use crate::transport::SecondSender;

/// Receives one stream of frames, one per datagram.
///
/// Invalid datagrams are counted by reason and change nothing else. Frames that the network swapped are put in order,
/// within 32 frames (or what a chunk holds) and the latency budget. Later frames and duplicates are counted and
/// dropped, so the output is in order. A loss is a gap in the sample index.
///
/// The stream belongs to one address. A sender that restarts, with a low sequence number and a younger clock, takes
/// over at once. Frames of other senders count as foreign until the first has been silent for half a second.
#[derive(Debug)]
pub struct UdpSource {
    receiver: Receiver<BatchMut>,
    recv_timeout: Duration,
    pool: Option<BatchPool>,
    /// The pool to receive into, until the first step takes it.
    given: Option<BatchPool>,
    intake: Intake,
    counters: ArrivalCounters,
}

impl UdpSource {
    /// Listens on `at`.
    ///
    /// # Errors
    /// The address is in use, or not this machine's.
    pub fn bind(at: SocketAddr, options: &Options) -> Result<Self, grebe_datagram::Error> {
        Ok(Self::new(Receiver::bind(at, options)?, options))
    }

    /// Receives with a receiver of these options.
    pub(crate) fn new(receiver: Receiver<BatchMut>, options: &Options) -> Self {
        Self {
            receiver,
            recv_timeout: options.recv_timeout,
            pool: None,
            given: None,
            intake: Intake::new(options.latency),
            counters: ArrivalCounters::default(),
        }
    }

    /// Ends the stream after this many samples per channel.
    pub fn samples(self, samples: Option<u64>) -> Self {
        Bounded::samples(self, samples)
    }

    /// Samples per channel that may still pass; `None`: all.
    pub(crate) fn left_samples(&self) -> Option<u64> {
        self.intake.limit.left()
    }

    /// Continues a stream that came by another route.
    pub(crate) fn after(mut self, tracker: Option<StreamTracker>) -> Self {
        if let Some(tracker) = tracker {
            self.intake.tracker = tracker;
        }
        self
    }

    /// Position of the stream.
    pub(crate) fn tracker(&self) -> &StreamTracker {
        &self.intake.tracker
    }

    /// The sender's description.
    pub(crate) fn description(&self) -> Option<&Arc<Description>> {
        self.intake.described.now()
    }

    /// Another handle of the socket, to inspect waiting datagrams.
    pub(crate) fn try_clone_socket(&self) -> std::io::Result<UdpSocket> {
        self.receiver.try_clone_socket()
    }

    /// Waits for the next stream when this one ends.
    pub(crate) fn listens_on(mut self, listens_on: bool) -> Self {
        self.intake.listens_on = listens_on;
        self
    }

    /// Receives into this pool instead of its own: the kernel writes datagrams into memory that other processes read.
    /// Its chunks must be 64 KiB, and it needs 66 more than the graph holds.
    pub fn pool(mut self, pool: BatchPool) -> Self {
        self.given = Some(pool);
        self
    }

    /// The address listened on, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// The system cannot tell.
    pub fn local_addr(&self) -> Result<SocketAddr, grebe_datagram::Error> {
        self.receiver.local_addr()
    }

    /// Another sender to this port. Any thread may query it.
    pub fn second_sender(&self) -> SecondSender {
        self.intake.second_sender.clone()
    }

    /// Whether a datagram waits or comes within `timeout`. It stays for the stream.
    pub(crate) fn hears_within(&self, timeout: Duration) -> bool {
        let socket = self.try_clone_socket();
        socket.is_ok_and(|socket| grebe_datagram::wait_readable(&socket, timeout).unwrap_or(false))
    }
}

impl Bounded for UdpSource {
    fn limit(&mut self) -> &mut Limit {
        &mut self.intake.limit
    }

    fn silence(&mut self) -> &mut Silence {
        &mut self.intake.port.silence
    }
}

impl Stage for UdpSource {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let pool = self.pool.get_or_insert_with(|| {
            // As many chunks as the graph can hold, plus the receiver's slots, the compacting batch and held frames.
            let own = || BatchPool::new(ctx.batches_in_flight() + SLOTS_MAX + 2, CHUNK_BYTES);
            let mut pool = self.given.take().unwrap_or_else(own);
            pool.wake_on_return(ctx.signal().clone());
            pool
        });
        let Self { receiver, intake, recv_timeout, .. } = self;
        receiver.set_timeout(intake.reorder.left().unwrap_or(*recv_timeout));
        let shared = RefCell::new(pool);
        let chunk = || shared.borrow_mut().acquire();
        let outcome =
            receiver.recv(chunk, |slab, received| intake.take(slab, &received, &chunk, output, ctx))?;
        ctx.count_waited(outcome.waited);
        if intake.reorder.left() == Some(Duration::ZERO) {
            intake.go_on_from_held(true, &chunk, output, ctx);
        }
        let pool = shared.into_inner();
        intake.flush_compact(output, ctx);
        self.counters.publish(&self.intake.tracker);
        self.counters.publish_refusals(&self.intake.refusals);
        self.counters.publish_kernel_drops(outcome.kernel_drops);
        self.counters.publish_socket(self.intake.port.foreign(), self.intake.copied_frames);
        self.counters.publish_clock(self.intake.remote_clock.error_ns());
        if self.intake.is_over() || self.intake.limit.is_reached() {
            return Ok(Outcome::End);
        }
        if outcome.starved {
            // All chunks are lent. The kernel's buffer holds new datagrams, and counts its drops.
            drop(ctx.acquire(pool));
        }
        self.intake.port.silence.check()?;
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.intake.give_up_waiting(&|| None, output, ctx);
        self.counters.publish(&self.intake.tracker);
        if let Some(end) = self.intake.end {
            ctx.set_end_of_stream(end);
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.shared())
    }
}

/// Maximum slots of a receiver.
const SLOTS_MAX: usize = 64;
