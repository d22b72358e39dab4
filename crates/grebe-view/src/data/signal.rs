//! Measurements of a channel's signal, from its samples and its spectrum: power, occupied band, noise, distortion.

use std::ops::Range;

use grebe_scope::{Averaging, Band, PowerStats, Sides, Spectrum, ToneQuality, Window as Weighting, peak_at};
use serde::{Deserialize, Serialize};

use crate::data::lane::{LaneId, Part};
use crate::data::samples::{self, Kind};
use crate::data::spectrum::band;
use crate::data::tracks::{Runs, Tracks};
use crate::data::viewport::Viewport;

/// Measurements of one channel's signal, over the visible samples. Powers are relative to a tone that uses the whole range;
/// frequencies are parts of the rate, as in a [`SpectrumView`](crate::SpectrumView).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SignalMeasurements {
    /// The channel, from 0.
    pub channel: usize,
    /// Mean power of all samples, in dBFS.
    pub power_dbfs: Option<f64>,
    /// The highest power of a sample over the mean, in decibels.
    pub peak_to_average_db: Option<f64>,
    /// The selected part of the spectrum. The fields below refer to it.
    pub within: Band,
    /// Power within it, in dBFS.
    pub channel_power_dbfs: Option<f64>,
    /// The band that holds 99 % of the power within it.
    pub occupied: Option<Band>,
    /// Ratio of signal to noise within it, in decibels, with the noise density from outside. `None` if it is the whole
    /// spectrum.
    pub channel_snr_db: Option<f64>,
    /// Purity of the highest tone of the whole spectrum, with nine harmonics; `None` if the rest is stronger.
    pub tone: Option<ToneQuality>,
    /// Samples measured: the newest held samples of the window, of a live stream at most 262,144. Infinite and NaN ones do not
    /// count.
    pub samples: u64,
}

/// Measures signals, and keeps the result until the next is due.
#[derive(Debug, Default)]
pub(crate) struct SignalMeasurer<K: Kind> {
    measured: Vec<SignalMeasurements>,
    measured_ns: u64,
    viewport: Option<Viewport>,
    samples: SignalSamples<K>,
}

/// Samples of one channel, silence at 0.
#[derive(Debug, Default)]
pub(super) struct SignalSamples<K> {
    first: Runs<K>,
    q: Runs<K>,
}

impl<K: Kind> SignalMeasurer<K> {
    /// Measures the window if the viewport asks for measurements and spectra, and one is due.
    pub(crate) fn measure(
        &mut self,
        tracks: &Tracks<K>,
        viewport: &Viewport,
        window: Range<f64>,
        now_ns: u64,
    ) -> Vec<SignalMeasurements> {
        let (Some(_), Some(settings)) = (&viewport.measure, viewport.spectrum) else {
            self.viewport = None;
            return Vec::new();
        };
        let is_same = self.viewport.as_ref() == Some(viewport);
        if is_same && now_ns.saturating_sub(self.measured_ns) < INTERVAL_NS {
            return self.measured.clone();
        }
        (self.viewport, self.measured_ns) = (Some(viewport.clone()), now_ns);
        let end = (window.end.max(0.0) as u64).min(tracks.sampled().next_index());
        let shown = (0..tracks.channels()).filter(|&channel| viewport.lanes.has_channel(channel));
        let shown: Vec<usize> = shown.take(CHANNELS_MAX).collect();
        let most = if viewport.is_exact { EXACT_MAX } else { SAMPLES_SUM_MAX / shown.len().max(1) as u64 };
        let start = (window.start.max(0.0) as u64).max(end.saturating_sub(most));
        let whole = band(tracks.format().is_complex());
        let (from, to) = settings.band.unwrap_or(whole);
        let within = Band { low: from.max(whole.0), high: to.min(whole.1) };
        self.measured.clear();
        for channel in shown {
            self.samples.clear();
            self.samples.add(tracks, channel, start..end);
            let measured = self.samples.measured(tracks, channel, within, f64::INFINITY, settings.size);
            self.measured.push(measured);
        }
        self.measured.clone()
    }
}

