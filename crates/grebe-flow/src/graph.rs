//! Which stages there are and how they are connected; checked before anything runs.

use std::collections::HashSet;

use crate::port::Waker;
use crate::queue::{QueueCounts, QueueReceiver, QueueSender, queue};
use crate::runtime::{Running, Seat};
use crate::{Error, QueueOptions, Stage};

/// Stages and the queues between them, not yet running.
#[derive(Default)]
pub struct Graph {
    stages: Vec<(String, Box<dyn Stage>)>,
    edges: Vec<(usize, usize, QueueOptions)>,
}

/// A stage of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node(usize);

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
        self.stages.push((name.into(), stage));
        Node(self.stages.len() - 1)
    }

    /// Leads `from` to `to` through a queue of its own. Several queues from one stage are a fan-out: each gets every batch.
    pub fn connect(&mut self, from: Node, to: Node, options: QueueOptions) {
        self.edges.push((from.0, to.0, options));
    }

    /// Checks the graph and starts a thread a stage.
    ///
    /// # Errors
    /// A name used twice, a cycle, a stage connected to nothing, or a thread the system did not give; nothing runs then.
    pub fn start(self) -> Result<Running, Error> {
        self.check()?;
        let wakers: Vec<Waker> = self.stages.iter().map(|_| Waker::new()).collect();
        let mut inputs: Vec<Vec<QueueReceiver>> = self.stages.iter().map(|_| Vec::new()).collect();
        let mut outputs: Vec<Vec<QueueSender>> = self.stages.iter().map(|_| Vec::new()).collect();
        let mut queues = Vec::new();
        for &(from, to, options) in &self.edges {
            let (tx, rx) = queue(options, wakers[from].signal.clone(), wakers[to].signal.clone());
            queues.push((from, to, options.policy, tx.counts()));
            outputs[from].push(tx);
            inputs[to].push(rx);
        }
        let batches_in_flight = batches_in_flight(&queues, self.stages.len());
        let seats = self
            .stages
            .into_iter()
            .zip(wakers)
            .zip(inputs.into_iter().zip(outputs))
            .map(|(((name, stage), waker), (inputs, outputs))| Seat { name, stage, waker, inputs, outputs })
            .collect();
        Running::start(seats, queues, batches_in_flight)
    }

    fn check(&self) -> Result<(), Error> {
        let mut names = HashSet::new();
        if let Some((name, _)) = self.stages.iter().find(|(name, _)| !names.insert(name.as_str())) {
            return Err(Error::DuplicateName(name.clone()));
        }
        let connected = |index| self.edges.iter().any(|&(from, to, _)| from == index || to == index);
        if let Some(index) = (0..self.stages.len()).find(|&index| self.stages.len() > 1 && !connected(index))
        {
            return Err(Error::Unconnected(self.stages[index].0.clone()));
        }
        // Take away stages that nothing left leads to, again and again: what cannot be taken away lies on a cycle.
        let mut left: HashSet<usize> = (0..self.stages.len()).collect();
        while let Some(&first) = left
            .iter()
            .find(|&&index| !self.edges.iter().any(|&(from, to, _)| to == index && left.contains(&from)))
        {
            left.remove(&first);
        }
        match left.into_iter().min() {
            Some(index) => Err(Error::Cycle(self.stages[index].0.clone())),
            None => Ok(()),
        }
    }
}

pub(crate) type Edge = (usize, usize, crate::Policy, std::sync::Arc<QueueCounts>);

/// What all queues hold when full, and two batches in hand a stage.
fn batches_in_flight(queues: &[Edge], stages: usize) -> usize {
    queues.iter().map(|(.., counts)| counts.capacity_batches).sum::<usize>() + 2 * stages
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.stages.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Graph").field("stages", &names).field("edges", &self.edges.len()).finish()
    }
}
