//! Annotations as comma-separated values: a line of names, then a line for each.

use std::fmt::Write;

use grebe_frame::StreamAnnotation;
use serde_json::{Map, Value};

use super::fields::{HIGH, LABEL, LOW, number};
use super::times::Times;
use crate::sample_file::Annotation;

/// Columns of text with their fields.
const TEXTS: [(&str, &str); 5] = [
    ("label", LABEL),
    ("comment", "core:comment"),
    ("color", StreamAnnotation::COLOR),
    ("generator", "core:generator"),
    ("uuid", "core:uuid"),
];
const NUMBERS: [(&str, &str); 2] = [("freq_lower_edge_hz", LOW), ("freq_upper_edge_hz", HIGH)];

/// The annotations; `None` for those that begin before the recording. Places are samples where there are such
/// columns, else seconds; other columns are ignored.
///
/// # Errors
/// One line for a person.
pub(super) fn read(text: &str, times: &Times<'_>) -> Result<Vec<Option<Annotation>>, String> {
    let mut lines = records(text);
    let head = lines.next().ok_or("is empty: the first line has the names of its columns")?.1;
    let head: Vec<String> = head.iter().map(|name| name.trim().to_ascii_lowercase()).collect();
    let column = |names: &[&str]| head.iter().position(|name| names.contains(&name.as_str()));
    let start = column(&["sample_start", "position"]);
    let count = column(&["sample_count", "samples"]);
    let start_s = column(&["start_s", "seconds", "start"]);
    let end_s = column(&["end_s", "end", "stop"]);
    let duration_s = column(&["duration_s", "duration"]);
    if start.or(start_s).is_none() {
        return Err("has no column sample_start or start_s: the first line names them".into());
    }
    let texts = TEXTS.map(|(name, field)| (column(&[name]), field));
    let numbers = NUMBERS.map(|(name, field)| (column(&[name]), field));
    // As grebe find has it.
    let event = column(&["event"]).filter(|_| column(&["label"]).is_none());
    let other = column(&["other"]);
    let mut all = Vec::new();
    for (line_number, fields) in lines {
        let wrong = |what: &str| format!("line {line_number}: {what}");
        let cell = |column: Option<usize>| column.and_then(|at| fields.get(at)).map_or("", String::as_str);
        let whole = |column, what: &str| match cell(column).trim() {
            "" => Ok(None),
            text => text
                .parse::<u64>()
                .map(Some)
                .map_err(|_| wrong(&format!("{what} {text:?} is not an integer"))),
        };
        let time = |column, what: &str| match cell(column).trim() {
            "" => Ok(None),
            text => {
                let time = text.parse::<f64>().ok().filter(|time| time.is_finite());
                time.map(Some).ok_or_else(|| wrong(&format!("{what} {text:?} is not a time in seconds")))
            }
        };
        let mut said = match cell(other).trim() {
            "" => Map::new(),
            text => serde_json::from_str(text).map_err(|_| wrong("other is not a JSON object"))?,
        };
        // Its place has columns of its own.
        said.retain(|name, _| name != "core:sample_start" && name != "core:sample_count");
        for (name, field) in texts.iter().copied().chain([(event, LABEL)]) {
            let text = cell(name);
            if !text.is_empty() {
                said.insert(field.to_owned(), text.into());
            }
        }
        for (name, field) in numbers {
            let text = cell(name).trim();
            if !text.is_empty() {
                let value =
                    number(text).ok_or_else(|| wrong(&format!("{text:?} is not a frequency in hertz")))?;
                said.insert(field.to_owned(), value);
            }
        }
        let (begin_s, end) = (time(start_s, "start_s")?, time(end_s, "end_s")?);
        let lasts = time(duration_s, "duration_s")?;
        let position = match whole(start, "sample_start")? {
            Some(position) => Some(position),
            None => {
                let begin_s = begin_s.ok_or_else(|| wrong("neither sample_start nor start_s is given"))?;
                if !times.has_rate() {
                    return Err(wrong("a time, and the sample rate is unknown: give sample_start"));
                }
                times.position(begin_s)
            }
        };
        let length = whole(count, "sample_count")?;
        let end = end.or(begin_s.zip(lasts).map(|(begin, lasts)| begin + lasts));
        all.push(position.map(|position| Annotation {
            position,
            length_samples: length.unwrap_or_else(|| {
                let end = end.and_then(|end| times.position(end)).unwrap_or(position);
                end.saturating_sub(position)
            }),
            fields: said,
        }));
    }
    Ok(all)
}

pub(super) fn write(annotations: &[Annotation], times: &Times<'_>) -> String {
    let mut text = String::from("sample_start,sample_count,start_s,end_s");
    for (name, _) in NUMBERS.iter().chain(&TEXTS) {
        let _ = write!(text, ",{name}");
    }
    text.push_str(",other\n");
    for annotation in annotations {
        let Annotation { position, length_samples, fields } = annotation;
        let mut left = fields.clone();
        let begin = times.begin(*position).unwrap_or_default();
        let end = times.end(*position, *length_samples).unwrap_or_default();
        let _ = write!(text, "{position},{length_samples},{begin},{end}");
        for (_, field) in NUMBERS {
            let value = left.remove(field);
            let said =
                value.as_ref().filter(|value| value.is_number()).map_or(String::new(), Value::to_string);
            let _ = write!(text, ",{said}");
            keep_other(&mut left, field, value.filter(|value| !value.is_number()));
        }
        for (_, field) in TEXTS {
            let value = left.remove(field);
            // An empty cell is none.
            let is_plain = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
            let said =
                value.as_ref().filter(|value| is_plain(value)).and_then(Value::as_str).unwrap_or_default();
            let _ = write!(text, ",{}", quoted(said));
            keep_other(&mut left, field, value.filter(|value| !is_plain(value)));
        }
        let other = if left.is_empty() { String::new() } else { Value::from(left).to_string() };
        let _ = writeln!(text, ",{}", quoted(&other));
    }
    text
}

fn keep_other(left: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    left.extend(value.map(|value| (field.to_owned(), value)));
}

fn quoted(text: &str) -> String {
    let is_plain = !text.contains([',', '"', '\n', '\r']) && text.trim() == text;
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// The lines with their numbers from 1, and their fields; empty lines are skipped. Quotes protect commas and line ends.
fn records(text: &str) -> impl Iterator<Item = (usize, Vec<String>)> {
    let (mut letters, mut line) = (text.chars().peekable(), 0);
    std::iter::from_fn(move || {
        loop {
            letters.peek()?;
            line += 1;
            let begin = line;
            let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
            while let Some(letter) = letters.next() {
                match letter {
                    '"' if is_quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
                    '"' if is_quoted || field.is_empty() => is_quoted = !is_quoted,
                    ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
                    '\r' if !is_quoted && letters.peek().is_none_or(|next| *next == '\n') => {}
                    '\n' if !is_quoted => break,
                    letter => {
                        line += usize::from(letter == '\n');
                        field.push(letter);
                    }
                }
            }
            fields.push(field);
            if fields != [""] {
                return Some((begin, fields));
            }
        }
    })
}
