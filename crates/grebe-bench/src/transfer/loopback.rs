//! Two processes on this machine: grebe, the plainest TCP connection from file to file, and what is installed besides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::iperf::Iperf;
use super::job::{Job, LOOPBACK, Sent};
use super::peer::Peer;
use super::row::{CopyRow, Row, size};
use super::scp::Scp;
use super::{Plan, Told, content};
use crate::canary;
use crate::flow::{Pairs, Spread};
use crate::{Error, Result};

/// A row a way, that of grebe first; rounds of all of them in turn.
pub(super) fn run(plan: &Plan, tell: &mut dyn FnMut(Told)) -> Result<()> {
    tell(Told::Doing("writing the file"));
    let room = Room::new(plan, plan.size_bytes)?;
    let mut leave_out = |what: &str, why: String| {
        tell(Told::Row(&Row::LeftOut { what: what.to_owned(), why }));
    };
    let mut ways = vec![Way::Grebe, Way::Tcp];
    match Iperf::find() {
        Ok(iperf) => ways.push(Way::Iperf(iperf)),
        Err(why) => leave_out("iperf3", why),
    }
    match Scp::start(plan, &room)? {
        Ok(scp) => ways.push(Way::Scp(scp)),
        Err(why) => leave_out("scp", why),
    }
    let before = canary::read();
    let mut seconds: Vec<Vec<f64>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.repeats.max(1) {
        for step in 0..ways.len() {
            // Who is first changes from round to round.
            let at = (round + step) % ways.len();
            tell(Told::Doing(&format!("{} on this machine, round {}", ways[at].name(), round + 1)));
            seconds[at].push(ways[at].run(plan, &room)?);
        }
    }
    let after = canary::read();
    let does_in = format!("{} to {}", room.words(), room.words());
    for (at, way) in ways.iter().enumerate() {
        let rates: Vec<f64> = seconds[at].iter().map(|s| plan.size_bytes as f64 * 8.0 / s / 1e9).collect();
        let mut ratios = BTreeMap::new();
        if at == 0 {
            for (other, theirs) in ways.iter().zip(&seconds).skip(1) {
                // Theirs first: who takes longer is slower.
                let pairs = Pairs { ours: theirs.clone(), baseline: seconds[0].clone() };
                ratios.insert(other.name().to_owned(), pairs.ratio());
            }
        }
        let row = CopyRow {
            way: way.name().to_owned(),
            does: way.does(&does_in),
            size_bytes: plan.size_bytes,
            gbit_per_s: Spread::of(&rates),
            runs: rates.len(),
            ratios,
            mood_before: before,
            mood_after: after,
        };
        tell(Told::Row(&Row::Copy(row)));
    }
    Ok(())
}

enum Way {
    Grebe,
    Tcp,
    Iperf(Iperf),
    Scp(Scp),
}

impl Way {
    fn name(&self) -> &'static str {
        match self {
            Way::Grebe => "grebe",
            Way::Tcp => "TCP",
            Way::Iperf(_) => "iperf3",
            Way::Scp(_) => "scp",
        }
    }

    fn does(&self, files: &str) -> String {
        match self {
            Way::Grebe => format!("{files}, encrypted, hashed at both ends"),
            Way::Tcp => format!("{files}, read and written, nothing else"),
            Way::Iperf(_) => "TCP, no file, no hash, no encryption".to_owned(),
            Way::Scp(_) => format!("{files}, encrypted, with its login"),
        }
    }

    /// Seconds for the file, which is compared and removed afterwards.
    fn run(&self, plan: &Plan, room: &Room) -> Result<f64> {
        let came = room.arrivals().join(FILE);
        let seconds = match self {
            Way::Grebe => grebe(plan, room)?.seconds,
            Way::Tcp => tcp(plan, room)?,
            Way::Iperf(iperf) => return iperf.run(plan),
            Way::Scp(scp) => scp
                .copy(&room.file(), &came, plan)?
                .map_err(|reason| Error::Process { side: "scp", reason })?,
        };
        content::compare(self.name(), &room.file(), &came)?;
        std::fs::remove_file(&came).map_err(Error::io("remove a file that was compared"))?;
        Ok(seconds)
    }
}

