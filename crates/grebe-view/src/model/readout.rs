//! Tables of numbers beside the traces: cursors, measurements, trigger rate, losses.

use grebe_scope::{Dimension, Engineering, Quantity, Running};

use crate::data::lane::LaneId;
use crate::data::measure::LaneMeasurements;
use crate::model::view_model::ViewModel;

/// One row: its lane, if any, and its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) lane: Option<LaneId>,
    pub(crate) cells: Vec<String>,
}

impl Row {
    /// Its name and some of its cells.
    pub(crate) fn part(&self, cells: std::ops::Range<usize>) -> Vec<String> {
        self.cells.first().into_iter().chain(self.cells.get(cells).into_iter().flatten()).cloned().collect()
    }
}

impl ViewModel {
    /// Rows for the cursors and the markers of the spectrum: name, value at A, value at B, difference; empty without
    /// cursors.
    pub(crate) fn cursor_rows(&self) -> Vec<Row> {
        let mut rows = self.time_cursor_rows();
        let lane = self.selected();
        // Value cursors are drawn only in their lane.
        let is_shown = self.seen.picture.lanes.iter().any(|data| data.lane == lane);
        if let Some([a, b]) = self.controls.cursors.values.filter(|_| is_shown) {
            let setup = self.setup(lane);
            let label = format!("{} level", setup.label(lane));
            let [at_a, at_b, apart] = [a, b, b - a].map(|value| show_exact(value, &setup.unit));
            let cells = [label, at_a, at_b, apart];
            rows.push(Row { lane: Some(lane), cells: cells.to_vec() });
        }
        rows.extend(self.marker_rows());
        rows
    }

    fn time_cursor_rows(&self) -> Vec<Row> {
        let Some([a, b]) = self.controls.cursors.times else { return Vec::new() };
        let (start, end, _) = self.axis();
        let unit = self.seen.picture.axis_unit();
        let row = |lane, cells: [String; 4]| Row { lane, cells: cells.to_vec() };
        let times = [a, b, b - a].map(|time| show_exact(time, unit));
        let [at_a, at_b, apart] = times;
        let mut rows = vec![row(None, ["time".into(), at_a, at_b, apart])];
        let utc = [a, b].map(|time| {
            self.time_of_day_at(
                self.seen.picture.left_index + (time - start) * self.seen.picture.rate_or_one(),
            )
        });
        if let [Some(at_a), Some(at_b)] = utc {
            rows.push(row(None, ["UTC".into(), at_a, at_b, String::new()]));
        }
        if unit == "s" && a != b {
            let rate = show_exact(1.0 / (b - a).abs(), "Hz");
            rows.push(row(None, ["1/\u{394}".into(), String::new(), String::new(), rate]));
        }
        for data in &self.seen.picture.lanes {
            let setup = self.setup(data.lane);
            let column = |at: f64| {
                let part = (at - start) / (end - start);
                let place = (part * data.columns.len() as f64) as usize;
                data.columns.get(place).filter(|column| part >= 0.0 && !column.is_empty())
            };
            let exact = data.at_cursors.map(|sample| sample.map(|sample| setup.value(sample)));
            // Without single samples, show the extremes of the column.
            let text = |exact: Option<f64>, at: f64| match (exact, column(at)) {
                (Some(value), _) => show_exact(value, &setup.unit),
                (None, Some(column)) => {
                    let ends = [column.min, column.max].map(|end| setup.value(f64::from(end)));
                    ends.map(|end| Engineering::new(end, &setup.unit).to_string()).join("\u{2026}")
                }
                (None, None) => NOTHING.into(),
            };
            let difference = exact[0].zip(exact[1]).map(|(a, b)| show_exact(b - a, &setup.unit));
            let difference = difference.unwrap_or(NOTHING.into());
            let cells = [setup.label(data.lane), text(exact[0], a), text(exact[1], b), difference];
            rows.push(row(Some(data.lane), cells));
        }
        rows
    }

