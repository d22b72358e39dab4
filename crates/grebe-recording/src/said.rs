//! Metadata of a recording, for callers that do not play it.

use std::sync::Arc;
use std::time::Duration;

use grebe_frame::{AxisTime, Description, StreamAnnotation};

use crate::labels::Labels;
use crate::sample_file::SampleFile;
use crate::sigmf::is_misread;

impl SampleFile {
    /// Descriptions of its samples, each from its own first sample on, as its stream would send them. A new
    /// one states the sample times where the old one would give wrong times.
    pub fn descriptions(&self) -> Vec<Arc<Description>> {
        let count = self.description_count();
        let mut begins: Vec<u64> = (0..count).filter_map(|number| self.description_begin(number)).collect();
        begins.extend(self.axis_begins());
        begins.push(0);
        begins.sort_unstable();
        begins.dedup();
        begins.into_iter().map(|begin| Arc::new(self.said_at(begin))).collect()
    }

    /// Begins of segments whose clock statement does not follow from the previous ones.
    fn axis_begins(&self) -> impl Iterator<Item = u64> {
        let mut stated: Option<(AxisTime, u64)> = None;
        self.segments().iter().filter_map(move |segment| {
            let now = segment.recorded_axis?;
            let read = stated.and_then(|(axis, index)| {
                self.axis_after(axis, i128::from(segment.first_sample_index) - i128::from(index))
            });
            let is_news = read.is_none_or(|read| is_misread(read, now));
            is_news.then(|| {
                stated = Some((now, segment.first_sample_index));
                segment.position
            })
        })
    }

    /// Annotations by stream index.
    pub fn stream_annotations(&self) -> Vec<StreamAnnotation> {
        Labels::of(self).0.all()
    }

    fn said_at(&self, position: u64) -> Description {
        let segments = self.segments();
        let number = segments.partition_point(|segment| segment.position <= position).saturating_sub(1);
        let segment = segments[number];
        let within = position - segment.position;
        let said = self.description(position).map(|description| (**description).clone()).unwrap_or_default();
        let since = self.rate_hz().map(|rate_hz| within as f64 / rate_hz);
        let recorded = segment.recorded().zip(since);
        Description {
            first_sample_index: segment.first_sample_index + within,
            recorded_at: recorded
                .and_then(|(at, since)| at.time.checked_add(Duration::try_from_secs_f64(since).ok()?)),
            recorded_error_ns: recorded.and_then(|(at, _)| at.error_ns),
            recorded_axis: self.axis_at(position),
            ..said
        }
    }
}
