//! Spectra and a waterfall of the newest visible samples, updated a few times per second.

mod cells;
mod held;
mod row_levels;
mod transform;
mod waterfall_view;

use std::ops::Range;
use std::sync::Arc;

use grebe_scope::{Averaging, Peak};

use crate::data::samples::Kind;
use crate::data::tracks::Tracks;
use crate::data::viewport::{SpectrumSettings, Viewport};
pub(crate) use cells::{Cells, ROW_SIZE_MAX, SUMMARY_SIZE, band, row_size};
pub(crate) use held::ROWS;
use held::{Fall, HeldWaterfall};
pub(crate) use row_levels::RowLevels;
use transform::Samples;
pub(crate) use transform::Transform;
pub(crate) use waterfall_view::{Sampled, WaterfallView};

/// The spectra of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct SpectrumView {
    /// The requested settings.
    pub settings: SpectrumSettings,
    /// Samples per transform, as used, over [`joined`](Self::joined).
    pub size: usize,
    /// Transform lines per line here, of which it is the highest; 1, except for a viewer on another host.
    pub joined: usize,
    /// Whether the samples are complex: lines then go from minus half the rate to half the rate, else from 0 Hz.
    pub is_two_sided: bool,
    /// One per requested channel with enough samples without a gap.
    pub channels: Vec<ChannelSpectrum>,
    pub(crate) waterfall: Option<WaterfallView>,
}

/// The spectrum of one channel.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelSpectrum {
    /// The channel, from 0.
    pub channel: usize,
    /// Lines in dBFS, from the lowest frequency to the highest.
    pub dbfs: Vec<f32>,
    /// Highest levels so far, if peaks are held.
    pub hold_dbfs: Vec<f32>,
    /// The highest peaks, in descending order.
    pub peaks: Vec<Peak>,
}

impl SpectrumView {
    /// Number of transforms in the waterfall, and number that covers all samples. `None` without a waterfall, or if
    /// each row is one transform.
    pub fn waterfall_sampled(&self) -> Option<(u64, u64)> {
        let sampled = self.waterfall.as_ref()?.sampled?;
        Some((sampled.done, sampled.all))
    }

    /// Samples per transform.
    pub fn transform_size(&self) -> usize {
        self.size * self.joined
    }

    /// The lowest and the highest frequency, as parts of the rate.
    pub(crate) fn band(&self) -> (f64, f64) {
        band(self.is_two_sided)
    }

    /// Samples per transform of the waterfall.
    pub(crate) fn row_size(&self) -> usize {
        row_size(self.is_two_sided, self.transform_size(), self.settings.band)
    }

    /// Frequency of a line, or of a place between lines, as a part of the rate.
    pub fn cycles_per_sample(&self, line: f64) -> f64 {
        line / self.size as f64 + self.band().0
    }
}

/// Transforms samples, and keeps the result until the next is due.
#[derive(Debug, Default)]
pub(crate) struct SpectrumAnalyzer<K: Kind> {
    asked: Option<Viewport>,
    made_ns: u64,
    view: Option<Arc<SpectrumView>>,
    number: u64,
    /// Full scale of the present transforms.
    full_scale: f64,
    channels: Vec<Option<Transform<K>>>,
    waterfall: HeldWaterfall<K>,
    samples: Samples<K>,
}

