//! Incoming end of an edge between hosts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_flow::{
    Context, Counters, Inputs, Kind, LINK_IN, Outcome, Outputs, Ports, Site, Stage, StageError, StageResult,
};
use grebe_frame::{BatchMut, BatchPool, Description, DescriptionReader, Header, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;

use super::buffer::Buffer;
use super::inbox::{Inbox, Next};
use super::link_route::LinkRoute;
use super::message::{Begin, Count, Taken};
use super::splice::Splice;

/// Receives a stream from a stage on another host.
///
/// It continues until the stream ends when the graph is stopped, unlike an ordinary source.
pub struct LinkIn {
    from: Arc<Inbox>,
    /// Sends acknowledgements to the producer.
    tells: Arc<LinkRoute>,
    epoch: Epoch,
    /// Received message without memory so far.
    pending: Option<Buffer>,
    pool: Option<BatchPool>,
    descriptions: DescriptionReader,
    /// Received description, until it is passed to later stages.
    received_description: Option<Description>,
    description: Option<Arc<Description>>,
    splice: Splice,
    end: Option<Header>,
    /// The graph ended before the stream: it may have failed and be restarted.
    is_cut_short: bool,
    counters: Counted,
}

/// Acknowledgements since the start of this epoch.
#[derive(Debug)]
struct Epoch {
    number: u32,
    /// Whether messages belong to this epoch; earlier ones were sent to the previous process.
    has_begun: bool,
    taken: Count,
}

/// Comes from a stage on another host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkInKind {
    /// The number of the edge.
    pub link: u16,
}

impl LinkIn {
    /// Makes a source for an inbox; `tells` leads to the producer. If the stage replaces an earlier one,
    /// `after` is the last epoch announced to the producer before. Only later epochs are meant for this stage.
    pub fn new(from: Arc<Inbox>, tells: Arc<LinkRoute>, after: Option<u32>) -> Self {
        Self {
            from,
            tells,
            epoch: Epoch { number: after.unwrap_or(0), has_begun: after.is_none(), taken: Count::default() },
            pending: None,
            pool: None,
            descriptions: DescriptionReader::default(),
            received_description: None,
            description: None,
            splice: Splice::default(),
            end: None,
            is_cut_short: false,
            counters: Counted::default(),
        }
    }

    /// Begins an epoch with the following messages.
    fn begin(&mut self, begin: Begin) {
        if begin.epoch <= self.epoch.number {
            return;
        }
        self.epoch = Epoch { number: begin.epoch, has_begun: true, taken: Count::default() };
        self.descriptions = DescriptionReader::default();
        if begin.is_fresh {
            (self.received_description, self.description) = (None, None);
            self.splice.open();
        }
    }

    /// Joins the first frame of a restarted producer to the stream.
    fn join(&mut self, header: &Header, batch: &mut BatchMut, ctx: &Context) {
        if let Some(gap) = self.splice.close(header, self.received_description.as_ref(), Instant::now()) {
            self.counters.producer_restarts.add(1);
            self.counters.away_samples.add(gap.of_source());
            ctx.note(gap.to_string());
        }
        self.describe(batch);
    }

    fn describe(&mut self, batch: &mut BatchMut) {
        if let Some(received_description) = self.received_description.take() {
            self.description = Some(Arc::new(self.splice.described(received_description)));
        }
        batch.describe(self.description.as_ref());
    }

    /// Chunk for a message of this length.
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
            // A stopping graph does not wait for memory by itself, but data in flight still needs it.
            ctx.waiting(|| std::thread::sleep(Duration::from_millis(1)));
        }
        batch
    }

    /// Enters the frames of a message in the chunk.
    fn enter(&mut self, batch: &mut BatchMut, bytes: usize, ctx: &Context) -> Result<(), StageError> {
        let mut at = 0;
        batch.describe(self.description.as_ref());
        while at < bytes {
            let rest = &batch.chunk()[at..bytes];
            let refused = |why: Refusal| format!("invalid frame on the link: {why}");
            match Header::parse(rest) {
                Ok(mut header) if header.frame_bytes() <= rest.len() => {
                    if self.splice.is_open() {
                        self.join(&header, batch, ctx);
                    }
                    if self.splice.shift(&mut header)
                        && let Some(bytes) = batch.chunk()[at..].first_chunk_mut()
                    {
                        header.write(bytes);
                    }
                    if !header.is_end_of_stream() {
                        // Never full: the table has room for as many frames as headers fit into the chunk.
                        let _ = batch.adopt(at, &header);
                        self.splice.follow(&header);
                    }
                    at += header.frame_bytes();
                }
                Ok(_) => return Err(refused(Refusal::Truncated).into()),
                Err(Refusal::Description) => {
                    let frame_bytes = DescriptionReader::frame_bytes(rest).map_err(refused)?;
                    let frame = rest.get(..frame_bytes).ok_or_else(|| refused(Refusal::Truncated))?;
                    if let Some(description) = self.descriptions.take(frame).map_err(refused)? {
                        self.received_description = Some(description);
                        // After a seam, the indices are unknown before the first frame.
                        if !self.splice.is_open() {
                            self.describe(batch);
                        }
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
            Next::Frames(message) if self.epoch.has_begun => message,
            Next::Frames(_) => return Ok(Outcome::Produced),
            Next::Begin(begin) => {
                self.begin(begin);
                return Ok(Outcome::Produced);
            }
            Next::Nothing => return Ok(Outcome::WantsInput),
            Next::Ended(end) => {
                self.end = end;
                if let Some(end) = &mut self.end {
                    self.splice.shift(end);
                }
                return Ok(Outcome::End);
            }
        };
        let bytes = message.bytes.len();
        let Some(mut batch) = self.acquire(bytes, ctx) else {
            self.pending = Some(message);
            return Ok(Outcome::Produced);
        };
        batch.chunk()[..bytes].copy_from_slice(&message.bytes);
        self.enter(&mut batch, bytes, ctx)?;
        if !batch.is_empty() {
            output.send(batch.freeze(), ctx);
        }
        self.splice.came(Instant::now());
        self.epoch.taken.add(bytes);
        let taken = Taken { epoch: self.epoch.number, count: self.epoch.taken };
        self.tells.say(|to, link| to.tell_taken(link, taken));
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.is_cut_short = ctx.is_stopping();
        if let Some(end) = self.end {
            ctx.set_end_of_stream(end);
        }
        Ok(())
    }

    fn is_fed(&self) -> bool {
        true
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

impl Drop for LinkIn {
    /// Informs the producer, whatever the reason for the end.
    fn drop(&mut self) {
        if self.from.leave() {
            self.tells.say(|to, link| to.leave_link(link, self.is_cut_short));
        }
    }
}

impl std::fmt::Debug for LinkIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkIn")
            .field("link", &self.tells.link())
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl Kind for LinkInKind {
    const NAME: &'static str = LINK_IN;
    const PORTS: Ports = Ports::SOURCE;

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Err("only a graph split over hosts has such a stage".into())
    }
}

grebe_flow::counters! {
    /// Number of producer restarts, and samples missing because of them.
    struct Counted { producer_restarts, away_samples }
}
/// Like a receive slab.
const CHUNK_BYTES: usize = 64 << 10;
const POOL_BYTES_MAX: usize = 128 << 20;
