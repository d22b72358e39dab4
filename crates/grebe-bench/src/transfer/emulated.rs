//! Links between two network namespaces, which a program emulates: real processes, real sockets, real time.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Command, Stdio};

use super::link::{self, Link};
use super::options::Options;
use super::program::{Kept, find};
use super::room::Room;
use super::row::{LinkRow, Over, Sent, TcpRun};
use super::tasks::TransferTask;
use crate::canary;
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::row::{Progress, Row, Tell};

/// A row per link. The program is started anew for each run, with another seed.
pub(super) fn run(options: &Options, program: &Path, tell: Tell) -> Result<()> {
    check(program)?;
    for link in &link::choose(&options.links)? {
        let row = measure(options, program, link, tell)?;
        tell(Progress::Row(&row.row()));
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
            "--wanlink needs root, for network namespaces: sudo grebe bench transfer --wanlink {}",
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

fn measure(options: &Options, program: &Path, link: &Link, tell: Tell) -> Result<LinkRow> {
    let room = Room::new(options, link.file_bytes)?;
    let before = canary::read();
    let mut sent: Vec<Sent> = Vec::new();
    let mut tcp = ["bbr", "cubic"].map(|name| (format!("TCP {}", name.to_uppercase()), Vec::new()));
    for repeat in 0..options.repeats.max(1) {
        let doing = |what: &str| format!("link {}, {}: {what}, run {}", link.name, link.words(), repeat + 1);
        tell(Progress::Doing(&doing("the emulator")));
        let seed = options.seed.wrapping_add(repeat as u64);
        let emulator = Emulator::start(options, program, link, seed)?;
        let refused = emulator.widen()?;
        if repeat == 0 && !refused.is_empty() {
            let what = format!("link {}: room for TCP and silence of IPv6", link.name);
            tell(Progress::Row(&Row::left_out(&what, &refused.join(", "))));
        }
        tell(Progress::Doing(&doing("grebe")));
        sent.push(emulator.grebe(&room)?);
        for (name, runs) in &mut tcp {
            // What was given up or refused once is not tried again.
            if runs.iter().all(|run| matches!(run, TcpRun::Seconds(_))) {
                tell(Progress::Doing(&doing(name)));
                runs.push(emulator.tcp(&room, link, &name.trim_start_matches("TCP ").to_lowercase())?);
            }
        }
    }
    for (name, runs) in &tcp {
        if let Some(TcpRun::Refused(why)) = runs.last() {
            tell(Progress::Row(&Row::left_out(name, why)));
        }
    }
    let machine = Some((before, canary::read()));
    Ok(LinkRow::of(link, Over::Emulator, &sent, &tcp, TCP_PATIENCE_S, machine))
}

/// A link that is there as long as this is.
struct Emulator<'a> {
    options: &'a Options,
    name: String,
    program: Option<Kept>,
}

impl<'a> Emulator<'a> {
    fn start(options: &'a Options, program: &Path, link: &Link, seed: u64) -> Result<Self> {
        let name = format!("grebe-bench-{}", std::process::id());
        // Its number is a C long that becomes part of a state: large ones are not worth a trap.
        let seed = (seed % (1 << 31)).to_string();
        let numbers =
            [link.rtt_ms / 2.0, link.rate_mbit, link.loss, link.loss_back].map(|number| number.to_string());
        let [delay, rate, loss, loss_back] = &numbers;
        let arguments = [
            ["--name", &name],
            ["--delay", delay],
            ["--rate", rate],
            ["--loss", loss],
            ["--loss-back", loss_back],
            ["--seed", &seed],
        ];
        let program = std::path::absolute(program).map_err(Error::io("find the emulator"))?;
        let command = options.launcher.command();
        let kept = Kept::start(command, "emulator", program, arguments.as_flattened(), &options.cancel)?;
        // From here on it is tidied up, whatever happens.
        let mut emulator = Self { options, name, program: Some(kept) };
        let (a, b) = (emulator.namespace(Side::A), emulator.namespace(Side::B));
        if let Some(program) = &mut emulator.program {
            program.wait_until(|| is_up(&a, HOST_A) && is_up(&b, HOST_B))?;
        }
        Ok(emulator)
    }

    /// Sets both ends up for long distances, and says what could not be set.
    fn widen(&self) -> Result<Vec<String>> {
        let mut refused: Vec<String> = Vec::new();
        for side in [Side::A, Side::B] {
            refused.extend(self.peer(side, "namespace", &TransferTask::Widen)?.answer::<Vec<String>>()?);
        }
        refused.sort();
        refused.dedup();
        Ok(refused)
    }

    fn grebe(&self, room: &Room) -> Result<Sent> {
        let receive = TransferTask::Receive { directory: room.arrivals(), host: HOST_B };
        let mut receiver = self.peer(Side::B, "receiver", &receive)?;
        let (ticket, device) = (receiver.answer()?, Some(DEVICE.to_owned()));
        let send = TransferTask::Send { file: room.file(), ticket, device };
        let sent = self.peer(Side::A, "sender", &send)?.answer()?;
        receiver.answer::<()>()?;
        room.check_arrived("grebe")?;
        Ok(sent)
    }

    fn tcp(&self, room: &Room, link: &Link, congestion: &str) -> Result<TcpRun> {
        let receive =
            TransferTask::TcpReceive { file: room.arrived(), host: HOST_B, patience_s: TCP_PATIENCE_S };
        let mut receiver = self.peer(Side::B, "TCP receiver", &receive)?;
        let (to, congestion) = (receiver.answer()?, Some(congestion.to_owned()));
        let send = TransferTask::TcpSend { file: room.file(), to, congestion };
        let mut sender = self.peer(Side::A, "TCP sender", &send)?;
        match sender.answer::<()>() {
            Ok(()) => {}
            Err(Error::Peer { reason, .. }) => return Ok(TcpRun::Refused(reason)),
            Err(error) => return Err(error),
        }
        let came_bytes = receiver.answer::<u64>()?;
        if came_bytes < link.file_bytes {
            drop((sender, receiver));
            std::fs::remove_file(room.arrived()).map_err(Error::io("remove a file that came in part"))?;
            return Ok(TcpRun::GivenUp(came_bytes as f64 / link.file_bytes as f64));
        }
        let seconds = sender.answer()?;
        room.check_arrived("TCP")?;
        Ok(TcpRun::Seconds(seconds))
    }

    /// A process of ours at one end of the link.
    fn peer(&self, side: Side, called: &'static str, task: &TransferTask) -> Result<Peer> {
        let ours = self.options.launcher.command();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(side)]).arg(ours.get_program()).args(ours.get_args());
        task.start(command, called, &self.options.cancel)
    }

    fn namespace(&self, side: Side) -> String {
        let side = match side {
            Side::A => "a",
            Side::B => "b",
        };
        format!("{}-{side}", self.name)
    }
}

impl Drop for Emulator<'_> {
    fn drop(&mut self) {
        // Interrupted, it removes both namespaces.
        drop(self.program.take());
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

const HOST_A: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
const HOST_B: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));
const DEVICE: &str = "wan0";

/// TCP that takes longer is given up.
const TCP_PATIENCE_S: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_said_before_anything_is_started() {
        let error = check(Path::new("/no/such/emulator")).unwrap_err().to_string();
        let expected = if is_root() { "no such program" } else { "needs" };
        assert!(error.contains("--wanlink") && error.contains(expected), "{error}");
    }
}
