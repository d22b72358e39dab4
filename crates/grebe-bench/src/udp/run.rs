//! Runs in turns, beside the baseline.

use std::net::SocketAddr;

use grebe_connection::Cancel;
use grebe_datagram::{Receiver, SendCounters, Sender};

use super::options::{Options, Other, Technique, UdpTask, scenarios};
use super::receive::Bound;
use super::{calls, send};
use crate::error::{Error, Result};
use crate::limit::{self, Handling};
use crate::peer::{Launcher, Peer};
use crate::row::{Progress, Row, Tell};
use crate::stream::{
    Checker, FrameSender, Made, Maker, Plan, RunOf, Seen, SocketCosts, Stream, StreamRun, Work, measured,
};

/// Measures everything that the options name.
///
/// # Errors
/// Where a name is unknown, a scenario does not fit the datagram, or a socket or process fails.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    match options {
        Options { recv: true, .. } => {
            calls::run(options.runs.duration, options.runs.repeats.into(), &[], tell)
        }
        Options { reach: true, .. } => reach(options, 50.0, 5, tell),
        _ => all(options, &mut |run| tell(Progress::Row(&run.row(TITLE)))),
    }
}

const TITLE: &str = "UDP between two processes, every sample of every frame checked";

/// Calls `done` with each median as soon as it is known.
pub(super) fn all(options: &Options, done: &mut dyn FnMut(StreamRun)) -> Result<()> {
    for stream in scenarios(&options.scenario)? {
        let stream = Stream { target_msps: options.rate_msps.or(stream.target_msps), ..stream };
        for &datagram_bytes in &options.datagram_size {
            for &privileged in options.buffers.privileges() {
                medians(options, stream, datagram_bytes, privileged)?.into_iter().for_each(&mut *done);
            }
        }
    }
    Ok(())
}

/// For each size and privilege doubles the rate per channel from `from_msps` on until a run loses or does not reach it, then
/// halves the gap `halvings` times; a row of the highest run without loss.
pub(super) fn reach(options: &Options, from_msps: f64, halvings: usize, tell: Tell) -> Result<()> {
    let stream = scenarios(&options.scenario)?[0];
    // A rate at a time, without anything beside it.
    let mut options = Options { no_baseline: true, ..options.clone() };
    options.technique.truncate(1);
    options.burst.truncate(1);
    options.runs.repeats = 1;
    for &bytes in &options.datagram_size {
        for &privileged in options.buffers.privileges() {
            let (mut good, mut bad, mut rate) = (0.0, f64::INFINITY, from_msps);
            let (mut best, mut halved) = (None, 0);
            while halved < halvings {
                tell(Progress::Doing(&format!("{bytes} bytes at {rate:.0} MSPS per channel")));
                let stream = Stream { target_msps: Some(rate), ..stream };
                let Some(run) = medians(&options, stream, bytes, privileged)?.pop() else { break };
                if run.lost() == 0 && run.corrupt == 0 && run.throughput_msps > rate * 0.98 {
                    good = rate;
                    best = Some(run);
                } else {
                    bad = rate;
                }
                halved += usize::from(bad.is_finite());
                rate = if bad.is_finite() { (good + bad) / 2.0 } else { rate * 2.0 };
            }
            if let Some(best) = &mut best {
                best.measure_by(&limit(stream, &UdpTask::new(&options, stream, bytes, privileged)?.plan)?);
            }
            let row = best.map_or_else(
                || Row::left_out(&format!("{bytes} bytes"), "even the lowest rate lost frames"),
                |run| run.row("The highest rate over UDP without loss"),
            );
            tell(Progress::Row(&row));
        }
    }
    Ok(())
}

/// A technique and its datagrams per call, or another program, in turns with the others.
enum Kind<'a> {
    Ours(Technique, u16),
    Other(&'a dyn Other),
}

/// Measures each technique and burst in turns, beside the baseline.
pub(crate) fn medians(
    options: &Options,
    stream: Stream,
    datagram_bytes: usize,
    privileged: bool,
) -> Result<Vec<StreamRun>> {
    let task = UdpTask::new(options, stream, datagram_bytes, privileged)?;
    let mut ours = Vec::new();
    if !options.no_baseline {
        ours.push((Technique::OneCall, 1));
    }
    for &technique in &options.technique {
        for &burst in &options.burst {
            // One call per datagram has no bursts.
            let kind = (technique, if technique == Technique::OneCall { 1 } else { burst });
            if !ours.contains(&kind) {
                ours.push(kind);
            }
        }
    }
    let mut kinds: Vec<Option<Kind>> =
        ours.into_iter().map(|(technique, burst)| Some(Kind::Ours(technique, burst))).collect();
    kinds.extend(options.others.iter().map(|other| Some(Kind::Other(other.as_ref()))));
    if !options.no_baseline {
        // Neither: what the machine allows.
        kinds.push(None);
    }
    let once = |kind: &Option<Kind>| match kind {
        Some(kind) => once(options, stream.label, &task, kind),
        None => limit(stream, &task.plan),
    };
    let mut runs = options.machine.medians(options.runs.repeats, &kinds, once)?;
    let baseline = runs.iter().find(|run| run.technique == Technique::OneCall.name()).cloned();
    for run in &mut runs {
        baseline.iter().for_each(|baseline| run.compare(baseline));
        let ratio = run.ratios.values().next().copied();
        run.sockets.iter_mut().for_each(|sockets| sockets.ratio = ratio);
    }
    Ok(runs)
}

