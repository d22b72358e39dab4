//! Spectra as columns, axes and texts: the same in all front ends.

use grebe_scope::{Column, Coverage, Engineering, Ticks};

use crate::data::spectrum::{ChannelSpectrum, ROW_SIZE_MAX, band, floor_dbfs};
use crate::model::levels::level_words;
use crate::model::readout::Row;
use crate::model::vertical::ValueRange;
use crate::model::view_model::ViewModel;

/// One channel's levels as columns, in dBFS.
pub(crate) struct SpectrumTrace {
    pub(crate) channel: usize,
    pub(crate) columns: Vec<Column<f32>>,
    /// The highest levels so far, if peaks are held.
    pub(crate) hold: Vec<Column<f32>>,
}

/// The frequency axis.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FrequencyAxis {
    /// The lowest and the highest frequency, as parts of the rate.
    band: (f64, f64),
    /// In hertz, where the rate is known; else 1.
    rate: f64,
    /// The frequency of 0 on the axis: the receiver's centre frequency.
    centre: f64,
    unit: &'static str,
}

impl FrequencyAxis {
    /// Converts a part of the rate to a frequency.
    fn of_cycles(&self, cycles: f64) -> f64 {
        self.centre + cycles * self.rate
    }

    /// The frequency at a part of the axis: 0.0 its left end, 1.0 its right end.
    fn at(&self, part: f64) -> f64 {
        self.of_cycles(self.band.0 + (self.band.1 - self.band.0) * part)
    }
}

impl ViewModel {
    /// The levels of every channel, as `columns` columns.
    pub(crate) fn spectrum_traces(&self, columns: usize) -> Vec<SpectrumTrace> {
        let Some(view) = &self.seen.picture.spectrum else { return Vec::new() };
        let zoom = self.controls.spectrum_zoom;
        let of = |spectrum: &ChannelSpectrum| SpectrumTrace {
            channel: spectrum.channel,
            columns: level_columns(&spectrum.dbfs, zoom, columns),
            hold: level_columns(&spectrum.hold_dbfs, zoom, columns),
        };
        view.channels.iter().map(of).collect()
    }

    /// The frequency axis: its ends, its unit, its ticks.
    pub(crate) fn spectrum_axis(&self, ticks: u32) -> (f64, f64, &'static str, Ticks) {
        let axis = self.frequencies();
        let (from, to) = self.controls.spectrum_zoom;
        let (from, to) = (axis.at(from), axis.at(to));
        (from, to, axis.unit, Ticks::new(from, to, ticks))
    }

    fn frequencies(&self) -> FrequencyAxis {
        let stream = self.seen.picture.stream;
        let is_two_sided = stream.is_some_and(|stream| stream.format.is_complex());
        let (rate, unit) = match stream.map(|stream| stream.rate_hz) {
            Some(rate_hz) if rate_hz > 0.0 => (rate_hz, "Hz"),
            // Cycles per sample, where the rate is unknown.
            _ => (1.0, "c/S"),
        };
        let told = self.seen.picture.description.as_ref().and_then(|told| told.centre_frequency_hz);
        // Only for I and Q does 0 mean the receiver's centre frequency.
        let centre = told.filter(|hz| hz.is_finite() && is_two_sided && unit == "Hz").unwrap_or(0.0);
        FrequencyAxis { band: band(is_two_sided), rate, centre, unit }
    }

    /// Shows the requested part of the spectrum, once its place is known.
    pub(super) fn zoom_to_band(&mut self) {
        if self.seen.picture.stream.is_none_or(|stream| stream.rate_hz <= 0.0) {
            return;
        }
        let Some((from, to)) = self.options.initial.band_hz.take() else { return };
        let axis = self.frequencies();
        let (low, high) = axis.band;
        let part = |hz: f64| (((hz - axis.centre) / axis.rate - low) / (high - low)).clamp(0.0, 1.0);
        let (from, to) = (part(from), part(to));
        if to > from {
            self.controls.spectrum_zoom = (from, to);
        } else {
            self.say("the band lies beside the spectrum".into());
        }
    }

