//! `zenoh://` as a source: copies messages of frames once, into batches.

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

use crate::bridges::zenoh::routes::Onward;
use crate::bridges::zenoh::uri::ZenohKey;
use crate::error::Error;
use crate::scheme::Scheme as _;
use crate::session::{Bounded, Limit, Ownership, Silence, Whose};

/// Receives one stream of frames of a key.
///
/// The stream belongs to its sender. Another takes over if it starts a new stream, or after half a second of silence.
/// The sequence shows losses: Zenoh drops messages if a link is too slow, and this source if its reader is.
#[derive(Debug)]
pub(crate) struct ZenohSource {
    uri: String,
    receiver: DataReceiver,
    /// Watches the producers of the key. `None`: the caller does.
    watch: Option<Watch>,
    reconnects: bool,
    /// Time at which the last producer left.
    deserted: Option<Instant>,
    /// A message without room in the last batch.
    next: Option<Message>,
    /// The rest of a message after a new description.
    kept: Option<(Vec<u8>, SenderId)>,
    pool: Option<BatchPool>,
    chunk_bytes: usize,
    intake: Intake,
    listens_on: bool,
    silence: Silence,
    counters: ArrivalCounters,
}

/// Options of a reader.
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

    /// Without watching the producers.
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

    /// Continues a stream that came by another route.
    pub(super) fn after(mut self, onward: Option<Onward>) -> Self {
        if let Some(Onward { tracker, description }) = onward {
            (self.intake.tracker, self.intake.description) = (tracker, description);
        }
        self
    }

    /// Samples per channel left to send; `None`: all.
    pub(super) fn left_samples(&self) -> Option<u64> {
        self.intake.limit.left()
    }

    /// Whether a frame has arrived.
    pub(super) fn has_heard(&self) -> bool {
        self.intake.ownership.owner().is_some()
    }

    /// Whether all frames received were sent on.
    pub(super) fn is_drained(&self) -> bool {
        self.next.is_none() && self.kept.is_none() && !self.receiver.wait(Duration::ZERO)
    }

    /// Collects waiting messages that fit. Returns whether there were any.
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
                    // Larger chunks from the next one on.
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

    /// Adds the frames of a message, up to a new description. Keeps the rest for the next batch.
    fn enter(&mut self, batch: &mut BatchMut, begin: usize, end: usize, sender: SenderId) {
        let rest = self.intake.take(batch, begin, end, sender, self.listens_on);
        self.kept = rest.map(|at| (batch.chunk()[at..end].to_vec(), sender));
    }

    /// Checks the producers after a silence.
    fn check_producers(&mut self) -> Result<(), Error> {
        self.silence.check()?;
        let Some(watch) = &self.watch else { return Ok(()) };
        if !watch.streams().is_empty() {
            self.deserted = None;
        } else if watch.changes() > 0 && !self.reconnects {
            // A producer was there before.
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
        if self.next.is_none() && self.kept.is_none() && !ctx.waiting(|| self.receiver.wait(WAIT_MAX)) {
            self.check_producers()?;
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

/// Sorts frames: sends them on, or counts and drops them.
#[derive(Debug, Default)]
struct Intake {
    tracker: StreamTracker,
    end: Option<Header>,
    descriptions: DescriptionReader,
    description: Option<Arc<Description>>,
    is_described_anew: bool,
    refusals: Refusals,
    ownership: Ownership<SenderId>,
    /// Another sender and its description.
    stranger: Option<(SenderId, Arc<Description>)>,
    copied_frames: u64,
    limit: Limit,
}

impl Intake {
    /// Adds the frames of a message in the batch's memory. Returns the position of the first frame after a new
    /// description, which belongs to the next batch.
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
                // Describes this sender's next frames.
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
                // A sender that takes over sends its description first.
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
            // Never full: the frame table has room for a chunk of nothing but headers.
            let _ = batch.adopt(at, header);
        }
    }

    /// By the rules for datagrams: a sender keeps its stream until it is silent, or another starts one.
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
        self.ownership.silence.reset(now);
        true
    }

    fn forget_description(&mut self) {
        self.description = None;
        self.descriptions.forget();
    }
}

/// Maximum wait, so that a stop takes effect.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Messages in flight when the producer left still arrive.
const GRACE: Duration = Duration::from_millis(500);
const POOL_BYTES_MAX: usize = 128 << 20;
/// Longer messages are invalid: other routes have the same limit for a frame.
const MESSAGE_BYTES_TAKEN_MAX: usize = 4 << 20;
