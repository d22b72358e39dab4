//! The memory that a processing stage writes into: the batch that came, where nobody else holds it, else chunks of its own.

use std::sync::Arc;

use grebe_frame::{
    Batch, BatchMut, BatchPool, Description, HEADER_BYTES, Header, PushError, Refusal, Sample,
};

use super::context::Context;
use super::outputs::Outputs;

/// Chunks of a stage's own, made when the first is needed.
///
/// ```
/// use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageResult, Workspace};
/// use grebe_frame::Batch;
///
/// #[derive(Default)]
/// struct Negate {
///     workspace: Workspace,
///     pending: Option<Batch>,
/// }
///
/// impl Stage for Negate {
///     fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
///         let Some(batch) = self.pending.take().or_else(|| input.next()) else { return Ok(Outcome::WantsInput) };
///         match self.workspace.own(batch, ctx) {
///             Ok(mut own) => {
///                 own.update::<i16>(|_, _, samples| samples.iter_mut().for_each(|sample| *sample = sample.saturating_neg()))?;
///                 output.send(own.freeze(), ctx);
///                 Ok(Outcome::Produced)
///             }
///             Err(batch) => {
///                 self.pending = Some(batch);
///                 Ok(Outcome::Again)
///             }
///         }
///     }
/// }
/// # let mut bench = grebe_flow::StageBench::new(Negate::default())?;
/// # let mut batch = grebe_frame::BatchPool::new(1, 4096).acquire().unwrap();
/// # let header = grebe_frame::Header { channel_count: 1, block_length_samples: 2, ..Default::default() };
/// # batch.push::<i16>(&header, |_, out| out.fill(3))?;
/// # let kept = batch.freeze();
/// # assert_eq!(bench.feed(kept.clone())?[0].frames().next().unwrap().channel::<i16>(0)?.as_ref(), [-3, -3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Workspace {
    pool: Option<BatchPool>,
    copied_frames: u64,
}

impl Workspace {
    /// An empty batch of at least this many bytes; `None` while all chunks are lent.
    pub fn acquire(&mut self, bytes: usize, ctx: &Context) -> Option<BatchMut> {
        let pool = match &mut self.pool {
            Some(pool) if pool.chunk_bytes() >= bytes => pool,
            pool => {
                let chunk_bytes = bytes.max(CHUNK_BYTES);
                let chunks = ctx.batches_in_flight().min(POOL_BYTES_MAX / chunk_bytes).max(4);
                pool.insert(ctx.pool(chunks, chunk_bytes))
            }
        };
        ctx.acquire(pool)
    }

    /// The batch to change: itself where nobody else holds it, else a copy, which is counted.
    ///
    /// # Errors
    /// The batch again, where there is no chunk for a copy: keep it, and return [`Outcome::Again`](crate::Outcome::Again).
    pub fn own(&mut self, batch: Batch, ctx: &Context) -> Result<BatchMut, Batch> {
        batch.try_unique().or_else(|batch| self.copy(&batch, ctx).ok_or(batch))
    }

    /// A copy, which is counted; `None` while there is no chunk for it.
    pub fn copy(&mut self, batch: &Batch, ctx: &Context) -> Option<BatchMut> {
        let frame_bytes = |payload: &[u8]| (HEADER_BYTES + payload.len()).next_multiple_of(64);
        let bytes = batch.frames().map(|frame| frame_bytes(frame.payload())).sum();
        let mut copy = self.acquire(bytes, ctx)?;
        copy.describe(batch.description());
        for frame in batch.frames() {
            // Fits: the chunk is as large as all of them, alignment included.
            let _ = copy.push_copy(&frame);
        }
        self.copied_frames += batch.len() as u64;
        Some(copy)
    }

    /// Frames that were copied because somebody else held them.
    pub fn copied_frames(&self) -> u64 {
        self.copied_frames
    }
}

