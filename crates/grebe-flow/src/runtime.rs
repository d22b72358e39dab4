//! One thread a stage, from start to the last call of `finish`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::counters::{Counters, QueueSnapshot, Snapshot, StageCounts, add};
use crate::graph::Edge;
use crate::port::{Context, Flags, Inputs, LOOK_AROUND, Outputs, Waker};
use crate::queue::{QueueCounts, QueueReceiver, QueueSender};
use crate::{Error, Outcome, Stage, StageError};

/// A graph at work. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    stages: Vec<Placed>,
    queues: Vec<Edge>,
    flags: Arc<Flags>,
    ended: Arc<Ended>,
}

/// A stage and its ends of the queues, before its thread starts.
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) stage: Box<dyn Stage>,
    pub(crate) waker: Waker,
    pub(crate) inputs: Vec<QueueReceiver>,
    pub(crate) outputs: Vec<QueueSender>,
}

impl Running {
    pub(crate) fn start(
        seats: Vec<Seat>,
        queues: Vec<Edge>,
        batches_in_flight: usize,
    ) -> Result<Self, Error> {
        let mut running = Self {
            stages: Vec::new(),
            queues,
            flags: Arc::default(),
            ended: Arc::new(Ended::new(seats.len())),
        };
        for (index, seat) in seats.into_iter().enumerate() {
            let counts = Arc::new(StageCounts::default());
            running.stages.push(Placed {
                name: seat.name.clone(),
                waker: seat.waker.clone(),
                counts: counts.clone(),
                own: seat.stage.counters(),
            });
            let ctx = Context { waker: seat.waker, flags: running.flags.clone(), batches_in_flight };
            let mut driver = Driver {
                name: seat.name.clone(),
                is_source: seat.inputs.is_empty(),
                stage: seat.stage,
                input: Inputs::new(seat.inputs, counts.clone()),
                output: Outputs::new(seat.outputs, counts.clone()),
                ctx,
                counts,
            };
            let ended = running.ended.clone();
            thread::Builder::new()
                .name(seat.name.clone())
                .spawn(move || {
                    let result = driver.drive();
                    // The stage, its queues and its chunks go before its end is told: who waits finds everything free.
                    drop(driver);
                    ended.tell(index, result);
                })
                .map_err(|source| Error::Thread { stage: seat.name, source })?;
        }
        Ok(running)
    }

    /// What has been counted until now. Costs the data path nothing.
    pub fn snapshot(&self) -> Snapshot {
        snapshot(&self.stages, &self.queues)
    }

    /// A reader of the counters that may outlive this handle's owner's attention: for a HUD, a progress line, a server.
    pub fn observer(&self) -> impl Fn() -> Snapshot + Send + Sync + 'static {
        let (stages, queues) = (self.stages.clone(), self.queues.clone());
        move || snapshot(&stages, &queues)
    }

    /// Asks the sources to end; what is queued is drained. Returns at once.
    pub fn request_stop(&self) {
        self.flags.stop.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Whether every stage has ended.
    pub fn is_ended(&self) -> bool {
        self.ended.is_all()
    }

    /// Waits until every stage has ended, or `timeout` has passed; whether they have.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.ended.wait(timeout)
    }

    /// Waits until every stage has ended by itself.
    ///
    /// # Errors
    /// The first error of a stage.
    pub fn wait(self) -> Result<Snapshot, Error> {
        while !self.ended.wait(Duration::from_secs(3600)) {}
        self.close()
    }

    /// Stops: sources end, what is queued is drained for up to a second, then everybody ends at the next step.
    ///
    /// # Errors
    /// The first error of a stage, or the name of one that did not come back (its thread is left behind).
    pub fn stop(self) -> Result<Snapshot, Error> {
        self.request_stop();
        if !self.ended.wait(DRAIN) {
            self.flags.abort.store(true, Ordering::Release);
            self.wake_all();
            self.ended.wait(ABORT);
        }
        self.close()
    }

    fn close(&self) -> Result<Snapshot, Error> {
        let snapshot = self.snapshot();
        match self.ended.take_error() {
            Some((index, Failure::Error(source))) => Err(Error::Stage { stage: self.name(index), source }),
            Some((index, Failure::Panic(message))) => Err(Error::Panic { stage: self.name(index), message }),
            None => match self.ended.missing() {
                Some(index) => Err(Error::Overstayed(self.name(index), DRAIN + ABORT)),
                None => Ok(snapshot),
            },
        }
    }

    fn name(&self, index: usize) -> String {
        self.stages[index].name.clone()
    }

    fn wake_all(&self) {
        self.stages.iter().for_each(|stage| stage.waker.wake());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended.is_all() {
            self.flags.stop.store(true, Ordering::Release);
            self.flags.abort.store(true, Ordering::Release);
            self.wake_all();
        }
    }
}