/// The kernel copies in and out, and nothing else.
fn limit(stream: Stream, plan: &Plan) -> Result<StreamRun> {
    limit::run(stream, plan.block, plan.duration, &[Work::Compare], Handling::Copy)
}

fn once(options: &Options, label: &str, task: &UdpTask, kind: &Kind) -> Result<StreamRun> {
    let (task, technique) = match *kind {
        Kind::Ours(technique, burst) => {
            (UdpTask { technique, burst: burst.into(), ..task.clone() }, technique.name())
        }
        Kind::Other(other) => (task.clone(), other.name()),
    };
    let mut maker = |to, sender: &mut dyn FrameSender| {
        let mut maker = Maker::new(&task.plan);
        #[cfg(test)]
        maker.spoil(options.spoiled_by);
        let made = maker.run(sender)?;
        send::end(to, &maker.end())?;
        Ok(made)
    };
    let (mut counters, mut costs) = (SendCounters::default(), None);
    let of = RunOf { label, technique, plan: &task.plan, works: &[Work::Compare] };
    let run = measured(of, || {
        let (made, seen, counted) = match (kind, &options.launcher) {
            (Kind::Other(other), _) => by_other(&task, *other, &mut maker)?,
            (Kind::Ours(..), None) => {
                let bound = Bound::open(task.clone())?;
                let (to, sender) = (bound.address, send::open(&task, bound.address)?);
                beside(to, sender, &mut maker, move || bound.receive())?
            }
            (Kind::Ours(..), Some(launcher)) => in_process(&task, launcher, &mut maker)?,
        };
        counters = counted;
        costs = Some(socket_costs(&task, made, &seen, counted));
        Ok((made, vec![seen]))
    })?;
    Ok(StreamRun { sockets: costs, copies: counters.copies, ..run })
}

/// Makes and sends all frames of a run, and its end.
type Make<'a> = &'a mut dyn FnMut(SocketAddr, &mut dyn FrameSender) -> Result<Made>;

/// Results of a run: both sides, and the sender's counts.
type Outcome = (Made, Seen, SendCounters);

fn in_process(task: &UdpTask, launcher: &Launcher, make: Make) -> Result<Outcome> {
    let mut peer = Peer::start(launcher.command(), "receiver", task, &Cancel::default())?;
    let to = peer.answer()?;
    let mut sender = send::open(task, to)?;
    let made = make(to, sender.as_mut())?;
    Ok((made, peer.answer()?, sender.counters()))
}

fn by_other(task: &UdpTask, other: &dyn Other, make: Make) -> Result<Outcome> {
    let receiver = Receiver::<Vec<u8>>::bind(SocketAddr::new(task.host, 0), &task.socket_options())?;
    let (to, granted_bytes) = (receiver.local_addr()?, receiver.granted().granted_bytes);
    let socket = receiver.try_clone_socket().map_err(Error::io("copy a socket"))?;
    let connected = Sender::connect(to, &task.socket_options())?;
    let sender = other.sender(to, connected.try_clone_socket().map_err(Error::io("copy a socket"))?)?;
    let mut checker = Checker::new(task.plan.format, task.plan.channels, task.plan.block, Work::Compare)?;
    beside(to, sender, make, move || {
        other.receive(socket, &mut checker)?;
        Ok(Seen { granted_bytes, ..checker.finish() })
    })
}

/// Sends while another thread receives.
fn beside(
    to: SocketAddr,
    mut sender: Box<dyn FrameSender>,
    make: Make,
    receive: impl FnOnce() -> Result<Seen> + Send,
) -> Result<Outcome> {
    std::thread::scope(|scope| {
        let receiving = scope.spawn(receive);
        let made = make(to, sender.as_mut());
        let seen = receiving.join().map_err(|_| Error::peer("receiver", "its thread panicked"))?;
        Ok((made?, seen?, sender.counters()))
    })
}

fn socket_costs(task: &UdpTask, made: Made, seen: &Seen, counters: SendCounters) -> SocketCosts {
    let lost = made.frames.saturating_sub(seen.frames);
    // A dropped kernel buffer may have held a whole message; more than that was lost elsewhere.
    let per_buffer = counters.datagrams.div_ceil(counters.messages.max(1)).max(1);
    let lost_kernel = lost.min(seen.kernel_drops.unwrap_or(0).saturating_mul(per_buffer));
    SocketCosts {
        burst_size: task.burst,
        privileged: task.privileged,
        recv_buffer_bytes: seen.granted_bytes,
        ratio: None,
        lost_kernel,
        lost_network: lost - lost_kernel,
        kernel_drops: seen.kernel_drops,
        datagrams_per_send: counters.datagrams as f64 / counters.syscalls.max(1) as f64,
        datagrams_per_recv: seen.frames as f64 / seen.calls.max(1) as f64,
        backoffs: counters.backoffs,
    }
}
