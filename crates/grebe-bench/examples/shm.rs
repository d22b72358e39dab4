//! `cargo run --release -p grebe-bench --example shm -- [--parts shm,pipe,ingress] [--scenario L,L] [--frame-size B] [--chunk-size B] [--chunks N]
//! [--rest N] [--queue N] [--free-queue N] [--duration S] [--repeats N] [--tick-us N] [--no-baseline] [--no-pin] [--near] [--patience S] [--table|--json]`

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use grebe_bench::shm::{self, Part, Plan, Report, Scenario, Technique};
use grebe_bench::udp;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut plan = Plan::new(|| peer("peer"));
    plan.baselines = vec![Technique::UnixStream, Technique::Pipe, Technique::Udp];
    plan.spawn_udp = Some(Arc::new(|| peer("peer-udp")));
    let (mut parts, mut labels) = (vec![Part::Shm], Vec::<String>::new());
    let (mut table, mut json) = (false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "peer" => return Ok(shm::peer_main()?),
            "peer-udp" => return Ok(udp::peer_main()?),
            "--parts" => parts = value()?.split(',').map(part).collect::<Result<_, _>>()?,
            "--scenario" => labels = value()?.split(',').map(str::to_owned).collect(),
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
            "--no-pin" => plan.pin = false,
            "--near" => plan.mood = Some(grebe_bench::canary::Mood::Near),
            "--patience" => plan.patience = Duration::from_secs_f64(value()?.parse()?),
            "--table" => table = true,
            "--json" => json = true,
            _ => return Err(format!("unknown argument {name}").into()),
        }
    }
    plan.scenarios = Scenario::choose(&parts, &labels)?;
    let report = Report::of(shm::run(&plan, |row| eprintln!("{}", row.line()))?);
    if table {
        println!("{}\n{}", shm::markdown(&report.rows), report.markdown());
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    Ok(())
}

fn part(name: &str) -> Result<Part, String> {
    match name {
        "shm" => Ok(Part::Shm),
        "pipe" => Ok(Part::Pipe),
        "ingress" => Ok(Part::Ingress),
        _ => Err(format!("unknown part {name}")),
    }
}

fn peer(argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "shm".into()));
    command.arg(argument);
    command
}
