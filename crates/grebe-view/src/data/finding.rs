//! A search of a stream's whole history, with an end for the requester and an end for the searching thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use grebe_scope::Scale;
use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;

/// A search request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sought {
    /// The arguments of `grebe find --trigger`, such as `edge --level 0.5`.
    pub words: String,
    /// Scale of each channel, for levels in units; channels beyond the last count in raw counts.
    #[serde(default, with = "pairs")]
    pub scales: Vec<Scale>,
}

/// A found event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundEvent {
    /// Absolute index of its first sample; for missing samples, of the first sample after them.
    pub index: u64,
    /// Its duration, or the number of missing samples; 0: an instant.
    pub length_samples: u64,
    /// Its lane; `None`: all lanes.
    pub lane: Option<LaneId>,
}

/// Searches the whole history of a stream. Clones share one finder.
#[derive(Clone)]
pub struct Finder(Arc<dyn Fn(Sought) -> Finding + Send + Sync>);

/// A running search. Dropping it cancels the search.
pub struct Finding(Arc<Shared>);

/// The searching end. Dropping it ends the search.
pub struct FindingSide(Arc<Shared>);

/// Progress of a search since the last call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindingNews {
    /// New events. A search lists at most the first [`Finding::EVENTS_MAX`].
    pub events: Vec<FoundEvent>,
    /// Number of all found events, listed or not.
    pub found: u64,
    /// Samples per channel that were searched.
    pub searched_samples: u64,
    /// Samples per channel of the whole history.
    pub all_samples: u64,
    /// Set at the end: one line for a person.
    pub ended: Option<String>,
}

#[derive(Default)]
struct Shared {
    is_dropped: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    news: FindingNews,
    is_new: bool,
    /// Number of listed events.
    listed: usize,
    on_news: Option<Arc<dyn Fn() + Send + Sync>>,
    told: Option<Instant>,
}

impl Finder {
    /// Wraps a function that starts a search without waiting.
    pub fn new(find: impl Fn(Sought) -> Finding + Send + Sync + 'static) -> Finder {
        Finder(Arc::new(find))
    }

    /// Starts a search.
    pub fn find(&self, sought: Sought) -> Finding {
        (self.0)(sought)
    }
}

impl Finding {
    /// Maximum events that one search lists. Further events are only counted.
    pub const EVENTS_MAX: usize = 10_000;

    /// Creates both ends of a search.
    pub fn begin() -> (FindingSide, Finding) {
        let shared = Arc::new(Shared::default());
        (FindingSide(Arc::clone(&shared)), Finding(shared))
    }

    /// Sets the function that the searching thread calls on progress, about twenty times per second at most.
    pub(crate) fn on_news(&self, wake: impl Fn() + Send + Sync + 'static) {
        let mut state = self.0.state();
        state.on_news = Some(Arc::new(wake));
        // Report the progress from before this call.
        let wake = state.on_news.clone().filter(|_| state.is_new);
        drop(state);
        wake.iter().for_each(|wake| wake());
    }

    /// Progress since the last call; `None` if there is none.
    pub fn take_news(&self) -> Option<FindingNews> {
        let mut state = self.0.state();
        if !std::mem::take(&mut state.is_new) {
            return None;
        }
        let events = std::mem::take(&mut state.news.events);
        Some(FindingNews { events, ..state.news.clone() })
    }
}

impl FindingSide {
    /// Whether the requester still waits.
    pub fn is_wanted(&self) -> bool {
        !self.0.is_dropped.load(Ordering::Acquire)
    }

    /// Reports progress and new events.
    pub fn tell(&self, events: &[FoundEvent], searched_samples: u64, all_samples: u64) {
        let mut state = self.0.state();
        state.news.found += events.len() as u64;
        state.list(events);
        (state.news.searched_samples, state.news.all_samples) = (searched_samples, all_samples);
        self.news(state, false);
    }

    /// Ends the search, for this reason.
    pub fn end(self, words: &str) {
        let mut state = self.0.state();
        state.news.ended = Some(words.to_owned());
        self.news(state, true);
    }

