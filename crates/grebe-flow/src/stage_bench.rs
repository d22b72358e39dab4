//! A single stage without a graph.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use grebe_frame::{Batch, BatchPool};

use crate::error::Error;
use crate::graph::Graph;
use crate::queue::QueueOptions;
use crate::runtime::Stepper;
use crate::snapshot::Snapshot;
use crate::stage::{Context, Inputs, Outcome, Outputs, Stage, StageError, StageResult};

/// Feeds one stage and collects its output, for tests of stages and for work on the calling thread.
///
/// ```
/// use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageBench, StageResult};
/// use grebe_frame::{BatchPool, Header};
///
/// struct Negate;
/// impl Stage for Negate {
///     fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
///         let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
///         let mut batch = batch.try_unique().map_err(|_| "shared")?;
///         batch.update::<i16>(|_, _, samples| samples.iter_mut().for_each(|sample| *sample = -*sample))?;
///         output.send(batch.freeze(), ctx);
///         Ok(Outcome::Produced)
///     }
/// }
///
/// let mut bench = StageBench::new(Negate)?;
/// let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
/// batch.push::<i16>(&Header { channel_count: 1, block_length_samples: 2, ..Header::default() }, |_, out| out.fill(3))?;
/// let made = bench.feed(batch.freeze())?;
/// assert_eq!(made[0].frames().next().unwrap().channel::<i16>(0)?.as_ref(), [-3, -3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StageBench {
    stepper: Stepper,
    feed: Option<Sender<Batch>>,
    made: Receiver<Batch>,
}

impl StageBench {
    /// Makes a bench with this stage between a feed and a tray.
    ///
    /// # Errors
    /// The stage has several named inputs: use a [`Graph`] and its [`stepper`](Graph::stepper) instead.
    pub fn new(stage: impl Stage + 'static) -> Result<Self, Error> {
        Self::boxed(Box::new(stage))
    }

    /// As [`new`](Self::new), with the stage of a [`Kind`](crate::Kind).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn boxed(stage: Box<dyn Stage>) -> Result<Self, Error> {
        let ((feed, fed), (tray, made)) = (channel(), channel());
        let mut graph = Graph::new();
        let feeder = graph.add("feed", Feed(fed));
        let stage = graph.add_boxed("stage", stage);
        let tray = graph.add("tray", Tray(tray));
        graph.connect(feeder, stage, QueueOptions::block(2));
        graph.connect(stage, tray, QueueOptions::block(2));
        Ok(Self { stepper: graph.stepper()?, feed: Some(feed), made })
    }

    /// Feeds a batch and returns the stage's output.
    ///
    /// # Errors
    /// The stage's own error.
    pub fn feed(&mut self, batch: Batch) -> Result<Vec<Batch>, Error> {
        if let Some(feed) = &self.feed {
            // Fails only if the stage has ended, and then no output follows.
            let _ = feed.send(batch);
        }
        self.stepper.run()?;
        Ok(self.made.try_iter().collect())
    }

    /// Ends the stage's input and returns its final output.
    ///
    /// # Errors
    /// The stage's own error.
    pub fn end(&mut self) -> Result<Vec<Batch>, Error> {
        self.feed = None;
        self.stepper.run()?;
        Ok(self.made.try_iter().collect())
    }

    /// Present counters; the stage is called `stage`.
    pub fn snapshot(&self) -> Snapshot {
        self.stepper.snapshot()
    }
}

struct Feed(Receiver<Batch>);

impl Stage for Feed {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        match self.0.try_recv() {
            Ok(batch) => {
                output.send(batch, ctx);
                Ok(Outcome::Produced)
            }
            Err(TryRecvError::Empty) => Ok(Outcome::WantsInput),
            Err(TryRecvError::Disconnected) => Ok(Outcome::End),
        }
    }
}

struct Tray(Sender<Batch>);

impl Stage for Tray {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        Ok(if self.0.send(copy(&batch)?).is_ok() { Outcome::Produced } else { Outcome::End })
    }
}

/// In separate memory, so that a test that keeps the output does not starve the stage's pool.
fn copy(batch: &Batch) -> Result<Batch, StageError> {
    let bytes = batch.frames().map(|frame| frame.header().frame_bytes().next_multiple_of(64)).sum();
    let mut own = BatchPool::new(1, bytes).acquire().ok_or("a new pool has a chunk")?;
    own.describe(batch.description());
    for frame in batch.frames() {
        own.push_copy(&frame)?;
    }
    Ok(own.freeze())
}
