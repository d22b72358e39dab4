//! `zenoh://` as a source: messages of frames, copied once, into batches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{
    Arrival, BatchMut, BatchPool, Description, DescriptionReader, Header, Refusals, StreamTracker,
};
use grebe_link::arrival::ArrivalCounters;
use grebe_process::stream::{CHUNK_BYTES, is_same};
use grebe_shm::Policy;
use grebe_zenoh::{DataReceiver, Lab, Message, Overflow, SenderId, Watch, pieces};

use crate::bridges::zenoh::uri::ZenohKey;
use crate::bridges::zenoh::ways::Onward;
use crate::error::Error;
use crate::scheme::Scheme as _;
use crate::session::{Bounded, Limit, Ownership, Silence, Whose};

/// Receives one stream of frames that is sent to a key.
///
/// The stream belongs to its sender; another takes over where it begins anew, or the first is silent for half a second. What is missing
/// shows in the sequence: Zenoh drops messages where a link cannot follow, and this source where its reader cannot.
#[derive(Debug)]
pub(crate) struct ZenohSource {
    uri: String,
    receiver: DataReceiver,
    /// Who sends there; `None`: somebody else looks after that.
    watch: Option<Watch>,
    reconnects: bool,
    /// Since when nobody sends there who did.
    deserted: Option<Instant>,
    /// A message that had no room in the last batch.
    next: Option<Message>,
    /// The rest of one, of which the stream is described anew.
    kept: Option<(Vec<u8>, SenderId)>,
    pool: Option<BatchPool>,
    chunk_bytes: usize,
    intake: Intake,
    listens_on: bool,
    silence: Silence,
    counters: ArrivalCounters,
}

/// How a reader wants it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReaderOptions {
    pub(crate) policy: Option<Policy>,
    pub(crate) listens_on: bool,
}

impl ZenohSource {
    /// # Errors
    /// The lab cannot be joined.
    pub(crate) fn open(from: &ZenohKey, options: ReaderOptions) -> Result<Self, Error> {
        let lab = Lab::shared()?;
        let watch = lab.watch_key(&from.key)?;
        let options = ReaderOptions { policy: from.policy.or(options.policy), ..options };
        let mut source = Self::of_key(&lab, &from.key, options)?;
        source.uri = from.uri();
        (source.watch, source.reconnects) = (Some(watch), from.reconnects);
        Ok(source)
    }

    /// Without a look at who sends there.
    pub(super) fn of_key(lab: &Lab, key: &str, options: ReaderOptions) -> Result<Self, Error> {
        let overflow = match options.policy {
            Some(Policy::Block) => Overflow::Block,
            Some(Policy::DropLatest) => Overflow::DropLatest,
            _ => Overflow::DropOldest,
        };
        Ok(Self {
            uri: format!("zenoh://{key}"),
            receiver: lab.receiver(key, overflow)?,
            watch: None,
            reconnects: true,
            deserted: None,
            next: None,
            kept: None,
            pool: None,
            chunk_bytes: CHUNK_BYTES,
            intake: Intake::default(),
            listens_on: options.listens_on,
            silence: Silence::begin(),
            counters: ArrivalCounters::default(),
        })
    }

    /// Goes on with a stream that came by another way until now.
    pub(super) fn after(mut self, onward: Option<Onward>) -> Self {
        if let Some(Onward { tracker, description }) = onward {
            (self.intake.tracker, self.intake.description) = (tracker, description);
        }
        self
    }

    /// Samples per channel that may still pass; `None`: all.
    pub(super) fn left_samples(&self) -> Option<u64> {
        self.intake.limit.left()
    }

    /// Whether anything has come.
    pub(super) fn has_heard(&self) -> bool {
        self.intake.ownership.owner().is_some()
    }

    /// Whether all that came has gone on.
    pub(super) fn is_drained(&self) -> bool {
        self.next.is_none() && self.kept.is_none() && !self.receiver.wait(Duration::ZERO)
    }

