//! Results, for people as a line or a table and for programs as JSON.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::canary::Reading;
use crate::stats::Spread;

/// What a bench tells while it runs.
#[derive(Debug)]
pub enum Progress<'a> {
    /// What is measured now.
    Doing(&'a str),
    /// A result.
    Row(&'a Row),
}

/// How a bench tells it.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(Progress<'_>);

/// One result. Serialized, it is what was measured, with all digits; as text it is a title and cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    title: String,
    cells: Vec<Cell>,
    json: Value,
}

#[derive(Debug, Clone, PartialEq)]
struct Cell {
    column: &'static str,
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Number,
    Text,
}

/// Something that is asked of a result.
#[derive(Debug, Serialize)]
struct Goal {
    name: &'static str,
    bound: String,
    measured: String,
    is_met: bool,
}

impl Row {
    /// A row without cells. Those with the same title and columns share a table.
    pub(crate) fn new(title: impl Into<String>, measured: &impl Serialize) -> Self {
        // Fails only for maps whose keys are no strings, which nothing here has.
        let json = serde_json::to_value(measured).unwrap_or_default();
        Self { title: title.into(), cells: Vec::new(), json }
    }

    /// Something that could not be measured here.
    pub(crate) fn left_out(what: &str, why: &str) -> Self {
        let row = Self::new("", &json!({ "kind": "left_out", "what": what, "why": why }));
        row.name("left out", what).text("why", why)
    }

    /// A cell that says what was measured.
    pub(crate) fn name(self, column: &'static str, text: impl ToString) -> Self {
        self.add(column, text.to_string(), Kind::Name)
    }

    /// A cell that says how much; the column is its unit or what is counted. `-` where there is nothing to say.
    pub(crate) fn cell(self, column: &'static str, text: impl ToString) -> Self {
        self.add(column, text.to_string(), Kind::Number)
    }

    /// A cell of words, which need no column to be understood. `-` where there is nothing to say.
    pub(crate) fn text(self, column: &'static str, text: impl ToString) -> Self {
        self.add(column, text.to_string(), Kind::Text)
    }

    fn add(mut self, column: &'static str, text: String, kind: Kind) -> Self {
        self.cells.push(Cell { column, text, kind });
        self
    }

    /// The round trips of the canary before and after.
    pub(crate) fn machine(self, machine: Option<(Reading, Reading)>) -> Self {
        let text = machine.map(|(before, after)| {
            let (before, after) = (before.round_trip_ns, after.round_trip_ns);
            format!("{before:.0}-{after:.0}")
        });
        self.cell("ns between cores", text.unwrap_or_else(|| "-".to_owned()))
    }

    /// With something that is asked of it.
    pub(crate) fn goal(
        mut self,
        name: &'static str,
        bound: impl ToString,
        measured: String,
        is_met: bool,
    ) -> Self {
        let goal = json!(Goal { name, bound: bound.to_string(), measured, is_met });
        if let Some(fields) = self.json.as_object_mut() {
            let goals = fields.entry("goals").or_insert_with(|| json!([]));
            goals.as_array_mut().into_iter().for_each(|goals| goals.push(goal.clone()));
        }
        self
    }

    /// What this row and those of the same table are about.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The row as a line of text.
    pub fn line(&self) -> String {
        let mut line = String::new();
        for cell in self.cells.iter().filter(|cell| cell.kind == Kind::Name) {
            let _ = write!(line, "{:<9} ", cell.text);
        }
        let cells = self.cells.iter().filter(|cell| cell.text != "-").filter_map(|cell| match cell.kind {
            Kind::Name => None,
            Kind::Number => Some(format!("{} {}", cell.text, cell.column)),
            Kind::Text => Some(cell.text.clone()),
        });
        let goals = self.goals().map(|goal| {
            let met = if is_met(goal) { "met" } else { "MISSED" };
            format!("{} {}: {met}", text(goal, "name"), text(goal, "bound"))
        });
        line + &cells.chain(goals).collect::<Vec<_>>().join(", ")
    }

