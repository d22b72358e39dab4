//! Two processes on this machine: grebe, a simple TCP connection from file to file, and other installed programs.

use std::collections::BTreeMap;
use std::time::Duration;

use grebe_frame::SampleFormat;
use serde_json::json;

use super::options::{LOOPBACK, Options, TransferTask};
use super::programs::{Scp, find, iperf};
use super::room::{Room, size_words};
use super::row::Sent;
use crate::canary;
use crate::error::{Error, Result};
use crate::limit::{self, Handling};
use crate::pairs::{Pairs, range};
use crate::row::{Progress, Row, Tell, percent};
use crate::runs::Spread;
use crate::stream::{Stream, Work};

/// A way to hand the file over: its name, what it does, and seconds for it.
type Method<'a> = (&'static str, String, Box<dyn Fn() -> Result<f64> + 'a>);

/// A row per way, that of grebe first; rounds of all of them in turn.
pub(super) fn run(options: &Options, tell: Tell) -> Result<()> {
    tell(Progress::Doing("writing the file"));
    let room = &Room::new(options, options.file_size as u64)?;
    let files = format!("{} to {}", room.words(), room.words());
    let mut ways: Vec<Method> = vec![
        ("grebe", format!("{files}, encrypted, hashed at both ends"), Box::new(|| grebe(options, room))),
        ("TCP", format!("{files}, read and written, nothing else"), Box::new(|| tcp(options, room))),
    ];
    match find("iperf3") {
        Ok(path) => {
            let does = "TCP, no file, no hash, no encryption".to_owned();
            ways.push(("iperf3", does, Box::new(move || iperf(&path, options))));
        }
        Err(error) => tell(Progress::Row(&Row::left_out("iperf3", &error.to_string()))),
    }
    match Scp::start(options, room) {
        Ok(scp) => {
            let copy = move || scp.copy(&room.file(), &room.arrived(), options);
            ways.push(("scp", format!("{files}, encrypted, with its login"), Box::new(copy)));
        }
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        Err(error) => tell(Progress::Row(&Row::left_out("scp", &error.to_string()))),
    }
    let before = canary::read();
    let mut seconds: Vec<Vec<f64>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..usize::from(options.repeats) {
        for step in 0..ways.len() {
            // The order changes from round to round.
            let at = (round + step) % ways.len();
            let (name, _, run) = &ways[at];
            tell(Progress::Doing(&format!("{name} on this machine, round {}", round + 1)));
            seconds[at].push(run()?);
            if *name != "iperf3" {
                room.check_arrived(name)?;
            }
        }
    }
    let limit_gbit_per_s = limit_gb_per_s()? * 8.0;
    let after = canary::read();
    let size = options.file_size as u64;
    let title =
        format!("{} from one process of this machine to another, every byte compared", size_words(size));
    for (at, (name, does, _)) in ways.iter().enumerate() {
        let rate = Spread::over(&seconds[at], |s| size as f64 * 8.0 / s / 1e9);
        // Theirs first: who takes longer is slower.
        let ratio = |theirs: &[f64]| Pairs { ours: theirs.to_vec(), baseline: seconds[0].clone() }.ratio();
        let others = ways.iter().zip(&seconds).skip(1).take(if at == 0 { ways.len() } else { 0 });
        let ratios: BTreeMap<&str, f64> = others.map(|(way, theirs)| (way.0, ratio(theirs))).collect();
        let json = json!({
            "kind": "copy",
            "way": name,
            "does": does,
            "size_bytes": size,
            "gbit_per_s": rate,
            "runs": seconds[at].len(),
            "ratios": ratios,
            "limit_gbit_per_s": limit_gbit_per_s,
            "machine_before": before,
            "machine_after": after,
        });
        let times: Vec<_> = ratios.iter().map(|(other, ratio)| format!("{ratio:.2} {other}")).collect();
        let row = Row::new(&title, &json)
            .name("program", name)
            .range("Gbit/s", range(&rate))
            .cell("of limit", percent(Some(rate.median / limit_gbit_per_s)))
            .cell("runs", seconds[at].len())
            .text("does", does)
            .cell("times", times.join(", "))
            .machine(Some((before, after)), "");
        tell(Progress::Row(&row));
    }
    Ok(())
}

/// Bytes that are written on one core, copied out on another, and compared there.
fn limit_gb_per_s() -> Result<f64> {
    let stream =
        Stream { label: "copy", format: SampleFormat::I16, channels: 1, block: None, target_msps: None };
    let block = stream.block_for(LIMIT_FRAME_BYTES, 32)?;
    let run = limit::run(stream, block, Duration::from_secs(1), &[Work::Compare], Handling::Copy)?;
    Ok(run.gb_per_sec())
}

fn grebe(options: &Options, room: &Room) -> Result<f64> {
    let receive = TransferTask::Receive { directory: room.arrivals(), host: LOOPBACK };
    let mut receiver = options.start("receiver", receive)?;
    let send = TransferTask::Send { file: room.file(), ticket: receiver.answer()?, device: None };
    let sent: Sent = options.start("sender", send)?.answer()?;
    receiver.answer::<()>()?;
    Ok(sent.seconds)
}

fn tcp(options: &Options, room: &Room) -> Result<f64> {
    let receive = TransferTask::TcpReceive { file: room.arrived(), host: LOOPBACK, patience_s: 600.0 };
    let mut receiver = options.start("TCP receiver", receive)?;
    let send = TransferTask::TcpSend { file: room.file(), to: receiver.answer()?, congestion: None };
    let mut sender = options.start("TCP sender", send)?;
    sender.answer::<()>()?;
    let seconds = sender.answer()?;
    receiver.answer::<u64>()?;
    Ok(seconds)
}

/// As a datagram of the largest size.
const LIMIT_FRAME_BYTES: usize = 65_000;
