//! `grebe bench`: what this machine can do, beside the plainest way to do it.

mod all;
mod printer;

use std::process::Command;

use anyhow::Result;
use grebe_bench::{Launcher, flow, peer_main, shm, transfer, udp, view, zenoh};

use self::printer::show;
use crate::cli::{Bench, WhichBench};
use crate::ending::Ending;
use crate::interrupt;
use crate::this_command::this_command;

pub(crate) fn run(bench: Bench) -> Result<Ending> {
    match bench.which {
        WhichBench::Udp { mut options, peer_through, results } => {
            options.launcher = Some(launcher(peer_through.as_deref()));
            show(&results, |tell| udp::run(&options, tell))
        }
        WhichBench::Shm { mut options, results } => {
            options.launcher = Some(launcher(None));
            show(&results, |tell| shm::run(&options, tell))
        }
        WhichBench::Flow { options, results } => show(&results, |tell| flow::run(&options, tell)),
        WhichBench::View { options, results } => show(&results, |tell| view::run(&options, grebe, tell)),
        WhichBench::Transfer { mut options, results } => {
            options.launcher = Some(launcher(None));
            options.cancel = interrupt::cancel();
            show(&results, |tell| transfer::run(&options, tell))
        }
        WhichBench::Zenoh { mut options, results } => {
            options.launcher = Some(launcher(None));
            show(&results, |tell| zenoh::run(&options, tell))
        }
        WhichBench::All { results } => all::run(&results),
        WhichBench::Peer => {
            peer_main(None)?;
            Ok(Ending::Good)
        }
    }
}

/// Starts this command again, as another process of a bench; through another program where one is named.
fn launcher(through: Option<&str>) -> Launcher {
    let through: Vec<String> = through.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    Launcher::new(move || {
        let this = grebe();
        let mut command = match &*through {
            [] => this,
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(this.get_program()).args(this.get_args());
                command
            }
        };
        command.args(["bench", "peer"]);
        command
    })
}

/// This command; where the system does not say what it runs, the one that a shell finds.
fn grebe() -> Command {
    this_command().unwrap_or_else(|_| Command::new("grebe"))
}
