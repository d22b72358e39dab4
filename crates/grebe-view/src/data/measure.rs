//! Measures the visible samples, a few times per second.

use std::ops::Range;

use grebe_scope::{Measurements, Measurer, Quantity, RangeStats, Scale, ShiftMeasurer};
use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;
use crate::data::samples::Kind;
use crate::data::tracks::{Runs, Track, Tracks};
use crate::data::viewport::Viewport;

/// Statistics of all samples in a window, even those outside the history.
pub(crate) type Whole<'a, K> = &'a dyn Fn(LaneId) -> Option<RangeStats<K>>;

/// Measurements of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LaneMeasurements {
    /// The lane.
    pub lane: LaneId,
    /// Its quantities, in the units of the viewport's scales.
    #[serde(rename = "values")]
    pub set: Measurements,
    /// Samples used for base, top, times and edges: the newest held samples of the window, of a live stream at most
    /// 262,144.
    pub samples: u64,
    /// Samples used for extremes, mean and RMS: the whole window.
    pub level_samples: u64,
}

/// The window to measure.
pub(crate) struct Seen<'a, K: Kind> {
    /// Sample indices.
    pub(crate) window: Range<f64>,
    /// Samples per second; 0 = unknown.
    pub(crate) rate_hz: f64,
    /// Statistics of all its samples, if the history does not hold them.
    pub(crate) whole: Whole<'a, K>,
}

/// Measures pictures, and keeps the result until the next is due.
#[derive(Debug, Default)]
pub(crate) struct PictureMeasurer<K: Kind> {
    lanes: LaneMeasurer<K>,
    math: LaneMeasurer<f32>,
    shifts: Shifts,
    measured: Vec<LaneMeasurements>,
    measured_ns: u64,
    viewport: Option<Viewport>,
    count: u64,
}

#[derive(Debug, Default)]
struct LaneMeasurer<K: Kind> {
    measurer: Measurer<K>,
    samples: Runs<K>,
}

