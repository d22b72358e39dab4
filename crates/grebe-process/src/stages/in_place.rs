//! What stages share that change batches where they are.

use std::sync::Arc;

use grebe_flow::{Context, Described, Inputs, Outcome, Workspace};
use grebe_frame::{Batch, BatchMut, Description};

/// Takes batches to change them: themselves where nobody else holds them, else copies.
#[derive(Debug, Default)]
pub(super) struct InPlace {
    workspace: Workspace,
    described: Described,
    /// What came, and found no chunk for its copy.
    pending: Option<Batch>,
}

impl InPlace {
    /// The next batch. The error is no failure but what the step is to return: nothing has come, or there is no chunk for a copy yet.
    pub(super) fn next(&mut self, input: &mut Inputs, ctx: &Context) -> Result<BatchMut, Outcome> {
        let batch = self.pending.take().or_else(|| input.next()).ok_or(Outcome::WantsInput)?;
        self.workspace.own(batch, ctx).map_err(|batch| {
            self.pending = Some(batch);
            Outcome::Again
        })
    }

    /// Says of the stream what `change` makes of what the batch says; `change` is called once per description.
    pub(super) fn describe(
        &mut self,
        batch: &mut BatchMut,
        change: impl FnOnce(&Description) -> Description,
    ) {
        let came: Option<Arc<Description>> = batch.description().cloned();
        batch.describe(self.described.change(came.as_ref(), change));
    }

    /// Frames that were copied because somebody else held them.
    pub(super) fn copied_frames(&self) -> u64 {
        self.workspace.copied_frames()
    }
}
