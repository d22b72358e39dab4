//! The result of looking at one thing.

use serde::Serialize;

/// How good one thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// As good as it gets.
    Ok,
    /// It works, below what the machine could do.
    Limited,
    /// Not there: what needs it does without, or says so.
    Missing,
}

/// The result of looking at one thing.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Check {
    /// What the thing is for: `machine`, `udp`, `local`, `devices`, `scope`, `tools`.
    pub(super) area: &'static str,
    /// What it is.
    pub(super) name: &'static str,
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// What the limit costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) costs: Option<String>,
    /// The command that fixes it, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

impl Check {
    pub(super) fn ok(area: &'static str, name: &'static str, found: impl Into<String>) -> Self {
        Self { area, name, state: State::Ok, found: found.into(), costs: None, fix: None }
    }

    pub(super) fn limited(
        area: &'static str,
        name: &'static str,
        found: impl Into<String>,
        costs: &str,
    ) -> Self {
        Self { state: State::Limited, costs: Some(costs.to_owned()), ..Self::ok(area, name, found) }
    }

    pub(super) fn missing(
        area: &'static str,
        name: &'static str,
        found: impl Into<String>,
        costs: &str,
    ) -> Self {
        Self { state: State::Missing, ..Self::limited(area, name, found, costs) }
    }

    pub(super) fn fixed_by(self, fix: impl Into<String>) -> Self {
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
pub(super) fn line_of(path: &str) -> Option<String> {
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
}
