//! `udp://` as a source: frames are views into the slabs that the kernel filled.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use grebe_datagram::{Granted, Options, Received, Receiver};
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{BatchMut, BatchPool, Header, Refusals, StreamTracker};

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
    began: Instant,
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
            began: Instant::now(),
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

    /// Waits for the next stream where one ends.
    pub(crate) fn listens_on(mut self, listens_on: bool) -> Self {
        self.intake.listens_on = listens_on;
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
        match self.idle_timeout {
            // A sender that never came is silent too.
            Some(timeout) if self.intake.heard.unwrap_or(self.began).elapsed() >= timeout => {
                Err(Error::Idle { timeout })
            }
            _ => Ok(()),
        }
    }
}

impl Stage for UdpSource {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
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
        let is_over = self.intake.tracker.is_ended() && !self.intake.listens_on;
        if is_over || self.intake.limit.is_reached() {
            return Ok(Outcome::End);
        }
        if outcome.starved {
            // Every chunk is lent: the kernel's buffer holds what comes meanwhile, and counts what it cannot.
            drop(ctx.acquire(pool));
        }
        self.check_idle()?;
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let Some(end) = self.intake.end {
            ctx.set_end_of_stream(end);
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.shared())
    }
}

/// Sorts datagrams: which frames go on, and which are counted and left out.
#[derive(Debug, Default)]
struct Intake {
    tracker: StreamTracker,
    /// How the stream ended, once it has.
    end: Option<Header>,
    listens_on: bool,
    refusals: Refusals,
    /// Whose stream this is.
    sender: Option<SocketAddr>,
    /// When the sender was last heard.
    heard: Option<Instant>,
    foreign_datagrams: u64,
    copied_frames: u64,
    /// Where frames of sparse slabs are gathered, so that a small datagram does not pin 64 KiB.
    compact: Option<BatchMut>,
    limit: Limit,
}

impl Intake {
    /// Takes one slab of datagrams; hands it back for the next ones unless it goes on itself.
    fn take(
        &mut self,
        mut slab: BatchMut,
        received: &Received,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Option<BatchMut> {
        slab.clear();
        for range in received.segments() {
            match Header::parse_datagram(&slab.chunk()[range.clone()]) {
                Ok(header) if self.is_ours(received.from) => {
                    let arrival = self.tracker.arrive(&header);
                    if arrival.is_new() {
                        self.end = header.is_end_of_stream().then_some(header);
                    }
                    if arrival.is_new() && (self.listens_on || self.end.is_none()) {
                        // Cannot be full: the datagram lies in the chunk, and every frame is longer than a table's row.
                        let _ = slab.adopt(range.start, &header);
                    }
                }
                Ok(_) => self.foreign_datagrams += 1,
                Err(reason) => self.refusals.add(reason),
            }
        }
        if self.sender == Some(received.from) {
            self.heard = Some(Instant::now());
        }
        if slab.is_empty() {
            return Some(slab);
        }
        if slab.filled_bytes() >= slab.capacity_bytes() / SPARSE || !self.compact_from(&slab, ctx) {
            // In order: what was gathered before goes first.
            self.flush_compact(output, ctx);
            self.limit.send(slab.freeze(), output, ctx);
            return None;
        }
        if self.compact.as_ref().is_some_and(|compact| compact.filled_bytes() >= compact.capacity_bytes() / 2)
        {
            self.flush_compact(output, ctx);
        }
        Some(slab)
    }

    /// Copies a sparse slab's frames together; whether they fit.
    fn compact_from(&mut self, slab: &BatchMut, ctx: &Context) -> bool {
        let Some(compact) = self.compact.as_mut() else { return false };
        if compact.capacity_bytes() - compact.filled_bytes()
            < slab.capacity_bytes() / SPARSE + 64 * slab.len()
        {
            return false;
        }
        let copied = slab.len() as u64;
        for frame in slab.frames() {
            // Fits: the room was checked, alignment included.
            let _ = compact.push_copy(&frame);
        }
        self.copied_frames += copied;
        ctx.count_copied(slab.len());
        true
    }

    fn flush_compact(&mut self, output: &mut Outputs, ctx: &Context) {
        if self.compact.as_ref().is_some_and(|compact| !compact.is_empty())
            && let Some(compact) = self.compact.take()
        {
            self.limit.send(compact.freeze(), output, ctx);
        }
    }

    fn is_ours(&mut self, from: SocketAddr) -> bool {
        if self.sender == Some(from) {
            return true;
        }
        let now = Instant::now();
        let is_heard = self.heard.is_some_and(|heard| now - heard < TAKEOVER);
        if self.sender.is_some() && is_heard && !self.tracker.is_ended() {
            return false;
        }
        if self.sender.is_some() {
            self.tracker.forget();
        }
        self.sender = Some(from);
        true
    }
}

/// A slab filled to less than a quarter is copied out instead of lent.
const SPARSE: usize = 4;
/// For how long a silent sender keeps its stream.
const TAKEOVER: Duration = Duration::from_millis(500);
/// The most slots a receiver holds.
const SLOTS_MAX: usize = 64;
