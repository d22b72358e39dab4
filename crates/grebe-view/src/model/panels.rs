//! The panels at the side: channels, recent triggers, search results, controls of the source.

use grebe_scope::{Engineering, Slope};
use serde::Serialize;

use super::widget::{Press, Rgb, Widget, rgb};
use crate::data::lane::{LaneId, Part};
use crate::data::math::MathOperation;
use crate::data::trigger::{TriggerCoupling, TriggerKind};
use crate::model::action::Question;
use crate::model::action::{Action, Step};
use crate::model::annotation_words::color_of as annotation_rgb;
use crate::model::controls::GROUP;
use crate::model::fields::Field;
use crate::model::open::Found;
use crate::model::receiver::Tunable;
use crate::model::setting::Setting;
use crate::model::view_model::ViewModel;

/// Rows of buttons and fields.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Panel {
    pub(crate) name: &'static str,
    pub(crate) close: Widget,
    pub(crate) rows: Vec<Vec<Widget>>,
}

/// The open panels.
pub(crate) fn panels(model: &ViewModel) -> Vec<Panel> {
    let show = model.controls.show;
    let close = |title, action| Widget::button("\u{d7}", title, action);
    let mut all = Vec::new();
    if show.segments {
        let close = close("close  (g)", Action::Segments);
        let rows = trigger_input(model).into_iter().chain(segment_rows(model)).collect();
        all.push(Panel { name: "last triggers", close, rows });
    }
    if model.open.found.is_some() || model.open.find_form.is_some() {
        let is_over = model.open.found.as_ref().is_none_or(Found::is_over);
        let title = if is_over { "close  (esc)" } else { "look no further  (esc)" };
        let close = Widget::pressed("\u{d7}", title, Press::EndFind);
        let rows = find_rows(model).into_iter().chain(found_rows(model)).collect();
        all.push(Panel { name: "find", close, rows });
    }
    if model.open.annotations.is_open {
        let close = close("close  (F4)", Action::Annotations);
        all.push(Panel { name: "annotations", close, rows: annotation_rows(model) });
    }
    if model.open.is_source_open {
        let close = Widget::pressed("\u{d7}", "close", Press::Source);
        all.push(Panel { name: "source", close, rows: source_rows(model) });
    }
    if show.channel_panel {
        let close = close("close  (l)", Action::Channels);
        all.push(Panel { name: "channels", close, rows: channel_rows(model) });
    }
    all
}

fn color(model: &ViewModel, lane: LaneId) -> Rgb {
    rgb(model.setup(lane).trace_color(lane, &model.controls.theme.colors()))
}

fn channel_rows(model: &ViewModel) -> Vec<Vec<Widget>> {
    let controls = &model.controls;
    let Some(stream) = model.seen.picture.stream else { return Vec::new() };
    let mut rows = Vec::new();
    rows.extend(part_row(model));
    rows.extend(group_row(model));
    let selected = model.selected();
    for channel in 0..stream.channels {
        let is_selected = selected.channel == channel && !selected.is_math();
        let lane = if is_selected { selected } else { model.channel_lane(channel) };
        let is_shown = controls.shown.has_channel(channel);
        let title = "choose it for the keys of one channel  (n)";
        let name = Widget::toggle(model.setup(lane).label(lane), title, Action::Select(lane), is_selected);
        let on = if is_shown { "on" } else { "off" };
        let title = format!("channel {} on / off  ({})", channel + 1, channel % GROUP + 1);
        let on = Widget::toggle(on, &title, Action::Channel(channel), is_shown);
        rows.push(vec![name.colored(color(model, lane)).is("wide"), on]);
        if is_selected {
            rows.extend(lane_rows(model, channel, lane));
        }
    }
    rows.extend(math_rows(model));
    rows.push(overlay_row(model));
    rows
}

/// The buttons for the parts of complex channels.
pub(crate) fn part_row(model: &ViewModel) -> Option<Vec<Widget>> {
    let is_complex = model.seen.picture.stream.is_some_and(|stream| stream.format.is_complex());
    let part = |part: Part| {
        let title = format!("lanes of the {}  (/)", part.name());
        let is_shown = model.controls.shown.has_part(part);
        Widget::toggle(part.symbol(), &title, Action::Part(part), is_shown)
    };
    is_complex.then(|| Part::COMPLEX.map(part).to_vec())
}