impl<K: Kind> SpectrumAnalyzer<K> {
    /// The spectra of the samples before `window.end`, if the viewport asks for them.
    pub(crate) fn view(
        &mut self,
        tracks: &Tracks<K>,
        viewport: &Viewport,
        window: Range<f64>,
        (is_ended, now_ns): (bool, u64),
    ) -> Option<Arc<SpectrumView>> {
        let Some(settings) = viewport.spectrum else {
            *self = SpectrumAnalyzer { number: self.number, ..SpectrumAnalyzer::default() };
            return None;
        };
        let is_same = self.asked.as_ref() == Some(viewport);
        if is_same && self.view.is_some() && now_ns.saturating_sub(self.made_ns) < INTERVAL_NS {
            return self.view.clone();
        }
        if viewport.is_exact || self.asked.as_ref().and_then(|asked| asked.spectrum) != Some(settings) {
            // Averages and held peaks belong to the old settings.
            self.channels.clear();
        }
        if std::mem::replace(&mut self.full_scale, tracks.full_scale()) != self.full_scale {
            self.channels.clear();
        }
        self.asked = Some(viewport.clone());
        self.made_ns = now_ns;
        let history = tracks.sampled();
        let end = (window.end.max(0.0) as u64).min(history.next_index());
        let oldest = history.oldest().unwrap_or(end);
        let wanted = usable_size(settings.size, end.saturating_sub(oldest))?;
        let size = self.size_without_gap(tracks, viewport, wanted, end)?;
        let shown = (0..tracks.channels()).filter(|&channel| viewport.lanes.has_channel(channel));
        let shown = shown.take(CHANNELS_MAX);
        let channels =
            shown.filter_map(|channel| self.channel(tracks, viewport, size, channel, end)).collect();
        let waterfall = settings.waterfall.filter(|&channel| channel < tracks.channels());
        let span_samples = (window.end - window.start).max(size as f64 * 2.0);
        // After the end of a stream, no further picture would add transforms.
        let most = match (viewport.is_exact, is_ended) {
            (true, _) => u64::MAX,
            (false, true) => ROW_TRANSFORMS_ENDED_MAX,
            (false, false) => ROW_TRANSFORMS_MAX,
        };
        let is_two_sided = tracks.format().is_complex();
        let waterfall = waterfall.and_then(|channel| {
            let cells = Cells::of(is_two_sided, size, settings.band, viewport.columns);
            let view =
                self.waterfall.view(tracks, settings, Fall { channel, cells, end, span_samples, most })?;
            Some(WaterfallView { number: self.next_number(), ..view })
        });
        self.view =
            Some(Arc::new(SpectrumView { settings, size, joined: 1, is_two_sided, channels, waterfall }));
        self.view.clone()
    }

    /// Called when another stream starts, or other samples are held.
    pub(crate) fn forget(&mut self) {
        self.waterfall.forget();
    }

    /// The number of the next waterfall, whichever type makes it.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Halves the size until the samples near `end` hold one transform without a gap.
    fn size_without_gap(
        &mut self,
        tracks: &Tracks<K>,
        viewport: &Viewport,
        wanted: usize,
        end: u64,
    ) -> Option<usize> {
        let channel = (0..tracks.channels()).find(|&channel| viewport.lanes.has_channel(channel))?;
        let sizes = std::iter::successors(Some(wanted), |&size| (size > SIZE_MIN).then_some(size / 2));
        sizes.into_iter().find(|&size| self.end_without_gap(tracks, channel, size, end).is_some())
    }

    /// Copies the newest `size` samples before `end` without a gap, and returns their end. If the newest gap is too near to
    /// `end`, takes the samples before the gap.
    fn end_without_gap(&mut self, tracks: &Tracks<K>, channel: usize, size: usize, end: u64) -> Option<u64> {
        let step = (size / 2) as u64;
        let mut ends = (0..8).map(|back| end.saturating_sub(back * step));
        ends.find(|&end| self.samples.copy(tracks, channel, end, size))
    }

    fn channel(
        &mut self,
        tracks: &Tracks<K>,
        viewport: &Viewport,
        size: usize,
        channel: usize,
        end: u64,
    ) -> Option<ChannelSpectrum> {
        let settings = viewport.spectrum?;
        let end = self.end_without_gap(tracks, channel, size, end)?;
        self.channels.resize_with(tracks.channels().max(self.channels.len()), || None);
        let transform = self.channels[channel].take().filter(|transform| transform.size() == size);
        let mut transform = match transform {
            Some(transform) => transform,
            None => {
                let averaging = match settings.averages {
                    0 | 1 => Averaging::None,
                    parts => Averaging::Exponential(parts),
                };
                let mut transform =
                    Transform::new(tracks.format(), self.full_scale, settings, size, averaging)?;
                transform.set_peak_hold(settings.is_peak_held);
                transform
            }
        };
        // On a live stream, each view adds to the average. A picture to be saved has no earlier view.
        let parts = if viewport.is_exact { u64::from(settings.averages.max(1)) } else { 1 };
        for back in (0..parts).rev() {
            let end = end.saturating_sub(back * size as u64);
            if self.samples.copy(tracks, channel, end, size) {
                transform.append(end - size as u64, &self.samples, |_| {});
            }
        }
        let view = ChannelSpectrum {
            channel,
            dbfs: transform.dbfs().to_vec(),
            hold_dbfs: transform.hold_dbfs().unwrap_or_default().to_vec(),
            peaks: transform.peaks(PEAKS, peak_floor_dbfs(transform.dbfs())),
        };
        self.channels[channel] = Some(transform);
        Some(view)
    }
}

