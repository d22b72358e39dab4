//! Measures the visible samples, a few times per second.

use std::ops::Range;

use grebe_scope::{Measurements, Measurer, Pyramid, Scale};

use crate::data::extract::Runs;
use crate::data::math::MATH_CHANNEL;
use crate::data::viewport::Viewport;

/// What was measured of one channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChannelMeasurements {
    /// The channel, from 0; [`MATH_CHANNEL`](crate::MATH_CHANNEL) for the math channel.
    pub channel: usize,
    /// Its quantities, in the units that the viewport's scales give.
    pub set: Measurements,
    /// Samples behind base, top, times and edges: the newest of the window that are still held singly, of a live stream at
    /// most 262,144.
    pub samples: u64,
    /// Samples behind extremes, mean and RMS: all of the window.
    pub level_samples: u64,
}

/// Measures pictures, and keeps the result until the next is due.
#[derive(Debug, Default)]
pub(crate) struct PictureMeasurer {
    measurer: Measurer,
    measured: Vec<ChannelMeasurements>,
    measured_ns: u64,
    viewport: Option<Viewport>,
    count: u64,
    samples: Runs,
}

impl PictureMeasurer {
    /// Measures the window if the viewport asks for it and a measurement is due. Returns the newest measurements, and the
    /// number of measurements so far.
    pub(crate) fn measure(
        &mut self,
        pyramid: &Pyramid,
        math: Option<(&Pyramid, Scale)>,
        viewport: &Viewport,
        rate_hz: f64,
        window: Range<f64>,
        now_ns: u64,
    ) -> (Vec<ChannelMeasurements>, u64) {
        let Some(scales) = viewport.measure else {
            self.viewport = None;
            return (Vec::new(), self.count);
        };
        let is_same = self.viewport == Some(*viewport);
        if is_same && now_ns.saturating_sub(self.measured_ns) < INTERVAL_NS {
            return (self.measured.clone(), self.count);
        }
        self.count += 1;
        self.viewport = Some(*viewport);
        self.measured_ns = now_ns;
        // The last column reaches beyond the newest sample.
        let end = (window.end.max(0.0) as u64).min(pyramid.next_index());
        let start = window.start.max(0.0) as u64;
        let samples_max = if viewport.is_exact { u64::MAX } else { SAMPLES_MAX };
        self.measured.clear();
        for channel in (0..pyramid.channels()).filter(|&channel| viewport.channels.contains(channel)) {
            let measured =
                self.channel(pyramid, channel, start..end, samples_max, rate_hz, scales[channel % 8]);
            self.measured.push(measured);
        }
        if let Some((history, scale)) = math {
            let measured = self.channel(history, 0, start..end, samples_max, rate_hz, scale);
            self.measured.push(ChannelMeasurements { channel: MATH_CHANNEL, ..measured });
        }
        (self.measured.clone(), self.count)
    }

    fn channel(
        &mut self,
        pyramid: &Pyramid,
        channel: usize,
        range: Range<u64>,
        samples_max: u64,
        rate_hz: f64,
        scale: Scale,
    ) -> ChannelMeasurements {
        let newest = range.start.max(range.end.saturating_sub(samples_max))..range.end;
        self.samples.copy(pyramid, channel, newest);
        let whole = pyramid.range_stats(channel, range);
        let runs: Vec<&[i16]> = self.samples.iter().map(|(_, run)| run).collect();
        let set = self.measurer.measure_within(&whole, &runs, rate_hz, scale);
        let samples = self.samples.samples.len() as u64;
        ChannelMeasurements { channel, set, samples, level_samples: whole.count }
    }
}

/// Bounds the time that a measurement takes from the data path: some 2 ms for eight channels, five times per second.
const SAMPLES_MAX: u64 = 1 << 18;
const INTERVAL_NS: u64 = 200_000_000;

#[cfg(test)]
mod tests {
    use grebe_scope::Quantity;

    use super::*;
    use crate::data::core::ScopeCore;
    use crate::testing::sine_batch;

    #[test]
    fn what_is_visible_is_measured_in_the_units_asked_for() {
        let mut core = ScopeCore::new(1 << 22);
        for block in 0..50 {
            core.ingest(&sine_batch(block * 500, 2, 500, 1e4), 1).unwrap();
        }
        let mut scales = [Scale::COUNTS; 8];
        scales[1] = Scale { factor: 1e-3, offset: 1.0 };
        let viewport = Viewport { span: Some(1.0), measure: Some(scales), ..Viewport::latest(100) };
        let measured = core.answer(&viewport, 1).measured;
        assert_eq!(measured.len(), 2);
        let close = |channel: usize, quantity, expected: f64| {
            let value = measured[channel].set.get(quantity).unwrap();
            assert!((value - expected).abs() <= expected.abs() * 0.002 + 1e-3, "{quantity:?} {value}");
        };
        close(0, Quantity::PeakToPeak, 20_000.0);
        close(0, Quantity::Frequency, 20.0);
        close(0, Quantity::Rms, 7071.0);
        close(1, Quantity::Mean, 1.0);
        close(1, Quantity::PeakToPeak, 10.0);
        close(1, Quantity::Frequency, 40.0);
        assert_eq!(measured[0].samples, 10_000);
        assert!(core.answer(&Viewport { measure: None, ..viewport }, 1).measured.is_empty());
    }

    #[test]
    fn a_gap_is_not_measured_across() {
        let mut core = ScopeCore::new(1 << 22);
        for block in (0..40).filter(|block| block % 10 != 9) {
            core.ingest(&sine_batch(block * 125, 1, 125, 1e4), 1).unwrap();
        }
        let viewport =
            Viewport { span: Some(0.5), measure: Some([Scale::COUNTS; 8]), ..Viewport::latest(100) };
        let set = core.answer(&viewport, 1).measured[0].set;
        assert!((set.get(Quantity::Frequency).unwrap() - 20.0).abs() < 0.1, "{set:?}");
    }

    #[test]
    fn extremes_cover_all_that_is_shown_and_edges_say_what_they_cover() {
        let mut core = ScopeCore::new(4 << 20);
        let glitch = |_: usize, index: u64| if index == 50_000 { 20_000 } else { (index % 100) as i16 * 20 };
        for block in 0..200 {
            core.ingest(&crate::testing::batch(block * 5000, 1, 5000, 1e6, glitch), 1).unwrap();
        }
        let viewport =
            Viewport { span: Some(1.0), measure: Some([Scale::COUNTS; 8]), ..Viewport::latest(100) };
        let picture = core.answer(&viewport, 1);
        let drawn = picture.channels[0].columns.iter().map(|column| column.max).max();
        let measured = &picture.measured[0];
        assert_eq!((drawn, measured.set.get(Quantity::Max)), (Some(20_000), Some(20_000.0)));
        assert_eq!(measured.samples, 262_144);
        assert!((989_000..=1_000_000).contains(&measured.level_samples), "{measured:?}");
        // A picture that is kept takes the time to look at all that is held.
        let exact = core.answer(&Viewport { is_exact: true, ..viewport }, 1).measured[0];
        assert!(exact.samples > 400_000 && exact.level_samples == 1_000_000, "{exact:?}");
    }
}
