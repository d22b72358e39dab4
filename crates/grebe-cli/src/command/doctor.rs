//! `grebe doctor`: what this machine can do for grebe, what limits it, and how to fix that. Nothing here changes anything.

mod devices;
mod disk;
mod display;
mod local;
mod serial;
mod system;
mod udp;

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;

use crate::cli::Doctor;
use crate::ending::Ending;
use crate::output::{self, out};

pub(crate) fn run(options: &Doctor) -> Result<Ending> {
    if let Some(folder) = &options.disk {
        return disk::run(folder, options.size, options.json);
    }
    let checks = examine();
    if options.json {
        output::json(&serde_json::to_string_pretty(&checks)?)?;
    } else if options.fix {
        for command in fixes(&checks) {
            out!("{command}")?;
        }
    } else {
        output::text(&table(&checks))?;
    }
    Ok(Ending::Good)
}

/// The commands that fix what can be fixed, each once.
fn fixes(checks: &[Check]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    checks.iter().filter_map(|check| check.fix.as_deref()).filter(|command| seen.insert(*command)).collect()
}

fn table(checks: &[Check]) -> String {
    let mut text = String::new();
    let mut area = "";
    for check in checks {
        if check.area != area {
            area = check.area;
            text += &format!("{}{area}\n", if text.is_empty() { "" } else { "\n" });
        }
        let state = match check.state {
            State::Ok => "ok     ",
            State::Limited => "limited",
            State::Missing => "missing",
        };
        text += &format!("  {state}  {}: {}\n", check.name, check.found);
        if let Some(costs) = &check.costs {
            text += &format!("           {costs}\n");
        }
        if let Some(fix) = &check.fix {
            text += &format!("           fixed by: {fix}\n");
        }
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let (limited, missing) = (count(State::Limited), count(State::Missing));
    text += &match (limited, missing) {
        (0, 0) => "\nNothing holds this machine back.\n".to_owned(),
        _ => format!(
            "\n{limited} limited, {missing} missing; grebe does without each of them. Nothing was changed.\n"
        ),
    };
    text
}

/// How good one thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As good as it gets.
    Ok,
    /// It works, below what the machine could do.
    Limited,
    /// Not there: what needs it does without, or says so.
    Missing,
}

/// The result of looking at one thing.
#[derive(Debug, Clone, Serialize)]
struct Check {
    /// What the thing is for: `machine`, `udp`, `local`, `devices`, `scope`, `tools`.
    area: &'static str,
    /// What it is.
    name: &'static str,
    state: State,
    /// What was found.
    found: String,
    /// What the limit costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    costs: Option<String>,
    /// The command that fixes it, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// Looks at everything; takes about a second.
fn examine() -> Vec<Check> {
    let mut checks = system::checks();
    checks.extend(udp::checks());
    checks.extend(local::checks());
    checks.extend(devices::checks());
    checks.extend(serial::checks());
    checks.extend(display::checks());
    checks
}

impl Check {
    fn ok(area: &'static str, name: &'static str, found: impl Into<String>) -> Self {
        Self { area, name, state: State::Ok, found: found.into(), costs: None, fix: None }
    }

    fn limited(area: &'static str, name: &'static str, found: impl Into<String>, costs: &str) -> Self {
        Self { state: State::Limited, costs: Some(costs.to_owned()), ..Self::ok(area, name, found) }
    }

    fn missing(area: &'static str, name: &'static str, found: impl Into<String>, costs: &str) -> Self {
        Self { state: State::Missing, ..Self::limited(area, name, found, costs) }
    }

    fn fixed_by(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(as_root(fix.into(), is_root(), has_sudo())), ..self }
    }
}

/// A command that begins with `sudo`, as it is said where nobody needs that or where there is none.
fn as_root(command: String, is_root: bool, has_sudo: bool) -> String {
    match command.contains("sudo ") {
        true if is_root => command.replace("sudo ", ""),
        true if !has_sudo => format!("su -c '{}'", command.replace("sudo ", "")),
        _ => command,
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

fn has_sudo() -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|at| at.join("sudo").is_file()))
}

/// The first line of a file of the system, if there is one.
fn line_of(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sudo_is_said_only_where_it_is_needed_and_there() {
        let command = || "sudo sysctl -w net.core.rmem_max=1".to_owned();
        assert_eq!(as_root(command(), false, true), command());
        assert_eq!(as_root(command(), true, true), "sysctl -w net.core.rmem_max=1");
        assert_eq!(as_root(command(), false, false), "su -c 'sysctl -w net.core.rmem_max=1'");
        assert_eq!(as_root("export A=1".into(), true, false), "export A=1");
    }

    #[test]
    fn a_command_that_mends_two_things_is_named_once() {
        let check = Check {
            area: "udp",
            name: "x",
            state: State::Limited,
            found: "little".to_owned(),
            costs: Some("much".to_owned()),
            fix: Some("mend it".to_owned()),
        };
        let checks = [check.clone(), check];
        assert_eq!(fixes(&checks), ["mend it"]);
        let text = table(&checks);
        assert!(
            text.starts_with("udp\n  limited  x: little\n           much\n           fixed by: mend it\n")
        );
        assert!(
            text.ends_with("2 limited, 0 missing; grebe does without each of them. Nothing was changed.\n")
        );
    }
}