/// The buttons for groups of eight channels.
pub(crate) fn group_row(model: &ViewModel) -> Option<Vec<Widget>> {
    let channels = model.seen.picture.stream?.channels;
    let shown = (0..channels).filter(|&channel| model.controls.shown.has_channel(channel)).count();
    let title = "the next eight alone, after the last group all  (9)";
    (channels > GROUP).then(|| {
        vec![
            Widget::label(format!("{shown} of {channels} shown")),
            Widget::button("next eight", title, Action::NextGroup),
        ]
    })
}

/// The buttons for the look of all lanes.
pub(crate) fn overlay_row(model: &ViewModel) -> Vec<Widget> {
    let show = model.controls.show;
    let line = "the line between samples: straight, or sin(x)/x  (I)";
    let each = "all triggers upon each other  (d)";
    vec![
        Widget::toggle("overlay", "all in one lane  (o)", Action::Overlay, show.overlay),
        Widget::toggle("persistence", each, Action::Persistence, show.persistence),
        Widget::toggle("sin(x)/x", line, Action::Interpolation, show.sinc),
    ]
}

/// The settings of the selected lane.
pub(crate) fn lane_rows(model: &ViewModel, channel: usize, lane: LaneId) -> Vec<Vec<Widget>> {
    let mut rows = Vec::new();
    if lane.part != Part::Real {
        let parts = Part::COMPLEX.into_iter().filter(|&part| model.controls.shown.has_part(part));
        let parts = parts.map(|part| {
            let of = LaneId { channel, part };
            Widget::toggle(part.symbol(), "the rows below are of it  (n)", Action::Select(of), of == lane)
        });
        rows.push([Widget::label("lane")].into_iter().chain(parts).collect());
    }
    rows.extend(scale_rows(model, lane));
    if lane.part.has_unit_of_samples() {
        let field =
            |words: &str, title: &str, field| vec![Widget::label(words), Widget::field(model, title, field)];
        rows.push(field("name", &format!("name of channel {}", channel + 1), Field::Name(channel)));
        rows.push(field("unit", "unit; empty: counts", Field::Unit(channel)));
        rows.push(field("1 count is", "units per count", Field::Scale(channel)));
        rows.push(field("count 0 is", "value of count 0", Field::Offset(channel)));
    }
    rows
}

fn scale_rows(model: &ViewModel, lane: LaneId) -> [Vec<Widget>; 2] {
    let setup = model.controls.lanes.setup(lane);
    [
        vec![
            Widget::label("scale"),
            Widget::button("\u{2212}", "finer  (y)", Action::Vertical(Step::Down)),
            Widget::field(model, "units per division", Field::PerDivision(lane)),
            Widget::button("+", "coarser  (Y)", Action::Vertical(Step::Up)),
            Widget::toggle("auto", "follow the signal  (u)", Action::VerticalAuto, setup.vertical.is_none()),
        ],
        vec![
            Widget::label("position"),
            Widget::button("\u{2193}", "trace down  (j)", Action::Position(-0.5)).is("arrow"),
            Widget::button("\u{2191}", "trace up  (k)", Action::Position(0.5)).is("arrow"),
            Widget::toggle("AC", "without its mean  (a)", Action::Coupling, setup.is_ac),
            Widget::toggle("invert", "turned over  (i)", Action::Invert, setup.is_inverted),
        ],
    ]
}

