//! The panes beside the traces: spectrum, waterfall, X-Y plot.

use grebe_scope::Ticks;
use serde::Serialize;

use super::drawn::rounded;
use super::requests::Sizes;
use crate::data::lane::LaneId;
use crate::data::viewport::Detector;
use crate::model::bars::{spectrum_controls, waterfall_controls, xy_controls};
use crate::model::levels::LEVEL_UNIT;
use crate::model::vertical::ValueRange;
use crate::model::view_model::ViewModel;
use crate::model::widget::{Rgb, Widget, rgb};

/// The axes of the spectra.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Spectrum {
    words: String,
    controls: Vec<Widget>,
    /// Its visible part.
    zoom: (f64, f64),
    /// Levels at the lower and the upper edge, in the spectra's unit.
    bottom: f64,
    top: f64,
    /// Heights from the lower edge.
    levels: Vec<(f64, String)>,
    ticks: Vec<(f64, String)>,
    peaks: Vec<Peak>,
    harmonics: Vec<(f64, String, Rgb)>,
    markers: Vec<(f64, &'static str)>,
    colors: Vec<(usize, Rgb)>,
    empty: &'static str,
}

#[derive(Debug, PartialEq, Serialize)]
struct Peak {
    part: f64,
    height: f64,
    words: String,
    color: Rgb,
}

/// The axes of a waterfall; its frequencies are those of the spectrum.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Waterfall {
    words: String,
    controls: Vec<Widget>,
    zoom: (f64, f64),
    /// Level of several cells.
    detector: Detector,
    bottom: f64,
    top: f64,
    ticks: Vec<(f64, String)>,
    ages: Vec<(f64, String)>,
    /// Heights of the bar of levels.
    levels: Vec<(f64, String)>,
    /// Annotations: left, right, upper and lower edge as parts of the waterfall from its corner, and the text.
    marks: Vec<([f64; 4], String, Option<Rgb>)>,
}

/// The axes of an X-Y plot.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Xy {
    words: String,
    controls: Vec<Widget>,
    /// Left, right, lower and upper edge of the cells.
    place: Option<[f64; 4]>,
    across: Vec<(f64, String)>,
    upwards: Vec<(f64, String)>,
}

/// The ticks of a range, as parts from its lower end.
fn placed(range: ValueRange, ticks: &Ticks, unit: &str) -> Vec<(f64, String)> {
    ticks.values().map(|value| (rounded(range.part_of(value)), ticks.label(value, unit))).collect()
}

fn frequencies(model: &ViewModel, width: f32) -> Vec<(f64, String)> {
    let (start, end, unit, ticks) = model.spectrum_axis((width / 110.0).clamp(2.0, 12.0) as u32);
    placed(ValueRange { bottom: start, top: end }, &ticks, unit)
}

fn channel_color(model: &ViewModel, channel: usize) -> Rgb {
    let lane = model.channel_lane(channel);
    rgb(model.controls.lanes.setup(lane).trace_color(lane, &model.controls.theme.colors()))
}

impl Spectrum {
    pub(super) fn of(model: &mut ViewModel, sizes: &Sizes) -> Option<Spectrum> {
        if !model.controls.show.spectrum {
            return None;
        }
        let range = model.spectrum_range();
        let (width, height) = sizes.spectrum;
        let ticks = Ticks::new(range.bottom, range.top, (height / 24.0).clamp(3.0, 10.0) as u32);
        let view = model.seen.picture.spectrum.clone();
        let channels = view.iter().flat_map(|view| &view.channels);
        let peaks = channels.clone().filter(|channel| !channel.peaks.is_empty()).zip(model.peak_rows(1));
        let peaks = peaks.filter_map(|(channel, row)| {
            let peak = channel.peaks[0];
            let part = model.part_of_cycles(view.as_ref()?.cycles_per_sample(peak.line));
            (0.0..=1.0).contains(&part).then(|| Peak {
                part: rounded(part),
                height: rounded(range.part_of(peak.dbfs)),
                words: row.cells[1..].join("  "),
                color: channel_color(model, channel.channel),
            })
        });
        let color = channel_color(model, model.harmonics_channel());
        let harmonics = model.harmonics().into_iter().filter(|harmonic| harmonic.is_shown());
        let is_empty = channels.clone().next().is_none();
        Some(Spectrum {
            words: model.spectrum_words(),
            controls: spectrum_controls(model),
            zoom: model.controls.spectrum_zoom,
            bottom: range.bottom,
            top: range.top,
            levels: placed(range, &ticks, LEVEL_UNIT),
            ticks: frequencies(model, width),
            peaks: peaks.collect(),
            markers: model.marker_marks().into_iter().map(|(at, name)| (rounded(at), name)).collect(),
            harmonics: harmonics.map(|it| (rounded(it.part), it.label(), color)).collect(),
            colors: channels.map(|it| (it.channel, channel_color(model, it.channel))).collect(),
            empty: if is_empty { "no run of samples without a gap is long enough yet" } else { "" },
        })
    }
}

