//! Runs in turns: shared memory and its baselines see the same minutes of the machine. Each consumer is a process of
//! its own.

use std::time::Duration;

use grebe_connection::Cancel;
use tempfile::TempDir;

use super::consume::{connect, lent, read_all};
#[cfg(unix)]
use super::options::STREAM;
use super::options::{Options, Other, Part, Scenario, ShmTask, Technique};
use super::produce::{Havoc, Lent, Written};
use super::{goals, graphs};
use crate::error::{Error, Result};
use crate::limit::{self, Handling};
use crate::peer::{self, Peer};
use crate::row::{Progress, Tell};
use crate::runs::Runs;
use crate::stream::{
    Checker, FrameSender, Made, Maker, Plan, RunOf, Seen, Stream, StreamRun, Work, measured,
};
use crate::{system, udp};

/// Measures everything that the options name.
///
/// # Errors
/// Where a name is unknown, a frame does not fit its chunk, or a process or the stream fails.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    // As each consumer does, and each thread of a graph.
    grebe_flow::short_slices();
    for scenario in Scenario::choose(&options.parts, &options.scenario)? {
        tell(Progress::Doing(scenario.stream.label));
        let techniques = scenario.techniques(!options.no_baseline);
        let mut kinds: Vec<Kind> = techniques.iter().map(|&technique| Kind::Ours(technique)).collect();
        if scenario.part == Part::Shm && !scenario.has_faults() {
            kinds.extend(options.others.iter().map(|other| Kind::Other(other.as_ref())));
        }
        kinds.push(Kind::Limit);
        let once = |kind: &Kind| OneRun { options, scenario }.measure(kind);
        let mut runs = options.machine.medians(options.runs.repeats, &kinds, once)?;
        if let Some((first, others)) = runs.split_first_mut() {
            match scenario.part {
                Part::Ingress => others.iter_mut().for_each(|other| other.compare_latency(first)),
                Part::Shm | Part::Pipe => others.iter().for_each(|other| first.compare(other)),
            }
        }
        let title = match scenario.part {
            Part::Shm => "Shared memory between processes, every frame checked",
            Part::Pipe => "A pipe between processes, every frame checked",
            Part::Ingress => "The ways into a program, every frame checked",
        };
        runs.iter().for_each(|run| tell(Progress::Row(&goals::row(title, run))));
    }
    Ok(())
}

/// Runs a consumer as a process: it reports readiness if required, and its counts after the run.
pub(crate) fn peer(task: &ShmTask, other: Option<&dyn Other>) -> Result<()> {
    grebe_flow::short_slices();
    if task.core.is_some() {
        system::stay_on(task.core);
    }
    if !matches!(task.technique, Technique::Pipe | Technique::PlainPipe) {
        peer::end_with_input();
    }
    if task.in_graph {
        return peer::say(&graphs::consume(task)?);
    }
    let mut checker = Checker::new(task.plan.format, task.plan.channels, task.plan.block, task.work)?;
    match task.technique {
        Technique::Shm => lent(task, &mut checker)?,
        Technique::UnixStream => read_all(connect(task)?, task, &mut checker)?,
        Technique::Pipe | Technique::PlainPipe => {
            // Reports that it is ready, because the preparation takes time.
            peer::say(&())?;
            read_all(peer::stdin_unbuffered()?, task, &mut checker)?;
        }
        Technique::Other => {
            let other = other.ok_or_else(|| Error::peer("consumer", "it knows no other program"))?;
            other.consume(&task.for_other(), &mut |chunk| {
                checker.frames(chunk, Checker::now_ns());
                checker.is_ended()
            })?;
        }
        Technique::Udp | Technique::Embedded => {
            return Err(Error::peer("consumer", "this technique has no consumer of its own"));
        }
    }
    peer::say(&checker.finish())
}

/// A technique, in turns with the others.
enum Kind<'a> {
    Ours(Technique),
    Other(&'a dyn Other),
    Limit,
}

/// A scenario that is run once.
#[derive(Clone, Copy)]
struct OneRun<'a> {
    options: &'a Options,
    scenario: Scenario,
}