    fn goals(&self) -> impl Iterator<Item = &Value> {
        self.json.get("goals").and_then(Value::as_array).into_iter().flatten()
    }

    fn names(&self) -> String {
        let names = self.cells.iter().filter(|cell| cell.kind == Kind::Name).map(|cell| cell.text.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    fn has_columns_of(&self, other: &Row) -> bool {
        let columns = |row: &Row| row.cells.iter().map(|cell| cell.column).collect::<Vec<_>>();
        self.title == other.title && columns(self) == columns(other)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// The rows as Markdown tables, one per title, and a table of what is asked of them.
pub fn markdown(rows: &[Row]) -> String {
    let mut out = String::new();
    for rows in rows.chunk_by(Row::has_columns_of) {
        table(&mut out, rows);
    }
    let mut goals = rows.iter().flat_map(|row| row.goals().map(move |goal| (row, goal))).peekable();
    if goals.peek().is_some() {
        out += "\n| goal | of | bound | measured | |\n|---|---|---|---|---|\n";
    }
    for (row, goal) in goals {
        let met = if is_met(goal) { "met" } else { "**not met**" };
        let [name, bound, measured] = ["name", "bound", "measured"].map(|field| text(goal, field));
        let _ = writeln!(out, "| {name} | {} | {bound} | {measured} | {met} |", row.names());
    }
    out
}

fn table(out: &mut String, rows: &[Row]) {
    let Some(first) = rows.first() else { return };
    if !out.is_empty() {
        out.push('\n');
    }
    if !first.title.is_empty() {
        let _ = writeln!(out, "{}\n", first.title);
    }
    let line =
        |cells: &mut dyn Iterator<Item = &str>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    *out += &line(&mut first.cells.iter().map(|cell| cell.column));
    for cell in &first.cells {
        *out += if cell.kind == Kind::Number { "|--:" } else { "|---" };
    }
    *out += "|\n";
    for row in rows {
        *out += &line(&mut row.cells.iter().map(|cell| cell.text.as_str()));
    }
}

fn text<'a>(goal: &'a Value, field: &str) -> &'a str {
    goal.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_met(goal: &Value) -> bool {
    goal.get("is_met") == Some(&Value::Bool(true))
}

/// Three digits.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `median (low-high)` with three digits each; the range only where there is one.
pub(crate) fn range(of: &Spread) -> String {
    let [low, median, high] = [of.low, of.median, of.high].map(digits);
    if low == high { median } else { format!("{median} ({low}-{high})") }
}

/// A share from 0 to 1 as a percentage.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(title: &str, is_met: bool) -> Row {
        let measured = format!("{} s", digits(2.351));
        let row = Row::new(title, &json!({ "seconds": 2.351 })).name("link", "B").cell("s", "2.35");
        row.cell("lost", "-").goal("time", "<= 2.5 s", measured, is_met)
    }

    #[test]
    fn a_line_has_names_cells_and_what_was_asked() {
        assert_eq!(row("Links", true).line(), "B         2.35 s, time <= 2.5 s: met");
        assert!(row("Links", false).line().ends_with("time <= 2.5 s: MISSED"));
        assert_eq!(Row::left_out("scp", "no sshd").line(), "scp       no sshd");
    }

    #[test]
    fn rows_of_a_title_share_a_table_and_goals_have_one_of_their_own() {
        let rows =
            [row("Links", true), row("Links", false), row("Shares", true), Row::left_out("scp", "no sshd")];
        let table = markdown(&rows);
        assert_eq!(table.matches("| link | s | lost |\n|---|--:|--:|\n").count(), 2, "{table}");
        assert!(table.contains("Links\n\n| link") && table.contains("| scp | no sshd |"), "{table}");
        assert!(table.contains("| time | B | <= 2.5 s | 2.35 s | **not met** |"), "{table}");
    }

    #[test]
    fn programs_read_what_was_measured_with_its_goals() {
        let json = serde_json::to_value(row("Links", false)).unwrap();
        assert_eq!(json["seconds"], 2.351);
        assert_eq!(json["goals"][0]["is_met"], false);
    }
}
