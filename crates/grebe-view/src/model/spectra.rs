//! Spectra as columns, axes and texts: the same in all front ends.

use grebe_scope::{Column, Coverage, Engineering, Ticks};

use crate::data::spectrum::{ChannelSpectrum, band, floor_dbfs};
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
        let (from, to) = self.controls.spectrum_zoom;
        let (low, high) = view.band();
        // Lines from the left to the right edge. The highest of complex samples is one below it.
        let lines = (high - low) * view.size as f64;
        let zoom = (from * lines, to * lines);
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

    /// Moves the frequency axis to a band that is not wholly visible, and widens it if necessary.
    pub(super) fn show_band(&mut self, low: f64, high: f64) {
        let axis = self.frequencies();
        let (first, last) = (axis.at(0.0), axis.at(1.0));
        let [low, high] = [low, high].map(|frequency| (frequency - first) / (last - first));
        let (from, to) = self.controls.spectrum_zoom;
        if low >= from && high <= to {
            return;
        }
        let width = ((high - low) * 1.25).max(to - from).min(1.0);
        let from = ((low + high - width) / 2.0).clamp(0.0, 1.0 - width);
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

/// Converts lines of a spectrum to columns: extremes if a column has many lines, interpolated if it has few.
fn level_columns(dbfs: &[f32], (from, to): (f64, f64), columns: usize) -> Vec<Column<f32>> {
    let Some(last) = dbfs.len().checked_sub(1).filter(|&last| last > 0) else { return Vec::new() };
    let line = |place: usize| (from + (to - from) * place as f64 / columns as f64).min(last as f64);
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

    #[test]
    fn a_narrow_tone_is_seen_at_every_zoom() {
        let mut dbfs = vec![-100.0f32; 4097];
        dbfs[1234] = -3.0;
        for (zoom, columns) in [((0.0, 1.0), 300), ((0.3, 0.31), 300), ((0.0, 1.0), 9000), ((0.25, 0.35), 77)]
        {
            let shown = level_columns(&dbfs, (zoom.0 * 4096.0, zoom.1 * 4096.0), columns);
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
