//! Checks that a graph file describes a valid graph: names, inputs, flow, threads, channels, formats.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use toml::Spanned;

use super::checked_edge::{CheckedEdge, FileEdge};
use super::checked_host::{self, FileHost};
use super::checked_stage::{CheckedStage, FileStage};
use super::draft::Draft;
use crate::graph::fused;
use crate::kind::{Fault, KindInfo, Kinds, ReadKind, StageName};
use crate::mistake::Mistakes;

/// Contents of a graph file after the check.
pub(super) struct Checked {
    pub(super) stages: Vec<FileStage>,
    pub(super) edges: Vec<FileEdge>,
    pub(super) hosts: Vec<FileHost>,
    /// Rate of each edge, as far as the file determines it; empty if not computed.
    pub(super) bytes_per_s: Vec<Option<f64>>,
}

/// Checks everything that needs nothing opened. The result is valid if no mistake was added.
pub(super) fn check(draft: Draft<'_>, kinds: &Kinds, mistakes: &mut Mistakes) -> Checked {
    if draft.stages.is_empty() && draft.edges.is_empty() && mistakes.is_empty() {
        mistakes.add(0..0, "the file has no [[stage]]");
    }
    let stages: Vec<CheckedStage<'_, '_>> =
        draft.stages.into_iter().map(|stage| CheckedStage::of(stage, kinds, mistakes)).collect();
    let named = draft.hosts.iter().filter_map(|host| host.name.as_ref());
    refuse_twin_hosts(named, mistakes);
    let hosts = checked_host::check(draft.hosts, &stages, mistakes);
    refuse_twins(&stages, mistakes);
    refuse_double_claims(&stages, mistakes);
    refuse_wrong_names(&stages, mistakes);
    refuse_far_pipes(&stages, mistakes);
    let edges: Vec<CheckedEdge> =
        draft.edges.iter().filter_map(|edge| CheckedEdge::of(edge, &stages, mistakes)).collect();
    refuse_double_inputs(&edges, &stages, mistakes);
    if draft.is_whole && edges.len() == draft.edges.len() {
        refuse_open_ends(&edges, &stages, mistakes);
    }
    refuse_cycles(&edges, &stages, mistakes);
    refuse_split_workers(&edges, &stages, mistakes);
    let mut bytes_per_s = Vec::new();
    if mistakes.is_empty() {
        let channels = follow(&edges, &stages, mistakes, |stage, channels| stage.channels(channels));
        let formats = follow(&edges, &stages, mistakes, |stage, format| stage.format(format));
        let rates = follow(&edges, &stages, mistakes, |stage, rate_hz| Ok(stage.rate_hz(rate_hz)));
        let of_stage = |at: usize| Some(rates[at]? * f64::from(channels[at]?) * formats[at]?.bytes() as f64);
        bytes_per_s = edges.iter().map(|edge| of_stage(edge.from.0)).collect();
    }
    let edges = edges.iter().map(|edge| edge.to_file(&stages)).collect();
    Checked { stages: stages.into_iter().map(CheckedStage::into_file).collect(), edges, hosts, bytes_per_s }
}

fn refuse_twins(stages: &[CheckedStage<'_, '_>], mistakes: &mut Mistakes) {
    let ids = stages.iter().filter_map(|stage| stage.id.as_ref()).map(|id| (id.get_ref(), id.span()));
    for (id, second, first) in repeated(ids) {
        mistakes
            .add(second, format!("two stages are called '{id}'"))
            .label("give it a name of its own")
            .beside(first, "the first is here");
    }
}

fn refuse_twin_hosts<'a>(named: impl Iterator<Item = &'a Spanned<String>>, mistakes: &mut Mistakes) {
    for (name, second, first) in repeated(named.map(|name| (name.get_ref(), name.span()))) {
        mistakes
            .add(second, format!("two hosts are called '{name}'"))
            .label("say all of it in one [[host]]")
            .beside(first, "the first is here");
    }
}

fn refuse_double_claims(stages: &[CheckedStage<'_, '_>], mistakes: &mut Mistakes) {
    // The same file name on another host means another file.
    let claim = |stage: &CheckedStage<'_, '_>| {
        let host = stage.host_name().map(str::to_owned);
        Some(((host, stage.ready.as_ref()?.claims()?), stage.place()))
    };
    for ((_, claim), second, first) in repeated(stages.iter().filter_map(claim)) {
        mistakes
            .add(second, format!("two stages want {claim} for themselves"))
            .beside(first, "the first is here");
    }
}

/// Refuses unknown stages in parameters of others.
fn refuse_wrong_names(stages: &[CheckedStage<'_, '_>], mistakes: &mut Mistakes) {
    for stage in stages {
        let Some(StageName { param, id, kinds }) = stage.ready.as_ref().and_then(|ready| ready.names())
        else {
            continue;
        };
        let named = stages.iter().find(|other| other.name() == id);
        let kind = named.and_then(|named| named.kind).map_or("", KindInfo::name);
        let must = || format!("name a stage of {}", kinds.join(" or "));
        let wrong = match named {
            None => format!("unknown stage '{id}': {}", must()),
            Some(_) if !kinds.contains(&kind) => format!("'{id}' is {kind}: {}", must()),
            Some(named) if named.host_name() != stage.host_name() => {
                format!("'{id}' is on another host: name a stage of the same")
            }
            Some(_) => continue,
        };
        stage.add_fault(&Fault::new(param, wrong), mistakes);
    }
}

