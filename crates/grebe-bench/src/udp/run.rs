//! Runs in pairs: the technique and its baseline take turns, so that both see the same minutes of the machine.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use grebe_datagram::{Receiver, Sender};

use super::Scenario;
use super::plan::{Job, Plan, Spawn, Technique};
use super::receive::{Bound, Seen, Watch};
use super::report::RunResult;
use super::send::{self, Outlet, Sent};
use crate::canary::{self, Mood, Watcher};
use crate::{Error, Result};

/// Measures everything that the plan names, and calls `done` with each row as soon as it is known.
///
/// # Errors
/// Where a scenario does not fit the datagram, or a socket or process fails.
pub fn run(plan: &Plan, mut done: impl FnMut(&RunResult)) -> Result<Vec<RunResult>> {
    let mut results = Vec::new();
    for &scenario in &plan.scenarios {
        for &datagram_bytes in &plan.datagram_bytes {
            for &privileged in &plan.privileged {
                let kinds = kinds(plan);
                let mut runs: Vec<Vec<RunResult>> = kinds.iter().map(|_| Vec::new()).collect();
                let until = Instant::now() + plan.patience;
                for _ in 0..plan.repeats.max(1) {
                    let round = round(plan, until, || {
                        kinds
                            .iter()
                            .map(|&(technique, burst)| {
                                once(plan, scenario, datagram_bytes, privileged, technique, burst)
                            })
                            .collect()
                    })?;
                    round.into_iter().zip(&mut runs).for_each(|(run, runs)| runs.push(run));
                }
                let rows: Vec<RunResult> = runs.into_iter().filter_map(median).collect();
                let baseline = rows
                    .iter()
                    .find(|row| row.technique == Technique::OneCall)
                    .map(|row| row.throughput_msps);
                for mut row in rows {
                    row.ratio = baseline.filter(|&base| base > 0.0).map(|base| row.throughput_msps / base);
                    done(&row);
                    results.push(row);
                }
            }
        }
    }
    Ok(results)
}

/// One run of each kind, in the mood asked for, if that comes in time.
fn round(
    plan: &Plan,
    until: Instant,
    mut runs: impl FnMut() -> Result<Vec<RunResult>>,
) -> Result<Vec<RunResult>> {
    loop {
        if let Some(mood) = plan.mood {
            while canary::read().mood != mood && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let round = runs()?;
        let fit = plan.mood.is_none_or(|mood| round.iter().all(|run| run.is_all(mood) && !is_disturbed(run)));
        if fit || Instant::now() >= until {
            return Ok(round);
        }
    }
}

/// A sender at full speed that did not have its core to itself measured another program.
fn is_disturbed(run: &RunResult) -> bool {
    run.target_rate_msps == 0.0 && run.cpu_sender.is_some_and(|share| share < 0.9)
}

/// The kinds of runs that take turns.
fn kinds(plan: &Plan) -> Vec<(Technique, usize)> {
    let mut kinds = Vec::new();
    if plan.baseline {
        kinds.push((Technique::OneCall, 1));
    }
    for &technique in &plan.techniques {
        for &burst in &plan.bursts {
            // One call a datagram has no bursts.
            let kind = if technique == Technique::OneCall { (technique, 1) } else { (technique, burst) };
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    kinds
}

fn once(
    plan: &Plan,
    scenario: Scenario,
    datagram_bytes: usize,
    privileged: bool,
    technique: Technique,
    burst: usize,
) -> Result<RunResult> {
    let job = job(plan, scenario, datagram_bytes, privileged, technique, burst)?;
    let mood_before = canary::read();
    // At full speed a run is short, and any other thread would be measured with it.
    let watcher = job.target_msps.map(|_| Watcher::start());
    let (sent, seen) = match &plan.spawn {
        Spawn::Thread => in_thread(&job)?,
        Spawn::Process(command) => {
            let peer = Peer::start(command().stdin(Stdio::piped()).stdout(Stdio::piped()), &job)?;
            let sent = send::send(&job, peer.address)?;
            (sent, peer.report()?)
        }
    };
    let near = watcher.map(|watcher| watcher.share(Mood::Near));
    let mood_after = canary::read();
    Ok(RunResult { near, ..combine(scenario, &job, sent, seen, mood_before, mood_after) })
}

fn job(
    plan: &Plan,
    scenario: Scenario,
    datagram_bytes: usize,
    privileged: bool,
    technique: Technique,
    burst: usize,
) -> Result<Job> {
    Ok(Job {
        channels: scenario.channels,
        block: scenario.block_for(datagram_bytes)?,
        burst,
        technique,
        privileged,
        target_msps: scenario.target_msps,
        duration: plan.duration,
        latency: plan.latency,
        recv_buffer_bytes: plan.recv_buffer_bytes,
        fault: plan.fault,
        host: plan.host,
    })
}

/// Runs another program's way of sending and receiving under the same scenario, checks and socket buffers, with the receiver
/// in a thread. `inlet` gets the bound socket, which does not block, and the [`Watch`] that every datagram goes to.
///
/// # Errors
/// As [`run()`], and what the two sides say.
pub fn run_other(
    plan: &Plan,
    scenario: Scenario,
    datagram_bytes: usize,
    outlet: impl FnOnce(SocketAddr, UdpSocket) -> Result<Box<dyn Outlet>>,
    inlet: impl FnOnce(UdpSocket, &mut Watch) -> Result<()> + Send,
) -> Result<RunResult> {
    let job = job(plan, scenario, datagram_bytes, true, Technique::OneCall, 1)?;
    let mood_before = canary::read();
    let receiver = Receiver::<Vec<u8>>::bind(SocketAddr::new(job.host, 0), &job.options())?;
    let to = receiver.local_addr()?;
    let granted_bytes = receiver.granted().granted_bytes;
    let socket = receiver.try_clone_socket().map_err(Error::io("copy a socket"))?;
    let mut watch = Watch::new(&job)?;
    let sender = Sender::connect(to, &job.options())?;
    let mut outlet = outlet(to, sender.try_clone_socket().map_err(Error::io("copy a socket"))?)?;
    let (sent, seen) = std::thread::scope(|scope| {
        let receiving = scope.spawn(move || inlet(socket, &mut watch).map(|()| watch.finish()));
        let sent = send::send_through(&job, to, outlet.as_mut());
        let seen = receiving.join().map_err(|_| lost("its thread panicked"))?;
        Ok::<_, Error>((sent?, Seen { granted_bytes, ..seen? }))
    })?;
    Ok(combine(scenario, &job, sent, seen, mood_before, canary::read()))
}

fn in_thread(job: &Job) -> Result<(Sent, Seen)> {
    let bound = Bound::open(job.clone())?;
    let address = bound.address;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || bound.receive());
        let sent = send::send(job, address);
        let seen = receiver
            .join()
            .map_err(|_| Error::Peer { side: "receiver", reason: "its thread panicked".to_owned() })?;
        Ok((sent?, seen?))
    })
}

