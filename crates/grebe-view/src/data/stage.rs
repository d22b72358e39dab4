//! The scope as the last stage of a graph.

use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageError};

use crate::data::feed::ScopeFeed;
use crate::data::link::ScopeLink;

/// A sink that shows its stream.
///
/// It never waits for its front end, so it keeps up with any stream that one core can reduce to columns. Give it a
/// `drop_oldest` queue: where it cannot keep up, the stream is not held up. When the stream is over, the front end keeps
/// the history.
///
/// ```
/// use grebe_flow::{Graph, QueueOptions};
/// use grebe_view::ScopeStage;
/// # use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageError};
/// # struct Nothing;
/// # impl Stage for Nothing {
/// #     fn process(&mut self, _: &mut Inputs, _: &mut Outputs, _: &mut Context) -> Result<Outcome, StageError> {
/// #         Ok(Outcome::End)
/// #     }
/// # }
/// # let source = Nothing;
///
/// let (scope, link) = ScopeStage::new(256 << 20);
/// let mut graph = Graph::new();
/// let source = graph.add("source", source);
/// let scope = graph.add("scope", scope);
/// graph.connect(source, scope, QueueOptions::drop_oldest(64));
/// let running = graph.start()?;
/// // run_windows(vec![(link, options)]) goes here, on the main thread.
/// # drop(link);
/// running.stop()?;
/// # Ok::<(), grebe_flow::Error>(())
/// ```
#[derive(Debug)]
pub struct ScopeStage {
    feed: ScopeFeed,
}

impl ScopeStage {
    /// A scope whose history takes at most about `budget_bytes`, and the link for its front end.
    pub fn new(budget_bytes: usize) -> (ScopeStage, ScopeLink) {
        let (feed, link) = ScopeFeed::new(budget_bytes);
        (ScopeStage { feed }, link)
    }
}

impl Stage for ScopeStage {
    fn process(
        &mut self,
        input: &mut Inputs,
        _: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        self.feed.link().wake_with(|| ctx.waker());
        for _ in 0..BATCHES_PER_STEP {
            let Some(batch) = input.next() else {
                self.feed.idle();
                return Ok(Outcome::WantsInput);
            };
            self.feed.ingest(&batch)?;
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        self.feed.finish();
        Ok(())
    }
}

const BATCHES_PER_STEP: usize = 64;