fn grebe(plan: &Plan, room: &Room) -> Result<Sent> {
    let receive = Job::Receive { directory: room.arrivals(), host: LOOPBACK };
    let mut receiver = Peer::start((plan.spawn)(), "receiver", &receive, &plan.cancel)?;
    let send = Job::Send { file: room.file(), ticket: receiver.answer()?, device: None };
    let mut sender = Peer::start((plan.spawn)(), "sender", &send, &plan.cancel)?;
    let sent = sender.answer()?;
    receiver.answer::<()>()?;
    Ok(sent)
}

fn tcp(plan: &Plan, room: &Room) -> Result<f64> {
    let file = room.arrivals().join(FILE);
    let receive = Job::TcpReceive { file, host: LOOPBACK, patience_s: 600.0 };
    let mut receiver = Peer::start((plan.spawn)(), "TCP receiver", &receive, &plan.cancel)?;
    let send = Job::TcpSend { file: room.file(), to: receiver.answer()?, congestion: None };
    let mut sender = Peer::start((plan.spawn)(), "TCP sender", &send, &plan.cancel)?;
    sender.answer::<()>()?;
    let seconds = sender.answer()?;
    receiver.answer::<u64>()?;
    Ok(seconds)
}

/// The directory of a run, with the file to send; goes with everything in it, even where this process is killed.
pub(super) struct Room {
    directory: TempDir,
    _guard: Peer,
}

impl Room {
    /// Looks for room for the file twice: as it is sent, and as it comes.
    pub fn new(plan: &Plan, file_bytes: u64) -> Result<Self> {
        let needed = 2 * file_bytes + file_bytes / 20;
        let memory = Path::new("/dev/shm");
        let parent = match &plan.directory {
            Some(directory) => directory.clone(),
            None if free_bytes(memory).is_some_and(|free| free > needed) => memory.to_owned(),
            None => std::env::temp_dir(),
        };
        if let Some(free) = free_bytes(&parent).filter(|&free| free < needed) {
            return Err(Error::Needs {
                what: format!(
                    "{} has {} free, and the file needs {}: give another --dir or a smaller --size",
                    parent.display(),
                    size(free),
                    size(needed)
                ),
            });
        }
        let made = tempfile::Builder::new().prefix("grebe-bench-").tempdir_in(&parent);
        let directory = made.map_err(|error| Error::Needs {
            what: format!("cannot make a directory in {}: {error}", parent.display()),
        })?;
        let guard = Job::Guard { directory: directory.path().to_owned() };
        let room = Self { _guard: Peer::start((plan.spawn)(), "guard", &guard, &plan.cancel)?, directory };
        std::fs::create_dir(room.arrivals()).map_err(Error::io("make a directory for what comes"))?;
        content::fill(&room.file(), file_bytes, plan.seed)?;
        Ok(room)
    }

    /// The file to send.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join(FILE)
    }

    /// Where it comes to.
    pub fn arrivals(&self) -> PathBuf {
        self.directory.path().join("came")
    }

    /// Where keys are made.
    pub fn keys(&self) -> PathBuf {
        self.directory.path().join("keys")
    }

    /// Where that is, for people.
    fn words(&self) -> String {
        self.directory.path().parent().map_or(String::new(), |parent| parent.display().to_string())
    }
}

#[cfg(unix)]
fn free_bytes(directory: &Path) -> Option<u64> {
    let of = rustix::fs::statvfs(directory).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize))
}

/// Not asked here: what does not fit fails when it is written.
#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// The name of the file, where it is sent from and where it comes to.
pub(super) const FILE: &str = "random.bin";
