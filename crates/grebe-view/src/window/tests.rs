//! The window's content, driven without a window.

mod annotating;
mod channels;
mod choosing;
mod finding;
mod framing;
mod looks;
mod saving;
mod triggering;

use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::*;
use crate::data::feed::ScopeFeed;
use crate::data::lane::LaneId;
use crate::data::status::SourceStatus;
use crate::model::action::Action;
use crate::model::channel::ThemeChoice;
use crate::model::generator::{Generator, GeneratorRemote, GeneratorWish};
use crate::model::options::ViewOptions;
use crate::testing::sine_batch;

/// A scope over an ended stream of three channels with a gap, independent of the time of day.
fn panes(theme: ThemeChoice) -> ScopePanes {
    let (mut feed, link) = ScopeFeed::new(1 << 20);
    for block in (0..40).filter(|block| !(20..24).contains(block)) {
        feed.ingest(&sine_batch(block * 50, 3, 50, 1e3)).unwrap();
    }
    feed.finish();
    let mut options = ViewOptions::new(|| SourceStatus {
        name: "udp://:5000".into(),
        kernel_datagrams: Some(0),
        ..SourceStatus::default()
    });
    options.initial.theme = Some(theme);
    options.initial.span = Some(2.0);
    let mut panes = ScopePanes::new(0, link, options);
    panes.model.seen.stop_counting();
    panes
}

/// A harness without a renderer, for texts and clicks.
fn harness(panes: ScopePanes) -> Harness<'static, ScopePanes> {
    let mut harness = Harness::builder()
        .with_size(egui::vec2(1000.0, 600.0))
        .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes);
    harness.run();
    harness
}

fn dark() -> Harness<'static, ScopePanes> {
    harness(panes(ThemeChoice::Dark))
}

#[test]
fn what_the_scope_knows_can_be_read_without_seeing_it() {
    let harness = dark();
    harness.get_by_label("ENDED");
    harness.get_by_label("udp://:5000");
    harness.get_by_label("3 \u{d7} 1 kS/s");
    harness.get_by_label("200 ms/div");
    harness.get_by_label("4 frames");
}

/// Checks sizes through the requests of a frame: the traces ask for one column per pixel.
#[test]
fn every_size_has_traces_and_room_for_the_spectrum() {
    let sizes = [
        ([1600.0, 1000.0], 2.0),
        ([844.0, 390.0], 1.0),
        ([900.0, 700.0], 1.0),
        ([480.0, 320.0], 1.0),
        ([320.0, 240.0], 1.0),
        ([639.0, 700.0], 1.0),
    ];
    for (size, ratio) in sizes {
        let mut harness = Harness::builder()
            .with_size(egui::vec2(size[0], size[1]) / ratio)
            .with_pixels_per_point(ratio)
            .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes(ThemeChoice::Dark));
        harness.run();
        let traces = harness.state().pane_heights[0];
        assert!(traces >= 100.0, "{size:?}: {traces}");
        press(&mut harness, "f");
        let [traces, spectrum] = harness.state().pane_heights;
        let least = if size[1] >= 700.0 { 100.0 } else { 20.0 };
        assert!(traces >= least && spectrum >= least, "{size:?}: {traces} {spectrum}");
        // With the waterfall and the tables, too.
        press(&mut harness, "wv");
        let [traces, spectrum] = harness.state().pane_heights;
        assert!(size[0] < 800.0 || traces >= 20.0 && spectrum >= 20.0, "{size:?}: {traces} {spectrum}");
    }
}

#[test]
fn a_list_is_as_wide_as_its_words_after_a_narrow_one() {
    let mut harness = dark();
    press(&mut harness, "b");
    for _ in 0..2 {
        harness.key_press(egui::Key::Enter);
        harness.run();
    }
    let line = harness.get_by_label_contains("trigger channel").rect();
    assert!(line.width() > 150.0 && line.height() < 30.0, "{line:?}");
}

