//! What this machine can do for grebe, what limits it, and how to fix that. Nothing here changes anything.

mod display;
mod local;
mod system;
mod tools;
mod udp;

use serde::Serialize;

/// How good one thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// As good as it gets.
    Ok,
    /// It works, below what the machine could do.
    Limited,
    /// Not there: what needs it does without, or says so.
    Missing,
}

/// The result of looking at one thing.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Check {
    /// What the thing is for: `machine`, `udp`, `local`, `scope`, `tools`.
    pub(crate) area: &'static str,
    /// What it is.
    pub(crate) name: &'static str,
    pub(crate) state: State,
    /// What was found.
    pub(crate) found: String,
    /// What the limit costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) costs: Option<String>,
    /// The command that fixes it, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
}

/// Looks at everything; takes about a second.
pub(crate) fn examine() -> Vec<Check> {
    let mut checks = system::checks();
    checks.extend(udp::checks());
    checks.extend(local::checks());
    checks.extend(display::checks());
    checks.extend(tools::checks());
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
        Self { fix: Some(fix.into()), ..self }
    }
}

/// The first line of a file of the system, if there is one.
fn line_of(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}
