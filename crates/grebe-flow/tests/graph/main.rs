//! Tests graphs from start to end.

mod ends;
mod ports;
mod queues;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use grebe_flow::{
    Context, Error, Graph, Inputs, Outcome, Outputs, Ports, QueueOptions, Stage, StageError, StageResult,
};
use grebe_frame::{Batch, BatchPool, Header};

/// Makes `frames` frames of 8 samples, or infinitely many.
struct Ramp {
    pool: Option<BatchPool>,
    sequence: u64,
    frames: u64,
}

fn ramp(frames: u64) -> Ramp {
    Ramp { pool: None, sequence: 0, frames }
}

impl Stage for Ramp {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.sequence == self.frames {
            return Ok(Outcome::End);
        }
        let pool = self.pool.get_or_insert_with(|| {
            let mut pool = BatchPool::new(ctx.batches_in_flight(), 4096);
            pool.wake_on_return(ctx.signal().clone());
            pool
        });
        let Some(mut batch) = ctx.acquire(pool) else { return Ok(Outcome::Produced) };
        let header = Header {
            sequence: self.sequence,
            channel_count: 1,
            block_length_samples: 8,
            first_sample_index: self.sequence * 8,
            ..Header::default()
        };
        batch.push::<i16>(&header, |_, samples| samples.fill(self.sequence as i16))?;
        output.send(batch.freeze(), ctx);
        self.sequence += 1;
        Ok(Outcome::Produced)
    }
}

/// Passes sequence numbers to the test; may be slow, fail, panic or hang.
struct Probe {
    out: Sender<u64>,
    on_frame: Box<dyn FnMut(u64) -> Result<(), StageError> + Send>,
    finished: Option<Sender<u64>>,
}

fn probe(on_frame: impl FnMut(u64) -> Result<(), StageError> + Send + 'static) -> (Probe, Receiver<u64>) {
    let (out, rx) = mpsc::channel();
    (Probe { out, on_frame: Box::new(on_frame), finished: None }, rx)
}

impl Stage for Probe {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            let sequence = frame.header().sequence;
            (self.on_frame)(sequence)?;
            self.out.send(sequence)?;
        }
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        if let Some(finished) = &self.finished {
            finished.send(u64::MAX)?;
        }
        Ok(())
    }
}
