//! Outgoing end of an edge between hosts.

use std::sync::Arc;
use std::time::Duration;

use grebe_flow::{
    Context, Counters, Inputs, Kind, LINK_OUT, Outcome, Outputs, Ports, Site, Stage, StageError, StageResult,
};
use grebe_frame::{Batch, HEADER_BYTES};
use schemars::JsonSchema;
use serde::Deserialize;

use super::lane::{Room, Unconfirmed};
use super::link_route::LinkRoute;
use super::message::FRAMES_BYTES_MAX;
use crate::announce::Announcer;

/// Sends a stream to a stage on another host.
///
/// It takes a batch only if the other end has room. So data waits in the queue before it, under the policy of
/// the edge. Ends without an error when the consumer is gone.
#[derive(Debug)]
pub struct LinkOut {
    to: Arc<LinkRoute>,
    window_batches: u64,
    announcer: Announcer,
    epoch: u32,
    counters: Unconfirmed,
}

/// Leads to a stage on another host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkOutKind {
    /// The number of the edge.
    pub link: u16,
    /// Batches that may be under way.
    pub window: u64,
}

impl LinkOut {
    /// Makes a sink with at most `window_batches` in flight. With `is_again`, the stage replaces an earlier
    /// one, and begins when the process that runs the graph says so
    /// ([`Outbox::tell_join`](super::Outbox::tell_join)).
    pub fn new(to: Arc<LinkRoute>, window_batches: u64, is_again: bool) -> Self {
        let counters = Unconfirmed::default();
        to.say(|to, link| to.open(link, is_again, counters.clone()));
        let window_batches = window_batches.max(1);
        Self { to, window_batches, announcer: Announcer::once(), epoch: 0, counters }
    }

    fn send(&mut self, batch: Batch, epoch: u32) -> Result<(), StageError> {
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            // A new consumer, without any description yet.
            self.announcer = Announcer::once();
        }
        let before = self.announcer.before(&batch, DESCRIPTION_BYTES)?.concat();
        let frames_bytes = match batch.contiguous() {
            Some((bytes, _)) => bytes.len(),
            None => batch.frames().map(|frame| HEADER_BYTES + frame.payload().len()).sum(),
        };
        if before.len() + frames_bytes > FRAMES_BYTES_MAX as usize {
            let most = FRAMES_BYTES_MAX >> 20;
            return Err(format!(
                "a batch of {frames_bytes} bytes: the limit of a link between hosts is {most} MiB"
            )
            .into());
        }
        self.to.say(|to, link| to.send(link, epoch, before, batch, frames_bytes));
        Ok(())
    }
}

impl Stage for LinkOut {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let (to, link, window) = (self.to.now(), self.to.link(), self.window_batches);
        let epoch = match ctx.waiting(|| to.wait_for_room(link, window, STEP)) {
            Room::Closed if self.to.is(&to) => return Ok(Outcome::End),
            Room::Closed | Room::NotYet => return Ok(Outcome::Produced),
            Room::Yes(epoch) => epoch,
        };
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        if !batch.is_empty() {
            self.send(batch, epoch)?;
            self.announcer.take_note().into_iter().for_each(|note| ctx.note(note));
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        // Only the source's report, because later stages know their last frame themselves.
        let told = ctx.end_of_stream(None).map(|header| {
            let mut bytes = [0; HEADER_BYTES];
            header.write(&mut bytes);
            bytes.to_vec()
        });
        self.to.say(|to, link| to.end(link, told.unwrap_or_default(), ctx.is_stopping()));
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

impl Kind for LinkOutKind {
    const NAME: &'static str = LINK_OUT;
    const PORTS: Ports = Ports::SINK;

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Err("only a graph split over hosts has such a stage".into())
    }
}

/// Maximum length of a step.
const STEP: Duration = Duration::from_millis(100);
/// Large enough for every description in one frame.
const DESCRIPTION_BYTES: usize = 128 << 10;
