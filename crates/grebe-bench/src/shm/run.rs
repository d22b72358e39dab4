//! Runs in turns: shared memory and its baselines see the same minutes of the machine.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::check::Seen;
use super::faults::{Faults, Havoc};
use super::ingress;
use super::make::Made;
use super::plan::{FAULTS, Job, Part, Plan, Scenario, Spawn, Technique, Work};
use super::produce::{self, Lending};
use super::report::Row;
use crate::canary::{self, Mood, Reading, Watcher, cores};
use crate::udp;
use crate::{Error, Result};

/// Measures everything that the plan names, and calls `done` with each row as soon as it is known.
///
/// # Errors
/// Where a frame does not fit its chunk, or a process or the stream fails.
pub fn run(plan: &Plan, mut done: impl FnMut(&Row)) -> Result<Vec<Row>> {
    // As each consumer does, and each thread of a graph.
    grebe_flow::short_slices();
    let mut rows = Vec::new();
    for &scenario in &plan.scenarios {
        let techniques = scenario.techniques(&plan.baselines);
        let mut runs: Vec<Vec<Row>> = techniques.iter().map(|_| Vec::new()).collect();
        let until = Instant::now() + plan.patience;
        for _ in 0..plan.repeats.max(1) {
            let round = round(plan, until, || {
                techniques.iter().map(|&technique| once(plan, scenario, technique)).collect()
            })?;
            round.into_iter().zip(&mut runs).for_each(|(run, runs)| runs.push(run));
        }
        let mut medians: Vec<Row> = runs.into_iter().filter_map(Row::median).collect();
        if let Some((first, others)) = medians.split_first_mut() {
            match scenario.part {
                Part::Ingress => others.iter_mut().for_each(|other| other.compare_latency(first)),
                Part::Shm | Part::Pipe => first.compare(others),
            }
        }
        medians.iter().for_each(&mut done);
        rows.extend(medians);
    }
    Ok(rows)
}

