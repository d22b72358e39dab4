//! What the window shows, and what a person does in it: everything but the window itself, so that tests can drive it.

use std::time::Duration;

use eframe::egui::{self, Align2, Color32, FontId, Pos2, Rect, Sense, pos2, vec2};
use grebe_scope::raster::Theme;
use grebe_scope::{Engineering, Ticks};

use super::lanes::{Lane, LanePainter, color32};
use super::quads::QuadPainter;
use super::style;
use crate::controls::{Action, KEYS, char_action};
use crate::face::Face;
use crate::hud::{DIVISIONS, RunState, STALE_NS, Tone};
use crate::link::ScopeLink;
use crate::options::{ThemeChoice, ViewOptions};
use crate::vertical::Range;
use grebe_flow::monotonic_ns;

pub(super) struct ScopePanes {
    face: Face,
    painter: QuadPainter,
    /// What egui was last styled for.
    styled: Option<ThemeChoice>,
}

impl ScopePanes {
    pub(super) fn new(link: ScopeLink, options: ViewOptions, painter: QuadPainter) -> ScopePanes {
        ScopePanes { face: Face::new(link, options), painter, styled: None }
    }

    pub(super) fn theme(&self) -> Theme {
        self.face.controls.theme().theme()
    }

    pub(super) fn is_done(&self) -> bool {
        self.face.is_done()
    }

    #[cfg(test)]
    pub(super) fn channels_shown(&self) -> Vec<usize> {
        self.face.picture.channels.iter().map(|data| data.channel).collect()
    }

    pub(super) fn show(&mut self, ui: &mut egui::Ui) {
        self.keys(ui);
        self.face.refresh();
        if self.styled != Some(self.face.controls.theme()) {
            style::apply(ui.ctx(), self.face.controls.theme());
            self.styled = Some(self.face.controls.theme());
        }
        self.head(ui);
        self.plot(ui);
        if self.face.controls.is_help_open() {
            self.help(ui);
        }
        self.wake_when_stale(ui.ctx());
    }

    fn keys(&mut self, ui: &egui::Ui) {
        // A focused button takes the keys that press it.
        let is_focused = ui.memory(|memory| memory.focused().is_some());
        let actions: Vec<Action> = ui.input(|input| {
            let of = |event: &egui::Event| match event {
                egui::Event::Key { key, pressed: true, modifiers, .. } => {
                    key_action(*key, *modifiers).filter(|_| !is_focused)
                }
                egui::Event::Text(text) => text.chars().next().and_then(char_action),
                _ => None,
            };
            input.events.iter().filter_map(of).collect()
        });
        for action in actions {
            self.face.act(action);
        }
    }

