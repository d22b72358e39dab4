//! The panels at the right: the channels' settings, and the last triggers.

use eframe::egui::{self, Rect, RichText, TextEdit, UiBuilder, vec2};
use grebe_scope::raster::Color;

use super::labels::name_it;
use super::lanes::color32;
use super::panes::ScopePanes;
use crate::data::lane::LaneId;
use crate::model::action::Action;
use crate::model::controls::GROUP;
use crate::model::fields::Field;
use crate::model::panels;
use crate::model::widget::{Press, Widget};

impl ScopePanes {
    pub(super) fn side_width(&self) -> f32 {
        let show = self.model.controls.show;
        if show.channel_panel
            || show.segments
            || self.model.open.found.is_some()
            || self.model.open.find_form.is_some()
            || self.model.open.annotations.is_open
        {
            WIDTH
        } else {
            0.0
        }
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
                self.annotation_panel(ui);
            });
        });
    }

    fn channel_panel(&mut self, ui: &mut egui::Ui) {
        self.panel_head(ui, "channels", &Widget::button("\u{d7}", "close  (l)", Action::Channels));
        if let Some(row) = panels::part_row(&self.model) {
            ui.horizontal_wrapped(|ui| self.widgets(ui, &row));
            ui.add_space(4.0);
        }
        if let Some(row) = panels::group_row(&self.model) {
            ui.horizontal(|ui| self.widgets(ui, &row));
            ui.add_space(4.0);
        }
        for channel in 0..self.model.seen.picture.stream.map_or(0, |stream| stream.channels) {
            self.channel_card(ui, channel);
            ui.add_space(4.0);
        }
        self.math_card(ui);
        ui.add_space(4.0);
        let row = panels::overlay_row(&self.model);
        ui.horizontal(|ui| self.widgets(ui, &row));
        ui.add_space(10.0);
    }

    pub(super) fn panel_head(&mut self, ui: &mut egui::Ui, name: &str, close: &Widget) {
        ui.horizontal(|ui| {
            ui.label(RichText::new(name).strong().color(color32(self.theme().text)));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                self.widget(ui, &close.clone().is("small"));
            });
        });
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
                let rows = panels::lane_rows(&self.model, channel, lane).into_iter();
                let is_name = |row: &Vec<Widget>| row.iter().any(|it| it.field == Some(Field::Name(channel)));
                let is_field = |row: &Vec<Widget>| matches!(&row[..], [_, it] if it.field.is_some());
                let (fields, rows): (Vec<_>, Vec<_>) = rows.filter(|row| !is_name(row)).partition(is_field);
                rows.iter().for_each(|row| self.row(ui, row));
                self.columns(ui, ("channel values", channel), 3.0, &fields);
            }
        });
    }

    fn math_card(&mut self, ui: &mut egui::Ui) {
        let rows = panels::math_rows(&self.model);
        let is_selected = self.model.controls.math.is_some() && self.model.controls.lanes.selected.is_math();
        let color = if is_selected { self.trace_color(LaneId::MATH) } else { color32(self.theme().grid) };
        card(color).show(ui, |ui| {
            ui.set_width(ui.available_width());
            for (place, row) in rows.iter().enumerate() {
                match place {
                    0 => drop(ui.horizontal_wrapped(|ui| self.widgets(ui, row))),
                    _ => self.row(ui, row),
                }
            }
        });
    }

    fn segment_panel(&mut self, ui: &mut egui::Ui) {
        self.panel_head(ui, "last triggers", &Widget::button("\u{d7}", "close  (g)", Action::Segments));
        self.trigger_input(ui);
        for row in panels::segment_rows(&self.model) {
            if let [words] = &row[..] {
                self.widget(ui, words);
                continue;
            }
            ui.horizontal(|ui| {
                for widget in &row {
                    let response = self.widget(ui, widget);
                    if let (Some(Press::Trigger(at)), Some(true)) = (&widget.act, widget.is_on)
                        && self.listed_segment.replace(*at) != Some(*at)
                    {
                        response.scroll_to_me(None);
                    }
                }
            });
        }
    }
}

fn card(color: egui::Color32) -> egui::Frame {
    let frame = egui::Frame::NONE.stroke(egui::Stroke::new(1.0, color)).corner_radius(4);
    frame.inner_margin(egui::Margin::symmetric(7, 5))
}

const WIDTH: f32 = 284.0;
