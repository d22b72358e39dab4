//! The `grebe` command.
//!
//! ```text
//!  main -> command (a module per command) -> show, generator, transfer -> graph -> output, interrupt, ending, cli
//! ```
#![forbid(unsafe_code)]
// A closed or full standard output must not panic: `output` writes.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod command;
mod ending;
mod generator;
mod graph;
mod interrupt;
mod output;
mod show;
mod transfer;
mod units;

use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches;

use crate::cli::{Cli, Command};
use crate::ending::Ending;
use crate::output::note;

fn main() -> ExitCode {
    let cli = Cli::from_arg_matches(&cli::command().get_matches()).unwrap_or_else(|error| error.exit());
    match run(cli) {
        Ok(Ending::Good) => ExitCode::SUCCESS,
        Ok(Ending::Partial) => ExitCode::from(ending::PARTIAL),
        Ok(Ending::Interrupted) => ExitCode::from(ending::INTERRUPTED),
        Err(error) if ending::is_cancelled(&error) => ExitCode::from(ending::INTERRUPTED),
        Err(error) => {
            note!("grebe: {}", ending::one_line(&error));
            ExitCode::from(ending::exit_status(&error))
        }
    }
}

fn run(cli: Cli) -> Result<Ending> {
    match cli.command.unwrap_or(Command::Demo(cli::Demo::default())) {
        Command::Sg(options) => command::stream::sg(&options),
        Command::View(options) => command::view::run(&options),
        Command::Record(options) => command::stream::record(&options),
        Command::Play(options) => command::stream::play(&options),
        Command::Convert(options) => command::stream::convert(&options),
        Command::Demo(options) => command::demo::run(&options),
        Command::Run(options) => command::run::run(&options),
        Command::Top(options) => command::top::run(&options),
        Command::Send(options) => command::send::run(&options),
        Command::Recv(options) => command::recv::run(&options),
        Command::Bench(options) => command::bench::run(options),
        Command::Probe(options) => command::probe::run(&options),
        Command::Doctor(options) => command::doctor::run(&options),
        Command::Completions { shell } => command::completions::run(shell),
        Command::Man { command } => command::completions::man(&command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        cli::command().debug_assert();
    }
}
