//! Runs in turns: shared memory and its baselines see the same minutes of the machine.

use std::net::SocketAddr;
use std::process::Child;
use std::time::Duration;

use grebe_transfer::Cancel;
use tempfile::TempDir;

use super::consume::other_stream;
use super::goals;
use super::ingress;
use super::options::Options;
use super::other::Other;
use super::produce::{Beset, ByOther, FrameSink, Havoc, Lent, Written, produce};
use super::task::{Part, Scenario, ShmTask, Technique};
use crate::canary::{self, MachineState, Watcher};
use crate::cores;
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::row::{Progress, Tell};
use crate::stream::{Faults, Made, RunOf, Seen, Stream, StreamRun, Turns, Work};
use crate::udp;

/// Measures everything that the options name.
///
/// # Errors
/// Where a name is unknown, a frame does not fit its chunk, or a process or the stream fails.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    // As each consumer does, and each thread of a graph.
    grebe_flow::short_slices();
    for scenario in Scenario::choose(&options.parts, &options.scenarios)? {
        let mut kinds: Vec<Kind> =
            scenario.techniques(options.baselines).into_iter().map(Kind::Ours).collect();
        if scenario.part == Part::Shm && !scenario.has_faults() {
            kinds.extend(options.others.iter().map(|other| Kind::Other(other.as_ref())));
        }
        let mut runs = options.turns.medians(&kinds, |kind| OneRun { options, scenario }.measure(kind))?;
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

/// What takes turns.
enum Kind<'a> {
    Ours(Technique),
    Other(&'a dyn Other),
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
            Kind::Other(other) => self.by_other(other, &self.task(Technique::Other, &room)?),
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
        let (options, Stream { channels, target_msps, .. }) = (self.options, self.scenario.stream);
        // Longer beside faults, so that each batch is as many frames as a chunk holds.
        let tick = if self.scenario.has_faults() { FAULTS_TICK } else { options.tick };
        let task = ShmTask {
            channels,
            block: self.scenario.stream.block_for(options.frame_bytes, 32)?,
            target_msps,
            duration: options.duration,
            tick,
            technique,
            in_graph: self.scenario.part == Part::Ingress,
            work: Work::MinMax,
            queue_batches: match target_msps {
                Some(_) => options.queue_batches,
                None => options.free_queue_batches,
            },
            chunk_bytes: options.chunk_bytes,
            core: None,
            directory: room.path().to_owned(),
        };
        if task.frame_bytes() > options.chunk_bytes {
            let reason = format!("a frame of {} bytes does not fit a chunk", task.frame_bytes());
            return Err(Error::peer("producer", reason));
        }
        Ok(match technique {
            // One frame per call.
            Technique::PlainPipe => ShmTask { chunk_bytes: task.frame_bytes(), ..task },
            _ => task,
        })
    }

    fn lend(self, task: &ShmTask) -> Result<StreamRun> {
        let has_faults = self.scenario.has_faults();
        let count = self.scenario.consumers.len() + if has_faults { 2 } else { 0 };
        let mut lent = Lent::open(self.options, task, count)?;
        let footprint_bytes = lent.footprint_bytes();
        let consumers = self.start_all(task)?;
        if has_faults {
            let (run, faults) = self.lend_beside_faults(task, lent, consumers)?;
            return Ok(StreamRun { footprint_bytes, faults: Some(faults), ..run });
        }
        let run = self.measured(task, || {
            lent.wait_for(count)?;
            produced(task, &mut lent, consumers)
        })?;
        Ok(StreamRun { footprint_bytes, ..run })
    }

    /// Beside a consumer that is stopped and one that is killed.
    fn lend_beside_faults(
        self,
        task: &ShmTask,
        mut lent: Lent,
        consumers: Vec<Peer>,
    ) -> Result<(StreamRun, Faults)> {
        let count = consumers.len() + 2;
        let (stopped, mut killed) = (self.start(task)?, self.start(task)?);
        let mut faults = Faults::default();
        // A process that is gone already is one whose end the row does not show as noticed.
        let (mut stop, mut kill) = (|| suspend(&stopped.child), || _ = killed.child.kill());
        let run = self.measured(task, || {
            lent.wait_for(count)?;
            let havoc = Havoc::new(task.duration, &mut stop, &mut kill);
            let mut beset = Beset { lent: &mut lent, havoc };
            let produced = produced(task, &mut beset, consumers)?;
            faults = beset.havoc.faults;
            Ok(produced)
        })?;
        drop((stopped, killed));
        faults.leftover_chunks = lent.leftover_chunks(self.options);
        Ok((run, faults))
    }

    #[cfg(unix)]
    fn through_socket(self, task: &ShmTask) -> Result<StreamRun> {
        let listener = std::os::unix::net::UnixListener::bind(task.directory.join(super::task::STREAM))
            .map_err(Error::io("open a socket"))?;
        let consumers = self.start_all(task)?;
        let (stream, _) = listener.accept().map_err(Error::io("hear from the consumer"))?;
        self.measured(task, || produced(task, &mut Written::new(task, stream), consumers))
    }

    #[cfg(not(unix))]
    fn through_socket(self, _: &ShmTask) -> Result<StreamRun> {
        Err(Error::peer("producer", "there are no Unix sockets here"))
    }

    fn through_pipe(self, task: &ShmTask) -> Result<StreamRun> {
        let mut consumers = self.start_all(task)?;
        let consumer = consumers.first_mut().ok_or_else(|| Error::peer("consumer", "there is none"))?;
        consumer.answer::<()>()?;
        let pipe = consumer.stdin()?;
        #[cfg(target_os = "linux")]
        if task.technique == Technique::Pipe {
            // What the system refuses stays as it is.
            let _ = rustix::pipe::fcntl_setpipe_size(&pipe, 1 << 20);
        }
        self.measured(task, || produced(task, &mut Written::new(task, pipe), consumers))
    }

    /// A way into a program, whose ends are graphs.
    fn into_graph(self, task: &ShmTask) -> Result<StreamRun> {
        if task.technique == Technique::Embedded {
            return self.measured(task, || ingress::embedded(task).map(|(made, seen)| (made, vec![seen])));
        }
        // Its socket must be there before the consumer looks for it.
        let shm = match task.technique {
            Technique::Shm => Some(ingress::Outlet::shm(task, self.options.chunks)?),
            _ => None,
        };
        let footprint_bytes = shm.as_ref().map_or(0, |sink| sink.footprint().total_bytes());
        let mut consumer = self.start(task)?;
        let outlet = match (task.technique, shm) {
            (Technique::Shm, Some(sink)) => ingress::Outlet::joined(sink)?,
            (Technique::Udp, _) => ingress::Outlet::udp(consumer.answer::<SocketAddr>()?)?,
            _ => {
                consumer.answer::<()>()?;
                ingress::Outlet::pipe(consumer.stdin()?)
            }
        };
        let mut copied = 0;
        let run = self.measured(task, || {
            let (made, bytes) = outlet.produce(task)?;
            copied = bytes;
            Ok((made, vec![consumer.answer()?]))
        })?;
        Ok(StreamRun { footprint_bytes, copies: run.copies + copied, ..run })
    }

    fn by_other(self, other: &dyn Other, task: &ShmTask) -> Result<StreamRun> {
        let mut sender = other.producer(&other_stream(task))?;
        let consumers = self.start_all(task)?;
        let run = self.measured(task, || {
            sender.wait_for(consumers.len())?;
            produced(task, &mut ByOther { sender, frame_bytes: task.frame_bytes() }, consumers)
        })?;
        Ok(StreamRun { technique: other.name().to_owned(), ..run })
    }

    /// UDP as `bench udp` measures it, at this frame size.
    fn over_udp(self) -> Result<StreamRun> {
        let options = udp::Options {
            duration: self.options.duration,
            turns: Turns { repeats: 1, ..Turns::default() },
            baseline: false,
            launcher: Some(self.options.launcher.clone()),
            ..udp::Options::default()
        };
        let runs = udp::medians(&options, self.scenario.stream, self.options.frame_bytes, true, None)?;
        let run = runs.into_iter().next().ok_or_else(|| Error::peer("receiver", "it gave no run"))?;
        // Half of the latency budget, which the receiver has, and a quarter, which the sender has.
        let sleep_budget_us = options.latency.as_secs_f64() * 0.75e6;
        Ok(StreamRun { technique: Technique::Udp.name().to_owned(), sleep_budget_us, sockets: None, ..run })
    }

    /// The run that `produce` makes, with the machine's state around it.
    fn measured(
        self,
        task: &ShmTask,
        produce: impl FnOnce() -> Result<(Made, Vec<Seen>)>,
    ) -> Result<StreamRun> {
        let before = canary::read();
        // At full speed a run is short, and any other thread would be measured with it.
        let watcher = task.target_msps.map(|_| Watcher::start());
        let is_pinned = self.options.pin && !task.in_graph;
        let anywhere = is_pinned.then(|| cores::stay_on(cores::all().first().copied())).flatten();
        let produced = produce();
        cores::go_back(anywhere);
        let (made, seen) = produced?;
        let near = watcher.map(|watcher| watcher.share(MachineState::Near));
        let of = RunOf {
            stream: self.scenario.stream,
            technique: task.technique.name(),
            block: task.block,
            works: self.scenario.consumers,
        };
        let run = StreamRun::new(of, made, &seen, (before, canary::read()), near);
        let sleep_budget_us = ingress::sleep_budget(task).as_secs_f64() * 1e6;
        Ok(StreamRun { sleep_budget_us, ..run })
    }

    fn start(self, task: &ShmTask) -> Result<Peer> {
        Peer::start(self.options.launcher.command(), "consumer", "shm", task, &Cancel::default())
    }

    fn start_all(self, task: &ShmTask) -> Result<Vec<Peer>> {
        let places = self.scenario.consumers.iter().enumerate();
        let start =
            |(place, &work)| self.start(&ShmTask { work, core: self.options.core(place), ..task.clone() });
        places.map(start).collect()
    }
}

/// Makes the frames, and asks the consumers what they saw.
fn produced(task: &ShmTask, sink: &mut dyn FrameSink, consumers: Vec<Peer>) -> Result<(Made, Vec<Seen>)> {
    let made = produce(task, sink)?;
    let seen = consumers.into_iter().map(|mut consumer| consumer.answer());
    Ok((made, seen.collect::<Result<_>>()?))
}

#[cfg(unix)]
fn suspend(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    let _ = kill_process(Pid::from_child(child), Signal::STOP);
}

/// Never called: where this is compiled, no stream is in shared memory.
#[cfg(not(unix))]
fn suspend(_: &Child) {}

const FAULTS_TICK: Duration = Duration::from_micros(500);