    /// The span of the measurements: extremes, mean and RMS cover the visible range, edges perhaps only its newest part.
    pub(crate) fn measured_words(&self) -> String {
        let Some(measured) = self.seen.picture.measured.first() else { return String::new() };
        let unit = self.seen.picture.axis_unit();
        let over = |samples: u64| Engineering::new(samples as f64 / self.seen.picture.rate_or_one(), unit);
        let mut words = match (over(measured.level_samples), over(measured.samples)) {
            (levels, _) if measured.level_samples == measured.samples => format!("of {levels}"),
            (levels, edges) => format!("of {levels}, edges of {edges}"),
        };
        let columns = self.quantity_columns();
        if columns.iter().any(|it| it.needs_reference()) {
            let against = self.controls.against.unwrap_or(measured.lane);
            words += &format!(", delay to {}", self.setup(against).label(against));
        }
        words
    }

    /// The columns of the measurement table: those selected for any of its channels.
    pub(crate) fn quantity_columns(&self) -> Vec<Quantity> {
        self.controls.measured.columns(self.seen.picture.measured.iter().map(|measured| measured.lane))
    }

    /// One row per channel with the quantities of the columns; empty without measurements.
    pub(crate) fn measurement_rows(&self) -> Vec<Row> {
        let columns = self.quantity_columns();
        let measured = self.seen.picture.measured.iter().map(|measured| {
            let setup = self.setup(measured.lane);
            let chosen = self.controls.measured.of(measured.lane);
            let cell = |&quantity: &Quantity| {
                if !chosen.has(quantity) {
                    return String::new();
                }
                let value = self.measured_value(measured, quantity);
                value.map_or(NOTHING.into(), |value| show_quantity(value, quantity, &setup.unit))
            };
            let label = [setup.label(measured.lane)];
            let cells = label.into_iter().chain(columns.iter().map(cell)).collect();
            Row { lane: Some(measured.lane), cells }
        });
        measured.collect()
    }

    /// Minimum, mean, maximum, deviation and number of the selected channel's measurements; empty if they are off.
    pub(crate) fn statistics_rows(&self) -> Vec<Row> {
        let lane = self.selected();
        let Some(statistics) = self.seen.statistics.get(lane).filter(|_| self.controls.show.statistics)
        else {
            return Vec::new();
        };
        if !self.seen.picture.measured.iter().any(|measured| measured.lane == lane) {
            return Vec::new();
        }
        let (columns, chosen) = (self.quantity_columns(), self.controls.measured.of(lane));
        let setup = self.setup(lane);
        let row = |name: &str, of: &dyn Fn(&Running) -> Option<f64>| {
            let cell = |&quantity: &Quantity| {
                if !chosen.has(quantity) {
                    return String::new();
                }
                let value = of(statistics.get(quantity));
                value.map_or(NOTHING.into(), |value| show_quantity(value, quantity, &setup.unit))
            };
            let cells = [format!("  {name}")].into_iter().chain(columns.iter().map(cell)).collect();
            Row { lane: Some(lane), cells }
        };
        let count = |&quantity: &Quantity| match chosen.has(quantity) {
            true => statistics.get(quantity).count().to_string(),
            false => String::new(),
        };
        let counts: Vec<String> = columns.iter().map(count).collect();
        let title = setup.label(lane);
        let title = [title].into_iter().chain(columns.iter().map(|_| String::new())).collect();
        let mut rows = vec![
            Row { lane: Some(lane), cells: title },
            row("min", &Running::min),
            row("mean", &Running::mean),
            row("max", &Running::max),
            row("\u{3c3}", &Running::deviation),
        ];
        let cells = ["  count".to_owned()].into_iter().chain(counts).collect();
        rows.push(Row { lane: Some(lane), cells });
        rows
    }

