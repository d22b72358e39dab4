//! Whether what stands in a graph file makes a graph.

use std::collections::HashMap;
use std::ops::Range;

use serde::de::{Deserialize, IntoDeserializer};
use toml::Spanned;
use toml::de::DeTable;

use super::draft::{Draft, DraftEdge, DraftStage, unknown_field};
use super::mistake::{Mistakes, nearest};
use super::processor::check_cpu;
use super::whole::{check_channels, refuse_cycles, refuse_split_crews};
use super::{CAPACITY_BATCHES, FileEdge, FileStage, GraphFile, Link};
use crate::kind::Ready;
use crate::{Fault, KindInfo, Kinds, Policy};

/// Checks everything that can be checked without opening anything. What it answers is good where no mistake was added.
pub(super) fn check(draft: Draft<'_>, kinds: &Kinds, mistakes: &mut Mistakes) -> GraphFile {
    if draft.stages.is_empty() && draft.edges.is_empty() && mistakes.is_empty() {
        mistakes.add(0..0, "there is no [[stage]] in this file");
    }
    let stages: Vec<Checked<'_, '_>> =
        draft.stages.into_iter().map(|stage| Checked::of(stage, kinds, mistakes)).collect();
    refuse_twins(&stages, mistakes);
    refuse_double_claims(&stages, mistakes);
    let edges: Vec<Joined> = draft.edges.iter().filter_map(|edge| join(edge, &stages, mistakes)).collect();
    refuse_double_inputs(&edges, &stages, mistakes);
    if draft.is_whole && edges.len() == draft.edges.len() {
        refuse_open_ends(&edges, &stages, mistakes);
    }
    refuse_cycles(&edges, &stages, mistakes);
    refuse_split_crews(&edges, &stages, mistakes);
    if mistakes.is_empty() {
        check_channels(&edges, &stages, mistakes);
    }
    let edges = edges.iter().map(|edge| edge.to_file(&stages)).collect();
    GraphFile { stages: stages.into_iter().map(Checked::into_file).collect(), edges }
}

/// A stage of the file, as far as it is good.
pub(super) struct Checked<'a, 'k> {
    span: Range<usize>,
    pub(super) id: Option<Spanned<String>>,
    /// Where its kind is written.
    kind_span: Range<usize>,
    kind: Option<&'k KindInfo>,
    pub(super) ready: Option<Box<dyn Ready>>,
    params: Option<Spanned<DeTable<'a>>>,
    table: toml::Table,
    pub(super) cpu: Option<Spanned<usize>>,
}

impl<'a, 'k> Checked<'a, 'k> {
    fn of(stage: DraftStage<'a>, kinds: &'k Kinds, mistakes: &mut Mistakes) -> Self {
        if let Some(id) = &stage.id {
            check_id(id, mistakes);
        }
        if let Some(cpu) = &stage.cpu {
            check_cpu(cpu, mistakes);
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
        // Where the fields are known, every one that is unknown is said, not only the first.
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
                    mistakes.add(span, format!("{what}: {}", in_plain_words(error.message())));
                }
            },
        }
    }

    pub(super) fn add_fault(&self, fault: &Fault, mistakes: &mut Mistakes) {
        let mut params = self.params.iter().flat_map(|params| params.get_ref());
        let place = params.find(|(key, _)| key.get_ref().as_ref() == fault.param);
        let span = place.map_or(self.kind_span.clone(), |(_, value)| value.span());
        mistakes.add(span, format!("'{}' of '{}': {}", fault.param, self.name(), fault.message));
    }

    pub(super) fn name(&self) -> &str {
        self.id.as_ref().map_or("", |id| id.get_ref())
    }

    /// Where a message that is about the stage as a whole points.
    fn place(&self) -> Range<usize> {
        self.id.as_ref().map_or(self.span.clone(), Spanned::span)
    }

    fn into_file(self) -> FileStage {
        FileStage {
            id: self.name().to_owned(),
            kind: self.kind.map(|kind| kind.name().to_owned()).unwrap_or_default(),
            params: self.table,
            cpu: self.cpu.map(Spanned::into_inner),
        }
    }
}

