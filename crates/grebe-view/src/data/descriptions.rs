//! The stream's descriptions, each with the sample from which it is valid.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{Batch, Description, Header, StreamAnnotation};
use serde::{Deserialize, Serialize};

use crate::data::annotations::Annotations;
use crate::data::axis::{AxisPoint, AxisPoints};

/// A place where the stream's description changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChangeMark {
    /// Absolute index of the first sample after it.
    pub index: u64,
    /// The change.
    #[serde(flatten)]
    pub change: Change,
}

/// A change within a stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "ChangeWords", into = "ChangeWords")]
pub enum Change {
    /// The centre frequency of the following samples, if the stream still has one.
    CentreFrequency {
        /// In hertz.
        hz: Option<f64>,
    },
    /// The sample rate of the following samples. The history starts there.
    Rate {
        /// In samples per second; 0 = unknown.
        hz: f64,
    },
}

/// A [`Change`], in words.
#[derive(Serialize, Deserialize)]
struct ChangeWords {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate_hz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    centre_frequency_hz: Option<f64>,
}

impl From<Change> for ChangeWords {
    fn from(change: Change) -> ChangeWords {
        let (rate_hz, centre_frequency_hz) = match change {
            Change::Rate { hz } => (Some(hz), None),
            Change::CentreFrequency { hz } => (None, hz),
        };
        ChangeWords { rate_hz, centre_frequency_hz }
    }
}

impl From<ChangeWords> for Change {
    fn from(words: ChangeWords) -> Change {
        words
            .rate_hz
            .map_or(Change::CentreFrequency { hz: words.centre_frequency_hz }, |hz| Change::Rate { hz })
    }
}

/// Tracks the descriptions of one stream.
#[derive(Debug, Default)]
pub(crate) struct Descriptions {
    now: Option<Arc<Description>>,
    /// A description that is valid from a later sample on.
    waiting: Option<Arc<Description>>,
    /// Past descriptions, each from its first sample on, oldest first.
    said: VecDeque<Arc<Description>>,
    /// First sample indices of frames, and their time stamps.
    stamps: VecDeque<(u64, u64)>,
    changes: VecDeque<ChangeMark>,
    /// Annotations.
    pub(crate) annotations: Annotations,
    axis: AxisPoints,
    /// When to note the time of a sample again.
    axis_due_ns: u64,
}

impl Descriptions {
    /// Replaces the descriptions and annotations of a recording. Changes of annotations made here stay.
    pub(crate) fn take_all(&mut self, descriptions: &[Arc<Description>], annotations: &[StreamAnnotation]) {
        *self =
            Descriptions { annotations: std::mem::take(&mut self.annotations), ..Descriptions::default() };
        descriptions.iter().for_each(|description| self.adopt(Arc::clone(description)));
        self.said = descriptions.iter().cloned().collect();
        self.annotations.take_all(annotations);
    }

    /// Takes the description of a batch; the stream has reached `next_index`.
    pub(crate) fn hear(&mut self, batch: &Batch, next_index: u64) {
        if let Some(description) = batch.description() {
            let is_known = [&self.now, &self.waiting].into_iter().flatten();
            if !is_known.into_iter().any(|known| Arc::ptr_eq(known, description)) {
                self.waiting = Some(Arc::clone(description));
                self.annotations.learn(&description.annotations);
            }
            if let Some(next) = self.waiting.take_if(|next| next.first_sample_index < next_index) {
                self.adopt(next);
            }
        }
    }

    /// Notes a few times a second the time of a frame's first sample, if the stream states it. The frame arrived at
    /// `now_ns`.
    pub(crate) fn note_time(&mut self, newest: &Header, now_ns: u64) {
        let Some(description) = self.now.as_ref().filter(|_| now_ns >= self.axis_due_ns) else { return };
        self.axis_due_ns = now_ns + AXIS_INTERVAL_NS;
        // A played recording states times where they are valid.
        let is_live = description.recorded_at.is_none();
        let index = newest.first_sample_index;
        if is_live {
            push(&mut self.stamps, (index, newest.producer_ts_ns), STAMPS_MAX);
        }
        if let Some(time) = description.axis_time_of(newest, index).filter(|_| is_live) {
            self.axis.note(AxisPoint { index, time });
        }
    }