#[test]
fn the_controls_of_a_pane_lie_beside_or_below_its_words() {
    for width in [390.0, 640.0, 900.0] {
        let mut harness = Harness::builder()
            .with_size(egui::vec2(width, 844.0))
            .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes(ThemeChoice::Dark));
        harness.run();
        press(&mut harness, "f");
        let words = ["512 samples, Hann, 1.95 Hz a line", "8192", "Hann", "no average", "hold", "markers"];
        let rects = words.map(|word| harness.get_by_label(word).rect());
        for (place, rect) in rects.iter().enumerate() {
            assert!(rect.left() >= 0.0 && rect.right() <= width, "{width}: {} is cut: {rect}", words[place]);
            for (other, behind) in rects.iter().enumerate().take(place) {
                let shared = rect.intersect(*behind);
                let is_apart = shared.width() <= 1.0 || shared.height() <= 1.0;
                assert!(is_apart, "{width}: {} lies over {}", words[place], words[other]);
            }
        }
    }
}

#[test]
fn the_help_shows_all_keys_and_scrolls_in_a_low_window() {
    for (size, is_whole) in [([1180.0, 660.0], true), ([480.0, 320.0], false)] {
        let mut harness = Harness::builder()
            .with_size(size)
            .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes(ThemeChoice::Dark));
        harness.run();
        press(&mut harness, "?");
        // The window of the keys leaves a margin.
        let is_inside = |harness: &Harness<'static, ScopePanes>, words: &str| {
            let line = harness.get_by_label(words).rect();
            line.bottom() < size[1] - 20.0 && line.top() > 20.0
        };
        let last = "to the newest samples";
        assert!(is_inside(&harness, "pause / run"), "{size:?}");
        assert_eq!(is_inside(&harness, last), is_whole, "{size:?}");
        harness.hover_at(egui::pos2(size[0] / 2.0, size[1] / 2.0));
        harness.event(egui::Event::MouseWheel {
            unit: egui::MouseWheelUnit::Point,
            delta: egui::vec2(0.0, -5_000.0),
            phase: egui::TouchPhase::Move,
            modifiers: egui::Modifiers::NONE,
            source: egui::MouseWheelSource::Wheel,
        });
        // It scrolls smoothly.
        harness.run_steps(30);
        assert!(is_inside(&harness, last), "{size:?}: {}", harness.get_by_label(last).rect());
    }
}

#[test]
fn buttons_and_keys_do_the_same() {
    let mut harness = dark();
    harness.get_by_label("\u{2212}").click();
    harness.run();
    harness.get_by_label("500 ms/div");
    harness.key_press(egui::Key::ArrowLeft);
    harness.run();
    harness.get_by_label("200 ms/div");
    harness.key_press(egui::Key::Space);
    harness.run();
    harness.get_by_label("PAUSED");
    harness.get_by_label("run").click();
    harness.run();
    harness.get_by_label("ENDED");
}

#[test]
fn value_cursors_stand_in_the_unit_of_the_selected_channel() {
    let mut panes = panes(ThemeChoice::Dark);
    let second = panes.model.controls.lanes.channel_mut(1);
    (second.unit, second.scale) = ("V".into(), 1e-3);
    let mut harness = harness(panes);
    press(&mut harness, "nC");
    harness.get_by_label("CH2 level");
    let lane = harness.state().model.controls.lanes.range(LaneId::real(1)).unwrap();
    let [a, b] = harness.state().model.controls.cursors.values.unwrap();
    let near = |a: f64, b: f64| (a - b).abs() < lane.height() / 1000.0;
    assert!(near(a, lane.at(0.3)) && near(b, lane.at(0.7)), "{a} {b} {lane:?}");
    press(&mut harness, "JX");
    press(&mut harness, "KK");
    let [a, b] = harness.state().model.controls.cursors.values.unwrap();
    assert!(near(a, lane.at(0.29)) && near(b, lane.at(0.72)), "{a} {b}");
    drag(&mut harness, "value cursor A", egui::vec2(0.0, -30.0));
    let [a, _] = harness.state().model.controls.cursors.values.unwrap();
    assert!(a > lane.at(0.35), "{a}");
    let difference = grebe_scope::Engineering::new(b - a, "V").digits(9).to_string();
    harness.get_by_label(&difference);
    // The lines stay in place when another channel gives them another unit.
    press(&mut harness, "n");
    let moved = harness.state().model.controls.cursors.values.unwrap();
    let other = harness.state().model.controls.lanes.range(LaneId::real(2)).unwrap();
    assert!((other.part_of(moved[1]) - 0.72).abs() < 1e-6);
    harness.get_by_label("CH3 level");
    harness.get_by_label("cursors").click();
    harness.run();
    harness.get_by_label("values, of the selected channel  C").click();
    harness.run();
    assert!(harness.state().model.controls.cursors.values.is_none());
}

