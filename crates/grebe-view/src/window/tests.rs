//! The window's content, driven without a window.

use egui_kittest::kittest::Queryable;
use egui_kittest::wgpu::{WgpuTestRenderer, create_render_state, default_wgpu_setup};
use egui_kittest::{Harness, SnapshotResults};

use super::*;
use crate::options::ThemeChoice;
use crate::testing::sine_batch;
use crate::{ScopeFeed, SourceStatus, ViewOptions};

/// A scope over an ended stream of three channels with a gap: nothing on it depends on the time of day.
fn panes(theme: ThemeChoice, painter: QuadPainter) -> ScopePanes {
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
    options.theme = Some(theme);
    options.span = Some(2.0);
    ScopePanes::new(link, options, painter)
}

/// A harness without a renderer: for what a person reads and presses.
fn harness(panes: ScopePanes) -> Harness<'static, ScopePanes> {
    let mut harness = Harness::builder()
        .with_size(egui::vec2(1000.0, 600.0))
        .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes);
    harness.run();
    harness
}

fn dark() -> Harness<'static, ScopePanes> {
    harness(panes(ThemeChoice::Dark, QuadPainter::Mesh))
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

#[test]
fn buttons_and_keys_do_the_same() {
    let mut harness = dark();
    harness.get_by_label("+").click();
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
fn channels_switch_off_and_on_and_the_overlay_opens_and_closes() {
    let mut harness = dark();
    for typed in ["1", "3", "2"] {
        harness.event(egui::Event::Text(typed.into()));
    }
    harness.run();
    assert!(harness.state().channels_shown().is_empty());
    harness.event(egui::Event::Text("2".into()));
    harness.run();
    assert_eq!(harness.state().channels_shown(), [1]);

    harness.event(egui::Event::Text("?".into()));
    harness.run();
    harness.get_by_label("this help");
    harness.key_press(egui::Key::Escape);
    harness.run();
    assert!(harness.query_by_label("pause / run").is_none());
    assert!(!harness.state().is_done(), "escape leaves the overlay first");
    harness.key_press(egui::Key::Escape);
    harness.run();
    assert!(harness.state().is_done());
}

#[test]
fn a_trigger_is_set_and_cursors_are_read_without_seeing_them() {
    let mut harness = dark();
    harness.get_by_label("auto").click();
    harness.run();
    harness.get_by_label("TRIGGERED");
    harness.get_by_label("CH1 0").click();
    harness.run();
    harness.get_by_label("CH2 0");
    harness.get_by_label("rising").click();
    harness.run();
    harness.get_by_label("falling");
    harness.key_press(egui::Key::ArrowUp);
    harness.run();
    harness.get_by_label("CH2 300");

    harness.event(egui::Event::Text("c".into()));
    harness.run();
    harness.get_by_label("1.667 Hz");
    harness.get_by_label("measure").click();
    harness.run();
    harness.get_by_label("frequency");
    harness.get_by_label("2 Hz");
    harness.get_by_label("roll").click();
    harness.run();
    assert!(harness.query_by_label("TRIGGERED").is_none());
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
    // `run` ends only when nothing asks for another frame; it panics where that never happens.
    let frames = harness.run();
    assert!(frames <= 2, "{frames}");
}

/// One designed look: how it is reached from the scope at rest.
struct Look {
    name: &'static str,
    theme: ThemeChoice,
    painter: QuadPainter,
    keys: &'static str,
}

const LOOKS: [Look; 10] = [
    Look { name: "scope_dark", theme: ThemeChoice::Dark, painter: QuadPainter::Instanced, keys: "" },
    Look { name: "scope_light", theme: ThemeChoice::Light, painter: QuadPainter::Mesh, keys: "" },
    Look { name: "spectrum_dark", theme: ThemeChoice::Dark, painter: QuadPainter::Instanced, keys: "fw" },
    Look { name: "spectrum_light", theme: ThemeChoice::Light, painter: QuadPainter::Instanced, keys: "fw" },
    Look { name: "channels_dark", theme: ThemeChoice::Dark, painter: QuadPainter::Instanced, keys: "lnyyai" },
    Look { name: "channels_light", theme: ThemeChoice::Light, painter: QuadPainter::Mesh, keys: "lo" },
    Look { name: "measure_dark", theme: ThemeChoice::Dark, painter: QuadPainter::Instanced, keys: "cV" },
    Look { name: "measure_light", theme: ThemeChoice::Light, painter: QuadPainter::Mesh, keys: "cV" },
    Look {
        name: "trigger_dark",
        theme: ThemeChoice::Dark,
        painter: QuadPainter::Instanced,
        keys: "mbbbg{{P",
    },
    Look { name: "keys_light", theme: ThemeChoice::Light, painter: QuadPainter::Mesh, keys: "?" },
];

#[test]
fn every_look_is_as_it_was_designed() {
    let mut results = SnapshotResults::new();
    for look in LOOKS {
        let Some(renderer) = renderer() else {
            eprintln!("skipped: no software Vulkan adapter here (Debian: mesa-vulkan-drivers)");
            return;
        };
        let mut harness = Harness::builder()
            .with_size(egui::vec2(1180.0, 660.0))
            .renderer(renderer)
            .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes(look.theme, look.painter));
        harness.run();
        press(&mut harness, look.keys);
        harness.snapshot(look.name);
        results.extend_harness(&mut harness);
    }
}

/// Types keys, one a frame.
fn press(harness: &mut Harness<'static, ScopePanes>, keys: &str) {
    for key in keys.chars() {
        harness.event(egui::Event::Text(key.to_string()));
        harness.run();
    }
}

/// Vulkan in software, so that every machine draws the same pixels; `None` where there is none.
fn renderer() -> Option<WgpuTestRenderer> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::VULKAN));
    if !adapters.iter().any(|adapter| adapter.get_info().device_type == wgpu::DeviceType::Cpu) {
        return None;
    }
    let state = create_render_state(default_wgpu_setup(), egui_wgpu::RendererOptions::PREDICTABLE);
    quads::prepare_gpu(&state);
    Some(WgpuTestRenderer::from_render_state(state))
}
