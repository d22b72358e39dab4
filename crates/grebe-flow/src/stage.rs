//! Stages, and their interface to the runtime.

mod context;
mod inputs;
mod outputs;
mod workspace;

pub use context::{Context, Waker};
pub(crate) use context::{Flags, STEP_TIMEOUT};
pub(crate) use inputs::InPort;
pub use inputs::Inputs;
pub use outputs::Outputs;
pub(crate) use outputs::{InlineOut, Newcomers, deliver};
pub use workspace::{Described, Rewriter, Workspace};

use crate::counters::Counters;

/// Error of a stage; the runtime adds the stage's name.
pub type StageError = Box<dyn std::error::Error + Send + Sync>;

/// Result of a stage's calls.
pub type StageResult<T = Outcome> = Result<T, StageError>;

/// Handles samples: a source makes batches, a sink takes them, other stages do both.
///
/// The runtime calls [`process`](Stage::process) repeatedly from one thread, until it returns
/// [`End`](Outcome::End), fails, or the graph is stopped. Then it calls [`finish`](Stage::finish) once.
pub trait Stage: Send {
    /// One step of at most about 100 ms: takes available input, sends output, and returns what should happen
    /// next.
    ///
    /// # Errors
    /// An error ends the graph, with the stage's name before the message. Bad *data* is not an error: count
    /// it and continue.
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult;

    /// Last call, after the end of all inputs, after [`Outcome::End`], or when the graph is stopped. Complete
    /// the results so far (close files, inform the peer). Not called after an error or a panic; `Drop`
    /// handles these.
    ///
    /// # Errors
    /// Those of [`process`](Stage::process).
    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        let _ = (output, ctx);
        Ok(())
    }

    /// The stage's own counters, shown beside those of the runtime. Called once, before the start.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// Whether an external graph feeds this stage without inputs. When the graph is stopped, such a stage
    /// continues until it returns [`Outcome::End`], so that data in flight still arrives. Called once, before
    /// the start.
    fn is_fed(&self) -> bool {
        false
    }

    /// Ports of a stage that is not made from a kind. Called once, before the start.
    fn ports(&self) -> Ports {
        Ports::default()
    }
}

/// Result of a stage's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Progress: call again.
    Produced,
    /// No progress until an input has a batch, or a wake-up.
    WantsInput,
    /// It keeps a batch that it could not finish (for lack of memory, or before its time): call again, even
    /// without more input. Later stages on the same thread are called first, because they may hold the
    /// memory.
    Again,
    /// Done: no more output follows.
    End,
}

/// Inputs and outputs of a stage, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// Inputs, each with one connection. Empty: the stage of a [`Kind`](crate::Kind) is a source; any other
    /// stage takes any number of equal inputs.
    pub inputs: &'static [&'static str],
    /// Outputs; [`Outputs::send`] uses the first. Each may lead to any number of stages, or to none. Empty: a
    /// sink.
    pub outputs: &'static [&'static str],
}

impl Ports {
    /// Ports of a source: one output, `out`.
    pub const SOURCE: Self = Self { inputs: &[], outputs: &["out"] };
    /// Ports of a processing stage: `in` and `out`.
    pub const STAGE: Self = Self { inputs: &["in"], outputs: &["out"] };
    /// Ports of a sink: one input, `in`.
    pub const SINK: Self = Self { inputs: &["in"], outputs: &[] };
}

impl Default for Ports {
    /// Any number of inputs, one output called `out`.
    fn default() -> Self {
        Self::SOURCE
    }
}
