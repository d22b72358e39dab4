//! Edits the annotations in the text of metadata. Every other byte of it stays.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;

use grebe_frame::AnnotationEdit;
use serde_json::{Map, Value, json};

use crate::error::{Error, ProcessError};
use crate::sample_file::Annotation;

/// The annotations of one file of metadata.
pub(super) struct AnnotationList {
    text: String,
    /// The value of `annotations`, if there is one.
    list: Option<Range<usize>>,
    /// The value of `global`.
    global: Option<Range<usize>>,
    /// `core:offset`: the number of the file's first sample.
    offset: u64,
    entries: Vec<Entry>,
    /// Entries by content, to avoid duplicates.
    known: HashSet<String>,
    /// Namespaces of added fields.
    namespaces: BTreeSet<String>,
    is_changed: bool,
}

/// An annotation, as it stands in the text.
struct Entry {
    text: String,
    start: u64,
    count: Option<u64>,
    fields: Map<String, Value>,
}

impl AnnotationList {
    pub(super) fn parse(path: &Path, text: String) -> Result<Self, Error> {
        let begin = text.find('{').unwrap_or(0);
        let value: Value = serde_json::from_str(text[begin..].trim_end_matches('\0')).map_err(|error| {
            Error::Content { path: path.into(), what: format!("is not valid metadata: {error}") }
        })?;
        let bytes = text.as_bytes();
        let whole = value_at(bytes, begin);
        let list = member(bytes, whole.clone(), "annotations");
        let global = member(bytes, whole, "global").filter(|global| bytes[global.start] == b'{');
        let mut entries = Vec::new();
        if let Some(list) = list.clone().filter(|list| &text[list.clone()] != "null") {
            if bytes[list.start] != b'[' {
                return Err(Error::Field { path: path.into(), what: "annotations is not a list".to_owned() });
            }
            entries.extend(items(bytes, list).into_iter().map(|item| Entry::read(&text[item])));
        }
        let offset = value.pointer("/global/core:offset").and_then(Value::as_u64).unwrap_or(0);
        let known = entries.iter().map(Entry::said).collect();
        let (namespaces, is_changed) = (BTreeSet::new(), false);
        Ok(Self { text, list, global, offset, entries, known, namespaces, is_changed })
    }

