//! Tables of numbers: the measurements below the traces, and the rows of any table.

use eframe::egui::{self, Color32, Rect, vec2};

use super::labels::label_font;
use super::lanes::color32;
use super::panes::ScopePanes;
use crate::model::controls::Show;
use crate::model::readout::{Row, TRIGGER_COLUMNS};
use crate::model::signals::SIGNAL_COLUMNS;
use crate::model::time_frequency_box::BOX_COLUMNS;

impl ScopePanes {
    /// Room for the box, for one row per measured channel, and for statistics, in a window with `height` for all. Further rows scroll.
    pub(super) fn measurements_height(&self, height: f32) -> f32 {
        let Show { spectrum, waterfall, .. } = self.model.controls.show;
        let panes = 1.0 + f32::from(u8::from(spectrum)) + f32::from(u8::from(waterfall));
        let most = (height * 0.4).min((height - panes * PANE_HEIGHT_LOW).max(HEIGHT_MIN));
        let rows = self.model.seen.picture.measured.len() + self.model.statistics_rows().len();
        // The trigger's counter has a heading of its own.
        let counter = if self.model.seen.picture.trigger.is_some() { 2.2 } else { 0.0 };
        let signals = self.model.seen.picture.signals.len();
        let signals = if signals > 0 { signals as f32 + 1.3 } else { 0.0 };
        let boxed = if self.model.controls.boxed.is_some() { ROW_HEIGHT * 2.3 } else { 0.0 };
        match self.model.controls.is_measuring {
            true => (32.0 + ROW_HEIGHT * (rows as f32 + counter + signals) + boxed).min(most),
            false => boxed.min(most),
        }
    }

    pub(super) fn measurements(&self, ui: &mut egui::Ui, area: Rect) {
        let (is_measuring, (title, boxed)) = (self.model.controls.is_measuring, self.model.box_rows());
        if !is_measuring && boxed.is_empty() {
            return;
        }
        let mut rows = self.model.measurement_rows();
        rows.extend(self.model.statistics_rows());
        let words = self.model.measured_words();
        let columns = self.model.quantity_columns();
        let names: Vec<&str> =
            [words.as_str()].into_iter().chain(columns.iter().map(|quantity| quantity.name())).collect();
        let area = Rect::from_min_max(area.min + vec2(self.gutter, 2.0), area.max);
        ui.scope_builder(egui::UiBuilder::new().max_rect(area), |ui| {
            // Sixteen columns are wider than most windows, and many channels higher.
            let scroll = egui::ScrollArea::both().id_salt("measurements").auto_shrink([false, true]);
            scroll.show(ui, |ui| {
                if !boxed.is_empty() {
                    self.table(ui, "box", &[&[title.as_str()], &BOX_COLUMNS[..]].concat(), &boxed);
                    ui.add_space(4.0);
                }
                if !is_measuring {
                    return;
                }
                self.table(ui, "measurements", &names, &rows);
                let signals = self.model.signal_rows();
                if !signals.is_empty() {
                    ui.add_space(4.0);
                    self.table(ui, "signals", &SIGNAL_COLUMNS, &signals);
                }
                let counter = self.model.trigger_rows();
                if !counter.is_empty() {
                    ui.add_space(4.0);
                    self.table(ui, "trigger rate", &TRIGGER_COLUMNS, &counter);
                }
            });
        });
    }

    /// Rows of numbers in the colours of their channels.
    pub(super) fn table(&self, ui: &mut egui::Ui, id: &str, names: &[&str], rows: &[Row]) {
        let theme = self.theme();
        let cell = |ui: &mut egui::Ui, text: &str, color: Color32| {
            ui.label(egui::RichText::new(text).font(label_font()).color(color));
        };
        egui::Grid::new(id).num_columns(names.len()).spacing([16.0, 2.0]).show(ui, |ui| {
            names.iter().for_each(|name| cell(ui, name, color32(theme.text_dim)));
            ui.end_row();
            for row in rows {
                let color = row.lane.map_or(color32(theme.text), |lane| self.trace_color(lane));
                row.cells.iter().for_each(|text| cell(ui, text, color));
                ui.end_row();
            }
        });
    }
}

const ROW_HEIGHT: f32 = 22.0;
/// Of the tables: a heading and a row.
const HEIGHT_MIN: f32 = 56.0;
/// That tables leave to each pane in a low window.
const PANE_HEIGHT_LOW: f32 = 95.0;