/// What the reader of the parameters said, without the names that Rust has for numbers.
fn in_plain_words(message: &str) -> String {
    let (said, expected) = message.rsplit_once(", expected ").unwrap_or((message, ""));
    let expected = match expected {
        "" => return message.replace('`', "'"),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        other => other,
    };
    format!("{said}, expected {expected}").replace('`', "'")
}

fn check_id(id: &Spanned<String>, mistakes: &mut Mistakes) {
    let is_good = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if id.get_ref().is_empty() || !id.get_ref().chars().all(is_good) {
        mistakes
            .add(id.span(), format!("'{}' is no id", id.get_ref()))
            .help("use letters, digits, '_' and '-'; a '.' parts an id from a port");
    }
}

fn find_kind<'k>(kind: &Spanned<String>, kinds: &'k Kinds, mistakes: &mut Mistakes) -> Option<&'k KindInfo> {
    let name = kind.get_ref();
    let found = kinds.get(name);
    if found.is_none() {
        let mistake = mistakes.add(kind.span(), format!("there is no kind '{name}'"));
        if let Some(meant) = nearest(name, kinds.iter().map(KindInfo::name)) {
            mistake.label(format!("did you mean '{meant}'?"));
        }
        let known: Vec<&str> = kinds.iter().map(KindInfo::name).collect();
        if !known.is_empty() {
            mistake.help(format!("there are {}", known.join(", ")));
        }
    }
    found
}

fn refuse_twins(stages: &[Checked<'_, '_>], mistakes: &mut Mistakes) {
    let mut first: HashMap<&str, Range<usize>> = HashMap::new();
    for id in stages.iter().filter_map(|stage| stage.id.as_ref()) {
        match first.get(id.get_ref().as_str()) {
            Some(before) => {
                mistakes
                    .add(id.span(), format!("two stages are called '{}'", id.get_ref()))
                    .label("give it a name of its own")
                    .beside(before.clone(), "the first is here");
            }
            None => drop(first.insert(id.get_ref(), id.span())),
        }
    }
}

fn refuse_double_claims(stages: &[Checked<'_, '_>], mistakes: &mut Mistakes) {
    let mut first: HashMap<String, Range<usize>> = HashMap::new();
    for stage in stages {
        let Some(claim) = stage.ready.as_ref().and_then(|ready| ready.claims()) else { continue };
        match first.get(&claim) {
            Some(before) => {
                mistakes
                    .add(stage.place(), format!("two stages want {claim} for themselves"))
                    .beside(before.clone(), "the first is here");
            }
            None => drop(first.insert(claim, stage.place())),
        }
    }
}

/// An edge whose ends exist.
pub(super) struct Joined {
    /// Stage and port, by position.
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
    pub(super) to_span: Range<usize>,
    pub(super) link: Link,
}

impl Joined {
    fn to_file(&self, stages: &[Checked<'_, '_>]) -> FileEdge {
        let end = |(stage, port): (usize, usize), names: fn(&KindInfo) -> &'static [&'static str]| {
            let stage: &Checked<'_, '_> = &stages[stage];
            let name = stage.kind.and_then(|kind| names(kind).get(port)).copied().unwrap_or_default();
            (stage.name().to_owned(), name.to_owned())
        };
        FileEdge {
            from: end(self.from, |kind| kind.ports().outputs),
            to: end(self.to, |kind| kind.ports().inputs),
            link: self.link,
        }
    }
}

/// Which side of an edge is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    From,
    To,
}

