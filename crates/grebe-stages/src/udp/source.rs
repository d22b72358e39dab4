//! `udp://` as a source: frames are views into the slabs that the kernel filled.

use std::cell::RefCell;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_datagram::{Options, Received, Receiver};
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{
    Arrival, BatchMut, BatchPool, Description, Frame, Header, Refusal, Refusals, StreamTracker,
};
use grebe_link::arrival::ArrivalCounters;
use grebe_link::described::Described;
use grebe_link::far_clock::FarClock;
use grebe_link::reorder::{AHEAD_MAX, Reorder};
use grebe_process::stream::CHUNK_BYTES;

use crate::session::{Bounded, Limit, Ownership, Silence, Whose};
use crate::transport::SecondSender;

/// Receives one stream of frames, one datagram each.
///
/// Datagrams that are no frames are counted by reason and change nothing else. Frames that the network swapped are put in order,
/// as long as a few frames (32, or what a chunk holds) and the latency budget allow; later ones and duplicates are counted and
/// left out, so that what goes on is in order. What is missing shows as a gap in the sample index. The stream belongs to the address it came from. A sender that
/// begins anew, at a low sequence and with a younger clock, takes over at once; another's frames are counted as foreign until the
/// first has been silent for half a second.
#[derive(Debug)]
pub struct UdpSource {
    receiver: Receiver<BatchMut>,
    recv_timeout: Duration,
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
        Ok(Self::new(Receiver::bind(at, options)?, options))
    }

    /// Takes what comes to a receiver that has these options.
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

    /// Goes on with a stream that came by another way until now.
    pub(crate) fn after(mut self, tracker: Option<StreamTracker>) -> Self {
        if let Some(tracker) = tracker {
            self.intake.tracker = tracker;
        }
        self
    }

    /// Where the stream stands.
    pub(crate) fn tracker(&self) -> &StreamTracker {
        &self.intake.tracker
    }

    /// What its sender says that it is.
    pub(crate) fn description(&self) -> Option<&Arc<Description>> {
        self.intake.described.now()
    }

    /// Another handle on the socket, to look at what waits there.
    pub(crate) fn try_clone_socket(&self) -> std::io::Result<UdpSocket> {
        self.receiver.try_clone_socket()
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

    /// Who else sends here: to be asked from any thread.
    pub fn second_sender(&self) -> SecondSender {
        self.intake.second_sender.clone()
    }

    /// Whether something has come, or comes within `timeout`; it is left for the stream.
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
            // As many chunks as the graph can hold, the receiver's own slots, the compacting batch, and frames that are ahead.
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
        self.counters.publish_clock(self.intake.far_clock.error_ns());
        if self.intake.is_over() || self.intake.limit.is_reached() {
            return Ok(Outcome::End);
        }
        if outcome.starved {
            // Every chunk is lent: the kernel's buffer holds what comes meanwhile, and counts what it cannot.
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

/// Sorts datagrams: which frames go on, and which are counted and left out.
#[derive(Debug)]
struct Intake {
    tracker: StreamTracker,
    /// How the stream ended, once it has.
    end: Option<Header>,
    listens_on: bool,
    reorder: Reorder,
    refusals: Refusals,
    port: Ownership<SocketAddr>,
    second_sender: SecondSender,
    described: Described,
    far_clock: FarClock,
    copied_frames: u64,
    /// Where frames of sparse slabs are gathered, so that a small datagram does not pin 64 KiB.
    compact: Option<BatchMut>,
    limit: Limit,
}

/// Gives a chunk, where one is free.
type Chunk<'a> = &'a dyn Fn() -> Option<BatchMut>;

impl Intake {
    fn new(latency: Duration) -> Self {
        Self {
            tracker: StreamTracker::new(),
            end: None,
            listens_on: false,
            reorder: Reorder::new(latency),
            refusals: Refusals::default(),
            port: Ownership::default(),
            second_sender: SecondSender::default(),
            described: Described::default(),
            far_clock: FarClock::default(),
            copied_frames: 0,
            compact: None,
            limit: Limit::default(),
        }
    }

    /// Takes one slab of datagrams; hands it back for the next ones unless it goes on itself.
    fn take(
        &mut self,
        mut slab: BatchMut,
        received: &Received,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Option<BatchMut> {
        slab.clear();
        for range in received.segments() {
            match Header::parse_datagram(&slab.chunk()[range.clone()]) {
                Ok(header) if self.is_ours(received.from, &header, chunk, output, ctx) => {
                    if self.reorder.is_empty() && self.tracker.arrive_in_order(&header) {
                        self.enter(&mut slab, range.start, &header, chunk, output, ctx);
                    } else {
                        self.out_of_order(&mut slab, range.start, &header, chunk, output, ctx);
                    }
                }
                Ok(_) => self.count_foreign(received.from),
                Err(Refusal::Description) => self.describe(received.from, &slab.chunk()[range]),
                Err(reason) => self.refusals.add(reason),
            }
        }
        if self.port.is_owner(received.from) {
            self.port.silence.heard(Instant::now());
        }
        if !self.reorder.is_empty() && !self.reorder.is_held() {
            self.leave_slab(&mut slab, chunk, output, ctx);
        }
        if slab.is_empty() {
            return Some(slab);
        }
        if slab.filled_bytes() >= slab.capacity_bytes() / SPARSE || !self.compact_from(&slab, chunk, ctx) {
            // In order: what was gathered before goes first.
            self.flush_compact(output, ctx);
            self.hand_on(slab, output, ctx);
            return None;
        }
        if self.compact.as_ref().is_some_and(|compact| compact.filled_bytes() >= compact.capacity_bytes() / 2)
        {
            self.flush_compact(output, ctx);
        }
        Some(slab)
    }

    /// A frame that is not the one expected, or that comes while others are ahead.
    #[cold]
    fn out_of_order(
        &mut self,
        slab: &mut BatchMut,
        at: usize,
        header: &Header,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) {
        // Those that are ahead already do not miss.
        let near = AHEAD_MAX + self.reorder.len() as u64;
        match self.tracker.missing_before(header) {
            Some(1..) if self.reorder.has(header.sequence) => self.tracker.count_duplicate(),
            Some(missing) if (1..=near).contains(&missing) => {
                let is_held = self.reorder.is_held();
                let are_too_many = self.reorder.add(header, at);
                if is_held {
                    let frame = at..at + header.frame_bytes();
                    self.copied_frames += 1;
                    if !self.reorder.hold(header, &slab.chunk()[frame], || None) {
                        // It follows what is held, in its own slab: nothing is waited for any more.
                        self.reorder.remove(header.sequence);
                        self.give_up_waiting(chunk, output, ctx);
                        return self.arrive(slab, at, header, chunk, output, ctx);
                    }
                }
                if are_too_many && self.reorder.is_held() {
                    self.go_on_from_held(true, chunk, output, ctx);
                } else if are_too_many {
                    self.skip_gap(slab, chunk, output, ctx);
                }
            }
            Some(0) if !self.reorder.is_held() => {
                self.arrive(slab, at, header, chunk, output, ctx);
                self.let_go(slab, false, chunk, output, ctx);
            }
            Some(0) => self.fill_in(slab, at, header, chunk, output, ctx),
            // It is far ahead, or it may be of another stream: what is ahead goes first.
            missing => {
                if missing.is_some() || self.tracker.begins_again(header) {
                    self.let_all_go(slab, chunk, output, ctx);
                }
                self.arrive(slab, at, header, chunk, output, ctx);
            }
        }
    }

    /// The frame that held ones waited for: it goes before them, and they lie in a chunk that goes on as a batch of its own.
    fn fill_in(
        &mut self,
        slab: &mut BatchMut,
        at: usize,
        header: &Header,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) {
        if header.is_end_of_stream() {
            // Nothing of this stream is behind it.
            self.give_up_waiting(chunk, output, ctx);
            return self.arrive(slab, at, header, chunk, output, ctx);
        }
        if self.described.is_due(header) {
            self.flush_compact(output, ctx);
            self.described.reach(header);
        }
        let frame = at..at + header.frame_bytes();
        let compact = self.compact.take().or_else(chunk);
        let is_copied = compact.is_some_and(|mut compact| {
            let frame = Frame::parse(&slab.chunk()[frame]);
            let is_copied = frame.is_ok_and(|frame| compact.push_copy(&frame).is_ok());
            self.compact = Some(compact);
            is_copied
        });
        if !is_copied {
            // No memory to put it before them: it is late.
            self.give_up_waiting(chunk, output, ctx);
            return self.arrive(slab, at, header, chunk, output, ctx);
        }
        self.tracker.arrive(header);
        self.copied_frames += 1;
        self.go_on_from_held(false, chunk, output, ctx);
    }

    /// Hands on the held frames whose turn it is; where `skips` is set, the first gap is waited for no more.
    fn go_on_from_held(&mut self, skips: bool, chunk: Chunk<'_>, output: &mut Outputs, ctx: &Context) {
        self.flush_compact(output, ctx);
        let Some(mut held) = self.reorder.take_held() else { return };
        if skips {
            self.skip_gap(&mut held, chunk, output, ctx);
        } else {
            self.let_go(&mut held, false, chunk, output, ctx);
        }
        // What still waits for another frame is copied once more.
        if !self.reorder.is_empty() {
            self.leave_slab(&mut held, chunk, output, ctx);
        }
        if !held.is_empty() {
            self.hand_on(held, output, ctx);
        }
    }

    /// The frames before the first that is ahead are waited for no more.
    fn skip_gap(&mut self, held: &mut BatchMut, chunk: Chunk<'_>, output: &mut Outputs, ctx: &Context) {
        if let Some((header, at)) = self.reorder.first() {
            self.reorder.remove_first();
            self.arrive(held, at, &header, chunk, output, ctx);
            self.let_go(held, false, chunk, output, ctx);
        }
    }

    /// Nothing is waited for any more: what is held goes on, with the gaps that it has.
    fn give_up_waiting(&mut self, chunk: Chunk<'_>, output: &mut Outputs, ctx: &Context) {
        let Some(mut held) = self.reorder.take_held() else { return };
        self.flush_compact(output, ctx);
        self.let_go(&mut held, true, chunk, output, ctx);
        if !held.is_empty() {
            self.hand_on(held, output, ctx);
        }
    }

    /// As [`give_up_waiting`](Self::give_up_waiting), also for frames that stand in the slab.
    fn let_all_go(&mut self, slab: &mut BatchMut, chunk: Chunk<'_>, output: &mut Outputs, ctx: &Context) {
        if self.reorder.is_held() {
            self.give_up_waiting(chunk, output, ctx);
        } else {
            self.let_go(slab, true, chunk, output, ctx);
        }
    }

    /// Enters frames that were ahead into the chunk that they stand in: those whose turn it is, or all.
    fn let_go(
        &mut self,
        slab: &mut BatchMut,
        all: bool,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) {
        while let Some((header, at)) = self.reorder.first()
            && (all || self.tracker.missing_before(&header) == Some(0))
        {
            self.reorder.remove_first();
            self.arrive(slab, at, &header, chunk, output, ctx);
        }
    }

    /// Copies what is ahead out of a slab that goes on; without memory for that, it goes on with it.
    fn leave_slab(&mut self, slab: &mut BatchMut, chunk: Chunk<'_>, output: &mut Outputs, ctx: &Context) {
        if self.reorder.leave_slab(slab, chunk) {
            self.copied_frames += self.reorder.len() as u64;
            ctx.count_copied(self.reorder.len());
        } else {
            self.reorder.take_held();
            self.let_go(slab, true, chunk, output, ctx);
        }
    }

    fn arrive(
        &mut self,
        slab: &mut BatchMut,
        at: usize,
        header: &Header,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) {
        let arrival = self.tracker.arrive(header);
        if arrival == Arrival::Restart {
            self.cut(slab, chunk, output, ctx);
            self.described.begin(self.port.owner());
        }
        if arrival.is_new() {
            self.enter(slab, at, header, chunk, output, ctx);
        }
    }

    /// Enters a frame that stands in the chunk and goes on with the stream, or notes its end.
    #[inline]
    fn enter(
        &mut self,
        slab: &mut BatchMut,
        at: usize,
        header: &Header,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) {
        if self.described.is_due(header) {
            self.describe_anew(slab, header, chunk, output, ctx);
        }
        self.end = header.is_end_of_stream().then_some(*header);
        if self.listens_on || self.end.is_none() {
            // Cannot be full: the frame lies in the chunk, and every frame is longer than a table's row.
            let _ = slab.adopt(at, header);
        }
    }

    /// Copies a sparse slab's frames together; whether they fit.
    fn compact_from(&mut self, slab: &BatchMut, chunk: Chunk<'_>, ctx: &Context) -> bool {
        if self.compact.is_none() {
            self.compact = chunk();
        }
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
            self.hand_on(compact, output, ctx);
        }
    }

    /// Takes what a sender says that its stream is, or the one that it is about to begin.
    #[cold]
    fn describe(&mut self, from: SocketAddr, frame: &[u8]) {
        let is_going_on = self.port.is_owner(from) && !self.tracker.is_ended();
        match self.described.take(from, frame, is_going_on.then_some(&self.tracker)) {
            Ok(()) if self.port.owner().is_some_and(|owner| owner != from) => self.count_foreign(from),
            Ok(()) => {}
            Err(reason) => self.refusals.add(reason),
        }
    }

    /// The stream is described anew from this frame on, which stands in the chunk: what is before it goes on, and the rest in another
    /// chunk. Without memory for that, they stay together.
    #[cold]
    fn describe_anew(
        &mut self,
        slab: &mut BatchMut,
        header: &Header,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) {
        self.cut(slab, chunk, output, ctx);
        self.described.reach(header);
    }

    fn cut(&mut self, slab: &mut BatchMut, chunk: Chunk<'_>, output: &mut Outputs, ctx: &Context) {
        self.flush_compact(output, ctx);
        if !slab.is_empty()
            && let Some(mut rest) = chunk()
        {
            rest.chunk().copy_from_slice(slab.chunk());
            ctx.count_copied(1);
            self.hand_on(std::mem::replace(slab, rest), output, ctx);
        }
    }

    /// Hands on a batch, with what is known of its stream.
    fn hand_on(&mut self, mut batch: BatchMut, output: &mut Outputs, ctx: &Context) {
        batch.describe(self.far_clock.described(self.described.now(), self.port.owner()));
        self.limit.send(batch.freeze(), output, ctx);
    }

    #[cold]
    fn count_foreign(&mut self, from: SocketAddr) {
        if self.port.count_foreign(from, 1, Instant::now()) {
            self.second_sender.note(from);
        }
    }

    /// Whether the stream has ended, and nobody from whom it was taken still sends: then it is that one's again.
    fn is_over(&self) -> bool {
        self.tracker.is_ended() && !self.listens_on && !self.port.is_disputed(Instant::now())
    }

    #[inline]
    fn is_ours(
        &mut self,
        from: SocketAddr,
        header: &Header,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) -> bool {
        self.port.is_owner(from) || self.takes_over(from, header, chunk, output, ctx)
    }

    /// Whether the stream is another sender's from here on.
    #[cold]
    fn takes_over(
        &mut self,
        from: SocketAddr,
        header: &Header,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) -> bool {
        let whose = self.port.of_frame(from, header, &self.tracker, Instant::now());
        if whose == Whose::Foreign {
            return false;
        }
        if whose == Whose::Newcomer {
            self.give_up_waiting(chunk, output, ctx);
            self.tracker.forget();
        }
        self.flush_compact(output, ctx);
        self.described.begin(Some(from));
        self.port.give(from, whose == Whose::Newcomer);
        self.second_sender.forget(from);
        true
    }
}

/// A slab filled to less than a quarter is copied out instead of lent.
const SPARSE: usize = 4;
/// The most slots a receiver holds.
const SLOTS_MAX: usize = 64;