/// A receiver in another process.
struct Peer {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    address: SocketAddr,
}

impl Peer {
    fn start(command: &mut std::process::Command, job: &Job) -> Result<Self> {
        let mut child = command.spawn().map_err(Error::io("start the receiving process"))?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(lost("it has no pipes"));
        };
        let text = serde_json::to_string(job).map_err(|error| lost(&error.to_string()))?;
        writeln!(stdin, "{text}").map_err(Error::io("tell the receiver its job"))?;
        let mut peer = Self { child, answers: BufReader::new(stdout), address: SocketAddr::new(job.host, 0) };
        peer.address = peer.answer()?;
        Ok(peer)
    }

    fn report(mut self) -> Result<Seen> {
        self.answer()
    }

    fn answer<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(Error::io("hear from the receiver"))?;
        serde_json::from_str(&line).map_err(|error| lost(&format!("{error} in its answer {line:?}")))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It has answered, or is of no use any more; both calls may find it gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lost(reason: &str) -> Error {
    Error::Peer { side: "receiver", reason: reason.to_owned() }
}

fn combine(
    scenario: Scenario,
    job: &Job,
    sent: Sent,
    seen: Seen,
    mood_before: canary::Reading,
    mood_after: canary::Reading,
) -> RunResult {
    let duration_s = sent.duration.max(seen.duration).as_secs_f64().max(1e-9);
    let frames_per_sec = seen.frames as f64 / duration_s;
    let samples = frames_per_sec * f64::from(job.block);
    let lost = sent.frames.saturating_sub(seen.frames);
    // A dropped kernel buffer may have held a whole message; more than that was lost elsewhere.
    let a_buffer = sent.counters.datagrams.div_ceil(sent.counters.messages.max(1)).max(1);
    let lost_kernel = lost.min(seen.kernel_drops.unwrap_or(0).saturating_mul(a_buffer));
    let share = |cpu: Option<std::time::Duration>| cpu.map(|cpu| cpu.as_secs_f64() / duration_s);
    RunResult {
        label: scenario.label.to_owned(),
        channels: job.channels,
        block_size: job.block,
        datagram_size: grebe_frame::HEADER_BYTES + job.channels as usize * job.block as usize * 2,
        burst_size: job.burst,
        target_rate_msps: job.target_msps.unwrap_or(0.0),
        duration_s,
        frames_sent: sent.frames,
        frames_recv: seen.frames,
        frames_per_sec,
        throughput_msps: samples / 1e6,
        throughput_mbps: samples * f64::from(job.channels) * 16.0 / 1e6,
        drop_rate: lost as f64 / sent.frames.max(1) as f64,
        technique: job.technique,
        privileged: job.privileged,
        recv_buffer_bytes: seen.granted_bytes,
        mood_before,
        mood_after,
        near: None,
        ratio: None,
        runs: 1,
        lost_kernel,
        lost_network: lost - lost_kernel,
        kernel_drops: seen.kernel_drops,
        corrupt: seen.corrupt,
        reordered: seen.reordered,
        cpu_sender: share(sent.cpu),
        cpu_receiver: share(seen.cpu),
        datagrams_per_send: sent.counters.datagrams as f64 / sent.counters.syscalls.max(1) as f64,
        datagrams_per_recv: seen.frames as f64 / seen.calls.max(1) as f64,
        copies: sent.counters.copies,
        backoffs: sent.counters.backoffs,
        latency: seen.latency,
    }
}

/// The run whose throughput is the median.
fn median(mut runs: Vec<RunResult>) -> Option<RunResult> {
    runs.sort_by(|a, b| a.throughput_msps.total_cmp(&b.throughput_msps));
    let count = runs.len();
    // A corrupt frame in any run is a corrupt frame of the row.
    let corrupt = runs.iter().map(|run| run.corrupt).max().unwrap_or(0);
    let mut median = runs.into_iter().nth(count / 2)?;
    (median.runs, median.corrupt) = (count, corrupt);
    Some(median)
}
