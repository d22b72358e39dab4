//! The source of a graph whose batches Python makes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grebe_flow::{
    Context, Inputs, Outcome, Outputs, Ports, QueueOptions, QueueReceiver, QueueSender, Stage, StageResult,
    queue,
};
use grebe_frame::Header;
use grebe_ring::Signal;

/// Hands on what Python sends, and ends where that end of the queue is gone.
pub(crate) struct Feed {
    queue: QueueReceiver,
    signal: Arc<Signal>,
    end: End,
}

/// Where the stream ends, said before the queue is closed.
#[derive(Clone, Default)]
pub(crate) struct End(Arc<Mutex<Option<Header>>>);

impl End {
    pub(crate) fn set(&self, end: Header) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    fn take(&self) -> Option<Header> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The stage, and the end of its queue that Python fills, which waits on `signal`.
pub(crate) fn feed(options: QueueOptions, signal: Arc<Signal>) -> (QueueSender, Feed, End) {
    let own = Arc::new(Signal::new());
    let (tx, rx) = queue(options, signal, own.clone());
    let end = End::default();
    (tx, Feed { queue: rx, signal: own, end: end.clone() }, end)
}

impl Stage for Feed {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if let Some(batch) = self.queue.pop() {
            output.send(batch, ctx);
            return Ok(Outcome::Produced);
        }
        if self.queue.is_ended() {
            return Ok(Outcome::End);
        }
        let queue = &self.queue;
        ctx.waiting(|| self.signal.wait(STEP, || queue.has_batch() || queue.is_ended()));
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.end.take().into_iter().for_each(|end| ctx.set_end_of_stream(end));
        Ok(())
    }

    fn ports(&self) -> Ports {
        Ports::SOURCE
    }
}

/// As long as a step may take.
const STEP: Duration = Duration::from_millis(100);