#[test]
fn cursors_read_the_samples_themselves_with_all_their_digits() {
    let mut panes = panes(ThemeChoice::Dark);
    panes.model.controls.lanes.channel_mut(0).scale = 1e-4;
    let mut harness = harness(panes);
    press(&mut harness, "c");
    // The picture ends at sample 2000, two seconds after its start: these are samples 637 and 1637, between columns.
    harness.state_mut().model.controls.cursors.times = Some([-1.363, -0.363]);
    harness.run();
    let sample = |index: f64| (index * std::f64::consts::TAU / 500.0).sin() * 10_000.0;
    let [a, b] = [637.0, 1637.0].map(|index| sample(index) as i16);
    let rows = harness.state().model.cursor_rows();
    let exact = |counts: f64| grebe_scope::Engineering::new(counts * 1e-4, "").digits(9).to_string();
    assert_eq!(rows[2].cells[1..], [exact(a.into()), exact(b.into()), exact(f64::from(b) - f64::from(a))]);
    assert!(rows[0].cells[1] == "-1.363 s" && rows[2].cells[1].len() >= 6, "{rows:?}");
}

/// A scope over an ended stream of eight channels whose source has a long name.
fn eight(number: usize) -> ScopePanes {
    let (mut feed, link) = ScopeFeed::new(1 << 20);
    feed.ingest(&sine_batch(0, 8, 500, 1e3)).unwrap();
    feed.finish();
    let name = format!("udp://a-host-with-a-long-name.in-the-basement.example.org:500{number}");
    let options = ViewOptions::new(move || SourceStatus { name: name.clone(), ..SourceStatus::default() });
    ScopePanes::new(number, link, options)
}

#[test]
fn nothing_lies_over_anything_else_in_a_narrow_window() {
    let words = "ENDED 8\u{a0}\u{d7}\u{a0}1\u{a0}kS/s pause measure waterfall spectrum channels cursors save light ? roll auto normal single";
    let words: Vec<String> = words.split(' ').map(|word| word.replace('\u{a0}', " ")).collect();
    for width in [480.0, 640.0, 800.0, 950.0, 1280.0] {
        let mut harness = Harness::builder()
            .with_size(egui::vec2(width, 480.0))
            .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), eight(0));
        harness.run();
        // A message moves nothing.
        let lanes = harness.get_by_label("settings of CH1").rect();
        press(&mut harness, "M");
        assert_eq!(harness.get_by_label("settings of CH1").rect(), lanes, "{width}");
        let rects: Vec<egui::Rect> = words.iter().map(|word| harness.get_by_label(word).rect()).collect();
        for (place, rect) in rects.iter().enumerate() {
            assert!(rect.left() >= 0.0 && rect.right() <= width, "{width}: {} is cut: {rect}", words[place]);
            for (other, behind) in rects.iter().enumerate().take(place) {
                let shared = rect.intersect(*behind);
                let is_apart = shared.width() <= 1.0 || shared.height() <= 1.0;
                assert!(is_apart, "{width}: {} lies over {}", words[place], words[other]);
            }
        }
        press(&mut harness, "?");
        harness.get_by_label("this help");
    }
}

#[test]
fn lanes_stay_high_enough_to_be_read_and_scroll() {
    let mut harness = Harness::builder()
        .with_size(egui::vec2(900.0, 330.0))
        .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), eight(0));
    harness.run();
    let top = |harness: &Harness<'static, ScopePanes>, channel: usize| {
        harness.get_by_label(&format!("settings of CH{channel}")).rect().top()
    };
    let apart = top(&harness, 2) - top(&harness, 1);
    assert!((44.0..60.0).contains(&apart), "{apart}");
    let before = top(&harness, 1);
    drag(&mut harness, "scroll the lanes", egui::vec2(0.0, 40.0));
    assert!(top(&harness, 1) < before - 40.0);
    harness.state_mut().model.act(Action::Select(LaneId::real(7)));
    harness.run();
    let last = top(&harness, 8);
    assert!((100.0..330.0).contains(&last), "a channel that is selected comes into view: {last}");
}

