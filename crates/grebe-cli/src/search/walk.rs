//! One search over whatever is held of a stream: blocks of it, by the indexes that their samples have there.

use anyhow::Result;
use grebe_recording::Block;
use grebe_view::{FoundEvent, LaneId};

use super::{Hit, Search, Signal, Wanted};
use crate::cli::{EventKind, EventWords};

/// Goes through a stream from block to block.
pub(crate) struct Walk {
    kind: EventKind,
    searches: Vec<(LaneId, Box<dyn Search>)>,
    /// Behind what was looked at, where what follows is known to follow.
    behind: Option<u64>,
    hits: Vec<Hit>,
}

impl Walk {
    /// Looks for what the words say in the lanes that they name, or in all.
    ///
    /// # Errors
    /// A usage error where a condition is missing, or there is no such lane.
    pub(crate) fn new(words: &EventWords, signal: &Signal) -> Result<Self> {
        let EventWords { kind, conditions } = words;
        let mut searches: Vec<(LaneId, Box<dyn Search>)> = Vec::new();
        if *kind != EventKind::Gap {
            for lane in signal.lanes(&conditions.channel)? {
                let wanted = Wanted::of("find", *kind, conditions, lane, signal)?;
                searches.push((lane, wanted.search(lane, signal)?));
            }
        }
        Ok(Self { kind: *kind, searches, behind: None, hits: Vec::new() })
    }

    /// Whether it reads samples, and not only where they are.
    pub(crate) fn needs_samples(&self) -> bool {
        self.kind != EventKind::Gap
    }

    /// What follows does not follow what came: what is between was not looked at, and is no gap.
    pub(crate) fn pass_over(&mut self) {
        self.behind = None;
    }

    /// Samples that there are, from an index on: what lies between them and those before is missing.
    pub(crate) fn reach(&mut self, first_index: u64, length_samples: u64, events: &mut Vec<FoundEvent>) {
        let missing = self.behind.and_then(|behind| first_index.checked_sub(behind)).unwrap_or(0);
        if missing > 0 && self.kind == EventKind::Gap {
            events.push(FoundEvent { index: first_index, length_samples: missing, lane: None });
        }
        self.behind = Some(first_index.saturating_add(length_samples));
    }

    /// Looks at samples; appends what was found, by its index.
    ///
    /// # Errors
    /// They are not of the signal.
    pub(crate) fn scan(
        &mut self,
        first_index: u64,
        block: &Block<'_>,
        events: &mut Vec<FoundEvent>,
    ) -> Result<()> {
        self.reach(first_index, block.len_samples() as u64, events);
        let before = events.len();
        for (lane, search) in &mut self.searches {
            search.scan(first_index, block, &mut self.hits)?;
            take(&mut self.hits, *lane, events);
        }
        events[before..].sort_by_key(|event| event.index);
        Ok(())
    }

    /// Nothing follows: what lasts ends.
    pub(crate) fn end(&mut self, events: &mut Vec<FoundEvent>) {
        for (lane, search) in &mut self.searches {
            search.end(&mut self.hits);
            take(&mut self.hits, *lane, events);
        }
    }
}

fn take(hits: &mut Vec<Hit>, lane: LaneId, events: &mut Vec<FoundEvent>) {
    events.extend(hits.drain(..).map(|(index, length_samples)| FoundEvent {
        index,
        length_samples,
        lane: Some(lane),
    }));
}
