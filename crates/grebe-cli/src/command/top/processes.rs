//! Processes to show.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::Result;
use grebe_flow::telemetry::{HostReport, Report, Watch, Watched};
use grebe_zenoh::{CountsWatch, Lab, Pattern, StreamName};

/// Process to show.
#[derive(Debug, Clone)]
pub(super) struct Process {
    /// Host and stream names; `None` for this user's processes on this machine.
    pub(super) lab: Option<InLab>,
    pub(super) watched: Watched,
}

/// Information about a process of the lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct InLab {
    pub(super) host: String,
    pub(super) streams: Vec<String>,
}

impl Process {
    /// As a line of JSON.
    pub(super) fn json(&self) -> Option<String> {
        let report = self.watched.report.clone()?;
        match self.lab.clone() {
            None => serde_json::to_string(&report).ok(),
            Some(InLab { host, streams }) => Some(HostReport { host, streams, report }.to_json()),
        }
    }

    /// Identity of the process.
    pub(super) fn key(&self) -> (Option<String>, u32, String) {
        (self.lab.as_ref().map(|lab| lab.host.clone()), self.watched.pid, self.watched.name.clone())
    }
}

/// Published processes that match the selection.
pub(super) enum Processes {
    /// Processes of this user on this machine.
    Here {
        watch: Watch,
        /// Name or process ID; `None` for all.
        of: Option<String>,
    },
    /// Processes of a lab that use streams of these names, or whose `HOST/NAME` matches.
    InLab { watch: CountsWatch, pattern: Pattern, looked_by: String, read: HashMap<(String, String), Read> },
}

/// Last report of a process of the lab, so that each is parsed once.
pub(super) struct Read {
    at: Instant,
    report: Option<HostReport>,
}

impl Processes {
    pub(super) fn new(of: Option<String>) -> Result<Self> {
        match of.as_deref().and_then(lab_pattern) {
            Some(pattern) => {
                let lab = Lab::shared()?;
                let (watch, looked_by) = (lab.counts()?, lab.looked_by());
                Ok(Self::InLab { watch, pattern, looked_by, read: HashMap::new() })
            }
            None => Ok(Self::Here { watch: Watch::new()?, of }),
        }
    }

    pub(super) fn poll(&mut self) -> Vec<Process> {
        match self {
            Self::Here { watch, of } => {
                let mut all = watch.look();
                if let Some(of) = of {
                    all.retain(|one| is_selected(of, one.pid, &one.name));
                }
                all.into_iter().map(|watched| Process { lab: None, watched }).collect()
            }
            Self::InLab { watch, pattern, read, .. } => {
                let all = watch.look();
                read.retain(|of, _| all.iter().any(|one| one.of == *of));
                let mut shown = Vec::new();
                for one in all.into_iter().filter(|one| !one.bytes.is_empty()) {
                    let last = read.entry(one.of).or_insert(Read { at: one.at, report: None });
                    if last.report.is_none() || last.at != one.at {
                        // Reports of other versions that cannot be parsed are ignored.
                        *last = Read { at: one.at, report: HostReport::parse(&one.bytes).ok() };
                    }
                    let Some(told) = last.report.as_ref().filter(|told| is_of(pattern, told)) else {
                        continue;
                    };
                    shown.push(process(told, last.at));
                }
                shown.sort_by_key(Process::key);
                shown
            }
        }
    }

    /// Whether a process has not reported yet.
    pub(super) fn is_waiting(&self, found: &[Process]) -> bool {
        match self {
            Self::Here { .. } => found.iter().any(|one| one.watched.report.is_none()),
            // Processes of a lab appear one after the other, in unknown number.
            Self::InLab { .. } => true,
        }
    }

    /// Whether the selection is everything.
    pub(super) fn has_all(&self) -> bool {
        matches!(self, Self::Here { of: None, .. })
    }

    pub(super) fn nobody(&self) -> String {
        match self {
            Self::Here { of, .. } => {
                let who = match of {
                    None => "grebe process".to_owned(),
                    Some(id) if id.parse::<u32>().is_ok() => format!("grebe process {id}"),
                    Some(of) => format!("grebe process named '{of}'"),
                };
                format!("no {who} runs as this user; start one, for example: grebe sg --rate 1M")
            }
            Self::InLab { pattern, looked_by, .. } => {
                format!("no process reports counters for {pattern} (searched {looked_by})")
            }
        }
    }
}

/// Stream names have slashes; command names have none.
fn lab_pattern(of: &str) -> Option<Pattern> {
    of.contains(['/', '*']).then(|| of.parse().ok()).flatten()
}

fn is_of(pattern: &Pattern, told: &HostReport) -> bool {
    let place = format!("{}/{}", told.host, told.report.name);
    let names = told.streams.iter().chain([&place]);
    names.filter_map(|name| name.parse::<StreamName>().ok()).any(|name| pattern.matches(&name))
}

fn process(told: &HostReport, at: Instant) -> Process {
    let HostReport { host, streams, report } = told.clone();
    let Report { pid, ref name, .. } = report;
    let watched = Watched { pid, name: name.clone(), report: Some(report), silent_for: at.elapsed() };
    Process { lab: Some(InLab { host, streams }), watched }
}

/// `sg` selects `sg`, and `sg-2`, the second graph of a process.
fn is_selected(of: &str, pid: u32, name: &str) -> bool {
    let number = name.strip_prefix(of).and_then(|rest| rest.strip_prefix('-'));
    of == pid.to_string() || of == name || number.is_some_and(|number| number.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::top::table::tests::viewer;

    #[test]
    fn processes_are_selected_by_id_or_name() {
        assert!(is_selected("42", 42, "sg") && is_selected("sg", 42, "sg") && is_selected("sg", 42, "sg-2"));
        assert!(!is_selected("4", 42, "sg") && !is_selected("sg", 42, "sgx") && !is_selected("s", 42, "sg"));
    }

    #[test]
    fn processes_of_the_lab_are_selected_by_stream_or_host() {
        let report = viewer(42).watched.report.unwrap();
        let told = HostReport { host: "mast3".into(), streams: vec!["lab/adc".into()], report };
        for (pattern, is_meant) in [
            ("lab/**", true),
            ("lab/adc", true),
            ("**", true),
            ("mast3/*", true),
            ("mast3/view", true),
            ("hall/**", false),
        ] {
            assert_eq!(is_of(&lab_pattern(pattern).unwrap(), &told), is_meant, "{pattern}");
        }
        for here in ["sg", "42", "sg-2"] {
            assert!(lab_pattern(here).is_none(), "{here}");
        }
    }
}
