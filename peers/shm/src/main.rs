//! iceoryx2 beside grebe's shared memory, a Unix stream socket, a pipe and UDP, in turns: the same frames, chunks, checks, queue
//! lengths and fan-out, one process per consumer.
//!
//! `cargo run --release -- [ROUNDS] [SECONDS] [LABEL,LABEL]`. A consumer of iceoryx2 looks for samples as often as it can where the
//! stream runs freely, and every 50 us where it has a rate: without a wake-up of its own, which would cost a system call per
//! sample.

mod iceoryx;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use grebe_bench::shm::{self, Options};
use grebe_bench::{Launcher, Machine, Progress, Runs, markdown, peer_main};

use iceoryx::Iceoryx;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("peer") {
        return Ok(peer_main(Some(&Iceoryx))?);
    }
    let repeats: u16 = first.map_or(Ok(5), |text| text.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(0.5), |text| text.parse())?;
    let labels = arguments.next().unwrap_or_else(|| "1ch_1GSPS,4ch_1GSPS_fanout2,free_run".to_owned());
    let launcher = Launcher::new(|| {
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "peers-shm".into()));
        command.arg("peer");
        command
    });
    let options = Options {
        scenario: labels.split(',').map(str::to_owned).collect(),
        runs: Runs { duration: Duration::from_secs_f64(seconds), repeats },
        // A machine that is never near is measured as it is.
        machine: Machine { near: true, far: false, patience: Duration::from_secs(10) },
        launcher: Some(launcher),
        others: vec![Arc::new(Iceoryx)],
        ..Options::default()
    };
    let mut rows = Vec::new();
    shm::run(&options, &mut |progress| {
        if let Progress::Row(row) = progress {
            eprintln!("{}", row.line());
            rows.push(row.clone());
        }
    })?;
    println!("{}", markdown(&rows));
    Ok(())
}