/// The settings of the math channel.
pub(crate) fn math_rows(model: &ViewModel) -> Vec<Vec<Widget>> {
    let now = model.controls.math;
    let is_selected = now.is_some() && model.controls.lanes.selected.is_math();
    let select = Action::Select(if now.is_some() { LaneId::MATH } else { LaneId::real(0) });
    let title = "a channel computed of others  (E)";
    let name = Widget::toggle("math", title, select, is_selected).colored(color(model, LaneId::MATH));
    let none = Widget::toggle("none", "no math channel", Action::Math(None), now.is_none());
    let each = MathOperation::ALL.map(|operation| {
        let action = Action::Math(Some(operation));
        Widget::toggle(operation.name(), "the math channel  (E)", action, now == Some(operation))
    });
    let mut rows = vec![[name, none].into_iter().chain(each).collect()];
    let Some(operation) = now else { return rows };
    let inputs = if operation.is_binary() { 2 } else { 1 };
    let input = |(place, name): (usize, &str)| {
        let lane = model.math_inputs()[place];
        let words = format!("{name} = {}", model.setup(lane).label(lane));
        Widget::choice(words, "the channel  (N, B)", Setting::MathInput(place))
    };
    rows.push(["A", "B"].into_iter().enumerate().take(inputs).map(input).collect());
    if is_selected {
        rows.extend(scale_rows(model, LaneId::MATH));
    }
    rows
}

/// The trigger's input: coupling, hysteresis, hold-off, times.
pub(crate) fn trigger_input(model: &ViewModel) -> Vec<Vec<Widget>> {
    let settings = &model.controls.trigger.settings;
    let coupled = |title: &str, coupling: TriggerCoupling| {
        let is_on = settings.coupling.name() == coupling.name();
        let press = if is_on { settings.coupling } else { coupling };
        Widget { is_on: Some(is_on), ..Widget::pressed(coupling.name(), title, Press::Coupling(press)) }
    };
    let slow = "without the slow part, on which a level would slip  (L)";
    let fast = "low-pass: removes the fast part, whose noise would trigger  (L)";
    let mut rows = vec![vec![
        Widget::label("coupling"),
        coupled("all of the signal  (L)", TriggerCoupling::Dc),
        coupled(slow, TriggerCoupling::LfReject { corner_hz: None }),
        coupled(fast, TriggerCoupling::HfReject { corner_hz: None }),
    ]];
    if settings.coupling != TriggerCoupling::Dc {
        rows.push(vec![
            Widget::label(if settings.coupling.is_lf_reject() { "below" } else { "above" }),
            Widget::button("\u{2212}", "lower corner", Action::Corner(Step::Down)),
            Widget::field(model, "corner", Field::Corner),
            Widget::button("+", "higher corner", Action::Corner(Step::Up)),
        ]);
    }
    if model.seen.picture.trigger.is_some() {
        let back =
            "how far the signal goes back before it triggers again; 0: 0.3 divisions, more where it is noisy";
        let label = Widget { title: back.into(), ..Widget::label("hysteresis") };
        let title = "hysteresis of at least a division, against noise  (~)";
        let wide = Widget::toggle("noise reject", title, Action::NoiseReject, settings.is_noise_reject);
        rows.push(vec![label, Widget::field(model, "hysteresis", Field::Hysteresis), wide]);
    }
    rows.push(vec![
        Widget { title: "minimum time between triggers".into(), ..Widget::label("holdoff") },
        Widget::button("\u{2212}", "shorter holdoff  (;)", Action::Holdoff(Step::Down)),
        Widget::field(model, "holdoff", Field::Holdoff),
        Widget::button("+", "longer holdoff  (:)", Action::Holdoff(Step::Up)),
    ]);
    let time = |words: &str, title: &str, field| {
        let label = Widget { title: title.into(), ..Widget::label(words) };
        vec![label, Widget::field(model, words, field)]
    };
    match settings.kind {
        TriggerKind::Pulse => {
            rows.push(time("longer than", "pulses of this width or wider  (T)", Field::PulseMin));
            rows.push(time(
                "shorter than",
                "pulses of this width or narrower; 0: of a division  (T)",
                Field::PulseMax,
            ));
        }
        TriggerKind::Dropout => rows.push(time("without edge for", "0: a division  (T)", Field::Dropout)),
        _ => {}
    }
    rows
}

