//! `udp://` as a source: frames are views into the slabs that the kernel filled.

use std::net::SocketAddr;
use std::time::Duration;

use grebe_datagram::{Granted, Options, Receiver};
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageError};
use grebe_frame::{BatchMut, BatchPool};

use super::intake::Intake;
use crate::error::Error;
use crate::io::arrival::ArrivalCounters;
use crate::stream::{CHUNK_BYTES, Limit};

/// Receives one stream of frames, one datagram each.
///
/// Datagrams that are no frames are counted by reason and change nothing else. Late and duplicate frames are counted and
/// left out, so that what goes on is in order; what is missing shows as a gap in the sample index. The stream belongs to the
/// address it came from; another sender's frames are counted as foreign until the first has been silent for half a second.
#[derive(Debug)]
pub struct UdpSource {
    receiver: Receiver<BatchMut>,
    idle_timeout: Option<Duration>,
    pool: Option<BatchPool>,
    /// The pool to receive into instead, until the first step takes it.
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
        Ok(Self {
            receiver: Receiver::bind(at, options)?,
            idle_timeout: None,
            pool: None,
            given: None,
            intake: Intake::default(),
            counters: ArrivalCounters::new(),
        })
    }

    /// Ends the stream with an error once its sender has been silent for this long.
    pub(crate) fn idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Ends the stream after this many samples per channel.
    pub fn samples(mut self, samples: Option<u64>) -> Self {
        self.intake.limit = Limit::new(samples);
        self
    }

    /// Receives into this pool instead of one of its own: the kernel writes datagrams straight into memory that other
    /// processes read. Its chunks must be 64 KiB, and 66 of them more than the graph holds.
    pub fn pool(mut self, pool: BatchPool) -> Self {
        self.given = Some(pool);
        self
    }

    /// The address listened on, with the port that the system chose where none was named.
    ///
    /// # Errors
    /// The system cannot say.
    pub fn local_addr(&self) -> Result<SocketAddr, grebe_datagram::Error> {
        self.receiver.local_addr()
    }

    /// The receive buffer that the kernel granted.
    pub(crate) fn granted(&self) -> Granted {
        self.receiver.granted()
    }

    fn check_idle(&self) -> Result<(), Error> {
        match (self.idle_timeout, self.intake.heard) {
            (Some(timeout), Some(heard)) if heard.elapsed() >= timeout => Err(Error::Idle { timeout }),
            _ => Ok(()),
        }
    }
}

impl Stage for UdpSource {
    fn process(
        &mut self,
        _: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        let pool = self.pool.get_or_insert_with(|| {
            // As many chunks as the graph can hold, the receiver's own slots, and the compacting batch.
            let own = || BatchPool::new(ctx.batches_in_flight() + SLOTS_MAX + 1, CHUNK_BYTES);
            let mut pool = self.given.take().unwrap_or_else(own);
            pool.wake_on_return(ctx.signal().clone());
            pool
        });
        let Self { receiver, intake, .. } = self;
        let compact = &mut intake.compact;
        if compact.is_none() {
            *compact = pool.acquire();
        }
        let outcome =
            receiver.recv(|| pool.acquire(), |slab, received| intake.take(slab, &received, output, ctx))?;
        ctx.count_waited(outcome.waited);
        self.intake.flush_compact(output, ctx);
        self.counters.publish(&self.intake.tracker);
        self.counters.publish_refusals(&self.intake.refusals);
        self.counters.publish_kernel_drops(outcome.kernel_drops);
        self.counters.publish_socket(self.intake.foreign_datagrams, self.intake.copied_frames);
        if self.intake.tracker.is_ended() || self.intake.limit.is_reached() {
            return Ok(Outcome::End);
        }
        if outcome.starved {
            // Every chunk is lent: the kernel's buffer holds what comes meanwhile, and counts what it cannot.
            drop(ctx.acquire(pool));
        }
        self.check_idle()?;
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.shared())
    }
}

/// The most slots a receiver holds.
const SLOTS_MAX: usize = 64;
