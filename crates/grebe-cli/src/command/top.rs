//! `grebe top`: what the running grebes of this user do, and which stage holds each up.

mod screen;
mod table;

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use grebe_flow::telemetry::{Watch, Watched};

use super::Ending;
use crate::cli::Top;
use crate::interrupt;

pub fn run(options: &Top) -> Result<Ending> {
    let processes = Processes { watch: Watch::new()?, of: options.of.clone() };
    match (options.once, options.json) {
        (true, _) => once(processes, options.json),
        (false, true) => lines(processes),
        (false, false) if io::stdout().is_terminal() => Ok(screen::run(processes)?),
        (false, false) => Err(anyhow!("standard output is no terminal: give --once for a table, or --json")),
    }
}

/// The processes that publish and that were asked for.
struct Processes {
    watch: Watch,
    /// A name or a process id; nothing: all.
    of: Option<String>,
}

impl Processes {
    fn look(&mut self) -> Vec<Watched> {
        let mut all = self.watch.look();
        if let Some(of) = &self.of {
            all.retain(|one| is_asked_for(of, one.pid, &one.name));
        }
        all
    }

    fn nobody(&self) -> String {
        let who = self.of.as_ref().map_or("grebe".to_owned(), |of| format!("grebe called '{of}'"));
        format!("no {who} is running under this user; start one, for example: grebe sg --rate 1M")
    }
}

/// `sg` asks for `sg`, and for the second graph of a process, `sg-2`.
fn is_asked_for(of: &str, pid: u32, name: &str) -> bool {
    let number = name.strip_prefix(of).and_then(|rest| rest.strip_prefix('-'));
    of == pid.to_string() || of == name || number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Everybody's first word, within the time that takes.
fn once(mut processes: Processes, as_json: bool) -> Result<Ending> {
    let until = Instant::now() + PATIENCE;
    let mut found = processes.look();
    while found.iter().any(|one| one.report.is_none()) && Instant::now() < until {
        std::thread::sleep(GLANCE);
        found = processes.look();
    }
    if found.is_empty() {
        return Err(anyhow!("{}", processes.nobody()));
    }
    let mut text = String::new();
    if as_json {
        for report in found.iter().filter_map(|one| one.report.as_ref()) {
            text += &serde_json::to_string(report)?;
            text.push('\n');
        }
    } else {
        text = table::plain(&found);
    }
    print(&text)
}

/// Every report of everybody, until the user or the reader has enough.
fn lines(mut processes: Processes) -> Result<Ending> {
    interrupt::catch();
    let mut told: HashMap<(u32, String), f64> = HashMap::new();
    let mut has_waited = false;
    while !interrupt::is_pending() {
        let found = processes.look();
        if found.is_empty() && !has_waited {
            eprintln!("grebe: {}; waiting", processes.nobody());
            has_waited = true;
        }
        told.retain(|(pid, name), _| found.iter().any(|one| one.pid == *pid && one.name == *name));
        for one in &found {
            let Some(report) = &one.report else { continue };
            if told.insert((one.pid, one.name.clone()), report.uptime_s) != Some(report.uptime_s)
                && print(&(serde_json::to_string(report)? + "\n"))? == Ending::Interrupted
            {
                return Ok(Ending::Good);
            }
        }
        std::thread::sleep(GLANCE);
    }
    Ok(Ending::Interrupted)
}

/// Prints; a reader that has closed the pipe has what it wanted.
fn print(text: &str) -> Result<Ending> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Ending::Good),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Ending::Interrupted),
        Err(error) => Err(error.into()),
    }
}

/// Reports come once a second; the first of a graph that has just started takes as long.
const PATIENCE: Duration = Duration::from_millis(2_500);
const GLANCE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_asked_for_by_id_or_name() {
        assert!(
            is_asked_for("42", 42, "sg") && is_asked_for("sg", 42, "sg") && is_asked_for("sg", 42, "sg-2")
        );
        assert!(
            !is_asked_for("4", 42, "sg") && !is_asked_for("sg", 42, "sgx") && !is_asked_for("s", 42, "sg")
        );
    }
}
