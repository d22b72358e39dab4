//! Lists, prompts, and the row of live numbers.

use super::*;

#[test]
fn the_live_numbers_stay_in_one_row_and_say_losses_first() {
    let mut harness = Harness::builder()
        .with_size(egui::vec2(420.0, 500.0))
        .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes(ThemeChoice::Dark));
    harness.run();
    let lost = harness.get_by_label("4 frames").rect();
    let dots = harness.get_by_label("\u{2026}").rect();
    assert!(dots.right() <= 420.0 && (lost.center().y - dots.center().y).abs() < 6.0, "{lost} {dots}");
    assert!(harness.query_by_label("received").is_none(), "it waits behind the dots");
    let wide = dark();
    wide.get_by_label("received");
    assert!(wide.query_by_label("\u{2026}").is_none());
}

#[test]
fn the_width_of_a_pulse_is_typed_into_the_line_and_the_menu() {
    let mut harness = dark();
    press(&mut harness, "mbT");
    harness.get_by_label("answer");
    // The prompt takes typed characters, not the keys.
    press(&mut harness, "5m..20m");
    harness.key_press(egui::Key::Enter);
    harness.run();
    assert!(harness.query_by_label("answer").is_none());
    let settings = harness.state().model.controls.trigger.settings;
    assert_eq!((settings.pulse_min_s, settings.pulse_max_s), (Some(5e-3), Some(20e-3)));
    harness.get_by_label("pulse 5 ms \u{2026} 20 ms");
}
