//! First pass over a graph file: its tables, and the type of each field.

use std::ops::Range;

use serde::de::{Deserialize, IntoDeserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::mistake::{Mistakes, nearest, plain_words};
use crate::quantity::{Count, SizeBytes};

/// Contents of the file with their positions. Missing or wrong items are `None` and were reported.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    pub(super) stages: Vec<DraftStage<'a>>,
    pub(super) edges: Vec<DraftEdge>,
    pub(super) hosts: Vec<DraftHost>,
    /// Whether every table was understood; otherwise an apparently missing one may be misspelt.
    pub(super) is_whole: bool,
}

#[derive(Debug)]
pub(super) struct DraftStage<'a> {
    pub(super) span: Range<usize>,
    pub(super) id: Option<Spanned<String>>,
    pub(super) kind: Option<Spanned<String>>,
    pub(super) params: Option<Spanned<DeTable<'a>>>,
    pub(super) cpu: Option<Spanned<usize>>,
    pub(super) host: Option<Spanned<String>>,
}

#[derive(Debug)]
pub(super) struct DraftHost {
    pub(super) name: Option<Spanned<String>>,
    pub(super) restart: Option<Spanned<String>>,
}

#[derive(Debug)]
pub(super) struct DraftEdge {
    pub(super) from: Option<Spanned<String>>,
    pub(super) to: Option<Spanned<String>>,
    pub(super) capacity: Option<Spanned<usize>>,
    pub(super) capacity_bytes: Option<Spanned<usize>>,
    pub(super) policy: Option<Spanned<String>>,
    pub(super) fuse: Option<Spanned<bool>>,
}

pub(super) fn read<'a>(text: &'a str, mistakes: &mut Mistakes) -> Draft<'a> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let before = text.get(..span.start).unwrap_or_default();
        let mistake = mistakes.add(span, error.message());
        // A path of Windows.
        if before.lines().next_back().is_some_and(|line| line.contains("\"") && line.contains('\\')) {
            mistake.help("between double quotes a backslash begins an escape: write '...' around a path");
        }
    }
    if !errors.is_empty() {
        // Further messages would concern misread text.
        return Draft::default();
    }
    let mut draft = Draft::default();
    let mut fields = Fields::of(table, "a graph file");
    for table in fields.tables("stage", mistakes) {
        draft.stages.push(stage(table, mistakes));
    }
    for table in fields.tables("edge", mistakes) {
        draft.edges.push(edge(table, mistakes));
    }
    for table in fields.tables("host", mistakes) {
        draft.hosts.push(host(table, mistakes));
    }
    fields.refuse_the_rest(&["stage", "edge", "host"], mistakes);
    draft.is_whole = mistakes.is_empty();
    draft
}

fn stage<'a>(table: Spanned<DeTable<'a>>, mistakes: &mut Mistakes) -> DraftStage<'a> {
    let span = table.span();
    let mut fields = Fields::of(table, "a stage");
    let stage = DraftStage {
        id: fields.required("id", string, mistakes),
        kind: fields.required("kind", string, mistakes),
        params: match fields.take("params") {
            None => Some(Spanned::new(span.clone(), DeTable::new())),
            Some(value) => params(value, mistakes),
        },
        cpu: fields.optional("cpu", whole, mistakes),
        host: fields.optional("host", string, mistakes),
        span,
    };
    fields.refuse_the_rest(&["id", "kind", "params", "cpu", "host"], mistakes);
    stage
}

fn edge(table: Spanned<DeTable<'_>>, mistakes: &mut Mistakes) -> DraftEdge {
    let mut fields = Fields::of(table, "an edge");
    let edge = DraftEdge {
        from: fields.required("from", string, mistakes),
        to: fields.required("to", string, mistakes),
        capacity: fields.optional("capacity", whole, mistakes),
        capacity_bytes: fields.optional("capacity_bytes", size, mistakes),
        policy: fields.optional("policy", string, mistakes),
        fuse: fields.optional("fuse", boolean, mistakes),
    };
    fields.refuse_the_rest(&["from", "to", "capacity", "capacity_bytes", "policy", "fuse"], mistakes);
    edge
}

fn host(table: Spanned<DeTable<'_>>, mistakes: &mut Mistakes) -> DraftHost {
    let mut fields = Fields::of(table, "a host");
    let host = DraftHost {
        name: fields.required("name", string, mistakes),
        restart: fields.optional("restart", string, mistakes),
    };
    fields.refuse_the_rest(&["name", "restart"], mistakes);
    host
}

fn params<'a>(value: Spanned<DeValue<'a>>, mistakes: &mut Mistakes) -> Option<Spanned<DeTable<'a>>> {
    let span = value.span();
    match value.into_inner() {
        DeValue::Table(table) => Some(Spanned::new(span, table)),
        other => {
            wrong_type(span, "params", "a table, for example { rate = \"25M\" }", &other, mistakes);
            None
        }
    }
}

/// Fields of a table that were not read yet.
struct Fields<'a> {
    span: Range<usize>,
    what: &'static str,
    left: Vec<(Spanned<String>, Spanned<DeValue<'a>>)>,
}

