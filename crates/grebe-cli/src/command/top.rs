//! `grebe top`: monitors running instances of this user or of a lab, and finds the slowest stage.

mod processes;
mod screen;
mod table;

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use self::processes::{Process, Processes};
use crate::cli::Top;
use crate::ending::Ending;
use crate::interrupt;
use crate::output::{self, note};

pub(crate) fn run(options: &Top) -> Result<Ending> {
    options.lab.configure();
    let processes = Processes::new(options.of.clone())?;
    match (options.once, options.json) {
        (true, _) => once(processes, options.json),
        (false, true) => lines(processes),
        (false, false) if io::stdout().is_terminal() && !output::is_dumb() => Ok(screen::run(processes)?),
        (false, false) => {
            let what = if output::is_dumb() { "a terminal whose TERM is dumb" } else { "not a terminal" };
            Err(anyhow!("standard output is {what}: give --once for a table, or --json"))
        }
    }
}

/// Prints the first report of each process.
fn once(mut processes: Processes, as_json: bool) -> Result<Ending> {
    let until = Instant::now() + PATIENCE;
    let mut found = processes.poll();
    while processes.is_waiting(&found) && Instant::now() < until {
        std::thread::sleep(GLANCE);
        found = processes.poll();
    }
    if found.is_empty() {
        let nobody = processes.nobody();
        if !processes.has_all() {
            return Err(anyhow!("{nobody}"));
        }
        note!("{nobody}");
        return Ok(Ending::Good);
    }
    if as_json {
        return found
            .iter()
            .filter_map(Process::json)
            .try_for_each(|json| output::json(&json))
            .map(|()| Ending::Good);
    }
    output::text(&output::in_locale(table::plain(&found)))?;
    Ok(Ending::Good)
}

/// Prints all reports until Ctrl-C or a closed pipe.
fn lines(mut processes: Processes) -> Result<Ending> {
    interrupt::catch();
    let mut told: HashMap<_, f64> = HashMap::new();
    let mut has_waited = false;
    while !interrupt::is_pending() {
        let found = processes.poll();
        if found.is_empty() && !has_waited {
            note!("grebe: {}; waiting", processes.nobody());
            has_waited = true;
        }
        told.retain(|key, _| found.iter().any(|one| one.key() == *key));
        for one in &found {
            let (Some(report), Some(json)) = (&one.watched.report, one.json()) else { continue };
            if told.insert(one.key(), report.uptime_s) != Some(report.uptime_s) {
                output::json(&json)?;
            }
        }
        if output::is_reader_gone() {
            return Ok(Ending::Good);
        }
        std::thread::sleep(GLANCE);
    }
    Ok(Ending::Interrupted)
}

/// Reports come once a second, the first after a second.
const PATIENCE: Duration = Duration::from_millis(2_500);
const GLANCE: Duration = Duration::from_millis(50);