/// What is left of a stage for those who watch it.
#[derive(Debug, Clone)]
struct Placed {
    name: String,
    waker: Waker,
    counts: Arc<StageCounts>,
    own: Option<Counters>,
}

fn snapshot(stages: &[Placed], queues: &[Edge]) -> Snapshot {
    let name = |index: usize| stages.get(index).map(|stage| stage.name.clone()).unwrap_or_default();
    Snapshot {
        stages: stages.iter().map(|stage| stage.counts.snapshot(&stage.name, stage.own.as_ref())).collect(),
        queues: queues
            .iter()
            .map(|(from, to, policy, counts)| {
                let gone =
                    QueueCounts::read(&counts.taken_batches.0) + QueueCounts::read(&counts.evicted_batches);
                QueueSnapshot {
                    from: name(*from),
                    to: name(*to),
                    policy: *policy,
                    capacity_batches: counts.capacity_batches,
                    queued_batches: QueueCounts::read(&counts.batches).saturating_sub(gone) as usize,
                    frames: QueueCounts::read(&counts.frames),
                    dropped_frames: QueueCounts::read(&counts.dropped_frames),
                    dropped_samples: QueueCounts::read(&counts.dropped_samples),
                }
            })
            .collect(),
    }
}

/// Drives one stage on its thread.
struct Driver {
    name: String,
    is_source: bool,
    stage: Box<dyn Stage>,
    input: Inputs,
    output: Outputs,
    ctx: Context,
    counts: Arc<StageCounts>,
}

impl Driver {
    fn drive(&mut self) -> Result<(), Failure> {
        let result = catch_unwind(AssertUnwindSafe(|| self.run()))
            .unwrap_or_else(|panic| Err(Failure::Panic(panic_message(&*panic))));
        if result.is_err() {
            // The rest of the graph ends in order: sources stop, queues drain.
            self.ctx.flags.stop.store(true, Ordering::Release);
        }
        result
    }

    fn run(&mut self) -> Result<(), Failure> {
        while !self.is_over() {
            let began = Instant::now();
            let outcome = self.stage.process(&mut self.input, &mut self.output, &mut self.ctx);
            add(&self.counts.busy_ns, began.elapsed().as_nanos() as u64);
            match outcome.map_err(Failure::Error)? {
                Outcome::Produced => {}
                Outcome::End => break,
                Outcome::WantsInput if !self.is_source && self.input.is_ended() => break,
                Outcome::WantsInput => self.wait_for_input(),
            }
        }
        self.stage.finish(&mut self.output, &mut self.ctx).map_err(Failure::Error)
    }

    fn is_over(&self) -> bool {
        let flags = &self.ctx.flags;
        flags.abort.load(Ordering::Acquire)
            || self.is_source && flags.stop.load(Ordering::Acquire)
            || self.output.is_abandoned()
    }

    fn wait_for_input(&self) {
        let Waker { signal, poked } = &self.ctx.waker;
        let ready = || {
            self.input.has_batch()
                || !self.is_source && self.input.is_ended()
                || poked.load(Ordering::Acquire)
                || self.ctx.flags.abort.load(Ordering::Acquire)
        };
        signal.wait(LOOK_AROUND, ready);
        poked.store(false, Ordering::Release);
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("name", &self.name).finish_non_exhaustive()
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

#[derive(Debug)]
enum Failure {
    Error(StageError),
    Panic(String),
}

/// Which stages have ended, and how.
#[derive(Debug)]
struct Ended {
    results: Mutex<Vec<Option<Result<(), Failure>>>>,
    changed: Condvar,
}

impl Ended {
    fn new(stages: usize) -> Self {
        Self { results: Mutex::new((0..stages).map(|_| None).collect()), changed: Condvar::new() }
    }

    fn tell(&self, index: usize, result: Result<(), Failure>) {
        self.lock()[index] = Some(result);
        self.changed.notify_all();
    }

    fn is_all(&self) -> bool {
        self.lock().iter().all(Option::is_some)
    }

    fn wait(&self, timeout: Duration) -> bool {
        let unfinished = |results: &mut Vec<Option<_>>| results.iter().any(Option::is_none);
        match self.changed.wait_timeout_while(self.lock(), timeout, unfinished) {
            Ok((results, _)) => results.iter().all(Option::is_some),
            Err(_) => false,
        }
    }

    fn missing(&self) -> Option<usize> {
        self.lock().iter().position(Option::is_none)
    }

    fn take_error(&self) -> Option<(usize, Failure)> {
        self.lock().iter_mut().enumerate().find_map(|(index, result)| match result.take() {
            Some(Err(failure)) => Some((index, failure)),
            other => {
                *result = other;
                None
            }
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Option<Result<(), Failure>>>> {
        // Written in one assignment: a panic cannot leave it half done.
        self.results.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

const DRAIN: Duration = Duration::from_millis(700);
const ABORT: Duration = Duration::from_millis(250);
