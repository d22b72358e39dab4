//! The transfers of a simulation, and how each of them went.

use crate::proto::congestion::PhaseCost;
use crate::proto::sender::{SendCounters, SenderOptions};
use crate::proto::verdict::Verdict;

/// One transfer over the path.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Bytes of its file.
    pub total_bytes: u64,
    /// When it starts.
    pub start_us: u64,
    /// How its sender behaves.
    pub options: SenderOptions,
    /// How far its receiver lets it run ahead.
    pub window_bytes: u64,
}

/// How a transfer went.
#[derive(Debug, Clone)]
pub struct FlowReport {
    /// When the receiver had every byte.
    pub whole_us: Option<u64>,
    /// When the sender knew.
    pub done_us: Option<u64>,
    /// What the sender was told.
    pub verdict: Option<Verdict>,
    /// What the sender did.
    pub counters: SendCounters,
    /// What each phase cost.
    pub costs: [PhaseCost; 5],
    /// The most memory that both halves held.
    pub memory_bytes_max: usize,
    /// Payload bytes that were in place, every tenth of a second.
    pub received_by_tenth: Vec<u64>,
    /// The queueing delay of the bottleneck that this flow's packets met, the greatest in every tenth of a second.
    pub queue_us_by_tenth: Vec<u64>,
    /// A byte in a wrong place, which must never be.
    pub corrupt: bool,
}

impl Flow {
    /// A flow of `total_bytes` that starts at once.
    pub fn of(total_bytes: u64) -> Self {
        Self { total_bytes, start_us: 0, options: SenderOptions::default(), window_bytes: 64 << 20 }
    }
}

impl FlowReport {
    /// Whether every byte came, in its place, and the sender knows.
    pub fn is_whole(&self) -> bool {
        self.whole_us.is_some() && self.verdict == Some(Verdict::Whole) && !self.corrupt
    }
}
