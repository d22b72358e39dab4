use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Scenario;
use crate::canary::Mood;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// One run for each.
    pub scenarios: Vec<Scenario>,
    /// Bytes of header and samples together, one run for each.
    pub datagram_bytes: Vec<usize>,
    /// Datagrams after which a batch is sent, one run for each.
    pub bursts: Vec<usize>,
    /// One run for each.
    pub techniques: Vec<Technique>,
    /// Whether to use the privilege that large buffers need, one run for each.
    pub privileged: Vec<bool>,
    /// How long one run sends.
    pub duration: Duration,
    /// Runs of each kind, each beside a run of the baseline; medians are reported.
    pub repeats: usize,
    /// Whether the baseline is measured too.
    pub baseline: bool,
    /// The end-to-end latency budget.
    pub latency: Duration,
    /// Bytes of receive buffer to ask for.
    pub recv_buffer_bytes: usize,
    /// Takes only rounds that were in this mood throughout, and undisturbed, as long as `patience` lasts.
    pub mood: Option<Mood>,
    /// For how long to wait for that, and to repeat rounds, for each row of the matrix.
    pub patience: Duration,
    /// What to spoil on purpose, to see that it is noticed.
    pub fault: Option<Fault>,
    /// Where the receiver runs.
    pub spawn: Spawn,
    /// Where the receiver binds, without the port.
    pub host: std::net::IpAddr,
}

/// How datagrams are handed to the kernel and taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Technique {
    /// One datagram a call, blocking: `send` and `recv` of `std`. The baseline.
    OneCall,
    /// Several datagrams a call.
    Mmsg,
    /// Several datagrams a call and a kernel buffer; header and samples lie apart and are gathered by the kernel.
    Gso,
    /// The same, with frames written one behind the other, as grebe's sources make them: writing them is part of the run.
    GsoRun,
}

/// What can be spoiled in every hundredth frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// The samples of the frame before.
    Stale,
    /// The two halves of the payload the other way round.
    Swapped,
    /// Samples moved by one.
    Shifted,
}

/// Where the receiver runs.
#[derive(Clone)]
pub enum Spawn {
    /// In a thread of this process.
    Thread,
    /// In a process: a command that calls [`peer_main`](super::peer_main).
    Process(Arc<dyn Fn() -> Command + Send + Sync>),
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            scenarios: vec![super::SCENARIOS[0]],
            datagram_bytes: vec![1_400, 65_000],
            bursts: vec![grebe_datagram::MAX_BURST_DATAGRAMS],
            techniques: vec![Technique::Gso],
            privileged: vec![true],
            duration: Duration::from_secs(1),
            repeats: 3,
            baseline: true,
            latency: Duration::from_micros(500),
            recv_buffer_bytes: 32 << 20,
            mood: None,
            patience: Duration::from_secs(20),
            fault: None,
            spawn: Spawn::Thread,
            host: std::net::Ipv4Addr::LOCALHOST.into(),
        }
    }
}

impl Technique {
    /// All, from the plainest on.
    pub const ALL: [Technique; 4] = [Technique::OneCall, Technique::Mmsg, Technique::Gso, Technique::GsoRun];

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Technique::OneCall => "one_call",
            Technique::Mmsg => "mmsg",
            Technique::Gso => "gso",
            Technique::GsoRun => "gso_run",
        }
    }
}

impl std::fmt::Debug for Spawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Spawn::Thread => "Thread",
            Spawn::Process(_) => "Process",
        })
    }
}

/// One run, as both sides are told it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub channels: u32,
    pub block: u32,
    pub burst: usize,
    pub technique: Technique,
    pub privileged: bool,
    pub target_msps: Option<f64>,
    pub duration: Duration,
    pub latency: Duration,
    pub recv_buffer_bytes: usize,
    pub fault: Option<Fault>,
    pub host: std::net::IpAddr,
}

impl Job {
    pub fn options(&self) -> grebe_datagram::Options {
        let offload = matches!(self.technique, Technique::Gso | Technique::GsoRun);
        grebe_datagram::Options {
            recv_buffer_bytes: self.recv_buffer_bytes,
            force_buffers: self.privileged,
            batch: self.technique != Technique::OneCall,
            gso: offload,
            gro: offload,
            burst: self.burst,
            latency: self.latency,
            // One datagram a slot needs more slots for the same amortisation.
            slots: if offload { 8 } else { 64 },
            ..grebe_datagram::Options::default()
        }
    }
}