    /// Applies a change; returns whether its annotation exists. Adding an existing one does nothing. `end` is the end
    /// of the data, where readers cut annotations.
    pub(super) fn apply(
        &mut self,
        edit: &AnnotationEdit<Annotation>,
        end: &dyn Fn() -> Option<u64>,
    ) -> Result<bool, Error> {
        match edit {
            AnnotationEdit::Add(annotation) => {
                let entry = Entry::new(annotation, self.offset);
                if !self.known.contains(&entry.said()) {
                    self.insert_at(None, entry)?;
                }
                Ok(true)
            }
            AnnotationEdit::Replace { before, after } => {
                let Some(place) = self.place_of(before, end) else { return Ok(false) };
                let was = self.take(place);
                let mut entry = Entry::new(after, self.offset);
                if (before.position, before.length_samples) == (after.position, after.length_samples) {
                    // The file keeps annotations that the reader cut to the data.
                    (entry.start, entry.count) = (was.start, was.count);
                }
                // An entry with the same start keeps its place.
                let place = (entry.start == was.start).then_some(place);
                self.insert_at(place, entry.written())?;
                Ok(true)
            }
            AnnotationEdit::Remove(annotation) => {
                let place = self.place_of(annotation, end);
                place.map(|place| self.take(place));
                Ok(place.is_some())
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// The text with the changes.
    pub(super) fn into_text(self) -> String {
        if !self.is_changed {
            return self.text;
        }
        let bytes = self.text.as_bytes();
        let begin = self.text.find('{').unwrap_or(0);
        let is_pretty = self.text[begin..].starts_with("{\n") || self.text[begin..].starts_with("{\r\n");
        let list = written(self.entries.iter().map(|entry| entry.text.as_str()), is_pretty);
        let mut changes: Vec<(Range<usize>, String)> = Vec::new();
        match self.list {
            Some(range) => changes.push((range, list)),
            None => {
                let is_empty = items(bytes, value_at(bytes, begin)).is_empty();
                let comma = if is_empty { "" } else { "," };
                let (line, space) = if is_pretty { ("\n  ", " ") } else { ("", "") };
                let text = format!("{line}\"annotations\":{space}{list}{comma}");
                changes.push((begin + 1..begin + 1, text));
            }
        }
        if let Some(global) = self.global {
            changes.extend(declared(bytes, global, &self.namespaces));
        }
        changes.sort_by_key(|(range, _)| range.start);
        let (mut text, mut at) = (String::with_capacity(self.text.len() + 256), 0);
        for (range, new) in changes {
            text.push_str(&self.text[at..range.start]);
            text.push_str(&new);
            at = range.end;
        }
        text.push_str(&self.text[at..]);
        text
    }

    /// The entry that a reader sees as this annotation: an exact match first, else one that is cut at the end of the data.
    fn place_of(&self, annotation: &Annotation, data_end: &dyn Fn() -> Option<u64>) -> Option<usize> {
        let Annotation { position, length_samples, fields } = annotation;
        let end = position + length_samples;
        let is_it = |entry: &Entry, is_end: &dyn Fn(Option<u64>) -> bool| {
            let stop = entry.count.map(|count| entry.start.saturating_add(count).saturating_sub(self.offset));
            entry.start.saturating_sub(self.offset) == *position && is_end(stop) && entry.fields == *fields
        };
        let exact = self.entries.iter().position(|entry| is_it(entry, &|stop| stop == Some(end)));
        let is_cut = |stop: Option<u64>| stop.is_none_or(|stop| stop > end);
        let cut = || self.entries.iter().position(|entry| is_it(entry, &is_cut));
        exact.or_else(|| cut().filter(|_| data_end() == Some(end)))
    }

    fn take(&mut self, place: usize) -> Entry {
        self.is_changed = true;
        let entry = self.entries.remove(place);
        let said = entry.said();
        if !self.entries.iter().any(|other| other.said() == said) {
            self.known.remove(&said);
        }
        entry
    }

    /// Inserts at the place, or after entries with the same start: SigMF requires order.
    fn insert_at(&mut self, place: Option<usize>, entry: Entry) -> Result<(), Error> {
        if self.entries.len() == ANNOTATIONS_MAX {
            let must = "a recording has a million at most: look for less";
            let (what, got) = ("number of annotations", (ANNOTATIONS_MAX + 1).to_string());
            return Err(ProcessError::Setting { what, got, must }.into());
        }
        let fields = entry.fields.keys().filter_map(|name| name.split_once(':'));
        let foreign = fields.map(|(namespace, _)| namespace).filter(|namespace| *namespace != "core");
        self.namespaces.extend(foreign.map(str::to_owned));
        self.known.insert(entry.said());
        self.is_changed = true;
        let is_sorted = self.entries.is_sorted_by_key(|entry| entry.start);
        if !is_sorted {
            self.entries.sort_by_key(|entry| entry.start);
        }
        let behind = self.entries.partition_point(|other| other.start <= entry.start);
        let place = place.filter(|_| is_sorted).unwrap_or(behind);
        self.entries.insert(place, entry);
        Ok(())
    }
}

impl Entry {
    fn read(text: &str) -> Self {
        let mut fields = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => fields,
            // Readers leave it out, and it stays.
            _ => Map::new(),
        };
        let mut number = |name| {
            let value: Option<Value> = fields.remove(name);
            // As a reader takes numbers in words.
            value.and_then(|value| {
                let words = value.as_str().and_then(|text| text.trim().parse::<f64>().ok());
                value.as_u64().or(value.as_f64().or(words).map(|number| number as u64))
            })
        };
        let (start, count) = (number(START).unwrap_or(0), number(COUNT));
        Self { text: text.to_owned(), start, count, fields }
    }

    fn new(annotation: &Annotation, offset: u64) -> Self {
        let Annotation { position, length_samples, fields } = annotation;
        let (start, count) = (position.saturating_add(offset), Some(*length_samples));
        Self { text: String::new(), start, count, fields: fields.clone() }.written()
    }

    fn written(self) -> Self {
        let mut all = Map::new();
        all.insert(START.to_owned(), self.start.into());
        all.extend(self.count.map(|count| (COUNT.to_owned(), count.into())));
        all.extend(self.fields.clone());
        Self { text: Value::from(all).to_string(), ..self }
    }

    /// The same for two that say the same.
    fn said(&self) -> String {
        let fields = Value::from(self.fields.clone());
        format!("{} {:?} {fields}", self.start, self.count)
    }
}

/// The list as a text, a line for each annotation in a file of lines.
fn written<'a>(entries: impl Iterator<Item = &'a str>, is_pretty: bool) -> String {
    let (open, between, close) = if is_pretty { ("\n    ", ",\n    ", "\n  ") } else { ("", ",", "") };
    let entries: Vec<&str> = entries.collect();
    if entries.is_empty() { "[]".to_owned() } else { format!("[{open}{}{close}]", entries.join(between)) }
}

/// Where and how the namespaces of fields are declared that are not yet.
fn declared(
    bytes: &[u8],
    global: Range<usize>,
    namespaces: &BTreeSet<String>,
) -> Option<(Range<usize>, String)> {
    let list = member(bytes, global.clone(), EXTENSIONS);
    let list = list.filter(|list| bytes[list.start] == b'[');
    let there: Vec<Value> =
        list.clone().and_then(|list| serde_json::from_slice(&bytes[list]).ok()).unwrap_or_default();
    let missing = namespaces.iter().filter(|name| !there.iter().any(|it| it["name"] == name.as_str()));
    let missing: Vec<String> = missing
        .map(|name| json!({ "name": name, "version": "1.0.0", "optional": true }).to_string())
        .collect();
    if missing.is_empty() || list.is_none() && member(bytes, global.clone(), EXTENSIONS).is_some() {
        return None;
    }
    let missing = missing.join(",");
    Some(match list {
        Some(list) => {
            let comma = if there.is_empty() { "" } else { "," };
            (list.start + 1..list.start + 1, format!("{missing}{comma}"))
        }
        None => {
            let comma = if items(bytes, global.clone()).is_empty() { "" } else { "," };
            (global.start + 1..global.start + 1, format!("\"{EXTENSIONS}\":[{missing}]{comma}"))
        }
    })
}

/// The range of the value that begins here, of valid JSON.
fn value_at(text: &[u8], begin: usize) -> Range<usize> {
    let (mut depth, mut at) = (0usize, begin);
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return begin..at,
            _ => {}
        }
        at += 1;
        if depth == 0 && matches!(text[begin], b'{' | b'[' | b'"') {
            return begin..at;
        }
    }
    begin..at
}

