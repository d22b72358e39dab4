//! Stage of a graph file after the check.

use std::ops::Range;

use serde::de::{Deserialize, IntoDeserializer};
use toml::Spanned;
use toml::de::DeTable;

use super::draft::{DraftStage, unknown_field};
use crate::kind::{Fault, KindInfo, Kinds, ReadKind};
use crate::mistake::{Mistakes, nearest, plain_words};

/// `[[stage]]` of a graph file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileStage {
    /// Name in the graph: letters, digits, `_` and `-`.
    pub id: String,
    /// Name of its kind.
    pub kind: String,
    /// Parameters as written in the file.
    pub params: toml::Table,
    /// Processor for its thread.
    pub cpu: Option<usize>,
    /// Host that runs it, as named to `ssh`: `[USER@]HOST[:PORT]`. `None`: the host that runs the graph.
    pub host: Option<String>,
}

/// Stage of the file, as far as it is valid.
pub(super) struct CheckedStage<'a, 'k> {
    span: Range<usize>,
    pub(super) id: Option<Spanned<String>>,
    pub(super) kind_span: Range<usize>,
    pub(super) kind: Option<&'k KindInfo>,
    pub(super) ready: Option<Box<dyn ReadKind>>,
    params: Option<Spanned<DeTable<'a>>>,
    table: toml::Table,
    pub(super) cpu: Option<Spanned<usize>>,
    pub(super) host: Option<Spanned<String>>,
}

impl<'a, 'k> CheckedStage<'a, 'k> {
    pub(super) fn of(stage: DraftStage<'a>, kinds: &'k Kinds, mistakes: &mut Mistakes) -> Self {
        if let Some(id) = &stage.id {
            check_id(id, mistakes);
        }
        match (&stage.cpu, &stage.host) {
            (Some(cpu), None) => check_cpu(cpu, mistakes),
            // Only that host knows its processors.
            (_, Some(host)) => check_host(host, mistakes),
            (None, None) => {}
        }
        let kind = stage.kind.as_ref().and_then(|kind| find_kind(kind, kinds, mistakes));
        let kind_span = stage.kind.map_or(stage.span.clone(), |kind| kind.span());
        let mut checked = Self {
            params: stage.params,
            span: stage.span,
            id: stage.id,
            kind_span,
            kind,
            ready: None,
            table: toml::Table::new(),
            cpu: stage.cpu,
            host: stage.host,
        };
        if let Some(kind) = kind {
            checked.read_params(kind, mistakes);
        }
        checked
    }

    fn read_params(&mut self, kind: &KindInfo, mistakes: &mut Mistakes) {
        let Some(params) = &self.params else { return };
        let schema = kind.params();
        let known: Vec<&str> = schema.iter().map(|param| param.name).collect();
        let what = format!("'{}'", kind.name());
        // Reports every unknown field if the fields are known, not only the first one.
        let mut good = DeTable::new();
        for (key, value) in params.get_ref() {
            if kind.takes_any_param() || known.contains(&key.get_ref().as_ref()) {
                good.insert(key.clone(), value.clone());
            } else {
                let key = Spanned::new(key.span(), key.get_ref().to_string());
                unknown_field(&key, &what, &known, mistakes);
            }
        }
        let good = Spanned::new(params.span(), good);
        let read = (kind.from_file)(good.clone())
            .and_then(|ready| Ok((ready, toml::Table::deserialize(good.into_deserializer())?)));
        match read {
            Ok((ready, table)) => {
                if let Err(fault) = ready.check() {
                    self.add_fault(&fault, mistakes);
                }
                (self.ready, self.table) = (Some(ready), table);
            }
            Err(error) => match error.message().strip_prefix("missing field ") {
                Some(field) => {
                    let field = field.replace('`', "'");
                    mistakes.add(self.kind_span.clone(), format!("{what} needs {field}"));
                }
                None => {
                    let span = error.span().unwrap_or(params.span());
                    mistakes.add(span, format!("{what}: {}", plain_words(error.message())));
                }
            },
        }
    }