    /// Gathers messages as long as there are some and they fit; whether anything came.
    fn gather(&mut self, batch: &mut BatchMut) -> bool {
        batch.describe(self.intake.description.as_ref());
        let mut filled = 0_usize;
        if let Some((bytes, sender)) = self.kept.take() {
            filled = bytes.len();
            batch.chunk()[..filled].copy_from_slice(&bytes);
            self.enter(batch, 0, filled, sender);
            filled = filled.next_multiple_of(64);
        }
        while self.kept.is_none()
            && let Some(message) = self.next.take().or_else(|| self.receiver.pop())
        {
            let end = filled + message.len();
            if end > batch.capacity_bytes() {
                if filled == 0 {
                    // It needs larger chunks, from the next on.
                    self.chunk_bytes = message.len().min(MESSAGE_BYTES_TAKEN_MAX).next_power_of_two();
                    self.pool = None;
                }
                if message.len() <= MESSAGE_BYTES_TAKEN_MAX {
                    self.next = Some(message);
                } else {
                    self.intake.refusals.add(grebe_frame::Refusal::PayloadBytes);
                }
                break;
            }
            message.copy_to(&mut batch.chunk()[filled..end]);
            self.enter(batch, filled, end, message.sender);
            self.silence.hear();
            filled = end.next_multiple_of(64);
            if self.intake.tracker.is_ended() && !self.listens_on {
                break;
            }
        }
        filled > 0
    }

    /// Enters the frames of a message, up to where the stream is described anew: what follows is kept for the next batch.
    fn enter(&mut self, batch: &mut BatchMut, begin: usize, end: usize, sender: SenderId) {
        let rest = self.intake.take(batch, begin, end, sender, self.listens_on);
        self.kept = rest.map(|at| (batch.chunk()[at..end].to_vec(), sender));
    }

    /// Looks after who sends, where nothing comes.
    fn look(&mut self) -> Result<(), Error> {
        self.silence.check()?;
        let Some(watch) = &self.watch else { return Ok(()) };
        if !watch.streams().is_empty() {
            self.deserted = None;
        } else if watch.changes() > 0 && !self.reconnects {
            // Somebody was there.
            let since = *self.deserted.get_or_insert_with(Instant::now);
            if since.elapsed() >= GRACE {
                return Err(Error::ProducerGone { uri: self.uri.clone() });
            }
        }
        Ok(())
    }
}

impl Bounded for ZenohSource {
    fn limit(&mut self) -> &mut Limit {
        &mut self.intake.limit
    }

    fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }
}

