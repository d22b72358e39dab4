//! Memory that a processing stage writes to: the input batch if nobody else holds it, otherwise its own
//! chunks.

use std::sync::Arc;

use grebe_frame::{
    Batch, BatchMut, BatchPool, Description, HEADER_BYTES, Header, PushError, Refusal, Sample,
};

use super::context::Context;
use super::outputs::Outputs;

/// A stage's own chunks, allocated at the first use.
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
    /// Empty batch of at least this many bytes; `None` while all chunks are lent.
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

    /// Writable batch: the same one if nobody else holds it, otherwise a copy, which is counted.
    ///
    /// # Errors
    /// The batch, if no chunk is free for a copy. Keep it and return
    /// [`Outcome::Again`](crate::Outcome::Again).
    pub fn own(&mut self, batch: Batch, ctx: &Context) -> Result<BatchMut, Batch> {
        batch.try_unique().or_else(|batch| self.copy(&batch, ctx).ok_or(batch))
    }

    /// Copy of the batch, which is counted; `None` without a free chunk.
    pub fn copy(&mut self, batch: &Batch, ctx: &Context) -> Option<BatchMut> {
        let frame_bytes = |payload: &[u8]| (HEADER_BYTES + payload.len()).next_multiple_of(64);
        let bytes = batch.frames().map(|frame| frame_bytes(frame.payload())).sum();
        let mut copy = self.acquire(bytes, ctx)?;
        copy.describe(batch.description());
        for frame in batch.frames() {
            // Fits, because the chunk has the size of all frames with alignment.
            let _ = copy.push_copy(&frame);
        }
        self.copied_frames += batch.len() as u64;
        Some(copy)
    }

    /// Frames copied because another stage held them.
    pub fn copied_frames(&self) -> u64 {
        self.copied_frames
    }
}

/// Collects rewritten frames and sends them in batches.
#[derive(Debug, Default)]
pub struct Rewriter {
    workspace: Workspace,
    out: Option<BatchMut>,
    described: Described,
}

/// Description of the input stream, and the resulting one of the output stream.
#[derive(Debug, Default)]
pub struct Described(Option<(Arc<Description>, Arc<Description>)>);

impl Described {
    /// Description of the output stream: `change` applied to that of a batch. Call it for each batch; it
    /// calls `change` once per description.
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
    /// Appends a frame. Returns whether there was a chunk for it. If not, nothing has changed: retry in the
    /// next step, and return [`Outcome::Again`](crate::Outcome::Again).
    ///
    /// # Errors
    /// A header that no receiver would accept, or another sample format than `T`'s.
    pub fn push<T: Sample>(
        &mut self,
        header: &Header,
        mut fill: impl FnMut(usize, &mut [T]),
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<bool, Refusal> {
        self.append(header, |out| out.push(header, &mut fill), output, ctx)
    }

    /// Like [`push`](Self::push), for samples in wire format of any kind.
    ///
    /// # Errors
    /// A header that no receiver would accept.
    pub fn push_bytes(
        &mut self,
        header: &Header,
        mut fill: impl FnMut(usize, &mut [u8]),
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<bool, Refusal> {
        self.append(header, |out| out.push_bytes(header, &mut fill), output, ctx)
    }

    /// Sets the description of the output stream: `change` applied to that of the present batch. Call it for
    /// each batch; it calls `change` once per description.
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
        // Frames collected under an earlier description leave with it.
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
                // The batch may also come from a pool of smaller chunks.
                Err(PushError::Full(_)) => self.flush(output, ctx),
            }
        }
        Ok(false)
    }

    /// Sends the collected frames.
    pub fn flush(&mut self, output: &mut Outputs, ctx: &Context) {
        if let Some(out) = self.out.take_if(|out| !out.is_empty()) {
            output.send(out.freeze(), ctx);
        } else {
            self.out = None;
        }
    }

    /// Chunks for collecting.
    pub fn workspace(&mut self) -> &mut Workspace {
        &mut self.workspace
    }
}

fn is_same(one: Option<&Arc<Description>>, other: Option<&Arc<Description>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}

/// Maximum memory of one stage.
const POOL_BYTES_MAX: usize = 256 << 20;
/// Like a receive slab, fits the largest datagram.
const CHUNK_BYTES: usize = 64 << 10;
