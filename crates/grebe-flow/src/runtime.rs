//! Threads, from start to the last call of `finish`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::built::{Built, Link, Placed, snapshot};
use crate::counters::{Snapshot, StageCounts};
use crate::crew::{Crew, Failure, Member};
use crate::graph::Node;
use crate::port::{Context, Flags, InPort, Inputs, Newcomers, Outputs, Waker};
use crate::queue::{QueueCounts, queue};
use crate::slice::short_slices;
use crate::{Error, QueueOptions, Stage};

/// A graph at work. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    placed: Vec<Placed>,
    links: Vec<Link>,
    flags: Arc<Flags>,
    batches_in_flight: usize,
    ended: Arc<Ended>,
}

/// A consumer that was attached while the graph runs. Dropping it detaches the consumer.
#[derive(Debug)]
pub struct Attached {
    name: String,
    waker: Waker,
    detached: Arc<AtomicBool>,
    counts: Arc<QueueCounts>,
    ended: Arc<Ended>,
}

impl Running {
    pub(crate) fn start(built: Built) -> Result<Self, Error> {
        let running = Self {
            ended: Arc::new(Ended::new(built.placed.len())),
            placed: built.placed,
            links: built.links,
            flags: built.flags,
            batches_in_flight: built.batches_in_flight,
        };
        for crew in built.crews {
            let (ended, stages, cpu) = (running.ended.clone(), crew.stages, crew.cpu);
            spawn(crew.crew, cpu, move |result| ended.tell(&stages, result))?;
        }
        Ok(running)
    }

    /// What has been counted until now. Costs the data path nothing.
    pub fn snapshot(&self) -> Snapshot {
        snapshot(&self.placed, &self.links)
    }

    /// A reader of the counters that may outlive this handle's owner's attention: for a HUD, a progress line, a server.
    pub fn observer(&self) -> impl Fn() -> Snapshot + Send + Sync + 'static {
        let (placed, links) = (self.placed.clone(), self.links.clone());
        move || snapshot(&placed, &links)
    }

    /// Gives a stage that was [opened](crate::Graph::open) one more consumer, on a thread of its own. The stage does not stop
    /// for it, and neither do its other consumers; the new one sees what is produced from now on.
    ///
    /// # Errors
    /// The stage was not opened, the policy is `block` (a consumer that comes and goes must not hold up the others), or the
    /// system gave no thread.
    pub fn attach(
        &self,
        to: Node,
        name: impl Into<String>,
        stage: impl Stage + 'static,
        options: QueueOptions,
    ) -> Result<Attached, Error> {
        let (name, producer) = (name.into(), &self.placed[to.0]);
        if !producer.newcomers.is_open() || options.policy == crate::Policy::Block {
            return Err(Error::NotOpen(producer.name.clone()));
        }
        let waker = Waker::new();
        let (tx, rx) = queue(options, producer.waker.step.clone(), waker.signal.clone());
        let (counts, stage_counts) = (tx.counts(), Arc::new(StageCounts::default()));
        let detached = Arc::new(AtomicBool::new(false));
        let member = Member {
            name: name.clone(),
            stage: Box::new(stage),
            is_source: false,
            input: Inputs::new(vec![InPort::Queue(rx)], stage_counts.clone()),
            output: Outputs::new(Vec::new(), Vec::new(), Newcomers::open(false), stage_counts.clone()),
            routes: Vec::new(),
            ctx: Context {
                waker: waker.clone(),
                flags: self.flags.clone(),
                detached: detached.clone(),
                batches_in_flight: self.batches_in_flight,
                counts: stage_counts.clone(),
            },
            counts: stage_counts,
            is_ended: false,
        };
        let ended = Arc::new(Ended::new(1));
        let told = ended.clone();
        spawn(Crew { members: vec![member], waker: waker.clone() }, None, move |result| {
            told.tell(&[0], result)
        })?;
        producer.newcomers.push(tx);
        Ok(Attached { name, waker, detached, counts, ended })
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

    /// Stops: sources end, what is queued is drained for up to 0.7 s, then everybody ends at the next step.
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
        let name = |index: usize| self.placed[index].name.clone();
        match self.ended.take_failure() {
            Some((index, failure)) => Err(failure.named(name(index))),
            None => match self.ended.missing() {
                Some(index) => Err(Error::Overstayed(name(index), DRAIN + ABORT)),
                None => Ok(snapshot),
            },
        }
    }

    fn wake_all(&self) {
        self.placed.iter().for_each(|stage| stage.waker.wake());
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

impl Attached {
    /// Frames that its queue has taken, and those it dropped.
    pub fn counts(&self) -> (u64, u64) {
        (QueueCounts::read(&self.counts.frames), QueueCounts::read(&self.counts.dropped_frames))
    }

    /// Ends the consumer: its `finish` is called, its queue is given up, the producer goes on.
    ///
    /// # Errors
    /// The consumer's own error, or that it did not come back within a second (its thread is left behind).
    pub fn detach(self) -> Result<(), Error> {
        self.leave();
        self.ended.wait(DRAIN + ABORT);
        match self.ended.take_failure() {
            Some((_, failure)) => Err(failure.named(self.name.clone())),
            None if self.ended.is_all() => Ok(()),
            None => Err(Error::Overstayed(self.name.clone(), DRAIN + ABORT)),
        }
    }

    fn leave(&self) {
        self.detached.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.leave();
    }
}

type CrewResult = Result<(), (usize, Failure)>;

fn spawn(
    mut crew: Crew,
    cpu: Option<usize>,
    tell: impl FnOnce(CrewResult) + Send + 'static,
) -> Result<(), Error> {
    let name = crew.members.first().map(|member| member.name.clone()).unwrap_or_default();
    let thread = thread::Builder::new().name(name.clone()).spawn(move || {
        if let Some(cpu) = cpu {
            pin(cpu);
        }
        // Where it is not granted, threads wait longer for each other.
        short_slices();
        let result = crew.drive();
        // The stages, their queues and their chunks go before the end is told: who waits finds everything free.
        drop(crew);
        tell(result);
    });
    thread.map(drop).map_err(|source| Error::Thread { stage: name, source })
}

/// A processor that is not there leaves the thread where it is.
#[cfg(target_os = "linux")]
fn pin(cpu: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    if cpu < CpuSet::MAX_CPU {
        let mut set = CpuSet::new();
        set.set(cpu);
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

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

    /// A crew has ended: its members are these stages.
    fn tell(&self, stages: &[usize], result: CrewResult) {
        let mut results = self.lock();
        for &stage in stages {
            results[stage] = Some(Ok(()));
        }
        if let Err((member, failure)) = result {
            results[stages[member]] = Some(Err(failure));
        }
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

    fn take_failure(&self) -> Option<(usize, Failure)> {
        self.lock().iter_mut().enumerate().find_map(|(index, result)| match result.take() {
            Some(Err(failure)) => Some((index, failure)),
            other => {
                *result = other;
                None
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Result<(), Failure>>>> {
        // Written in one assignment a stage: a panic cannot leave it half done.
        self.results.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

const DRAIN: Duration = Duration::from_millis(700);
const ABORT: Duration = Duration::from_millis(250);