fn join(edge: &DraftEdge, stages: &[Checked<'_, '_>], mistakes: &mut Mistakes) -> Option<Joined> {
    let link = link(edge, mistakes);
    let from = edge.from.as_ref().and_then(|end| find_end(end, Side::From, stages, mistakes));
    let to = edge.to.as_ref().and_then(|end| find_end(end, Side::To, stages, mistakes));
    let (from, to) = (from?, to?);
    let fuse_span = edge.fuse.as_ref().map_or(0..0, Spanned::span);
    if link == Some(Link::Fused) {
        if from.1 > 0 {
            mistakes
                .add(fuse_span.clone(), "only a stage's first output can be fused")
                .help("leave out 'fuse'");
        }
        if stages[to.0].kind.is_some_and(|kind| kind.ports().inputs.len() > 1) {
            let message = format!("'{}' has several inputs and cannot be fused", stages[to.0].name());
            mistakes.add(fuse_span, message).help("leave out 'fuse'");
        }
    }
    Some(Joined {
        from,
        to,
        to_span: edge.to.as_ref().map_or(0..0, Spanned::span),
        link: link.unwrap_or(Link::Queue {
            capacity_batches: CAPACITY_BATCHES,
            capacity_bytes: None,
            policy: Policy::Block,
        }),
    })
}

fn link(edge: &DraftEdge, mistakes: &mut Mistakes) -> Option<Link> {
    if edge.fuse.as_ref().is_some_and(|fuse| *fuse.get_ref()) {
        let queue = [
            ("capacity", edge.capacity.as_ref().map(Spanned::span)),
            ("capacity_bytes", edge.capacity_bytes.as_ref().map(Spanned::span)),
            ("policy", edge.policy.as_ref().map(Spanned::span)),
        ];
        for (name, span) in queue.into_iter().filter_map(|(name, span)| Some((name, span?))) {
            mistakes
                .add(span, format!("a fused edge has no queue, so no '{name}'"))
                .help(format!("leave out 'fuse' or '{name}'"));
        }
        return Some(Link::Fused);
    }
    let capacity_batches = match &edge.capacity {
        None => CAPACITY_BATCHES,
        Some(capacity) => match *capacity.get_ref() {
            0 => {
                mistakes
                    .add(capacity.span(), "a queue of capacity 0 holds nothing")
                    .help(format!("give 1 to {CAPACITY_BATCHES_MAX} batches of up to 64 KiB"));
                return None;
            }
            1..=CAPACITY_BATCHES_MAX => *capacity.get_ref(),
            more => {
                mistakes
                    .add(capacity.span(), format!("a queue of {more} batches could pin {} MiB", more / 16))
                    .help(format!("give 1 to {CAPACITY_BATCHES_MAX} batches of up to 64 KiB"));
                return None;
            }
        },
    };
    let policy = match &edge.policy {
        None => Policy::Block,
        Some(written) => find_policy(written, mistakes)?,
    };
    let capacity_bytes = edge.capacity_bytes.as_ref().map(|bytes| *bytes.get_ref());
    Some(Link::Queue { capacity_batches, capacity_bytes, policy })
}

fn find_policy(written: &Spanned<String>, mistakes: &mut Mistakes) -> Option<Policy> {
    let name = written.get_ref();
    let found = name.parse().ok();
    if found.is_none() {
        let mistake = mistakes.add(written.span(), format!("there is no policy '{name}'"));
        if let Some(meant) = nearest(name, Policy::ALL.into_iter().map(Policy::name)) {
            mistake.label(format!("did you mean '{meant}'?"));
        }
        mistake.help("a full queue makes its producer wait (block), or drops (drop_oldest, drop_latest)");
    }
    found
}

