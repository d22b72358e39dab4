//! All that a recording says of its samples, for who does not play it.

use std::sync::Arc;
use std::time::Duration;

use grebe_frame::{Description, StreamAnnotation};

use crate::file::labels::Labels;
use crate::file::sample_file::SampleFile;

impl SampleFile {
    /// What it says of its samples, each from its own first sample on, as its stream would say it: also when they were made.
    pub fn descriptions(&self) -> Vec<Arc<Description>> {
        let count = self.description_count();
        let begins: Vec<u64> = (0..count).filter_map(|number| self.description_begin(number)).collect();
        let begins = if begins.first() == Some(&0) { begins } else { [vec![0], begins].concat() };
        begins.into_iter().map(|begin| Arc::new(self.said_at(begin))).collect()
    }

    /// What it labels, by indices of the stream.
    pub fn stream_annotations(&self) -> Vec<StreamAnnotation> {
        Labels::of(self).0.all()
    }

    fn said_at(&self, position: u64) -> Description {
        let segments = self.segments();
        let number = segments.partition_point(|segment| segment.position <= position).saturating_sub(1);
        let segment = segments[number];
        let within = position - segment.position;
        let said = self.description(position).map(|description| (**description).clone()).unwrap_or_default();
        let since = (self.sample_rate_hz() > 0.0).then(|| within as f64 / self.sample_rate_hz());
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
