//! Links between two network namespaces, which a program emulates: real processes, real sockets, real time.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::job::{Job, Sent};
use super::link::Link;
use super::loopback::{FILE, Room};
use super::peer::{Kept, Peer, find};
use super::row::{Baseline, LinkRow, Over, Row};
use super::{Plan, Told, content};
use crate::canary;
use crate::flow::Spread;
use crate::{Error, Result};

/// A row a link. The program is started anew for each run, with another seed.
pub(super) fn run(plan: &Plan, program: &Path, tell: &mut dyn FnMut(Told)) -> Result<()> {
    check(program)?;
    for link in &plan.links {
        let row = measure(plan, program, link, tell)?;
        tell(Told::Row(&Row::Link(row)));
    }
    Ok(())
}

/// What is missing is said before anything is started.
fn check(program: &Path) -> Result<()> {
    let needs = |what: String| Err(Error::Needs { what });
    if !cfg!(target_os = "linux") {
        return needs("--wanlink needs the network namespaces of Linux".to_owned());
    }
    if !is_root() {
        return needs(format!(
            "--wanlink needs root, for network namespaces: sudo grebe bench --transfer --wanlink {}",
            program.display()
        ));
    }
    if find("ip").is_none() {
        return needs("--wanlink needs the ip command: on Debian, apt-get install iproute2".to_owned());
    }
    if !program.is_file() {
        return needs(format!(
            "--wanlink {}: there is no such program; it is called with --name, --delay, --rate, --loss, --loss-back and --seed",
            program.display()
        ));
    }
    Ok(())
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

fn measure(plan: &Plan, program: &Path, link: &Link, tell: &mut dyn FnMut(Told)) -> Result<LinkRow> {
    let room = Room::new(plan, link.file_bytes)?;
    let before = canary::read();
    let mut sent: Vec<Sent> = Vec::new();
    let mut tcp = ["bbr", "cubic"].map(TcpRuns::new);
    for repeat in 0..plan.repeats.max(1) {
        let doing = |what: &str| format!("link {}, {}: {what}, run {}", link.name, link.words(), repeat + 1);
        tell(Told::Doing(&doing("the emulator")));
        let emulator = Emulator::start(plan, program, link, plan.seed.wrapping_add(repeat as u64))?;
        let refused = emulator.widen(plan)?;
        if repeat == 0 && !refused.is_empty() {
            let what = format!("link {}: room for TCP and silence of IPv6", link.name);
            tell(Told::Row(&Row::LeftOut { what, why: refused.join(", ") }));
        }
        tell(Told::Doing(&doing("grebe")));
        sent.push(emulator.grebe(plan, &room)?);
        for runs in tcp.iter_mut().filter(|runs| runs.goes_on()) {
            tell(Told::Doing(&doing(&runs.name())));
            let run = emulator.tcp(plan, &room, link, runs.congestion)?;
            runs.runs.push(run);
        }
    }
    for runs in &tcp {
        if let Some(why) = runs.refused() {
            tell(Told::Row(&Row::LeftOut { what: runs.name(), why: why.to_owned() }));
        }
    }
    Ok(row(link, &sent, &tcp, (before, canary::read())))
}

fn row(link: &Link, sent: &[Sent], tcp: &[TcpRuns], moods: (canary::Reading, canary::Reading)) -> LinkRow {
    let spread = |of: &dyn Fn(&Sent) -> f64| Spread::of(&sent.iter().map(of).collect::<Vec<_>>());
    let seconds = spread(&|sent| sent.seconds);
    let mut by_time: Vec<&Sent> = sent.iter().collect();
    by_time.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    LinkRow {
        link: link.clone(),
        over: Over::Emulator,
        seconds,
        runs: sent.len(),
        wire_s: link.wire_s(),
        is_met: seconds.median <= link.goal_s,
        wire_bytes_goal: link.wire_bytes_goal(),
        wire_bytes_ratio: spread(&|sent| {
            sent.device_bytes.unwrap_or(sent.wire_bytes) as f64 / link.file_bytes as f64
        }),
        lost: spread(&|sent| sent.lost as f64 / sent.packets.max(1) as f64),
        phases: by_time.get(by_time.len() / 2).map_or(Vec::new(), |sent| sent.phases.clone()),
        baselines: tcp.iter().filter_map(|runs| runs.baseline(seconds.median)).collect(),
        moods: Some(moods),
    }
}

/// TCP with one way to react to loss.
struct TcpRuns {
    congestion: &'static str,
    runs: Vec<TcpRun>,
}

enum TcpRun {
    Seconds(f64),
    /// The share that was done when it was given up.
    GivenUp(f64),
    /// Why the kernel does not allow it.
    Refused(String),
}

impl TcpRuns {
    fn new(congestion: &'static str) -> Self {
        Self { congestion, runs: Vec::new() }
    }

    fn name(&self) -> String {
        format!("TCP {}", self.congestion.to_uppercase())
    }

    /// What was given up or refused once is not tried again.
    fn goes_on(&self) -> bool {
        self.runs.iter().all(|run| matches!(run, TcpRun::Seconds(_)))
    }

    fn refused(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| match run {
            TcpRun::Refused(why) => Some(why.as_str()),
            _ => None,
        })
    }

    fn baseline(&self, ours_s: f64) -> Option<Baseline> {
        let (mut all, mut given_up) = (Vec::new(), None);
        for run in &self.runs {
            match run {
                TcpRun::Seconds(seconds) => all.push(*seconds),
                TcpRun::GivenUp(share) => given_up = Some((*share, TCP_PATIENCE_S)),
                TcpRun::Refused(_) => return None,
            }
        }
        let seconds = given_up.is_none().then(|| Spread::of(&all));
        let ratio = seconds.map(|seconds| seconds.median / ours_s);
        Some(Baseline { name: self.name(), seconds, given_up, ratio })
    }
}

