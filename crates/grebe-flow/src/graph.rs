//! Which stages there are and how they are connected; checked before anything runs.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::built::{Built, BuiltCrew, Link, Placed};
use crate::counters::StageCounts;
use crate::crew::{Crew, Member};
use crate::port::{Context, Flags, InPort, InlineOut, Inputs, Newcomers, Outputs, Waker};
use crate::queue::{QueueReceiver, QueueSender, queue};
use crate::runtime::Running;
use crate::{Error, Ports, QueueOptions, Stage, Stepper};

/// Stages and the queues between them, not yet running.
#[derive(Default)]
pub struct Graph {
    stages: Vec<Entry>,
    edges: Vec<Edge>,
    reserved_batches: usize,
}

/// A stage of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node(pub(crate) usize);

struct Entry {
    name: String,
    stage: Box<dyn Stage>,
    ports: Ports,
    cpu: Option<usize>,
    is_open: bool,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    from: (usize, usize),
    to: usize,
    /// Position in the names of the stage's inputs; `None` where they have none.
    input: Option<usize>,
    /// `None`: on the same thread, without a queue.
    queue: Option<QueueOptions>,
}

impl Graph {
    /// A graph without stages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a stage under a name of its own, which errors and counters use.
    pub fn add(&mut self, name: impl Into<String>, stage: impl Stage + 'static) -> Node {
        self.add_boxed(name, Box::new(stage))
    }

    /// As [`add`](Self::add), for a stage whose type was chosen at run time.
    pub fn add_boxed(&mut self, name: impl Into<String>, stage: Box<dyn Stage>) -> Node {
        let ports = stage.ports();
        self.add_with_ports(name.into(), stage, ports)
    }

    /// As [`add_boxed`](Self::add_boxed), with the ports that the stage's kind names.
    pub(crate) fn add_with_ports(&mut self, name: String, stage: Box<dyn Stage>, ports: Ports) -> Node {
        self.stages.push(Entry { name, stage, ports, cpu: None, is_open: false });
        Node(self.stages.len() - 1)
    }

    /// Leads `from`'s first output to `to` through a queue of its own. Several queues from one stage are a fan-out: each gets
    /// every batch.
    pub fn connect(&mut self, from: Node, to: Node, options: QueueOptions) {
        self.edges.push(Edge { from: (from.0, 0), to: to.0, input: None, queue: Some(options) });
    }

    /// As [`connect`](Self::connect), from a named output to a named input; an empty name is the only one there is.
    ///
    /// # Errors
    /// The stage has no such output or input.
    pub fn connect_ports(
        &mut self,
        from: (Node, &str),
        to: (Node, &str),
        options: QueueOptions,
    ) -> Result<(), Error> {
        let position = |stage: &Entry, names: &[&str], name: &str| {
            let unknown = || Error::NoSuchPort {
                stage: stage.name.clone(),
                port: name.to_owned(),
                known: names.join(", "),
            };
            names.iter().position(|known| *known == name).ok_or_else(unknown)
        };
        let (source, sink) = (&self.stages[from.0.0], &self.stages[to.0.0]);
        let output = if from.1.is_empty() { 0 } else { position(source, source.ports.outputs, from.1)? };
        let input = if to.1.is_empty() { None } else { Some(position(sink, sink.ports.inputs, to.1)?) };
        self.edges.push(Edge { from: (from.0.0, output), to: to.0.0, input, queue: Some(options) });
        Ok(())
    }

    /// Puts `to` on the thread of `from`, and leads there without a queue: for stages that cost less than a queue would.
    pub fn fuse(&mut self, from: Node, to: Node) {
        self.edges.push(Edge { from: (from.0, 0), to: to.0, input: None, queue: None });
    }

    /// Keeps the stage's thread on one processor (Linux; elsewhere it has no effect).
    pub fn pin(&mut self, node: Node, cpu: usize) {
        self.stages[node.0].cpu = Some(cpu);
    }

    /// Lets consumers be attached to the stage while the graph runs ([`Running::attach`]), with queues of up to `batches` in
    /// all at any time. The stage goes on although nobody listens.
    pub fn open(&mut self, node: Node, batches: usize) {
        self.stages[node.0].is_open = true;
        self.reserved_batches += batches;
    }

    /// Checks the graph and starts its threads.
    ///
    /// # Errors
    /// A name used twice, a cycle, a stage or a named input connected to nothing, an input connected twice, a fused stage with
    /// several inputs, or a thread the system did not give; nothing runs then.
    pub fn start(self) -> Result<Running, Error> {
        self.check()?;
        let crews = self.crews();
        Running::start(self.build(&crews))
    }