/// Refuses pipes on other hosts, because `ssh` uses standard input and output there.
fn refuse_far_pipes(stages: &[CheckedStage<'_, '_>], mistakes: &mut Mistakes) {
    for stage in stages.iter().filter(|stage| stage.host.is_some()) {
        let claim = stage.ready.as_ref().and_then(|ready| ready.claims());
        if let Some(claim) = claim.filter(|claim| claim.starts_with("standard ")) {
            mistakes
                .add(stage.place(), format!("'{}' is on another host, which has no {claim}", stage.name()))
                .help("leave out 'host', or send and receive another way");
        }
    }
}

fn refuse_double_inputs(edges: &[CheckedEdge], stages: &[CheckedStage<'_, '_>], mistakes: &mut Mistakes) {
    for ((stage, port), second, first) in repeated(edges.iter().map(|edge| (edge.to, edge.to_span.clone()))) {
        let stage = &stages[stage];
        let port = stage.kind.and_then(|kind| kind.ports().inputs.get(port)).unwrap_or(&"");
        mistakes
            .add(second, format!("'{}.{port}' is connected twice", stage.name()))
            .label("an input takes one stream")
            .beside(first, "the first is here");
    }
}

/// Reports each repetition, with both positions.
fn repeated<T: Eq + Hash>(
    all: impl Iterator<Item = (T, Range<usize>)>,
) -> impl Iterator<Item = (T, Range<usize>, Range<usize>)> {
    let mut first: HashMap<T, Range<usize>> = HashMap::new();
    all.filter_map(move |(what, place)| match first.get(&what) {
        Some(before) => Some((what, place, before.clone())),
        None => first.insert(what, place).and(None),
    })
}

fn refuse_open_ends(edges: &[CheckedEdge], stages: &[CheckedStage<'_, '_>], mistakes: &mut Mistakes) {
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

/// Reports the stages of each cycle, at the edge that closes it.
fn refuse_cycles(edges: &[CheckedEdge], stages: &[CheckedStage<'_, '_>], mistakes: &mut Mistakes) {
    let mut kept: Vec<(usize, usize)> = Vec::new();
    for edge in edges {
        let (from, to) = (edge.from.0, edge.to.0);
        let Some(path) = path(to, from, &kept, &mut Vec::new()) else {
            kept.push((from, to));
            continue;
        };
        let around: Vec<&str> = std::iter::once(from).chain(path).map(|stage| stages[stage].name()).collect();
        mistakes
            .add(edge.to_span.clone(), format!("a cycle: {}", around.join(" -> ")))
            .label("leads back")
            .help("a stream flows one way");
    }
}

fn path(from: usize, to: usize, edges: &[(usize, usize)], seen: &mut Vec<usize>) -> Option<Vec<usize>> {
    if from == to {
        return Some(vec![to]);
    }
    if seen.contains(&from) {
        return None;
    }
    seen.push(from);
    edges.iter().filter(|edge| edge.0 == from).find_map(|edge| {
        let mut rest = path(edge.1, to, edges, seen)?;
        rest.insert(0, from);
        Some(rest)
    })
}

/// Refuses different processors for stages that share a thread.
fn refuse_split_workers(edges: &[CheckedEdge], stages: &[CheckedStage<'_, '_>], mistakes: &mut Mistakes) {
    let is_fused = |edge: &&CheckedEdge| edge.queue.is_none();
    let workers = fused(stages.len(), edges.iter().filter(is_fused).map(|edge| (edge.from.0, edge.to.0)));
    let mut pinned: HashMap<usize, &Spanned<usize>> = HashMap::new();
    for (stage, worker) in stages.iter().zip(workers) {
        let Some(cpu) = &stage.cpu else { continue };
        let first = *pinned.entry(worker).or_insert(cpu);
        if first.get_ref() != cpu.get_ref() {
            mistakes
                .add(cpu.span(), "stages that are fused share a thread: one processor for all of them")
                .beside(first.span(), "another one here");
        }
    }
}

/// Propagates a property of the streams from the sources; `next` computes a stage's output from its inputs.
/// The graph has no cycles or unknown stages. Returns the output of each stage.
fn follow<T: Copy>(
    edges: &[CheckedEdge],
    stages: &[CheckedStage<'_, '_>],
    mistakes: &mut Mistakes,
    next: impl Fn(&dyn ReadKind, &[Option<T>]) -> Result<Option<T>, Fault>,
) -> Vec<Option<T>> {
    let mut settled: Vec<Option<Option<T>>> = vec![None; stages.len()];
    // Each round settles at least the next stage in stream order.
    for _ in 0..stages.len() {
        for at in 0..stages.len() {
            let incoming = edges.iter().filter(|edge| edge.to.0 == at);
            let Some(ready) = stages[at].ready.as_deref().filter(|_| settled[at].is_none()) else { continue };
            if incoming.clone().any(|edge| settled[edge.from.0].is_none()) {
                continue;
            }
            let mut before = vec![None; stages[at].kind.map_or(0, |kind| kind.ports().inputs.len())];
            for edge in incoming {
                before[edge.to.1] = settled[edge.from.0].flatten();
            }
            settled[at] = Some(next(ready, &before).unwrap_or_else(|fault| {
                stages[at].add_fault(&fault, mistakes);
                None
            }));
        }
    }
    settled.into_iter().map(Option::flatten).collect()
}