impl<K: Kind> SignalSamples<K> {
    fn clear(&mut self) {
        self.first.clear();
        self.q.clear();
    }

    /// Takes the samples of a range that are held; later ones with each call.
    pub(super) fn add(&mut self, tracks: &Tracks<K>, channel: usize, range: Range<u64>) {
        let is_complex = tracks.format().is_complex();
        let Some(track) = tracks.track(LaneId::first_of(channel, is_complex)) else { return };
        let before = self.first.samples.len();
        self.first.add(track, range.clone());
        let silence = samples::silence(tracks.format());
        if silence != 0.0 {
            let added = &mut self.first.samples[before..];
            added.iter_mut().for_each(|it| *it = K::from_f64(it.to_f64() - silence));
        }
        if let Some(track) = tracks.track(LaneId { channel, part: Part::Q }) {
            self.q.add(track, range);
        } else {
            // A real sample has no Q.
            self.q.samples.resize(self.first.samples.len(), K::default());
        }
    }

    /// Length of the longest run without a gap.
    pub(super) fn longest(&self) -> usize {
        self.first.iter().map(|(_, run)| run.len()).max().unwrap_or(0)
    }

    /// Calls `each` with the first index and the samples of parts of each run without a gap; real ones without Q.
    pub(super) fn each_run(&self, is_complex: bool, mut each: impl FnMut(u64, &[f32], &[f32])) {
        let floats = |run: &[K]| run.iter().map(|it| it.to_f64() as f32).collect::<Vec<f32>>();
        let mut q = self.q.iter();
        for (first, run) in self.first.iter() {
            let q = q.next().filter(|_| is_complex).map_or(&[][..], |(_, run)| run).chunks(RUN_SAMPLES);
            let mut q = q.map(floats);
            for (first, run) in (first..).step_by(RUN_SAMPLES).zip(run.chunks(RUN_SAMPLES)) {
                each(first, &floats(run), &q.next().unwrap_or_default());
            }
        }
    }

    /// Measures a band, with the noise of at most `beside` on either side, from transforms of `size` samples if there are enough.
    pub(super) fn measured(
        &self,
        tracks: &Tracks<K>,
        channel: usize,
        within: Band,
        beside: f64,
        size: usize,
    ) -> SignalMeasurements {
        let full_scale = tracks.full_scale();
        let mut power = PowerStats::default();
        power.add(&self.first.samples, &self.q.samples);
        let mut measured = SignalMeasurements {
            channel,
            power_dbfs: None,
            peak_to_average_db: None,
            within,
            channel_power_dbfs: None,
            occupied: None,
            channel_snr_db: None,
            tone: None,
            samples: power.count(),
        };
        // The mean power of a real tone is half the square of its amplitude.
        let tone = if tracks.format().is_complex() { full_scale } else { full_scale / 2f64.sqrt() };
        measured.power_dbfs = power.mean_dbfs(tone);
        measured.peak_to_average_db = power.peak_to_average_db();
        let Some((size, longest)) = self.sizes(size) else { return measured };
        let is_complex = tracks.format().is_complex();
        let look = |measured: &mut SignalMeasurements, size: usize| match is_complex {
            true => self
                .complex_spectrum(size, full_scale, Averaging::All)
                .is_some_and(|it| measured.look(&it, beside)),
            false => self
                .real_spectrum(size, full_scale, Averaging::All)
                .is_some_and(|it| measured.look(&it, beside)),
        };
        look(&mut measured, size);
        // A tone of a few lines has more lines in a longer transform.
        if measured.tone.is_none() && size < longest {
            let mut longer = measured;
            look(&mut longer, longest);
            measured.tone = longer.tone;
        }
        measured
    }

    /// Frequency and level in dBFS of the highest line of any transform within a band.
    pub(super) fn peak(&self, tracks: &Tracks<K>, within: Band, size: usize) -> Option<(f64, f64)> {
        let (size, full_scale) = (self.sizes(size)?.0, tracks.full_scale());
        match tracks.format().is_complex() {
            true => highest(&self.complex_spectrum(size, full_scale, Averaging::None)?, within),
            false => highest(&self.real_spectrum(size, full_scale, Averaging::None)?, within),
        }
    }

