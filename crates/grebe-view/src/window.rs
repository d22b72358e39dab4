//! The window: egui on wgpu, on a GPU or in software.

mod annotations;
mod bench;
mod choices;
mod device;
mod found;
mod head;
mod keyboard;
mod labels;
mod lanes;
mod layout;
mod marks;
mod overview;
mod panes;
mod plot;
mod quads;
mod side;
mod spectrum;
mod style;
mod tables;
mod tiles;
mod traces;
mod trigger;
mod widgets;
mod xy;
mod zoom_box;

use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use eframe::egui;

use crate::data::lane::LaneMask;
use crate::data::link::ScopeLink;
use crate::error::Error;
use crate::model::common_time::CommonTime;
use crate::model::options::ViewOptions;
use crate::model::view_model::ViewModel;
use bench::WindowTimer;
pub use bench::{FrameTimes, WindowBench};
use device::DeviceLoss;
use panes::ScopePanes;

/// Opens one window with a scope for each source, one above the other, on one time axis if possible. Returns when the
/// person closes it, or a link is closed. Keys go to the scope under the pointer.
///
/// # Errors
/// - [`Error::NoDisplay`] if no window can be opened here; use `run_terminals`.
/// - [`Error::DeviceLost`] if the graphics device disappeared; the terminal still works.
/// - [`Error::Window`] if the window cannot be opened, or drawing fails.
pub fn run_windows(scopes: Vec<(ScopeLink, ViewOptions)>) -> Result<(), Error> {
    open(scopes, [1280.0, 720.0], None)
}

/// Opens the scope's window, measures its frame rate for twice `duration`, and closes it. `size` is its inner size in
/// points.
///
/// # Errors
/// As for [`run_windows`]; [`Error::Window`] if it was closed too early.
pub fn bench_window(
    link: ScopeLink,
    options: ViewOptions,
    size: [f32; 2],
    duration: Duration,
) -> Result<WindowBench, Error> {
    let slot = bench::Slot::default();
    open(vec![(link, options)], size, Some(WindowTimer::new(slot.clone(), duration)))?;
    let result = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    result.ok_or_else(|| Error::Window { why: "it was closed before it was measured".into() })
}

fn open(
    scopes: Vec<(ScopeLink, ViewOptions)>,
    size: [f32; 2],
    bench: Option<WindowTimer>,
) -> Result<(), Error> {
    check_display()?;
    lower_priority();
    let names: Vec<String> = scopes.iter().map(|(_, options)| (options.status)().name).collect();
    let title = format!("{} \u{2013} grebe", names.join(", "));
    let mut native = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title(&title)
            .with_app_id("grebe")
            .with_inner_size(size)
            .with_min_inner_size([320.0, 240.0]),
        dithering: false,
        ..eframe::NativeOptions::default()
    };
    let (loss, lost) = (DeviceLoss::default(), Arc::new(OnceLock::new()));
    let status = loss.clone();
    native.wgpu_options.on_surface_status = Arc::new(move |it| status.surface_status(it));
    let (watched, told) = (loss.clone(), lost.clone());
    let create = move |creation: &eframe::CreationContext<'_>| -> Created {
        if let Some(state) = &creation.wgpu_render_state {
            quads::prepare_gpu(state);
            let ctx = creation.egui_ctx.clone();
            watched.watch(&state.device, move || ctx.request_repaint());
        }
        creation.egui_ctx.set_fonts(style::fonts());
        let scopes = scopes.into_iter().enumerate().map(|(number, (link, options))| {
            let ctx = creation.egui_ctx.clone();
            link.on_picture(move || ctx.request_repaint());
            ScopePanes::new(number, link, options)
        });
        let scopes = Scopes { all: scopes.collect(), active: 0, common: CommonTime::default() };
        Ok(Box::new(ScopeWindow { scopes, bench, loss: watched, lost: told }))
    };
    let run = || eframe::run_native(&title, native, Box::new(create));
    let Some(opened) = loss.or_panic(run).filter(|_| lost.get().is_none()) else {
        let why = lost.get().map(String::as_str).or(loss.why()).unwrap_or_default();
        return Err(Error::DeviceLost { why: why.to_owned() });
    };
    opened.map_err(|error| match error {
        // No display, a display that refuses us, or missing libraries of the window system.
        eframe::Error::Winit(_) | eframe::Error::WinitEventLoop(_) => {
            Error::NoDisplay { why: reason(&error.to_string()) }
        }
        // No driver at all, or none for this display.
        eframe::Error::Wgpu(_) => Error::NoDisplay {
            why: "neither Vulkan nor OpenGL draws here (Debian: mesa-vulkan-drivers)".into(),
        },
        error => Error::Window { why: reason(&error.to_string()) },
    })
}

type Created = Result<Box<dyn eframe::App>, Box<dyn std::error::Error + Send + Sync>>;

