//! Times of samples by the clocks of hosts, to align the streams of several hosts.

use std::time::SystemTime;

use grebe_frame::{AxisTime, Header};

use crate::data::axis::AxisPoint;
use crate::data::picture::Picture;

/// Time base of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeBase {
    /// The monotonic clock of a host.
    Clock(u64),
    Utc,
}

/// Relation of a stream's samples to time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeLine {
    pub(crate) base: TimeBase,
    /// Uncertainty of its times, to either side.
    pub(crate) error_ns: u64,
    /// A sample and its time.
    index: u64,
    ns: i64,
    samples_per_ns: f64,
}

impl TimeLine {
    pub(crate) fn ns_at(&self, index: f64) -> i64 {
        self.ns.saturating_add(((index - self.index as f64) / self.samples_per_ns).round() as i64)
    }

    pub(crate) fn index_at(&self, ns: i64) -> f64 {
        self.index as f64 + ns.saturating_sub(self.ns) as f64 * self.samples_per_ns
    }
}

/// The most certain time lines of two streams on a common base: the clock of a host that both know, else UTC if both
/// know its uncertainty.
pub(crate) fn common_lines(one: &Picture, other: &Picture) -> Option<[TimeLine; 2]> {
    let others = other.clock_lines();
    let clocks = one.clock_lines().into_iter().filter_map(|line| {
        let other = others.iter().find(|other| other.base == line.base)?;
        Some([line, *other])
    });
    let surest = clocks.min_by_key(|[one, other]| one.error_ns.saturating_add(other.error_ns));
    surest.or_else(|| Some([one.utc_line()?, other.utc_line()?]))
}

impl Picture {
    /// Times of a sample, by each clock for which they are known.
    pub fn axis_times(&self, index: f64) -> Vec<AxisTime> {
        let Some(rate_hz) = self.known_rate_hz() else { return Vec::new() };
        let at = |point: AxisPoint| {
            point.time.after(((index - point.index as f64) / rate_hz * 1e9).round() as i64)
        };
        self.axis_points().into_iter().map(at).collect()
    }

    fn axis_points(&self) -> Vec<AxisPoint> {
        if !self.axis_points.is_empty() {
            return self.axis_points.clone();
        }
        // A picture from another host has only the description.
        let newest = self.newest_header();
        let time =
            self.description.as_ref().and_then(|it| it.axis_time_of(&newest, newest.first_sample_index));
        time.map(|time| AxisPoint { index: newest.first_sample_index, time }).into_iter().collect()
    }

    fn clock_lines(&self) -> Vec<TimeLine> {
        let Some(rate_hz) = self.known_rate_hz() else { return Vec::new() };
        let line = |AxisPoint { index, time }: AxisPoint| TimeLine {
            base: TimeBase::Clock(time.clock),
            error_ns: time.error_ns,
            index,
            ns: time.ns,
            samples_per_ns: rate_hz * 1e-9 * (1.0 + time.drift_ppb as f64 * 1e-9),
        };
        self.axis_points().into_iter().map(line).collect()
    }

    fn utc_line(&self) -> Option<TimeLine> {
        let description = self.description.as_ref()?;
        let error_ns = description.time_error_ns()?;
        // The description of a recording has the time of its first sample.
        let newest = self.newest_header();
        let index = match description.recorded_at {
            Some(_) => description.first_sample_index,
            None => newest.first_sample_index,
        };
        let since = description.time_of(&newest, index)?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let samples_per_ns = self.known_rate_hz()? * 1e-9;
        let ns = i64::try_from(since.as_nanos()).ok()?;
        Some(TimeLine { base: TimeBase::Utc, error_ns, index, ns, samples_per_ns })
    }

    /// The fields of the newest frame's header that give times.
    pub(crate) fn newest_header(&self) -> Header {
        Header {
            producer_ts_ns: self.newest_ts_ns,
            first_sample_index: self.newest_first_index,
            sample_rate_hz: self.stream.map_or(0.0, |stream| stream.rate_hz),
            ..Header::default()
        }
    }

    fn known_rate_hz(&self) -> Option<f64> {
        self.stream.map(|stream| stream.rate_hz).filter(|rate_hz| *rate_hz > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grebe_frame::{ClockReading, Description};

    use super::*;
    use crate::data::axis::AxisPoints;
    use crate::data::picture::StreamInfo;

    fn point(index: u64, clock: u64, ns: i64, error_ns: u64) -> AxisPoint {
        AxisPoint { index, time: AxisTime { clock, ns, error_ns, drift_ppb: 20_000, drift_error_ppb: 100 } }
    }

    fn picture(axis_points: Vec<AxisPoint>) -> Picture {
        let stream = StreamInfo {
            channels: 1,
            format: Default::default(),
            rate_hz: 1e6,
            block_samples: 100,
            generator_drops: 0,
        };
        Picture { stream: Some(stream), axis_points, ..Picture::waiting() }
    }

    #[test]
    fn the_nearest_of_each_clock_says_when_a_sample_was_made() {
        let mut points = AxisPoints::default();
        for (index, clock, ns) in [(0, 1, 5), (0, 2, 1_000), (1_000_000, 2, 2_000), (3_000_000, 2, 9_000)] {
            points.note(point(index, clock, ns, 10));
        }
        let near = |index| points.near(index).iter().map(|it| (it.time.clock, it.index)).collect::<Vec<_>>();
        assert_eq!(near(0.0), [(1, 0), (2, 0)]);
        assert_eq!(near(1_900_000.0), [(1, 0), (2, 1_000_000)]);
        assert_eq!(near(1e12), [(1, 0), (2, 3_000_000)]);
        let times = picture(points.near(2_000_000.0)).axis_times(4_000_000.0);
        // A second after the nearest point, for samples that are 20 ppm fast; of two equally near points, the later one.
        assert_eq!((times[1].ns, times[1].error_ns), (9_000 + 1_000_000_000 - 20_000, 110));
    }

    #[test]
    fn two_streams_share_the_surest_clock_or_else_utc() {
        let one = picture(vec![point(0, 1, 0, 10), point(0, 2, 0, 900)]);
        let other = picture(vec![point(50, 2, 1_000_000, 10), point(50, 1, 37_000_000, 10)]);
        let [line, others] = common_lines(&one, &other).unwrap();
        assert_eq!(line.base, TimeBase::Clock(1));
        // The same moment: 37 ms are 37,000 samples and a little.
        let index = others.index_at(line.ns_at(37_000.0));
        assert!((index - 50.0).abs() < 1.0, "{index}");
        assert!((others.index_at(others.ns_at(123_456.5)) - 123_456.5).abs() < 1e-3);
        let strange = picture(vec![point(0, 3, 0, 10)]);
        assert_eq!(common_lines(&one, &strange), None);
        let known = |error_ns| {
            let clock = ClockReading { producer_ts_ns: 1, unix_time_ns: 2, error_ns, clock: None };
            let description = Description { clock: Some(clock), ..Description::default() };
            let description = Some(Arc::new(description));
            Picture { description, newest_ts_ns: 1_001, ..picture(Vec::new()) }
        };
        let utc = common_lines(&known(Some(5)), &known(Some(7))).unwrap();
        assert_eq!((utc[0].base, utc[0].ns, utc[1].error_ns), (TimeBase::Utc, 1_002, 7));
        assert_eq!(common_lines(&known(Some(5)), &known(None)), None, "who knows how far that is off");
    }
}
