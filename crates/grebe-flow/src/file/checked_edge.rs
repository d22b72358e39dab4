//! Edge of a graph file with valid ends.

use std::ops::Range;

use grebe_ring::Policy;
use toml::Spanned;

use super::checked_stage::CheckedStage;
use super::draft::DraftEdge;
use crate::kind::KindInfo;
use crate::mistake::{Mistakes, nearest};
use crate::queue::QueueOptions;
use crate::stage::Ports;

/// `[[edge]]` of a graph file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdge {
    /// Source stage and its output.
    pub from: (String, String),
    /// Target stage and its input.
    pub to: (String, String),
    /// Queue between the threads; `None`: both stages share a thread (`fuse = true`).
    pub queue: Option<QueueOptions>,
}

pub(super) struct CheckedEdge {
    /// Positions of stage and port.
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
    pub(super) to_span: Range<usize>,
    /// `None`: fused.
    pub(super) queue: Option<QueueOptions>,
}

impl CheckedEdge {
    pub(super) fn of(
        edge: &DraftEdge,
        stages: &[CheckedStage<'_, '_>],
        mistakes: &mut Mistakes,
    ) -> Option<Self> {
        let is_fused = edge.fuse.as_ref().is_some_and(|fuse| *fuse.get_ref());
        let queue = if is_fused {
            refuse_queue(edge, mistakes);
            None
        } else {
            Some(queue(edge, mistakes).unwrap_or(QueueOptions::block(CAPACITY_BATCHES)))
        };
        let from = edge.from.as_ref().and_then(|end| find_end(end, Side::From, stages, mistakes));
        let to = edge.to.as_ref().and_then(|end| find_end(end, Side::To, stages, mistakes));
        let (from, to) = (from?, to?);
        if is_fused {
            let span = edge.fuse.as_ref().map_or(0..0, Spanned::span);
            check_fused(span, from, (&stages[from.0], &stages[to.0]), mistakes);
        }
        Some(Self { from, to, to_span: edge.to.as_ref().map_or(0..0, Spanned::span), queue })
    }

    pub(super) fn to_file(&self, stages: &[CheckedStage<'_, '_>]) -> FileEdge {
        let end = |(stage, port): (usize, usize), names: fn(&KindInfo) -> &'static [&'static str]| {
            let stage: &CheckedStage<'_, '_> = &stages[stage];
            let name = stage.kind.and_then(|kind| names(kind).get(port)).copied().unwrap_or_default();
            (stage.name().to_owned(), name.to_owned())
        };
        FileEdge {
            from: end(self.from, |kind| kind.ports().outputs),
            to: end(self.to, |kind| kind.ports().inputs),
            queue: self.queue,
        }
    }
}

/// Checks that a fused edge leads from a first output to a stage without other inputs.
fn check_fused(
    span: Range<usize>,
    from: (usize, usize),
    (producer, to): (&CheckedStage<'_, '_>, &CheckedStage<'_, '_>),
    mistakes: &mut Mistakes,
) {
    if producer.host_name() != to.host_name() {
        let message =
            format!("'{}' and '{}' are on two hosts and cannot be fused", producer.name(), to.name());
        mistakes.add(span.clone(), message).help("leave out 'fuse', or give both the same 'host'");
    }
    if from.1 > 0 {
        mistakes.add(span.clone(), "only a stage's first output can be fused").help("leave out 'fuse'");
    }
    if to.kind.is_some_and(|kind| kind.ports().inputs.len() > 1) {
        let message = format!("'{}' has several inputs and cannot be fused", to.name());
        mistakes.add(span, message).help("leave out 'fuse'");
    }
}

fn refuse_queue(edge: &DraftEdge, mistakes: &mut Mistakes) {
    let fields = [
        ("capacity", edge.capacity.as_ref().map(Spanned::span)),
        ("capacity_bytes", edge.capacity_bytes.as_ref().map(Spanned::span)),
        ("policy", edge.policy.as_ref().map(Spanned::span)),
    ];
    for (name, span) in fields.into_iter().filter_map(|(name, span)| Some((name, span?))) {
        mistakes
            .add(span, format!("a fused edge has no queue, so no '{name}'"))
            .help(format!("leave out 'fuse' or '{name}'"));
    }
}

/// Options of the edge's queue; `None` if they are invalid.
fn queue(edge: &DraftEdge, mistakes: &mut Mistakes) -> Option<QueueOptions> {
    let capacity_batches = match &edge.capacity {
        None => CAPACITY_BATCHES,
        Some(capacity) => check_capacity(capacity, mistakes)?,
    };
    let policy = match &edge.policy {
        None => Policy::Block,
        Some(written) => find_policy(written, mistakes)?,
    };
    let capacity_bytes = edge.capacity_bytes.as_ref().map(|bytes| *bytes.get_ref());
    Some(QueueOptions { capacity_batches, capacity_bytes, policy })
}

