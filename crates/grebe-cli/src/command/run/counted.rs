//! What another host counts, over all the times that its part of the graph was started.

use grebe_flow::{Snapshot, StageSnapshot};

/// What another host has counted.
#[derive(Debug, Default)]
pub(super) struct Counted {
    host: String,
    /// By processes that are gone, as far as they have told.
    before: Snapshot,
    now: Snapshot,
    /// Of a host that is started again: how often it was, and whether it is away.
    returns: Option<(u64, bool)>,
}

impl Counted {
    pub(super) fn of(host: &str, is_restarted: bool) -> Self {
        Self { host: host.to_owned(), returns: is_restarted.then_some((0, false)), ..Self::default() }
    }

    pub(super) fn tell(&mut self, now: Snapshot) {
        self.now = now;
    }

    /// The process there is gone.
    pub(super) fn leave(&mut self) {
        self.before = std::mem::take(&mut self.now).after(&self.before);
        if let Some((_, is_away)) = &mut self.returns {
            *is_away = true;
        }
    }

    /// Another has taken its place.
    pub(super) fn come_back(&mut self) {
        if let Some((restarts, is_away)) = &mut self.returns {
            (*restarts, *is_away) = (*restarts + 1, false);
        }
    }

    /// Adds all of it to what others count, with a row for the host itself where it is started again.
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