/// Gathers frames that are rewritten, and hands them on in batches.
#[derive(Debug, Default)]
pub struct Rewriter {
    workspace: Workspace,
    out: Option<BatchMut>,
    described: Described,
}

/// What the stream is that came, and what that makes of the one that is handed on.
#[derive(Debug, Default)]
pub struct Described(Option<(Arc<Description>, Arc<Description>)>);

impl Described {
    /// What to say of the stream that is handed on: what `change` makes of what a batch says. To be called for each batch; `change`
    /// is, once per description.
    pub fn change(
        &mut self,
        came: Option<&Arc<Description>>,
        change: impl FnOnce(&Description) -> Description,
    ) -> Option<&Arc<Description>> {
        if !is_same(self.0.as_ref().map(|(before, _)| before), came) {
            self.0 = came.map(|now| (now.clone(), Arc::new(change(now))));
        }
        self.made()
    }

    fn made(&self) -> Option<&Arc<Description>> {
        self.0.as_ref().map(|(_, made)| made)
    }
}

impl Rewriter {
    /// Appends a frame; whether there was a chunk for it. Where there is none, nothing has changed: come back to it in the next
    /// step, and return [`Outcome::Again`](crate::Outcome::Again).
    ///
    /// # Errors
    /// No receiver would take a frame with this header, or its format is not `T`'s.
    pub fn push<T: Sample>(
        &mut self,
        header: &Header,
        mut fill: impl FnMut(usize, &mut [T]),
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<bool, Refusal> {
        self.append(header, |out| out.push(header, &mut fill), output, ctx)
    }

    /// As [`push`](Self::push), of samples as they stand on the wire, whatever their format.
    ///
    /// # Errors
    /// No receiver would take a frame with this header.
    pub fn push_bytes(
        &mut self,
        header: &Header,
        mut fill: impl FnMut(usize, &mut [u8]),
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<bool, Refusal> {
        self.append(header, |out| out.push_bytes(header, &mut fill), output, ctx)
    }

    /// Says what the stream is that is handed on: what `change` makes of what the batch says that is being rewritten. To be
    /// called for each batch; `change` is, once per description.
    pub fn describe(
        &mut self,
        description: Option<&Arc<Description>>,
        change: impl FnOnce(&Description) -> Description,
    ) {
        self.described.change(description, change);
    }

    fn append(
        &mut self,
        header: &Header,
        mut push: impl FnMut(&mut BatchMut) -> Result<(), PushError>,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<bool, Refusal> {
        // What was gathered of an earlier description goes on with that.
        if self.out.as_ref().is_some_and(|out| !is_same(out.description(), self.described.made())) {
            self.flush(output, ctx);
        }
        for _ in 0..2 {
            if self.out.is_none() {
                self.out = self.workspace.acquire(header.frame_bytes(), ctx);
                if let Some(out) = &mut self.out {
                    out.describe(self.described.made());
                }
            }
            let Some(out) = self.out.as_mut() else { return Ok(false) };
            match push(out) {
                Ok(()) => return Ok(true),
                Err(PushError::Refused(reason)) => return Err(reason),
                Err(PushError::Format { .. }) => return Err(Refusal::Format),
                // Or from a pool of smaller chunks.
                Err(PushError::Full(_)) => self.flush(output, ctx),
            }
        }
        Ok(false)
    }

    /// Hands on what has been gathered.
    pub fn flush(&mut self, output: &mut Outputs, ctx: &Context) {
        if let Some(out) = self.out.take_if(|out| !out.is_empty()) {
            output.send(out.freeze(), ctx);
        } else {
            self.out = None;
        }
    }

    /// The chunks that it gathers in.
    pub fn workspace(&mut self) -> &mut Workspace {
        &mut self.workspace
    }
}

fn is_same(one: Option<&Arc<Description>>, other: Option<&Arc<Description>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}

/// The most memory that one stage takes.
const POOL_BYTES_MAX: usize = 256 << 20;
/// As a receive slab has: the largest datagram fits.
const CHUNK_BYTES: usize = 64 << 10;
