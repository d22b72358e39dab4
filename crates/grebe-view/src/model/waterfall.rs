//! The waterfall as pixels, axes and texts: the same in all front ends.

use grebe_scope::Engineering;

use crate::data::spectrum::floor_dbfs;
use crate::model::vertical::ValueRange;
use crate::model::view_model::ViewModel;

impl ViewModel {
    /// The visible cells as pixels: see [`WaterfallView::pixels`](crate::data::spectrum::WaterfallView::pixels).
    pub(crate) fn waterfall_pixels(&self, size: (usize, usize)) -> Option<Vec<f32>> {
        let view = self.seen.picture.spectrum.as_ref()?;
        let waterfall = view.waterfall.as_ref().filter(|waterfall| waterfall.rows() > 0)?;
        let (lowest, highest) = view.band();
        let (from, to) = self.controls.spectrum_zoom;
        let at = |part: f64| lowest + (highest - lowest) * part;
        Some(waterfall.pixels((at(from), at(to)), size, view.settings.detector))
    }

    /// On the time axis of the lanes: the start of the waterfall's last row and the end of its first.
    pub(crate) fn waterfall_times(&self) -> Option<ValueRange> {
        let waterfall = self.seen.picture.spectrum.as_ref()?.waterfall.as_ref()?;
        let rows = Some(waterfall.rows()).filter(|rows| *rows > 0)?;
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
        let first = self.seen.picture.oldest_index as f64 + view.row_size() as f64;
        let there = ((right - first) / row).floor().clamp(0.0, count as f64) as usize;
        let missing = (missing + there).saturating_sub(count);
        let not_held = (missing > 0).then(|| {
            format!(
                "the oldest {} %: single samples are no longer in memory",
                (missing * 100).div_ceil(count)
            )
        });
        let words = [self.waterfall_resolution()?].into_iter().chain(waterfall.words(view.settings.detector));
        Some(words.chain(not_held).collect::<Vec<_>>().join("; "))
    }

    /// Size of a cell: `2.34 kHz by 6.4 ms a cell`.
    fn waterfall_resolution(&self) -> Option<String> {
        let view = self.seen.picture.spectrum.as_ref()?;
        let waterfall = view.waterfall.as_ref()?;
        let rows = Some(waterfall.rows()).filter(|rows| *rows > 0)?;
        let (low, high) = waterfall.band;
        let (rate, unit) = (self.seen.picture.rate_or_one(), self.seen.picture.axis_unit());
        let frequency = match self.frequency_unit() {
            "Hz" => Engineering::new((high - low) * rate / waterfall.width as f64, "Hz").to_string(),
            unit => format!("{:.2} m{unit}", (high - low) / waterfall.width as f64 * 1e3),
        };
        let time = Engineering::new(waterfall.span_samples / rows as f64 / rate, unit);
        Some(format!("{frequency} by {time} a cell"))
    }

    /// The levels of the waterfall's colours: fixed, or from a little below its noise floor to its highest level.
    pub(crate) fn waterfall_range(&mut self) -> ValueRange {
        let view = self.seen.picture.spectrum.clone();
        let waterfall = view.as_ref().and_then(|view| view.waterfall.as_ref());
        let (number, seen) = self.controls.levels_seen;
        if let Some(waterfall) = waterfall.filter(|waterfall| waterfall.number != number) {
            let levels: Vec<f32> = waterfall.cells.iter().copied().filter(|db| db.is_finite()).collect();
            let highest = levels.iter().copied().fold(f32::MIN, f32::max);
            // A viewer on another host has half decibels, and the same colours.
            let half = |db: f32| (f64::from(db) * 2.0).round() / 2.0;
            let step = |db: f64| (db / LEVEL_STEP_DB).floor() * LEVEL_STEP_DB;
            let bottom = step(half(floor_dbfs(&levels)) - 3.0).clamp(-190.0, 0.0);
            let top = (step(half(highest)) + LEVEL_STEP_DB).max(bottom + LEVELS_DB_MIN);
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
}

const LEVEL_STEP_DB: f64 = 5.0;
/// A smaller range would show noise in all colours.
const LEVELS_DB_MIN: f64 = 30.0;

#[cfg(test)]
mod tests {
    use super::*;

    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::data::viewport::Detector;
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
    fn a_burst_is_in_the_pixels_of_every_size_and_zoom() {
        let mut model = model();
        for _ in 0..3 {
            model.request(400);
            model.refresh();
        }
        let words = model.waterfall_words().unwrap();
        assert!(words.starts_with("20 Hz by 31.3 ms a cell"), "{words}");
        let burst = 0.6 / std::f64::consts::PI;
        // A zoom shows the cells that are there, until it has its own.
        for is_asked in [false, true] {
            pixels_have_the_burst(&mut model, burst, is_asked);
        }
        let words = model.waterfall_words().unwrap();
        assert!(words.starts_with("2 Hz by 31.3 ms a cell"), "{words}");
        // The mean of a larger area is lower.
        model.controls.spectrum_zoom = (0.0, 1.0);
        for _ in 0..3 {
            model.request(400);
            model.refresh();
        }
        let highest = model.waterfall_pixels((1, 1)).unwrap()[0];
        model.act(Action::Detector);
        for _ in 0..3 {
            model.request(400);
            model.refresh();
        }
        assert_eq!(model.seen.picture.spectrum.as_ref().unwrap().settings.detector, Detector::Mean);
        let mean = model.waterfall_pixels((1, 1)).unwrap()[0];
        assert!(mean < highest - 20.0, "{mean} {highest}");
    }

    fn pixels_have_the_burst(model: &mut ViewModel, burst: f64, is_asked: bool) {
        for (size, zoom) in
            [((1, 1), (0.0, 1.0)), ((7, 5), (0.0, 1.0)), ((300, 30), (0.1, 0.3)), ((2000, 500), (0.19, 0.2))]
        {
            model.controls.spectrum_zoom = zoom;
            for _ in (0..3).filter(|_| is_asked) {
                model.request(400);
                model.refresh();
            }
            let pixels = model.waterfall_pixels(size).unwrap();
            assert_eq!(pixels.len(), size.0 * size.1);
            let highest = pixels.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert!(highest > -25.0, "{size:?} {highest}");
            let loud = (0..pixels.len()).filter(|at| pixels[*at] > highest - 2.0);
            let places: Vec<f64> = loud
                .map(|at| zoom.0 + (zoom.1 - zoom.0) * ((at % size.0) as f64 + 0.5) / size.0 as f64)
                .collect();
            let near = (zoom.1 - zoom.0) / size.0 as f64 + 6.0 / 1024.0;
            assert!(
                !places.is_empty() && places.iter().all(|at| (at - burst).abs() < near),
                "{size:?} {places:?}"
            );
        }
    }
}
