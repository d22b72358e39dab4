//! UDP between two processes: how fast, how much is lost, how late; beside one blocking call per datagram.

mod calls;
mod receive;
mod send;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use grebe_connection::Cancel;
use grebe_datagram::{Receiver, SendCounters, Sender};
use grebe_frame::SampleFormat;
use serde::{Deserialize, Serialize};

pub use calls::{ReceiveCalls, run as receive_calls};
use receive::Bound;
pub(crate) use receive::peer;

use crate::error::{Error, Result, choose};
use crate::limit::{self, Handling};
use crate::peer::{Launcher, Peer, Task};
use crate::row::{Progress, Row, Tell};
use crate::runs::{Machine, Runs, size, time};
use crate::stream::{
    Checker, FrameSender, Made, Maker, Plan, RunOf, Seen, SocketCosts, Stream, StreamRun, Work, measured,
};

/// What to measure; each combination of scenario, size, buffers, technique and burst is a row.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// Scenarios by label, or `all`.
    #[arg(long, value_name = "LABEL", value_delimiter = ',', default_value = "1ch_max")]
    pub scenario: Vec<String>,
    /// Millions of samples per second and channel, instead of the scenario's own rate.
    #[arg(long, value_name = "MSPS", conflicts_with_all = ["reach", "recv"], value_parser = msps)]
    pub rate_msps: Option<f64>,
    /// Bytes of a datagram.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1400,65000", value_parser = size)]
    pub datagram_size: Vec<usize>,
    /// Datagrams per system call.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub burst: Vec<u16>,
    /// How datagrams go to the kernel.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "gso")]
    pub technique: Vec<Technique>,
    /// With the large socket buffers that need privilege, without, or both.
    #[arg(long, default_value = "both")]
    pub buffers: Buffers,
    /// Bytes of receive buffer to ask for.
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = size)]
    pub recv_buffer: usize,
    /// End-to-end latency budget.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = time)]
    pub latency: Duration,
    /// Look for the highest rate without loss instead, with the first scenario, technique and burst.
    #[arg(long)]
    pub reach: bool,
    /// Measure receiving small datagrams from 1, 2, 4 and 8 senders instead: one per call, and 32 per call.
    #[arg(long, conflicts_with = "reach")]
    pub recv: bool,
    /// Where the receiver binds.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Leave the baseline out.
    #[arg(long)]
    pub no_baseline: bool,
    /// How long and how often.
    #[command(flatten)]
    pub runs: Runs,
    /// In which state of the machine.
    #[command(flatten)]
    pub machine: Machine,
    /// Starts the receiver as a process; `None`: it is a thread of this one.
    #[arg(skip)]
    pub launcher: Option<Launcher>,
    /// Other programs' techniques to measure in turn with ours.
    #[arg(skip)]
    pub others: Vec<Arc<dyn Other>>,
    #[cfg(test)]
    #[arg(skip)]
    pub(crate) spoiled_by: isize,
}

impl Default for Options {
    fn default() -> Self {
        Self::parse_from([""])
    }
}

/// How datagrams are handed to the kernel and taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Technique {
    /// One per blocking call: `send` and `recv` of `std`. The baseline.
    OneCall,
    /// Several per call.
    Mmsg,
    /// Several per call and kernel buffer (segmentation offload), header and samples gathered by the kernel.
    Gso,
    /// The same from frames that lie one behind the other; writing them is part of the run.
    GsoRun,
}

impl Technique {
    fn name(self) -> &'static str {
        match self {
            Technique::OneCall => "one_call",
            Technique::Mmsg => "mmsg",
            Technique::Gso => "gso",
            Technique::GsoRun => "gso_run",
        }
    }
}

/// Which socket buffers are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "the option says it")]
pub enum Buffers {
    Privileged,
    Plain,
    Both,
}

impl Buffers {
    fn privileges(self) -> &'static [bool] {
        match self {
            Buffers::Privileged => &[true],
            Buffers::Plain => &[false],
            Buffers::Both => &[true, false],
        }
    }
}

/// Another program's technique to send and receive datagrams, under the same scenario, checks and socket buffers; its receiver
/// is a thread.
pub trait Other: std::fmt::Debug + Send + Sync {
    /// What it is called in results.
    fn name(&self) -> &'static str;

    /// A sender on a connected socket, which does not block.
    ///
    /// # Errors
    /// Where a socket fails.
    fn sender(&self, to: SocketAddr, socket: UdpSocket) -> Result<Box<dyn FrameSender>>;

