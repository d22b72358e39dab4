//! The `grebe` command, for the program of this name and for programs in other languages that contain it.
//!
//! ```text
//!  main -> run -> command (a module per command) -> show, generator, transfer, search, ssh -> graph -> output, interrupt, ending, cli
//! ```
//!
//! Programs use the library [`grebe`](https://docs.rs/grebe) instead.
#![forbid(unsafe_code)]
// A closed or full standard output must not panic: `output` writes.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod command;
mod ending;
mod generator;
mod graph;
mod hidden_secrets;
mod interrupt;
mod output;
mod receiver;
mod report;
mod saved_range;
mod search;
mod show;
mod this_build;
mod this_command;
mod transfer;
mod units;

use std::ffi::OsString;

use anyhow::Result;
use clap::FromArgMatches;

use crate::cli::{Cli, Command};
use crate::ending::Ending;

/// Runs a command and returns the exit status. The first word is the name of the program.
///
/// It owns the process: it catches SIGINT and SIGTERM, and a second SIGINT ends the process at once. `starts_by`
/// starts this command in another process, if the running program is not the command.
pub fn run(words: impl IntoIterator<Item = OsString>, starts_by: Option<Vec<OsString>>) -> u8 {
    starts_by.into_iter().for_each(this_command::starts_by);
    interrupt::survive_file_limits();
    let words: Vec<OsString> = words.into_iter().collect();
    report::on_panic(&words);
    // Also for words that clap refuses.
    let as_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let command = words.get(1).and_then(|word| word.to_str()).map(str::to_owned);
    let read = cli::command().try_get_matches_from(words);
    let read = read.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match read {
        Ok(read) => read,
        Err(error) => return ending::refuse(error, command.as_deref(), as_json),
    };
    let replaces = matches.subcommand_name().and_then(cli::replaces);
    match dispatch(cli) {
        Ok(Ending::Good) => 0,
        Ok(Ending::Partial) => ending::PARTIAL,
        Ok(Ending::Interrupted) => ending::INTERRUPTED,
        Ok(Ending::Reported(status)) => status,
        Err(error) => ending::fail(&error, as_json, replaces),
    }
}

fn dispatch(cli: Cli) -> Result<Ending> {
    match cli.command.unwrap_or(Command::Demo(cli::Demo::default())) {
        Command::Sg(options) => command::stream::sg(&options),
        Command::View(options) => command::view::run(&options),
        Command::Serve(options) => command::serve::run(&options),
        Command::Record(options) => command::record::run(&options),
        Command::Save(options) => command::save::run(&options),
        Command::Play(options) => command::play::run(&options),
        Command::Convert(options) => command::convert::run(&options),
        Command::Repair(options) => command::repair::run(&options),
        Command::Info(options) => command::info::run(&options),
        Command::Annotate(options) => command::annotate::run(&options),
        Command::Find(options) => command::find::run(&options),
        Command::Demo(options) => command::demo::run(&options),
        Command::Run(options) => command::run::run(&options),
        Command::Top(options) => command::top::run(&options),
        Command::Send(options) => command::send::run(&options),
        Command::Recv(options) => command::recv::run(&options),
        Command::Relay(options) => command::relay::run(&options),
        Command::Cp(options) => command::cp::run(&options),
        Command::Bench(options) => command::bench::run(options),
        Command::Probe(options) => command::probe::run(&options),
        Command::Devices(options) => command::devices::run(&options),
        Command::Ls(options) => command::ls::run(&options),
        Command::Doctor(options) => command::doctor::run(&options),
        Command::Completions { shell } => command::completions::run(shell),
        Command::Man { all: Some(folder), .. } => command::completions::all_pages(&folder),
        Command::Man { command, all: None } => command::completions::man(&command),
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