    pub(super) fn add_fault(&self, fault: &Fault, mistakes: &mut Mistakes) {
        let mut params = self.params.iter().flat_map(|params| params.get_ref());
        let place = params.find(|(key, _)| key.get_ref().as_ref() == fault.param);
        let span = place.map_or(self.kind_span.clone(), |(_, value)| value.span());
        let what = if fault.param.is_empty() { String::new() } else { format!("'{}' of ", fault.param) };
        mistakes.add(span, format!("{what}'{}': {}", self.name(), fault.message));
    }

    pub(super) fn name(&self) -> &str {
        self.id.as_ref().map_or("", |id| id.get_ref())
    }

    /// Host that runs it, if it is another one.
    pub(super) fn host_name(&self) -> Option<&str> {
        self.host.as_ref().map(|host| host.get_ref().as_str())
    }

    /// Position for messages about the whole stage.
    pub(super) fn place(&self) -> Range<usize> {
        self.id.as_ref().map_or(self.span.clone(), Spanned::span)
    }

    pub(super) fn into_file(self) -> FileStage {
        FileStage {
            id: self.name().to_owned(),
            kind: self.kind.map(|kind| kind.name().to_owned()).unwrap_or_default(),
            params: self.table,
            cpu: self.cpu.map(Spanned::into_inner),
            host: self.host.map(Spanned::into_inner),
        }
    }
}

fn check_id(id: &Spanned<String>, mistakes: &mut Mistakes) {
    let is_good = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if id.get_ref().is_empty() || !id.get_ref().chars().all(is_good) {
        mistakes
            .add(id.span(), format!("invalid id '{}'", id.get_ref()))
            .help("use letters, digits, '_' and '-'; a '.' separates an id from a port");
    }
}

fn find_kind<'k>(kind: &Spanned<String>, kinds: &'k Kinds, mistakes: &mut Mistakes) -> Option<&'k KindInfo> {
    let name = kind.get_ref();
    let found = kinds.get(name);
    if found.is_none() {
        let mistake = mistakes.add(kind.span(), format!("unknown kind '{name}'"));
        if let Some(meant) = nearest(name, kinds.iter().map(KindInfo::name)) {
            mistake.label(format!("did you mean '{meant}'?"));
        }
        let known: Vec<&str> = kinds.iter().map(KindInfo::name).collect();
        if !known.is_empty() {
            mistake.help(format!("known: {}", known.join(", ")));
        }
    }
    found
}

/// Checks a host name for `ssh`: no options, and a single word for a shell.
fn check_host(host: &Spanned<String>, mistakes: &mut Mistakes) {
    let text = host.get_ref();
    let (user, place) = match text.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, text.as_str()),
    };
    let (name, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, "")) => (name, None),
        Some((name, rest)) => (name, Some(rest.strip_prefix(':').unwrap_or(""))),
        None => match place.split_once(':').filter(|(_, port)| !port.contains(':')) {
            Some((name, port)) => (name, Some(port)),
            None => (place, None),
        },
    };
    let is_odd = |part: &str| {
        let letter = |c: char| c.is_whitespace() || c.is_control() || c == '/';
        part.is_empty() || part.starts_with('-') || part.contains(letter)
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if is_odd(name) || user.is_some_and(is_odd) || !port.is_none_or(is_port) {
        mistakes
            .add(host.span(), format!("invalid host '{text}'"))
            .help("write [USER@]HOST[:PORT] as for ssh; without 'host' the stage runs on this machine");
    }
}

fn check_cpu(cpu: &Spanned<usize>, mistakes: &mut Mistakes) {
    let there = processors();
    if !there.contains(cpu.get_ref()) {
        mistakes
            .add(cpu.span(), format!("this machine lends no processor {} to this process", cpu.get_ref()))
            .help(format!("known: {}", listed(&there)));
    }
}

#[cfg(target_os = "linux")]
pub(super) fn processors() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => (0..CpuSet::MAX_CPU).collect(),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn processors() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(usize::from(u16::MAX), usize::from)).collect()
}

/// Formats numbers like `0-3, 6`.
fn listed(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |(first, last): (usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_in_ranges() {
        assert_eq!(listed(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(listed(&[]), "");
        assert!(!processors().is_empty());
    }
}
