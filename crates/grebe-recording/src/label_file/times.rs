//! Seconds of a signal, and positions in its file.

use crate::sample_file::{SampleFile, Segment};

/// Converts between them, to the sample.
pub(super) struct Times<'a> {
    rate_hz: Option<f64>,
    segments: &'a [Segment],
    /// Whether indices never decrease; else seconds count samples of the file.
    is_one_stream: bool,
}

impl<'a> Times<'a> {
    pub(super) fn of(file: &'a SampleFile) -> Self {
        let (rate_hz, segments) = (file.rate_hz(), file.segments());
        Self { rate_hz, segments, is_one_stream: file.stream_count() == 1 }
    }

    /// The time of a position, from the first sample on.
    pub(super) fn seconds(&self, position: u64) -> Option<f64> {
        Some(self.index(position) as f64 / self.rate_hz?)
    }

    /// The same in as few digits as lead back to it, six at least.
    pub(super) fn begin(&self, position: u64) -> Option<String> {
        self.text(self.index(position))
    }

    /// The position of a time; `None` before the first sample, or without a rate. In a gap, the position after it.
    pub(super) fn position(&self, seconds: f64) -> Option<u64> {
        let index = self.index_at(seconds)?;
        if !self.is_one_stream {
            return Some(index);
        }
        let index = index.saturating_add(self.first_index());
        let number = self.segments.partition_point(|segment| segment.first_sample_index <= index);
        let segment = self.segments[number.saturating_sub(1)];
        let within = index - segment.first_sample_index;
        let is_last = number == self.segments.len();
        // Times beyond the end stay beyond it.
        let within = if is_last { within } else { within.min(segment.length_samples) };
        Some(segment.position.saturating_add(within))
    }

    pub(super) fn has_rate(&self) -> bool {
        self.rate_hz.is_some()
    }

    fn index_at(&self, seconds: f64) -> Option<u64> {
        let index = (seconds * self.rate_hz?).round();
        (0.0..INDEX_MAX).contains(&index).then_some(index as u64)
    }

    fn index(&self, position: u64) -> u64 {
        if !self.is_one_stream {
            return position;
        }
        let number = self.segments.partition_point(|segment| segment.position <= position).max(1);
        let segment = self.segments[number - 1];
        segment.first_sample_index - self.first_index() + (position - segment.position)
    }

    /// The end of an annotation: behind its last sample, also where a gap follows that.
    pub(super) fn end(&self, position: u64, length_samples: u64) -> Option<String> {
        let Some(last) = length_samples.checked_sub(1) else { return self.begin(position) };
        self.text(self.index(position + last) + 1)
    }

    fn text(&self, index: u64) -> Option<String> {
        let seconds = index as f64 / self.rate_hz?;
        let leads_back = |text: &String| text.parse().ok().and_then(|it| self.index_at(it)) == Some(index);
        let short = (6..=15).map(|digits| format!("{seconds:.digits$}"));
        Some(short.into_iter().find(leads_back).unwrap_or_else(|| seconds.to_string()))
    }

    fn first_index(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.first_sample_index)
    }
}

/// Integers below are exact as floats.
const INDEX_MAX: f64 = 9_007_199_254_740_992.0;
