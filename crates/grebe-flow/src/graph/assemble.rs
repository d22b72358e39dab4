//! Turns a checked graph into workers: makes the queues and gives every stage its ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::topology::{Edge, StageEntry, Topology};
use crate::counters::StageCounts;
use crate::queue::{QueueSender, queue};
use crate::runtime::{Assembly, Handles, QueueHandle, Route, StageHandle, StageSlot, Worker};
use crate::stage::{Context, Flags, InPort, InlineOut, Inputs, Newcomers, Outputs, Waker};

/// Makes the queues and workers of a graph. Stages are called in `order`; `worker_of` gives the worker of
/// each stage.
pub(super) fn assemble(topology: Topology, order: &[usize], worker_of: &[usize]) -> Assembly {
    let (graph, wakers) = (topology.id, wakers(worker_of));
    let (mut ends, queues) = connect(&topology, &wakers);
    let held_by_stages = 2 * topology.stages.len();
    let batches_in_flight = queues.iter().map(|queue| queue.counts.capacity_batches).sum::<usize>()
        + held_by_stages
        + topology.reserved_batches;
    let flags = Arc::new(Flags::default());

    let entries: Vec<StageEntry> = topology.stages;
    let handles: Vec<StageHandle> =
        entries.iter().zip(&wakers).map(|(entry, waker)| handle(entry, waker.clone())).collect();
    let mut entries: Vec<Option<StageEntry>> = entries.into_iter().map(Some).collect();
    let mut workers: Vec<(usize, Worker)> = Vec::new();
    // Position of each stage among its worker's slots.
    let mut slot_of = vec![0; entries.len()];
    for &stage in order {
        let Some(entry) = entries[stage].take() else { continue };
        let worker = worker_at(&mut workers, worker_of[stage], &wakers[stage]);
        slot_of[stage] = worker.slots.len();
        worker.cpu = worker.cpu.or(entry.cpu);
        let ctx = Context {
            waker: wakers[stage].clone(),
            flags: flags.clone(),
            detached: Arc::new(AtomicBool::new(false)),
            batches_in_flight,
            counts: handles[stage].counts.clone(),
            upstream: upstream_of(stage, &topology.edges).map(|before| handles[before].counts.clone()),
        };
        worker.slots.push(slot(stage, entry, std::mem::take(&mut ends[stage]), &handles[stage], ctx));
    }
    let mut workers: Vec<Worker> = workers.into_iter().map(|(_, worker)| worker).collect();
    for route in workers.iter_mut().flat_map(|worker| &mut worker.slots).flat_map(|slot| &mut slot.routes) {
        // Known only now, because a route leads to a later stage.
        route.slot = slot_of[route.slot];
    }
    Assembly { handles: Handles { graph, stages: handles, queues }, flags, batches_in_flight, workers }
}

/// The only stage before this one, if there is exactly one.
fn upstream_of(stage: usize, edges: &[Edge]) -> Option<usize> {
    let mut before = edges.iter().filter(|edge| edge.to == stage).map(|edge| edge.from);
    before.next().filter(|_| before.next().is_none())
}

/// A stage's ends of the queues and buffers around it.
#[derive(Default)]
struct Ends {
    inputs: Vec<Input>,
    queues: Vec<(usize, QueueSender)>,
    inline: Vec<InlineOut>,
    /// Route of each inline output; the slot is still a stage's position.
    routes: Vec<Route>,
}

struct Input {
    position: Option<usize>,
    port: InPort,
}

/// One waker per worker, by stage.
fn wakers(worker_of: &[usize]) -> Vec<Waker> {
    let mut by_worker: Vec<Option<Waker>> = vec![None; worker_of.len()];
    worker_of.iter().map(|&worker| by_worker[worker].get_or_insert_default().clone()).collect()
}

/// Makes a queue or a buffer for each edge. Returns the ends by stage.
fn connect(topology: &Topology, wakers: &[Waker]) -> (Vec<Ends>, Vec<QueueHandle>) {
    let mut ends: Vec<Ends> = topology.stages.iter().map(|_| Ends::default()).collect();
    let mut queues = topology.async_queues.clone();
    for &Edge { from, output, to, input, queue: options } in &topology.edges {
        let port = match options {
            Some(options) => {
                let (tx, rx) = queue(options, wakers[from].step.clone(), wakers[to].signal.clone());
                let (policy, counts) = (options.policy, tx.counts());
                queues.push(QueueHandle { from, to, policy, counts });
                ends[from].queues.push((output, tx));
                InPort::Queue(rx)
            }
            None => {
                let port = input.unwrap_or(ends[to].inputs.len());
                ends[from].inline.push(InlineOut { port: output, ..InlineOut::default() });
                ends[from].routes.push(Route { slot: to, port });
                InPort::Inline { waiting: Default::default(), is_ended: false }
            }
        };
        ends[to].inputs.push(Input { position: input, port });
    }
    (ends, queues)
}

fn handle(entry: &StageEntry, waker: Waker) -> StageHandle {
    StageHandle {
        name: entry.name.clone(),
        waker,
        counts: Arc::new(StageCounts::default()),
        own: entry.stage.counters(),
        newcomers: Newcomers::open(entry.is_open),
    }
}

fn worker_at<'w>(workers: &'w mut Vec<(usize, Worker)>, id: usize, waker: &Waker) -> &'w mut Worker {
    let at = workers.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
        workers.push((id, Worker { waker: waker.clone(), ..Worker::default() }));
        workers.len() - 1
    });
    &mut workers[at].1
}

fn slot(at: usize, entry: StageEntry, mut ends: Ends, handle: &StageHandle, ctx: Context) -> StageSlot {
    ends.inputs.sort_by_key(|input| input.position);
    let ports: Vec<InPort> = ends.inputs.into_iter().map(|input| input.port).collect();
    let counts = &handle.counts;
    StageSlot {
        at,
        name: entry.name,
        is_fed: entry.stage.is_fed(),
        ends_graph: entry.ends_graph,
        stage: entry.stage,
        is_source: ports.is_empty(),
        input: Inputs::new(ports, counts.clone()),
        output: Outputs::new(ends.queues, ends.inline, handle.newcomers.clone(), counts.clone()),
        routes: ends.routes,
        ctx,
        is_ended: false,
    }
}
