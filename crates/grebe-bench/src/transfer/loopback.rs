//! Two processes on this machine: grebe, the plainest TCP connection from file to file, and what is installed besides.

use std::collections::BTreeMap;

use super::iperf::Iperf;
use super::options::Options;
use super::room::Room;
use super::row::{CopyRow, Sent};
use super::scp::Scp;
use super::tasks::{LOOPBACK, TransferTask};
use crate::canary;
use crate::error::{Error, Result};
use crate::row::{Progress, Row, Tell};
use crate::stats::{Pairs, Spread};

/// A row per program, that of grebe first; rounds of all of them in turn.
pub(super) fn run(options: &Options, tell: Tell) -> Result<()> {
    tell(Progress::Doing("writing the file"));
    let room = Room::new(options, options.size_bytes)?;
    let mut leave_out = |what: &str, why: String| tell(Progress::Row(&Row::left_out(what, &why)));
    let mut programs = vec![Program::Grebe, Program::Tcp];
    match Iperf::find() {
        Ok(iperf) => programs.push(Program::Iperf(iperf)),
        Err(why) => leave_out("iperf3", why),
    }
    match Scp::start(options, &room)? {
        Ok(scp) => programs.push(Program::Scp(scp)),
        Err(why) => leave_out("scp", why),
    }
    let before = canary::read();
    let mut seconds: Vec<Vec<f64>> = programs.iter().map(|_| Vec::new()).collect();
    for round in 0..options.repeats.max(1) {
        for step in 0..programs.len() {
            // Who is first changes from round to round.
            let at = (round + step) % programs.len();
            tell(Progress::Doing(&format!("{} on this machine, round {}", programs[at].name(), round + 1)));
            seconds[at].push(programs[at].run(options, &room)?);
        }
    }
    let after = canary::read();
    let does_in = format!("{} to {}", room.words(), room.words());
    for (at, program) in programs.iter().enumerate() {
        let rates: Vec<f64> = seconds[at].iter().map(|s| options.size_bytes as f64 * 8.0 / s / 1e9).collect();
        let mut ratios = BTreeMap::new();
        if at == 0 {
            for (other, theirs) in programs.iter().zip(&seconds).skip(1) {
                // Theirs first: who takes longer is slower.
                let pairs = Pairs { ours: theirs.clone(), baseline: seconds[0].clone() };
                ratios.insert(other.name().to_owned(), pairs.ratio());
            }
        }
        let row = CopyRow {
            way: program.name().to_owned(),
            does: program.does(&does_in),
            size_bytes: options.size_bytes,
            gbit_per_s: Spread::of(&rates),
            runs: rates.len(),
            ratios,
            machine_before: before,
            machine_after: after,
        };
        tell(Progress::Row(&row.row()));
    }
    Ok(())
}

enum Program {
    Grebe,
    Tcp,
    Iperf(Iperf),
    Scp(Scp),
}

impl Program {
    fn name(&self) -> &'static str {
        match self {
            Program::Grebe => "grebe",
            Program::Tcp => "TCP",
            Program::Iperf(_) => "iperf3",
            Program::Scp(_) => "scp",
        }
    }

    fn does(&self, files: &str) -> String {
        match self {
            Program::Grebe => format!("{files}, encrypted, hashed at both ends"),
            Program::Tcp => format!("{files}, read and written, nothing else"),
            Program::Iperf(_) => "TCP, no file, no hash, no encryption".to_owned(),
            Program::Scp(_) => format!("{files}, encrypted, with its login"),
        }
    }

    /// Seconds for the file, which is compared and removed afterwards.
    fn run(&self, options: &Options, room: &Room) -> Result<f64> {
        let seconds = match self {
            Program::Grebe => grebe(options, room)?.seconds,
            Program::Tcp => tcp(options, room)?,
            Program::Iperf(iperf) => return iperf.run(options),
            Program::Scp(scp) => scp
                .copy(&room.file(), &room.arrived(), options)?
                .map_err(|reason| Error::peer("scp", reason))?,
        };
        room.check_arrived(self.name())?;
        Ok(seconds)
    }
}

fn grebe(options: &Options, room: &Room) -> Result<Sent> {
    let receive = TransferTask::Receive { directory: room.arrivals(), host: LOOPBACK };
    let mut receiver = receive.start(options.launcher.command(), "receiver", &options.cancel)?;
    let send = TransferTask::Send { file: room.file(), ticket: receiver.answer()?, device: None };
    let mut sender = send.start(options.launcher.command(), "sender", &options.cancel)?;
    let sent = sender.answer()?;
    receiver.answer::<()>()?;
    Ok(sent)
}

fn tcp(options: &Options, room: &Room) -> Result<f64> {
    let receive = TransferTask::TcpReceive { file: room.arrived(), host: LOOPBACK, patience_s: 600.0 };
    let mut receiver = receive.start(options.launcher.command(), "TCP receiver", &options.cancel)?;
    let send = TransferTask::TcpSend { file: room.file(), to: receiver.answer()?, congestion: None };
    let mut sender = send.start(options.launcher.command(), "TCP sender", &options.cancel)?;
    sender.answer::<()>()?;
    let seconds = sender.answer()?;
    receiver.answer::<u64>()?;
    Ok(seconds)
}
