//! iceoryx2 beside grebe's shared memory, a Unix stream socket, a pipe and UDP, in turns: the same frames, chunks, checks, queue
//! lengths and fan-out, one process a consumer.
//!
//! `cargo run --release -- [ROUNDS] [SECONDS] [LABEL,LABEL]`. A consumer of iceoryx2 looks for samples as often as it can where the stream runs
//! freely, and every 50 us where it has a rate: without a wake-up of its own, which would cost a system call a sample.

mod iceoryx;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use grebe_bench::canary::{self, Mood};
use grebe_bench::shm::{self, Part, Plan, Row, Scenario, Technique};
use grebe_bench::udp;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    match first.as_deref() {
        Some("peer") => return Ok(shm::peer_main()?),
        Some("peer-udp") => return Ok(udp::peer_main()?),
        Some("peer-iceoryx") => return iceoryx::consume(),
        _ => {}
    }
    let rounds: usize = first.map_or(Ok(5), |text| text.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(0.5), |text| text.parse())?;
    let labels = arguments.next().unwrap_or_else(|| "1ch_1GSPS,4ch_1GSPS_fanout2,free_run".to_owned());
    let labels: Vec<&str> = labels.split(',').collect();
    let mut table = Vec::new();
    for scenario in Scenario::choose(&[Part::Shm], &labels)? {
        let plan = Plan {
            scenarios: vec![scenario],
            baselines: vec![Technique::UnixStream, Technique::Pipe, Technique::Udp],
            duration: Duration::from_secs_f64(seconds),
            repeats: 1,
            pin: true,
            spawn_udp: Some(Arc::new(|| this("peer-udp"))),
            ..Plan::new(|| this("peer"))
        };
        let mut runs: Vec<Vec<Row>> = Vec::new();
        for _ in 0..rounds {
            wait_for_near();
            let mut round = shm::run(&plan, |_| {})?;
            round.push(iceoryx::run(&plan, scenario, || this("peer-iceoryx"))?);
            runs.resize(round.len(), Vec::new());
            round.into_iter().zip(&mut runs).for_each(|(row, runs)| runs.push(row));
        }
        let mut medians: Vec<Row> = runs.into_iter().filter_map(Row::median).collect();
        if let Some((grebe, others)) = medians.split_first_mut() {
            grebe.compare(others);
        }
        medians.iter().for_each(|row| eprintln!("{}", row.line()));
        table.extend(medians);
    }
    println!("{}", shm::markdown(&table));
    Ok(())
}

/// A few seconds at most: the mood of a machine that is never near is far.
fn wait_for_near() {
    for _ in 0..40 {
        if canary::read().mood == Mood::Near {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn this(argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "peers-shm".into()));
    command.arg(argument);
    command
}
