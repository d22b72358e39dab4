//! Measurements of a box of time and frequency, and the burst in it.
//!
//! ```text
//!   samples   |----around----[====box====]----around----|   a burst is searched in all of it
//!   long box            [=]   [=]   [=]   [=]               pieces, spread evenly
//! ```

use std::ops::Range;

use grebe_scope::{Band, BurstDetector, BurstSettings};
use serde::{Deserialize, Serialize};

use crate::data::samples::Kind;
use crate::data::signal::{SignalMeasurements, SignalSamples};
use crate::data::tracks::Tracks;
use crate::data::viewport::{Region, Viewport};

/// Measurements of a [`Region`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionMeasurements {
    /// The measured box.
    pub region: Region,
    /// Power and spectrum of its samples. The noise density is that of bands as wide as the box on either side. Of a longer box, 2^20
    /// samples are used, in 16 pieces spread over it.
    pub signal: SignalMeasurements,
    /// Frequency, as a part of the rate, and level in dBFS of the highest line of any transform within the box.
    pub peak: Option<(f64, f64)>,
    /// The burst that covers most of the box: its samples, and the band of 99 % of its power. Not searched in boxes longer than
    /// 2^20 samples.
    pub burst: Option<Region>,
}

impl RegionMeasurements {
    /// Whether the box is too long to search a burst in it.
    pub(crate) fn is_long(&self) -> bool {
        self.region.samples.end - self.region.samples.start > SAMPLES_MAX
    }
}

/// Measures the box of a viewer, and keeps the result while its samples stay the same.
#[derive(Debug, Default)]
pub(super) struct RegionMeasurer {
    /// The end of the available samples, and when they were measured.
    measured_to: u64,
    measured_ns: u64,
    pub(super) measured: Option<RegionMeasurements>,
}

impl RegionMeasurer {
    /// Measures the box of a viewport if it is new, or if more of its samples are there: at most four times a second, but for
    /// an exact picture at once. `all`: the available samples;
    /// `with` calls its argument with tracks that hold a range of them.
    pub(super) fn measure<K: Kind>(
        &mut self,
        viewport: &Viewport,
        all: Range<u64>,
        now_ns: u64,
        mut with: impl FnMut(Range<u64>, &mut dyn FnMut(&Tracks<K>)),
    ) {
        let Some(region) = &viewport.region else {
            *self = RegionMeasurer::default();
            return;
        };
        let samples = region.samples.start.max(all.start)..region.samples.end.min(all.end);
        if self.measured.as_ref().is_some_and(|measured| measured.region == *region) {
            let is_soon = !viewport.is_exact && now_ns.saturating_sub(self.measured_ns) < INTERVAL_NS;
            if self.measured_to >= samples.end || is_soon {
                return;
            }
        }
        self.measured = None;
        if samples.is_empty() || region.band.width().is_nan() || region.band.width() <= 0.0 {
            return;
        }
        let mut of_box = SignalSamples::default();
        for piece in pieces(&samples) {
            with(piece.clone(), &mut |tracks| of_box.add(tracks, region.channel, piece.clone()));
        }
        let (mut signal, mut peak, mut burst) = (None, None, None);
        let around = around(region, &samples, &all);
        with(around.clone(), &mut |tracks| {
            let size = (LINES_MIN / region.band.width()).min(1e9) as usize;
            let size = size.min(of_box.longest() / TRANSFORMS_MIN);
            signal = Some(of_box.measured(tracks, region.channel, region.band, region.band.width(), size));
            peak = of_box.peak(tracks, region.band, size);
            if around.end - around.start > samples.end - samples.start {
                let mut samples = SignalSamples::default();
                samples.add(tracks, region.channel, around.clone());
                burst = burst_in(region, &around, &samples, tracks);
            }
        });
        // Samples that have not arrived yet may come.
        let is_any = signal.is_some_and(|signal| signal.samples > 0);
        (self.measured_to, self.measured_ns) = (if is_any { samples.end } else { 0 }, now_ns);
        self.measured =
            signal.map(|signal| RegionMeasurements { region: region.clone(), signal, peak, burst });
    }
}