/// The requested size, or the largest power of two that the samples allow.
fn usable_size(asked: usize, samples: u64) -> Option<usize> {
    let asked = asked.clamp(SIZE_MIN, SIZE_MAX).next_power_of_two();
    let there = usize::try_from(samples).unwrap_or(usize::MAX);
    (there >= SIZE_MIN).then(|| asked.min(1 << there.ilog2()))
}

/// Lines below this level are not peaks.
pub(crate) fn peak_floor_dbfs(dbfs: &[f32]) -> f32 {
    floor_dbfs(dbfs).max(PEAK_FLOOR_DBFS) + PEAK_OVER_FLOOR_DB
}

/// The level of the tenth percentile.
pub(crate) fn floor_dbfs(dbfs: &[f32]) -> f32 {
    let mut some: Vec<f32> = dbfs.iter().step_by((dbfs.len() / 512).max(1)).copied().collect();
    let at = some.len() / 10;
    if some.is_empty() { 0.0 } else { *some.select_nth_unstable_by(at, f32::total_cmp).1 }
}

pub(crate) const SIZE_MIN: usize = 16;
pub(crate) const SIZE_MAX: usize = 1 << 18;
/// Transforms of a waterfall per picture: about 4 ms at the largest size.
const ROW_TRANSFORMS_MAX: u64 = 2 * ROWS as u64;
/// The same after the end of a stream: 0.25 s, and all of a recording that fits into memory.
const ROW_TRANSFORMS_ENDED_MAX: u64 = 1 << 14;
/// More traces in one picture are unreadable, and each costs a transform.
const CHANNELS_MAX: usize = 32;
const PEAKS: usize = 5;
const PEAK_FLOOR_DBFS: f32 = -120.0;
/// Minimum height of a peak above the noise.
const PEAK_OVER_FLOOR_DB: f32 = 15.0;
const INTERVAL_NS: u64 = 60_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::core::ScopeCore;
    use crate::data::viewport::Detector;
    use crate::testing::batch;

    /// 16,384 samples at 16,384 Hz: a tone of half of full scale at 1 kHz and one at 4 kHz, 40 dB below it.
    fn core(has_gap: bool) -> ScopeCore {
        let mut core = ScopeCore::new(4 << 20);
        for block in (0..64).filter(|&block| !(has_gap && block == 62)) {
            let value = |channel: usize, index: u64| {
                let angle = index as f64 / 16_384.0 * std::f64::consts::TAU;
                let weak = (angle * 4000.0).sin() * 163.84;
                ((angle * 1000.0 * (channel + 1) as f64).sin() * 16_384.0 + weak) as i16
            };
            core.ingest(&batch(block * 256, 2, 256, 16_384.0, value), 1).unwrap();
        }
        core
    }

    fn viewport(settings: SpectrumSettings) -> Viewport {
        Viewport { span: Some(0.5), spectrum: Some(settings), ..Viewport::latest(100) }
    }

    #[test]
    fn a_tone_has_its_frequency_and_level() {
        let view = core(false).answer(&viewport(SpectrumSettings::default()), 1).spectrum.unwrap();
        assert_eq!((view.size, view.channels.len()), (8192, 2));
        let peaks = &view.channels[0].peaks;
        assert!((peaks[0].line * 2.0 - 1000.0).abs() < 0.1, "{peaks:?}");
        assert!((peaks[0].dbfs + 6.02).abs() < 0.05, "{peaks:?}");
        assert!(
            (peaks[1].line * 2.0 - 4000.0).abs() < 0.5 && (peaks[1].dbfs + 46.02).abs() < 0.1,
            "{peaks:?}"
        );
        assert!((view.channels[1].peaks[0].line * 2.0 - 2000.0).abs() < 0.1);
    }

    #[test]
    fn levels_count_from_the_bits_that_samples_have() {
        use grebe_frame::{BatchPool, Description, Header, SampleFormat};
        let mut core = ScopeCore::new(4 << 20);
        let mut told = Description::default();
        told.rest.insert(Description::BITS.to_owned(), 24.into());
        let mut batch = BatchPool::new(1, 64 << 10).acquire().unwrap();
        batch.describe(Some(&Arc::new(told)));
        let header = Header {
            format: SampleFormat::I32,
            channel_count: 1,
            block_length_samples: 8192,
            sample_rate_hz: 8192.0,
            ..Header::default()
        };
        // Half of the full scale of 24 bits, and then all of it.
        let tone = |at: usize| (at as f64 / 64.0 * std::f64::consts::TAU).sin() * 4_194_304.0;
        let value = |at: usize| if at < 8190 { tone(at) as i32 } else { 8_388_607 };
        let fill = |_, out: &mut [i32]| out.iter_mut().enumerate().for_each(|(at, out)| *out = value(at));
        batch.push(&header, fill).unwrap();
        core.ingest(&batch.freeze(), 1).unwrap();
        let picture = core.answer(&viewport(SpectrumSettings::default()), 1);
        let peak = picture.spectrum.unwrap().channels[0].peaks[0].dbfs;
        assert!((peak + 6.02).abs() < 0.1, "{peak}");
        assert!(picture.lanes[0].is_clipped, "the end of the range");
    }

    #[test]
    fn no_transform_reaches_across_a_gap() {
        // The gap lies 256 samples back, so the samples before it are used, and the spectrum is clean.
        let view = core(true).answer(&viewport(SpectrumSettings::default()), 1).spectrum.unwrap();
        let floor = view.channels[0].dbfs[3000..].iter().copied().fold(f32::MIN, f32::max);
        assert!(floor < -90.0, "{floor}");
    }

    #[test]
    fn a_young_stream_has_a_shorter_transform_and_none_has_none() {
        let mut core = ScopeCore::new(4 << 20);
        assert!(core.answer(&viewport(SpectrumSettings::default()), 1).spectrum.is_none());
        core.ingest(&batch(0, 1, 100, 1e3, |_, index| index as i16), 1).unwrap();
        assert_eq!(core.answer(&viewport(SpectrumSettings::default()), 1).spectrum.unwrap().size, 64);
    }

    #[test]
    fn a_waterfall_shows_what_was_when_and_where_samples_are_missing() {
        let mut core = ScopeCore::new(4 << 20);
        for block in (0..256).filter(|block| !(100..120).contains(block)) {
            let value = |_: usize, index: u64| {
                let hz = if index < 32_768 { 1000.0 } else { 3000.0 };
                ((index as f64 / 16_384.0 * std::f64::consts::TAU * hz).sin() * 16_384.0) as i16
            };
            core.ingest(&batch(block * 256, 1, 256, 16_384.0, value), 1).unwrap();
        }
        let settings = SpectrumSettings { size: 1024, waterfall: Some(0), ..SpectrumSettings::default() };
        let viewport = Viewport { span: Some(4.0), ..viewport(settings) };
        let view = core.answer(&viewport, 1).spectrum.unwrap();
        let waterfall = view.waterfall.as_ref().unwrap();
        let row = |number: usize| &waterfall.cells[number * waterfall.width..(number + 1) * waterfall.width];
        let loudest = |row: &[f32]| {
            let place = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            let (low, high) = waterfall.band;
            16_384.0 * (low + (high - low) * (place as f64 + 0.5) / row.len() as f64)
        };
        assert!((loudest(row(5)) - 3000.0).abs() < 20.0, "{}", loudest(row(5)));
        assert!((loudest(row(110)) - 1000.0).abs() < 20.0, "{}", loudest(row(110)));
        // Blocks 100 to 119 of 256 are rows 68 to 77 of 128, and their neighbours.
        assert!(row(72).iter().all(|level| level.is_nan()));
        assert_eq!(waterfall.span_samples, 65_536.0);
    }

    #[test]
    fn a_waterfall_misses_no_burst() {
        // A burst of 64 samples in 262,144, with rows of 2048 and transforms of 256.
        let burst = 100_000..100_064;
        let value = |_: usize, index: u64| {
            let tone = (index as f64 * 0.3 * std::f64::consts::TAU).sin() * 16_384.0;
            if burst.contains(&index) { tone as i16 } else { 0 }
        };
        let mut core = ScopeCore::new(4 << 20);
        for block in 0..1024 {
            core.ingest(&batch(block * 256, 1, 256, 16_384.0, value), 1).unwrap();
        }
        let settings = SpectrumSettings { size: 256, waterfall: Some(0), ..SpectrumSettings::default() };
        let viewport = Viewport { span: Some(16.0), columns: 64, ..viewport(settings) };
        let view = |core: &mut ScopeCore, at: u64, is_exact: bool| {
            let viewport = Viewport { is_exact, ..viewport.clone() };
            core.answer(&viewport, 1 + at * INTERVAL_NS).spectrum.unwrap().waterfall.clone().unwrap()
        };
        let loud = |view: &WaterfallView| -> Vec<usize> {
            let rows = view.cells.chunks_exact(view.width).enumerate();
            rows.filter(|(_, row)| row.iter().any(|level| *level > -40.0)).map(|(at, _)| at).collect()
        };
        let whole = view(&mut core, 1, true);
        assert_eq!(whole.sampled, Some(Sampled { done: 1024, all: 1024, is_summary: false }));
        // Row 48 from the oldest, of 128.
        assert_eq!(loud(&whole), [79]);
        // While a stream runs, each picture adds some.
        let running = core_without_rows(&mut core);
        let first = view(running, 2, false);
        assert_eq!(first.sampled, Some(Sampled { done: 256, all: 1024, is_summary: false }));
        let last = (3..6).map(|at| view(running, at, false)).last().unwrap();
        assert_eq!((last.sampled, loud(&last)), (whole.sampled, vec![79]));
        assert_eq!(last.cells, whole.cells);
    }

    #[test]
    fn a_waterfall_has_the_highest_level_or_the_mean_power() {
        // Rows of 2048 samples with eight transforms of 256; the tone is there for one in each row.
        let value = |_: usize, index: u64| {
            let tone = (index as f64 * 0.25 * std::f64::consts::TAU).sin() * 16_384.0;
            if index % 2048 < 256 { tone as i16 } else { 0 }
        };
        let mut core = ScopeCore::new(4 << 20);
        for block in 0..1024 {
            core.ingest(&batch(block * 256, 1, 256, 16_384.0, value), 1).unwrap();
        }
        let mut level = |detector| {
            let settings =
                SpectrumSettings { size: 256, waterfall: Some(0), detector, ..SpectrumSettings::default() };
            let viewport = Viewport { span: Some(16.0), columns: 64, is_exact: true, ..viewport(settings) };
            let view = core.answer(&viewport, 1).spectrum.unwrap();
            let waterfall = view.waterfall.as_ref().unwrap();
            waterfall
                .cells
                .chunks_exact(waterfall.width)
                .map(|row| row[waterfall.width / 2])
                .collect::<Vec<_>>()
        };
        let highest = level(Detector::Highest);
        assert!(highest.iter().all(|level| (level + 6.02).abs() < 0.1), "{highest:?}");
        let mean = level(Detector::Mean);
        assert!(mean.iter().all(|level| (level + 6.02 + 9.03).abs() < 0.1), "{mean:?}");
    }

    /// Shows something else, so that the scope drops its rows.
    fn core_without_rows(core: &mut ScopeCore) -> &mut ScopeCore {
        core.answer(&Viewport::latest(10), 1 + INTERVAL_NS);
        core
    }

    #[test]
    fn a_waterfall_calls_nothing_lost_that_never_was() {
        let mut core = ScopeCore::new(4 << 20);
        for block in 0..16 {
            core.ingest(&batch(100_000 + block * 256, 1, 256, 16_384.0, |_, index| index as i16), 1).unwrap();
        }
        let settings = SpectrumSettings { size: 256, waterfall: Some(0), ..SpectrumSettings::default() };
        // The stream is a quarter of a second old, the picture a second wide.
        let viewport = Viewport { span: Some(1.0), ..viewport(settings) };
        let view = core.answer(&viewport, 1).spectrum.unwrap();
        let cells = &view.waterfall.as_ref().unwrap().cells;
        assert!(cells.iter().all(|level| !level.is_nan()), "nothing was lost");
        assert!(cells[..100].iter().all(|level| level.is_finite()), "the newest row is there");
        assert!(cells[cells.len() - 100..].iter().all(|level| *level == f32::NEG_INFINITY));
    }

    #[test]
    fn the_floor_is_that_of_the_noise() {
        let mut dbfs: Vec<f32> = (0..4097).map(|line| -100.0 - (line % 10) as f32).collect();
        dbfs[7] = 0.0;
        assert!((-110.0..=-107.0).contains(&floor_dbfs(&dbfs)), "{}", floor_dbfs(&dbfs));
    }
}
