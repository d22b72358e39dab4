//! Common part of stages that change batches in place.

use std::sync::Arc;

use grebe_flow::{Context, Described, Inputs, Outcome, Workspace};
use grebe_frame::{Batch, BatchMut, Description};

/// Provides writable batches: the input if nobody else holds it, otherwise a copy.
#[derive(Debug, Default)]
pub(super) struct InPlace {
    workspace: Workspace,
    described: Described,
    /// Input without a chunk for its copy so far.
    pending: Option<Batch>,
}

impl InPlace {
    /// Next batch. The error is the normal result of the step: no input, or no chunk for a copy yet.
    pub(super) fn next(&mut self, input: &mut Inputs, ctx: &Context) -> Result<BatchMut, Outcome> {
        let batch = self.pending.take().or_else(|| input.next()).ok_or(Outcome::WantsInput)?;
        self.workspace.own(batch, ctx).map_err(|batch| {
            self.pending = Some(batch);
            Outcome::Again
        })
    }

    /// Sets the description: `change` applied to that of the batch, once per description.
    pub(super) fn describe(
        &mut self,
        batch: &mut BatchMut,
        change: impl FnOnce(&Description) -> Description,
    ) {
        let came: Option<Arc<Description>> = batch.description().cloned();
        batch.describe(self.described.change(came.as_ref(), change));
    }

    /// Frames copied because another stage held them.
    pub(super) fn copied_frames(&self) -> u64 {
        self.workspace.copied_frames()
    }
}
