//! How it looks: pictures that a person has looked at.

use egui_kittest::SnapshotResults;
use egui_kittest::wgpu::{WgpuTestRenderer, create_render_state, default_wgpu_setup};

use super::*;

/// One design snapshot: its actions, from the scope at rest.
struct Look {
    name: &'static str,
    theme: ThemeChoice,
    keys: &'static str,
}

const LOOKS: [Look; 23] = [
    Look { name: "scope_dark", theme: ThemeChoice::Dark, keys: "" },
    Look { name: "scope_light", theme: ThemeChoice::Light, keys: "" },
    Look { name: "spectrum_dark", theme: ThemeChoice::Dark, keys: "fw" },
    Look { name: "spectrum_light", theme: ThemeChoice::Light, keys: "fw" },
    Look { name: "channels_dark", theme: ThemeChoice::Dark, keys: "lnyyai" },
    Look { name: "channels_light", theme: ThemeChoice::Light, keys: "lo" },
    Look { name: "measure_dark", theme: ThemeChoice::Dark, keys: "cV" },
    Look { name: "measure_light", theme: ThemeChoice::Light, keys: "cV" },
    Look { name: "list_dark", theme: ThemeChoice::Dark, keys: "vQ" },
    Look { name: "trigger_dark", theme: ThemeChoice::Dark, keys: "mbbbg{{P" },
    Look { name: "trigger_light", theme: ThemeChoice::Light, keys: "mbg{" },
    Look { name: "trigger_rate_dark", theme: ThemeChoice::Dark, keys: "mrL::nvC" },
    Look { name: "math_light", theme: ThemeChoice::Light, keys: "lEEv" },
    Look { name: "held_dark", theme: ThemeChoice::Dark, keys: "m[-c" },
    Look { name: "held_light", theme: ThemeChoice::Light, keys: "m[-c" },
    Look { name: "overlay_dark", theme: ThemeChoice::Dark, keys: "oc" },
    Look { name: "single_light", theme: ThemeChoice::Light, keys: "13si" },
    Look { name: "waterfall_light", theme: ThemeChoice::Light, keys: "nwo" },
    Look { name: "dots_dark", theme: ThemeChoice::Dark, keys: "++++++I[" },
    Look { name: "harmonics_light", theme: ThemeChoice::Light, keys: "f#nn" },
    Look { name: "off_dark", theme: ThemeChoice::Dark, keys: "123" },
    Look { name: "keys_dark", theme: ThemeChoice::Dark, keys: "?" },
    Look { name: "keys_light", theme: ThemeChoice::Light, keys: "?" },
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
            .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes(look.theme));
        harness.run();
        press(&mut harness, look.keys);
        harness.snapshot(look.name);
        results.extend_harness(&mut harness);
    }
}

/// The windows of small, large and fine screens: size in pixels, and pixels per point.
const SIZES: [(&str, [f32; 2], f32, ThemeChoice); 5] = [
    ("size_390_dark", [390.0, 844.0], 1.0, ThemeChoice::Dark),
    ("size_844_light", [844.0, 390.0], 1.0, ThemeChoice::Light),
    ("size_900_dark", [900.0, 700.0], 1.0, ThemeChoice::Dark),
    ("size_1920_light", [1920.0, 1080.0], 1.0, ThemeChoice::Light),
    ("size_1600_fine_dark", [1600.0, 1000.0], 2.0, ThemeChoice::Dark),
];

#[test]
fn every_size_is_as_it_was_designed() {
    let mut results = SnapshotResults::new();
    for (name, size, ratio, theme) in SIZES {
        let Some(renderer) = renderer() else {
            eprintln!("skipped: no software Vulkan adapter here (Debian: mesa-vulkan-drivers)");
            return;
        };
        let mut harness = Harness::builder()
            .with_size(egui::Vec2::from(size) / ratio)
            .with_pixels_per_point(ratio)
            .renderer(renderer)
            .build_ui_state(|ui, panes: &mut ScopePanes| panes.show(ui), panes(theme));
        harness.run();
        press(&mut harness, "fwv");
        harness.snapshot(name);
        results.extend_harness(&mut harness);
    }
}

/// `None` without software Vulkan.
pub(super) fn renderer() -> Option<WgpuTestRenderer> {
    if !has_software_vulkan() {
        return None;
    }
    let state = create_render_state(default_wgpu_setup(), egui_wgpu::RendererOptions::PREDICTABLE);
    quads::prepare_gpu(&state);
    Some(WgpuTestRenderer::from_render_state(state))
}