/// Recent triggers.
pub(crate) fn segment_rows(model: &ViewModel) -> Vec<Vec<Widget>> {
    let mut rows = Vec::new();
    let segments = model.segments();
    let newest = segments.first().map_or(0.0, |segment| segment.at);
    let (rate, unit) = (model.seen.picture.rate_or_one(), model.seen.picture.axis_unit());
    if segments.is_empty() {
        rows.push(vec![Widget::label("none yet: choose auto, normal or single")]);
    }
    for segment in segments {
        let age = Engineering::new((segment.at - newest) / rate, unit).digits(4).to_string();
        let words = if segment.is_there { age } else { "no longer held".into() };
        let mark = if segment.label.is_some() { "unpin" } else { "pin" };
        let pin = Widget::pressed(mark, "keep in the list  (P)", Press::Pin(segment.at)).is("small");
        let row = Widget::pressed(words, "show it  ({ and })", Press::Trigger(segment.at)).is("entry");
        let mut row = vec![
            Widget { is_off: !segment.is_there, ..pin },
            Widget { is_on: Some(segment.is_shown), ..row },
        ];
        if segment.label.is_some() {
            row.push(Widget::field(model, "label of the trigger", Field::PinLabel(segment.at)));
        }
        rows.push(row);
    }
    rows
}

/// The search form.
pub(crate) fn find_rows(model: &ViewModel) -> Vec<Vec<Widget>> {
    let Some(form) = &model.open.find_form else { return Vec::new() };
    let kind = form.kind();
    let lane = form.lane.map_or("all channels".into(), |lane| model.setup(lane).label(lane));
    let field = |words: &str, title: &str, field| {
        let label = Widget { title: title.into(), ..Widget::label(words) };
        vec![label, Widget::field(model, title, field)]
    };
    let mut rows = vec![
        vec![Widget::label("what"), Widget::choice(kind.name, "which event", Setting::FindKind)],
        vec![Widget::label("in"), Widget::choice(lane, "which channel", Setting::FindLane)],
    ];
    if kind.has_slope {
        let slopes = [("rising", Slope::Rising), ("falling", Slope::Falling), ("either", Slope::Either)];
        let slope = |(words, slope)| {
            let press = Press::FindSlope(slope);
            let is_on = form.slope.unwrap_or(Slope::Rising) == slope;
            Widget { is_on: Some(is_on), ..Widget::pressed(words, "the direction that is searched", press) }
        };
        rows.push([Widget::label("slope")].into_iter().chain(slopes.map(slope)).collect());
    }
    if kind.has_level {
        rows.push(field("level", "level that is searched", Field::FindLevel));
    }
    if kind.has_range {
        rows.push(field("low", "lower level that is searched", Field::FindLow));
        rows.push(field("high", "upper level that is searched", Field::FindHigh));
    }
    if kind.is_timed {
        rows.push(field("longer", "shortest duration that is searched; empty: any", Field::FindLonger));
        rows.push(field("shorter", "longest duration that is searched; empty: any", Field::FindShorter));
    }
    let from = "begin of the search, from the beginning of the stream; empty: its beginning";
    rows.push(field("from", from, Field::FindFrom));
    rows.push(field(
        "to",
        "end of the search, from the beginning of the stream; empty: its end",
        Field::FindTo,
    ));
    rows.push(vec![
        Widget::pressed("search", "search the whole history", Press::Find),
        Widget::button("in words\u{2026}", "as grebe find has it  (\")", Action::Ask(Question::Find)),
    ]);
    rows
}

/// Progress and results of a search: the results around the visible time, if the list cannot hold all.
fn found_rows(model: &ViewModel) -> Vec<Vec<Widget>> {
    let Some(found) = &model.open.found else { return Vec::new() };
    let ask = Action::Ask(Question::Find);
    let mut rows = vec![
        vec![Widget::button(found.words.clone(), "search for something else  (\")", ask).is("wide")],
        vec![Widget::label(found.state_words()).is("status")],
        vec![
            Widget::button("earlier", "the previous result  ({)", Action::Segment(-1)),
            Widget::button("later", "the next result  (})", Action::Segment(1)),
        ],
    ];
    let shown = found.events.iter().position(|event| model.is_found_shown(*event));
    let from = shown.unwrap_or(0).saturating_sub(LISTED_MAX / 2);
    for (place, event) in found.events.iter().enumerate().skip(from).take(LISTED_MAX) {
        let row = Widget::pressed(model.event_words(*event), "show it  ({ and })", Press::Found(place));
        rows.push(vec![Widget { is_on: Some(shown == Some(place)), ..row.is("entry") }]);
    }
    rows
}

