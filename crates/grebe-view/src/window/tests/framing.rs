//! The strip with all of the history, and boxes that are drawn.

use super::*;

fn times(harness: &Harness<'static, ScopePanes>) -> (f64, f64) {
    let picture = &harness.state().model.seen.picture;
    (picture.left_index, picture.right_index())
}

#[test]
fn the_strip_moves_what_is_shown_and_a_key_shows_all() {
    let mut harness = dark();
    press(&mut harness, "+++");
    let (left, right) = times(&harness);
    assert!(left > 1700.0 && right >= 1999.0, "{left} {right}");
    let strip = harness.get_by_label("which part of the history is shown").rect();
    let at = |part: f32| egui::pos2(strip.left() + strip.width() * part, strip.center().y);
    let click = |harness: &mut Harness<'static, ScopePanes>, at: egui::Pos2| {
        harness.drag_at(at);
        harness.run();
        harness.drop_at(at);
        harness.run();
    };
    click(&mut harness, at(0.25));
    let (left, right) = times(&harness);
    assert!(((left + right) / 2.0 - 500.0).abs() < 10.0, "{left} {right}");
    harness.get_by_label("PAUSED");
    // Taken hold of beside its middle, it goes as far as the pointer does.
    harness.drag_at(at(0.26));
    harness.run();
    harness.hover_at(at(0.56));
    harness.run();
    harness.drop_at(at(0.56));
    harness.run();
    let (left, right) = times(&harness);
    assert!(((left + right) / 2.0 - 1100.0).abs() < 15.0, "{left} {right}");
    harness.get_by_label("fit").click();
    harness.run();
    let (left, right) = times(&harness);
    assert!(left <= 0.0 && (2000.0..2250.0).contains(&right), "{left} {right}");
    press(&mut harness, "_");
    assert!(harness.query_by_label("which part of the history is shown").is_none());
}

#[test]
fn a_low_window_has_no_strip() {
    let mut harness = Harness::builder()
        .with_size(egui::vec2(640.0, 320.0))
        .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes(ThemeChoice::Dark));
    harness.run();
    assert!(harness.query_by_label("which part of the history is shown").is_none());
}

#[test]
fn a_box_with_shift_zooms_into_times_and_values_and_escape_gives_it_up() {
    let mut harness = dark();
    let lane = harness.get_by_label("settings of CH2").rect();
    let (from, to) = (egui::pos2(300.0, lane.top() + 20.0), egui::pos2(500.0, lane.top() + 70.0));
    let draw = |harness: &mut Harness<'static, ScopePanes>, is_given_up: bool| {
        harness.event_modifiers(egui::Event::PointerMoved(from), egui::Modifiers::SHIFT);
        let button = |pressed, pos| egui::Event::PointerButton {
            pos,
            button: egui::PointerButton::Primary,
            pressed,
            modifiers: egui::Modifiers::SHIFT,
        };
        harness.event_modifiers(button(true, from), egui::Modifiers::SHIFT);
        harness.run();
        harness.event_modifiers(egui::Event::PointerMoved(to), egui::Modifiers::SHIFT);
        harness.run();
        if is_given_up {
            harness.key_press(egui::Key::Escape);
            harness.run();
        }
        harness.event_modifiers(button(false, to), egui::Modifiers::SHIFT);
        harness.run();
    };
    let before = times(&harness);
    draw(&mut harness, true);
    assert_eq!(times(&harness), before);
    draw(&mut harness, false);
    let (left, right) = times(&harness);
    // 200 of the plot's 922 points are 434 of 2000 samples.
    assert!((425.0..480.0).contains(&(right - left)), "{left} {right}");
    let lanes = &harness.state().model.controls.lanes;
    let is_set = [0, 1, 2].map(|channel| lanes.vertical(LaneId::real(channel)).is_some());
    assert_eq!(is_set, [false, true, false]);
}

#[test]
fn a_dot_stands_at_each_sample_where_they_are_far_apart_and_the_pointer_reads_samples() {
    let mut harness = dark();
    let model = &mut harness.state_mut().model;
    model.controls.time.span = Some(0.02);
    harness.run();
    let line = |harness: &Harness<'static, ScopePanes>| {
        harness.state().model.seen.picture.lanes[0].line.clone().unwrap()
    };
    let straight = line(&harness);
    assert!(
        (19..=21).contains(&straight.samples.len()) && straight.spacing() > 40.0,
        "{}",
        straight.spacing()
    );
    press(&mut harness, "I");
    let rounded = line(&harness);
    assert_ne!(straight.spans, rounded.spans);
    assert_eq!(straight.samples, rounded.samples, "both lines have the same samples");
}

#[test]
fn a_signal_that_is_cut_off_says_so() {
    let (mut feed, link) = ScopeFeed::new(1 << 20);
    let cut = |channel: usize, index: u64| match channel {
        0 => ((index as f64 * 0.05).sin() * 50_000.0).clamp(-32_768.0, 32_767.0) as i16,
        _ => ((index as f64 * 0.05).sin() * 30_000.0) as i16,
    };
    feed.ingest(&crate::testing::batch(0, 2, 1000, 1e3, cut)).unwrap();
    feed.finish();
    let harness = harness(ScopePanes::new(0, link, ViewOptions::new(SourceStatus::default)));
    harness.get_by_label("CH1 is clipped");
    assert!(harness.query_by_label("CH2 is clipped").is_none());
}