impl OneRun<'_> {
    fn measure(self, kind: &Kind) -> Result<StreamRun> {
        let made = tempfile::Builder::new().prefix("grebe-bench-").tempdir();
        let room = made.map_err(Error::io("make a directory for sockets"))?;
        match *kind {
            Kind::Other(other) => {
                let task = self.task(Technique::Other, &room)?;
                let mut sender = other.producer(&task.for_other())?;
                let consumers = self.start_all(&task)?;
                let run = self.measured(&task, || produced(&task, sender.as_mut(), consumers))?;
                Ok(StreamRun { technique: other.name().to_owned(), ..run })
            }
            Kind::Limit => {
                let task = self.task(Technique::Shm, &room)?;
                let handling =
                    if self.scenario.part == Part::Pipe { Handling::Copy } else { Handling::HandOff };
                let Plan { block, duration, .. } = task.plan;
                limit::run(self.scenario.stream, block, duration, self.scenario.consumers, handling)
            }
            Kind::Ours(Technique::Udp) if self.scenario.part == Part::Shm => self.over_udp(),
            Kind::Ours(technique) => {
                let task = self.task(technique, &room)?;
                match technique {
                    _ if task.in_graph => self.into_graph(&task),
                    Technique::Shm => self.lend(&task),
                    Technique::UnixStream => self.through_socket(&task),
                    _ => self.through_pipe(&task),
                }
            }
        }
    }

    fn task(self, technique: Technique, room: &TempDir) -> Result<ShmTask> {
        let (options, Stream { format, channels, target_msps, .. }) = (self.options, self.scenario.stream);
        let mut plan = Plan {
            format,
            channels,
            block: self.scenario.stream.block_for(options.frame_size, 32)?,
            target_msps,
            duration: options.runs.duration,
            // Longer beside faults, so that each batch is as many frames as a chunk holds.
            tick: if self.scenario.has_faults() { Duration::from_micros(500) } else { options.tick },
            late_max: Duration::from_millis(100),
            burst_max: Some(Duration::from_millis(1)),
            frames_max: 1,
        };
        let frame_bytes = plan.frame_bytes();
        if frame_bytes > options.chunk_size {
            return Err(Error::Usage(format!("a frame of {frame_bytes} bytes does not fit a chunk")));
        }
        if technique != Technique::PlainPipe {
            plan.frames_max = options.chunk_size / frame_bytes;
        }
        Ok(ShmTask {
            plan,
            technique,
            in_graph: self.scenario.part == Part::Ingress,
            work: Work::MinMax,
            queue_batches: if target_msps.is_some() { options.queue } else { options.free_queue },
            chunk_bytes: options.chunk_size,
            core: None,
            directory: room.path().to_owned(),
        })
    }

    fn lend(self, task: &ShmTask) -> Result<StreamRun> {
        let has_faults = self.scenario.has_faults();
        let count = self.scenario.consumers.len() + if has_faults { 2 } else { 0 };
        let mut lent = Lent::open(self.options, task, count)?;
        let footprint_bytes = lent.footprint_bytes();
        let consumers = self.start_all(task)?;
        if has_faults {
            lent.havoc = Some(Havoc::new(task.plan.duration, self.start(task)?, self.start(task)?));
        }
        let run = self.measured(task, || {
            lent.wait_for(count)?;
            produced(task, &mut lent, consumers)
        })?;
        Ok(StreamRun { footprint_bytes, faults: lent.faults(self.options), ..run })
    }

    #[cfg(unix)]
    fn through_socket(self, task: &ShmTask) -> Result<StreamRun> {
        let listener = std::os::unix::net::UnixListener::bind(task.directory.join(STREAM))
            .map_err(Error::io("open a socket"))?;
        let consumers = self.start_all(task)?;
        let (to, _) = listener.accept().map_err(Error::io("hear from the consumer"))?;
        self.measured(task, || produced(task, &mut Written { to, chunk: Vec::new() }, consumers))
    }

    #[cfg(not(unix))]
    fn through_socket(self, _: &ShmTask) -> Result<StreamRun> {
        Err(Error::peer("producer", "there are no Unix sockets here"))
    }

    fn through_pipe(self, task: &ShmTask) -> Result<StreamRun> {
        let mut consumers = self.start_all(task)?;
        let consumer = consumers.first_mut().ok_or_else(|| Error::peer("consumer", "there is none"))?;
        consumer.answer::<()>()?;
        let to = consumer.stdin()?;
        #[cfg(target_os = "linux")]
        if task.technique == Technique::Pipe {
            // A refusal changes nothing.
            let _ = rustix::pipe::fcntl_setpipe_size(&to, 1 << 20);
        }
        self.measured(task, || produced(task, &mut Written { to, chunk: Vec::new() }, consumers))
    }

    /// A way into a program, whose ends are graphs.
    fn into_graph(self, task: &ShmTask) -> Result<StreamRun> {
        if task.technique == Technique::Embedded {
            return self.measured(task, || graphs::embedded(task).map(|(made, seen)| (made, vec![seen])));
        }
        let (outlet, mut consumer) = graphs::Outlet::open(self.options, task, || self.start(task))?;
        let footprint_bytes = outlet.footprint_bytes;
        let mut copied = 0;
        let run = self.measured(task, || {
            let (made, bytes) = outlet.produce(task)?;
            copied = bytes;
            Ok((made, vec![consumer.answer()?]))
        })?;
        Ok(StreamRun { footprint_bytes, copies: run.copies + copied, ..run })
    }

    /// UDP as `bench udp` measures it, at this frame size.
    fn over_udp(self) -> Result<StreamRun> {
        let options = udp::Options {
            runs: Runs { repeats: 1, ..self.options.runs },
            no_baseline: true,
            launcher: self.options.launcher.clone(),
            ..udp::Options::default()
        };
        let runs = udp::medians(&options, self.scenario.stream, self.options.frame_size, true)?;
        let run = runs.into_iter().next().ok_or_else(|| Error::peer("receiver", "it gave no run"))?;
        // Half of the latency budget, which the receiver has, and a quarter, which the sender has.
        let sleep_budget_us = options.latency.as_secs_f64() * 0.75e6;
        Ok(StreamRun { technique: Technique::Udp.name().to_owned(), sleep_budget_us, sockets: None, ..run })
    }

    /// The run that `produce` makes, on a core of its own.
    fn measured(
        self,
        task: &ShmTask,
        produce: impl FnOnce() -> Result<(Made, Vec<Seen>)>,
    ) -> Result<StreamRun> {
        let of = RunOf {
            label: self.scenario.stream.label,
            technique: task.technique.name(),
            plan: &task.plan,
            works: self.scenario.consumers,
        };
        let is_pinned = !self.options.no_pin && !task.in_graph;
        let run = measured(of, || {
            let anywhere = is_pinned.then(|| system::stay_on(system::cores().first().copied()));
            let produced = produce();
            system::go_back(anywhere.flatten());
            produced
        })?;
        let sleep_budget_us = graphs::sleep_budget(task).as_secs_f64() * 1e6;
        Ok(StreamRun { sleep_budget_us, ..run })
    }

    fn start(self, task: &ShmTask) -> Result<Peer> {
        let launcher = self.options.launcher.as_ref();
        let launcher = launcher.ok_or_else(|| Error::peer("consumer", "nothing is set that starts it"))?;
        Peer::start(launcher.command(), "consumer", task, &Cancel::default())
    }

    fn start_all(self, task: &ShmTask) -> Result<Vec<Peer>> {
        let start = |(place, &work)| self.start(&ShmTask { work, core: self.core(place), ..task.clone() });
        self.scenario.consumers.iter().enumerate().map(start).collect()
    }

    /// The core for the consumer at this place: the producer has the first one, and the consumers the others, the
    /// last one first; else the system may put two that wake each other on one core.
    fn core(self, place: usize) -> Option<usize> {
        let cores = system::cores();
        let others = cores.get(1..).filter(|others| !others.is_empty()).unwrap_or(&cores);
        let core = others.iter().rev().nth(place % others.len().max(1)).copied();
        core.filter(|_| !self.options.no_pin)
    }
}

/// Makes the frames once the consumers are ready, and collects their counts.
fn produced(task: &ShmTask, sender: &mut dyn FrameSender, consumers: Vec<Peer>) -> Result<(Made, Vec<Seen>)> {
    sender.wait_for(consumers.len())?;
    let mut maker = Maker::new(&task.plan);
    let made = maker.run(sender)?;
    sender.end(&maker.end())?;
    let seen = consumers.into_iter().map(|mut consumer| consumer.answer());
    Ok((made, seen.collect::<Result<_>>()?))
}