impl<K: Kind> PictureMeasurer<K> {
    /// Measures the window if the viewport asks for it and a measurement is due. Returns the newest measurements and
    /// their number.
    pub(crate) fn measure(
        &mut self,
        tracks: &Tracks<K>,
        math: Option<(Track<'_, f32>, Scale)>,
        viewport: &Viewport,
        seen: &Seen<'_, K>,
        now_ns: u64,
    ) -> (Vec<LaneMeasurements>, u64) {
        let Seen { window, rate_hz, whole } = seen;
        let Some(scales) = &viewport.measure else {
            self.viewport = None;
            return (Vec::new(), self.count);
        };
        let is_same = self.viewport.as_ref() == Some(viewport);
        if is_same && now_ns.saturating_sub(self.measured_ns) < INTERVAL_NS {
            return (self.measured.clone(), self.count);
        }
        self.count += 1;
        self.viewport = Some(viewport.clone());
        self.measured_ns = now_ns;
        // The last column extends beyond the newest sample.
        let end = (window.end.max(0.0) as u64).min(tracks.sampled().next_index());
        let lanes: Vec<LaneId> = tracks.lanes(viewport.lanes).collect();
        let samples_max = (SAMPLES_SUM_MAX / lanes.len().max(1) as u64).min(SAMPLES_MAX);
        let span = Span {
            range: window.start.max(0.0) as u64..end,
            samples_max: if viewport.is_exact { u64::MAX } else { samples_max },
            rate_hz: *rate_hz,
        };
        self.measured.clear();
        for lane in lanes {
            let Some(track) = tracks.track(lane) else { continue };
            let scale = scales.get(lane).copied().unwrap_or(Scale::COUNTS);
            self.measured.push(self.lanes.measure(lane, track, &span, scale, whole(lane)));
        }
        if let Some((track, scale)) = math {
            self.measured.push(self.math.measure(LaneId::MATH, track, &span, scale, None));
        }
        self.shift(tracks, math.map(|(track, _)| track), viewport, &span);
        (self.measured.clone(), self.count)
    }
}

impl<K: Kind> PictureMeasurer<K> {
    /// Delay and phase of each lane against a reference lane, over the newest samples without a gap.
    fn shift(&mut self, tracks: &Tracks<K>, math: Option<Track<'_, f32>>, viewport: &Viewport, span: &Span) {
        let Some(against) = viewport.against.or(self.measured.first().map(|it| it.lane)) else { return };
        let others = self.measured.iter().filter(|it| it.lane != against).count();
        if others == 0 || span.rate_hz <= 0.0 {
            return;
        }
        let most =
            if viewport.is_exact { SHIFT_EXACT_MAX } else { SHIFT_SUM_MAX / others.min(SHIFTS_MAX) as u64 };
        let Range { start, end } = span.range;
        let scales = viewport.measure.as_deref();
        // A negative factor inverts the signal.
        let sign = |lane| scales.and_then(|it| it.get(lane)).map_or(1.0, |it| it.factor.signum() as f32);
        let mut copy =
            |lane: LaneId, range: Range<u64>, out: &mut Vec<f32>| match math.filter(|_| lane.is_math()) {
                Some(track) => longest(&mut self.math.samples, track, range, sign(lane), out),
                None => longest(&mut self.lanes.samples, tracks.track(lane)?, range, sign(lane), out),
            };
        let Shifts { measurer, reference, other } = &mut self.shifts;
        let Some(from) = copy(against, start.max(end.saturating_sub(most))..end, reference) else { return };
        let range = from..from + reference.len() as u64;
        for measured in self.measured.iter_mut().filter(|it| it.lane != against).take(SHIFTS_MAX) {
            if copy(measured.lane, range.clone(), other) != Some(from) || other.len() != reference.len() {
                continue;
            }
            let shift = measurer.measure(reference, other);
            let seconds = shift.delay_samples.map(|samples| samples / span.rate_hz);
            measured.set.put(Quantity::Delay, seconds);
            measured.set.put(Quantity::Phase, shift.phase_degrees);
        }
    }
}

/// Measures the delays between lanes.
#[derive(Debug, Default)]
struct Shifts {
    measurer: ShiftMeasurer,
    reference: Vec<f32>,
    other: Vec<f32>,
}

/// Copies the longest run of a lane without a gap, and returns the index of its first sample.
fn longest<K: Kind>(
    samples: &mut Runs<K>,
    track: Track<'_, K>,
    range: Range<u64>,
    sign: f32,
    out: &mut Vec<f32>,
) -> Option<u64> {
    samples.copy(track, range);
    let (first, run) = samples.iter().max_by_key(|(_, run)| run.len())?;
    out.clear();
    out.extend(run.iter().map(|it| it.to_f64() as f32 * sign));
    Some(first)
}

/// The parts of the window that are measured.
struct Span {
    range: Range<u64>,
    samples_max: u64,
    rate_hz: f64,
}

impl<K: Kind> LaneMeasurer<K> {
    /// Without outside statistics, the history's are used.
    fn measure(
        &mut self,
        lane: LaneId,
        track: Track<'_, K>,
        span: &Span,
        scale: Scale,
        whole: Option<RangeStats<K>>,
    ) -> LaneMeasurements {
        let Range { start, end } = span.range;
        let newest = start.max(end.saturating_sub(span.samples_max))..end;
        self.samples.copy(track, newest);
        let whole = whole.unwrap_or_else(|| track.pyramid.range_stats(track.place, start..end));
        let runs: Vec<&[K]> = self.samples.iter().map(|(_, run)| run).collect();
        let set = self.measurer.measure_within(&whole, &runs, span.rate_hz, scale);
        let samples = self.samples.samples.len() as u64;
        LaneMeasurements { lane, set, samples, level_samples: whole.count }
    }
}

/// Bounds the time of a measurement on the data path: about 2 ms for eight lanes or more, five times per second.
const SAMPLES_MAX: u64 = 1 << 18;
const SAMPLES_SUM_MAX: u64 = 8 << 18;
/// The same for delays: about 3 ms.
const SHIFT_SUM_MAX: u64 = 1 << 14;
/// Limit for a picture to be saved.
const SHIFT_EXACT_MAX: u64 = 1 << 19;
/// Maximum lanes that are compared with the reference.
const SHIFTS_MAX: usize = 32;
const INTERVAL_NS: u64 = 200_000_000;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grebe_scope::Quantity;

    use super::*;
    use crate::data::core::ScopeCore;
    use crate::data::viewport::Scales;
    use crate::testing::sine_batch;