/// The stage and the port that `id.port`, or `id` where there is one port, names.
fn find_end(
    end: &Spanned<String>,
    side: Side,
    stages: &[Checked<'_, '_>],
    mistakes: &mut Mistakes,
) -> Option<(usize, usize)> {
    let (id, port) = match end.get_ref().split_once('.') {
        Some((id, port)) => (id, Some(port)),
        None => (end.get_ref().as_str(), None),
    };
    let Some(at) = stages.iter().position(|stage| stage.id.is_some() && stage.name() == id) else {
        let mistake = mistakes.add(end.span(), format!("there is no stage '{id}'"));
        if let Some(meant) = nearest(id, stages.iter().map(Checked::name).filter(|name| !name.is_empty())) {
            mistake.label(format!("did you mean '{meant}'?"));
        }
        return None;
    };
    // A stage whose kind is unknown has been told of.
    let ports = stages[at].kind?.ports();
    let (own, other) = match side {
        Side::From => (ports.outputs, ports.inputs),
        Side::To => (ports.inputs, ports.outputs),
    };
    let (word, role) = match side {
        Side::From => ("output", "sink: nothing comes out of it"),
        Side::To => ("input", "source: nothing goes into it"),
    };
    let beside = stages[at].kind_span.clone();
    if own.is_empty() {
        mistakes.add(end.span(), format!("'{id}' is a {role}")).beside(beside, "because of its kind");
        return None;
    }
    match port {
        None if own.len() == 1 => Some((at, 0)),
        None => {
            let choices: Vec<String> = own.iter().map(|port| format!("'{id}.{port}'")).collect();
            mistakes
                .add(end.span(), format!("'{id}' has several {word}s"))
                .help(format!("write {}", choices.join(" or ")));
            None
        }
        Some(port) => {
            let found = own.iter().position(|known| *known == port);
            if found.is_none() {
                let mistake = mistakes.add(end.span(), format!("'{id}' has no {word} '{port}'"));
                if other.contains(&port) {
                    let word = if side == Side::From { "input" } else { "output" };
                    mistake.label(format!("'{port}' is an {word}"));
                } else if let Some(meant) = nearest(port, own.iter().copied()) {
                    mistake.label(format!("did you mean '{id}.{meant}'?"));
                }
                mistake.help(format!("its {word}s: {}", own.join(", ")));
            }
            found.map(|port| (at, port))
        }
    }
}

fn refuse_double_inputs(edges: &[Joined], stages: &[Checked<'_, '_>], mistakes: &mut Mistakes) {
    let mut first: HashMap<(usize, usize), Range<usize>> = HashMap::new();
    for edge in edges {
        match first.get(&edge.to) {
            Some(before) => {
                let stage = &stages[edge.to.0];
                let port = stage.kind.and_then(|kind| kind.ports().inputs.get(edge.to.1)).unwrap_or(&"");
                mistakes
                    .add(edge.to_span.clone(), format!("'{}.{port}' is connected twice", stage.name()))
                    .label("an input takes one stream")
                    .beside(before.clone(), "the first is here");
            }
            None => drop(first.insert(edge.to, edge.to_span.clone())),
        }
    }
}

fn refuse_open_ends(edges: &[Joined], stages: &[Checked<'_, '_>], mistakes: &mut Mistakes) {
    for (at, stage) in stages.iter().enumerate() {
        let (Some(_), Some(kind)) = (&stage.id, stage.kind) else { continue };
        let ports = kind.ports();
        for (position, port) in ports.inputs.iter().enumerate() {
            if !edges.iter().any(|edge| edge.to == (at, position)) {
                let end = format!("{}.{port}", stage.name());
                mistakes
                    .add(stage.place(), format!("nothing leads to '{end}'"))
                    .help(format!("add an [[edge]] with to = \"{end}\""));
            }
        }
        if ports.inputs.is_empty() && !edges.iter().any(|edge| edge.from.0 == at) {
            mistakes
                .add(stage.place(), format!("'{}' leads nowhere", stage.name()))
                .help(format!("add an [[edge]] with from = \"{}\"", stage.name()));
        }
    }
}

/// 4 GiB of chunks.
const CAPACITY_BATCHES_MAX: usize = 65_536;