/// Behind a string.
fn string_end(text: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

/// The elements of a list, or the members of an object.
fn items(text: &[u8], of: Range<usize>) -> Vec<Range<usize>> {
    let (mut items, mut depth, mut begin, mut at) = (Vec::new(), 0usize, of.start + 1, of.start + 1);
    while at < of.end {
        let is_end = at + 1 == of.end;
        match text[at] {
            b'"' => at = string_end(text, at) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if !is_end => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                items.push(trimmed(text, begin..at));
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    items.push(trimmed(text, begin..of.end.saturating_sub(1).max(begin)));
    items.retain(|item| !item.is_empty());
    items
}

/// The value of a member: the last of this name, as readers take it.
fn member(text: &[u8], of: Range<usize>, name: &str) -> Option<Range<usize>> {
    items(text, of).into_iter().rev().find_map(|item| {
        let key = item.start..string_end(text, item.start);
        let is_it = serde_json::from_slice::<String>(&text[key.clone()]).is_ok_and(|key| key == name);
        let colon = key.end + text[key.end..item.end].iter().position(|byte| *byte == b':')?;
        is_it.then(|| trimmed(text, colon + 1..item.end))
    })
}

fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = part.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(part.len());
    let end = part.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(start, |last| last + 1);
    range.start + start..range.start + end
}

const START: &str = "core:sample_start";
const COUNT: &str = "core:sample_count";
const EXTENSIONS: &str = "core:extensions";
/// As many as a recorder writes.
const ANNOTATIONS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests;