    fn head(&mut self, ui: &mut egui::Ui) {
        egui::Frame::NONE.inner_margin(egui::Margin::symmetric(10, 6)).show(ui, |ui| {
            ui.horizontal(|ui| {
                self.state_chip(ui);
                ui.strong(&self.face.hud.source);
                ui.label(&self.face.hud.stream);
                if let Some(notice) = &self.face.hud.notice {
                    ui.colored_label(style::held(self.face.controls.theme()), notice);
                }
                ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| self.buttons(ui));
            });
            ui.horizontal(|ui| self.facts(ui));
        });
    }

    fn state_chip(&self, ui: &mut egui::Ui) {
        let (theme, choice) = (self.theme(), self.face.controls.theme());
        let fill = match self.face.hud.state {
            RunState::Live => style::good(choice),
            RunState::Paused => style::held(choice),
            RunState::Stale => color32(theme.gap),
            RunState::Waiting | RunState::Ended => color32(theme.text_dim),
        };
        egui::Frame::NONE.fill(fill).corner_radius(4).inner_margin(egui::Margin::symmetric(7, 2)).show(
            ui,
            |ui| {
                ui.label(
                    egui::RichText::new(self.face.hud.state.word())
                        .monospace()
                        .strong()
                        .color(style::on_chip(&theme)),
                )
            },
        );
    }

    /// Right to left.
    fn buttons(&mut self, ui: &mut egui::Ui) {
        let mut wanted = None;
        let mut button = |ui: &mut egui::Ui, text: &str, hint: &str, action: Action| {
            if ui.button(text).on_hover_text(hint).clicked() {
                wanted = Some(action);
            }
        };
        button(ui, "?", "keys  (?)", Action::Help);
        let other = match self.face.controls.theme() {
            ThemeChoice::Dark => "light",
            ThemeChoice::Light => "dark",
        };
        button(ui, other, "colours  (t)", Action::Theme);
        let run = if self.face.controls.is_paused() { "run" } else { "pause" };
        button(ui, run, "hold the picture or go on  (space)", Action::Pause);
        ui.separator();
        button(ui, "+", "longer time span  (\u{2192} or +)", Action::Longer);
        let division = egui::RichText::new(&self.face.hud.division).monospace();
        ui.add_sized([86.0, 18.0], egui::Label::new(division));
        button(ui, "\u{2212}", "shorter time span  (\u{2190} or -)", Action::Shorter);
        if let Some(action) = wanted {
            self.face.act(action);
        }
    }

    fn facts(&self, ui: &mut egui::Ui) {
        let theme = self.theme();
        let (dim, plain) = (color32(theme.text_dim), color32(theme.text));
        let fact = |ui: &mut egui::Ui, label: &str, value: &str, color: Color32| {
            ui.spacing_mut().item_spacing.x = 5.0;
            if !label.is_empty() {
                ui.label(egui::RichText::new(label).color(dim));
            }
            ui.label(egui::RichText::new(value).monospace().color(color));
            ui.add_space(9.0);
        };
        for item in &self.face.hud.facts {
            fact(ui, item.label, &item.value, plain);
        }
        ui.separator();
        ui.label(egui::RichText::new("lost").color(dim));
        ui.add_space(3.0);
        for item in &self.face.hud.losses {
            let color = match item.tone {
                Tone::Bad => color32(theme.gap),
                Tone::Good => style::good(self.face.controls.theme()),
                Tone::Plain => plain,
            };
            fact(ui, item.label, &item.value, color);
        }
    }

    fn plot(&mut self, ui: &mut egui::Ui) {
        let area = ui.available_rect_before_wrap();
        let response = ui.allocate_rect(area, Sense::click_and_drag());
        let plot = Rect::from_min_max(area.min + vec2(GUTTER, 2.0), area.max - vec2(12.0, AXIS_HEIGHT));
        if plot.width() < 20.0 || plot.height() < 20.0 {
            return;
        }
        let pixels_per_point = ui.ctx().pixels_per_point();
        self.pointer(ui, &response, plot);
        let columns = (plot.width() * pixels_per_point).round() as usize;
        if self.face.request(columns) {
            // The answer may be there by the next frame, and nobody else may ask for one.
            ui.ctx().request_repaint();
        }
        if self.face.picture.channels.is_empty() {
            self.empty(ui, plot);
            return;
        }
        self.lanes(ui, plot, area, pixels_per_point);
        self.time_axis(ui, plot);
        if let Some(pointer) = response.hover_pos().filter(|pointer| plot.contains(*pointer)) {
            self.readout(ui, plot, pointer);
        }
    }

    /// Wheel and drag.
    fn pointer(&mut self, ui: &egui::Ui, response: &egui::Response, plot: Rect) {
        if response.dragged() && response.drag_delta().x != 0.0 {
            let part = f64::from(-response.drag_delta().x / plot.width());
            self.face.pan(part);
        }
        if response.double_clicked() {
            self.face.act(Action::Live);
        }
        if let Some(pointer) = response.hover_pos() {
            let wheel = ui.input(|input| {
                let steps = input.events.iter().filter_map(|event| match event {
                    egui::Event::MouseWheel { delta, .. } if delta.y != 0.0 => Some(delta.y),
                    _ => None,
                });
                steps.sum::<f32>()
            });
            if wheel != 0.0 {
                let at = f64::from((pointer.x - plot.left()) / plot.width()).clamp(0.0, 1.0);
                self.face.zoom(wheel > 0.0, at);
            }
        }
    }

    fn lanes(&mut self, ui: &egui::Ui, plot: Rect, area: Rect, pixels_per_point: f32) {
        let theme = self.theme();
        let mut painter =
            LanePainter { area, pixels_per_point, theme: &theme, quads: Vec::new(), lost: Vec::new() };
        let mut labels = Vec::new();
        let ranges: Vec<Range> =
            (0..self.face.picture.channels.len()).map(|place| self.face.range(place)).collect();
        for (place, (data, range)) in self.face.picture.channels.iter().zip(ranges).enumerate() {
            let rect = lane_rect(plot, place, self.face.picture.channels.len());
            let setup = self.face.options.channel(data.channel);
            let color = color32(theme.trace(data.channel));
            let lane = Lane { rect, data, range, color, scale: (setup.scale, setup.offset) };
            let ticks = Ticks::new(range.bottom, range.top, (rect.height() / 26.0).clamp(2.0, 10.0) as u32);
            painter.lane(&lane, &ticks);
            labels.push((rect, color, setup.label(data.channel), range, ticks, setup.unit));
        }
        let LanePainter { quads, lost, .. } = painter;
        ui.painter().add(self.painter.shape(area, pixels_per_point, quads));
        for (rect, color, name, range, ticks, unit) in labels {
            lane_labels(ui, &theme, rect, color, &name, range, &ticks, &unit);
        }
        for rect in lost {
            let at = pos2(rect.center().x, rect.top() + 8.0);
            ui.painter().text(at, Align2::CENTER_TOP, "lost", label_font(), color32(theme.gap));
        }
    }

    fn time_axis(&self, ui: &egui::Ui, plot: Rect) {
        let span = self.face.picture.span();
        let ticks = Ticks::with_step(-span, 0.0, span / DIVISIONS);
        let unit = self.face.picture.axis_unit();
        let every = if plot.width() < 700.0 { 2 } else { 1 };
        for (place, value) in ticks.values().enumerate() {
            if !(10 - place.min(10)).is_multiple_of(every) {
                continue;
            }
            let x = plot.left() + plot.width() * (1.0 + value / span) as f32;
            let (x, align) = match place {
                0 => (x, Align2::LEFT_TOP),
                10 => (x, Align2::RIGHT_TOP),
                _ => (x, Align2::CENTER_TOP),
            };
            let color = color32(self.theme().text_dim);
            ui.painter().text(
                pos2(x, plot.bottom() + 4.0),
                align,
                ticks.label(value, unit),
                label_font(),
                color,
            );
        }
    }

    /// Time and values under the pointer.
    fn readout(&self, ui: &egui::Ui, plot: Rect, pointer: Pos2) {
        let theme = self.theme();
        let part = f64::from((pointer.x - plot.left()) / plot.width());
        let cursor = color32(theme.cursor);
        let line = Rect::from_x_y_ranges(pointer.x.round()..=pointer.x.round() + 1.0, plot.y_range());
        ui.painter().rect_filled(line, 0.0, cursor.gamma_multiply(0.35));
        let seconds = (part - 1.0) * self.face.picture.span();
        let at = Engineering::new(seconds, self.face.picture.axis_unit()).digits(4).to_string();
        value_tag(ui, &theme, pos2(pointer.x, plot.top()), plot, &at, cursor);
        for (place, data) in self.face.picture.channels.iter().enumerate() {
            let rect = lane_rect(plot, place, self.face.picture.channels.len());
            let column = (part * data.columns.len() as f64) as usize;
            let Some(column) = data.columns.get(column) else { continue };
            let setup = self.face.options.channel(data.channel);
            let text = match (column.is_empty(), column.has_gap()) {
                (true, true) => "lost".into(),
                (true, false) => continue,
                _ => values(column, &setup),
            };
            let color = if text == "lost" { theme.gap } else { theme.trace(data.channel) };
            let color = color32(color);
            value_tag(ui, &theme, pos2(pointer.x, rect.bottom() - 22.0), plot, &text, color);
        }
    }

    fn empty(&self, ui: &egui::Ui, plot: Rect) {
        let text = match (self.face.picture.stream, self.face.hud.state) {
            (Some(_), _) => "every channel is switched off: press 1 \u{2026} 8".to_owned(),
            (None, RunState::Ended) => "the stream ended without a sample".to_owned(),
            _ => format!("waiting for {}", self.face.hud.source),
        };
        let color = color32(self.theme().text_dim);
        ui.painter().text(plot.center(), Align2::CENTER_CENTER, text, FontId::proportional(20.0), color);
    }

    fn help(&mut self, ui: &egui::Ui) {
        let mut is_open = true;
        egui::Window::new("Keys")
            .open(&mut is_open)
            .collapsible(false)
            .resizable(false)
            .anchor(Align2::CENTER_CENTER, [0.0, 0.0])
            .show(ui.ctx(), |ui| {
                egui::Grid::new("keys").num_columns(2).spacing([24.0, 6.0]).show(ui, |ui| {
                    let mouse = [("wheel", "time span"), ("drag", "back / forward in time")];
                    for (key, meaning) in KEYS.into_iter().chain(mouse) {
                        ui.label(egui::RichText::new(key).monospace());
                        ui.label(meaning);
                        ui.end_row();
                    }
                });
            });
        if !is_open {
            self.face.act(Action::Help);
        }
    }

    /// One look at the right moment: a stream that stops shows it, and a picture that rests costs nothing.
    fn wake_when_stale(&self, ctx: &egui::Context) {
        if self.face.hud.state == RunState::Live {
            let age_ns = monotonic_ns().saturating_sub(self.face.picture.newest_arrival_ns);
            ctx.request_repaint_after(Duration::from_nanos(STALE_NS.saturating_sub(age_ns) + 1_000_000));
        }
    }
}

