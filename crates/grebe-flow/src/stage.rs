//! What a stage is, and what it is given to work with.

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

/// What went wrong in a stage; the runtime adds the stage's name.
pub type StageError = Box<dyn std::error::Error + Send + Sync>;

/// What a stage's calls return.
pub type StageResult<T = Outcome> = Result<T, StageError>;

/// Handles samples: a source makes batches, a sink takes them, what stands between does both.
///
/// The runtime calls [`process`](Stage::process) from one thread, again and again, until it says
/// [`End`](Outcome::End), fails, or the graph is stopped; then [`finish`](Stage::finish) once.
pub trait Stage: Send {
    /// One step of at most about 100 ms: take what there is, hand on what comes of it, say what comes next.
    ///
    /// # Errors
    /// An error ends the graph, with the stage's name before the message. Bad *data* is no error: count it and go on.
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult;

    /// The last call, after the end of all inputs, after [`Outcome::End`], or when the graph is stopped: leave what was
    /// made so far good (close files, tell the peer). Not called after an error or a panic: `Drop` has that case.
    ///
    /// # Errors
    /// As for [`process`](Stage::process).
    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        let _ = (output, ctx);
        Ok(())
    }

    /// The stage's own counters, shown by name beside those the runtime keeps. Called once, before the graph starts.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// Whether a stage without inputs is fed by a graph elsewhere. Such a stage is no source of its own: a graph that is stopped goes
    /// on with it until it says [`Outcome::End`], so that what is under way still comes. Called once, before the graph starts.
    fn is_fed(&self) -> bool {
        false
    }

    /// What can be connected to it, where it is not made from a kind. Called once, before the graph starts.
    fn ports(&self) -> Ports {
        Ports::default()
    }
}

/// What a stage says of its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did something: call again.
    Produced,
    /// It can go on only when an input has a batch, or something woke it.
    WantsInput,
    /// It keeps a batch that it could not finish (for want of memory, before its time): call again, also where no more input will
    /// come. Stages that are behind it on the same thread are called first: they may hold the memory.
    Again,
    /// It is done: no more output will come.
    End,
}

/// The inputs and outputs of a stage, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// Inputs, each to be connected once. Empty: the stage of a [`Kind`](crate::Kind) is a source; any other stage takes any
    /// number of inputs, all alike.
    pub inputs: &'static [&'static str],
    /// Outputs; [`Outputs::send`] is the first. Each may lead to any number of stages, or to none. Empty: a sink.
    pub outputs: &'static [&'static str],
}

impl Ports {
    /// Of a source: one output, `out`.
    pub const SOURCE: Self = Self { inputs: &[], outputs: &["out"] };
    /// Of a processing stage: `in` and `out`.
    pub const STAGE: Self = Self { inputs: &["in"], outputs: &["out"] };
    /// Of a sink: one input, `in`.
    pub const SINK: Self = Self { inputs: &["in"], outputs: &[] };
}

impl Default for Ports {
    /// Any number of inputs, one output called `out`.
    fn default() -> Self {
        Self::SOURCE
    }
}
