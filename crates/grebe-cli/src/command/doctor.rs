//! `grebe doctor`: checks of this machine, with their fixes. It changes nothing.

mod build;
mod check;
mod devices;
mod disk;
mod display;
mod local;
mod serial;
mod system;
mod udp;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use check::{Check, State};

use crate::cli::Doctor;
use crate::ending::Ending;
use crate::output::{self, out};
use crate::report;

pub(crate) fn run(options: &Doctor) -> Result<Ending> {
    if let Some(folder) = &options.disk {
        return disk::run(folder, options.size, options.json);
    }
    let checks = examine();
    if let Some(path) = &options.report {
        let text = format!("{}\n{}", report::head("Report of grebe doctor"), table(&checks));
        output::file(path, report::anonymous(&text).as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    } else if options.json {
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

/// The commands of all fixes, each once.
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
        (0, 0) => "\nNo limits found.\n".to_owned(),
        _ => format!(
            "\n{limited} limited, {missing} missing; grebe works without them. Nothing was changed.\n"
        ),
    };
    text
}

/// Runs all checks, in about a second.
fn examine() -> Vec<Check> {
    let mut checks = build::checks();
    checks.extend(system::checks());
    checks.extend(udp::checks());
    checks.extend(local::checks());
    checks.extend(devices::checks());
    checks.extend(serial::checks());
    checks.extend(display::checks());
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(text.ends_with("2 limited, 0 missing; grebe works without them. Nothing was changed.\n"));
    }
}
