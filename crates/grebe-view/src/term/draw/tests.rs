use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::data::core::ScopeCore;
use crate::data::feed::ScopeFeed;
use crate::data::status::SourceStatus;
use crate::data::viewport::Viewport;
use crate::model::action::Action;
use crate::model::channel::ChannelSetup;
use crate::model::options::ViewOptions;
use crate::model::seen::hud::Hud;
use crate::model::setting::Setting;
use crate::testing::sine_batch;

/// A model over three channels with a gap, at a fixed moment.
fn model(width: u16) -> ViewModel {
    let mut core = ScopeCore::new(1 << 20);
    for block in (0..40).filter(|block| !(20..24).contains(block)) {
        core.ingest(&sine_batch(block * 50, 3, 50, 1e3), 1_000_000).unwrap();
    }
    let mut options =
        ViewOptions::new(|| SourceStatus { name: "udp://:5000".into(), ..SourceStatus::default() });
    options.initial.channels =
        vec![ChannelSetup { name: "ECG".into(), unit: "V".into(), scale: 1e-6, ..ChannelSetup::default() }];
    options.initial.span = Some(2.0);
    let (_, link) = ScopeFeed::new(1 << 20);
    let mut model = ViewModel::new(link, options, crate::png::encode);
    let viewport = Viewport {
        measure: Some(Default::default()),
        ..model.controls.viewport(&model.seen.picture, columns(width, GUTTER_MIN))
    };
    model.seen.picture = core.answer(&viewport, 2_000_000);
    model.seen.hud = Hud::new(&model.seen.picture, &(model.options.status)(), false, 30.0, 3_000_000);
    model
}

/// The text on a terminal of that size.
pub(crate) fn screen(model: &mut ViewModel, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let gutter = gutter([&mut *model].into_iter());
    let mut screen = ScopeScreen::new(model, Palette::Ansi, gutter);
    terminal.draw(|frame| frame.render_widget(&mut screen, frame.area())).unwrap();
    terminal.backend().to_string()
}

#[test]
fn without_utf_8_everything_is_ascii() {
    let mut model = model(80);
    let picture = model.seen.picture.clone();
    for action in [Action::Cursors, Action::Measure, Action::Help] {
        model.controls.apply(action, &picture);
        let mut terminal = Terminal::new(TestBackend::new(80, 40)).unwrap();
        let mut screen = ScopeScreen::new(&mut model, Palette::Ansi, GUTTER_MIN);
        terminal
            .draw(|frame| {
                frame.render_widget(&mut screen, frame.area());
                crate::term::ascii::draw_in_ascii(frame.buffer_mut());
            })
            .unwrap();
        let drawn = terminal.backend().to_string();
        assert!(drawn.is_ascii(), "{drawn}");
        assert!(drawn.contains('|') && drawn.contains('\''), "there are traces: {drawn}");
    }
}

#[test]
fn an_axis_loses_no_digit() {
    let mut model = model(80);
    // A tenth of a millidegree around -90 degrees: labels are of -90.00010 to -89.99990 degC.
    let celsius = ChannelSetup { unit: "degC".into(), scale: 1e-8, offset: -90.0, ..ChannelSetup::default() };
    let dbfs = ChannelSetup { unit: "dBFS".into(), scale: 1e-9, offset: -1.9382, ..ChannelSetup::default() };
    *model.controls.lanes.channel_mut(0) = celsius;
    *model.controls.lanes.channel_mut(1) = dbfs;
    let drawn = screen(&mut model, 80, 40);
    let labels = |unit: &str| -> Vec<f64> {
        let rows =
            drawn.lines().filter_map(|row| Some(row.split_once(unit)?.0.trim_start_matches(['"', ' '])));
        rows.map(|number| number.trim().parse().unwrap()).collect()
    };
    let (celsius, dbfs) = (labels(" degC"), labels(" dBFS"));
    assert!(celsius.len() >= 3 && celsius.iter().all(|label| (label + 90.0).abs() <= 2e-4), "{drawn}");
    assert!(dbfs.len() >= 3 && dbfs.iter().all(|label| (label + 1.9382).abs() <= 2e-5), "{drawn}");
}

#[test]
fn three_lanes_with_a_gap() {
    insta::assert_snapshot!(screen(&mut model(80), 80, 30));
}

#[test]
fn a_long_name_hides_neither_the_settings_nor_a_message() {
    let mut model = model(80);
    model.seen.hud.source = "synth:sine,square?channels=4&rate=50k&frequency=1k&amplitude=0.5".into();
    let drawn = screen(&mut model, 80, 24);
    let head = drawn.lines().next().unwrap();
    assert!(head.contains(" synth:sine,square?cha") && head.contains("\u{2026}  3 \u{d7}"), "{head}");
    assert!(head.contains(&model.seen.hud.division), "{head}");
    let notice = "the terminal has no waterfall; the window and the page have";
    model.seen.hud.notice = Some(notice.into());
    let drawn = screen(&mut model, 80, 24);
    let lines: Vec<&str> = drawn.lines().collect();
    assert!(lines[0].contains(notice) && lines[0].contains(" synth:"), "{drawn}");
    assert!(lines[23].contains("q quit"), "{drawn}");
}

