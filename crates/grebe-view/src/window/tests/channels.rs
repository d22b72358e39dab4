//! Channels: their panel, their scales, and math.

use super::*;

#[test]
fn a_channel_is_computed_of_others_named_and_measured() {
    let mut panes = panes(ThemeChoice::Dark);
    for channel in 0..2 {
        let setup = panes.model.controls.lanes.channel_mut(channel);
        (setup.unit, setup.scale) = ("V".into(), 1e-3);
    }
    let mut harness = harness(panes);
    press(&mut harness, "lv");
    harness.get_by_label("A \u{2212} B").click();
    harness.run();
    harness.get_by_label("settings of M CH1 \u{2212} CH2");
    assert_eq!(harness.state().lanes_shown(), "1 2 3 math");
    let model = &harness.state().model;
    let value = |channel: usize, place: usize| {
        let column = model.seen.picture.lanes[channel].columns[place];
        model.setup(model.seen.picture.lanes[channel].lane).value(f64::from(column.min))
    };
    let place = model.seen.picture.lanes[0].columns.len() / 3;
    assert!(
        (value(3, place) - (value(0, place) - value(1, place))).abs() < 0.1,
        "the same columns, less wide"
    );
    harness.get_by_label("M CH1 \u{2212} CH2");
    // The slope of 10 V and 2 Hz: 10 times 2 pi times 2, each way.
    harness.get_by_label("dA/dt").click();
    harness.run();
    let model = &harness.state().model;
    let measured = model.seen.picture.measured.iter().find(|it| it.lane.is_math()).unwrap();
    let height = measured.set.get(grebe_scope::Quantity::PeakToPeak).unwrap();
    assert!((height / (80.0 * std::f64::consts::PI) - 1.0).abs() < 0.01, "{height}");
    assert_eq!(model.setup(LaneId::MATH).unit, "V/s");
    harness.get_by_label("A = CH1").click();
    harness.run();
    harness.key_press(egui::Key::ArrowDown);
    harness.key_press(egui::Key::Escape);
    harness.run();
    harness.get_by_label("settings of M d CH2/dt");
    // A click on its number at the left of its lane selects and scales it as the others.
    press(&mut harness, "nnny");
    assert!(harness.state().model.controls.lanes.vertical(LaneId::MATH).is_some());
    press(&mut harness, "EE");
    assert_eq!(harness.state().lanes_shown(), "1 2 3");
    assert_eq!(harness.state().model.controls.lanes.selected, LaneId::real(0));
}

#[test]
fn the_channel_panel_names_scales_and_turns_channels() {
    let mut harness = dark();
    harness.get_by_label("channels").click();
    harness.run();
    harness.get_by_label("CH2").click();
    harness.run();
    harness.get_by_label("name of channel 2").focus();
    harness.run();
    harness.get_by_label("name of channel 2").type_text("probe");
    harness.run();
    assert_eq!(harness.state().model.controls.lanes.setup(LaneId::real(1)).name, "probe");
    assert!(!harness.state().model.controls.show.overlay, "a field takes typed characters, not the keys");
    harness.get_by_label("invert").click();
    harness.run();
    harness.get_by_label("AC").click();
    harness.run();
    let setup = harness.state().model.setup(LaneId::real(1));
    assert!(setup.scale == -1.0 && setup.label(LaneId::real(1)) == "2 probe");
    let mean = harness.state().model.seen.picture.lanes[1].mean;
    assert!((setup.value(mean)).abs() < 1e-9, "AC coupling takes the mean off");
}

