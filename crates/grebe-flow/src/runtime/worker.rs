//! Stages of one thread, driven in stream order.
//!
//! Most workers have one stage. Fused stages share one: a stage's output waits in a buffer until the next
//! stage is called. So a chain of cheap stages needs no queue. The single-step scheduler of tests is one
//! worker with all stages.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::handles::{Failed, Handles};
use crate::counters::add;
use crate::error::Error;
use crate::stage::{Context, Flags, Inputs, Outcome, Outputs, STEP_TIMEOUT, Stage, StageError, Waker};

/// Checked graph with its queues.
pub(crate) struct Assembly {
    pub(crate) handles: Handles,
    pub(crate) flags: Arc<Flags>,
    pub(crate) batches_in_flight: usize,
    /// One per thread.
    pub(crate) workers: Vec<Worker>,
}

/// Stages that share a thread, upstream first.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub(crate) slots: Vec<StageSlot>,
    pub(crate) waker: Waker,
    pub(crate) cpu: Option<usize>,
}

pub(crate) struct StageSlot {
    /// Position in the graph.
    pub(crate) at: usize,
    pub(crate) name: String,
    pub(crate) stage: Box<dyn Stage>,
    pub(crate) is_source: bool,
    /// A source that ends together with its external feed.
    pub(crate) is_fed: bool,
    /// Its end stops the graph.
    pub(crate) ends_graph: bool,
    pub(crate) input: Inputs,
    pub(crate) output: Outputs,
    /// Target of each inline output.
    pub(crate) routes: Vec<Route>,
    pub(crate) ctx: Context,
    pub(crate) is_ended: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    /// Position of the stage among its worker's slots.
    pub(crate) slot: usize,
    pub(crate) port: usize,
}

impl Worker {
    pub(crate) fn stages(&self) -> Vec<usize> {
        self.slots.iter().map(|slot| slot.at).collect()
    }

    /// Drives all stages to their ends.
    ///
    /// # Errors
    /// The first stage that failed. The others have ended in order.
    pub(crate) fn drive(&mut self) -> Result<(), Failed> {
        let mut failed = None;
        while !self.is_ended() {
            match self.round() {
                Ok(true) => {}
                Ok(false) if self.is_ended() => {}
                Ok(false) => self.wait(),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.slots.iter().all(|slot| slot.is_ended)
    }

    /// Calls every stage once, and stages with inline input until it is used up. Returns whether anything was
    /// done.
    pub(crate) fn round(&mut self) -> Result<bool, Failed> {
        let mut has_progress = false;
        for at in 0..self.slots.len() {
            while !self.slots[at].is_ended {
                let step = self.slots[at].step();
                let has_more = matches!(step, Ok(Step::Produced)) && self.slots[at].input.has_inline_batch();
                self.hand_over(at);
                match step {
                    Ok(Step::Produced | Step::Ended) => has_progress = true,
                    Ok(Step::Waits) => {}
                    Err(error) => {
                        // The rest ends in order: sources stop, queues drain.
                        self.slots[at].ctx.flags.stop.store(true, Ordering::Release);
                        // It is dropped instead of finished, which may take as long.
                        self.slots[at].ctx.counts.is_finishing.store(true, Ordering::Release);
                        self.end(at);
                        return Err(Failed { at: self.slots[at].at, error });
                    }
                }
                if self.slots[at].is_ended {
                    self.end(at);
                }
                if !has_more {
                    break;
                }
            }
        }
        Ok(has_progress)
    }

    /// Moves a stage's buffered output to its targets.
    fn hand_over(&mut self, at: usize) {
        let (_, from_here) = self.slots.split_at_mut(at);
        let Some((slot, after)) = from_here.split_first_mut() else { return };
        for (out, route) in slot.output.inline().iter_mut().zip(&slot.routes) {
            // Routes always lead downstream.
            let target = route.slot.checked_sub(at + 1).and_then(|position| after.get_mut(position));
            let Some(target) = target else { continue };
            if target.is_ended {
                out.buffer.clear();
                out.is_closed = true;
            } else {
                target.input.take_over(route.port, &mut out.buffer);
            }
        }
    }

    /// Closes the ends of a finished stage, so that its neighbours notice.
    fn end(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.is_ended = true;
        if slot.ends_graph {
            slot.ctx.flags.stop.store(true, Ordering::Release);
        }
        slot.input.close();
        slot.output.close();
        for route in slot.routes.clone() {
            self.slots[route.slot].input.end_inline(route.port);
        }
        for before in &mut self.slots[..at] {
            for (out, route) in before.output.inline().iter_mut().zip(&before.routes) {
                out.is_closed |= route.slot == at;
            }
        }
    }

    fn wait(&self) {
        let Waker { signal, poked, .. } = &self.waker;
        let is_due = |slot: &StageSlot| slot.input.has_news() || slot.ctx.is_aborted() || slot.is_stopped();
        let is_ready =
            || poked.load(Ordering::Acquire) || self.slots.iter().any(|slot| !slot.is_ended && is_due(slot));
        signal.wait(STEP_TIMEOUT, is_ready);
        poked.store(false, Ordering::Release);
    }
}

enum Step {
    Produced,
    Waits,
    Ended,
}

impl StageSlot {
    fn step(&mut self) -> Result<Step, Error> {
        match catch_unwind(AssertUnwindSafe(|| self.process_or_finish())) {
            Ok(Ok(step)) => Ok(step),
            Ok(Err(source)) => Err(Error::Stage { stage: self.name.clone(), source }),
            Err(panic) => Err(Error::Panic { stage: self.name.clone(), message: panic_message(&*panic) }),
        }
    }

    fn process_or_finish(&mut self) -> Result<Step, StageError> {
        if self.is_over() {
            return self.finish();
        }
        self.input.begin_step();
        let (began, waited_ns) = (Instant::now(), self.ctx.counts.waited_ns.load(Ordering::Relaxed));
        let outcome = self.stage.process(&mut self.input, &mut self.output, &mut self.ctx);
        let waited_ns = self.ctx.counts.waited_ns.load(Ordering::Relaxed).wrapping_sub(waited_ns);
        add(&self.ctx.counts.busy_ns, (began.elapsed().as_nanos() as u64).saturating_sub(waited_ns));
        let outcome = outcome.inspect_err(|_| self.input.take_back_step())?;
        match outcome {
            Outcome::Produced => Ok(Step::Produced),
            Outcome::End => self.finish(),
            Outcome::WantsInput if !self.is_source && self.input.is_ended() => self.finish(),
            Outcome::Again if self.is_source || self.input.is_ended() => Ok(Step::Produced),
            Outcome::Again | Outcome::WantsInput => Ok(Step::Waits),
        }
    }

    fn finish(&mut self) -> Result<Step, StageError> {
        self.is_ended = true;
        self.ctx.counts.is_finishing.store(true, Ordering::Release);
        let finished = self.stage.finish(&mut self.output, &mut self.ctx);
        self.ctx.counts.is_finishing.store(false, Ordering::Release);
        finished?;
        self.ctx.pass_on_end();
        Ok(Step::Ended)
    }

    fn is_over(&self) -> bool {
        self.ctx.is_aborted() || self.is_stopped() || self.output.is_abandoned()
    }

    fn is_stopped(&self) -> bool {
        self.is_source && !self.is_fed && self.ctx.flags.stop.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for StageSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageSlot")
            .field("name", &self.name)
            .field("is_ended", &self.is_ended)
            .finish_non_exhaustive()
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}