    /// Forwards the progress of another search.
    pub(crate) fn pass_on(&self, news: FindingNews) {
        let mut state = self.0.state();
        state.list(&news.events);
        let events = std::mem::take(&mut state.news.events);
        state.news = FindingNews { events, ..news };
        self.news(state, true);
    }

    fn news(&self, mut state: MutexGuard<'_, State>, is_urgent: bool) {
        state.is_new = true;
        let is_due = is_urgent || state.told.is_none_or(|told| told.elapsed() >= TELL_INTERVAL);
        if !is_due {
            return;
        }
        state.told = Some(Instant::now());
        let wake = state.on_news.clone();
        drop(state);
        wake.iter().for_each(|wake| wake());
    }
}

impl Drop for Finding {
    fn drop(&mut self) {
        self.0.is_dropped.store(true, Ordering::Release);
    }
}

impl Drop for FindingSide {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.news.ended.is_none() {
            state.news.ended = Some("the search ended before it was through".into());
            self.news(state, true);
        }
    }
}

impl State {
    fn list(&mut self, events: &[FoundEvent]) {
        let room = Finding::EVENTS_MAX - self.listed;
        let listed = &events[..events.len().min(room)];
        self.listed += listed.len();
        self.news.events.extend_from_slice(listed);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state valid, so a panic elsewhere does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Finder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finder").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finding").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for FindingSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FindingSide").field("is_wanted", &self.is_wanted()).finish_non_exhaustive()
    }
}

/// Serializes scales as pairs: units per count, and units at a count of zero.
mod pairs {
    use grebe_scope::Scale;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(scales: &[Scale], to: S) -> Result<S::Ok, S::Error> {
        // JSON has no NaN and no infinity.
        let known = |value: f64, otherwise: f64| if value.is_finite() { value } else { otherwise };
        let pairs = scales.iter().map(|scale| (known(scale.factor, 1.0), known(scale.offset, 0.0)));
        pairs.collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Scale>, D::Error> {
        let pairs = Vec::<(f64, f64)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(factor, offset)| Scale { factor, offset }).collect())
    }
}

/// Minimum interval between two wake-ups of the requester.
const TELL_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn event(index: u64) -> FoundEvent {
        FoundEvent { index, length_samples: 0, lane: Some(LaneId::real(0)) }
    }

    #[test]
    fn what_is_found_comes_once_and_no_more_than_fits_the_list() {
        let (side, finding) = Finding::begin();
        assert_eq!(finding.take_news(), None);
        side.tell(&[event(3)], 100, 1000);
        side.tell(&[event(150)], 200, 1000);
        let news = finding.take_news().unwrap();
        assert_eq!((news.events, news.found), (vec![event(3), event(150)], 2));
        assert_eq!((news.searched_samples, news.all_samples, news.ended), (200, 1000, None));
        assert_eq!(finding.take_news(), None);
        let many: Vec<FoundEvent> = (0..Finding::EVENTS_MAX as u64 + 5).map(event).collect();
        side.tell(&many, 300, 1000);
        side.tell(&many, 400, 1000);
        let news = finding.take_news().unwrap();
        assert_eq!(news.events.len(), Finding::EVENTS_MAX - 2);
        assert_eq!(news.found, 2 + 2 * many.len() as u64);
        side.end("that was all");
        let news = finding.take_news().unwrap();
        assert!(news.events.is_empty() && news.ended.as_deref() == Some("that was all"));
    }

    #[test]
    fn each_end_knows_when_the_other_is_gone() {
        let (side, finding) = Finding::begin();
        assert!(side.is_wanted());
        drop(finding);
        assert!(!side.is_wanted());
        let (side, finding) = Finding::begin();
        let (woken, wakes) = std::sync::mpsc::channel();
        finding.on_news(move || {
            let _ = woken.send(());
        });
        drop(side);
        assert_eq!(wakes.try_iter().count(), 1);
        assert!(finding.take_news().unwrap().ended.is_some());
        // A late `on_news` reports earlier progress.
        let (side, finding) = Finding::begin();
        side.tell(&[event(1)], 1, 2);
        let (woken, wakes) = std::sync::mpsc::channel();
        finding.on_news(move || {
            let _ = woken.send(());
        });
        assert_eq!(wakes.try_iter().count(), 1);
    }
}
