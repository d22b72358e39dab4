//! One module a command, and how each ends.

pub mod bench;
pub mod bench_all;
pub mod bench_transfer;
pub mod bench_view;
pub mod demo;
pub mod doctor;
pub mod play;
pub mod probe;
pub mod record;
pub mod recv;
pub mod run;
pub mod send;
pub mod sg;
pub mod top;
pub mod transfer;
pub mod view;

use std::time::Duration;

use anyhow::Result;
use clap::CommandFactory;
use grebe_flow::{Graph, Snapshot, telemetry};
use grebe_shm::ShmError;
use grebe_stages::StagesError;
use grebe_transfer::Error as Transfer;

use crate::cli::Cli;
use crate::interrupt;
use crate::progress::Progress;

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Good,
    Interrupted,
}

/// Runs a graph until it ends by itself or the user ends it, with a line of progress where a person looks on. `grebe top`
/// shows it under `name`.
pub fn drive(name: &str, graph: Graph, progress: &Progress) -> Result<(Snapshot, Ending)> {
    interrupt::catch();
    let running = graph.start()?;
    // A graph that cannot be watched runs all the same.
    let _published = telemetry::publish(&running, name).ok();
    while !running.wait_timeout(Duration::from_millis(50)) {
        if interrupt::is_pending() {
            let snapshot = running.stop()?;
            progress.clear();
            return Ok((snapshot, Ending::Interrupted));
        }
        progress.show(&running.snapshot());
    }
    progress.clear();
    Ok((running.wait()?, Ending::Good))
}

/// Ends the command when standard input is closed: its owner is gone.
pub fn tether() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        interrupt::raise();
    });
}

/// The manual page, on standard output.
pub fn man() -> Result<Ending> {
    clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?;
    Ok(Ending::Good)
}

/// An error and its causes, without those that only repeat what stands before them.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !line.ends_with(&cause) && !line.contains(&cause) {
            if !line.is_empty() {
                line.push_str(": ");
            }
            line.push_str(&cause);
        }
    }
    line
}

/// The exit status that tells a script what went wrong.
pub fn exit_status(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        match cause.downcast_ref::<StagesError>() {
            Some(StagesError::Idle { .. }) => return 3,
            Some(StagesError::Uri { .. } | StagesError::Setting { .. }) => return 2,
            _ => {}
        }
        match cause.downcast_ref::<ShmError>() {
            Some(ShmError::ProducerGone { .. }) => return 3,
            Some(ShmError::Name { .. } | ShmError::Setting { .. }) => return 2,
            _ => {}
        }
        match cause.downcast_ref::<grebe_transfer::Error>() {
            Some(Transfer::NoAnswer { .. } | Transfer::Silent { .. } | Transfer::Expired) => return 3,
            Some(Transfer::Ticket { .. }) => return 2,
            _ => {}
        }
        if cause.is::<Usage>() {
            return 2;
        }
    }
    1
}

/// A combination of options that makes no sense.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::Error::msg("disk full").context("recorder: disk full").context("cannot record");
        assert_eq!(one_line(&error), "cannot record: recorder: disk full");
    }
}