    /// For each clock, the point nearest to an index.
    pub(crate) fn axis_near(&self, index: f64) -> Vec<AxisPoint> {
        self.axis.near(index)
    }

    /// The description that is valid for the newest sample.
    pub(crate) fn now(&self) -> Option<Arc<Description>> {
        self.now.clone()
    }

    /// Starts another stream.
    pub(crate) fn forget(&mut self) {
        *self = Descriptions::default();
    }

    pub(crate) fn note(&mut self, mark: ChangeMark) {
        push(&mut self.changes, mark, CHANGES_MAX);
    }

    /// The changes within a window.
    pub(crate) fn changes_in(&self, window: &Range<f64>) -> Vec<ChangeMark> {
        let is_inside = |mark: &&ChangeMark| (window.start..=window.end).contains(&(mark.index as f64));
        self.changes.iter().filter(is_inside).copied().collect()
    }

    /// The descriptions of these ranges, as a recording stores them: each from its first sample on, with its time.
    /// `newest` helps where no time stamp was noted.
    pub(crate) fn said_of(&self, runs: &[Range<u64>], newest: &Header) -> Vec<Description> {
        let mut said = Vec::new();
        for run in runs {
            let before = self.said.iter().rposition(|it| it.first_sample_index <= run.start);
            let later = self.said.iter().skip(before.map_or(0, |at| at + 1));
            let later =
                later.filter(|it| it.first_sample_index < run.end && it.first_sample_index > run.start);
            let places = [(run.start, before.map(|at| &self.said[at]))].into_iter();
            let places = places.chain(later.map(|it| (it.first_sample_index, Some(it))));
            said.extend(places.map(|(index, description)| self.as_recorded(index, description, newest)));
        }
        said
    }

    fn as_recorded(&self, index: u64, said: Option<&Arc<Description>>, newest: &Header) -> Description {
        let said = said.map(|said| (**said).clone()).unwrap_or_default();
        let stamp = self.stamps.iter().min_by_key(|(first, _)| first.abs_diff(index));
        let header = match stamp {
            Some(&(first_sample_index, producer_ts_ns)) => {
                Header { first_sample_index, producer_ts_ns, ..*newest }
            }
            None => *newest,
        };
        let recorded_at = said.time_of(&header, index);
        Description {
            first_sample_index: index,
            recorded_at,
            recorded_error_ns: recorded_at.and_then(|_| said.time_error_ns()),
            recorded_axis: said.axis_time_of(&header, index),
            is_undated: recorded_at.is_none(),
            clock: None,
            clock_port: None,
            measured: None,
            annotations: Vec::new(),
            ..said
        }
    }

    fn adopt(&mut self, next: Arc<Description>) {
        let hz = next.centre_frequency_hz;
        if self.now.as_ref().is_some_and(|before| before.centre_frequency_hz != hz) {
            let change = Change::CentreFrequency { hz };
            self.note(ChangeMark { index: next.first_sample_index, change });
        }
        if let Some(time) = next.recorded_axis {
            self.axis.note(AxisPoint { index: next.first_sample_index, time });
        }
        self.axis_due_ns = 0;
        push(&mut self.said, next.clone(), CHANGES_MAX);
        self.now = Some(next);
    }
}

fn push<T>(kept: &mut VecDeque<T>, newest: T, most: usize) {
    if kept.len() == most {
        kept.pop_front();
    }
    kept.push_back(newest);
}

