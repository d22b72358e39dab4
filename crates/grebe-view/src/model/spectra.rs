//! Spectra as columns, axes and words: all front ends draw them alike.

use grebe_scope::{Column, Coverage, Engineering, Ticks};

use crate::data::spectrum::{ChannelSpectrum, floor_dbfs};
use crate::model::readout::Row;
use crate::model::vertical::ValueRange;
use crate::model::view_model::ViewModel;

/// Decibels per count of a spectrum's columns.
pub(crate) const DB_PER_COUNT: f64 = 0.01;

/// One channel's levels as columns.
pub(crate) struct SpectrumTrace {
    pub(crate) channel: usize,
    pub(crate) columns: Vec<Column>,
    /// The highest levels so far, if they are kept.
    pub(crate) hold: Vec<Column>,
}

impl ViewModel {
    /// Every channel's levels, `columns` wide.
    pub(crate) fn spectrum_traces(&self, columns: usize) -> Vec<SpectrumTrace> {
        let Some(view) = &self.picture.spectrum else { return Vec::new() };
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
        let (half, unit) = match self.picture.stream.map(|stream| stream.rate_hz) {
            Some(rate_hz) if rate_hz > 0.0 => (rate_hz / 2.0, "Hz"),
            // Cycles per sample, where the rate is unknown.
            _ => (0.5, "c/S"),
        };
        let (from, to) = self.controls.spectrum_zoom;
        (from * half, to * half, unit, Ticks::new(from * half, to * half, ticks))
    }

    /// The range of levels: full scale near the top, a margin below the noise floor.
    pub(crate) fn spectrum_range(&mut self) -> ValueRange {
        let floor = self.picture.spectrum.as_ref().map(|view| {
            let floors = view.channels.iter().map(|spectrum| floor_dbfs(&spectrum.dbfs));
            floors.fold(0.0f64, |low, floor| low.min(f64::from(floor)))
        });
        let wanted =
            floor.map_or(-120.0, |floor| (((floor - 6.0) / 20.0).floor() * 20.0).clamp(-140.0, -60.0));
        let bottom = &mut self.controls.spectrum_bottom_db;
        // Lower at once, higher only by 40 dB: a floor that moves a little does not move the picture.
        if wanted < *bottom || wanted >= *bottom + 40.0 {
            *bottom = wanted;
        }
        // The first harmonic of a full-scale square wave lies 2.1 dB above a sine's.
        ValueRange { bottom: *bottom, top: 6.0 }
    }

    /// The transform in words: `8192 samples, Hann, 3.05 kHz a line`.
    pub(crate) fn spectrum_words(&self) -> String {
        let Some(view) = &self.picture.spectrum else { return "no samples yet".into() };
        let rate_hz = self.picture.stream.map_or(0.0, |stream| stream.rate_hz);
        let mut words = format!("{} samples, {}", view.size, view.settings.window.name());
        if rate_hz > 0.0 {
            words += &format!(", {} a line", Engineering::new(rate_hz / view.size as f64, "Hz"));
        }
        if view.settings.averages > 1 {
            words += &format!(", {} averaged", view.settings.averages);
        }
        words
    }

    /// The highest peaks of each channel: name, frequency, level.
    pub(crate) fn peak_rows(&self, per_channel: usize) -> Vec<Row> {
        let Some(view) = &self.picture.spectrum else { return Vec::new() };
        let rows = view.channels.iter().flat_map(|spectrum| {
            let label = self.setup(spectrum.channel).label(spectrum.channel);
            spectrum.peaks.iter().take(per_channel).map(move |peak| {
                let cells =
                    vec![label.clone(), self.frequency(peak.line, view.size), format!("{:.1} dB", peak.dbfs)];
                Row { channel: Some(spectrum.channel), cells }
            })
        });
        rows.collect()
    }

    /// The frequency of a line in words.
    fn frequency(&self, line: f64, size: usize) -> String {
        match self.picture.stream.map(|stream| stream.rate_hz) {
            Some(rate_hz) if rate_hz > 0.0 => {
                Engineering::new(line * rate_hz / size as f64, "Hz").digits(5).to_string()
            }
            _ => format!("{:.5} c/S", line / size as f64),
        }
    }

    /// Moves and zooms the frequency axis: `at` (0.0 left edge, 1.0 right edge) keeps its frequency.
    pub(crate) fn zoom_spectrum(&mut self, factor: f64, at: f64) {
        let (from, to) = self.controls.spectrum_zoom;
        let width = ((to - from) * factor).clamp(1e-4, 1.0);
        let from = (from + (to - from) * at - width * at).clamp(0.0, 1.0 - width);
        self.controls.spectrum_zoom = (from, from + width);
    }

    /// Moves the frequency axis by a part of what is shown.
    pub(crate) fn pan_spectrum(&mut self, part: f64) {
        let (from, to) = self.controls.spectrum_zoom;
        let width = to - from;
        let from = (from + part * width).clamp(0.0, 1.0 - width);
        self.controls.spectrum_zoom = (from, from + width);
    }
}

/// A part of a spectrum as columns: extremes where a column has many lines, interpolated where it has few.
fn level_columns(dbfs: &[f32], (from, to): (f64, f64), columns: usize) -> Vec<Column> {
    let Some(last) = dbfs.len().checked_sub(1).filter(|&last| last > 0) else { return Vec::new() };
    let line = |place: usize| (from + (to - from) * place as f64 / columns as f64) * last as f64;
    let between = |line: f64| {
        let before = (line as usize).min(last);
        let (a, b) = (f64::from(dbfs[before]), f64::from(dbfs[(before + 1).min(last)]));
        a + (b - a) * (line - before as f64)
    };
    let count = |db: f64| (db / DB_PER_COUNT).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
    let column = |place: usize| {
        let (left, right) = (line(place), line(place + 1));
        let inside = (left.ceil() as usize).min(last)..=(right.floor() as usize).min(last);
        let ends = [between(left), between(right)];
        let levels =
            dbfs[*inside.start()..(*inside.end() + 1).max(*inside.start())].iter().map(|&db| f64::from(db));
        let (low, high) =
            levels.chain(ends).fold((f64::MAX, f64::MIN), |(low, high), db| (low.min(db), high.max(db)));
        Column { min: count(low), max: count(high), coverage: Coverage::Complete }
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
            let shown = level_columns(&dbfs, zoom, columns);
            let (place, highest) = shown.iter().enumerate().max_by_key(|(_, column)| column.max).unwrap();
            assert_eq!(highest.max, -300, "{zoom:?} {columns}");
            let at = zoom.0 + (zoom.1 - zoom.0) * place as f64 / columns as f64;
            assert!(
                (at * 4096.0 - 1234.0).abs() <= 4096.0 / columns as f64 + 1.0,
                "{zoom:?} {columns}: {at}"
            );
        }
        assert!(level_columns(&[], (0.0, 1.0), 10).is_empty());
    }
}
