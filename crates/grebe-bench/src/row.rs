//! Results: lines and tables as text, and JSON.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::canary::Reading;

/// Progress of a bench.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The present measurement.
    Doing(&'a str),
    /// A result.
    Row(&'a Row),
}

/// Receives the progress of a bench.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(Progress<'_>);

/// One result. As JSON it has all digits; as text a title and cells.
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
    /// A number, with the minimum and maximum of several measurements in parentheses.
    Range,
    Text,
}

impl Cell {
    fn has_range(&self) -> bool {
        self.kind == Kind::Range && self.text.contains('(')
    }
}

impl Row {
    /// A row without cells. Rows with the same title and columns share a table.
    pub(crate) fn new(title: impl Into<String>, measured: &impl Serialize) -> Self {
        // Fails only for maps with keys other than strings, which no row has.
        let json = serde_json::to_value(measured).unwrap_or_default();
        Self { title: title.into(), cells: Vec::new(), json }
    }

    /// A measurement that was impossible here.
    pub(crate) fn left_out(what: &str, why: &str) -> Self {
        let row = Self::new("", &json!({ "kind": "left_out", "what": what, "why": why }));
        row.name("left out", what).text("why", why)
    }

    /// A cell that names the measurement.
    pub(crate) fn name(self, column: &'static str, text: impl ToString) -> Self {
        self.add(column, text, Kind::Name)
    }

    /// A cell with a quantity, whose column is the unit. Omitted without a text.
    pub(crate) fn cell(self, column: &'static str, text: impl ToString) -> Self {
        self.add(column, text, Kind::Number)
    }

    /// The same for a text that may be a range.
    pub(crate) fn range(self, column: &'static str, text: impl ToString) -> Self {
        self.add(column, text, Kind::Range)
    }

    /// A cell of text that needs no column.
    pub(crate) fn text(self, column: &'static str, text: impl ToString) -> Self {
        self.add(column, text, Kind::Text)
    }

    fn add(mut self, column: &'static str, text: impl ToString, kind: Kind) -> Self {
        let text = text.to_string();
        let text = if text.is_empty() { "-".to_owned() } else { text };
        self.cells.push(Cell { column, text, kind });
        self
    }

    /// The canary's round trips before and after, with a comment on the change.
    pub(crate) fn machine(self, machine: Option<(Reading, Reading)>, between: &str) -> Self {
        let text = machine.map_or(String::new(), |(before, after)| {
            format!("{:.0}-{:.0}{between}", before.round_trip_ns, after.round_trip_ns)
        });
        self.cell("ns between cores", text)
    }

    /// Adds a goal.
    pub(crate) fn goal(
        mut self,
        name: &str,
        bound: impl ToString,
        measured: impl ToString,
        is_met: bool,
    ) -> Self {
        let (bound, measured) = (bound.to_string(), measured.to_string());
        let goal = json!({ "name": name, "bound": bound, "measured": measured, "is_met": is_met });
        let goals = self.json.as_object_mut().map(|fields| fields.entry("goals").or_insert(json!([])));
        goals.and_then(Value::as_array_mut).into_iter().for_each(|goals| goals.push(goal.clone()));
        self
    }

    /// Subject of this row and its table.
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
            Kind::Number | Kind::Range => Some(format!("{} {}", cell.text, cell.column)),
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

/// The rows as Markdown tables, one per title, and a table of goals.
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
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let column = |(at, cell): (usize, &Cell)| {
        let has_range = rows.iter().any(|row| row.cells[at].has_range());
        format!("{}{}", cell.column, if has_range { " (range)" } else { "" })
    };
    let columns: Vec<String> = first.cells.iter().enumerate().map(column).collect();
    *out += &line(columns.iter().map(String::as_str).collect());
    for cell in &first.cells {
        *out += if matches!(cell.kind, Kind::Number | Kind::Range) { "|--:" } else { "|---" };
    }
    *out += "|\n";
    for row in rows {
        *out += &line(row.cells.iter().map(|cell| cell.text.as_str()).collect());
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
        row.cell("lost", "").goal("time", "<= 2.5 s", measured, is_met)
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
    fn results_and_goals_are_in_json() {
        let json = serde_json::to_value(row("Links", false)).unwrap();
        assert_eq!(json["seconds"], 2.351);
        assert_eq!(json["goals"][0]["is_met"], false);
    }
}