#[test]
fn a_quantity_is_typed_with_prefixes_and_what_means_nothing_changes_nothing() {
    let mut harness = dark();
    press(&mut harness, "l");
    let mut typed = |name: &str, text: &str| {
        harness.get_by_label(name).focus();
        harness.run();
        harness.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::A);
        harness.run();
        harness.get_by_label(name).type_text(text);
        harness.run();
        harness.key_press(egui::Key::Enter);
        harness.run();
        let controls = &harness.state().model.controls;
        let first = controls.lanes.setup(LaneId::real(0));
        (first.scale, first.offset, controls.show.overlay)
    };
    assert_eq!(typed("units per count", "0.00015"), (0.00015, 0.0, false));
    assert_eq!(typed("units per count", "150u"), (150e-6, 0.0, false));
    for wrong in ["150x", "0", "1.2.3", "o"] {
        assert_eq!(typed("units per count", wrong), (150e-6, 0.0, false), "{wrong}");
    }
    assert_eq!(typed("value of count 0", "-2.5k"), (150e-6, -2500.0, false));
    typed("units per division", "2m");
    assert_eq!(harness.state().model.controls.lanes.vertical(LaneId::real(0)).unwrap().per_division, 2e-3);
}

#[test]
fn a_lane_has_its_scale_and_its_settings_where_the_pointer_looks_for_them() {
    let mut harness = dark();
    harness.get_by_label("settings of CH2").click();
    harness.run();
    harness.get_by_label("name of channel 2");
    assert_eq!(harness.state().model.controls.lanes.selected, LaneId::real(1));
    let wheel = |harness: &mut Harness<'static, ScopePanes>, y: f32| {
        harness.hover_at(egui::pos2(30.0, 500.0));
        harness.event(egui::Event::MouseWheel {
            unit: egui::MouseWheelUnit::Line,
            delta: egui::vec2(0.0, y),
            phase: egui::TouchPhase::Move,
            modifiers: egui::Modifiers::NONE,
            source: egui::MouseWheelSource::Wheel,
        });
        harness.run();
    };
    wheel(&mut harness, -1.0);
    let controls = &harness.state().model.controls;
    let coarse = controls.lanes.vertical(LaneId::real(2)).unwrap();
    assert_eq!(
        (controls.lanes.selected, controls.time.span),
        (LaneId::real(2), Some(2.0)),
        "the third lane, and no other time span"
    );
    wheel(&mut harness, 1.0);
    let fine = harness.state().model.controls.lanes.vertical(LaneId::real(2)).unwrap();
    assert!(fine.per_division < coarse.per_division, "{fine:?} {coarse:?}");

    let at = egui::pos2(30.0, 500.0);
    harness.drag_at(at);
    harness.run();
    harness.hover_at(at + egui::vec2(0.0, 40.0));
    harness.run();
    harness.drop_at(at + egui::vec2(0.0, 40.0));
    harness.run();
    let lower = harness.state().model.controls.lanes.vertical(LaneId::real(2)).unwrap();
    assert!(lower.position < fine.position && !harness.state().model.controls.time.is_held());
    harness.get_by_label("settings of CH3").click();
    harness.run();
    assert!(harness.query_by_label("name of channel 2").is_none(), "a second click closes the panel");
}

#[test]
fn channels_switch_off_and_on_and_the_overlay_opens_and_closes() {
    let mut harness = dark();
    for typed in ["1", "3", "2"] {
        harness.event(egui::Event::Text(typed.into()));
    }
    harness.run();
    assert_eq!(harness.state().lanes_shown(), "");
    harness.event(egui::Event::Text("2".into()));
    harness.run();
    assert_eq!(harness.state().lanes_shown(), "2");

    harness.event(egui::Event::Text("?".into()));
    harness.run();
    harness.get_by_label("this help");
    harness.key_press(egui::Key::Escape);
    harness.run();
    assert!(harness.query_by_label("pause / run").is_none());
    // Escape closes whatever is open, and never quits.
    press(&mut harness, "l ");
    harness.get_by_label("name of channel 1").focus();
    harness.run();
    for _ in 0..3 {
        harness.key_press(egui::Key::Escape);
        harness.run();
    }
    assert!(!harness.state().model.is_done(), "history is not lost to a key that closes things");
    press(&mut harness, "q");
    assert!(harness.state().model.is_done());
}
