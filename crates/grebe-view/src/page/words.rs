//! All texts around the pictures: head, tables, lists, help. They change a few times a second.

use grebe_scope::Engineering;
use serde::Serialize;

use super::panes::{Spectrum, Waterfall, Xy};
use super::requests::Sizes;
use crate::data::picture::LaneColumns;
use crate::data::trigger::TriggerState;
use crate::model::action::{Action, SaveWhat};
use crate::model::bars::{trigger_modes, views};
use crate::model::channel::ThemeChoice;
use crate::model::keys::{FINGERS, KeyGroup, MOUSE, keys};
use crate::model::panels::{Panel, panels};
use crate::model::readout::{Row, TRIGGER_COLUMNS};
use crate::model::seen::hud::{Item, Tone};
use crate::model::setting::Setting;
use crate::model::signals::SIGNAL_COLUMNS;
use crate::model::time_frequency_box::BOX_COLUMNS;
use crate::model::view_model::ViewModel;
use crate::model::widget::{Press, Rgb, Widget, rgb};

/// All of it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Words {
    theme: Theme,
    state: State,
    source: String,
    /// Names of the sources, if there are several, and the visible one.
    sources: Vec<String>,
    source_shown: usize,
    stream: String,
    tools: Vec<Widget>,
    facts: Vec<(&'static str, String, &'static str)>,
    losses: Vec<(&'static str, String, &'static str)>,
    notice: String,
    /// The missing parts of the picture.
    exact: &'static str,
    trigger_row: Vec<Widget>,
    spectrum: Option<Spectrum>,
    waterfall: Option<Waterfall>,
    xy: Option<Xy>,
    has_overview: bool,
    tables: Vec<Table>,
    panels: Vec<Panel>,
    list: Option<List>,
    prompt: Option<Prompt>,
    help: Vec<(&'static str, Vec<(&'static str, &'static str)>)>,
    /// Values under the pointer, the axis first.
    hover: Vec<(String, Rgb)>,
}

#[derive(Debug, PartialEq, Serialize)]
struct State {
    word: &'static str,
    is_held: bool,
}

/// Colours of all elements.
#[derive(Debug, PartialEq, Serialize)]
struct Theme {
    is_dark: bool,
    background: Rgb,
    plot: Rgb,
    grid: Rgb,
    zero: Rgb,
    text: Rgb,
    dim: Rgb,
    gap: Rgb,
    cursor: Rgb,
    /// Colours of levels, from the lowest to the highest; the page interpolates.
    ramp: Vec<Rgb>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Table {
    name: &'static str,
    columns: Vec<String>,
    rows: Vec<(Rgb, Vec<String>)>,
}

#[derive(Debug, PartialEq, Serialize)]
struct List {
    title: String,
    rows: Vec<Widget>,
    marked: usize,
}

#[derive(Debug, PartialEq, Serialize)]
struct Prompt {
    question: &'static str,
    text: String,
    refused: String,
}

impl Words {
    pub(super) fn of(model: &mut ViewModel, sizes: &Sizes, hover: Option<f64>) -> Words {
        let spectrum = Spectrum::of(model, sizes);
        let waterfall = Waterfall::of(model, sizes);
        let model = &*model;
        let menu = model.options.sources.as_ref().filter(|_| model.has_sources());
        let hud = &model.seen.hud;
        let items = |items: &[Item]| items.iter().map(item).collect::<Vec<_>>();
        let has_costs = !hud.costs.is_empty();
        let costs = has_costs.then(|| ("", hud.costs.clone(), tone(Tone::Plain)));
        Words {
            theme: Theme::of(model.controls.theme),
            state: State { word: hud.state.word(), is_held: model.controls.time.is_held() },
            source: hud.source.clone(),
            sources: menu.map_or(Vec::new(), |menu| menu.names.clone()),
            source_shown: menu.map_or(0, |menu| menu.shown),
            stream: hud.stream.clone(),
            tools: tools(model),
            facts: items(&hud.facts).into_iter().chain(costs).collect(),
            losses: items(&hud.losses),
            notice: hud.notice.clone().or(hud.advice.clone()).unwrap_or_default(),
            exact: match (model.seen.picture.is_estimated, model.is_held_window_shown()) {
                (true, _) => "some samples of each column so far",
                (false, true) => "exact",
                (false, false) => "",
            },
            trigger_row: trigger_row(model),
            spectrum,
            waterfall,
            xy: Xy::of(model, sizes),
            has_overview: model.controls.show.overview_strip,
            tables: tables(model),
            panels: panels(model),
            list: model.list().map(|list| List {
                title: model.list_title(),
                rows: {
                    let entries = model.list_entries().into_iter().enumerate();
                    let row = |(place, entry): (usize, crate::model::open::Entry)| Widget {
                        is_on: Some(entry.is_on),
                        ..Widget::button(entry.text, "", Action::Choose(place))
                    };
                    entries.map(row).collect()
                },
                marked: list.marked,
            }),
            prompt: model.open.prompt.as_ref().map(|prompt| Prompt {
                question: model.question_words(),
                text: prompt.text.clone(),
                refused: prompt.refused.clone().unwrap_or_default(),
            }),
            help: match model.controls.is_help_open {
                true => help(model),
                false => Vec::new(),
            },
            hover: hover.map_or(Vec::new(), |at| values_at(model, at)),
        }
    }
}

impl Theme {
    fn of(choice: ThemeChoice) -> Theme {
        let colors = choice.colors();
        Theme {
            is_dark: choice == ThemeChoice::Dark,
            background: rgb(colors.background),
            plot: rgb(colors.plot),
            grid: rgb(colors.grid),
            zero: rgb(colors.grid_zero),
            text: rgb(colors.text),
            dim: rgb(colors.text_dim),
            gap: rgb(colors.gap),
            cursor: rgb(colors.cursor),
            ramp: colors.ramp().iter().step_by(5).copied().map(rgb).collect(),
        }
    }
}

fn item(item: &Item) -> (&'static str, String, &'static str) {
    (item.label, item.value.clone(), tone(item.tone))
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Bad => "bad",
    }
}

