//! `grebe bench`: performance of this machine, with baselines.

mod printer;

use std::process::Command;

use anyhow::Result;
use grebe_bench::{Launcher, peer_main, shm, udp};

use self::printer::show;
use crate::cli::{Bench, WhichBench};
use crate::ending::Ending;
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
        WhichBench::Peer => {
            peer_main(None)?;
            Ok(Ending::Good)
        }
    }
}

/// Starts this command as another process of a bench, optionally through another program.
fn launcher(through: Option<&str>) -> Launcher {
    let through: Vec<String> = through.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    Launcher::new(move || {
        // Systems that do not report the running program: the one on the PATH.
        let this = this_command().unwrap_or_else(|_| Command::new("grebe"));
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
