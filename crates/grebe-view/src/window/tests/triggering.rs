//! The trigger and its list.

use super::*;

#[test]
fn a_trigger_is_set_and_cursors_are_read_without_seeing_them() {
    let mut harness = dark();
    harness.get_by_label("auto").click();
    harness.run();
    harness.get_by_label("TRIGGERED");
    harness.get_by_label("CH1 0").click();
    harness.run();
    harness.get_by_label("trigger channel");
    harness.key_press(egui::Key::ArrowDown);
    harness.key_press(egui::Key::Enter);
    harness.run();
    assert!(harness.query_by_label("trigger channel").is_none(), "chosen, and closed");
    harness.get_by_label("CH2 0");
    harness.get_by_label("rising").click();
    harness.run();
    harness.get_by_label("falling");
    harness.key_press(egui::Key::ArrowUp);
    harness.run();
    harness.get_by_label("CH2 300");

    harness.event(egui::Event::Text("c".into()));
    harness.run();
    harness.get_by_label("1.66666667 Hz");
    harness.event(egui::Event::Text(">".into()));
    harness.run();
    harness.get_by_label("2.5 Hz");
    drag(&mut harness, "time cursor B", egui::vec2(-200.0, 0.0));
    assert!(harness.query_by_label("2.5 Hz").is_none(), "the cursor went with the pointer");
    harness.get_by_label("measure").click();
    harness.run();
    harness.get_by_label("frequency");
    harness.get_by_label("2 Hz");
    harness.get_by_label("roll").click();
    harness.run();
    assert!(harness.query_by_label("TRIGGERED").is_none());
}

#[test]
fn the_trigger_is_held_off_and_coupled_and_its_rate_is_read() {
    let mut harness = dark();
    press(&mut harness, "mrv");
    // The second channel is a sine of 4 Hz, with a gap in the middle.
    harness.get_by_label("240.0 /min");
    harness.get_by_label("DC").click();
    harness.run();
    harness.get_by_label("longer holdoff").click();
    harness.run();
    assert_eq!(harness.state().model.controls.trigger.settings.holdoff_s, 0.02);
    press(&mut harness, "::::");
    harness.get_by_label("120.0 /min");
    harness.get_by_label("LF reject").click();
    harness.run();
    harness.get_by_label("LF reject 1 Hz \u{b7} 500 ms");
    harness.get_by_label("higher corner").click();
    harness.run();
    harness.get_by_label("LF reject 2 Hz \u{b7} 500 ms");
    press(&mut harness, "L~");
    harness.get_by_label("HF reject 50 Hz \u{b7} 500 ms");
    assert!(harness.state().model.controls.trigger.settings.is_noise_reject);
    press(&mut harness, "L~;");
    harness.get_by_label("DC \u{b7} 200 ms");
    // The menu lies over the marks.
    harness.key_press(egui::Key::Escape);
    harness.run();
    drag(&mut harness, "trigger level", egui::vec2(0.0, -20.0));
    assert!(harness.state().model.controls.trigger.settings.level > Some(500.0));
    drag(&mut harness, "trigger position", egui::vec2(-200.0, 0.0));
    assert!(harness.state().model.controls.trigger.settings.position < 0.4);
}

#[test]
fn the_last_triggers_can_be_seen_again_and_kept() {
    let mut harness = dark();
    press(&mut harness, "mg");
    let all = harness.state().model.segments();
    assert!(all.len() >= 2, "{all:?}");
    press(&mut harness, "{P");
    let model = &harness.state().model;
    let shown: Vec<_> = model.segments().into_iter().filter(|segment| segment.is_shown).collect();
    assert_eq!((shown.len(), shown[0].label.as_deref()), (1, Some("pin 1")));
    let before = all.iter().position(|segment| segment.is_shown).unwrap();
    assert_eq!(shown[0].at, all[(before + 1).min(all.len() - 1)].at, "the one before");
    let picture = &model.seen.picture;
    let place = (shown[0].at - picture.left_index) / picture.span_samples;
    assert!((place - 0.5).abs() < 0.01, "it stands where triggers do: {place}");
    harness.get_by_label("PAUSED");
}
