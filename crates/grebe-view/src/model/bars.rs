//! The bars of buttons above the traces and the panes beside them.

use super::action::{Action, Question, Step};
use super::setting::Setting;
use super::view_model::ViewModel;
use super::widget::Widget;
use crate::data::trigger::TriggerMode;

/// The modes of the trigger.
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
    vec![
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
        Widget::button("\u{d7}", "close  (f)", Action::Spectrum),
    ]
}

pub(crate) fn waterfall_controls() -> Vec<Widget> {
    vec![
        Widget::button("next channel", "the next channel  (n)", Action::NextChannel),
        Widget::button("\u{d7}", "close  (w)", Action::Waterfall),
    ]
}

pub(crate) fn xy_controls() -> Vec<Widget> {
    vec![
        Widget::choice("x", "what is drawn to the right", Setting::XyInput(0)),
        Widget::choice("y", "what is drawn upwards", Setting::XyInput(1)),
        Widget::button("symbol rate\u{2026}", "a point a symbol  (')", Action::Ask(Question::SymbolRate)),
        Widget::button("\u{d7}", "close  (@)", Action::Xy),
    ]
}

const MODES: [(TriggerMode, &str, &str); 4] = [
    (TriggerMode::Roll, "roll", "no trigger: the newest samples at the right edge  (m)"),
    (TriggerMode::Auto, "auto", "a picture at each trigger, or without where none comes  (m)"),
    (TriggerMode::Normal, "normal", "a picture at each trigger, and only then  (m)"),
    (TriggerMode::Single, "single", "hold the next trigger; press again for another  (s)"),
];
