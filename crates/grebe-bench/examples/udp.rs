//! `cargo run --release -p grebe-bench --example udp -- [--scenario L,L] [--datagram-size B,B] [--udp-burst N,N]
//! [--technique one_call,mmsg,gso] [--duration S] [--repeats N] [--plain|--both] [--latency-us N] [--table|--json] [--thread]
//! [--host ADDRESS_OF_THE_RECEIVER] [--peer-through "ip netns exec NAME"]`

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use grebe_bench::udp::{self, Fault, Plan, Scenario, Spawn, Technique};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut plan = Plan { spawn: Spawn::Process(Arc::new(|| peer(&[]))), ..Plan::default() };
    let (mut table, mut json) = (false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "peer" => return Ok(udp::peer_main()?),
            "--scenario" => {
                plan.scenarios = value()?.split(',').map(Scenario::by_label).collect::<Result<_, _>>()?;
            }
            "--datagram-size" => plan.datagram_bytes = list(&value()?)?,
            "--udp-burst" => plan.bursts = list(&value()?)?,
            "--technique" => {
                plan.techniques = value()?
                    .split(',')
                    .map(|name| {
                        Technique::ALL.into_iter().find(|t| t.name() == name).ok_or("no such technique")
                    })
                    .collect::<Result<_, _>>()?;
            }
            "--duration" => plan.duration = Duration::from_secs_f64(value()?.parse()?),
            "--repeats" => plan.repeats = value()?.parse()?,
            "--latency-us" => plan.latency = Duration::from_micros(value()?.parse()?),
            "--recv-buffer" => plan.recv_buffer_bytes = value()?.parse()?,
            "--host" => plan.host = value()?.parse()?,
            "--peer-through" => {
                let through: Vec<String> = value()?.split(' ').map(str::to_owned).collect();
                plan.spawn = Spawn::Process(Arc::new(move || peer(&through)));
            }
            "--fault" => {
                plan.fault = Some(match value()?.as_str() {
                    "stale" => Fault::Stale,
                    "swapped" => Fault::Swapped,
                    _ => Fault::Shifted,
                });
            }
            "--near" => plan.mood = Some(grebe_bench::canary::Mood::Near),
            "--far" => plan.mood = Some(grebe_bench::canary::Mood::Far),
            "--patience" => plan.patience = Duration::from_secs_f64(value()?.parse()?),
            "--plain" => plan.privileged = vec![false],
            "--both" => plan.privileged = vec![true, false],
            "--no-baseline" => plan.baseline = false,
            "--thread" => plan.spawn = Spawn::Thread,
            "--table" => table = true,
            "--json" => json = true,
            _ => return Err(format!("unknown argument {name}").into()),
        }
    }
    let results = udp::run(&plan, |result| eprintln!("{}", result.line()))?;
    if table {
        println!("{}", udp::markdown(&results));
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    }
    Ok(())
}

/// The receiving process, started by another program where one is named.
fn peer(through: &[String]) -> Command {
    let program = std::env::current_exe().unwrap_or_else(|_| "udp".into());
    let mut command = match through {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    command.arg("peer");
    command
}

fn list(text: &str) -> Result<Vec<usize>, std::num::ParseIntError> {
    text.split(',').map(str::parse).collect()
}
