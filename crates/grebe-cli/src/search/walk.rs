//! Search over the available samples of a stream, block by block.

use anyhow::Result;
use grebe_recording::Block;
use grebe_view::{FoundEvent, LaneId};

use super::{Hit, Search, Signal, Wanted};
use crate::cli::{EventKind, EventWords};

/// Search that walks through a stream.
pub(crate) struct Walk {
    kind: EventKind,
    searches: Vec<(LaneId, Box<dyn Search>)>,
    /// End of the searched samples, if the next ones follow.
    behind: Option<u64>,
    hits: Vec<Hit>,
}

impl Walk {
    /// A search for the event in its channels, or in all.
    ///
    /// # Errors
    /// A usage error if a condition is missing, or a channel does not exist.
    pub(crate) fn new(words: &EventWords, signal: &Signal) -> Result<Self> {
        let EventWords { kind, conditions, .. } = words;
        let mut searches: Vec<(LaneId, Box<dyn Search>)> = Vec::new();
        if *kind != EventKind::Gap {
            signal.check_band("--band", conditions.band)?;
            for lane in signal.lanes(&conditions.lanes())? {
                let wanted = Wanted::of("find", *kind, conditions, lane, signal)?;
                searches.push((lane, wanted.search(lane, signal)?));
            }
        }
        Ok(Self { kind: *kind, searches, behind: None, hits: Vec::new() })
    }

    /// Whether the search needs samples, and not only their positions.
    pub(crate) fn needs_samples(&self) -> bool {
        self.kind != EventKind::Gap
    }

    /// Marks the next samples as not adjacent: the range between was not searched, and is not a gap.
    pub(crate) fn pass_over(&mut self) {
        self.behind = None;
    }

    /// Takes in a range of available samples. Missing samples before it are a gap.
    pub(crate) fn reach(&mut self, first_index: u64, length_samples: u64, events: &mut Vec<FoundEvent>) {
        let missing = self.behind.and_then(|behind| first_index.checked_sub(behind)).unwrap_or(0);
        if missing > 0 && self.kind == EventKind::Gap {
            events.push(FoundEvent { index: first_index, length_samples: missing, lane: None });
        }
        self.behind = Some(first_index.saturating_add(length_samples));
    }

    /// Searches samples, and appends events by sample index.
    ///
    /// # Errors
    /// The samples do not match the signal.
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

    /// Ends lasting events at the end of the samples.
    pub(crate) fn end(&mut self, events: &mut Vec<FoundEvent>) {
        for (lane, search) in &mut self.searches {
            search.end(&mut self.hits);
            take(&mut self.hits, *lane, events);
        }
    }
}

fn take(hits: &mut Vec<Hit>, lane: LaneId, events: &mut Vec<FoundEvent>) {
    events.extend(hits.drain(..).map(|Hit { index, length_samples, .. }| FoundEvent {
        index,
        length_samples,
        lane: Some(lane),
    }));
}
