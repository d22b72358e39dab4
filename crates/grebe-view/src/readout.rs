//! Tables of numbers below and over the traces: cursors and measurements, the same in window and terminal.

use grebe_scope::{Dimension, Engineering, Quantity};

use crate::face::Face;

/// One row: the channel it is about, if any, and its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) channel: Option<usize>,
    pub(crate) cells: Vec<String>,
}

impl Face {
    /// What the cursors show: name, value at A, value at B, difference; empty without cursors.
    pub(crate) fn cursor_rows(&self) -> Vec<Row> {
        let Some([a, b]) = self.controls.cursors() else { return Vec::new() };
        let (start, end, _) = self.axis();
        let unit = self.picture.axis_unit();
        let row = |channel, cells: [String; 4]| Row { channel, cells: cells.to_vec() };
        let mut rows = vec![row(None, ["time".into(), show(a, unit), show(b, unit), show(b - a, unit)])];
        if unit == "s" && a != b {
            let rate = show(1.0 / (b - a).abs(), "Hz");
            rows.push(row(None, ["1/\u{394}".into(), String::new(), String::new(), rate]));
        }
        for data in &self.picture.channels {
            let setup = self.options.channel(data.channel);
            let value = |at: f64| {
                let part = (at - start) / (end - start);
                let place = (part * data.columns.len() as f64) as usize;
                let column = data.columns.get(place).filter(|column| part >= 0.0 && !column.is_empty())?;
                // Where a column holds many samples, the middle of what they did.
                Some(setup.value((f64::from(column.min) + f64::from(column.max)) / 2.0))
            };
            let (at_a, at_b) = (value(a), value(b));
            let difference = at_a.zip(at_b).map(|(a, b)| b - a);
            let text = |value: Option<f64>| value.map_or(NOTHING.into(), |value| show(value, &setup.unit));
            let cells = [setup.label(data.channel), text(at_a), text(at_b), text(difference)];
            rows.push(row(Some(data.channel), cells));
        }
        rows
    }

    /// One row a channel with the quantities of [`QUANTITIES`]; empty where nothing is measured.
    pub(crate) fn measurement_rows(&self) -> Vec<Row> {
        let measured = self.picture.measured.iter().map(|measured| {
            let setup = self.options.channel(measured.channel);
            let cell = |quantity: Quantity| match (measured.set.get(quantity), quantity.dimension()) {
                (None, _) => NOTHING.into(),
                (Some(value), Dimension::Value) => show(value, &setup.unit),
                (Some(value), Dimension::Time) => show(value, "s"),
                (Some(value), Dimension::Frequency) => show(value, "Hz"),
                (Some(value), Dimension::Ratio) => show(value * 100.0, "%"),
            };
            let label = [setup.label(measured.channel)];
            let cells = label.into_iter().chain(QUANTITIES.into_iter().map(cell)).collect();
            Row { channel: Some(measured.channel), cells }
        });
        measured.collect()
    }
}

fn show(value: f64, unit: &str) -> String {
    Engineering::new(value, unit).digits(4).to_string()
}

/// The columns of the measurement table.
pub(crate) const QUANTITIES: [Quantity; 9] = [
    Quantity::PeakToPeak,
    Quantity::Mean,
    Quantity::Rms,
    Quantity::AcRms,
    Quantity::Frequency,
    Quantity::Period,
    Quantity::Duty,
    Quantity::RiseTime,
    Quantity::FallTime,
];
const NOTHING: &str = "\u{2013}";