struct ScopeWindow {
    scopes: Scopes,
    bench: Option<WindowTimer>,
    loss: DeviceLoss,
    /// Why the window closed by itself.
    lost: Arc<OnceLock<String>>,
}

impl eframe::App for ScopeWindow {
    fn ui(&mut self, ui: &mut egui::Ui, frame: &mut eframe::Frame) {
        if let Some(why) = self.loss.why() {
            // Nothing more can be drawn.
            let _ = self.lost.set(why.to_owned());
            ui.ctx().send_viewport_cmd(egui::ViewportCommand::Close);
            return;
        }
        if let (Some(bench), Some(scope)) = (&self.bench, self.scopes.all.first_mut()) {
            let all = LaneMask::ALL;
            scope.model.controls.shown = if bench.has_traces() { all } else { LaneMask::NONE };
        }
        self.scopes.show(ui);
        if let (Some(bench), Some(scope)) = (&mut self.bench, self.scopes.all.first()) {
            bench.frame(ui.ctx(), scope, frame.info().cpu_usage);
        }
        if self.scopes.all.iter().any(|scope| scope.model.is_done()) {
            ui.ctx().send_viewport_cmd(egui::ViewportCommand::Close);
        }
    }

    /// The background of everything. Filling it again in a panel costs 50 ms per frame in software.
    fn clear_color(&self, _: &egui::Visuals) -> [f32; 4] {
        let theme = self.scopes.all.first().map_or(grebe_scope::raster::Theme::dark(), ScopePanes::theme);
        lanes::color32(theme.plot).to_normalized_gamma_f32()
    }
}

/// The content of a window.
struct Scopes {
    all: Vec<ScopePanes>,
    /// The scope that gets the keys.
    active: usize,
    common: CommonTime,
}

impl Scopes {
    /// Draws each scope in its own row, so that simultaneous samples are below each other. The scope under the
    /// pointer gets the keys, and sets the theme of all.
    fn show(&mut self, ui: &mut egui::Ui) {
        let Scopes { all, active, common } = self;
        if let [only] = all.as_mut_slice() {
            only.show(ui);
            return;
        }
        let mut models: Vec<&mut ViewModel> = all.iter_mut().map(|scope| &mut scope.model).collect();
        common.refresh(&mut models);
        let gutter = labels::gutter(ui.ctx(), models.into_iter());
        let area = ui.available_rect_before_wrap();
        let height = area.height() / all.len().max(1) as f32;
        let row = |number: usize| {
            let top = area.top() + height * number as f32;
            egui::Rect::from_min_max(egui::pos2(area.left(), top), egui::pos2(area.right(), top + height))
        };
        if let Some(pointer) = ui.input(|input| input.pointer.latest_pos()) {
            *active = (0..all.len()).find(|&number| row(number).contains(pointer)).unwrap_or(*active);
        }
        let theme = all.get(*active).map(|scope| scope.model.controls.theme);
        for (number, scope) in all.iter_mut().enumerate() {
            (scope.has_keys, scope.is_refreshed, scope.gutter) = (number == *active, true, gutter);
            let rect = row(number);
            ui.scope_builder(egui::UiBuilder::new().max_rect(rect).id_salt(number), |ui| {
                ui.set_clip_rect(rect);
                scope.show(ui);
            });
            if let Some(theme) = theme {
                scope.model.controls.theme = theme;
            }
            let theme = scope.theme();
            let color = lanes::color32(if scope.has_keys { theme.grid_zero } else { theme.grid });
            ui.painter().hline(rect.x_range(), rect.top(), egui::Stroke::new(1.0, color));
        }
    }
}

/// Lowers the priority of drawing: in software it uses all CPU time that it gets, and the stream would lose samples. The
/// threads of the window system inherit it.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // If refused, the window still works.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

/// A third of the CPU time beside a thread that wants all of it.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// Whether a window can be opened, as far as that is known without trying.
#[cfg(target_os = "linux")]
fn check_display() -> Result<(), Error> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("WAYLAND_DISPLAY") || is_set("WAYLAND_SOCKET") {
        return Ok(());
    }
    if !is_set("DISPLAY") {
        let why = "neither WAYLAND_DISPLAY nor DISPLAY is set".into();
        return Err(Error::NoDisplay { why });
    }
    // winit panics without it.
    if xkbcommon_dl::x11::xkbcommon_x11_option().is_none() {
        let why = "libxkbcommon-x11 is missing (Debian: libxkbcommon-x11-0)".into();
        return Err(Error::NoDisplay { why });
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_display() -> Result<(), Error> {
    Ok(())
}

/// The useful part of an error: winit puts its own source file and line before the reason.
fn reason(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.rsplit(": ").next().filter(|reason| !reason.is_empty()).unwrap_or("no reason given").to_owned()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::labels;