/// A quarter of an hour.
const STAMPS_MAX: usize = 4_096;
const AXIS_INTERVAL_NS: u64 = 250_000_000;
/// Older changes are dropped.
const CHANGES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use grebe_frame::{BatchPool, Header, StreamAnnotation};

    use super::*;
    use crate::data::core::ScopeCore;
    use crate::data::viewport::Viewport;

    fn feed(core: &mut ScopeCore, first: u64, rate_hz: f64, told: Option<&Arc<Description>>) {
        let header = Header {
            sequence: first / 100,
            // A restarted stream has later time stamps.
            producer_ts_ns: if told.is_none() { 1_000_000_000_000 } else { first },
            channel_count: 1,
            block_length_samples: 100,
            sample_rate_hz: rate_hz,
            first_sample_index: first,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
        batch.describe(told);
        batch.push::<i16>(&header, |_, samples| samples.fill(1)).unwrap();
        core.ingest(&batch.freeze(), 1).unwrap();
    }

    fn at(first_sample_index: u64, hz: f64) -> Arc<Description> {
        Arc::new(Description { first_sample_index, centre_frequency_hz: Some(hz), ..Description::default() })
    }

    #[test]
    fn a_description_holds_from_its_sample_on_and_another_frequency_is_marked_there() {
        let mut core = ScopeCore::new(1 << 20);
        let viewport = Viewport { span: Some(1.0), ..Viewport::latest(100) };
        let (low, high) = (at(0, 1e8), at(150, 2e8));
        feed(&mut core, 0, 1e3, Some(&low));
        // It arrives before its first sample.
        core.ingest(
            &{
                let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
                batch.describe(Some(&high));
                batch.freeze()
            },
            1,
        )
        .unwrap();
        let picture = core.answer(&viewport, 1);
        assert_eq!(picture.description.unwrap().centre_frequency_hz, Some(1e8));
        assert_eq!(picture.changes, []);
        for first in [100, 200, 300] {
            feed(&mut core, first, 1e3, Some(&high));
        }
        let picture = core.answer(&viewport, 1);
        assert_eq!(picture.description.unwrap().centre_frequency_hz, Some(2e8));
        let change = Change::CentreFrequency { hz: Some(2e8) };
        assert_eq!(picture.changes, [ChangeMark { index: 150, change }]);
        let short = Viewport { span: Some(0.1), ..viewport };
        assert_eq!(core.answer(&short, 1).changes, [], "it is out of the picture");
    }

    #[test]
    fn what_is_labelled_is_known_once_and_shown_where_it_is() {
        let label = |first_sample_index, label: &str| StreamAnnotation {
            first_sample_index,
            length_samples: 50,
            label: Some(label.into()),
            ..StreamAnnotation::default()
        };
        let mut core = ScopeCore::new(1 << 20);
        let told = |annotations| Arc::new(Description { annotations, ..Description::default() });
        feed(&mut core, 0, 1e3, Some(&told(vec![label(10, "a"), label(120, "b")])));
        feed(&mut core, 100, 1e3, Some(&told(vec![label(120, "b"), label(250, "c")])));
        feed(&mut core, 200, 1e3, None);
        let shown = |span| {
            let picture = core.answer(&Viewport { span: Some(span), ..Viewport::latest(100) }, 1);
            let names = picture.annotations.iter().map(|it| it.label.clone().unwrap_or_default());
            names.collect::<Vec<_>>().join(" ")
        };
        let mut shown = shown;
        assert_eq!((shown(0.3).as_str(), shown(0.1).as_str()), ("c b a", "c"));
    }

    #[test]
    fn another_rate_begins_a_history_with_its_mark_and_another_stream_says_nothing_of_the_old_one() {
        let mut core = ScopeCore::new(1 << 20);
        let viewport = Viewport { span: Some(1.0), ..Viewport::latest(100) };
        feed(&mut core, 0, 1e3, Some(&at(0, 1e8)));
        feed(&mut core, 100, 2e3, Some(&at(0, 1e8)));
        let picture = core.answer(&viewport, 1);
        assert_eq!(picture.changes, [ChangeMark { index: 100, change: Change::Rate { hz: 2e3 } }]);
        assert!(picture.description.is_some());
        feed(&mut core, 0, 2e3, None);
        let picture = core.answer(&viewport, 1);
        assert_eq!((picture.description, picture.changes), (None, vec![]));
    }
}
