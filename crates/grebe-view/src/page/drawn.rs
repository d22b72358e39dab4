//! Scales, ticks and marks of the plot, beside the columns. They are sent before their picture.

use std::ops::Range;

use serde::Serialize;

use super::requests::Sizes;
use crate::data::lane::LaneId;
use crate::data::viewport::{longer_span, shorter_span};
use crate::model::lane_ticks::{LaneTicks, chip_words};
use crate::model::view_model::ViewModel;
use crate::model::widget::{Press, Rgb, Widget, rgb};

/// Places are parts of the plot; heights are parts of a lane from its lower edge.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Drawn {
    lanes: Vec<Lane>,
    is_overlay: bool,
    front: usize,
    is_sinc: bool,
    /// Text beside the densities; `None`: traces are drawn.
    density: Option<String>,
    ticks: Vec<(f64, String)>,
    /// Places where the stream's description changed, with the new value.
    marks: Vec<(f64, String)>,
    notes: Vec<(f64, f64, String, Option<Rgb>)>,
    trigger: Option<f64>,
    /// The lane and the heights of the trigger's levels.
    levels: Option<(LaneId, Vec<f64>)>,
    cursors: Vec<(f64, &'static str)>,
    value_cursors: Option<(LaneId, Vec<(f64, &'static str)>)>,
    lost: Vec<(f64, f64, String)>,
    /// The place that a zoom keeps, as a part of the plot; `None`: the pointer's.
    anchor: Option<f64>,
    /// Visible samples after a step of the time span.
    shorter: f64,
    longer: f64,
    /// The lines in place of missing traces.
    empty: Vec<String>,
}

/// A lane, in the order of the picture's lanes.
#[derive(Debug, PartialEq, Serialize)]
struct Lane {
    lane: LaneId,
    /// Its name and scale. A click opens its settings.
    chip: Widget,
    color: Rgb,
    is_clipped: bool,
    /// Height of a count: `shift + gain * count`.
    gain: f64,
    shift: f64,
    /// Heights of lines, and whether each is the zero line; then heights of labels.
    lines: Vec<(f64, bool)>,
    labels: Vec<(f64, String)>,
}

impl Drawn {
    pub(super) fn of(model: &mut ViewModel, sizes: &Sizes) -> Drawn {
        let count = model.seen.picture.lanes.len();
        let is_overlay = model.controls.show.overlay;
        let height = sizes.plot.1 / if is_overlay { 1.0 } else { count.max(1) as f32 };
        let height = height.max(LANE_HEIGHT_MIN);
        let lanes = (0..count).map(|place| Lane::of(model, place, height)).collect();
        let (start, end, ticks) = model.axis();
        let unit = model.seen.picture.axis_unit();
        let part = |time: f64| rounded((time - start) / (end - start));
        let view = model.seen.picture.persistence.as_ref().filter(|view| view.records > 0);
        let is_live = !model.controls.time.is_held();
        let view = view.filter(|_| model.controls.show.persistence && is_live);
        let marks = model.trigger_marks();
        Drawn {
            lanes,
            is_overlay,
            front: model.front_lane(),
            is_sinc: model.controls.show.sinc,
            density: view.map(|view| match view.fraction < 0.999 {
                true => {
                    format!("{} triggers, a sample: {:.0} % of them", view.records, view.fraction * 100.0)
                }
                false => format!("{} triggers", view.records),
            }),
            ticks: ticks.values().map(|value| (part(value), ticks.label(value, unit))).collect(),
            marks: model.change_marks().into_iter().map(|(at, words)| (rounded(at), words)).collect(),
            notes: {
                let notes = model.annotation_marks().into_iter();
                notes.map(|it| (rounded(it.parts[0]), rounded(it.parts[1]), it.words, it.color)).collect()
            },
            trigger: marks.part.map(rounded),
            levels: marks.levels.first().and_then(|&(lane, _)| {
                let levels = marks.levels.iter().filter_map(|&(lane, level)| {
                    let value = model.setup(lane).value(level);
                    Some(rounded(model.controls.lanes.range(lane)?.part_of(value)))
                });
                let levels: Vec<f64> = levels.collect();
                (!levels.is_empty()).then_some((lane, levels))
            }),
            cursors: {
                let times = model.controls.cursors.times.into_iter().flatten();
                times.zip(NAMES).map(|(time, name)| (part(time), name)).collect()
            },
            value_cursors: model.controls.cursors.values.and_then(|values| {
                let lane = model.selected();
                let range = model.controls.lanes.range(lane)?;
                let heights = values.map(|value| rounded(range.part_of(value)));
                Some((lane, heights.into_iter().zip(NAMES).collect()))
            }),
            lost: lost(model),
            anchor: match (is_live, model.seen.picture.trigger.and_then(|trigger| trigger.at)) {
                (false, _) => None,
                (true, Some(_)) => Some(model.controls.trigger.settings.position),
                (true, None) => Some(1.0),
            },
            shorter: step(model, shorter_span),
            longer: step(model, longer_span),
            empty: if count == 0 { model.empty_lines() } else { Vec::new() },
        }
    }
}

impl Lane {
    fn of(model: &mut ViewModel, place: usize, height: f32) -> Lane {
        let range = model.range(place);
        let data = &model.seen.picture.lanes[place];
        let (lane, is_clipped) = (data.lane, data.is_clipped);
        let setup = model.setup(lane);
        let ticks = LaneTicks::of(height, range, &setup);
        let is_selected = model.selected() == lane;
        let color = rgb(setup.trace_color(lane, &model.controls.theme.colors()));
        let title = format!("settings of {}", setup.label(lane));
        let words = chip_words(&setup, lane, ticks.lines.step());
        let lines = ticks.lines.values().map(|value| (rounded(range.part_of(value)), value == 0.0));
        let labels = ticks.labels.values();
        let labels = labels
            .map(|value| (rounded(range.part_of(value)), ticks.labels.label(value, &setup.unit)))
            .collect();
        Lane {
            lane,
            chip: Widget {
                is_on: Some(is_selected),
                ..Widget::pressed(words, &title, Press::Settings(lane))
            }
            .colored(color),
            color,
            is_clipped,
            gain: setup.scale / range.height(),
            shift: (setup.offset - range.bottom) / range.height(),
            lines: lines.collect(),
            labels,
        }
    }
}

fn step(model: &ViewModel, step: fn(f64, f64) -> f64) -> f64 {
    let rate_hz = model.seen.picture.stream.map_or(0.0, |stream| stream.rate_hz);
    step(model.controls.time.span_or(&model.seen.picture), rate_hz) * model.seen.picture.rate_or_one()
}

/// Ranges of missing samples, with words.
fn lost(model: &ViewModel) -> Vec<(f64, f64, String)> {
    let (left, span) = (model.seen.picture.left_index, model.seen.picture.span_samples);
    let part = |index: u64| ((index as f64 - left) / span).clamp(0.0, 1.0);
    let gaps = model.seen.picture.gaps.iter().map(|gap| part(gap.start)..part(gap.end));
    let wide = |range: &Range<f64>| range.end - range.start > NAMED_MIN;
    gaps.filter(wide)
        .map(|range| (rounded(range.start), rounded(range.end), model.lost_words(range)))
        .collect()
}

/// Rounds a place, so that pictures that differ only in the last digits give the same text.
pub(super) fn rounded(part: f64) -> f64 {
    (part * 1e6).round() / 1e6
}

const NAMES: [&str; 2] = ["A", "B"];
/// In points. Smaller lanes scroll.
const LANE_HEIGHT_MIN: f32 = 44.0;
/// Narrower gaps have no room for words.
const NAMED_MIN: f64 = 0.02;
