//! `grebe bench`: what this machine can do, beside the plainest way to do it.

mod all;
mod printer;

use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use grebe_bench::canary::MachineState;
use grebe_bench::{Launcher, Turns, flow, peer_main, shm, transfer, udp, view};

use self::printer::Printer;
use crate::cli::{
    Bench, BenchFlow, BenchShm, BenchTransfer, BenchUdp, BenchView, Buffers, Machine, WhichBench,
};
use crate::ending::{Ending, Usage};

pub(crate) fn run(bench: &Bench) -> Result<Ending> {
    match &bench.which {
        WhichBench::Udp(options) => run_udp(options),
        WhichBench::Shm(options) => run_shm(options),
        WhichBench::Flow(options) => run_flow(options),
        WhichBench::View(options) => run_view(options),
        WhichBench::Transfer(options) => run_transfer(options),
        WhichBench::All(options) => all::run(options),
        WhichBench::Peer => {
            peer_main()?;
            Ok(Ending::Good)
        }
    }
}

fn run_udp(options: &BenchUdp) -> Result<Ending> {
    let udp = udp::Options {
        scenarios: options.scenario.clone(),
        datagram_bytes: options.datagram_size.clone(),
        bursts: options.udp_burst.iter().map(|&burst| usize::from(burst)).collect(),
        techniques: options.technique.clone(),
        privileged: match options.buffers {
            Buffers::Privileged => vec![true],
            Buffers::Plain => vec![false],
            Buffers::Both => vec![true, false],
        },
        duration: options.runs.duration,
        turns: turns(options.runs.repeats, &options.machine),
        baseline: !options.no_baseline,
        latency: options.latency,
        recv_buffer_bytes: options.recv_buffer,
        launcher: Some(launcher(options.peer_through.as_deref())),
        host: options.host,
        others: Vec::new(),
    };
    let (duration, repeats) = (udp.duration, udp.turns.repeats);
    Printer::show(&options.results, |tell| match (options.recv, options.reach) {
        (true, _) => udp::receive_calls(duration, repeats, &[], tell),
        (_, true) => udp::reach(&udp, tell),
        _ => udp::run(&udp, tell),
    })
}

fn run_shm(options: &BenchShm) -> Result<Ending> {
    let shm = shm::Options {
        parts: options.parts.clone(),
        scenarios: options.scenario.clone(),
        baselines: !options.no_baseline,
        frame_bytes: options.frame_size,
        chunk_bytes: options.chunk_size,
        chunks: options.chunks,
        rest_chunks: options.rest,
        queue_batches: options.queue,
        free_queue_batches: options.free_queue,
        duration: options.runs.duration,
        turns: turns(options.runs.repeats, &options.machine),
        tick: options.tick,
        pin: !options.no_pin,
        ..shm::Options::new(launcher(None))
    };
    Printer::show(&options.results, |tell| shm::run(&shm, tell))
}

fn run_flow(options: &BenchFlow) -> Result<Ending> {
    let flow = flow::Options {
        parts: options.parts.clone(),
        duration: options.runs.duration,
        repeats: usize::from(options.runs.repeats),
    };
    Printer::show(&options.results, |tell| flow::run(&flow, tell))
}

fn run_view(options: &BenchView) -> Result<Ending> {
    let view = view::Options {
        grebe: std::env::current_exe().context("cannot find the grebe command itself")?,
        duration: options.duration,
        all_rates: options.all_rates,
    };
    Printer::show(&options.results, |tell| view::run(&view, tell))
}

fn run_transfer(options: &BenchTransfer) -> Result<Ending> {
    if options.size == Some(0) {
        return Err(Usage("--size 0: give at least a byte".into()).into());
    }
    let defaults = transfer::Options::new(launcher(None));
    let transfer = transfer::Options {
        parts: options.parts.clone(),
        links: options.only.clone(),
        drawn: options.links.map_or(defaults.drawn, usize::from),
        seed: options.seed,
        repeats: usize::from(options.repeats),
        size_bytes: options.size.map_or(defaults.size_bytes, |bytes| bytes as u64),
        directory: options.dir.clone(),
        emulator: options.wanlink.clone(),
        cancel: crate::interrupt::cancel(),
        ..defaults
    };
    Printer::show(&options.results, |tell| transfer::run(&transfer, tell))
}

fn turns(repeats: u16, machine: &Machine) -> Turns {
    let near = machine.near.then_some(MachineState::Near);
    let state = near.or(machine.far.then_some(MachineState::Far));
    Turns { repeats: usize::from(repeats), state, patience: machine.patience }
}

/// Starts this command again, as another process of a bench; through another program where one is named.
fn launcher(through: Option<&str>) -> Launcher {
    let through: Arc<[String]> = through.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    Launcher::new(move || {
        let this = std::env::current_exe().unwrap_or_else(|_| "grebe".into());
        let mut command = match &*through {
            [] => Command::new(this),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(this);
                command
            }
        };
        command.args(["bench", "peer"]);
        command
    })
}
