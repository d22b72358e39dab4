//! Where an edge comes in from another host.

use std::sync::Arc;
use std::time::Duration;

use grebe_flow::{
    Context, Inputs, Kind, LINK_IN, Outcome, Outputs, Ports, Site, Stage, StageError, StageResult,
};
use grebe_frame::{BatchMut, BatchPool, Description, DescriptionReader, Header, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Buffer;
use super::inbox::{Inbox, Next};
use super::message::Count;
use super::outbox::Outbox;

/// Receives a stream from a stage on another host.
///
/// It is no source of its own: a graph that is stopped goes on until the stream has ended.
pub struct LinkIn {
    from: Arc<Inbox>,
    /// Tells the producer what was taken.
    tells: Arc<Outbox>,
    link: u16,
    taken: Count,
    /// What came, and for which there was no memory yet.
    pending: Option<Buffer>,
    pool: Option<BatchPool>,
    descriptions: DescriptionReader,
    description: Option<Arc<Description>>,
    end: Option<Header>,
}

/// Comes from a stage on another host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkInKind {
    /// The number of the edge.
    pub link: u16,
}

impl LinkIn {
    /// What comes into an inbox; `tells` leads to the producer.
    pub fn new(from: Arc<Inbox>, tells: Arc<Outbox>, link: u16) -> Self {
        Self {
            from,
            tells,
            link,
            taken: Count::default(),
            pending: None,
            pool: None,
            descriptions: DescriptionReader::default(),
            description: None,
            end: None,
        }
    }

    /// A chunk that such a message fits into.
    fn acquire(&mut self, bytes: usize, ctx: &Context) -> Option<BatchMut> {
        let pool = match &mut self.pool {
            Some(pool) if pool.chunk_bytes() >= bytes => pool,
            pool => {
                let chunk_bytes = bytes.next_power_of_two().max(CHUNK_BYTES);
                let chunks = ctx.batches_in_flight().min(POOL_BYTES_MAX / chunk_bytes).max(4);
                pool.insert(ctx.pool(chunks, chunk_bytes))
            }
        };
        let batch = ctx.acquire(pool);
        if batch.is_none() && ctx.is_stopping() {
            // Nobody waits for memory in a graph that is stopped; what is under way still wants some.
            ctx.waiting(|| std::thread::sleep(Duration::from_millis(1)));
        }
        batch
    }

    /// Enters the frames of a message, which stand in the chunk.
    fn enter(&mut self, batch: &mut BatchMut, bytes: usize) -> Result<(), StageError> {
        let mut at = 0;
        batch.describe(self.description.as_ref());
        while at < bytes {
            let rest = &batch.chunk()[at..bytes];
            let refused = |why: Refusal| format!("what came over the link is no frame: {why}");
            match Header::parse(rest) {
                Ok(header) if header.frame_bytes() <= rest.len() => {
                    if !header.is_end_of_stream() {
                        // Never full: the table has room for as many frames as the chunk has headers' worth of bytes.
                        let _ = batch.adopt(at, &header);
                    }
                    at += header.frame_bytes();
                }
                Ok(_) => return Err(refused(Refusal::Truncated).into()),
                Err(Refusal::Description) => {
                    let frame_bytes = DescriptionReader::frame_bytes(rest).map_err(refused)?;
                    let frame = rest.get(..frame_bytes).ok_or_else(|| refused(Refusal::Truncated))?;
                    if let Some(description) = self.descriptions.take(frame).map_err(refused)? {
                        self.description = Some(Arc::new(description));
                        batch.describe(self.description.as_ref());
                    }
                    at += frame_bytes;
                }
                Err(why) => return Err(refused(why).into()),
            }
        }
        Ok(())
    }
}

impl Stage for LinkIn {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let next = self.pending.take().map_or_else(|| self.from.pop(|| ctx.waker()), Next::Frames);
        let message = match next {
            Next::Frames(message) => message,
            Next::Nothing => return Ok(Outcome::WantsInput),
            Next::Ended(end) => {
                self.end = end;
                return Ok(Outcome::End);
            }
        };
        let bytes = message.bytes.len();
        let Some(mut batch) = self.acquire(bytes, ctx) else {
            self.pending = Some(message);
            return Ok(Outcome::Produced);
        };
        batch.chunk()[..bytes].copy_from_slice(&message.bytes);
        self.enter(&mut batch, bytes)?;
        if !batch.is_empty() {
            output.send(batch.freeze(), ctx);
        }
        self.taken.add(bytes);
        self.tells.tell_taken(self.link, self.taken);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let Some(end) = self.end {
            ctx.set_end_of_stream(end);
        }
        Ok(())
    }

    fn is_fed(&self) -> bool {
        true
    }
}

impl Drop for LinkIn {
    /// However it ended, its producer learns of it.
    fn drop(&mut self) {
        if self.from.leave() {
            self.tells.close_link(self.link);
        }
    }
}

impl std::fmt::Debug for LinkIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkIn").field("link", &self.link).field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Kind for LinkInKind {
    const NAME: &'static str = LINK_IN;
    const PORTS: Ports = Ports::SOURCE;

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Err("only a graph that was cut has such a stage".into())
    }
}

/// As a receive slab has.
const CHUNK_BYTES: usize = 64 << 10;
const POOL_BYTES_MAX: usize = 128 << 20;