fn key_action(key: egui::Key, modifiers: egui::Modifiers) -> Option<Action> {
    match key {
        egui::Key::C | egui::Key::Q | egui::Key::W if modifiers.ctrl => Some(Action::Quit),
        egui::Key::Space => Some(Action::Pause),
        egui::Key::ArrowLeft => Some(Action::Shorter),
        egui::Key::ArrowRight => Some(Action::Longer),
        egui::Key::PageUp => Some(Action::Earlier),
        egui::Key::PageDown => Some(Action::Later),
        egui::Key::End => Some(Action::Live),
        egui::Key::Escape => Some(Action::Back),
        _ => None,
    }
}

fn lane_rect(plot: Rect, place: usize, count: usize) -> Rect {
    let height = plot.height() / count as f32;
    let top = plot.top() + height * place as f32;
    Rect::from_min_max(pos2(plot.left(), top + 3.0), pos2(plot.right(), top + height - 3.0))
}

fn values(column: &grebe_scope::Column, setup: &crate::ChannelSetup) -> String {
    let show =
        |count: i16| Engineering::new(setup.value(f64::from(count)), &setup.unit).digits(4).to_string();
    match column.min == column.max {
        true => show(column.min),
        false => format!("{} \u{2026} {}", show(column.min), show(column.max)),
    }
}

