use std::time::{Duration, Instant};

use super::run::StreamRun;
use crate::canary::{self, MachineState};
use crate::error::Result;

/// How often is measured, and in which state of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// Runs of each kind, in turns; medians are reported.
    pub repeats: usize,
    /// Takes only rounds that were in this state throughout, and undisturbed, as long as `patience` lasts.
    pub state: Option<MachineState>,
    /// How long to wait for that, and to repeat rounds.
    pub patience: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Self { repeats: 3, state: None, patience: Duration::from_secs(20) }
    }
}

impl Turns {
    /// Runs each of `kinds` once per round, so that all see the same minutes of the machine; the median run of each.
    pub(crate) fn medians<K>(
        &self,
        kinds: &[K],
        mut once: impl FnMut(&K) -> Result<StreamRun>,
    ) -> Result<Vec<StreamRun>> {
        let mut runs: Vec<Vec<StreamRun>> = kinds.iter().map(|_| Vec::new()).collect();
        let until = Instant::now() + self.patience;
        for _ in 0..self.repeats.max(1) {
            let round = self.round(until, || kinds.iter().map(&mut once).collect())?;
            round.into_iter().zip(&mut runs).for_each(|(run, runs)| runs.push(run));
        }
        Ok(runs.into_iter().filter_map(StreamRun::median).collect())
    }

    /// One run of each kind, in the state asked for, if that comes in time.
    fn round(
        &self,
        until: Instant,
        mut runs: impl FnMut() -> Result<Vec<StreamRun>>,
    ) -> Result<Vec<StreamRun>> {
        let Some(state) = self.state else { return runs() };
        loop {
            while canary::read().state != state && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
            let round = runs()?;
            if round.iter().all(|run| run.is_all(state)) || Instant::now() >= until {
                return Ok(round);
            }
        }
    }
}
