//! Where an edge leaves for another host.

use std::sync::Arc;
use std::time::Duration;

use grebe_flow::{
    Context, Inputs, Kind, LINK_OUT, Outcome, Outputs, Ports, Site, Stage, StageError, StageResult,
};
use grebe_frame::{Batch, HEADER_BYTES};
use schemars::JsonSchema;
use serde::Deserialize;

use super::message::FRAMES_BYTES_MAX;
use super::outbox::{Outbox, Room};
use crate::io::announce::Announcer;

/// Sends a stream to a stage on another host.
///
/// It takes a batch only when there is room for it at the other end, so that what waits, waits in the queue before it, under the policy
/// of the edge. Ends without an error when the consumer has gone.
#[derive(Debug)]
pub struct LinkOut {
    to: Arc<Outbox>,
    link: u16,
    window_batches: u64,
    announcer: Announcer,
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
    /// Over a connection, with so many batches under way at most.
    pub fn new(to: Arc<Outbox>, link: u16, window_batches: u64) -> Self {
        Self { to, link, window_batches: window_batches.max(1), announcer: Announcer::once() }
    }

    fn send(&mut self, batch: Batch) -> Result<(), StageError> {
        let before = self.announcer.before(&batch, DESCRIPTION_BYTES)?.concat();
        let frames_bytes = match batch.contiguous() {
            Some((bytes, _)) => bytes.len(),
            None => batch.frames().map(|frame| HEADER_BYTES + frame.payload().len()).sum(),
        };
        if before.len() + frames_bytes > FRAMES_BYTES_MAX as usize {
            let most = FRAMES_BYTES_MAX >> 20;
            return Err(
                format!("a batch of {frames_bytes} bytes: a link between hosts takes {most} MiB").into()
            );
        }
        self.to.send(self.link, before, batch, frames_bytes);
        Ok(())
    }
}

impl Stage for LinkOut {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let (link, window) = (self.link, self.window_batches);
        match ctx.waiting(|| self.to.wait_for_room(link, window, STEP)) {
            Room::Closed => return Ok(Outcome::End),
            Room::NotYet => return Ok(Outcome::Produced),
            Room::Yes => {}
        }
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        if !batch.is_empty() {
            self.send(batch)?;
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        // What the source said of its end, and nothing of our own: the stages behind know their last frame themselves.
        let told = ctx.end_of_stream(None).map(|header| {
            let mut bytes = [0; HEADER_BYTES];
            header.write(&mut bytes);
            bytes.to_vec()
        });
        self.to.end(self.link, told.unwrap_or_default());
        Ok(())
    }
}

impl Kind for LinkOutKind {
    const NAME: &'static str = LINK_OUT;
    const PORTS: Ports = Ports::SINK;

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Err("only a graph that was cut has such a stage".into())
    }
}

/// As long as a step may take.
const STEP: Duration = Duration::from_millis(100);
/// No description needs two frames then.
const DESCRIPTION_BYTES: usize = 128 << 10;
