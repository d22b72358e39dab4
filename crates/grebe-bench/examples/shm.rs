//! `cargo run --release -p grebe-bench --example shm -- [--scenario L,L] [--frame-size B] [--chunk-size B] [--chunks N]
//! [--rest N] [--queue N] [--free-queue N] [--duration S] [--repeats N] [--tick-us N] [--no-baseline] [--near] [--patience S] [--table|--json]`

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use grebe_bench::shm::{self, Plan, Scenario, Technique};
use grebe_bench::udp;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut plan = Plan::new(|| peer("peer"));
    plan.baselines = vec![Technique::UnixStream, Technique::Pipe, Technique::Udp];
    plan.spawn_udp = Some(Arc::new(|| peer("peer-udp")));
    let (mut table, mut json) = (false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "peer" => return Ok(shm::peer_main()?),
            "peer-udp" => return Ok(udp::peer_main()?),
            "--scenario" => {
                plan.scenarios = value()?.split(',').map(Scenario::by_label).collect::<Result<_, _>>()?;
            }
            "--frame-size" => plan.frame_bytes = value()?.parse()?,
            "--chunk-size" => plan.chunk_bytes = value()?.parse()?,
            "--chunks" => plan.chunks = value()?.parse()?,
            "--rest" => plan.rest_chunks = value()?.parse()?,
            "--queue" => plan.queue_batches = value()?.parse()?,
            "--free-queue" => plan.free_queue_batches = value()?.parse()?,
            "--duration" => plan.duration = Duration::from_secs_f64(value()?.parse()?),
            "--repeats" => plan.repeats = value()?.parse()?,
            "--tick-us" => plan.tick = Duration::from_micros(value()?.parse()?),
            "--no-baseline" => plan.baselines.clear(),
            "--near" => plan.mood = Some(grebe_bench::canary::Mood::Near),
            "--patience" => plan.patience = Duration::from_secs_f64(value()?.parse()?),
            "--table" => table = true,
            "--json" => json = true,
            _ => return Err(format!("unknown argument {name}").into()),
        }
    }
    let rows = shm::run(&plan, |row| eprintln!("{}", row.line()))?;
    if table {
        println!("{}", shm::markdown(&rows));
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(())
}

fn peer(argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "shm".into()));
    command.arg(argument);
    command
}