fn check_capacity(capacity: &Spanned<usize>, mistakes: &mut Mistakes) -> Option<usize> {
    let wrong = match *capacity.get_ref() {
        0 => "a queue of capacity 0 holds nothing".to_owned(),
        batches @ 1..=CAPACITY_BATCHES_MAX => return Some(batches),
        more => format!("a queue of {more} batches could pin {} MiB", more / 16),
    };
    mistakes
        .add(capacity.span(), wrong)
        .help(format!("give 1 to {CAPACITY_BATCHES_MAX} batches of up to 64 KiB"));
    None
}

fn find_policy(written: &Spanned<String>, mistakes: &mut Mistakes) -> Option<Policy> {
    let name = written.get_ref();
    let found = name.parse().ok();
    if found.is_none() {
        let mistake = mistakes.add(written.span(), format!("unknown policy '{name}'"));
        if let Some(meant) = nearest(name, Policy::ALL.into_iter().map(Policy::name)) {
            mistake.label(format!("did you mean '{meant}'?"));
        }
        mistake.help("a full queue makes its producer wait (block), or drops (drop_oldest, drop_latest)");
    }
    found
}

/// Finds the stage and port named by `id.port`, or by `id` if there is one port.
fn find_end(
    end: &Spanned<String>,
    side: Side,
    stages: &[CheckedStage<'_, '_>],
    mistakes: &mut Mistakes,
) -> Option<(usize, usize)> {
    let (id, port) = match end.get_ref().split_once('.') {
        Some((id, port)) => (id, Some(port)),
        None => (end.get_ref().as_str(), None),
    };
    let Some(at) = stages.iter().position(|stage| stage.id.is_some() && stage.name() == id) else {
        let mistake = mistakes.add(end.span(), format!("unknown stage '{id}'"));
        let known = stages.iter().map(CheckedStage::name).filter(|name| !name.is_empty());
        if let Some(meant) = nearest(id, known) {
            mistake.label(format!("did you mean '{meant}'?"));
        }
        return None;
    };
    // An unknown kind was already reported.
    let ports = stages[at].kind?.ports();
    let own = side.of(ports);
    match port {
        _ if own.is_empty() => {
            mistakes
                .add(end.span(), format!("'{id}' is a {}", side.missing()))
                .beside(stages[at].kind_span.clone(), "because of its kind");
            None
        }
        None if own.len() == 1 => Some((at, 0)),
        None => {
            let choices: Vec<String> = own.iter().map(|port| format!("'{id}.{port}'")).collect();
            mistakes
                .add(end.span(), format!("'{id}' has several {}s", side.word()))
                .help(format!("write {}", choices.join(" or ")));
            None
        }
        Some(port) => {
            let found = own.iter().position(|known| *known == port);
            if found.is_none() {
                refuse_port(end.span(), id, port, side, ports, mistakes);
            }
            found.map(|port| (at, port))
        }
    }
}

fn refuse_port(span: Range<usize>, id: &str, port: &str, side: Side, ports: Ports, mistakes: &mut Mistakes) {
    let (own, word) = (side.of(ports), side.word());
    let mistake = mistakes.add(span, format!("'{id}' has no {word} '{port}'"));
    if side.other().of(ports).contains(&port) {
        mistake.label(format!("'{port}' is an {}", side.other().word()));
    } else if let Some(meant) = nearest(port, own.iter().copied()) {
        mistake.label(format!("did you mean '{id}.{meant}'?"));
    }
    mistake.help(format!("its {word}s: {}", own.join(", ")));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    From,
    To,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Side::From => Side::To,
            Side::To => Side::From,
        }
    }

    /// Ports of a stage on this side of an edge.
    fn of(self, ports: Ports) -> &'static [&'static str] {
        match self {
            Side::From => ports.outputs,
            Side::To => ports.inputs,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Side::From => "output",
            Side::To => "input",
        }
    }

    /// Description of a stage without such a port.
    fn missing(self) -> &'static str {
        match self {
            Side::From => "sink: nothing comes out of it",
            Side::To => "source: nothing goes into it",
        }
    }
}

/// Default capacity.
const CAPACITY_BATCHES: usize = 64;
/// 4 GiB of chunks.
const CAPACITY_BATCHES_MAX: usize = 65_536;