#[test]
fn a_waterfall_is_no_wider_than_a_texture_can_be() {
    let mut harness = dark();
    harness.set_size(egui::vec2(3000.0, 600.0));
    harness.input_mut().max_texture_side = Some(1024);
    press(&mut harness, "w");
    harness.run();
    let (key, texture) = harness.state().waterfall.as_ref().unwrap();
    assert_eq!((key.size.0, texture.size()[0]), (1024, 1024), "the pane is wider");
}

#[test]
fn the_spectrum_names_the_tone_and_zooms() {
    let mut harness = dark();
    harness.get_by_label("spectrum").click();
    harness.run();
    let rows = harness.state().model.peak_rows(1);
    // The tones of the other channels are too close to 0 Hz to separate from an offset.
    assert_eq!(rows[0].cells[0], "CH3");
    let hertz: f64 = rows[0].cells[1].split(' ').next().unwrap().parse().unwrap();
    assert!((hertz - 6.0).abs() < 0.1, "{rows:?}");
    harness.get_by_label("Hann").click();
    harness.run();
    harness.get_by_label("flat top").click();
    harness.run();
    assert_eq!(harness.state().model.controls.spectrum.window, grebe_scope::Window::FlatTop);
    harness.state_mut().model.zoom_spectrum(0.1, 0.0);
    harness.run();
    let (start, end, unit, _) = harness.state().model.spectrum_axis(5);
    assert_eq!((start, end, unit), (0.0, 50.0, "Hz"));
}

#[test]
fn a_generator_is_told_what_a_person_wants() {
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut panes = panes(ThemeChoice::Dark);
    let tell = told.clone();
    panes.model.generator = Generator::new(Some(GeneratorRemote {
        waves: vec!["sine".into(), "noise".into()],
        tell: Box::new(move |wish| match wish {
            GeneratorWish::Rate(rate_hz) if rate_hz > 2e3 => Err("too fast for me".into()),
            wish => {
                tell.lock().unwrap().push(wish);
                Ok(())
            }
        }),
    }));
    let mut harness = harness(panes);
    harness.get_by_role_and_label(egui::accesskit::Role::Button, "generator").click();
    harness.run();
    harness.get_by_label("noise").click();
    harness.run();
    harness.get_by_label("faster").click();
    harness.run();
    press(&mut harness, "ZF");
    harness.get_by_label("too fast for me");
    press(&mut harness, "G?");
    harness.get_by_label("next waveform");
    let wishes = [
        GeneratorWish::Wave("noise".into()),
        GeneratorWish::Rate(2e3),
        GeneratorWish::Wave("sine".into()),
        GeneratorWish::TogglePause,
    ];
    assert_eq!(*told.lock().unwrap(), wishes);
}

#[test]
fn a_stream_that_changes_midway_goes_on_as_another_picture_and_says_so() {
    let (mut feed, link) = ScopeFeed::new(1 << 20);
    let mut options = ViewOptions::new(SourceStatus::default);
    options.initial.span = Some(0.2);
    (0..8).for_each(|block| feed.ingest(&sine_batch(block * 50, 2, 50, 1e3)).unwrap());
    let mut harness = harness(ScopePanes::new(0, link, options));
    feed.idle();
    harness.run();
    harness.get_by_label("2 \u{d7} 1 kS/s");
    std::thread::sleep(Duration::from_millis(20));
    feed.ingest(&sine_batch(400, 3, 50, 2e3)).unwrap();
    feed.finish();
    harness.run();
    harness.get_by_label("3 \u{d7} 2 kS/s");
    harness.get_by_label("another stream began: 3 \u{d7} 2 kS/s");
    assert_eq!(harness.state().lanes_shown(), "1 2 3");
}

