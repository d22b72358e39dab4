//! Runs in turns: each technique and the baseline see the same minutes of the machine.

use std::net::SocketAddr;

use grebe_datagram::{Receiver, SendCounters, Sender};
use grebe_transfer::Cancel;

use super::options::{Options, Other};
use super::receive::Bound;
use super::send::{self, FrameSender};
use super::task::{self, Fault, Technique, UdpTask};
use crate::canary::{self, MachineState, Watcher};
use crate::error::{Error, Result};
use crate::peer::{Launcher, Peer};
use crate::stream::{Checker, Made, RunOf, Seen, SocketCosts, Stream, StreamRun, Work};

/// What takes turns: a technique and how many datagrams per call, or another program's.
enum Kind<'a> {
    Ours(Technique, usize),
    Other(&'a dyn Other),
}

/// Measures everything that the options name, and calls `done` with each median as soon as it is known.
pub(super) fn all(options: &Options, fault: Option<Fault>, done: &mut dyn FnMut(StreamRun)) -> Result<()> {
    let scenarios: Vec<Stream> =
        options.scenarios.iter().map(|label| task::scenario(label)).collect::<Result<_>>()?;
    for &stream in &scenarios {
        for &datagram_bytes in &options.datagram_bytes {
            for &privileged in &options.privileged {
                medians(options, stream, datagram_bytes, privileged, fault)?.into_iter().for_each(&mut *done);
            }
        }
    }
    Ok(())
}

/// Measures each technique and burst, beside the baseline.
pub(crate) fn medians(
    options: &Options,
    stream: Stream,
    datagram_bytes: usize,
    privileged: bool,
    fault: Option<Fault>,
) -> Result<Vec<StreamRun>> {
    let task = UdpTask { privileged, fault, ..task_of(options, stream, datagram_bytes)? };
    let mut runs = options.turns.medians(&kinds(options)?, |kind| once(options, stream, &task, kind))?;
    let baseline = runs.iter().find(|run| run.technique == Technique::OneCall.name()).cloned();
    for run in &mut runs {
        if let Some(baseline) = &baseline {
            run.compare(baseline);
        }
        if let Some(sockets) = &mut run.sockets {
            sockets.ratio = run.ratios.values().next().copied();
        }
    }
    Ok(runs)
}

fn kinds(options: &Options) -> Result<Vec<Kind<'_>>> {
    let mut ours = Vec::new();
    if options.baseline {
        ours.push((Technique::OneCall, 1));
    }
    for name in &options.techniques {
        for &burst in &options.bursts {
            let technique = Technique::by_name(name)?;
            // One call per datagram has no bursts.
            let kind = (technique, if technique == Technique::OneCall { 1 } else { burst });
            if !ours.contains(&kind) {
                ours.push(kind);
            }
        }
    }
    let ours = ours.into_iter().map(|(technique, burst)| Kind::Ours(technique, burst));
    Ok(ours.chain(options.others.iter().map(|other| Kind::Other(other.as_ref()))).collect())
}

fn task_of(options: &Options, stream: Stream, datagram_bytes: usize) -> Result<UdpTask> {
    Ok(UdpTask {
        channels: stream.channels,
        block: stream.block_for(datagram_bytes, 1)?,
        burst: 1,
        technique: Technique::OneCall,
        privileged: true,
        target_msps: stream.target_msps,
        duration: options.duration,
        latency: options.latency,
        recv_buffer_bytes: options.recv_buffer_bytes,
        fault: None,
        host: options.host,
    })
}

fn once(options: &Options, stream: Stream, task: &UdpTask, kind: &Kind) -> Result<StreamRun> {
    let (task, name) = match *kind {
        Kind::Ours(technique, burst) => (UdpTask { technique, burst, ..task.clone() }, technique.name()),
        Kind::Other(other) => (task.clone(), other.name()),
    };
    let before = canary::read();
    // At full speed a run is short, and any other thread would be measured with it.
    let watcher = task.target_msps.map(|_| Watcher::start());
    let (made, seen, counters) = match (kind, &options.launcher) {
        (Kind::Other(other), _) => by_other(&task, *other)?,
        (Kind::Ours(..), None) => in_thread(&task)?,
        (Kind::Ours(..), Some(launcher)) => in_process(&task, launcher)?,
    };
    let near = watcher.map(|watcher| watcher.share(MachineState::Near));
    let of = RunOf { stream, technique: name, block: task.block, works: &[Work::Compare] };
    let sockets = Some(costs(&task, made, &seen, counters));
    let run = StreamRun::new(of, made, &[seen], (before, canary::read()), near);
    Ok(StreamRun { sockets, copies: counters.copies, ..run })
}

/// What came of a run: both sides, and what the sender counted.
type Outcome = (Made, Seen, SendCounters);

fn in_process(task: &UdpTask, launcher: &Launcher) -> Result<Outcome> {
    let mut peer = Peer::start(launcher.command(), "receiver", "udp", task, &Cancel::default())?;
    let to: SocketAddr = peer.answer()?;
    let mut sender = send::open(task, to)?;
    let made = send::send(task, to, sender.as_mut())?;
    Ok((made, peer.answer()?, sender.counters()))
}

fn in_thread(task: &UdpTask) -> Result<Outcome> {
    let bound = Bound::open(task.clone())?;
    let to = bound.address;
    let sender = send::open(task, to)?;
    beside(task, to, sender, move || bound.receive())
}

fn by_other(task: &UdpTask, other: &dyn Other) -> Result<Outcome> {
    let receiver = Receiver::<Vec<u8>>::bind(SocketAddr::new(task.host, 0), &task.options())?;
    let (to, granted_bytes) = (receiver.local_addr()?, receiver.granted().granted_bytes);
    let socket = receiver.try_clone_socket().map_err(Error::io("copy a socket"))?;
    let connected = Sender::connect(to, &task.options())?;
    let sender = other.sender(to, connected.try_clone_socket().map_err(Error::io("copy a socket"))?)?;
    let mut checker = Checker::new(task.channels, task.block, Work::Compare)?;
    beside(task, to, sender, move || {
        other.receive(socket, &mut checker)?;
        Ok(Seen { granted_bytes, ..checker.finish() })
    })
}

/// Sends while another thread receives.
fn beside(
    task: &UdpTask,
    to: SocketAddr,
    mut sender: Box<dyn FrameSender>,
    receive: impl FnOnce() -> Result<Seen> + Send,
) -> Result<Outcome> {
    std::thread::scope(|scope| {
        let receiving = scope.spawn(receive);
        let made = send::send(task, to, sender.as_mut());
        let seen = receiving.join().map_err(|_| Error::peer("receiver", "its thread panicked"))?;
        Ok((made?, seen?, sender.counters()))
    })
}

fn costs(task: &UdpTask, made: Made, seen: &Seen, counters: SendCounters) -> SocketCosts {
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
