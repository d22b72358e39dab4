//! The `grebe` command.
#![forbid(unsafe_code)]

mod cli;
mod command;
mod doctor;
mod face;
mod generator;
mod interrupt;
mod progress;
mod report;
mod sessions;
mod stream;
mod units;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use command::Ending;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ending = match cli.command.unwrap_or(Command::Demo(cli::Demo::default())) {
        Command::Sg(options) => command::sg::run(&options),
        Command::View(options) => command::view::run(&options),
        Command::Record(options) => command::record::run(&options),
        Command::Play(options) => command::play::run(&options),
        Command::Demo(options) => command::demo::run(&options),
        Command::Run(options) => command::run::run(&options),
        Command::Top(options) => command::top::run(&options),
        Command::Send(options) => command::send::run(&options),
        Command::Recv(options) => command::recv::run(&options),
        Command::Bench(options) => command::bench::run(&options),
        Command::Probe(options) => command::probe::run(&options),
        Command::Doctor(options) => command::doctor::run(&options),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "grebe", &mut std::io::stdout());
            Ok(Ending::Good)
        }
        Command::Man => command::man(),
    };
    match ending {
        Ok(Ending::Good) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("grebe: {}", command::one_line(&error));
            ExitCode::from(command::exit_status(&error))
        }
    }
}
