//! What the controller does, what follows, and what each phase has cost.

/// The state that follows. The controller makes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NextState {
    /// Growth from this rate, in bytes per second: the path became faster.
    RampFrom(f64),
    /// Rate probing, which drains the queue first.
    Drain,
    /// Rate probing at the rate that was confirmed.
    Cruise,
    /// Rate probing, which asks for more first: whoever filled the queue is gone.
    ProbeUp,
    /// The window beside flows that fill the queue.
    CompetingWindow,
    /// The window where losses answer to the rate although no queue stands.
    LossWindow {
        /// More was lost than any path loses by itself.
        is_overrun: bool,
    },
}

/// What the controller is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The first packets are in flight; their dispersion at the receiver tells the first rate.
    Train,
    /// The rate grows each round trip.
    Ramp,
    /// The rate is what the path was seen to deliver.
    Cruise,
    /// A little more, to see whether the path delivers it.
    Up,
    /// A little less, until the queue is drained.
    Down,
    /// A window beside flows that fill the queue.
    Compete,
    /// Half of the path, beside flows that do not back off.
    HalfShare,
    /// A window where losses answer to the rate.
    LossWindow,
}

impl Phase {
    /// How many there are.
    pub const COUNT: usize = Self::NAMES.len();
    /// Their names in figures, in their order.
    pub const NAMES: [&str; 8] =
        ["train", "ramp", "cruise", "up", "down", "compete", "half_share", "loss_window"];
}

/// What a phase has cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseCost {
    /// Times it was entered.
    pub entries: u32,
    /// Round trips that ended in it.
    pub rounds: u32,
    /// Time in it.
    pub time_us: u64,
}

/// The cost of each phase, in the order of [`Phase`].
#[derive(Debug)]
pub(super) struct PhaseLog {
    phase: Phase,
    since_us: u64,
    costs: [PhaseCost; Phase::COUNT],
}

impl PhaseLog {
    pub(super) fn new() -> Self {
        let mut costs = [PhaseCost::default(); Phase::COUNT];
        costs[Phase::Train as usize].entries = 1;
        Self { phase: Phase::Train, since_us: 0, costs }
    }

    pub(super) fn start(&mut self, now_us: u64) {
        self.since_us = now_us;
    }

    pub(super) fn end_round(&mut self) {
        self.costs[self.phase as usize].rounds += 1;
    }

    pub(super) fn note(&mut self, phase: Phase, now_us: u64) {
        if phase != self.phase {
            self.costs = self.until(now_us);
            self.costs[phase as usize].entries += 1;
            (self.phase, self.since_us) = (phase, now_us);
        }
    }

    /// The costs, with the time of the present phase until `now_us`.
    pub(super) fn until(&self, now_us: u64) -> [PhaseCost; Phase::COUNT] {
        let mut costs = self.costs;
        costs[self.phase as usize].time_us += now_us.saturating_sub(self.since_us);
        costs
    }
}