impl<'a> Fields<'a> {
    fn of(table: Spanned<DeTable<'a>>, what: &'static str) -> Self {
        let span = table.span();
        let owned = |(key, value): (Spanned<std::borrow::Cow<'a, str>>, _)| {
            (Spanned::new(key.span(), key.into_inner().into_owned()), value)
        };
        Self { span, what, left: table.into_inner().into_iter().map(owned).collect() }
    }

    fn take(&mut self, name: &str) -> Option<Spanned<DeValue<'a>>> {
        let at = self.left.iter().position(|(key, _)| key.get_ref() == name)?;
        Some(self.left.remove(at).1)
    }

    fn required<T>(
        &mut self,
        name: &str,
        read: fn(&str, Spanned<DeValue<'a>>, &mut Mistakes) -> Option<Spanned<T>>,
        mistakes: &mut Mistakes,
    ) -> Option<Spanned<T>> {
        match self.take(name) {
            Some(value) => read(name, value, mistakes),
            None => {
                mistakes.add(self.span.clone(), format!("{} needs '{name}'", self.what));
                None
            }
        }
    }

    fn optional<T>(
        &mut self,
        name: &str,
        read: fn(&str, Spanned<DeValue<'a>>, &mut Mistakes) -> Option<Spanned<T>>,
        mistakes: &mut Mistakes,
    ) -> Option<Spanned<T>> {
        self.take(name).and_then(|value| read(name, value, mistakes))
    }

    fn tables(&mut self, name: &str, mistakes: &mut Mistakes) -> Vec<Spanned<DeTable<'a>>> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let span = value.span();
        let mut tables = Vec::new();
        match value.into_inner() {
            DeValue::Array(array) => {
                for element in array {
                    let span = element.span();
                    match element.into_inner() {
                        DeValue::Table(table) => tables.push(Spanned::new(span, table)),
                        other => wrong_type(span, name, "a table", &other, mistakes),
                    }
                }
            }
            DeValue::Table(_) => {
                mistakes
                    .add(span, format!("[{name}] is one table, where a list of them stands"))
                    .help(format!("write [[{name}]]"));
            }
            other => wrong_type(span, name, &format!("a list of tables: [[{name}]]"), &other, mistakes),
        }
        tables
    }

    fn refuse_the_rest(self, known: &[&str], mistakes: &mut Mistakes) {
        for (key, _) in self.left {
            unknown_field(&key, self.what, known, mistakes);
        }
    }
}

pub(super) fn unknown_field(key: &Spanned<String>, what: &str, known: &[&str], mistakes: &mut Mistakes) {
    let name = key.get_ref();
    let mistake = mistakes.add(key.span(), format!("{what} has no '{name}'"));
    if let Some(meant) = nearest(name, known.iter().copied()) {
        mistake.label(format!("did you mean '{meant}'?"));
    }
    match known {
        [] => mistake.help("it has no parameters"),
        _ => mistake.help(format!("it has {}", known.join(", "))),
    };
}

fn string(name: &str, value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Spanned<String>> {
    let span = value.span();
    match value.into_inner() {
        DeValue::String(text) => Some(Spanned::new(span, text.into_owned())),
        other => {
            wrong_type(span, name, "text in quotes", &other, mistakes);
            None
        }
    }
}

fn boolean(name: &str, value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Spanned<bool>> {
    let span = value.span();
    match value.into_inner() {
        DeValue::Boolean(value) => Some(Spanned::new(span, value)),
        other => {
            wrong_type(span, name, "true or false", &other, mistakes);
            None
        }
    }
}

/// Positive number of bytes: a number, or text such as "64K".
fn size(name: &str, value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Spanned<usize>> {
    let span = value.span();
    let read = SizeBytes::deserialize(value.into_deserializer());
    match read {
        Ok(SizeBytes(0)) => {
            mistakes.add(span, "a queue of 0 bytes holds nothing");
            None
        }
        Ok(size) => Some(Spanned::new(span, size.0)),
        Err(error) => {
            mistakes.add(span, format!("'{name}': {}", plain_words(error.message())));
            None
        }
    }
}

/// Whole number, or text such as "1k".
fn whole(name: &str, value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes) -> Option<Spanned<usize>> {
    let span = value.span();
    let count = match value.get_ref() {
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().and_then(|n| usize::try_from(n).ok())
        }
        DeValue::String(text) => text.parse::<Count>().ok().and_then(|count| usize::try_from(count.0).ok()),
        other => {
            wrong_type(span, name, "a whole number", other, mistakes);
            return None;
        }
    };
    if count.is_none() {
        mistakes.add(span.clone(), format!("'{name}' must be a whole number from 0 on"));
    }
    count.map(|count| Spanned::new(span, count))
}

fn wrong_type(span: Range<usize>, name: &str, must: &str, got: &DeValue<'_>, mistakes: &mut Mistakes) {
    let article = if got.type_str().starts_with(['a', 'i']) { "an" } else { "a" };
    mistakes
        .add(span, format!("'{name}' must be {must}"))
        .label(format!("this is {article} {}", got.type_str()));
}