/// All samples, or pieces of them.
fn pieces(samples: &Range<u64>) -> Vec<Range<u64>> {
    let length = samples.end - samples.start;
    if length <= SAMPLES_MAX {
        return std::iter::once(samples.clone()).collect();
    }
    let piece = SAMPLES_MAX / PIECES;
    let first = |number: u64| {
        samples.start + (u128::from(length - piece) * u128::from(number) / u128::from(PIECES - 1)) as u64
    };
    (0..PIECES).map(|number| first(number)..first(number) + piece).collect()
}

/// The samples in which a burst is searched: none beside a long box.
fn around(region: &Region, samples: &Range<u64>, all: &Range<u64>) -> Range<u64> {
    let length = samples.end - samples.start;
    if length > SAMPLES_MAX {
        return samples.end - SAMPLES_MAX / PIECES..samples.end;
    }
    let margin = length.max(FLOOR_TRANSFORMS * burst_size(region) as u64);
    samples.start.saturating_sub(margin).max(all.start)..(samples.end + margin).min(all.end)
}

/// Samples per transform in which the box has about as many rows as lines.
fn burst_size(region: &Region) -> usize {
    let length = (region.samples.end - region.samples.start) as f64;
    let size = (length / region.band.width()).sqrt().clamp(BURST_SIZES.0, BURST_SIZES.1);
    1 << (size as usize).ilog2()
}

/// The burst that covers most of a box.
fn burst_in<K: Kind>(
    region: &Region,
    around: &Range<u64>,
    samples: &SignalSamples<K>,
    tracks: &Tracks<K>,
) -> Option<Region> {
    let settings = BurstSettings { size: burst_size(region), ..BurstSettings::default() };
    let is_complex = tracks.format().is_complex();
    let make = if is_complex { BurstDetector::complex } else { BurstDetector::real };
    let mut detector = make(settings, tracks.full_scale()).ok()?;
    let mut best: Option<(f64, Region)> = None;
    let mut take = |burst: grebe_scope::Burst| {
        let first = burst.first_sample_index;
        let half = burst.bandwidth / 2.0;
        let found = Region {
            channel: region.channel,
            samples: first..first + burst.length_samples,
            band: Band { low: burst.centre - half, high: burst.centre + half },
        };
        let common = |a: f64, b: f64, from: f64, to: f64| (b.min(to) - a.max(from)).max(0.0);
        let time = |samples: &Range<u64>| (samples.start as f64, samples.end as f64);
        let ((a, b), (from, to)) = (time(&region.samples), time(&found.samples));
        let covered = common(a, b, from, to)
            * common(region.band.low, region.band.high, found.band.low, found.band.high);
        if covered > best.as_ref().map_or(0.0, |(most, _)| *most) {
            best = Some((covered, found));
        }
    };
    // A burst may be there from the first sample on, or close after another one.
    let pieces: Vec<Range<u64>> = detector.pieces(around.end - around.start).collect();
    samples.each_run(is_complex, |first, i, q| {
        let place = |index: u64| (index.saturating_sub(first) as usize).min(i.len());
        for piece in &pieces {
            let own = place(around.start + piece.start)..place(around.start + piece.end);
            detector.learn(&i[own.clone()], q.get(own).unwrap_or_default());
        }
    });
    samples.each_run(is_complex, |first, i, q| detector.append(first, i, q, &mut take));
    detector.end(&mut take);
    best.map(|(_, found)| found)
}

/// Bounds the time on the data path: about 15 ms for the box, and as much for a burst.
const SAMPLES_MAX: u64 = 1 << 20;
/// Pieces of a longer box.
const PIECES: u64 = 16;
/// Lines of a transform within the band, if the box is long enough for some transforms.
const LINES_MIN: f64 = 64.0;
const TRANSFORMS_MIN: usize = 4;
/// Transforms on either side of the box from which the noise floor is learned.
const FLOOR_TRANSFORMS: u64 = 160;
const BURST_SIZES: (f64, f64) = (64.0, 2048.0);
const INTERVAL_NS: u64 = 250_000_000;

#[cfg(test)]
mod tests;