    /// On the time axis of the lanes: the start of the waterfall's last row and the end of its first.
    pub(crate) fn waterfall_times(&self) -> Option<ValueRange> {
        let waterfall = self.seen.picture.spectrum.as_ref()?.waterfall.as_ref()?;
        let rows = waterfall.cells.len().checked_div(waterfall.width).filter(|rows| *rows > 0)?;
        // Rows are aligned to multiples of their length; the first contains the newest sample.
        let row = waterfall.span_samples / rows as f64;
        let newest =
            (self.seen.picture.right_index().min(self.seen.picture.next_index as f64) / row).ceil() * row;
        let rate = self.seen.picture.rate_or_one();
        let top = (newest - self.controls.time.reference(&self.seen.picture)) / rate;
        Some(ValueRange { bottom: top - waterfall.span_samples / rate, top })
    }

    /// Notes about the waterfall's levels: the number of transforms in them, and the missing part.
    pub(crate) fn waterfall_words(&self) -> Option<String> {
        let view = self.seen.picture.spectrum.as_ref()?;
        let waterfall = view.waterfall.as_ref()?;
        let rows = waterfall.cells.chunks_exact(waterfall.width.max(1));
        let (count, is_missing) =
            (rows.len(), |row: &[f32]| row.iter().all(|level| *level == f32::NEG_INFINITY));
        let missing = rows.rev().take_while(|row| is_missing(row)).count();
        // Until there are enough samples for a transform, nothing is missing.
        let row = waterfall.span_samples / count.max(1) as f64;
        let right = self.seen.picture.right_index().min(self.seen.picture.next_index as f64);
        let first = self.seen.picture.oldest_index as f64 + view.transform_size().min(ROW_SIZE_MAX) as f64;
        let there = ((right - first) / row).floor().clamp(0.0, count as f64) as usize;
        let missing = (missing + there).saturating_sub(count);
        let not_held = (missing > 0).then(|| {
            format!(
                "the oldest {} %: single samples are no longer in memory",
                (missing * 100).div_ceil(count)
            )
        });
        let words: Vec<String> =
            waterfall.words(view.settings.detector).into_iter().chain(not_held).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Place of a frequency (a part of the rate) in the visible part of the spectrum: 0.0 left edge, 1.0 right edge.
    pub(crate) fn part_of_cycles(&self, cycles: f64) -> f64 {
        let (low, high) = self.frequencies().band;
        let (from, to) = self.controls.spectrum_zoom;
        ((cycles - low) / (high - low) - from) / (to - from)
    }

    /// The range of levels, from a margin below the noise floor to a little above full scale.
    pub(crate) fn spectrum_range(&mut self) -> ValueRange {
        let floor = self.seen.picture.spectrum.as_ref().map(|view| {
            let floors = view.channels.iter().map(|spectrum| floor_dbfs(&spectrum.dbfs));
            floors.fold(0.0f64, |low, floor| low.min(f64::from(floor)))
        });
        let bottom = &mut self.controls.spectrum_bottom_db;
        if let Some(floor) = floor {
            let wanted = (((floor - 6.0) / 20.0).floor() * 20.0).clamp(-140.0, -60.0);
            // Extend at once, but shrink only by 40 dB, so that a floor that moves a little does not move the picture.
            if wanted < *bottom || wanted >= *bottom + 40.0 {
                *bottom = wanted;
            }
        }
        // The first harmonic of a full-scale square wave lies 2.1 dB above a sine's.
        ValueRange { bottom: *bottom, top: 6.0 }
    }

    /// The levels of the waterfall's colours: fixed, or from a little below its noise floor to its highest level.
    pub(crate) fn waterfall_range(&mut self) -> ValueRange {
        let view = self.seen.picture.spectrum.clone();
        let waterfall = view.as_ref().and_then(|view| view.waterfall.as_ref());
        let (number, seen) = self.controls.levels_seen;
        if let Some(waterfall) = waterfall.filter(|waterfall| waterfall.number != number) {
            let levels: Vec<f32> = waterfall.cells.iter().copied().filter(|db| db.is_finite()).collect();
            let highest = levels.iter().copied().fold(f32::MIN, f32::max);
            let step = |db: f64| (db / LEVEL_STEP_DB).floor() * LEVEL_STEP_DB;
            let bottom = step(f64::from(floor_dbfs(&levels)) - 3.0).clamp(-190.0, 0.0);
            let top = (step(f64::from(highest)) + LEVEL_STEP_DB).max(bottom + LEVELS_DB_MIN);
            // Extend at once, but shrink only by two steps, so that small changes keep the colours.
            let stays = |wanted: f64, now: f64| (0.0..2.0 * LEVEL_STEP_DB).contains(&(wanted - now));
            let is_first = number == 0;
            let keep = |stays: bool, now: f64, wanted: f64| if stays && !is_first { now } else { wanted };
            if !levels.is_empty() {
                let range = ValueRange {
                    bottom: keep(stays(bottom, seen.bottom), seen.bottom, bottom),
                    top: keep(stays(-top, -seen.top), seen.top, top),
                };
                self.controls.levels_seen = (waterfall.number, range);
            }
        }
        self.controls.levels.unwrap_or(self.controls.levels_seen.1)
    }

    /// The transform's settings: `8192 samples, Hann, 3.05 kHz a line`.
    pub(crate) fn spectrum_words(&self) -> String {
        let Some(view) = &self.seen.picture.spectrum else { return "no samples yet".into() };
        let rate_hz = self.seen.picture.stream.map_or(0.0, |stream| stream.rate_hz);
        let mut words = format!("{} samples, {}", view.transform_size(), view.settings.window.name());
        if rate_hz > 0.0 {
            words += &format!(", {} a line", Engineering::new(rate_hz / view.transform_size() as f64, "Hz"));
        }
        if view.settings.averages > 1 {
            words += &format!(", {} averaged", view.settings.averages);
        }
        words
    }

    /// The highest peaks of each channel: name, frequency, level.
    pub(crate) fn peak_rows(&self, per_channel: usize) -> Vec<Row> {
        let Some(view) = &self.seen.picture.spectrum else { return Vec::new() };
        let rows = view.channels.iter().flat_map(|spectrum| {
            let label = self.channel_label(spectrum.channel);
            let lane = self.channel_lane(spectrum.channel);
            spectrum.peaks.iter().take(per_channel).map(move |peak| {
                let frequency = self.frequency_words(view.cycles_per_sample(peak.line));
                let cells = vec![label.clone(), frequency, level_words(peak.dbfs)];
                Row { lane: Some(lane), cells }
            })
        });
        rows.collect()
    }

    /// Formats a frequency (a part of the rate): absolute if the receiver's frequency is known, to a thousandth of
    /// the rate.
    pub(crate) fn frequency_words(&self, cycles: f64) -> String {
        self.frequency_text(self.frequency_of(cycles))
    }

    /// The same for a frequency on the axis.
    pub(super) fn frequency_text(&self, value: f64) -> String {
        let axis = self.frequencies();
        let digits = match axis.centre {
            0.0 => 5,
            _ => ((value.abs() / axis.rate).max(1.0).log10().ceil() as u32 + 4).min(12),
        };
        match axis.unit {
            "Hz" => Engineering::new(value, "Hz").digits(digits as _).to_string(),
            unit => format!("{value:.5} {unit}"),
        }
    }

    /// Converts between a part of the rate and a frequency on the axis.
    pub(super) fn frequency_of(&self, cycles: f64) -> f64 {
        self.frequencies().of_cycles(cycles)
    }

    pub(super) fn cycles_of(&self, frequency: f64) -> f64 {
        let axis = self.frequencies();
        (frequency - axis.centre) / axis.rate
    }

    pub(super) fn frequency_unit(&self) -> &'static str {
        self.frequencies().unit
    }