#[allow(clippy::too_many_arguments, reason = "one call, one place")]
fn lane_labels(
    ui: &egui::Ui,
    theme: &Theme,
    rect: Rect,
    color: Color32,
    name: &str,
    range: Range,
    ticks: &Ticks,
    unit: &str,
) {
    let dim = color32(theme.text_dim);
    for value in ticks.values() {
        let y = rect.top() + rect.height() * ((range.top - value) / range.height()) as f32;
        if y > rect.top() + 5.0 && y < rect.bottom() - 5.0 {
            let at = pos2(rect.left() - 7.0, y);
            ui.painter().text(at, Align2::RIGHT_CENTER, ticks.label(value, unit), label_font(), dim);
        }
    }
    let galley = ui.painter().layout_no_wrap(name.to_owned(), label_font(), color32(theme.plot));
    let chip = Rect::from_min_size(rect.min + vec2(6.0, 5.0), galley.size() + vec2(10.0, 4.0));
    ui.painter().rect_filled(chip, 3.0, color);
    ui.painter().galley(chip.min + vec2(5.0, 2.0), galley, color32(theme.plot));
}

/// A value beside a vertical line, on the side where there is room.
fn value_tag(ui: &egui::Ui, theme: &Theme, at: Pos2, plot: Rect, text: &str, color: Color32) {
    let galley = ui.painter().layout_no_wrap(text.to_owned(), label_font(), color);
    let size = galley.size() + vec2(10.0, 4.0);
    let left = if at.x + 6.0 + size.x < plot.right() { at.x + 6.0 } else { at.x - 6.0 - size.x };
    let tag = Rect::from_min_size(pos2(left, at.y + 3.0), size);
    ui.painter().rect_filled(tag, 3.0, color32(theme.background).gamma_multiply(0.9));
    ui.painter().galley(tag.min + vec2(5.0, 2.0), galley, color);
}

fn label_font() -> FontId {
    FontId::monospace(11.0)
}

/// Left of the lanes, for their labels.
const GUTTER: f32 = 66.0;
/// Below the lanes, for the time.
const AXIS_HEIGHT: f32 = 24.0;
