//! Two frequency markers in the spectrum, A and B, with the level of each channel there.

use grebe_scope::{Engineering, Peak, Sides, find_peaks, peak_at};

use crate::data::spectrum::{ChannelSpectrum, SpectrumView, peak_floor_dbfs};
use crate::model::action::ToPeak;
use crate::model::levels::LEVEL_UNIT;
use crate::model::options::MarkerPlaces;
use crate::model::readout::Row;
use crate::model::view_model::ViewModel;

/// Levels of a channel at the markers.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkerLevels {
    /// The channel, from 0.
    pub channel: usize,
    /// For A and B: the frequency in hertz (as a part of the rate if that is unknown), and the level in dBFS. Near a
    /// peak, both are the peak's.
    pub at: [(f64, f64); 2],
}

impl ViewModel {
    /// Sets both on the two highest peaks, or turns them off.
    pub(super) fn toggle_markers(&mut self) {
        self.controls.show.spectrum |= self.controls.markers.is_none();
        self.controls.markers = match self.controls.markers {
            Some(_) => None,
            None => Some(self.highest_peaks()),
        };
    }

    /// Moves a marker to a peak; turns both on if they are off.
    pub(super) fn move_marker(&mut self, which: usize, to: ToPeak) {
        let mut markers = self.controls.markers.unwrap_or_else(|| self.highest_peaks());
        let (here, peaks) = (&mut markers[which % 2], self.marker_peaks());
        // At least one line away, because a peak that moves a little is the same.
        let beside = self.seen.picture.spectrum.as_ref().map_or(0.0, |view| 1.0 / view.size as f64);
        let next = match to {
            ToPeak::Highest => peaks.first().copied(),
            ToPeak::Left => peaks.into_iter().filter(|at| *at < *here - beside).max_by(f64::total_cmp),
            ToPeak::Right => peaks.into_iter().filter(|at| *at > *here + beside).min_by(f64::total_cmp),
        };
        match next {
            Some(at) => *here = at,
            None => self.say("no further peak in the visible part of the spectrum".into()),
        }
        self.controls.markers = Some(markers);
        self.controls.show.spectrum = true;
    }

    /// Drags marker A (0) or B (1) to a place of the visible part.
    pub(crate) fn drag_marker(&mut self, which: usize, part: f64) {
        let (low, high) = self.band();
        let (from, to) = self.controls.spectrum_zoom;
        let at = low + (high - low) * (from + part.clamp(0.0, 1.0) * (to - from));
        if let Some(marker) = self.controls.markers.as_mut().and_then(|markers| markers.get_mut(which)) {
            *marker = at;
        }
    }

    /// Sets the initial markers once there is a spectrum. `is_last`: even if it has fewer samples than requested.
    pub(crate) fn place_markers(&mut self, is_last: bool) {
        let Some(view) = &self.seen.picture.spectrum else { return };
        let is_whole = view.transform_size() == view.settings.size || self.seen.picture.is_ended;
        let Some(places) = self.options.initial.markers.filter(|_| is_whole || is_last) else { return };
        self.options.initial.markers = None;
        self.controls.markers = Some(match places {
            MarkerPlaces::Peaks => self.highest_peaks(),
            MarkerPlaces::At(a, b) => [a, b].map(|hz| self.cycles_of(hz)),
        });
    }

    /// Their places in the visible part of the spectrum (0.0 left edge, 1.0 right edge), and names; empty if they are off.
    pub(crate) fn marker_marks(&self) -> Vec<(f64, &'static str)> {
        let markers = self.controls.markers.into_iter().flatten();
        markers.map(|at| self.part_of_cycles(at)).zip(NAMES).collect()
    }

    /// Levels of each channel at the markers; empty if they are off.
    pub(crate) fn marker_levels(&self) -> Vec<MarkerLevels> {
        let Some((markers, view)) = self.controls.markers.zip(self.seen.picture.spectrum.as_ref()) else {
            return Vec::new();
        };
        let levels = |of: &ChannelSpectrum| {
            let at = markers.map(|at| {
                let peak = read(view, of, at)?;
                Some((self.frequency_of(view.cycles_per_sample(peak.line)), peak.dbfs))
            });
            Some(MarkerLevels { channel: of.channel, at: [at[0]?, at[1]?] })
        };
        view.channels.iter().filter_map(levels).collect()
    }

    /// Rows of the cursors' table: the selected channel's frequencies, and the levels of all channels.
    pub(super) fn marker_rows(&self) -> Vec<Row> {
        let levels = self.marker_levels();
        let selected = self.selected_spectrum().map(|it| it.channel);
        let Some(first) = levels.iter().find(|it| Some(it.channel) == selected) else { return Vec::new() };
        let unit = self.frequency_unit();
        let apart = Engineering::new(first.at[1].0 - first.at[0].0, unit).digits(6).to_string();
        let [at_a, at_b] = first.at.map(|(at, _)| self.frequency_text(at));
        let mut rows = vec![Row { lane: None, cells: vec!["marker".into(), at_a, at_b, apart] }];
        rows.extend(levels.iter().map(|it| {
            let level = |dbfs: f64| format!("{dbfs:.2} {LEVEL_UNIT}");
            let [a, b] = it.at.map(|(_, dbfs)| dbfs);
            let apart = format!("{:.2} dB", b - a);
            let label = format!("{} spectrum", self.channel_label(it.channel));
            Row { lane: Some(self.channel_lane(it.channel)), cells: vec![label, level(a), level(b), apart] }
        }));
        rows
    }

