//! `zenoh://` as a sink.

use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, Header};
use grebe_link::announce::Announcer;
use grebe_ring::Cancel;
use grebe_zenoh::{DataSender, Error as ZenohError, Lab, MESSAGE_BYTES_MAX, Presence};

use crate::bridges::zenoh::uri::ZenohKey;
use crate::error::Error;

/// Sends frames to a key, in messages of up to 65,000 bytes, without a copy.
///
/// Zenoh drops messages silently if a link is too slow. Readers see the loss in the sequence.
#[derive(Debug)]
pub(crate) struct ZenohSink {
    to: Sending,
    _presence: Presence,
    counters: Counted,
}

impl ZenohSink {
    /// # Errors
    /// The lab cannot be joined, or the wait for a reader was cancelled.
    pub(crate) fn open(to: &ZenohKey, cancel: &Cancel) -> Result<Self, Error> {
        let lab = Lab::shared()?;
        let blocks = to.policy == Some(grebe_shm::Policy::Block);
        let sending = Sending::new(lab.sender(&to.key, blocks)?);
        let presence = lab.show(&to.key)?;
        while to.waits && !sending.sender.has_reader() {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            std::thread::sleep(CHECK_EVERY);
        }
        Ok(Self { to: sending, _presence: presence, counters: Counted::default() })
    }

    fn publish(&self) {
        self.counters.messages.set(self.to.messages());
        self.counters.has_reader.set(u64::from(self.to.has_reader()));
    }
}

impl Stage for ZenohSink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.to.send(&batch)?;
        self.to.take_note().into_iter().for_each(|note| ctx.note(note));
        self.publish();
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.to.end(ctx)?;
        self.publish();
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

/// A stream to a key.
#[derive(Debug)]
pub(super) struct Sending {
    sender: DataSender,
    announcer: Announcer,
    last: Option<Header>,
    messages: u64,
}

impl Sending {
    pub(super) fn new(sender: DataSender) -> Self {
        Self { sender, announcer: Announcer::repeating(), last: None, messages: 0 }
    }

    pub(super) fn send(&mut self, batch: &Batch) -> StageResult<()> {
        for frame in self.announcer.before(batch, MESSAGE_BYTES_MAX)? {
            self.sender.send_bytes(frame)?;
            self.messages += 1;
        }
        self.messages += self.sender.send(batch)?;
        self.last = batch.frames().next_back().map(|frame| frame.header()).or(self.last);
        Ok(())
    }

    /// Sends the end of the stream, repeatedly because a message may be dropped.
    pub(super) fn end(&mut self, ctx: &Context) -> Result<(), ZenohError> {
        let Some(end) = self.end_of_stream(ctx) else { return Ok(()) };
        let began = Instant::now();
        for repeat in 0..END_REPEATS {
            let at = began + END_OVER * repeat / (END_REPEATS - 1);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            self.sender.send_end(&end)?;
        }
        Ok(())
    }

    pub(super) fn end_of_stream(&self, ctx: &Context) -> Option<Header> {
        ctx.end_of_stream(self.last)
    }

    /// A notice about the description.
    pub(super) fn take_note(&mut self) -> Option<String> {
        self.announcer.take_note()
    }

    /// Messages sent.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    pub(super) fn has_reader(&self) -> bool {
        self.sender.has_reader()
    }
}

const CHECK_EVERY: Duration = Duration::from_millis(20);
const END_REPEATS: u32 = 5;
const END_OVER: Duration = Duration::from_millis(500);

grebe_flow::counters! {
    struct Counted { messages, has_reader }
}
