//! Counters of another host, over all runs of its part of the graph.

use grebe_flow::{Snapshot, StageSnapshot};

/// Counters of another host.
#[derive(Debug, Default)]
pub(super) struct HostCounters {
    host: String,
    /// Counters of earlier processes, as far as reported.
    before: Snapshot,
    now: Snapshot,
    /// For a restarted host: number of restarts, and whether it is away.
    returns: Option<(u64, bool)>,
}

impl HostCounters {
    pub(super) fn of(host: &str, is_restarted: bool) -> Self {
        Self { host: host.to_owned(), returns: is_restarted.then_some((0, false)), ..Self::default() }
    }

    pub(super) fn update(&mut self, now: Snapshot) {
        self.now = now;
    }

    /// The process is gone.
    pub(super) fn leave(&mut self) {
        self.before = std::mem::take(&mut self.now).after(&self.before);
        if let Some((_, is_away)) = &mut self.returns {
            *is_away = true;
        }
    }

    /// Another process has taken its place.
    pub(super) fn come_back(&mut self) {
        if let Some((restarts, is_away)) = &mut self.returns {
            (*restarts, *is_away) = (*restarts + 1, false);
        }
    }

    /// Adds the counters to those of others, with a row for a host that restarts.
    pub(super) fn add_to(&self, all: &mut Snapshot) {
        if let Some((restarts, is_away)) = self.returns {
            all.stages.push(StageSnapshot {
                name: self.host.clone(),
                own: vec![("restarts".into(), restarts), ("is_away".into(), u64::from(is_away))],
                own_gauges: vec!["is_away".into()],
                ..StageSnapshot::default()
            });
        }
        all.add_host(&self.host, self.now.clone().after(&self.before));
    }
}