/// A link that is there as long as this is.
struct Emulator {
    name: String,
    kept: Option<Kept>,
}

impl Emulator {
    fn start(plan: &Plan, program: &Path, link: &Link, seed: u64) -> Result<Self> {
        let name = format!("grebe-bench-{}", std::process::id());
        // Its number is a C long that becomes part of a state: large ones are not worth a trap.
        let seed = (seed % (1 << 31)).to_string();
        let numbers =
            [link.rtt_ms / 2.0, link.rate_mbit, link.loss, link.loss_back].map(|number| number.to_string());
        let [delay, rate, loss, loss_back] = &numbers;
        let arguments = [
            "--name",
            &name,
            "--delay",
            delay,
            "--rate",
            rate,
            "--loss",
            loss,
            "--loss-back",
            loss_back,
            "--seed",
            &seed,
        ];
        let program = std::path::absolute(program).map_err(Error::io("find the emulator"))?;
        let kept = Kept::start((plan.spawn)(), "emulator", program, &arguments, &plan.cancel)?;
        // From here on it is tidied up, whatever happens.
        let mut emulator = Self { name, kept: Some(kept) };
        let (a, b) = (emulator.namespace(Side::A), emulator.namespace(Side::B));
        if let Some(kept) = &mut emulator.kept {
            kept.wait_until(|| is_up(&a, HOST_A) && is_up(&b, HOST_B))?;
        }
        Ok(emulator)
    }

    /// Sets both ends up for long distances, and says what could not be set.
    fn widen(&self, plan: &Plan) -> Result<Vec<String>> {
        let mut refused: Vec<String> = self.peer(plan, Side::A, "namespace", &Job::Widen)?.answer()?;
        refused.extend(self.peer(plan, Side::B, "namespace", &Job::Widen)?.answer::<Vec<String>>()?);
        refused.sort();
        refused.dedup();
        Ok(refused)
    }

    fn grebe(&self, plan: &Plan, room: &Room) -> Result<Sent> {
        let receive = Job::Receive { directory: room.arrivals(), host: HOST_B };
        let mut receiver = self.peer(plan, Side::B, "receiver", &receive)?;
        let send =
            Job::Send { file: room.file(), ticket: receiver.answer()?, device: Some(DEVICE.to_owned()) };
        let mut sender = self.peer(plan, Side::A, "sender", &send)?;
        let sent = sender.answer()?;
        receiver.answer::<()>()?;
        compare(room, "grebe")?;
        Ok(sent)
    }

