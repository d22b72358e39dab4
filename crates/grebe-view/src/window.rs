//! The window face: egui on wgpu, on a GPU or in software.

mod head;
mod lanes;
mod layout;
mod marks;
mod panes;
mod persistence;
mod plot;
mod quads;
mod side;
mod spectrum;
mod style;

use eframe::egui;

use crate::error::ViewError;
use crate::link::ScopeLink;
use crate::options::ViewOptions;
use panes::ScopePanes;
use quads::QuadPainter;

/// Opens the scope's window and returns when the person closes it, or someone the link.
///
/// # Errors
/// [`ViewError::NoDisplay`] where no window can be opened here at all (use [`run_terminal`](crate::run_terminal) then),
/// [`ViewError::Window`] where opening one or drawing in it failed.
pub fn run_window(link: ScopeLink, options: ViewOptions) -> Result<(), ViewError> {
    check_display()?;
    let title = format!("{} \u{2013} grebe", (options.status)().name);
    let native = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title(&title)
            .with_app_id("grebe")
            .with_inner_size([1280.0, 720.0])
            .with_min_inner_size([480.0, 320.0]),
        dithering: false,
        ..eframe::NativeOptions::default()
    };
    let opened = eframe::run_native(
        &title,
        native,
        Box::new(move |creation| {
            let painter = match &creation.wgpu_render_state {
                Some(state) => {
                    quads::prepare_gpu(state);
                    QuadPainter::Instanced
                }
                None => QuadPainter::Mesh,
            };
            let ctx = creation.egui_ctx.clone();
            link.on_picture(move || ctx.request_repaint());
            Ok(Box::new(ScopeWindow { panes: ScopePanes::new(link, options, painter) }))
        }),
    );
    opened.map_err(|error| match error {
        // No display, a display that refuses us, libraries of the window system that are not there.
        eframe::Error::Winit(_) | eframe::Error::WinitEventLoop(_) => {
            ViewError::NoDisplay { why: reason(&error.to_string()) }
        }
        error => ViewError::Window { why: reason(&error.to_string()) },
    })
}

struct ScopeWindow {
    panes: ScopePanes,
}

impl eframe::App for ScopeWindow {
    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        self.panes.show(ui);
        if self.panes.is_done() {
            ui.ctx().send_viewport_cmd(egui::ViewportCommand::Close);
        }
    }

    /// The background of everything: filling it again by a panel costs 50 ms a frame in software.
    fn clear_color(&self, _: &egui::Visuals) -> [f32; 4] {
        lanes::color32(self.panes.theme().plot).to_normalized_gamma_f32()
    }
}

/// Whether a window could be opened, as far as that can be told without trying.
#[cfg(target_os = "linux")]
fn check_display() -> Result<(), ViewError> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("WAYLAND_DISPLAY") || is_set("WAYLAND_SOCKET") {
        return Ok(());
    }
    if !is_set("DISPLAY") {
        let why = "neither WAYLAND_DISPLAY nor DISPLAY is set".into();
        return Err(ViewError::NoDisplay { why });
    }
    // winit panics without it.
    if xkbcommon_dl::x11::xkbcommon_x11_option().is_none() {
        let why = "libxkbcommon-x11 is missing (Debian: libxkbcommon-x11-0)".into();
        return Err(ViewError::NoDisplay { why });
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_display() -> Result<(), ViewError> {
    Ok(())
}

/// What a person can use of an error: winit puts its own source file and line before the reason.
fn reason(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.rsplit(": ").next().filter(|reason| !reason.is_empty()).unwrap_or("no reason given").to_owned()
}

#[cfg(test)]
mod tests;
