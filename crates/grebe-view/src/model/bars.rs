//! The bars of buttons above the traces and the panes beside them.

use super::action::{Action, BoxDeed, Question, Step};
use super::fields::Field;
use super::setting::Setting;
use super::view_model::ViewModel;
use super::widget::Widget;
use crate::data::trigger::TriggerMode;
use crate::data::viewport::Detector;

/// The buttons for the views beside the traces.
pub(crate) fn views(model: &ViewModel) -> Vec<Widget> {
    let (show, is_measuring) = (model.controls.show, model.controls.is_measuring);
    let measured = "a table of measurements  (v), with statistics  (V)";
    let spectra = "levels by frequency  (f); the waterfall too  (w)";
    vec![
        Widget::toggle("measure", measured, Action::Measure, is_measuring),
        Widget::toggle("waterfall", "levels by frequency and time  (w)", Action::Waterfall, show.waterfall),
        Widget::toggle("spectrum", spectra, Action::Spectrum, show.spectrum),
        Widget::toggle("XY", "one channel over another: a constellation  (@)", Action::Xy, show.xy),
        Widget::toggle("channels", "names, scales, colours  (l)", Action::Channels, show.channel_panel),
    ]
}

/// The buttons for the trigger modes.
pub(crate) fn trigger_modes(model: &ViewModel) -> Vec<Widget> {
    let mode = model.controls.mode(&model.seen.picture);
    let toggle =
        |(choice, words, title)| Widget::toggle(words, title, Action::Trigger(choice), mode == choice);
    MODES.map(toggle).to_vec()
}

pub(crate) fn spectrum_controls(model: &ViewModel) -> Vec<Widget> {
    let settings = model.controls.spectrum;
    let averages = match settings.averages {
        1 => "no average".into(),
        count => format!("average {count}"),
    };
    let is_marked = model.controls.show.harmonics;
    let mut widgets = vec![
        Widget::button("\u{2212}", "shorter transform  (()", Action::TransformSize(Step::Down)),
        Widget::choice(settings.size.to_string(), "samples of a transform", Setting::TransformSize),
        Widget::button("+", "longer transform, finer lines  ())", Action::TransformSize(Step::Up)),
        Widget::choice(settings.window.name(), "weighting of the samples  (W)", Setting::Weighting),
        Widget::choice(averages, "spectra that are averaged  (A)", Setting::Averages),
        Widget::toggle("hold", "keep the highest levels  (H)", Action::PeakHold, settings.is_peak_held),
        Widget::toggle(
            "harmonics",
            "mark the harmonics of the highest peak  (#)",
            Action::Harmonics,
            is_marked,
        ),
    ];
    widgets.extend(markers(model));
    widgets.push(Widget::button("\u{d7}", "close  (f)", Action::Spectrum));
    widgets
}

/// The buttons for the markers, and their targets while they are on.
fn markers(model: &ViewModel) -> Vec<Widget> {
    let is_on = model.controls.markers.is_some();
    let mut widgets = vec![Widget::toggle(
        "markers",
        "frequency and level at two places, and their difference  (`)",
        Action::Markers,
        is_on,
    )];
    if is_on {
        widgets.push(Widget::choice("peak", "moves a marker to a peak  (\\)", Setting::Marker));
    }
    widgets
}

pub(crate) fn waterfall_controls(model: &ViewModel) -> Vec<Widget> {
    let is_auto = model.controls.levels.is_none();
    let deed = |words: &str, title: &str, deed| Widget::button(words, title, Action::Box(deed));
    let boxed = model.controls.boxed.map_or(Vec::new(), |_| {
        let mut widgets = vec![
            deed("snap", "box to the burst under it", BoxDeed::Snap),
            deed("annotate", "annotate the box  (F2)", BoxDeed::Annotate),
            deed("cut", "save the box as a recording", BoxDeed::Cut),
            deed("find like", "search for bursts in its band that last about as long", BoxDeed::FindLike),
            deed("no box", "remove the box  (esc)", BoxDeed::Remove),
        ];
        widgets.splice(3..3, model.sound_controls());
        widgets
    });
    let is_mean = model.controls.spectrum.detector == Detector::Mean;
    let others = [
        Widget::toggle("mean", "mean power, in place of the highest level  (F7)", Action::Detector, is_mean),
        Widget::label("levels"),
        Widget::field(model, "lowest level", Field::LevelBottom),
        Widget::field(model, "highest level", Field::LevelTop),
        Widget::toggle("auto", "levels by the noise floor", Action::LevelsAuto, is_auto),
        Widget::button("next channel", "the next channel  (n)", Action::NextChannel),
        Widget::button("\u{d7}", "close  (w)", Action::Waterfall),
    ];
    boxed.into_iter().chain(others).collect()
}

pub(crate) fn xy_controls() -> Vec<Widget> {
    vec![
        Widget::choice("x", "lane on the horizontal axis", Setting::XyInput(0)),
        Widget::choice("y", "lane on the vertical axis", Setting::XyInput(1)),
        Widget::button("symbol rate\u{2026}", "a point a symbol  (')", Action::Ask(Question::SymbolRate)),
        Widget::button("\u{d7}", "close  (@)", Action::Xy),
    ]
}

const MODES: [(TriggerMode, &str, &str); 4] = [
    (TriggerMode::Roll, "roll", "no trigger: the newest samples at the right edge  (m)"),
    (TriggerMode::Auto, "auto", "a picture at each trigger, or without a trigger after a while  (m)"),
    (TriggerMode::Normal, "normal", "a picture at each trigger, and only then  (m)"),
    (TriggerMode::Single, "single", "hold the next trigger; press again for another  (s)"),
];