#[test]
fn the_key_overlay_and_a_narrow_terminal() {
    let mut model = model(50);
    let picture = model.seen.picture.clone();
    model.controls.apply(Action::Help, &picture);
    insta::assert_snapshot!(screen(&mut model, 50, 20));
}

#[test]
fn cursors_and_measurements_stand_below_the_lanes() {
    let mut model = model(110);
    let picture = model.seen.picture.clone();
    model.controls.apply(Action::Cursors, &picture);
    model.controls.apply(Action::Measure, &picture);
    insta::assert_snapshot!(screen(&mut model, 110, 36));
}

#[test]
fn a_spectrum_stands_below_the_lanes_and_an_overlay_has_one() {
    let mut model = model(110);
    let picture = model.seen.picture.clone();
    model.controls.apply(Action::Spectrum, &picture);
    model.controls.apply(Action::Overlay, &picture);
    let mut core = ScopeCore::new(1 << 20);
    for block in 0..40 {
        core.ingest(&sine_batch(block * 50, 3, 50, 1e3), 1_000_000).unwrap();
    }
    model.seen.picture =
        core.answer(&model.controls.viewport(&model.seen.picture, columns(110, GUTTER_MIN)), 2_000_000);
    insta::assert_snapshot!(screen(&mut model, 110, 36));
}

#[test]
fn waiting_says_for_what() {
    let mut model = model(60);
    model.seen.picture = crate::data::picture::Picture::waiting();
    model.seen.hud = Hud::new(&model.seen.picture, &(model.options.status)(), false, 0.0, 0);
    insta::assert_snapshot!(screen(&mut model, 60, 8));
}

#[test]
fn why_a_connection_is_cut_is_seen_on_a_narrow_terminal_too() {
    let mut model = model(80);
    model.seen.hud.notice = Some("no connection to mast:4780: it fell silent; trying again".into());
    let shown = screen(&mut model, 80, 20);
    assert!(shown.lines().next().unwrap().contains("trying again"), "{shown}");
}

#[test]
fn any_size_is_drawn() {
    let mut model = model(80);
    for (width, height) in [(1, 1), (20, 6), (21, 7), (300, 5), (11, 100), (500, 120)] {
        screen(&mut model, width, height);
    }
}

#[test]
fn the_triggers_rate_and_value_cursors_are_there_too() {
    let mut model = model(110);
    let mut core = ScopeCore::new(1 << 20);
    for block in 0..40 {
        core.ingest(&sine_batch(block * 50, 2, 50, 1e3), 1_000_000).unwrap();
    }
    let picture = model.seen.picture.clone();
    for action in [Action::Next(Setting::TriggerMode), Action::Measure, Action::TriggerCoupling] {
        model.controls.apply(action, &picture);
    }
    model.seen.picture =
        core.answer(&model.controls.viewport(&model.seen.picture, columns(110, GUTTER_MIN)), 2_000_000);
    // The lanes get their ranges in the first drawing.
    screen(&mut model, 110, 30);
    model.controls.apply(Action::ValueCursors, &picture);
    model.renew_hud(3_000_000);
    insta::assert_snapshot!(screen(&mut model, 110, 30));
}

#[test]
fn what_has_come_of_a_recording_is_a_line_below_the_traces() {
    let mut model = model(60);
    model.seen.picture.arrived = Some([1.0, 1.0, 0.0, 0.5].into());
    let drawn = screen(&mut model, 60, 24);
    let line = drawn.lines().find(|line| line.contains('\u{2501}')).expect("there is one");
    let place = |sign: char| line.chars().position(|letter| letter == sign);
    assert!(place('\u{2501}') < place('\u{2508}') && place('\u{2508}') < place('\u{2505}'), "{line}");
    model.seen.picture.arrived = None;
    assert!(!screen(&mut model, 60, 24).contains('\u{2501}'), "no progress line for a complete recording");
}

#[test]
fn a_search_has_a_line_of_its_own_below_the_lanes() {
    use crate::data::finding::{Finder, Finding, FindingSide, FoundEvent};
    use std::sync::{Arc, Mutex};

    let mut model = model(100);
    let sides: Arc<Mutex<Vec<FindingSide>>> = Arc::default();
    let kept = Arc::clone(&sides);
    model.options.finder = Some(Finder::new(move |_| {
        let (side, finding) = Finding::begin();
        kept.lock().unwrap().push(side);
        finding
    }));
    model.act(Action::Ask(crate::model::action::Question::Find));
    let drawn = screen(&mut model, 100, 30);
    assert!(
        drawn.contains("search the whole history") && drawn.contains("edge --channels 1 --level"),
        "{drawn}"
    );
    model.answer();
    sides.lock().unwrap()[0].tell(&[FoundEvent { index: 700, length_samples: 0, lane: None }], 1000, 2000);
    let picture = model.seen.picture.clone();
    model.refresh();
    model.seen.picture = picture;
    model.act(Action::Segment(1));
    let drawn = screen(&mut model, 100, 30);
    let line = drawn.lines().find(|line| line.contains(" find edge ")).unwrap_or_else(|| panic!("{drawn}"));
    assert!(line.contains("1 found, 50 % searched"), "{line}");
}
