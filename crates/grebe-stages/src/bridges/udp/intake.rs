//! Order of frames in datagrams: sends them on, or counts and drops them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use grebe_datagram::Received;
use grebe_flow::{Context, Outputs};
use grebe_frame::{Arrival, BatchMut, Frame, Header, Refusal, Refusals, StreamTracker};
use grebe_link::described::Described;
use grebe_link::remote_clock::RemoteClock;
use grebe_link::reorder::{AHEAD_MAX, Reorder};

use crate::session::{Limit, Ownership, Whose};
use crate::transport::SecondSender;

/// Sorts datagrams: sends frames on in order, counts and drops the others.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) tracker: StreamTracker,
    /// The end header, once received.
    pub(super) end: Option<Header>,
    pub(super) listens_on: bool,
    pub(super) reorder: Reorder,
    pub(super) refusals: Refusals,
    pub(super) port: Ownership<SocketAddr>,
    pub(super) second_sender: SecondSender,
    pub(super) described: Described,
    pub(super) remote_clock: RemoteClock,
    pub(super) copied_frames: u64,
    /// Collects frames of sparse slabs, so that a small datagram does not pin 64 KiB.
    compact: Option<BatchMut>,
    pub(super) limit: Limit,
}

/// Returns a free chunk, if there is one.
type Chunk<'a> = &'a dyn Fn() -> Option<BatchMut>;

impl Intake {
    pub(super) fn new(latency: Duration) -> Self {
        Self {
            tracker: StreamTracker::new(),
            end: None,
            listens_on: false,
            reorder: Reorder::new(latency),
            refusals: Refusals::default(),
            port: Ownership::default(),
            second_sender: SecondSender::default(),
            described: Described::default(),
            remote_clock: RemoteClock::default(),
            copied_frames: 0,
            compact: None,
            limit: Limit::default(),
        }
    }

    /// Handles one slab of datagrams. Returns it for reuse unless the slab itself is sent on.
    pub(super) fn take(
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
            self.port.silence.reset(Instant::now());
        }
        if !self.reorder.is_empty() && !self.reorder.is_held() {
            self.leave_slab(&mut slab, chunk, output, ctx);
        }
        if slab.is_empty() {
            return Some(slab);
        }
        if slab.filled_bytes() >= slab.capacity_bytes() / SPARSE || !self.compact_from(&slab, chunk, ctx) {
            // Keeps the order: collected frames go first.
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

    /// Handles a frame out of order, or one that arrives while others are held.
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
        // Held frames are not missing.
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
                        // It follows the held frames, so no frame is missing any more.
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
            // It is far ahead, or may be of another stream: the held frames go first.
            missing => {
                if missing.is_some() || self.tracker.begins_again(header) {
                    self.let_all_go(slab, chunk, output, ctx);
                }
                self.arrive(slab, at, header, chunk, output, ctx);
            }
        }
    }

    /// The missing frame: sends it before the held ones, whose chunk becomes a separate batch.
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
            // No held frame belongs to this stream.
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
            // Without memory to insert it, the frame is late.
            self.give_up_waiting(chunk, output, ctx);
            return self.arrive(slab, at, header, chunk, output, ctx);
        }
        self.tracker.arrive(header);
        self.copied_frames += 1;
        self.go_on_from_held(false, chunk, output, ctx);
    }

    /// Sends the held frames that are due. `skips` gives up the first gap.
    pub(super) fn go_on_from_held(
        &mut self,
        skips: bool,
        chunk: Chunk<'_>,
        output: &mut Outputs,
        ctx: &Context,
    ) {
        self.flush_compact(output, ctx);
        let Some(mut held) = self.reorder.take_held() else { return };
        if skips {
            self.skip_gap(&mut held, chunk, output, ctx);
        } else {
            self.let_go(&mut held, false, chunk, output, ctx);
        }
        // Frames that still wait are copied again.
        if !self.reorder.is_empty() {
            self.leave_slab(&mut held, chunk, output, ctx);
        }
        if !held.is_empty() {
            self.hand_on(held, output, ctx);
        }
    }

    /// Stops waiting for the frames before the first held one.
    fn skip_gap(&mut self, held: &mut BatchMut, chunk: Chunk<'_>, output: &mut Outputs, ctx: &Context) {
        if let Some((header, at)) = self.reorder.first() {
            self.reorder.remove_first();
            self.arrive(held, at, &header, chunk, output, ctx);
            self.let_go(held, false, chunk, output, ctx);
        }
    }

    /// Stops waiting: sends the held frames with their gaps.
    pub(super) fn give_up_waiting(&mut self, chunk: Chunk<'_>, output: &mut Outputs, ctx: &Context) {
        let Some(mut held) = self.reorder.take_held() else { return };
        self.flush_compact(output, ctx);
        self.let_go(&mut held, true, chunk, output, ctx);
        if !held.is_empty() {
            self.hand_on(held, output, ctx);
        }
    }

    /// As [`give_up_waiting`](Self::give_up_waiting), also for frames in the slab.
    fn let_all_go(&mut self, slab: &mut BatchMut, chunk: Chunk<'_>, output: &mut Outputs, ctx: &Context) {
        if self.reorder.is_held() {
            self.give_up_waiting(chunk, output, ctx);
        } else {
            self.let_go(slab, true, chunk, output, ctx);
        }
    }

    /// Adds held frames of this chunk to the batch: those that are due, or all.
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

    /// Copies held frames out of a slab that is sent on. Without memory for that, they go with it.
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

    /// Adds a frame of this chunk to the stream, or notes its end.
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
            // Never full: the frame lies in the chunk, and is longer than its row in the table.
            let _ = slab.adopt(at, header);
        }
    }

    /// Copies the frames of a sparse slab. Returns whether they fit.
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
            // Fits: the room was checked, with alignment.
            let _ = compact.push_copy(&frame);
        }
        self.copied_frames += copied;
        ctx.count_copied(slab.len());
        true
    }

    pub(super) fn flush_compact(&mut self, output: &mut Outputs, ctx: &Context) {
        if self.compact.as_ref().is_some_and(|compact| !compact.is_empty())
            && let Some(compact) = self.compact.take()
        {
            self.hand_on(compact, output, ctx);
        }
    }

    /// Reads a sender's description of its stream, or of the one that it is about to start.
    #[cold]
    fn describe(&mut self, from: SocketAddr, frame: &[u8]) {
        let is_going_on = self.port.is_owner(from) && !self.tracker.is_ended();
        match self.described.take(from, frame, is_going_on.then_some(&self.tracker)) {
            Ok(()) if self.port.owner().is_some_and(|owner| owner != from) => self.count_foreign(from),
            Ok(()) => {}
            Err(reason) => self.refusals.add(reason),
        }
    }

    /// A new description holds from this frame on: sends the frames before it, and puts the rest into another chunk.
    /// Without memory for that, they stay in one batch.
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

    /// Sends a batch, with the stream's description.
    fn hand_on(&mut self, mut batch: BatchMut, output: &mut Outputs, ctx: &Context) {
        batch.describe(self.remote_clock.described(self.described.now(), self.port.owner()));
        self.limit.send(batch.freeze(), output, ctx);
    }

    #[cold]
    fn count_foreign(&mut self, from: SocketAddr) {
        if self.port.count_foreign(from, 1, Instant::now()) {
            self.second_sender.note(from);
        }
    }

    /// Whether the stream has ended and no previous sender is still active, which would take it back.
    pub(super) fn is_over(&self) -> bool {
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

    /// Whether another sender takes over here.
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

/// A slab filled to less than a quarter is copied instead of lent.
const SPARSE: usize = 4;