    /// Receives from the bound socket, which does not block, until the checker says that the stream is over.
    ///
    /// # Errors
    /// Where the socket fails.
    fn receive(&self, socket: UdpSocket, checker: &mut Checker) -> Result<()>;
}

/// One run, as both sides are told it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UdpTask {
    plan: Plan,
    burst: usize,
    technique: Technique,
    privileged: bool,
    latency: Duration,
    recv_buffer_bytes: usize,
    host: IpAddr,
}

impl UdpTask {
    fn new(options: &Options, stream: Stream, datagram_bytes: usize, privileged: bool) -> Result<Self> {
        let block = stream.block_for(datagram_bytes, 1)?;
        let mut plan = Plan {
            format: stream.format,
            channels: stream.channels,
            block,
            target_msps: stream.target_msps,
            duration: options.runs.duration,
            // A quarter of the latency budget, as the product's sender flushes.
            tick: options.latency / 4,
            late_max: Duration::from_millis(50),
            burst_max: None,
            frames_max: 1,
        };
        // Between two looks at the clock; at full speed, a latency stamp is as old as that.
        plan.frames_max = ((2 << 20) / plan.frame_bytes()).clamp(1, 512);
        let (latency, recv_buffer_bytes, host) = (options.latency, options.recv_buffer, options.host);
        Ok(Self {
            plan,
            burst: 1,
            technique: Technique::OneCall,
            privileged,
            latency,
            recv_buffer_bytes,
            host,
        })
    }

    fn socket_options(&self) -> grebe_datagram::Options {
        let offload = matches!(self.technique, Technique::Gso | Technique::GsoRun);
        grebe_datagram::Options {
            recv_buffer_bytes: self.recv_buffer_bytes,
            force_buffers: self.privileged,
            batch: self.technique != Technique::OneCall,
            gso: offload,
            gro: offload,
            burst: self.burst,
            latency: self.latency,
            // One datagram per slot needs more slots for the same amortisation.
            slots: if offload { 8 } else { 64 },
            ..grebe_datagram::Options::default()
        }
    }
}

const fn stream(label: &'static str, channels: u32, block: Option<u32>, target_msps: Option<f64>) -> Stream {
    Stream { label, format: SampleFormat::I16, channels, block, target_msps }
}

/// The labels, channels, blocks and rates of the C++ program, so that its tables can be put beside ours.
const SCENARIOS: [Stream; 14] = [
    stream("1ch_max", 1, None, None),
    stream("1ch_256", 1, Some(256), None),
    stream("1ch_64", 1, Some(64), None),
    stream("2ch_max", 2, None, None),
    stream("4ch_max", 4, None, None),
    stream("1ch_1MSPS", 1, None, Some(1.0)),
    stream("1ch_10MSPS", 1, None, Some(10.0)),
    stream("1ch_100MSPS", 1, None, Some(100.0)),
    stream("1ch_1GSPS", 1, None, Some(1_000.0)),
    stream("4ch_1MSPS", 4, None, Some(1.0)),
    stream("4ch_10MSPS", 4, None, Some(10.0)),
    stream("4ch_100MSPS", 4, None, Some(100.0)),
    stream("4ch_1GSPS", 4, None, Some(1_000.0)),
    // Not of that program: as 1ch_max, of which it should carry the bytes.
    Stream { format: SampleFormat::Cf32, ..stream("1ch_cf32_max", 1, None, None) },
];

fn msps(text: &str) -> std::result::Result<f64, String> {
    let msps: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if msps > 0.0 && msps.is_finite() { Ok(msps) } else { Err("must be above 0".to_owned()) }
}

fn scenarios(labels: &[String]) -> Result<Vec<Stream>> {
    let labels = if labels == ["all"] { &[] } else { labels };
    choose(&SCENARIOS, |stream| stream.label, "scenario", labels)
}

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
fn all(options: &Options, done: &mut dyn FnMut(StreamRun)) -> Result<()> {
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
fn reach(options: &Options, from_msps: f64, halvings: usize, tell: Tell) -> Result<()> {
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

/// What takes turns: a technique and how many datagrams per call, or another program's.
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

/// What came of a run: both sides, and what the sender counted.
type Outcome = (Made, Seen, SendCounters);

fn in_process(task: &UdpTask, launcher: &Launcher, make: Make) -> Result<Outcome> {
    let mut peer = Peer::start(launcher.command(), "receiver", Task::Udp(task.clone()), &Cancel::default())?;
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

#[cfg(test)]
mod tests;
