//! How much arrives, and how late: sliding windows of fixed size.

use crate::data::picture::Flow;

/// Totals of the last second or so, in steps of a sixteenth.
#[derive(Debug, Default)]
pub(crate) struct FlowMeter {
    marks: [Mark; MARKS],
    at: usize,
    total: Mark,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    at_ns: u64,
    frames: u64,
    samples: u64,
    bytes: u64,
}

impl FlowMeter {
    pub(crate) fn add(&mut self, now_ns: u64, frames: u64, samples: u64, bytes: u64) {
        if self.total.at_ns == 0 {
            self.marks = [Mark { at_ns: now_ns, ..Mark::default() }; MARKS];
        }
        self.total.at_ns = now_ns;
        self.total.frames += frames;
        self.total.samples += samples;
        self.total.bytes += bytes;
        if now_ns.saturating_sub(self.marks[self.at].at_ns) >= STEP_NS {
            self.at = (self.at + 1) % MARKS;
            self.marks[self.at] = self.total;
        }
    }

    pub(crate) fn flow(&self, now_ns: u64) -> Flow {
        // The mark to be overwritten next is the oldest. Below a quarter of a second a rate is a guess.
        let oldest = self.marks[(self.at + 1) % MARKS];
        let seconds = now_ns.saturating_sub(oldest.at_ns) as f64 * 1e-9;
        if seconds < 0.25 {
            return Flow::default();
        }
        let rate = |new: u64, old: u64| (new - old) as f64 / seconds;
        Flow {
            frames_per_s: rate(self.total.frames, oldest.frames),
            samples_per_s: rate(self.total.samples, oldest.samples),
            bytes_per_s: rate(self.total.bytes, oldest.bytes),
        }
    }
}

/// The smallest difference between arrival and production time over the last 15 to 30 seconds.
#[derive(Debug, Default)]
pub(crate) struct TransitMeter {
    current_ns: Option<i64>,
    previous_ns: Option<i64>,
    since_ns: u64,
}

impl TransitMeter {
    pub(crate) fn add(&mut self, now_ns: u64, producer_ts_ns: u64) {
        if now_ns.saturating_sub(self.since_ns) > WINDOW_NS {
            self.previous_ns = self.current_ns.take();
            self.since_ns = now_ns;
        }
        let transit_ns = (now_ns as i64).wrapping_sub(producer_ts_ns as i64);
        self.current_ns = Some(self.current_ns.map_or(transit_ns, |least| least.min(transit_ns)));
    }

    /// 0 before the first frame.
    pub(crate) fn min_ns(&self) -> i64 {
        self.current_ns.into_iter().chain(self.previous_ns).min().unwrap_or(0)
    }
}

const MARKS: usize = 17;
const STEP_NS: u64 = 62_500_000;
const WINDOW_NS: u64 = 15_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_has_its_rate_and_a_silent_one_fades() {
        let mut meter = FlowMeter::default();
        let start = 5_000_000_000;
        for step in 0..300 {
            meter.add(start + step * 10_000_000, 4, 1000, 2000);
        }
        let end = start + 299 * 10_000_000;
        let flow = meter.flow(end);
        assert!((flow.frames_per_s - 400.0).abs() < 10.0, "{flow:?}");
        assert!((flow.samples_per_s - 100_000.0).abs() < 2500.0, "{flow:?}");
        assert!(meter.flow(end + 10_000_000_000).frames_per_s < 50.0);
        assert_eq!(FlowMeter::default().flow(0), Flow::default());
    }

    #[test]
    fn the_least_transit_is_forgotten_after_half_a_minute() {
        let mut meter = TransitMeter::default();
        assert_eq!(meter.min_ns(), 0);
        let second = 1_000_000_000;
        meter.add(100 * second, 100 * second - 7);
        meter.add(101 * second, 101 * second - 50);
        assert_eq!(meter.min_ns(), 7);
        for at in 102..140 {
            meter.add(at * second, at * second - 50);
        }
        assert_eq!(meter.min_ns(), 50);
        // Another machine's clock may be ahead.
        meter.add(141 * second, 200 * second);
        assert_eq!(meter.min_ns(), -59 * second as i64);
    }
}
