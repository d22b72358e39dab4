//! Result of a check.

use serde::Serialize;

/// State of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// No limits.
    Ok,
    /// It works, below the capability of the machine.
    Limited,
    /// Absent. Dependent functions are unavailable, or have a replacement.
    Missing,
}

/// Result of a check.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Check {
    /// Area: `grebe`, `machine`, `udp`, `local`, `devices`, `scope`, `tools`.
    pub(super) area: &'static str,
    /// Name of the feature.
    pub(super) name: &'static str,
    pub(super) state: State,
    /// Finding.
    pub(super) found: String,
    /// Consequence of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) costs: Option<String>,
    /// Command of the fix, if there is one.
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
        self.fixed_if(Some(fix.into()))
    }

    /// With the command of the fix, if this system has one.
    pub(super) fn fixed_if(self, fix: Option<String>) -> Self {
        Self { fix: fix.map(|fix| as_root(fix, is_root(), is_in_path("sudo"))), ..self }
    }
}

/// The command that installs packages of Debian or of Homebrew; none on other systems.
pub(super) fn installs(debian: &str, homebrew: &str) -> Option<String> {
    if cfg!(target_os = "macos") && !homebrew.is_empty() {
        return Some(format!("brew install {homebrew}"));
    }
    (cfg!(target_os = "linux") && is_in_path("apt-get")).then(|| format!("sudo apt-get install {debian}"))
}

/// A command that begins with `sudo`, adapted to users and systems without it.
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

fn is_in_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|at| at.join(program).is_file()))
}

/// The first line of a system file, if it exists.
pub(super) fn line_of(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sudo_appears_only_if_needed_and_installed() {
        let command = || "sudo sysctl -w net.core.rmem_max=1".to_owned();
        assert_eq!(as_root(command(), false, true), command());
        assert_eq!(as_root(command(), true, true), "sysctl -w net.core.rmem_max=1");
        assert_eq!(as_root(command(), false, false), "su -c 'sysctl -w net.core.rmem_max=1'");
        assert_eq!(as_root("export A=1".into(), true, false), "export A=1");
    }
}
