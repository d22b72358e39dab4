//! `grebe bench`: what this machine can do, beside the plainest way to do it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use grebe_bench::udp::{self, Plan, RunResult, SCENARIOS, Scenario, Spawn, Technique};
use grebe_bench::{flow, shm};
use serde::Serialize;

use super::{Ending, Usage};
use crate::cli::{Bench, Buffers};

pub fn run(options: &Bench) -> Result<Ending> {
    if !options.transfer.is_empty() {
        return super::bench_transfer::run(options);
    }
    if let Some(name) = super::bench_transfer::own_option(options) {
        return Err(Usage(format!("{name} is an option of --transfer")).into());
    }
    if options.all {
        return super::bench_all::run(options);
    }
    if options.shm || options.pipe || options.ingress {
        return between_processes(options);
    }
    if options.peer {
        udp::peer_main()?;
        return Ok(Ending::Good);
    }
    if options.udp_recv {
        return receive(options);
    }
    if !options.flow.is_empty() {
        return runtime(options);
    }
    if options.view {
        return super::bench_view::run(options);
    }
    let plan = plan(options)?;
    if options.reach {
        return reach(options, &plan);
    }
    let results = udp::run(&plan, |result| eprintln!("{}", result.line()))?;
    if options.table {
        println!("{}", udp::markdown(&results));
    }
    write_json(options, &results)?;
    Ok(Ending::Good)
}

fn plan(options: &Bench) -> Result<Plan> {
    let usage = |error: String| anyhow::Error::from(Usage(error));
    let labels = match options.channels {
        Some(channels) => vec![format!("{channels}ch_max")],
        None => options.scenario.clone(),
    };
    let scenarios = match labels.as_slice() {
        [all] if all == "all" => SCENARIOS.to_vec(),
        labels => labels
            .iter()
            .map(|label| Scenario::by_label(label).map_err(|error| usage(error.to_string())))
            .collect::<Result<_>>()?,
    };
    let technique = |name: &String| {
        let known = Technique::ALL.into_iter().find(|technique| technique.name() == name);
        known.ok_or_else(|| usage(format!("'{name}' is no technique: use one_call, mmsg or gso")))
    };
    Ok(Plan {
        scenarios,
        datagram_bytes: options.datagram_size.clone(),
        bursts: options.udp_burst.iter().map(|&burst| usize::from(burst)).collect(),
        techniques: options.technique.iter().map(technique).collect::<Result<_>>()?,
        privileged: match options.buffers {
            Buffers::Privileged => vec![true],
            Buffers::Plain => vec![false],
            Buffers::Both => vec![true, false],
        },
        duration: options.duration,
        repeats: usize::from(options.repeats),
        latency: options.latency,
        spawn: Spawn::Process(Arc::new(peer("--udp"))),
        ..Plan::default()
    })
}

/// This command again, as another process of that kind of run.
pub fn peer(kind: &'static str) -> impl Fn() -> Command {
    move || {
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "grebe".into()));
        command.args(["bench", kind, "--peer"]);
        command
    }
}

fn reach(options: &Bench, plan: &Plan) -> Result<Ending> {
    let mut best: Vec<RunResult> = Vec::new();
    for &bytes in &plan.datagram_bytes {
        for &privileged in &plan.privileged {
            let one = Plan { datagram_bytes: vec![bytes], privileged: vec![privileged], ..plan.clone() };
            let reach = udp::reach(&one, plan.scenarios[0], 50.0, 5)?;
            match &reach.best {
                Some(result) => eprintln!("highest without loss: {}", result.line()),
                None => eprintln!("{bytes} bytes: even the lowest rate lost frames"),
            }
            best.extend(reach.best);
        }
    }
    if options.table {
        println!("{}", udp::markdown(&best));
    }
    write_json(options, &best)?;
    Ok(Ending::Good)
}

fn runtime(options: &Bench) -> Result<Ending> {
    let by_name = |name: &String| flow::Bench::by_name(name).map_err(|error| Usage(error.to_string()));
    let benches = match options.flow.as_slice() {
        [all] if all == "all" => flow::Bench::ALL.to_vec(),
        named => named.iter().map(by_name).collect::<Result<_, _>>()?,
    };
    let plan = flow::Plan { benches, duration: options.duration, repeats: usize::from(options.repeats) };
    let rows = flow::run(&plan, |row| eprintln!("{}", row.line()))?;
    if options.table {
        println!("{}", flow::markdown(&rows));
    }
    write_json(options, &rows)?;
    Ok(Ending::Good)
}

fn receive(options: &Bench) -> Result<Ending> {
    let mut all = Vec::new();
    for senders in [1, 2, 4, 8] {
        let [single, batched] = udp::amortise(senders, options.duration)?;
        eprintln!(
            "{senders} senders: one a call {:.0}k/s, batches of 32 {:.0}k/s ({:.2}x, {:.1} datagrams a call)",
            single.recv_per_sec / 1e3,
            batched.recv_per_sec / 1e3,
            batched.recv_per_sec / single.recv_per_sec,
            batched.per_call,
        );
        all.push([single, batched]);
    }
    write_json(options, &all)?;
    Ok(Ending::Good)
}

/// Shared memory, pipes, and the ways into a program.
fn between_processes(options: &Bench) -> Result<Ending> {
    if options.peer {
        shm::peer_main()?;
        return Ok(Ending::Good);
    }
    let asked = [
        (options.shm, shm::Part::Shm),
        (options.pipe, shm::Part::Pipe),
        (options.ingress, shm::Part::Ingress),
    ];
    let parts: Vec<_> = asked.into_iter().filter_map(|(is_asked, part)| is_asked.then_some(part)).collect();
    let labels = match options.scenario.as_slice() {
        // What the option says by itself is a scenario of UDP.
        [only] if only == "all" || only == "1ch_max" => &[],
        labels => labels,
    };
    let scenarios = shm::Scenario::choose(&parts, labels)
        .map_err(|error| anyhow::Error::from(Usage(error.to_string())))?;
    let plan = shm::Plan {
        scenarios,
        baselines: vec![shm::Technique::UnixStream, shm::Technique::Pipe, shm::Technique::Udp],
        duration: options.duration,
        repeats: usize::from(options.repeats),
        spawn_udp: Some(Arc::new(peer("--udp"))),
        ..shm::Plan::new(peer("--shm"))
    };
    let report = shm::Report::of(shm::run(&plan, |row| eprintln!("{}", row.line()))?);
    if options.table {
        println!("{}\n{}", shm::markdown(&report.rows), report.markdown());
    } else {
        eprint!("{}", report.markdown());
    }
    write_json(options, &report)?;
    Ok(Ending::Good)
}

pub fn write_json(options: &Bench, results: &impl Serialize) -> Result<()> {
    let Some(path) = &options.json else { return Ok(()) };
    let json = serde_json::to_string_pretty(results)?;
    if path == Path::new("-") {
        println!("{json}");
        return Ok(());
    }
    fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))
}
