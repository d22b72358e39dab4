//! In which state of the machine is measured.

use std::time::{Duration, Instant};

use clap::Args;

use crate::canary::{self, MachineState};
use crate::error::Result;
use crate::limit;
use crate::runs::time;
use crate::stream::StreamRun;

/// State of the machine.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Runs")]
pub struct Machine {
    /// Use only rounds in which the cores are near each other.
    #[arg(long, conflicts_with = "far")]
    pub near: bool,
    /// Use only rounds in which the cores are far from each other.
    #[arg(long)]
    pub far: bool,
    /// Time to wait for such rounds, per scenario.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    pub patience: Duration,
}

impl Machine {
    /// Runs each of `kinds` once per round, so that all see the same minutes of the machine; the median run of each.
    /// A run of the machine's own limit is none of them: the others of its round are measured by it.
    pub(crate) fn medians<K>(
        &self,
        repeats: u16,
        kinds: &[K],
        mut once: impl FnMut(&K) -> Result<StreamRun>,
    ) -> Result<Vec<StreamRun>> {
        let mut runs: Vec<Vec<StreamRun>> = kinds.iter().map(|_| Vec::new()).collect();
        let until = Instant::now() + self.patience;
        for _ in 0..repeats.max(1) {
            let mut round: Vec<StreamRun> = self.round(until, || kinds.iter().map(&mut once).collect())?;
            for limit in round.extract_if(.., |run| run.technique == limit::TECHNIQUE).collect::<Vec<_>>() {
                round.iter_mut().for_each(|run| run.measure_by(&limit));
            }
            round.into_iter().zip(&mut runs).for_each(|(run, runs)| runs.push(run));
        }
        Ok(runs.into_iter().filter_map(StreamRun::median).collect())
    }

    /// One run of each kind in the requested state, if that occurs in time.
    fn round(
        &self,
        until: Instant,
        mut runs: impl FnMut() -> Result<Vec<StreamRun>>,
    ) -> Result<Vec<StreamRun>> {
        let near = self.near.then_some(MachineState::Near);
        let Some(state) = near.or(self.far.then_some(MachineState::Far)) else { return runs() };
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
