//! The stages of one thread, driven in the order of the stream.
//!
//! Most crews have one stage. Fused stages form a larger one: what a stage hands on lies in a buffer until the next is called, so
//! that a chain of cheap stages costs no queue. The single-step scheduler of tests is one crew of all stages.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::counters::{StageCounts, add};
use crate::port::{Context, Inputs, LOOK_AROUND, Outputs, Waker};
use crate::{Error, Outcome, Stage, StageError};

/// Stages that share a thread, upstream first.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) members: Vec<Member>,
    pub(crate) waker: Waker,
}

/// A stage and its ends of everything.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) stage: Box<dyn Stage>,
    pub(crate) is_source: bool,
    pub(crate) input: Inputs,
    pub(crate) output: Outputs,
    /// Where each inline output leads: a member, and a port of it.
    pub(crate) routes: Vec<(usize, usize)>,
    pub(crate) ctx: Context,
    pub(crate) counts: Arc<StageCounts>,
    pub(crate) is_ended: bool,
}

/// How a stage failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Error(StageError),
    Panic(String),
}

impl Failure {
    pub(crate) fn named(self, stage: String) -> Error {
        match self {
            Failure::Error(source) => Error::Stage { stage, source },
            Failure::Panic(message) => Error::Panic { stage, message },
        }
    }
}

impl Crew {
    /// Drives all members to their ends; the first failure, by member.
    pub(crate) fn drive(&mut self) -> Result<(), (usize, Failure)> {
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
        self.members.iter().all(|member| member.is_ended)
    }

    /// Calls every member once, and those with inline input until it is used up; whether anything was done.
    pub(crate) fn round(&mut self) -> Result<bool, (usize, Failure)> {
        let mut has_progress = false;
        for index in 0..self.members.len() {
            loop {
                let member = &mut self.members[index];
                if member.is_ended {
                    break;
                }
                let step = member.step();
                let goes_on =
                    matches!(step, Ok(Step::Produced)) && self.members[index].input.has_inline_batch();
                self.hand_over(index);
                match step {
                    Ok(Step::Produced) => has_progress = true,
                    Ok(Step::Waits) => {}
                    Ok(Step::Ended) => has_progress = true,
                    Err(failure) => {
                        // The rest ends in order: sources stop, queues drain.
                        self.members[index].ctx.flags.stop.store(true, Ordering::Release);
                        self.end(index);
                        return Err((index, failure));
                    }
                }
                if self.members[index].is_ended {
                    self.end(index);
                }
                if !goes_on {
                    break;
                }
            }
        }
        Ok(has_progress)
    }

    /// Moves what a member put into its buffers to where they lead.
    fn hand_over(&mut self, index: usize) {
        let (before, from_here) = self.members.split_at_mut(index);
        let Some((member, after)) = from_here.split_first_mut() else { return };
        debug_assert!(before.len() == index);
        for (out, &(to, port)) in member.output.inline().iter_mut().zip(&member.routes) {
            // Upstream first: routes lead on, never back.
            let Some(target) = to.checked_sub(index + 1).and_then(|to| after.get_mut(to)) else { continue };
            if target.is_ended {
                out.buffer.clear();
                out.is_closed = true;
            } else {
                target.input.take_over(port, &mut out.buffer);
            }
        }
    }

    /// A member is done: closes its ends, so that the others learn of it.
    fn end(&mut self, index: usize) {
        let member = &mut self.members[index];
        member.is_ended = true;
        member.input.close();
        member.output.close();
        for (to, port) in member.routes.clone() {
            self.members[to].input.end_inline(port);
        }
        for other in &mut self.members[..index] {
            for (out, &(to, _)) in other.output.inline().iter_mut().zip(&other.routes) {
                out.is_closed |= to == index;
            }
        }
    }

    fn wait(&self) {
        let Waker { signal, poked, .. } = &self.waker;
        let ready = || {
            poked.load(Ordering::Acquire)
                || self.members.iter().any(|member| {
                    !member.is_ended
                        && (member.input.has_news()
                            || member.ctx.is_aborted()
                            || member.is_source && member.ctx.is_stopping())
                })
        };
        signal.wait(LOOK_AROUND, ready);
        poked.store(false, Ordering::Release);
    }
}

/// What came of a step.
enum Step {
    Produced,
    Waits,
    Ended,
}

impl Member {
    fn step(&mut self) -> Result<Step, Failure> {
        catch_unwind(AssertUnwindSafe(|| self.process_or_finish()))
            .unwrap_or_else(|panic| Err(Failure::Panic(panic_message(&*panic))))
    }

    fn process_or_finish(&mut self) -> Result<Step, Failure> {
        if self.is_over() {
            return self.finish();
        }
        self.input.begin_step();
        let (began, waited_ns) = (Instant::now(), self.counts.waited_ns.load(Ordering::Relaxed));
        let outcome = self.stage.process(&mut self.input, &mut self.output, &mut self.ctx);
        let waited_ns = self.counts.waited_ns.load(Ordering::Relaxed).wrapping_sub(waited_ns);
        add(&self.counts.busy_ns, (began.elapsed().as_nanos() as u64).saturating_sub(waited_ns));
        match outcome.map_err(Failure::Error)? {
            Outcome::Produced => Ok(Step::Produced),
            Outcome::End => self.finish(),
            Outcome::WantsInput if !self.is_source && self.input.is_ended() => self.finish(),
            Outcome::WantsInput => Ok(Step::Waits),
        }
    }

    fn finish(&mut self) -> Result<Step, Failure> {
        self.is_ended = true;
        self.stage.finish(&mut self.output, &mut self.ctx).map_err(Failure::Error)?;
        Ok(Step::Ended)
    }

    fn is_over(&self) -> bool {
        self.ctx.is_aborted()
            || self.is_source && self.ctx.flags.stop.load(Ordering::Acquire)
            || self.output.is_abandoned()
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.name)
            .field("is_ended", &self.is_ended)
            .finish_non_exhaustive()
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}