    fn tcp(&self, plan: &Plan, room: &Room, link: &Link, congestion: &str) -> Result<TcpRun> {
        let receive = Job::TcpReceive { file: arrived(room), host: HOST_B, patience_s: TCP_PATIENCE_S };
        let mut receiver = self.peer(plan, Side::B, "TCP receiver", &receive)?;
        let send = Job::TcpSend {
            file: room.file(),
            to: receiver.answer()?,
            congestion: Some(congestion.to_owned()),
        };
        let mut sender = self.peer(plan, Side::A, "TCP sender", &send)?;
        match sender.answer::<()>() {
            Ok(()) => {}
            Err(Error::Process { reason, .. }) => return Ok(TcpRun::Refused(reason)),
            Err(error) => return Err(error),
        }
        let came_bytes = receiver.answer::<u64>()?;
        if came_bytes < link.file_bytes {
            drop((sender, receiver));
            std::fs::remove_file(arrived(room)).map_err(Error::io("remove a file that came in part"))?;
            return Ok(TcpRun::GivenUp(came_bytes as f64 / link.file_bytes as f64));
        }
        let seconds = sender.answer()?;
        compare(room, "TCP")?;
        Ok(TcpRun::Seconds(seconds))
    }

    /// A process of ours at one end of the link.
    fn peer(&self, plan: &Plan, side: Side, called: &'static str, job: &Job) -> Result<Peer> {
        let ours = (plan.spawn)();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(side)]).arg(ours.get_program()).args(ours.get_args());
        Peer::start(command, called, job, &plan.cancel)
    }

    fn namespace(&self, side: Side) -> String {
        let side = match side {
            Side::A => "a",
            Side::B => "b",
        };
        format!("{}-{side}", self.name)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // Interrupted, it removes both namespaces.
        drop(self.kept.take());
        for side in [Side::A, Side::B] {
            let namespace = self.namespace(side);
            if Path::new("/var/run/netns").join(&namespace).exists() {
                // It ended otherwise. What cannot be removed can only be left.
                let _ = quiet_ip(&["netns", "delete", &namespace]).status();
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Side {
    A,
    B,
}

fn is_up(namespace: &str, host: IpAddr) -> bool {
    let arguments = ["-n", namespace, "-oneline", "-4", "address", "show", "dev", DEVICE, "up"];
    let listed = quiet_ip(&arguments).stdout(Stdio::piped()).output();
    listed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(&host.to_string()))
}

fn quiet_ip(arguments: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn compare(room: &Room, way: &str) -> Result<()> {
    let came = arrived(room);
    content::compare(way, &room.file(), &came)?;
    std::fs::remove_file(&came).map_err(Error::io("remove a file that was compared"))
}

fn arrived(room: &Room) -> PathBuf {
    room.arrivals().join(FILE)
}

const HOST_A: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
const HOST_B: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));
const DEVICE: &str = "wan0";

/// TCP that takes longer is given up.
const TCP_PATIENCE_S: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_that_was_given_up_or_refused_is_not_tried_again() {
        let mut runs = TcpRuns::new("cubic");
        runs.runs.push(TcpRun::Seconds(8.0));
        assert!(runs.goes_on());
        let baseline = runs.baseline(4.0).unwrap();
        assert_eq!((baseline.name.as_str(), baseline.ratio), ("TCP CUBIC", Some(2.0)));
        runs.runs.push(TcpRun::GivenUp(0.25));
        assert!(!runs.goes_on());
        let baseline = runs.baseline(4.0).unwrap();
        assert_eq!((baseline.seconds, baseline.given_up), (None, Some((0.25, TCP_PATIENCE_S))));
        let refused = TcpRuns { runs: vec![TcpRun::Refused("no".to_owned())], ..TcpRuns::new("bbr") };
        assert!(!refused.goes_on() && refused.baseline(4.0).is_none() && refused.refused() == Some("no"));
    }

    #[test]
    fn a_program_that_is_not_there_is_said_before_anything_is_started() {
        let error = check(Path::new("/no/such/emulator")).unwrap_err().to_string();
        let expected = if is_root() { "no such program" } else { "needs" };
        assert!(error.contains("--wanlink") && error.contains(expected), "{error}");
    }
}
