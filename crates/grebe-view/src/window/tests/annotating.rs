//! A stretch and a box are drawn, named, listed and changed.

use egui_kittest::SnapshotResults;

use super::looks::renderer;
use super::*;

fn drag(
    harness: &mut Harness<'static, ScopePanes>,
    from: egui::Pos2,
    to: egui::Pos2,
    modifiers: egui::Modifiers,
) {
    let button = |pos, pressed| egui::Event::PointerButton {
        pos,
        button: egui::PointerButton::Primary,
        pressed,
        modifiers,
    };
    harness.event_modifiers(egui::Event::PointerMoved(from), modifiers);
    harness.event_modifiers(button(from, true), modifiers);
    harness.run();
    for part in [0.5, 1.0] {
        harness.event_modifiers(egui::Event::PointerMoved(from + (to - from) * part), modifiers);
        harness.run();
    }
    harness.event_modifiers(button(to, false), modifiers);
    harness.run();
}

fn name(harness: &mut Harness<'static, ScopePanes>, text: &str) {
    harness.get_by_label("answer");
    press(harness, text);
    harness.key_press(egui::Key::Enter);
    harness.run();
    harness.run();
}

fn waterfall_corner(harness: &Harness<'static, ScopePanes>) -> egui::Pos2 {
    // The button at the top has the same name as the pane.
    let named = harness.get_all_by_label("waterfall").map(|node| node.rect());
    let name_of_pane = named.max_by(|a, b| a.top().total_cmp(&b.top())).unwrap();
    egui::pos2(100.0, name_of_pane.bottom() + 6.0)
}

#[test]
fn a_box_on_the_waterfall_has_its_numbers_and_can_be_annotated_and_removed() {
    let mut harness = dark();
    press(&mut harness, "w");
    let corner = waterfall_corner(&harness);
    let (from, to) = (corner + egui::vec2(200.0, 12.0), corner + egui::vec2(420.0, 40.0));
    drag(&mut harness, from, to, egui::Modifiers::SHIFT);
    harness.run();
    let boxed = harness.state().model.controls.boxed.expect("it was drawn");
    let (_, rows) = harness.state().model.box_rows();
    for cell in &rows[0].cells {
        assert!(harness.query_all_by_label(cell).next().is_some(), "{cell} in {:?}", rows[0].cells);
    }
    harness.get_by_label("annotate").click();
    harness.run();
    name(&mut harness, "mine");
    let chosen = harness.state().model.open.annotations.chosen.clone().unwrap();
    assert_eq!([chosen.lower_edge_hz, chosen.upper_edge_hz], boxed.frequencies.map(Some));
    assert_eq!([chosen.first_sample_index, chosen.end_index()], boxed.samples);
    harness.key_press(egui::Key::Escape);
    harness.run();
    assert_eq!(harness.state().model.controls.boxed, None);
}

/// A stretch on the traces, a box on the waterfall, and the table with the box chosen.
fn annotated(harness: &mut Harness<'static, ScopePanes>) {
    press(harness, "w");
    let lane = harness.get_by_label("settings of CH2").rect();
    let from = egui::pos2(300.0, lane.top() + 20.0);
    drag(harness, from, from + egui::vec2(200.0, 0.0), egui::Modifiers::COMMAND);
    name(harness, "burst; of two #ff8800");
    let corner = waterfall_corner(harness);
    drag(
        harness,
        corner + egui::vec2(200.0, 12.0),
        corner + egui::vec2(420.0, 40.0),
        egui::Modifiers::COMMAND,
    );
    name(harness, "box");
    harness.key_press(egui::Key::F4);
    harness.run();
    harness.run();
}

#[test]
fn a_stretch_and_a_box_are_drawn_named_listed_and_changed() {
    let mut harness = dark();
    annotated(&mut harness);
    let marks = harness.state().model.annotation_marks();
    let burst = marks.iter().find(|mark| mark.words == "burst").expect("it was drawn");
    assert_eq!(burst.color, Some([255, 136, 0]));
    let chosen = harness.state().model.open.annotations.chosen.clone().unwrap();
    assert!(chosen.lower_edge_hz.unwrap() > 50.0 && chosen.upper_edge_hz.unwrap() < 450.0, "{chosen:?}");
    harness.get_by_label("kept in this session; R saves them");
    // A name is taken when it is finished, not letter by letter.
    harness.get_by_label("name of the annotation").focus();
    harness.run();
    press(&mut harness, "es");
    assert_eq!(harness.state().model.open.annotations.chosen.as_ref().unwrap().label.as_deref(), Some("box"));
    harness.key_press(egui::Key::Enter);
    harness.run();
    harness.run();
    assert_eq!(
        harness.state().model.open.annotations.chosen.as_ref().unwrap().label.as_deref(),
        Some("boxes")
    );
    // While a name is typed, its keys are letters.
    harness.key_press(egui::Key::Delete);
    harness.run();
    harness.run();
    assert_eq!(harness.state().model.annotation_list().unwrap().all, 1);
    for count in [2, 2, 1, 0] {
        harness.get_by_label("undo").click();
        harness.run();
        harness.run();
        assert_eq!(harness.state().model.annotation_list().unwrap().all, count);
    }
}

#[test]
fn annotations_look_as_they_were_designed() {
    let mut results = SnapshotResults::new();
    for theme in [ThemeChoice::Dark, ThemeChoice::Light] {
        let Some(renderer) = renderer() else {
            eprintln!("skipped: no software Vulkan adapter here (Debian: mesa-vulkan-drivers)");
            return;
        };
        let mut harness = Harness::builder()
            .with_size(egui::vec2(1180.0, 760.0))
            .renderer(renderer)
            .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes(theme));
        harness.run();
        annotated(&mut harness);
        let dark = theme == ThemeChoice::Dark;
        harness.snapshot(if dark { "annotations_dark" } else { "annotations_light" });
        results.extend_harness(&mut harness);
    }
}