    /// Transforms nearest to a size that the samples allow, and the longest; `None` if there are too few samples.
    fn sizes(&self, size: usize) -> Option<(usize, usize)> {
        let longest = self.longest();
        if longest < SIZE_MIN {
            return None;
        }
        let longest = SIZE_MAX.min(1 << longest.ilog2());
        Some((size.next_power_of_two().clamp(SIZE_MIN, longest), longest))
    }

    // Allocates each time: it runs a few times a second, outside the data path.
    fn complex_spectrum(&self, size: usize, full_scale: f64, averaging: Averaging) -> Option<Spectrum<K, 2>> {
        let mut spectrum = Spectrum::complex(size, WEIGHTING, averaging).ok()?;
        spectrum.set_full_scale(full_scale);
        spectrum.set_peak_hold(averaging == Averaging::None);
        for ((first, i), (_, q)) in self.first.iter().zip(self.q.iter()) {
            spectrum.append(first, i, q, |_| {});
        }
        Some(spectrum)
    }

    fn real_spectrum(&self, size: usize, full_scale: f64, averaging: Averaging) -> Option<Spectrum<K, 1>> {
        let mut spectrum = Spectrum::new(size, WEIGHTING, averaging).ok()?;
        spectrum.set_full_scale(full_scale);
        spectrum.set_peak_hold(averaging == Averaging::None);
        for (first, run) in self.first.iter() {
            spectrum.append(first, run, |_| {});
        }
        Some(spectrum)
    }
}

impl SignalMeasurements {
    /// Takes the results of a spectrum; returns whether there are any.
    fn look<K: Kind, const COMPONENTS: usize>(
        &mut self,
        spectrum: &Spectrum<K, COMPONENTS>,
        beside: f64,
    ) -> bool {
        if spectrum.count() == 0 {
            return false;
        }
        let within = self.within;
        let whole = band(COMPONENTS == 2);
        // The window weights the samples, and transforms may skip the last ones. So scale by the power of all samples.
        let all = spectrum.band_power(Band { low: whole.0, high: whole.1 });
        let part = spectrum.band_power(within) / all;
        self.channel_power_dbfs =
            self.power_dbfs.filter(|_| part > 0.0).map(|all_dbfs| all_dbfs + 10.0 * part.min(1.0).log10());
        self.occupied = spectrum.occupied_band(0.99, within);
        // Measure noise on both sides of the channel, at the distance of a line's window.
        let apart = WINDOW_LINES / spectrum.size() as f64;
        let (low, high) = (within.low - apart, within.high + apart);
        let below = Band { low: whole.0.max(low - beside), high: low };
        let above = Band { low: high, high: whole.1.min(high + beside) };
        self.channel_snr_db = spectrum.channel_snr_db(within, &[below, above]);
        // In noise, the highest line is not a tone.
        self.tone = spectrum.tone_quality(HARMONICS).filter(|tone| tone.sinad_db > 0.0);
        true
    }
}

/// Frequency and level of the highest line of any transform within a band.
fn highest<K: Kind, const COMPONENTS: usize>(
    spectrum: &Spectrum<K, COMPONENTS>,
    within: Band,
) -> Option<(f64, f64)> {
    let dbfs = spectrum.hold_dbfs()?;
    let is_within =
        |line: &usize| (within.low..=within.high).contains(&spectrum.cycles_per_sample(*line as f64));
    let lines = (0..dbfs.len()).filter(is_within);
    let line = lines.max_by(|&a, &b| dbfs[a].total_cmp(&dbfs[b]))?;
    let sides = if COMPONENTS == 2 { Sides::Two } else { Sides::One };
    let peak = peak_at(dbfs, sides, WEIGHTING, f32::MIN, line as f64)?;
    Some((spectrum.cycles_per_sample(peak.line), peak.dbfs))
}