impl Waterfall {
    pub(super) fn of(model: &mut ViewModel, sizes: &Sizes) -> Option<Waterfall> {
        if !model.controls.show.waterfall {
            return None;
        }
        let range = model.waterfall_range();
        let (width, height) = sizes.waterfall;
        let levels = Ticks::new(range.bottom, range.top, (height / 24.0).clamp(2.0, 8.0) as u32);
        let label = model.channel_label(model.selected().channel);
        let words = [label].into_iter().chain(model.waterfall_words()).collect::<Vec<_>>().join("  ");
        let ages = model.waterfall_times().map(|times| {
            let unit = model.seen.picture.axis_unit();
            let ticks = Ticks::of_unit(times.bottom, times.top, (height / 24.0).clamp(3.0, 6.0) as u32, unit);
            placed(times, &ticks, unit)
        });
        Some(Waterfall {
            words,
            controls: waterfall_controls(model),
            zoom: model.controls.spectrum_zoom,
            detector: model.controls.spectrum.detector,
            bottom: range.bottom,
            top: range.top,
            ticks: frequencies(model, width),
            ages: ages.unwrap_or_default(),
            levels: placed(range, &levels, LEVEL_UNIT),
            marks: {
                let marks = model.waterfall_marks().into_iter();
                let place = |[left, right]: [f64; 2], [top, bottom]: [f64; 2]| {
                    [left, right, top, bottom].map(rounded)
                };
                marks.map(|it| (place(it.parts, it.rows), it.words, it.color)).collect()
            },
        })
    }
}

impl Xy {
    pub(super) fn of(model: &ViewModel, sizes: &Sizes) -> Option<Xy> {
        if !model.controls.show.xy {
            return None;
        }
        let (width, height) = sizes.xy;
        let [x, y] = model.xy_axes(xy_cells(sizes).unwrap_or((1, 1)));
        let across = Ticks::new(x.range.bottom, x.range.top, (width / 90.0).clamp(2.0, 12.0) as u32);
        let upwards = Ticks::new(y.range.bottom, y.range.top, (height / 30.0).clamp(3.0, 10.0) as u32);
        // The axes may have changed since, so scale the cells to their values.
        let parts = |lane: LaneId, range: ValueRange, (low, high): (f64, f64)| {
            let setup = model.setup(lane);
            [low, high].map(|count| rounded(range.part_of(setup.value(count))))
        };
        let place = model.seen.picture.xy.as_ref().map(|view| {
            let [left, right] = parts(x.lane, x.range, view.settings.x_range);
            let [low, high] = parts(y.lane, y.range, view.settings.y_range);
            [left, right, low, high]
        });
        Some(Xy {
            words: model.xy_words(),
            controls: xy_controls(),
            place,
            across: placed(x.range, &across, &x.unit),
            upwards: placed(y.range, &upwards, &y.unit),
        })
    }
}

/// Cells of the X-Y plot: one per two points, because finer ones show noise.
pub(super) fn xy_cells(sizes: &Sizes) -> Option<(usize, usize)> {
    let (width, height) = sizes.xy;
    let cells = |points: f32| ((points / 2.0) as usize).clamp(1, 1024);
    (width >= 20.0 && height >= 20.0).then(|| (cells(width), cells(height)))
}
