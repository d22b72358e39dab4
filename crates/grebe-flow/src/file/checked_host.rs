//! Hosts in a graph file.

use toml::Spanned;

use super::checked_stage::CheckedStage;
use super::draft::DraftHost;
use crate::mistake::{Mistakes, nearest};

/// `[[host]]` of a graph file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHost {
    /// Name as in stages: `[USER@]HOST[:PORT]`.
    pub name: String,
    /// Action after the loss of the host.
    pub restart: Restart,
}

/// Action after the loss of a host while the graph runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Restart {
    /// The graph continues without it if it can, and otherwise ends.
    #[default]
    No,
    /// Its stages are restarted as often as necessary.
    Always,
}

impl Restart {
    const ALL: [Self; 2] = [Self::No, Self::Always];

    /// Name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Always => "always",
        }
    }
}

pub(super) fn check(
    hosts: Vec<DraftHost>,
    stages: &[CheckedStage<'_, '_>],
    mistakes: &mut Mistakes,
) -> Vec<FileHost> {
    hosts.into_iter().filter_map(|host| checked(host, stages, mistakes)).collect()
}

fn checked(host: DraftHost, stages: &[CheckedStage<'_, '_>], mistakes: &mut Mistakes) -> Option<FileHost> {
    let restart = host.restart.map_or(Some(Restart::No), |written| find_restart(&written, mistakes));
    let name = host.name?;
    let mut used = stages.iter().filter_map(CheckedStage::host_name);
    if !used.any(|used| used == name.get_ref()) {
        let mistake = mistakes.add(name.span(), format!("no stage runs on '{}'", name.get_ref()));
        if let Some(meant) = nearest(name.get_ref(), stages.iter().filter_map(CheckedStage::host_name)) {
            mistake.label(format!("did you mean '{meant}'?"));
        }
        mistake.help("name it as the 'host' of a stage does");
    }
    Some(FileHost { name: name.into_inner(), restart: restart? })
}

fn find_restart(written: &Spanned<String>, mistakes: &mut Mistakes) -> Option<Restart> {
    let name = written.get_ref();
    let found = Restart::ALL.into_iter().find(|known| known.name() == name);
    if found.is_none() {
        let mistake = mistakes.add(written.span(), format!("unknown restart '{name}'"));
        if let Some(meant) = nearest(name, Restart::ALL.into_iter().map(Restart::name)) {
            mistake.label(format!("did you mean '{meant}'?"));
        }
        mistake.help("a host that goes away is started again (always), or is not (no)");
    }
    found
}
