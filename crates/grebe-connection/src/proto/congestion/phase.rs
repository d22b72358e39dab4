//! States of the controller, transitions, and the cost of each phase.

/// Next state, which the controller constructs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NextState {
    /// Growth from this rate in bytes per second, because the path became faster.
    RampFrom(f64),
    /// Rate probing, which drains the queue first.
    Drain,
    /// Rate probing at the confirmed rate.
    Cruise,
    /// Rate probing that asks for more first, because the flow that filled the queue is gone.
    ProbeUp,
    /// The window beside flows that fill the queue.
    CompetingWindow,
    /// The window for losses that depend on the rate without a visible queue.
    LossWindow {
        /// The loss exceeded any known loss of the path.
        overrun: Option<Overrun>,
    },
}

/// Loss beyond any known loss of the path, and the rate in bytes per second that passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Overrun {
    pub(super) loss: f64,
    pub(super) passing_rate: f64,
}

/// Activity of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The first packets are in flight; their dispersion at the receiver gives the first rate.
    Train,
    /// The rate grows each round trip.
    Ramp,
    /// The rate is the measured delivery rate.
    Cruise,
    /// Slightly faster, to test whether the path delivers it.
    Up,
    /// Slightly slower, until the queue is drained.
    Down,
    /// A window beside flows that fill the queue.
    Compete,
    /// Half of the path, beside flows that do not back off.
    HalfShare,
    /// A window for losses that depend on the rate.
    LossWindow,
}

impl Phase {
    /// Number of phases.
    pub const COUNT: usize = Self::NAMES.len();
    /// Names for metrics, in the order of the phases.
    pub const NAMES: [&str; 8] =
        ["train", "ramp", "cruise", "up", "down", "compete", "half_share", "loss_window"];
}

/// Cost of a phase so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseCost {
    /// Number of entries.
    pub entries: u32,
    /// Round trips that ended in this phase.
    pub rounds: u32,
    /// Time in this phase.
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

    /// Costs, with the present phase until `now_us`.
    pub(super) fn until(&self, now_us: u64) -> [PhaseCost; Phase::COUNT] {
        let mut costs = self.costs;
        costs[self.phase as usize].time_us += now_us.saturating_sub(self.since_us);
        costs
    }
}