    /// The lowest and the highest frequency, as parts of the rate.
    pub(super) fn band(&self) -> (f64, f64) {
        self.frequencies().band
    }

    /// Moves and zooms the frequency axis: the frequency at `at` (0.0 left edge, 1.0 right edge) stays in place.
    pub(crate) fn zoom_spectrum(&mut self, factor: f64, at: f64) {
        let (from, to) = self.controls.spectrum_zoom;
        let width = ((to - from) * factor).clamp(1e-4, 1.0);
        let from = (from + (to - from) * at - width * at).clamp(0.0, 1.0 - width);
        self.controls.spectrum_zoom = (from, from + width);
    }

    /// Moves the frequency axis by a part of the visible range.
    pub(crate) fn pan_spectrum(&mut self, part: f64) {
        let (from, to) = self.controls.spectrum_zoom;
        let width = to - from;
        let from = (from + part * width).clamp(0.0, 1.0 - width);
        self.controls.spectrum_zoom = (from, from + width);
    }
}

const LEVEL_STEP_DB: f64 = 5.0;
/// A smaller range would show noise in all colours.
const LEVELS_DB_MIN: f64 = 30.0;

/// Converts a part of a spectrum to columns: extremes if a column has many lines, interpolated if it has few.
fn level_columns(dbfs: &[f32], (from, to): (f64, f64), columns: usize) -> Vec<Column<f32>> {
    let Some(last) = dbfs.len().checked_sub(1).filter(|&last| last > 0) else { return Vec::new() };
    let line = |place: usize| (from + (to - from) * place as f64 / columns as f64) * last as f64;
    let between = |line: f64| {
        let before = (line as usize).min(last);
        let (a, b) = (f64::from(dbfs[before]), f64::from(dbfs[(before + 1).min(last)]));
        a + (b - a) * (line - before as f64)
    };
    let column = |place: usize| {
        let (left, right) = (line(place), line(place + 1));
        let inside = (left.ceil() as usize).min(last)..=(right.floor() as usize).min(last);
        let ends = [between(left), between(right)];
        let levels =
            dbfs[*inside.start()..(*inside.end() + 1).max(*inside.start())].iter().map(|&db| f64::from(db));
        let (low, high) =
            levels.chain(ends).fold((f64::MAX, f64::MIN), |(low, high), db| (low.min(db), high.max(db)));
        Column { min: low as f32, max: high as f32, coverage: Coverage::Complete }
    };
    (0..columns).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::model::action::Action;
    use crate::model::fields::Field;
    use crate::model::options::ViewOptions;
    use crate::testing::batch;

    /// Four seconds at 16,384 Hz with a burst at 3 s; the trigger is at the right edge or in the middle.
    fn model() -> ViewModel {
        let (mut feed, link) = ScopeFeed::new(4 << 20);
        let value = |_: usize, index: u64| {
            let is_burst = (49_152..49_664).contains(&index);
            if is_burst { ((index as f64 * 0.6).sin() * 16_384.0) as i16 } else { 0 }
        };
        for block in 0..256 {
            feed.ingest(&batch(block * 256, 1, 256, 16_384.0, value)).unwrap();
        }
        feed.finish();
        let mut options = ViewOptions::new(SourceStatus::default);
        (options.initial.spectrum, options.initial.span) = (true, Some(4.0));
        let mut model = ViewModel::new(link, options, crate::png::encode);
        model.act(Action::Waterfall);
        model
    }

    #[test]
    fn a_burst_stands_at_one_time_in_the_lanes_and_in_the_waterfall() {
        let mut model = model();
        for is_held in [false, true] {
            if is_held {
                // Time counts from another zero: half a second before the burst.
                let picture = model.seen.picture.clone();
                model.controls.time.hold_trigger(&picture, 40_960.0, 0.6);
            }
            for _ in 0..3 {
                model.request(400);
                model.refresh();
            }
            let lane = &model.seen.picture.lanes[0].columns;
            let loud: Vec<usize> = (0..lane.len()).filter(|at| lane[*at].max > 1000.0).collect();
            let (start, end, _) = model.axis();
            let column = (end - start) / lane.len() as f64;
            let lane_at = start + (loud[0] + loud[loud.len() - 1] + 1) as f64 / 2.0 * column;
            let times = model.waterfall_times().unwrap();
            let waterfall = model.seen.picture.spectrum.as_ref().unwrap().waterfall.clone().unwrap();
            let rows = waterfall.cells.chunks_exact(waterfall.width);
            let count = rows.len() as f64;
            let loud: Vec<usize> = rows
                .enumerate()
                .filter(|(_, row)| row.iter().any(|level| *level > -30.0))
                .map(|(at, _)| at)
                .collect();
            let row = times.height() / count;
            let row_at = times.top - (loud[0] + loud[loud.len() - 1] + 1) as f64 / 2.0 * row;
            // The rows before and after contain a part of it.
            assert!((lane_at - row_at).abs() <= 4.0 * row, "{is_held}: {lane_at} s and {row_at} s");
            let expected = if is_held { 0.5156 } else { -0.984 };
            assert!((lane_at - expected).abs() < 0.05, "{is_held}: {lane_at}");
        }
    }

    #[test]
    fn levels_of_the_waterfall_follow_its_noise_floor_until_they_are_set() {
        let mut model = model();
        for _ in 0..3 {
            model.request(400);
            model.refresh();
        }
        let auto = model.waterfall_range();
        let waterfall = model.seen.picture.spectrum.as_ref().unwrap().waterfall.clone().unwrap();
        let levels: Vec<f32> = waterfall.cells.iter().copied().filter(|db| db.is_finite()).collect();
        let highest = f64::from(levels.iter().copied().fold(f32::MIN, f32::max));
        assert!(auto.top >= highest && auto.top <= highest + 5.0, "{auto:?} {highest}");
        let floor = f64::from(floor_dbfs(&levels)).max(-190.0);
        assert!(auto.bottom <= floor && auto.bottom >= floor - 10.0, "{auto:?} {floor}");
        assert_eq!(model.waterfall_range(), auto);
        model.set_field(Field::LevelBottom, "-80").unwrap();
        assert!(model.set_field(Field::LevelTop, "-79.5 dB").is_err());
        model.set_field(Field::LevelTop, "-20 dB").unwrap();
        assert_eq!(model.waterfall_range(), ValueRange { bottom: -80.0, top: -20.0 });
        assert_eq!(model.field_text(Field::LevelBottom), "-80 dBFS");
        model.set_field(Field::LevelTop, "-10 dBFS").unwrap();
        assert_eq!(model.field_text(Field::LevelTop), "-10 dBFS");
        model.act(Action::LevelsAuto);
        assert_eq!(model.waterfall_range(), auto);
        model.act(Action::LevelsAuto);
        assert_eq!(model.controls.levels, Some(auto), "what was seen stays");
    }

    #[test]
    fn a_narrow_tone_is_seen_at_every_zoom() {
        let mut dbfs = vec![-100.0f32; 4097];
        dbfs[1234] = -3.0;
        for (zoom, columns) in [((0.0, 1.0), 300), ((0.3, 0.31), 300), ((0.0, 1.0), 9000), ((0.25, 0.35), 77)]
        {
            let shown = level_columns(&dbfs, zoom, columns);
            let by_level = |a: &(usize, &Column<f32>), b: &(usize, &Column<f32>)| a.1.max.total_cmp(&b.1.max);
            let (place, highest) = shown.iter().enumerate().max_by(by_level).unwrap();
            assert_eq!(highest.max, -3.0, "{zoom:?} {columns}");
            let at = zoom.0 + (zoom.1 - zoom.0) * place as f64 / columns as f64;
            assert!(
                (at * 4096.0 - 1234.0).abs() <= 4096.0 / columns as f64 + 1.0,
                "{zoom:?} {columns}: {at}"
            );
        }
        assert!(level_columns(&[], (0.0, 1.0), 10).is_empty());
    }
}