/// Its side lobes are 92 dB below a tone.
const WEIGHTING: Weighting = Weighting::BlackmanHarris;
/// Half the width that the window gives to a tone.
const WINDOW_LINES: f64 = 4.0;
/// The fundamental and nine more.
const HARMONICS: u32 = 10;
const SIZE_MIN: usize = 16;
/// Longer transforms leave too few to average.
const SIZE_MAX: usize = 1 << 16;
const CHANNELS_MAX: usize = 32;
const RUN_SAMPLES: usize = 1 << 16;
/// Bounds its time on the data path: about 5 ms.
const SAMPLES_SUM_MAX: u64 = 1 << 18;
/// Limit for a picture to be saved.
const EXACT_MAX: u64 = 1 << 24;
const INTERVAL_NS: u64 = 250_000_000;

#[cfg(test)]
mod tests {
    use grebe_frame::{Batch, BatchPool, Complex, Header, Sample};
    use grebe_testing::Rng;

    use super::*;
    use crate::data::core::ScopeCore;
    use crate::data::viewport::Scales;
    use crate::data::viewport::SpectrumSettings;

    fn frame<T: Sample>(first: u64, samples: &[T]) -> Batch {
        let header = Header {
            sequence: first / samples.len() as u64,
            channel_count: 1,
            format: T::FORMAT,
            block_length_samples: samples.len() as u32,
            sample_rate_hz: 1e6,
            first_sample_index: first,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
        batch.push::<T>(&header, |_, out| out.copy_from_slice(samples)).unwrap();
        batch.freeze()
    }

    fn measured<T: Sample>(samples: &[T], band: Option<(f64, f64)>) -> SignalMeasurements {
        let mut core = ScopeCore::new(64 << 20);
        for (block, samples) in samples.chunks_exact(4096).enumerate() {
            core.ingest(&frame(block as u64 * 4096, samples), 1).unwrap();
        }
        let spectrum = Some(SpectrumSettings { size: 4096, band, ..SpectrumSettings::default() });
        let viewport = Viewport {
            span: Some(1.0),
            measure: Some(Scales::default()),
            spectrum,
            is_exact: true,
            ..Viewport::latest(100)
        };
        core.answer(&viewport, 1).signals[0]
    }

    #[track_caller]
    fn assert_near(got: Option<f64>, expected: f64, reach: f64) {
        let got = got.unwrap();
        assert!((got - expected).abs() <= reach, "{got}, not {expected}");
    }

    /// Noise of variance 1 in each of I and Q: the sum of twelve uniform numbers.
    fn noise(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
    }

    #[test]
    fn noise_and_a_channel_in_it_are_what_they_were_made_of() {
        let mut rng = Rng::with_seed(7);
        // White noise of -40 dBFS, and seven tones of -20 dBFS each from 0.1 to 0.16 of the rate.
        let sigma = 10f64.powf(-40.0 / 20.0) / 2f64.sqrt();
        let tones: Vec<f64> = (0..7).map(|n| 0.1 + 0.01 * f64::from(n)).collect();
        let sample = |index: usize| {
            let turn = |cycles: f64| (cycles * index as f64).fract() * std::f64::consts::TAU;
            let (re, im) = tones.iter().fold((0.0, 0.0), |(re, im), &cycles| {
                let angle = turn(cycles) + cycles * 1e4;
                (re + 0.1 * angle.cos(), im + 0.1 * angle.sin())
            });
            Complex { re: (re + sigma * noise(&mut rng)) as f32, im: (im + sigma * noise(&mut rng)) as f32 }
        };
        let samples: Vec<Complex<f32>> = (0..1 << 18).map(sample).collect();
        let signal = 10.0 * 7f64.log10() - 20.0;
        let set = measured(&samples, Some((0.09, 0.17)));
        assert_near(set.channel_power_dbfs, signal, 0.05);
        // Noise within 0.08 of the rate.
        assert_near(set.channel_snr_db, signal + 40.0 - 10.0 * 0.08f64.log10(), 0.2);
        let occupied = set.occupied.unwrap();
        assert!((occupied.low - 0.1).abs() < 0.001 && (occupied.high - 0.16).abs() < 0.001, "{occupied:?}");
        assert_near(set.power_dbfs, 10.0 * (10f64.powf(signal / 10.0) + 1e-4).log10(), 0.05);
        let whole = measured(&samples, None);
        assert_eq!(whole.channel_snr_db, None, "there is nothing beside it");
        assert_eq!((whole.within.low, whole.within.high), (-0.5, 0.5));
    }

    /// 200 samples of a sine of 0.7 at 1.37 cycles and an offset of 0.1: the power of the whole band equals the mean
    /// of the squares.
    #[test]
    fn the_power_of_the_whole_band_is_that_of_the_samples() {
        let samples: Vec<f32> = (0..200)
            .map(|n| (0.1 + 0.7 * (f64::from(n) * 1.37 / 200.0 * std::f64::consts::TAU).sin()) as f32)
            .collect();
        let mean = samples.iter().map(|&it| f64::from(it).powi(2)).sum::<f64>() / 200.0;
        let mut core = ScopeCore::new(64 << 20);
        core.ingest(&frame(0, &samples), 1).unwrap();
        let viewport = |band| Viewport {
            span: Some(200e-6),
            measure: Some(Scales::default()),
            spectrum: Some(SpectrumSettings { band, ..SpectrumSettings::default() }),
            is_exact: true,
            ..Viewport::latest(100)
        };
        let set = core.answer(&viewport(None), 1).signals[0];
        assert_eq!(set.samples, 200);
        assert_near(set.power_dbfs, 10.0 * (2.0 * mean).log10(), 1e-6);
        assert_near(set.channel_power_dbfs, set.power_dbfs.unwrap(), 1e-9);
        let [low, high] =
            [(0.0, 0.1), (0.1, 0.5)].map(|band| core.answer(&viewport(Some(band)), 2).signals[0]);
        let power = |set: SignalMeasurements| 10f64.powf(set.channel_power_dbfs.unwrap() / 10.0);
        assert!((power(low) + power(high) - 2.0 * mean).abs() < 1e-6 && power(high) < 1e-3);
    }

    /// Half of full scale around 128 and around 127.5: 20 log10(0.5) dBFS, and no offset.
    #[test]
    fn bytes_without_sign_have_the_power_of_what_they_stand_for() {
        let angle = |n: usize| n as f64 * 0.012_345 * std::f64::consts::TAU;
        let real: Vec<u8> = (0..1 << 15).map(|n| (128.0 + 63.75 * angle(n).sin()).round() as u8).collect();
        assert_near(measured(&real, None).power_dbfs, -6.02, 0.02);
        assert_near(measured(&real, None).channel_power_dbfs, -6.02, 0.02);
        let byte = |part: f64| (127.5 + 63.75 * part).round() as u8;
        let complex: Vec<Complex<u8>> =
            (0..1 << 15).map(|n| Complex { re: byte(angle(n).cos()), im: byte(angle(n).sin()) }).collect();
        assert_near(measured(&complex, None).power_dbfs, -6.02, 0.02);
    }

    #[test]
    fn a_low_tone_is_measured_by_a_longer_transform() {
        // A saw of 5.12 lines of 4096: with nine harmonics -2.598 dB, as 1/2 to 1/10 are beside 1.
        let saw = |n: usize| (((n as f64 / 800.0).fract() * 2.0 - 1.0) * 30_000.0) as i16;
        let samples: Vec<i16> = (0..1 << 17).map(saw).collect();
        assert_near(measured(&samples, None).tone.unwrap().thd_db, -2.598, 0.1);
        assert_eq!(measured(&samples[..4096], None).tone, None, "five periods are too few");
    }

    #[test]
    fn a_sampled_sine_has_the_bits_of_its_converter() {
        let sine = |index: usize| {
            let angle = index as f64 * 0.012_345 * std::f64::consts::TAU;
            (angle.sin() * 127.0).round() as i8
        };
        let samples: Vec<i8> = (0..1 << 17).map(sine).collect();
        let set = measured(&samples, None);
        assert_near(set.power_dbfs, 20.0 * (127.0f64 / 128.0).log10(), 0.01);
        assert_near(set.peak_to_average_db, 3.01, 0.01);
        let tone = set.tone.unwrap();
        assert_near(Some(tone.enob), 8.0, 0.15);
        assert_near(Some(tone.sinad_db), 6.02 * 8.0 + 1.76, 1.0);
    }
}
