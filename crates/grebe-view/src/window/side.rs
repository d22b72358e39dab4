//! The panels at the right: the channels' settings, and the last triggers.

use eframe::egui::{self, Rect, RichText, TextEdit, UiBuilder, vec2};
use grebe_scope::Engineering;
use grebe_scope::raster::Color;

use super::labels::name_it;
use super::lanes::color32;
use super::panes::ScopePanes;
use crate::data::lane::{LaneId, Part};
use crate::data::math::MathOperation;
use crate::model::action::{Action, Step};
use crate::model::controls::GROUP;
use crate::model::setting::Setting;
use crate::model::vertical::DIVISIONS_VERTICAL;

impl ScopePanes {
    pub(super) fn side_width(&self) -> f32 {
        let show = self.model.controls.show;
        if show.channel_panel || show.segments || self.model.open.found.is_some() { WIDTH } else { 0.0 }
    }

    pub(super) fn side(&mut self, ui: &mut egui::Ui, area: Rect) {
        let show = self.model.controls.show;
        if self.side_width() == 0.0 {
            return;
        }
        let inside = Rect::from_min_max(area.min + vec2(4.0, 2.0), area.max - vec2(10.0, 6.0));
        ui.scope_builder(UiBuilder::new().max_rect(inside), |ui| {
            ui.set_clip_rect(area);
            egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
                if show.channel_panel {
                    self.channel_panel(ui);
                }
                if show.segments {
                    self.segment_panel(ui);
                }
                self.found_panel(ui);
            });
        });
    }

    fn channel_panel(&mut self, ui: &mut egui::Ui) {
        self.panel_head(ui, "channels", Action::Channels, "close  (l)");
        let count = self.model.seen.picture.stream.map_or(0, |stream| stream.channels);
        if self.model.seen.picture.stream.is_some_and(|stream| stream.format.is_complex()) {
            self.part_row(ui);
        }
        if count > GROUP {
            self.group_row(ui, count);
        }
        for channel in 0..count {
            self.channel_card(ui, channel);
            ui.add_space(4.0);
        }
        self.math_card(ui);
        ui.add_space(4.0);
        ui.horizontal(|ui| {
            let show = self.model.controls.show;
            self.toggle(ui, show.overlay, "overlay", "all in one lane  (o)", Action::Overlay);
            let hint = "all triggers upon each other  (d)";
            self.toggle(ui, show.persistence, "persistence", hint, Action::Persistence);
            let hint = "the line between samples: straight, or sin(x)/x  (I)";
            self.toggle(ui, show.sinc, "sin(x)/x", hint, Action::Interpolation);
        });
        ui.add_space(10.0);
    }

    fn panel_head(&mut self, ui: &mut egui::Ui, name: &str, close: Action, hint: &str) {
        ui.horizontal(|ui| {
            ui.label(RichText::new(name).strong().color(color32(self.theme().text)));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if ui.small_button("\u{d7}").on_hover_text(hint).clicked() {
                    self.model.act(close);
                }
            });
        });
    }

    /// Which parts of complex channels have lanes.
    fn part_row(&mut self, ui: &mut egui::Ui) {
        ui.horizontal_wrapped(|ui| {
            for part in Part::COMPLEX {
                let is_on = self.model.controls.shown.has_part(part);
                let hint = format!("lanes of the {}  (/)", part.name());
                self.toggle(ui, is_on, part.symbol(), &hint, Action::Part(part));
            }
        });
        ui.add_space(4.0);
    }

    /// Eight channels at a time.
    fn group_row(&mut self, ui: &mut egui::Ui, count: usize) {
        ui.horizontal(|ui| {
            let shown = (0..count).filter(|&channel| self.model.controls.shown.has_channel(channel)).count();
            ui.label(
                RichText::new(format!("{shown} of {count} shown")).color(color32(self.theme().text_dim)),
            );
            self.button(
                ui,
                "next eight",
                "the next eight alone, behind the last of them all  (9)",
                Action::NextGroup,
            );
        });
        ui.add_space(4.0);
    }

    fn channel_card(&mut self, ui: &mut egui::Ui, channel: usize) {
        let theme = self.theme();
        let selected = self.model.selected();
        let is_selected = selected.channel == channel && !selected.is_math();
        let is_shown = self.model.controls.shown.has_channel(channel);
        let lane = if is_selected { selected } else { self.model.channel_lane(channel) };
        let stroke = if is_selected { self.trace_color(lane) } else { color32(theme.grid) };
        card(stroke).show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.horizontal(|ui| {
                let color = self.model.controls.lanes.setup(lane).trace_color(lane, &theme);
                let mut rgb = [color.r, color.g, color.b];
                let picked = ui.color_edit_button_srgb(&mut rgb).on_hover_text("colour");
                name_it(&picked, &format!("colour of channel {}", channel + 1));
                if picked.changed() {
                    let [r, g, b] = rgb;
                    self.model.controls.lanes.setup_mut(lane).color = Some(Color::rgb(r, g, b));
                }
                let label = RichText::new(format!("CH{}", channel + 1)).monospace().color(color32(color));
                let hint = "choose it for the keys of one channel  (n)";
                self.toggle(ui, is_selected, label, hint, Action::Select(lane));
                let name = &mut self.model.controls.lanes.channel_mut(channel).name;
                let edit = TextEdit::singleline(name).hint_text("name").desired_width(90.0).char_limit(24);
                let edit = ui.add(edit);
                self.is_typing |= edit.has_focus();
                name_it(&edit, &format!("name of channel {}", channel + 1));
                ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                    let word = if is_shown { "on" } else { "off" };
                    let hint = format!("on / off  ({})", channel % GROUP + 1);
                    self.toggle(ui, is_shown, word, &hint, Action::Channel(channel));
                });
            });
            if is_selected {
                self.lane_row(ui, channel, lane);
                self.channel_details(ui, channel, lane);
            }
        });
    }

    /// Which lane of a complex channel the rows below are of.
    fn lane_row(&mut self, ui: &mut egui::Ui, channel: usize, selected: LaneId) {
        let parts = Part::COMPLEX.into_iter().filter(|&part| self.model.controls.shown.has_part(part));
        let parts: Vec<Part> = parts.filter(|_| selected.part != Part::Real).collect();
        if parts.is_empty() {
            return;
        }
        ui.horizontal(|ui| {
            row_label(ui, "lane", color32(self.theme().text_dim));
            for part in parts {
                let lane = LaneId { channel, part };
                self.toggle(
                    ui,
                    lane == selected,
                    part.symbol(),
                    "the rows below are of it  (n)",
                    Action::Select(lane),
                );
            }
        });
    }

    fn math_card(&mut self, ui: &mut egui::Ui) {
        let now = self.model.controls.math;
        let is_selected = now.is_some() && self.model.controls.lanes.selected.is_math();
        let color = self.trace_color(LaneId::MATH);
        card(if is_selected { color } else { color32(self.theme().grid) }).show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.horizontal_wrapped(|ui| {
                let select = Action::Select(if now.is_some() { LaneId::MATH } else { LaneId::real(0) });
                let name = RichText::new("math").color(color);
                self.toggle(ui, is_selected, name, "a channel computed of others  (E)", select);
                self.toggle(ui, now.is_none(), "none", "no math channel", Action::Math(None));
                for operation in MathOperation::ALL {
                    let is_on = now == Some(operation);
                    self.toggle(
                        ui,
                        is_on,
                        operation.name(),
                        "the math channel  (E)",
                        Action::Math(Some(operation)),
                    );
                }
            });
            let Some(operation) = now else { return };
            ui.horizontal(|ui| {
                let inputs = if operation.is_binary() { 2 } else { 1 };
                for (place, name) in ["A", "B"].into_iter().enumerate().take(inputs) {
                    let lane = self.model.math_inputs()[place];
                    let of = format!("{name} = {}", self.model.setup(lane).label(lane));
                    self.choice(ui, of, "the channel  (N, B)", Setting::MathInput(place));
                }
            });
            if is_selected {
                self.scale_rows(ui, LaneId::MATH);
            }
        });
    }

    fn scale_rows(&mut self, ui: &mut egui::Ui, lane: LaneId) {
        let setup = self.model.controls.lanes.setup(lane);
        let dim = color32(self.theme().text_dim);
        ui.horizontal(|ui| {
            row_label(ui, "scale", dim);
            self.button(ui, "\u{2212}", "finer  (y)", Action::Vertical(Step::Down));
            let unit = self.model.setup(lane).unit;
            let range = self.model.controls.lanes.range(lane);
            let seen = range.map_or(1.0, |range| range.height() / DIVISIONS_VERTICAL);
            let per_division = setup.vertical.map_or(seen, |vertical| vertical.per_division);
            let typed = self.quantity(ui, "units per division", (per_division, &unit), |value| value > 0.0);
            if let Some(per_division) = typed {
                self.model.controls.lanes.set_scale(lane, per_division);
            }
            self.button(ui, "+", "coarser  (Y)", Action::Vertical(Step::Up));
            self.toggle(ui, setup.vertical.is_none(), "auto", "follow the signal  (u)", Action::VerticalAuto);
        });
        ui.horizontal(|ui| {
            row_label(ui, "position", dim);
            let arrow = |text: &str| RichText::new(text).monospace();
            self.button(ui, arrow("\u{2193}"), "trace down  (j)", Action::Position(-0.5));
            self.button(ui, arrow("\u{2191}"), "trace up  (k)", Action::Position(0.5));
            self.toggle(ui, setup.is_ac, "AC", "without its mean  (a)", Action::Coupling);
            self.toggle(ui, setup.is_inverted, "invert", "turned over  (i)", Action::Invert);
        });
    }

    fn channel_details(&mut self, ui: &mut egui::Ui, channel: usize, lane: LaneId) {
        self.scale_rows(ui, lane);
        if !lane.part.has_unit_of_samples() {
            return;
        }
        let dim = color32(self.theme().text_dim);
        egui::Grid::new(("channel values", channel)).num_columns(2).spacing([8.0, 3.0]).show(ui, |ui| {
            let setup = self.model.controls.lanes.channel_mut(channel);
            let label = ui.label(RichText::new("unit").color(dim));
            let edit =
                TextEdit::singleline(&mut setup.unit).hint_text("counts").desired_width(90.0).char_limit(8);
            self.is_typing |= ui.add(edit).labelled_by(label.id).has_focus();
            ui.end_row();
            ui.label(RichText::new("1 count is").color(dim));
            let (unit, scale, offset) = (setup.unit.clone(), setup.scale, setup.offset);
            if let Some(typed) = self.quantity(ui, "units per count", (scale, &unit), |value| value != 0.0) {
                self.model.controls.lanes.channel_mut(channel).scale = typed;
            }
            ui.end_row();
            ui.label(RichText::new("count 0 is").color(dim));
            if let Some(typed) = self.quantity(ui, "value of count 0", (offset, &unit), |_| true) {
                self.model.controls.lanes.channel_mut(channel).offset = typed;
            }
            ui.end_row();
        });
    }

    fn segment_panel(&mut self, ui: &mut egui::Ui) {
        self.panel_head(ui, "last triggers", Action::Segments, "close  (g)");
        self.trigger_input(ui);
        let segments = self.model.segments();
        let theme = self.theme();
        let newest = segments.first().map_or(0.0, |segment| segment.at);
        let rate = self.model.seen.picture.rate_or_one();
        let unit = self.model.seen.picture.axis_unit();
        if segments.is_empty() {
            ui.label(RichText::new("none yet: choose auto, normal or single").color(color32(theme.text_dim)));
        }
        for segment in segments {
            ui.horizontal(|ui| {
                let mark = if segment.label.is_some() { "unpin" } else { "pin" };
                let pin = ui.add_enabled(segment.is_there, egui::Button::new(mark).small());
                if pin.on_hover_text("keep in the list  (P)").clicked() {
                    self.model.show_segment(segment.at);
                    self.model.act(Action::Pin);
                }
                let age = Engineering::new((segment.at - newest) / rate, unit).digits(4).to_string();
                let text =
                    RichText::new(if segment.is_there { age } else { "no longer held".into() }).monospace();
                let row = ui.selectable_label(segment.is_shown, text).on_hover_text("show it  ({ and })");
                if segment.is_shown && self.listed_segment.replace(segment.at) != Some(segment.at) {
                    row.scroll_to_me(None);
                }
                if row.clicked() {
                    self.model.show_segment(segment.at);
                }
                let pins = &mut self.model.controls.pins.list;
                if let Some(pin) = pins.iter_mut().find(|pin| pin.at == segment.at) {
                    let edit =
                        ui.add(TextEdit::singleline(&mut pin.label).desired_width(90.0).char_limit(40));
                    self.is_typing |= edit.has_focus();
                    name_it(&edit, "label of the trigger");
                }
            });
        }
    }
}

fn card(color: egui::Color32) -> egui::Frame {
    let frame = egui::Frame::NONE.stroke(egui::Stroke::new(1.0, color)).corner_radius(4);
    frame.inner_margin(egui::Margin::symmetric(7, 5))
}

fn row_label(ui: &mut egui::Ui, text: &str, color: egui::Color32) {
    let left_to_right = egui::Layout::left_to_right(egui::Align::Center);
    ui.allocate_ui_with_layout(vec2(LABEL_WIDTH, 18.0), left_to_right, |ui| {
        ui.set_min_width(LABEL_WIDTH);
        ui.label(RichText::new(text).color(color));
    });
}

const WIDTH: f32 = 284.0;
/// Before the buttons of a row.
const LABEL_WIDTH: f32 = 52.0;