    /// Losses in a part of the picture (0.0 left edge, 1.0 right edge), and their places.
    pub(crate) fn lost_words(&self, part: std::ops::Range<f64>) -> String {
        let index = |part: f64| self.seen.picture.left_index + part * self.seen.picture.span_samples;
        let (from, to) = (index(part.start), index(part.end));
        let inside =
            self.seen.picture.gaps.iter().filter(|gap| gap.start as f64 <= to && gap.end as f64 >= from);
        let mut places: Vec<&str> = Vec::new();
        let mut samples = 0;
        for gap in inside {
            samples += gap.end - gap.start;
            let place = self.seen.gap_places.of(gap).unwrap_or("somewhere");
            if !places.contains(&place) {
                places.push(place);
            }
        }
        match places.is_empty() {
            true => "lost".into(),
            false => format!("lost: {}, {}", places.join(", "), Engineering::new(samples as f64, "S")),
        }
    }

    /// The trigger's rate, under [`TRIGGER_COLUMNS`]; empty without triggers.
    pub(crate) fn trigger_rows(&self) -> Vec<Row> {
        let Some(trigger) = self.seen.picture.trigger else { return Vec::new() };
        let lane = trigger.settings.lane;
        let (rate, unit) = (trigger.rate, self.seen.picture.axis_unit());
        let is_timed = unit == "s";
        let text = |value: Option<f64>, unit| value.map_or(NOTHING.into(), |value| show(value, unit));
        let cells = vec![
            format!("{} trigger", self.setup(lane).label(lane)),
            text(rate.rate_hz(), if is_timed { "Hz" } else { "/S" }),
            rate.per_minute().filter(|_| is_timed).map_or(NOTHING.into(), |rate| format!("{rate:.1} /min")),
            text(rate.intervals.mean(), unit),
            text(rate.intervals.deviation(), unit),
            rate.intervals.count().to_string(),
            rate.gaps.to_string(),
        ];
        vec![Row { lane: Some(lane), cells }]
    }

    /// The displayed value of a quantity: with AC coupling, without the mean.
    pub(crate) fn measured_value(&self, measured: &LaneMeasurements, quantity: Quantity) -> Option<f64> {
        let value = measured.set.get(quantity)?;
        if !self.controls.lanes.setup(measured.lane).is_ac {
            return Some(value);
        }
        match quantity {
            Quantity::Min | Quantity::Max | Quantity::Mean | Quantity::Base | Quantity::Top => {
                Some(value - measured.set.get(Quantity::Mean)?)
            }
            Quantity::Rms => measured.set.get(Quantity::AcRms),
            _ => Some(value),
        }
    }
}

fn show_quantity(value: f64, quantity: Quantity, unit: &str) -> String {
    match quantity.dimension() {
        // A unit prefix before a percent sign would be unusual.
        Dimension::Ratio if value.abs() < 0.01 => format!("{:.3} %", value * 100.0),
        Dimension::Ratio => show(value * 100.0, "%"),
        _ => show(value, unit_of(quantity, unit)),
    }
}

/// The unit of a quantity's plain value, where `unit` is the channel's.
pub(crate) fn unit_of(quantity: Quantity, unit: &str) -> &str {
    match quantity.dimension() {
        Dimension::Value => unit,
        Dimension::Time => "s",
        Dimension::Frequency => "Hz",
        Dimension::Ratio => "1",
        Dimension::Angle => "\u{b0}",
    }
}

/// Shows all digits that a sample and its scale can have.
fn show_exact(value: f64, unit: &str) -> String {
    Engineering::new(value, unit).digits(9).to_string()
}

fn show(value: f64, unit: &str) -> String {
    Engineering::new(value, unit).digits(4).to_string()
}

/// Columns of the trigger's rate.
pub(crate) const TRIGGER_COLUMNS: [&str; 7] =
    ["", "rate", "a minute", "interval", "\u{3c3}", "intervals", "across gaps"];
const NOTHING: &str = "\u{2013}";