/// The buttons of the head.
fn tools(model: &ViewModel) -> Vec<Widget> {
    let controls = &model.controls;
    let is_held = controls.time.is_held();
    let run = if is_held { "go on" } else { "pause" };
    let has_controls = model.generator.is_there() || model.options.receiver.is_some() || model.has_keeper();
    let save = |words: &str, title: &str, what| Widget::button(words, title, Action::Save(what));
    let other = match controls.theme {
        ThemeChoice::Dark => "light",
        ThemeChoice::Light => "dark",
    };
    let mut tools = vec![
        Widget::button("\u{2212}", "longer time span  (-)", Action::Longer),
        Widget::label(model.seen.hud.division.clone()).is("division"),
        Widget::button("+", "shorter time span  (+)", Action::Shorter),
        Widget::button("fit", "whole recording or history  (home or *)", Action::FitAll),
        Widget::button("autoset", "time, scales and trigger as the signals ask for  (U)", Action::Autoset),
        Widget {
            is_on: is_held.then_some(true),
            ..Widget::button(run, "hold the picture, or continue  (space)", Action::Pause).is("pause")
        },
        Widget::toggle("cursors", "time cursors  (c)", Action::Cursors, controls.cursors.times.is_some()),
        Widget::toggle(
            "levels",
            "value cursors  (C)",
            Action::ValueCursors,
            controls.cursors.values.is_some(),
        ),
    ];
    tools.extend(views(model));
    tools.extend([
        Widget::choice("settings", "list of all settings  (enter)", Setting::All),
        save("PNG", "save the picture  (S)", SaveWhat::Picture),
        save("CSV", "save the samples on the screen  (D)", SaveWhat::Samples),
    ]);
    if has_controls {
        let title = "generator, receiver, saved ranges";
        let source = Widget::pressed("source", title, Press::Source);
        tools.push(Widget { is_on: Some(model.open.is_source_open), ..source });
    }
    tools.push(Widget::button(other, "colours  (t)", Action::Theme));
    tools.push(Widget::button("?", "all keys  (?)", Action::Help));
    tools
}

