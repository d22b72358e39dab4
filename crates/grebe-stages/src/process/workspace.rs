//! The memory that a stage writes into: the batch that came, where nobody else holds it, else chunks of its own.

use grebe_flow::{Context, Inputs, Outcome, Outputs};
use grebe_frame::{Batch, BatchMut, BatchPool, HEADER_BYTES, Header};

use crate::stream::CHUNK_BYTES;

/// Chunks of a stage's own, made when the first is needed.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pool: Option<BatchPool>,
    copied_frames: u64,
}

impl Workspace {
    /// An empty batch of at least this many bytes; `None` while all chunks are lent.
    pub(crate) fn acquire(&mut self, bytes: usize, ctx: &Context) -> Option<BatchMut> {
        let pool = match &mut self.pool {
            Some(pool) if pool.chunk_bytes() >= bytes => pool,
            pool => {
                let chunk_bytes = bytes.max(CHUNK_BYTES);
                let chunks = ctx.batches_in_flight().min(POOL_BYTES_MAX / chunk_bytes).max(4);
                let mut new = BatchPool::new(chunks, chunk_bytes);
                new.wake_on_return(ctx.signal().clone());
                pool.insert(new)
            }
        };
        ctx.acquire(pool)
    }

    /// The batch to change: itself where nobody else holds it, else a copy, which is counted.
    ///
    /// # Errors
    /// The batch again, where there is no chunk for a copy: keep it, and return [`later`].
    pub(crate) fn own(&mut self, batch: Batch, ctx: &Context) -> Result<BatchMut, Batch> {
        batch.try_unique().or_else(|batch| self.copy(&batch, ctx).ok_or(batch))
    }

    /// A copy, which is counted; `None` while there is no chunk for it.
    pub(crate) fn copy(&mut self, batch: &Batch, ctx: &Context) -> Option<BatchMut> {
        let frame_bytes = |payload: &[u8]| (HEADER_BYTES + payload.len()).next_multiple_of(64);
        let bytes = batch.frames().map(|frame| frame_bytes(frame.payload())).sum();
        let mut copy = self.acquire(bytes, ctx)?;
        for frame in batch.frames() {
            // Fits: the chunk is as large as all of them, alignment included.
            let _ = copy.push_copy(&frame);
        }
        self.copied_frames += batch.len() as u64;
        Some(copy)
    }

    /// Frames that were copied because somebody else held them.
    pub(crate) fn copied_frames(&self) -> u64 {
        self.copied_frames
    }
}

/// The outcome of a step that keeps a batch for the next one: the stage has not ended, although its inputs may have.
pub(crate) fn later(input: &Inputs) -> Outcome {
    // Where more input may come, the stages behind this one are called first: on a shared thread they hold the chunks.
    if input.is_ended() { Outcome::Produced } else { Outcome::WantsInput }
}

/// Gathers frames that are rewritten, and hands them on in batches.
#[derive(Debug, Default)]
pub(crate) struct Rewriter {
    workspace: Workspace,
    out: Option<BatchMut>,
}

impl Rewriter {
    /// Appends a frame; whether there was a chunk for it. Where there is none, nothing has changed.
    pub(crate) fn push(
        &mut self,
        header: &Header,
        mut fill: impl FnMut(usize, &mut [i16]),
        output: &mut Outputs,
        ctx: &Context,
    ) -> bool {
        for _ in 0..2 {
            if self.out.is_none() {
                self.out = self.workspace.acquire(header.frame_bytes(), ctx);
            }
            let Some(out) = self.out.as_mut() else { return false };
            if out.push(header, &mut fill).is_ok() {
                return true;
            }
            // Full, or from a pool of smaller chunks.
            self.flush(output, ctx);
        }
        false
    }

    /// Hands on what has been gathered.
    pub(crate) fn flush(&mut self, output: &mut Outputs, ctx: &Context) {
        if let Some(out) = self.out.take_if(|out| !out.is_empty()) {
            output.send(out.freeze(), ctx);
        } else {
            self.out = None;
        }
    }

    pub(crate) fn workspace(&mut self) -> &mut Workspace {
        &mut self.workspace
    }
}

/// The most memory that one stage takes.
const POOL_BYTES_MAX: usize = 256 << 20;
