//! Inputs of a stage.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use grebe_frame::Batch;

use crate::clock::LatencyMeter;
use crate::counters::{StageCounts, add};
use crate::queue::QueueReceiver;

/// Inputs of a stage.
#[derive(Debug)]
pub struct Inputs {
    ports: Vec<InPort>,
    /// First port for the next `next`, so that a busy input does not starve others.
    turn: usize,
    /// One bit per input: found empty in this step, and not ended at its start.
    dry: u64,
    open: u64,
    counts: Arc<StageCounts>,
    /// Counts of frames and samples at the start of the step.
    counted: (u64, u64),
    latency: LatencyMeter,
}

#[derive(Debug)]
pub(crate) enum InPort {
    /// From another thread.
    Queue(QueueReceiver),
    /// From a stage of the same thread.
    Inline { waiting: VecDeque<Batch>, is_ended: bool },
}

impl Inputs {
    pub(crate) fn new(ports: Vec<InPort>, counts: Arc<StageCounts>) -> Self {
        let latency = LatencyMeter::new(counts.clone());
        Self { ports, turn: 0, dry: 0, open: 0, counts, counted: (0, 0), latency }
    }

    /// Next batch of any input, round robin.
    #[allow(clippy::should_implement_trait, reason = "an iterator would end; an input may have more later")]
    pub fn next(&mut self) -> Option<Batch> {
        for _ in 0..self.ports.len() {
            let port = self.turn;
            self.turn = if port + 1 == self.ports.len() { 0 } else { port + 1 };
            if let Some(batch) = self.pop(port) {
                return Some(batch);
            }
        }
        None
    }

    /// Next batch of one input: by position in [`Ports::inputs`](crate::Ports::inputs), or in order of
    /// connecting if inputs have no names.
    pub fn pop(&mut self, port: usize) -> Option<Batch> {
        let next = match self.ports.get_mut(port)? {
            InPort::Queue(queue) => queue.pop(),
            InPort::Inline { waiting, .. } => waiting.pop_front(),
        };
        let Some(batch) = next else {
            self.dry |= 1 << port.min(63);
            return None;
        };
        add(&self.counts.frames_in, batch.len() as u64);
        add(&self.counts.samples_in, batch.samples());
        self.latency.arrived(&batch);
        Some(batch)
    }

    /// Number of inputs.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Whether every input has ended and is empty.
    pub fn is_ended(&self) -> bool {
        self.ports.iter().all(InPort::is_ended)
    }

    /// Whether this input has ended and is empty.
    pub fn has_ended(&self, port: usize) -> bool {
        self.ports.get(port).is_none_or(InPort::is_ended)
    }

    /// Starts a step, in which empty inputs are recorded.
    pub(crate) fn begin_step(&mut self) {
        let open = |mask, (at, port): (usize, &InPort)| mask | u64::from(!port.is_ended()) << at;
        self.open = self.ports.iter().take(64).enumerate().fold(0, open);
        self.dry = 0;
        let StageCounts { frames_in, samples_in, .. } = &*self.counts;
        self.counted = (frames_in.load(Ordering::Relaxed), samples_in.load(Ordering::Relaxed));
    }

    /// Reverts the counts of a failed step, because the stage refused its input.
    pub(crate) fn take_back_step(&mut self) {
        self.counts.frames_in.store(self.counted.0, Ordering::Relaxed);
        self.counts.samples_in.store(self.counted.1, Ordering::Relaxed);
    }

    /// Whether an input that the stage found empty has a batch, or one has ended since the step began. A
    /// stage that lets one input wait for another is not called again and again for the first.
    pub(crate) fn has_news(&self) -> bool {
        // A stage that read none of them wants any.
        let dry = if self.dry == 0 { u64::MAX } else { self.dry };
        self.ports.iter().take(64).enumerate().any(|(at, port)| {
            dry >> at & 1 == 1 && port.has_batch() || self.open >> at & 1 == 1 && port.is_ended()
        })
    }

    pub(crate) fn has_inline_batch(&self) -> bool {
        self.ports.iter().any(|port| matches!(port, InPort::Inline { waiting, .. } if !waiting.is_empty()))
    }

    /// Takes over the output of a stage on the same thread.
    pub(crate) fn take_over(&mut self, port: usize, from: &mut VecDeque<Batch>) {
        if let Some(InPort::Inline { waiting, .. }) = self.ports.get_mut(port) {
            waiting.append(from);
        }
    }

    pub(crate) fn end_inline(&mut self, port: usize) {
        if let Some(InPort::Inline { is_ended, .. }) = self.ports.get_mut(port) {
            *is_ended = true;
        }
    }

    pub(crate) fn close(&mut self) {
        self.ports.clear();
    }
}

impl InPort {
    fn has_batch(&self) -> bool {
        match self {
            InPort::Queue(queue) => queue.has_batch(),
            InPort::Inline { waiting, .. } => !waiting.is_empty(),
        }
    }

    fn is_ended(&self) -> bool {
        match self {
            InPort::Queue(queue) => queue.is_ended(),
            InPort::Inline { waiting, is_ended } => *is_ended && waiting.is_empty(),
        }
    }
}