#[test]
fn two_scopes_stand_one_above_the_other_and_one_has_the_keys() {
    let make = |number| {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        feed.ingest(&sine_batch(0, 1, 500, 1e3)).unwrap();
        feed.finish();
        let name = format!("source {number}");
        let options =
            ViewOptions::new(move || SourceStatus { name: name.clone(), ..SourceStatus::default() });
        ScopePanes::new(number, link, options)
    };
    let mut harness = Harness::builder().with_size(egui::vec2(1600.0, 500.0)).build_ui_state(
        |ui, scopes: &mut Scopes| scopes.show(ui),
        Scopes { all: vec![make(0), make(1)], active: 0, common: CommonTime::default() },
    );
    harness.run();
    harness.get_by_label("source 0");
    harness.get_by_label("source 1");
    harness.hover_at(egui::pos2(1200.0, 300.0));
    harness.run();
    harness.event(egui::Event::Text("f".into()));
    harness.run();
    let Scopes { all, active, .. } = harness.state();
    assert_eq!(*active, 1);
    let shown: Vec<bool> = all.iter().map(|scope| scope.model.controls.show.spectrum).collect();
    assert_eq!(shown, [false, true]);
}

#[test]
fn a_refusal_is_told_without_the_place_in_the_library() {
    let told =
        reason("winit EventLoopError: os error at /home/winit/src/mod.rs:788: Failed to open X server");
    assert_eq!(told, "Failed to open X server");
    assert_eq!(reason(""), "no reason given");
}

#[test]
fn a_resting_picture_asks_for_no_repaint() {
    let mut harness = dark();
    // `run` ends when no frame is requested; it panics if that never happens.
    let frames = harness.run();
    assert!(frames <= 2, "{frames}");
}

/// Drags the element with this name.
fn drag(harness: &mut Harness<'static, ScopePanes>, name: &str, by: egui::Vec2) {
    let at = harness.get_by_label(name).rect().center();
    harness.drag_at(at);
    harness.run();
    harness.hover_at(at + by);
    harness.run();
    harness.drop_at(at + by);
    harness.run();
}

/// All words of the window of a scope after these keys, those on the axes too, and the columns of its traces.
pub(crate) fn labels(link: ScopeLink, options: ViewOptions, keys: &str) -> (Vec<String>, usize) {
    let mut harness = Harness::builder()
        .with_size(egui::vec2(2400.0, 1200.0))
        .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), ScopePanes::new(0, link, options));
    let mut keys = keys.chars();
    let columns = loop {
        harness.run();
        let model = &harness.state().model;
        let picture = &model.seen.picture;
        let answered = picture.answers.as_ref();
        if picture.is_estimated || answered.is_none_or(|it| *it != model.viewport(it.columns)) {
            // Some keys do what the picture shows.
            std::thread::sleep(std::time::Duration::from_millis(2));
            continue;
        }
        let columns = answered.map_or(0, |it| it.columns);
        match keys.next() {
            Some(key) => press(&mut harness, key.encode_utf8(&mut [0; 4])),
            None => break columns,
        }
    };
    let nodes = harness.root().children_recursive();
    let words = |node: egui_kittest::Node<'_>| {
        let node = node.accesskit_node();
        [node.label(), node.value()]
    };
    let mut words: Vec<String> = nodes.flat_map(words).flatten().collect();
    harness.output().shapes.iter().for_each(|clipped| painted(&clipped.shape, &mut words));
    (words, columns)
}

fn painted(shape: &egui::Shape, words: &mut Vec<String>) {
    match shape {
        egui::Shape::Text(text) => words.push(text.galley.text().to_owned()),
        egui::Shape::Vec(shapes) => shapes.iter().for_each(|shape| painted(shape, words)),
        _ => {}
    }
}

/// Types keys, one per frame.
fn press(harness: &mut Harness<'static, ScopePanes>, keys: &str) {
    for key in keys.chars() {
        harness.event(egui::Event::Text(key.to_string()));
        harness.run();
    }
}

/// Whether Vulkan draws in software here, so that every machine draws the same pixels.
pub(super) fn has_software_vulkan() -> bool {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::VULKAN));
    adapters.iter().any(|adapter| adapter.get_info().device_type == wgpu::DeviceType::Cpu)
}