    fn highest_peaks(&self) -> [f64; 2] {
        let (low, high) = self.band();
        let peaks = self.marker_peaks();
        let first = peaks.first().copied().unwrap_or(low + (high - low) / 3.0);
        [first, peaks.get(1).copied().unwrap_or(low + (high - low) * 2.0 / 3.0)]
    }

    /// Peaks of the selected channel in the visible part, as parts of the rate, in descending order.
    fn marker_peaks(&self) -> Vec<f64> {
        let Some((view, of)) = self.seen.picture.spectrum.as_ref().zip(self.selected_spectrum()) else {
            return Vec::new();
        };
        let floor_dbfs = peak_floor_dbfs(&of.dbfs);
        let peaks = find_peaks(&of.dbfs, sides(view), view.settings.window, PEAKS_MAX, floor_dbfs);
        let peaks = peaks.into_iter().map(|peak| view.cycles_per_sample(peak.line));
        peaks.filter(|&at| (0.0..=1.0).contains(&self.part_of_cycles(at))).collect()
    }
}

fn sides(view: &SpectrumView) -> Sides {
    if view.is_two_sided { Sides::Two } else { Sides::One }
}

/// Level and frequency of a spectrum at a part of the rate.
fn read(view: &SpectrumView, of: &ChannelSpectrum, at: f64) -> Option<Peak> {
    let line = (at - view.band().0) * view.size as f64;
    peak_at(&of.dbfs, sides(view), view.settings.window, peak_floor_dbfs(&of.dbfs), line)
}

const NAMES: [&str; 2] = ["A", "B"];
const PEAKS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::model::action::Action;
    use crate::model::options::ViewOptions;
    use crate::testing::batch;

    /// 16,384 Hz: tones of half of full scale at 1000.7 Hz, and 20 and 40 dB below it at 2500.3 and 4000.9 Hz.
    fn model(markers: Option<MarkerPlaces>) -> ViewModel {
        let (mut feed, link) = ScopeFeed::new(4 << 20);
        let value = |_: usize, index: u64| {
            let tone = |hz: f64| (index as f64 / 16_384.0 * hz * std::f64::consts::TAU).sin() * 16_384.0;
            (tone(1000.7) + tone(2500.3) / 10.0 + tone(4000.9) / 100.0).round() as i16
        };
        feed.ingest(&batch(0, 1, 16_384, 16_384.0, value)).unwrap();
        feed.finish();
        let mut options = ViewOptions::new(SourceStatus::default);
        (options.initial.spectrum, options.initial.markers) = (true, markers);
        let mut model = ViewModel::new(link, options, crate::png::encode);
        model.request(500);
        model.refresh();
        model
    }

    #[track_caller]
    fn assert_at(model: &ViewModel, truth: [(f64, f64); 2]) {
        let at = model.marker_levels()[0].at;
        for ((hz, dbfs), (true_hz, true_dbfs)) in at.into_iter().zip(truth) {
            assert!((hz - true_hz).abs() < 0.05, "{hz} Hz for {true_hz}");
            assert!((dbfs - true_dbfs).abs() < 0.05, "{dbfs} dB for {true_dbfs}");
        }
    }

    const FIRST: (f64, f64) = (1000.7, -6.02);
    const SECOND: (f64, f64) = (2500.3, -26.02);
    const THIRD: (f64, f64) = (4000.9, -46.02);

    #[test]
    fn markers_go_from_peak_to_peak_and_say_frequency_level_and_difference() {
        let mut model = model(None);
        assert_eq!((model.marker_levels(), model.marker_rows()), (Vec::new(), Vec::new()));
        model.act(Action::Markers);
        assert_at(&model, [FIRST, SECOND]);
        let go = |model: &mut ViewModel, which, to| model.act(Action::MoveMarker(which, to));
        go(&mut model, 1, ToPeak::Right);
        assert_at(&model, [FIRST, THIRD]);
        go(&mut model, 1, ToPeak::Right);
        assert_at(&model, [FIRST, THIRD]);
        assert!(
            model.seen.hud_made_ns == 0 && model.open.message.is_some(),
            "a message says that no peak remains"
        );
        go(&mut model, 0, ToPeak::Right);
        go(&mut model, 1, ToPeak::Highest);
        assert_at(&model, [SECOND, FIRST]);
        go(&mut model, 1, ToPeak::Right);
        go(&mut model, 1, ToPeak::Left);
        let rows: Vec<Vec<String>> = model.cursor_rows().into_iter().map(|row| row.cells).collect();
        assert_eq!(
            rows,
            [
                ["marker", "2.5003 kHz", "1.0007 kHz", "-1.4996 kHz"],
                ["CH1 spectrum", "-26.02 dBFS", "-6.02 dBFS", "20.00 dB"]
            ]
        );
        // Only the visible part has peaks.
        model.controls.spectrum_zoom = (0.4, 1.0);
        go(&mut model, 0, ToPeak::Highest);
        assert_at(&model, [THIRD, FIRST]);
        model.act(Action::Markers);
        assert!(model.cursor_rows().is_empty());
    }

    #[test]
    fn markers_that_were_asked_for_stand_at_peaks_or_frequencies() {
        assert_at(&model(Some(MarkerPlaces::Peaks)), [FIRST, SECOND]);
        let mut model = model(Some(MarkerPlaces::At(4001.0, 6000.0)));
        let at = model.marker_levels()[0].at;
        assert!((at[0].0 - 4000.9).abs() < 0.05 && (at[1].0 - 6000.0).abs() < 1e-6, "{at:?}");
        assert!(at[1].1 < -90.0, "between peaks it is the noise: {at:?}");
        model.drag_marker(1, 0.25);
        assert!((model.marker_levels()[0].at[1].0 - 2048.0).abs() < 1e-6);
    }
}