/// One run of each kind, in the mood asked for, if that comes in time.
fn round(plan: &Plan, until: Instant, mut runs: impl FnMut() -> Result<Vec<Row>>) -> Result<Vec<Row>> {
    loop {
        if let Some(mood) = plan.mood {
            while canary::read().mood != mood && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let round = runs()?;
        let fit = plan.mood.is_none_or(|mood| round.iter().all(|run| run.is_all(mood)));
        if fit || Instant::now() >= until {
            return Ok(round);
        }
    }
}

fn once(plan: &Plan, scenario: Scenario, technique: Technique) -> Result<Row> {
    match technique {
        _ if scenario.part == Part::Ingress => lead_in(plan, scenario, technique),
        Technique::Shm if scenario.label == FAULTS => lend_under_faults(plan, scenario),
        Technique::Shm => lend(plan, scenario),
        Technique::UnixStream => through_socket(plan, scenario),
        Technique::Pipe | Technique::PlainPipe => through_pipe(plan, scenario, technique),
        Technique::Udp => over_udp(plan, scenario),
        Technique::Embedded | Technique::Other => Err(lost("this way has its own run")),
    }
}

fn lend(plan: &Plan, scenario: Scenario) -> Result<Row> {
    let room = Room::new()?;
    let job = job(plan, scenario, Technique::Shm, &room)?;
    let mut lending = Lending::open(plan, scenario.consumers.len(), &room.0)?;
    let footprint_bytes = lending.footprint_bytes();
    let consumers = start_all(plan, scenario, &job)?;
    let row = measured(scenario, &job, plan.pin && !job.in_graph, |job| {
        Ok((lending.produce(job, |_| ())?, reports(consumers)?))
    })?;
    Ok(Row { footprint_bytes, ..row })
}

/// The consumers of the scenario, beside one that is stopped and one that is killed.
fn lend_under_faults(plan: &Plan, scenario: Scenario) -> Result<Row> {
    let room = Room::new()?;
    // Longer, so that each batch is as many frames as a chunk holds.
    let job = Job { tick: FAULTS_TICK, ..job(plan, scenario, Technique::Shm, &room)? };
    let mut lending = Lending::open(plan, scenario.consumers.len() + 2, &room.0)?;
    let footprint_bytes = lending.footprint_bytes();
    let consumers = start_all(plan, scenario, &job)?;
    let (stopped, mut killed) = (Consumer::start(&plan.spawn, &job)?, Consumer::start(&plan.spawn, &job)?);
    let mut faults = Faults::default();
    let row = measured(scenario, &job, plan.pin && !job.in_graph, |job| {
        // A process that is gone already is one whose end the row does not show as noticed.
        let (mut stop, mut kill) = (|| suspend(&stopped.child), || _ = killed.child.kill());
        let mut havoc = Havoc::new(job.duration, &mut stop, &mut kill);
        let made = lending.produce(job, |publisher| havoc.look(publisher))?;
        faults = havoc.faults;
        Ok((made, reports(consumers)?))
    })?;
    drop((stopped, killed));
    faults.leftover_chunks = lending.leftover_chunks(plan);
    Ok(Row { footprint_bytes, faults: Some(faults), ..row })
}

#[cfg(unix)]
fn suspend(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    let _ = kill_process(Pid::from_child(child), Signal::STOP);
}

/// Never called: where this is compiled, no stream is in shared memory.
#[cfg(not(unix))]
fn suspend(_: &Child) {}

/// A way into a program, whose ends are graphs.
fn lead_in(plan: &Plan, scenario: Scenario, technique: Technique) -> Result<Row> {
    let room = Room::new()?;
    let job = Job { in_graph: true, ..job(plan, scenario, technique, &room)? };
    if technique == Technique::Embedded {
        return measured(scenario, &job, plan.pin && !job.in_graph, |job| {
            ingress::embedded(job).map(|(made, seen)| (made, vec![seen]))
        });
    }
    // Its socket must be there before the consumer looks for it.
    let lending = match technique {
        Technique::Shm => Some(ingress::Outlet::shm(&job, plan.chunks)?),
        _ => None,
    };
    let footprint_bytes = lending.as_ref().map_or(0, |sink| sink.footprint().total_bytes());
    let mut consumer = Consumer::start(&plan.spawn, &job)?;
    let outlet = match (technique, lending) {
        (Technique::Shm, Some(sink)) => ingress::Outlet::joined(sink)?,
        (Technique::Udp, _) => ingress::Outlet::udp(consumer.answer()?)?,
        _ => ingress::Outlet::pipe(consumer.pipe()?),
    };
    let mut copied = 0;
    let row = measured(scenario, &job, plan.pin && !job.in_graph, |job| {
        let (made, bytes) = outlet.produce(job)?;
        copied = bytes;
        Ok((made, vec![consumer.report()?]))
    })?;
    Ok(Row { footprint_bytes, copies: row.copies + copied, ..row })
}

/// Measures another program's way under the same scenario and checks. `start` is called with the job and starts the consumers;
/// what it returns makes the frames and says what they saw.
///
/// # Errors
/// As [`run()`], and what the two sides say.
pub fn run_other<P>(
    plan: &Plan,
    scenario: Scenario,
    start: impl FnOnce(&Job) -> Result<P>,
    produce: impl FnOnce(&Job, P) -> Result<(Made, Vec<Seen>)>,
) -> Result<Row> {
    let room = Room::new()?;
    let job = job(plan, scenario, Technique::Other, &room)?;
    let started = start(&job)?;
    measured(scenario, &job, plan.pin && !job.in_graph, |job| produce(job, started))
}

#[cfg(unix)]
fn through_socket(plan: &Plan, scenario: Scenario) -> Result<Row> {
    let room = Room::new()?;
    let job = job(plan, scenario, Technique::UnixStream, &room)?;
    let listener =
        std::os::unix::net::UnixListener::bind(room.0.join(SOCKET)).map_err(Error::io("open a socket"))?;
    let consumers = start_all(plan, scenario, &job)?;
    let (stream, _) = listener.accept().map_err(Error::io("hear from the consumer"))?;
    measured(scenario, &job, plan.pin && !job.in_graph, |job| {
        let made = produce::write_all(job, plan.chunk_bytes, stream)?;
        Ok((made, reports(consumers)?))
    })
}

#[cfg(not(unix))]
fn through_socket(_: &Plan, _: Scenario) -> Result<Row> {
    Err(lost("there are no Unix sockets here"))
}

fn through_pipe(plan: &Plan, scenario: Scenario, technique: Technique) -> Result<Row> {
    let room = Room::new()?;
    let job = job(plan, scenario, technique, &room)?;
    let mut consumers = start_all(plan, scenario, &job)?;
    let pipe = match consumers.first_mut() {
        Some(consumer) => consumer.pipe()?,
        None => return Err(lost("there is none")),
    };
    let bytes_a_call = match technique {
        Technique::PlainPipe => job.frame_bytes(),
        _ => {
            enlarge(&pipe);
            plan.chunk_bytes
        }
    };
    measured(scenario, &job, plan.pin && !job.in_graph, |job| {
        let made = produce::write_all(job, bytes_a_call, pipe)?;
        Ok((made, reports(consumers)?))
    })
}

/// UDP as `bench --udp` measures it, at this frame size.
fn over_udp(plan: &Plan, scenario: Scenario) -> Result<Row> {
    let spawn = plan.spawn_udp.clone().map_or(udp::Spawn::Thread, udp::Spawn::Process);
    let one = udp::Plan {
        scenarios: vec![udp::Scenario::by_label("1ch_max")?],
        datagram_bytes: vec![plan.frame_bytes],
        duration: plan.duration,
        repeats: 1,
        baseline: false,
        spawn,
        ..udp::Plan::default()
    };
    let rows = udp::run(&one, |_| {})?;
    let row = rows.into_iter().next().ok_or_else(|| lost("UDP gave no row"))?;
    Ok(Row::of_udp(row, scenario.label))
}

/// The row of one run, with the machine's mood around it.
fn measured(
    scenario: Scenario,
    job: &Job,
    is_pinned: bool,
    produce: impl FnOnce(&Job) -> Result<(Made, Vec<Seen>)>,
) -> Result<Row> {
    let before = canary::read();
    // At full speed a run is short, and any other thread would be measured with it.
    let watcher = job.target_msps.map(|_| Watcher::start());
    let anywhere = is_pinned.then(|| cores::stay_on(cores::all().first().copied())).flatten();
    let produced = produce(job);
    cores::go_back(anywhere);
    let (made, seen) = produced?;
    let near = watcher.map(|watcher| watcher.share(Mood::Near));
    let after: Reading = canary::read();
    Ok(Row::of(scenario, job, made, seen, (before, after), near))
}

fn job(plan: &Plan, scenario: Scenario, technique: Technique, room: &Room) -> Result<Job> {
    let job = Job {
        channels: scenario.channels,
        block: scenario.block_for(plan.frame_bytes)?,
        target_msps: scenario.target_msps,
        duration: plan.duration,
        tick: plan.tick,
        technique,
        in_graph: false,
        work: Work::MinMax,
        queue_batches: match scenario.target_msps {
            Some(_) => plan.queue_batches,
            None => plan.free_queue_batches,
        },
        chunk_bytes: plan.chunk_bytes,
        core: None,
        directory: room.0.clone(),
    };
    if job.frame_bytes() > plan.chunk_bytes {
        return Err(lost(&format!("a frame of {} bytes does not fit a chunk", job.frame_bytes())));
    }
    Ok(job)
}

/// A consumer in another process.
struct Consumer {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: BufReader<std::process::ChildStdout>,
}

fn start_all(plan: &Plan, scenario: Scenario, job: &Job) -> Result<Vec<Consumer>> {
    let start =
        |(place, &work)| Consumer::start(&plan.spawn, &Job { work, core: plan.core(place), ..job.clone() });
    scenario.consumers.iter().enumerate().map(start).collect()
}

fn reports(consumers: Vec<Consumer>) -> Result<Vec<Seen>> {
    consumers.into_iter().map(Consumer::report).collect()
}

impl Consumer {
    fn start(spawn: &Spawn, job: &Job) -> Result<Self> {
        let mut command = spawn();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("start a consumer"))?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(lost("it has no pipes"));
        };
        let text = serde_json::to_string(job).map_err(|error| lost(&error.to_string()))?;
        writeln!(stdin, "{text}").map_err(Error::io("tell a consumer its job"))?;
        Ok(Self { child, stdin: Some(stdin), answers: BufReader::new(stdout) })
    }

    /// Its end of a pipe, once it is ready to read.
    fn pipe(&mut self) -> Result<ChildStdin> {
        let _: String = self.answer()?;
        self.stdin.take().ok_or_else(|| lost("it has no pipe"))
    }

    fn report(mut self) -> Result<Seen> {
        self.answer()
    }

    fn answer<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(Error::io("hear from a consumer"))?;
        serde_json::from_str(&line).map_err(|error| lost(&format!("{error} in its answer {line:?}")))
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // It has answered, or is of no use any more; both calls may find it gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory for the sockets of one run; removed with it.
struct Room(PathBuf);

impl Room {
    fn new() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("grebe-bench-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(Error::io("make a directory for sockets"))?;
        Ok(Self(path))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(target_os = "linux")]
fn enlarge(pipe: &ChildStdin) {
    // What the system refuses stays as it is.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
}

#[cfg(not(target_os = "linux"))]
fn enlarge(_: &ChildStdin) {}

fn lost(reason: &str) -> Error {
    Error::Peer { side: "consumer", reason: reason.to_owned() }
}

const FAULTS_TICK: Duration = Duration::from_micros(500);

/// The name of the stream.
pub(super) const STREAM: &str = "bench";
/// The name of the Unix socket.
#[cfg(unix)]
pub(super) const SOCKET: &str = "stream";