    /// Checks the graph and hands it to the caller, to be driven step by step on the caller's thread: the same stages, in a
    /// fixed order, without queues, threads or time.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn stepper(mut self) -> Result<Stepper, Error> {
        self.check()?;
        self.edges.iter_mut().for_each(|edge| edge.queue = None);
        let everyone = vec![0; self.stages.len()];
        Ok(Stepper::new(self.build(&everyone)))
    }

    /// Checks the graph without starting it.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn check(&self) -> Result<(), Error> {
        let name = |index: usize| self.stages[index].name.clone();
        let mut names = HashSet::new();
        if let Some(entry) = self.stages.iter().find(|entry| !names.insert(entry.name.as_str())) {
            return Err(Error::DuplicateName(entry.name.clone()));
        }
        for (index, entry) in self.stages.iter().enumerate() {
            let is_connected = self.edges.iter().any(|edge| edge.from.0 == index || edge.to == index);
            if self.stages.len() > 1 && !is_connected {
                return Err(Error::Unconnected(name(index)));
            }
            self.check_inputs(index, entry)?;
        }
        self.order().map(drop)
    }

    fn check_inputs(&self, index: usize, entry: &Entry) -> Result<(), Error> {
        let arriving: Vec<&Edge> = self.edges.iter().filter(|edge| edge.to == index).collect();
        if arriving.len() > 1 && arriving.iter().any(|edge| edge.queue.is_none()) {
            return Err(Error::FusedFanIn(entry.name.clone()));
        }
        for (position, input) in entry.ports.inputs.iter().enumerate() {
            let only = entry.ports.inputs.len() == 1;
            let count = arriving
                .iter()
                .filter(|edge| edge.input == Some(position) || only && edge.input.is_none())
                .count();
            let port = format!("{}.{input}", entry.name);
            match count {
                0 => return Err(Error::Unconnected(port)),
                1 => {}
                _ => return Err(Error::ConnectedTwice(port)),
            }
        }
        let is_ambiguous = entry.ports.inputs.len() > 1 && arriving.iter().any(|edge| edge.input.is_none());
        match is_ambiguous {
            true => Err(Error::NoSuchPort {
                stage: entry.name.clone(),
                port: String::new(),
                known: entry.ports.inputs.join(", "),
            }),
            false => Ok(()),
        }
    }

    /// The stages, each behind all that lead to it.
    fn order(&self) -> Result<Vec<usize>, Error> {
        let mut left: Vec<usize> = (0..self.stages.len()).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let is_free =
                |index: usize| !self.edges.iter().any(|edge| edge.to == index && left.contains(&edge.from.0));
            let Some(at) = left.iter().position(|&index| is_free(index)) else {
                // Taking away what only hangs on a cycle leaves a stage of the cycle itself.
                let on_cycle =
                    left.iter().copied().find(|&index| self.leads_to(index, index, &mut HashSet::new()));
                return Err(Error::Cycle(self.stages[on_cycle.unwrap_or(left[0])].name.clone()));
            };
            order.push(left.remove(at));
        }
        Ok(order)
    }

    fn leads_to(&self, from: usize, target: usize, seen: &mut HashSet<usize>) -> bool {
        self.edges
            .iter()
            .filter(|edge| edge.from.0 == from)
            .any(|edge| edge.to == target || seen.insert(edge.to) && self.leads_to(edge.to, target, seen))
    }

    /// Which crew each stage belongs to: fused stages share one.
    fn crews(&self) -> Vec<usize> {
        let mut crews: Vec<usize> = (0..self.stages.len()).collect();
        for edge in self.edges.iter().filter(|edge| edge.queue.is_none()) {
            let (one, other) = (crews[edge.from.0], crews[edge.to]);
            crews.iter_mut().filter(|crew| **crew == other).for_each(|crew| *crew = one);
        }
        crews
    }

    fn build(self, crew_of: &[usize]) -> Built {
        // Checked before: there is no cycle.
        let order = self.order().unwrap_or_default();
        let flags = Arc::new(Flags::default());
        let mut wakers: Vec<Option<Waker>> = self.stages.iter().map(|_| None).collect();
        let waker_of: Vec<Waker> = (0..self.stages.len())
            .map(|index| wakers[crew_of[index]].get_or_insert_with(Waker::new).clone())
            .collect();
        let mut senders: Vec<Vec<(usize, QueueSender)>> = self.stages.iter().map(|_| Vec::new()).collect();
        let mut inline: Vec<Vec<(InlineOut, usize, usize)>> =
            self.stages.iter().map(|_| Vec::new()).collect();
        let mut arriving: Vec<Vec<(Option<usize>, InPort)>> =
            self.stages.iter().map(|_| Vec::new()).collect();
        let mut queues = Vec::new();
        for edge in &self.edges {
            let (from, output) = edge.from;
            match edge.queue {
                Some(options) => {
                    let (tx, rx): (QueueSender, QueueReceiver) =
                        queue(options, waker_of[from].step.clone(), waker_of[edge.to].signal.clone());
                    queues.push(Link { from, to: edge.to, policy: options.policy, counts: tx.counts() });
                    senders[from].push((output, tx));
                    arriving[edge.to].push((edge.input, InPort::Queue(rx)));
                }
                None => {
                    let port = edge.input.unwrap_or_else(|| arriving[edge.to].len());
                    inline[from].push((InlineOut { port: output, ..InlineOut::default() }, edge.to, port));
                    let waiting = Default::default();
                    arriving[edge.to].push((edge.input, InPort::Inline { waiting, is_ended: false }));
                }
            }
        }
        let batches_in_flight = queues.iter().map(|link| link.counts.capacity_batches).sum::<usize>()
            + 2 * self.stages.len()
            + self.reserved_batches;
        let mut placed: Vec<Option<Placed>> = self.stages.iter().map(|_| None).collect();
        let mut crews: Vec<(usize, Vec<usize>, Crew, Option<usize>)> = Vec::new();
        let mut entries: Vec<Option<Entry>> = self.stages.into_iter().map(Some).collect();
        let mut position_in_crew = vec![0; entries.len()];
        for index in order {
            let Some(entry) = entries[index].take() else { continue };
            let counts = Arc::new(StageCounts::default());
            let newcomers = Newcomers::open(entry.is_open);
            let detached = Arc::new(AtomicBool::new(false));
            placed[index] = Some(Placed {
                name: entry.name.clone(),
                waker: waker_of[index].clone(),
                counts: counts.clone(),
                own: entry.stage.counters(),
                newcomers: newcomers.clone(),
            });
            let mut ports = std::mem::take(&mut arriving[index]);
            ports.sort_by_key(|(input, _)| *input);
            let ports: Vec<InPort> = ports.into_iter().map(|(_, port)| port).collect();
            let outs = std::mem::take(&mut inline[index]);
            let routes = outs.iter().map(|&(_, to, port)| (to, port)).collect();
            let outs = outs.into_iter().map(|(out, ..)| out).collect();
            let member = Member {
                name: entry.name,
                stage: entry.stage,
                is_source: ports.is_empty(),
                input: Inputs::new(ports, counts.clone()),
                output: Outputs::new(std::mem::take(&mut senders[index]), outs, newcomers, counts.clone()),
                routes,
                ctx: Context {
                    waker: waker_of[index].clone(),
                    flags: flags.clone(),
                    detached,
                    batches_in_flight,
                    counts: counts.clone(),
                },
                counts,
                is_ended: false,
            };
            let crew = match crews.iter().position(|(id, ..)| *id == crew_of[index]) {
                Some(at) => &mut crews[at],
                None => {
                    let crew = Crew { members: Vec::new(), waker: waker_of[index].clone() };
                    crews.push((crew_of[index], Vec::new(), crew, None));
                    let last = crews.len() - 1;
                    &mut crews[last]
                }
            };
            position_in_crew[index] = crew.2.members.len();
            crew.1.push(index);
            crew.2.members.push(member);
            crew.3 = crew.3.or(entry.cpu);
        }
        for (.., crew, _) in &mut crews {
            for member in &mut crew.members {
                member.routes.iter_mut().for_each(|(to, _)| *to = position_in_crew[*to]);
            }
        }
        Built {
            placed: placed.into_iter().flatten().collect(),
            links: queues,
            flags,
            batches_in_flight,
            crews: crews.into_iter().map(|(_, stages, crew, cpu)| BuiltCrew { stages, crew, cpu }).collect(),
        }
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.stages.iter().map(|entry| entry.name.as_str()).collect();
        f.debug_struct("Graph").field("stages", &names).field("edges", &self.edges.len()).finish()
    }
}