impl Stage for ZenohSource {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.next.is_none() && self.kept.is_none() && !ctx.waiting(|| self.receiver.wait(LOOK_AROUND)) {
            self.look()?;
            return Ok(Outcome::Produced);
        }
        let chunk_bytes = self.chunk_bytes;
        let pool = self.pool.get_or_insert_with(|| {
            let chunks = ctx.batches_in_flight().min(POOL_BYTES_MAX / chunk_bytes).max(4);
            ctx.pool(chunks, chunk_bytes)
        });
        let Some(mut batch) = ctx.acquire(pool) else { return Ok(Outcome::Produced) };
        let has_come = self.gather(&mut batch);
        if has_come && !batch.is_empty() {
            ctx.count_copied(batch.len());
            self.intake.copied_frames += batch.len() as u64;
            self.intake.limit.send(batch.freeze(), output, ctx);
        }
        self.counters.publish(&self.intake.tracker);
        self.counters.publish_refusals(&self.intake.refusals);
        self.counters.publish_socket(self.intake.ownership.foreign(), self.intake.copied_frames);
        let is_over = self.intake.tracker.is_ended() && !self.listens_on;
        Ok(if is_over || self.intake.limit.is_reached() { Outcome::End } else { Outcome::Produced })
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

/// Sorts frames: which go on, and which are counted and left out.
#[derive(Debug, Default)]
struct Intake {
    tracker: StreamTracker,
    end: Option<Header>,
    descriptions: DescriptionReader,
    description: Option<Arc<Description>>,
    is_described_anew: bool,
    refusals: Refusals,
    ownership: Ownership<SenderId>,
    /// Another sender, and what it says that its stream is.
    stranger: Option<(SenderId, Arc<Description>)>,
    copied_frames: u64,
    limit: Limit,
}

impl Intake {
    /// Enters the frames of a message that stands in the batch's memory. Answers where the first one is that belongs to another batch,
    /// because the stream is described anew there.
    fn take(
        &mut self,
        batch: &mut BatchMut,
        begin: usize,
        end: usize,
        from: SenderId,
        keeps_end: bool,
    ) -> Option<usize> {
        let mut at = begin;
        while let Some(piece) = pieces(&batch.chunk()[at..end]).next() {
            let piece = match piece {
                Ok(piece) => piece,
                Err(reason) => {
                    self.refusals.add(reason);
                    return None;
                }
            };
            let frame = at..at + piece.range.len();
            at = frame.end;
            match piece.header {
                Some(header) => {
                    if !self.is_ours(from, &header) {
                        self.ownership.count_foreign(from, 1, Instant::now());
                        return None;
                    }
                    let is_described_anew = !is_same(batch.description(), self.description.as_ref());
                    if is_described_anew && !batch.is_empty() {
                        return Some(frame.start);
                    }
                    batch.describe(self.description.as_ref());
                    self.enter(batch, frame.start, &header, keeps_end);
                }
                // It says what this sender's next frames are.
                None if self.ownership.owner().is_none_or(|owner| owner == from) => {
                    match self.descriptions.take(&batch.chunk()[frame]) {
                        Ok(Some(description)) => {
                            self.description = Some(Arc::new(description));
                            self.is_described_anew = true;
                        }
                        Ok(None) => {}
                        Err(reason) => self.refusals.add(reason),
                    }
                }
                // Whoever is about to take over says first what its stream is.
                None => {
                    let said = DescriptionReader::default().take(&batch.chunk()[frame]);
                    if let Ok(Some(description)) = said {
                        self.stranger = Some((from, Arc::new(description)));
                    }
                }
            }
        }
        None
    }

    fn enter(&mut self, batch: &mut BatchMut, at: usize, header: &Header, keeps_end: bool) {
        let arrival = self.tracker.arrive(header);
        if arrival == Arrival::Restart && !self.is_described_anew {
            self.forget_description();
            batch.describe(None);
        }
        if !arrival.is_new() {
            return;
        }
        self.is_described_anew = false;
        self.end = header.is_end_of_stream().then_some(*header);
        if keeps_end || self.end.is_none() {
            // Never full: the table of a chunk has room for as many frames as it has headers' worth of bytes.
            let _ = batch.adopt(at, header);
        }
    }

    /// As a receiver of datagrams decides it: a sender keeps its stream until it is silent, or another begins.
    fn is_ours(&mut self, from: SenderId, header: &Header) -> bool {
        let now = Instant::now();
        let whose = self.ownership.of_frame(from, header, &self.tracker, now);
        if whose == Whose::Foreign {
            return false;
        }
        if whose == Whose::Newcomer {
            self.tracker.forget();
            self.forget_description();
            let said = self.stranger.take().filter(|(stranger, _)| *stranger == from);
            self.is_described_anew = said.is_some();
            self.description = said.map(|(_, description)| description);
        }
        self.ownership.give(from, whose == Whose::Newcomer);
        self.ownership.silence.heard(now);
        true
    }

    fn forget_description(&mut self) {
        self.description = None;
        self.descriptions.forget();
    }
}

/// How long a wait lasts at most, so that a stop is noticed.
const LOOK_AROUND: Duration = Duration::from_millis(100);
/// What was on its way when the producer left still comes.
const GRACE: Duration = Duration::from_millis(500);
const POOL_BYTES_MAX: usize = 128 << 20;
/// A message that is longer is none of ours: the longest frame that other ways take has as many.
const MESSAGE_BYTES_TAKEN_MAX: usize = 4 << 20;
