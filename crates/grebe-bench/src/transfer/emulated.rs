//! Links between two network namespaces, which a program emulates: real processes, real sockets, real time.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Command, Stdio};

use super::link::Link;
use super::options::{Options, TransferTask};
use super::programs::{Kept, find};
use super::room::Room;
use super::row::{LinkRuns, Sent, TcpRun};
use crate::canary;
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::row::{Progress, Row, Tell};

/// A row per link. The program is started anew for each run, with another seed.
pub(super) fn run(options: &Options, program: &Path, links: &[Link], tell: Tell) -> Result<()> {
    check(program).map_err(|what| Error::Failed(format!("--wanlink {what}")))?;
    links.iter().try_for_each(|link| measure(options, program, link, tell))
}

/// A missing program is an error before the start.
fn check(program: &Path) -> std::result::Result<(), String> {
    #[cfg(unix)]
    let is_root = rustix::process::geteuid().is_root();
    #[cfg(not(unix))]
    let is_root = false;
    let named = program.display();
    if !cfg!(target_os = "linux") {
        Err("needs the network namespaces of Linux".to_owned())
    } else if !is_root {
        Err(format!("needs root, for network namespaces: sudo grebe-bench transfer --wanlink {named}"))
    } else if find("ip").is_err() {
        Err("needs the ip command: on Debian, apt-get install iproute2".to_owned())
    } else if !program.is_file() {
        Err(format!(
            "{named}: program not found; it is called with --name, --delay, --rate, --loss, --loss-back and --seed"
        ))
    } else {
        Ok(())
    }
}

fn measure(options: &Options, program: &Path, link: &Link, tell: Tell) -> Result<()> {
    let room = Room::new(options, link.file_bytes)?;
    let before = canary::read();
    let mut sent = Vec::new();
    let mut tcp = [("TCP BBR", Vec::new()), ("TCP CUBIC", Vec::new())];
    for repeat in 0..options.repeats {
        let doing = |what: &str| format!("link {}, {}: {what}, run {}", link.name, link.words(), repeat + 1);
        tell(Progress::Doing(&doing("the emulator")));
        let emulator = Emulator::start(options, program, link, options.seed.wrapping_add(repeat.into()))?;
        let refused = emulator.widen()?;
        if repeat == 0 && !refused.is_empty() {
            let what = format!("link {}: room for TCP and silence of IPv6", link.name);
            tell(Progress::Row(&Row::left_out(&what, &refused.join(", "))));
        }
        tell(Progress::Doing(&doing("grebe")));
        sent.push(emulator.grebe(&room)?);
        for (name, runs) in &mut tcp {
            // A program that gave up or was refused once is not run again.
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
    let runs = LinkRuns { link, over: "emulator", sent, tcp, patience_s: TCP_PATIENCE_S, machine };
    tell(Progress::Row(&runs.row()));
    Ok(())
}

/// A link that exists until this is dropped.
struct Emulator<'a> {
    options: &'a Options,
    /// Where the sender and the receiver are.
    namespaces: [String; 2],
    program: Option<Kept>,
}

const SENDER: usize = 0;
const RECEIVER: usize = 1;

impl<'a> Emulator<'a> {
    fn start(options: &'a Options, program: &Path, link: &Link, seed: u64) -> Result<Self> {
        let name = format!("grebe-bench-{}", std::process::id());
        let numbers = [
            ("--delay", link.rtt_ms / 2.0),
            ("--rate", link.rate_mbit),
            ("--loss", link.loss),
            ("--loss-back", link.loss_back),
            // Its number is a C long that becomes part of a state: large ones are not worth a trap.
            ("--seed", (seed % (1 << 31)) as f64),
        ];
        let mut arguments = vec!["--name".to_owned(), name.clone()];
        arguments
            .extend(numbers.iter().flat_map(|(option, number)| [(*option).to_owned(), number.to_string()]));
        let program = std::path::absolute(program).map_err(Error::io("find the emulator"))?;
        let kept = Kept::start(options, "emulator", &program, &arguments)?;
        // From here on, every exit cleans up.
        let namespaces = ["a", "b"].map(|side| format!("{name}-{side}"));
        let mut emulator = Self { options, namespaces, program: Some(kept) };
        let [a, b] = emulator.namespaces.clone();
        if let Some(program) = &mut emulator.program {
            program.wait_until(|| is_up(&a, HOST_A) && is_up(&b, HOST_B))?;
        }
        Ok(emulator)
    }

    /// Tunes both ends for long distances; returns the settings that failed.
    fn widen(&self) -> Result<Vec<String>> {
        let mut refused: Vec<String> = Vec::new();
        for side in [SENDER, RECEIVER] {
            refused.extend(self.peer(side, "namespace", TransferTask::Widen)?.answer::<Vec<String>>()?);
        }
        refused.sort();
        refused.dedup();
        Ok(refused)
    }

    fn grebe(&self, room: &Room) -> Result<Sent> {
        let receive = TransferTask::Receive { directory: room.arrivals(), host: HOST_B };
        let mut receiver = self.peer(RECEIVER, "receiver", receive)?;
        let (ticket, device) = (receiver.answer()?, Some(DEVICE.to_owned()));
        let send = TransferTask::Send { file: room.file(), ticket, device };
        let sent = self.peer(SENDER, "sender", send)?.answer()?;
        receiver.answer::<()>()?;
        room.check_arrived("grebe")?;
        Ok(sent)
    }

    fn tcp(&self, room: &Room, link: &Link, congestion: &str) -> Result<TcpRun> {
        let receive =
            TransferTask::TcpReceive { file: room.arrived(), host: HOST_B, patience_s: TCP_PATIENCE_S };
        let mut receiver = self.peer(RECEIVER, "TCP receiver", receive)?;
        let (to, congestion) = (receiver.answer()?, Some(congestion.to_owned()));
        let send = TransferTask::TcpSend { file: room.file(), to, congestion };
        let mut sender = self.peer(SENDER, "TCP sender", send)?;
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
    fn peer(&self, side: usize, called: &'static str, task: TransferTask) -> Result<Peer> {
        let ours = self.options.launcher()?.command();
        let mut command = Command::new("ip");
        let namespace = &self.namespaces[side];
        command.args(["netns", "exec", namespace]).arg(ours.get_program()).args(ours.get_args());
        Peer::start(command, called, &task, &self.options.cancel)
    }
}

impl Drop for Emulator<'_> {
    fn drop(&mut self) {
        // Interrupted, it removes both namespaces.
        drop(self.program.take());
        for namespace in &self.namespaces {
            if Path::new("/var/run/netns").join(namespace).exists() {
                // It ended otherwise. A namespace that cannot be removed stays.
                let _ = quiet_ip(&["netns", "delete", namespace]).status();
            }
        }
    }
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
    fn a_missing_program_is_an_error_before_anything_starts() {
        let error = run(&Options::default(), Path::new("/no/such/emulator"), &[], &mut |_| {}).unwrap_err();
        let error = error.to_string();
        let is_root = !error.contains("needs");
        assert!(error.contains("--wanlink") && (!is_root || error.contains("program not found")), "{error}");
    }
}
