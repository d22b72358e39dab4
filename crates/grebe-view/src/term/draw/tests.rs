use grebe_scope::Scale;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::hud::Hud;
use crate::keys::Action;
use crate::testing::sine_batch;
use crate::{ChannelSetup, ScopeCore, ScopeFeed, SourceStatus, ViewOptions, Viewport};

/// A face over three channels with a gap, at a fixed moment.
fn face(width: u16) -> Face {
    let mut core = ScopeCore::new(1 << 20);
    for block in (0..40).filter(|block| !(20..24).contains(block)) {
        core.ingest(&sine_batch(block * 50, 3, 50, 1e3), 1_000_000).unwrap();
    }
    let mut options =
        ViewOptions::new(|| SourceStatus { name: "udp://:5000".into(), ..SourceStatus::default() });
    options.channels =
        vec![ChannelSetup { name: "ECG".into(), unit: "V".into(), scale: 1e-6, ..ChannelSetup::default() }];
    options.span = Some(2.0);
    let (_, link) = ScopeFeed::new(1 << 20);
    let mut face = Face::new(link, options);
    let viewport = Viewport {
        measure: Some([Scale::COUNTS; 8]),
        ..face.controls.viewport(&face.picture, columns(width))
    };
    face.picture = core.answer(&viewport, 2_000_000);
    face.hud = Hud::new(&face.picture, &(face.options.status)(), false, 30.0, 3_000_000);
    face
}

fn screen(face: &mut Face, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut screen = ScopeScreen::new(face, Palette::Ansi);
    terminal.draw(|frame| frame.render_widget(&mut screen, frame.area())).unwrap();
    terminal.backend().to_string()
}

#[test]
fn three_lanes_with_a_gap() {
    insta::assert_snapshot!(screen(&mut face(80), 80, 30));
}

#[test]
fn the_key_overlay_and_a_narrow_terminal() {
    let mut face = face(50);
    let picture = face.picture.clone();
    face.controls.apply(Action::Help, &picture);
    insta::assert_snapshot!(screen(&mut face, 50, 20));
}

#[test]
fn cursors_and_measurements_stand_below_the_lanes() {
    let mut face = face(110);
    let picture = face.picture.clone();
    face.controls.apply(Action::Cursors, &picture);
    face.controls.apply(Action::Measure, &picture);
    insta::assert_snapshot!(screen(&mut face, 110, 36));
}

#[test]
fn a_spectrum_stands_below_the_lanes_and_an_overlay_has_one() {
    let mut face = face(110);
    let picture = face.picture.clone();
    face.controls.apply(Action::Spectrum, &picture);
    face.controls.apply(Action::Overlay, &picture);
    let mut core = ScopeCore::new(1 << 20);
    for block in 0..40 {
        core.ingest(&sine_batch(block * 50, 3, 50, 1e3), 1_000_000).unwrap();
    }
    face.picture = core.answer(&face.controls.viewport(&face.picture, columns(110)), 2_000_000);
    insta::assert_snapshot!(screen(&mut face, 110, 36));
}

#[test]
fn waiting_says_for_what() {
    let mut face = face(60);
    face.picture = crate::Picture::waiting();
    face.hud = Hud::new(&face.picture, &(face.options.status)(), false, 0.0, 0);
    insta::assert_snapshot!(screen(&mut face, 60, 8));
}

#[test]
fn any_size_is_drawn() {
    let mut face = face(80);
    for (width, height) in [(1, 1), (20, 6), (21, 7), (300, 5), (11, 100), (500, 120)] {
        screen(&mut face, width, height);
    }
}

#[test]
fn dots_reach_from_edge_to_edge_and_a_flat_line_is_one_row() {
    let plot = Rect::new(0, 0, 3, 2);
    let range = Range { bottom: -32_768.0, top: 32_767.0 };
    let column = |min, max| Column { min, max, ..Column::OUTSIDE };
    let full = Dots::new(&[column(i16::MIN, i16::MAX); 6], range, f64::from, plot);
    assert_eq!(full.cells, [0xff; 6]);
    let flat = Dots::new(&[column(0, 0); 6], range, f64::from, plot);
    assert_eq!(flat.cells, [0xc0, 0xc0, 0xc0, 0, 0, 0], "the lowest dots of the upper row");
}

#[test]
fn the_triggers_rate_and_value_cursors_are_there_too() {
    let mut face = face(110);
    let mut core = ScopeCore::new(1 << 20);
    for block in 0..40 {
        core.ingest(&sine_batch(block * 50, 2, 50, 1e3), 1_000_000).unwrap();
    }
    let picture = face.picture.clone();
    for action in [Action::NextTrigger, Action::Measure, Action::TriggerCoupling] {
        face.controls.apply(action, &picture);
    }
    face.picture = core.answer(&face.controls.viewport(&face.picture, columns(110)), 2_000_000);
    // The lanes have their ranges once they were drawn.
    screen(&mut face, 110, 30);
    face.controls.apply(Action::ValueCursors, &picture);
    face.renew_hud(3_000_000);
    insta::assert_snapshot!(screen(&mut face, 110, 30));
}