/// The trigger's row.
fn trigger_row(model: &ViewModel) -> Vec<Widget> {
    let mut row = trigger_modes(model);
    let settings = &model.controls.trigger.settings;
    if let Some(trigger) = &model.seen.hud.trigger {
        let auto = if settings.level.is_none() { " auto" } else { "" };
        let level = format!("{}{auto}", trigger.level);
        let kind = format!("{} {}", trigger.kind.name(), trigger.time);
        let place = format!("{:.0} %", settings.position * 100.0);
        row.push(Widget::choice(
            trigger.source.clone(),
            "the channel that triggers  (r)",
            Setting::TriggerLane,
        ));
        let title = "type of trigger: edge, pulse, runt, window or dropout  (b)";
        row.push(Widget::choice(kind.trim_end(), title, Setting::TriggerKind));
        row.push(Widget::button(trigger.slope, "the other direction  (e)", Action::Slope));
        let title = "level to the middle of the signal  (0); drag it at the right edge";
        row.push(Widget::button(level, title, Action::LevelAuto));
        let title = "all of the signal, without its slow part, or without its fast one  (L)";
        row.push(Widget::button(trigger.coupling.clone(), title, Action::TriggerCoupling));
        let title = "trigger at the left, the middle or the right  (p); or drag the arrow above the traces";
        row.push(Widget::button(place, title, Action::Next(Setting::TriggerPlace)));
    }
    let is_open = model.controls.show.segments;
    row.push(Widget::toggle("triggers", "list of the last triggers  (g)", Action::Segments, is_open));
    if model.has_finder() {
        let title = "search the whole history, by a form or in words  (\")";
        row.push(Widget::toggle("find", title, Action::Find, model.open.find_form.is_some()));
    }
    if let Some(trigger) = &model.seen.hud.trigger {
        let class = match trigger.state {
            TriggerState::Triggered => "trigger-state good",
            TriggerState::Free => "trigger-state",
            TriggerState::Ready | TriggerState::Stopped => "trigger-state held",
        };
        row.push(Widget::label(trigger.state_word()).is(class));
    }
    row
}

/// The time, and the value of each lane, at a part of the plot.
fn values_at(model: &ViewModel, at: f64) -> Vec<(String, Rgb)> {
    let theme = model.controls.theme.colors();
    let (start, end, _) = model.axis();
    let time = Engineering::new(start + at * (end - start), model.seen.picture.axis_unit()).digits(6);
    let value = |data: &LaneColumns| {
        let setup = model.setup(data.lane);
        let show =
            |count: f32| Engineering::new(setup.value(count.into()), &setup.unit).digits(4).to_string();
        let place = at * data.columns.len() as f64;
        let column = data.columns.get(place as usize)?;
        let nearest = data.line.as_ref().and_then(|line| line.nearest(place as f32));
        let words = match nearest {
            Some(sample) => show(sample),
            None if column.is_empty() => return Some((String::new(), rgb(theme.text))),
            None if column.min == column.max => show(column.min),
            None => format!("{} \u{2026} {}", show(column.min), show(column.max)),
        };
        Some((words, rgb(setup.trace_color(data.lane, &theme))))
    };
    let values = model.seen.picture.lanes.iter().filter_map(value);
    [(time.to_string(), rgb(theme.cursor))].into_iter().chain(values).collect()
}

fn tables(model: &ViewModel) -> Vec<Table> {
    let theme = model.controls.theme.colors();
    let text = rgb(theme.text);
    let rows = |rows: Vec<Row>| {
        let row = |Row { lane, cells }: Row| {
            let color = lane.map(|lane| rgb(model.setup(lane).trace_color(lane, &theme)));
            (color.unwrap_or(text), cells)
        };
        rows.into_iter().map(row).collect::<Vec<_>>()
    };
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let mut tables = Vec::new();
    if model.controls.is_measuring {
        let mut measured = model.measurement_rows();
        measured.extend(model.statistics_rows());
        let quantities = model.quantity_columns();
        let columns = [model.measured_words()].into_iter();
        let columns = columns.chain(quantities.iter().map(|it| it.name().to_owned())).collect();
        tables.push(Table { name: "measurements", columns, rows: rows(measured) });
        let columns = names(&SIGNAL_COLUMNS);
        tables.push(Table { name: "signals", columns, rows: rows(model.signal_rows()) });
        let columns = names(&TRIGGER_COLUMNS);
        tables.push(Table { name: "trigger rate", columns, rows: rows(model.trigger_rows()) });
    }
    let (title, boxed) = model.box_rows();
    let columns = [title].into_iter().chain(names(&BOX_COLUMNS)).collect();
    tables.push(Table { name: "box", columns, rows: rows(boxed) });
    let columns = names(&["", "A", "B", "\u{394}"]);
    tables.push(Table { name: "cursors", columns, rows: rows(model.cursor_rows()) });
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn help(model: &ViewModel) -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let lines = |group: &KeyGroup| group.keys.iter().map(|line| (line.shown, line.words)).collect();
    keys(model).chain([&MOUSE, &FINGERS]).map(|group| (group.title, lines(group))).collect()
}