    #[test]
    fn what_is_visible_is_measured_in_the_units_asked_for() {
        let mut core = ScopeCore::new(1 << 22);
        for block in 0..50 {
            core.ingest(&sine_batch(block * 500, 2, 500, 1e4), 1).unwrap();
        }
        let milli = Scale { factor: 1e-3, offset: 1.0 };
        let scales: Scales = Arc::new([(LaneId::real(1), milli)].into_iter().collect());
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
        assert!(core.answer(&Viewport { measure: None, ..viewport.clone() }, 1).measured.is_empty());
    }

    #[test]
    fn delay_and_phase_are_those_of_a_known_pair_and_a_dash_where_there_is_none() {
        // 1 kHz at 100 kS/s: the second channel is 34.56 us later, the third inverted, the fourth has another frequency.
        let value = |channel: usize, index: u64| {
            let at = index as f64 / 1e5 - if channel == 1 { 34.56e-6 } else { 0.0 };
            let hz = if channel == 3 { 1700.0 } else { 1000.0 };
            let signal = (at * hz * std::f64::consts::TAU).sin() * 10_000.0;
            (if channel == 2 { -signal } else { signal }).round() as i16
        };
        let mut core = ScopeCore::new(1 << 22);
        for block in 0..40 {
            core.ingest(&crate::testing::batch(block * 500, 4, 500, 1e5, value), 1).unwrap();
        }
        let viewport =
            Viewport { span: Some(0.2), measure: Some(Scales::default()), ..Viewport::latest(100) };
        let of = |core: &mut ScopeCore, viewport: &Viewport, channel: usize| {
            let set = core.answer(viewport, 1).measured[channel].set;
            (set.get(Quantity::Delay), set.get(Quantity::Phase))
        };
        let near = |(delay, phase): (Option<f64>, Option<f64>), true_us: f64, true_phase: f64| {
            let (us, phase) = (delay.unwrap() * 1e6, phase.unwrap());
            assert!((us - true_us).abs() < 0.01, "{us} us for {true_us}");
            assert!((phase - true_phase).abs() < 0.01, "{phase} degrees for {true_phase}");
        };
        assert_eq!(of(&mut core, &viewport, 0), (None, None), "itself");
        near(of(&mut core, &viewport, 1), 34.56, -12.4416);
        assert!((of(&mut core, &viewport, 2).1.unwrap().abs() - 180.0).abs() < 0.01);
        assert_eq!(of(&mut core, &viewport, 3), (None, None), "another frequency");
        let second = Viewport { against: Some(LaneId::real(1)), ..viewport.clone() };
        near(of(&mut core, &second, 0), -34.56, 12.4416);
        // Its scale inverts it again.
        let turned = [(LaneId::real(2), Scale { factor: -1.0, offset: 0.0 })].into_iter().collect();
        near(
            of(&mut core, &Viewport { measure: Some(Arc::new(turned)), is_exact: true, ..viewport }, 2),
            0.0,
            0.0,
        );
    }

    #[test]
    fn a_gap_is_not_measured_across() {
        let mut core = ScopeCore::new(1 << 22);
        for block in (0..40).filter(|block| block % 10 != 9) {
            core.ingest(&sine_batch(block * 125, 1, 125, 1e4), 1).unwrap();
        }
        let viewport =
            Viewport { span: Some(0.5), measure: Some(Scales::default()), ..Viewport::latest(100) };
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
            Viewport { span: Some(1.0), measure: Some(Scales::default()), ..Viewport::latest(100) };
        let picture = core.answer(&viewport, 1);
        let drawn = picture.lanes[0].columns.iter().map(|column| column.max).fold(f32::MIN, f32::max);
        let measured = &picture.measured[0];
        assert_eq!((drawn, measured.set.get(Quantity::Max)), (20_000.0, Some(20_000.0)));
        assert_eq!(measured.samples, 262_144);
        assert!((989_000..=1_000_000).contains(&measured.level_samples), "{measured:?}");
        // A picture to be saved may take the time to search all held samples.
        let exact = core.answer(&Viewport { is_exact: true, ..viewport }, 1).measured[0];
        assert!(exact.samples > 400_000 && exact.level_samples == 1_000_000, "{exact:?}");
    }
}