/// Annotations: commands, the text of the selected one, and the table.
pub(crate) fn annotation_rows(model: &ViewModel) -> Vec<Vec<Widget>> {
    let field =
        |words: &str, title: &str, field| vec![Widget::label(words), Widget::field(model, title, field)];
    let chosen = model.open.annotations.chosen.as_ref();
    let of_chosen = |widget: Widget| Widget { is_off: chosen.is_none(), ..widget };
    let delete = Widget::button("delete", "delete the chosen  (del)", Action::DeleteAnnotation);
    let to_cursors = Widget::button("to cursors", "from cursor to cursor", Action::MoveAnnotation);
    let mut rows = vec![
        vec![Widget::label(model.annotation_place()).is("status")],
        vec![
            Widget::button("new", "annotate between the cursors  (F2)", Action::Annotate),
            of_chosen(to_cursors),
            of_chosen(delete),
            Widget::button("undo", "take the last change back  (F9)", Action::UndoAnnotation),
        ],
    ];
    if chosen.is_some() {
        rows.push(field("name", "name of the annotation", Field::AnnotationLabel));
        rows.push(field("comment", "comment of the annotation", Field::AnnotationComment));
        rows.push(field("colour", "colour of the annotation, as #ff8800", Field::AnnotationColor));
        rows.push(field("from", "lower frequency of the annotation; empty: none", Field::AnnotationLow));
        rows.push(field("to", "upper frequency of the annotation; empty: none", Field::AnnotationHigh));
    }
    rows.push(field("with", "words of the annotations to list; empty: all", Field::AnnotationFilter));
    rows.push(vec![Widget::label(model.annotations_counted()).is("status")]);
    let listed = model.annotation_list().map_or(&[][..], |list| &list.rows);
    for (place, annotation) in listed.iter().enumerate() {
        let words = model.annotation_row(annotation);
        let row = Widget::pressed(words, "show it, and choose it", Press::Annotation(place)).is("entry");
        let row = Widget { is_on: Some(Some(annotation) == chosen), ..row };
        let color = annotation_rgb(annotation);
        rows.push(vec![Widget { color, ..row }]);
    }
    rows
}

/// Controls of the source.
pub(crate) fn source_rows(model: &ViewModel) -> Vec<Vec<Widget>> {
    let mut rows = Vec::new();
    if model.generator.is_there() {
        let run = if model.generator.is_paused { "go on" } else { "pause" };
        rows.push(vec![
            Widget::label("generator"),
            Widget::button(run, "start or pause the generator  (G)", Action::GeneratorPause),
            Widget::button("slower", "the next lower rate  (z)", Action::GeneratorRate(Step::Down)),
            Widget::button("faster", "the next higher rate  (Z)", Action::GeneratorRate(Step::Up)),
        ]);
        let wave = |wave: &String| {
            let is_on = model.generator.wave.as_ref() == Some(wave);
            let row =
                Widget::pressed(wave.as_str(), "waveform of all channels  (F)", Press::Wave(wave.clone()));
            Widget { is_on: Some(is_on), ..row }
        };
        rows.push(model.generator.waves().iter().map(wave).collect());
    }
    if let Some(tuned) = model.options.receiver.as_ref().map(|receiver| (receiver.tuned)()) {
        for what in Tunable::ALL {
            let words = format!("{}: {}", what.name(), tuned.text(what));
            rows.push(vec![Widget::button(words, what.question(), Action::Ask(Question::Tuning(what)))]);
        }
    }
    for (words, what) in model.keep_entries() {
        rows.push(vec![Widget::button(words, "keep it for good", Action::Save(what))]);
    }
    rows
}

/// Maximum listed events.
const LISTED_MAX: usize = 200;
