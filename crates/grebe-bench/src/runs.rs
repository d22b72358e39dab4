//! How often is measured, in which state of the machine, and what several runs say together.

use std::time::{Duration, Instant};

use clap::Args;
use grebe_flow::{NoQuantity, SizeBytes, Time};
use serde::{Deserialize, Serialize};

use crate::canary::{self, MachineState};
use crate::error::Result;
use crate::limit;
use crate::stream::StreamRun;

/// How long and how often is measured.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Runs")]
pub struct Runs {
    /// How long one run takes.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub duration: Duration,
    /// Runs of each kind; medians are shown.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub repeats: u16,
}

/// In which state of the machine is measured.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Runs")]
pub struct Machine {
    /// Take only rounds in which the machine's cores were near each other throughout.
    #[arg(long, conflicts_with = "far")]
    pub near: bool,
    /// Take only rounds in which they were far from each other throughout.
    #[arg(long)]
    pub far: bool,
    /// How long to wait for such rounds, per scenario.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    pub patience: Duration,
}

/// Reads a time as the command line has it.
pub(crate) fn time(text: &str) -> Result<Duration, NoQuantity> {
    text.parse().map(|time: Time| time.0)
}

/// Reads a size as the command line has it.
pub(crate) fn size(text: &str) -> Result<usize, NoQuantity> {
    text.parse().map(|size: SizeBytes| size.0)
}

impl Machine {
    /// Runs each of `kinds` once per round, so that all see the same minutes of the machine; the median run of each. A run of the
    /// machine's own limit is none of them: the others of its round are measured by it.
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

    /// One run of each kind, in the state asked for, if that comes in time.
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

/// What several runs measured: the smallest, the middle one, and the largest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Spread {
    /// Of what `value` says of each.
    pub(crate) fn over<T>(all: &[T], value: impl Fn(&T) -> f64) -> Self {
        Self::of(&all.iter().map(value).collect::<Vec<_>>())
    }

    /// Of these values; zeros where there are none.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |position: usize| sorted.get(position).copied().unwrap_or(0.0);
        let count = sorted.len();
        let median = (at(count.saturating_sub(1) / 2) + at(count / 2)) / 2.0;
        Self { low: at(0), median, high: at(count.saturating_sub(1)) }
    }
}

/// Two techniques measured in turns: a value of each per pair.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pairs {
    pub ours: Vec<f64>,
    pub baseline: Vec<f64>,
}

impl Pairs {
    /// Measures `ours` and `baseline` in turns; which is first alternates.
    pub(crate) fn measure(
        pairs: usize,
        mut ours: impl FnMut() -> Result<f64>,
        mut baseline: impl FnMut() -> Result<f64>,
    ) -> Result<Self> {
        let mut this = Self::default();
        for pair in 0..pairs.max(1) {
            if pair % 2 == 1 {
                this.ours.push(ours()?);
            }
            this.baseline.push(baseline()?);
            if pair % 2 == 0 {
                this.ours.push(ours()?);
            }
        }
        Ok(this)
    }

    /// The median of the ratios of the pairs: what slows both sides of a pair alike does not show in it.
    pub(crate) fn ratio(&self) -> f64 {
        Spread::of(&self.ratios()).median
    }

    /// The 95 % interval of the mean ratio (geometric, by Student's t); `None` for fewer than three pairs.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        let logs: Vec<f64> = self.ratios().iter().map(|ratio| ratio.ln()).collect();
        let count = logs.len() as f64;
        if logs.len() < 3 || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / count;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let reach = student_t(count - 1.0) * (variance / count).sqrt();
        Some(((mean - reach).exp(), (mean + reach).exp()))
    }

    fn ratios(&self) -> Vec<f64> {
        self.ours.iter().zip(&self.baseline).map(|(ours, baseline)| ours / baseline).collect()
    }
}

/// The 97.5 % point of Student's t, to 1 % from two degrees of freedom on (Cornish and Fisher's expansion).
fn student_t(freedom: f64) -> f64 {
    let z: f64 = 1.959_964;
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (freedom, expected) in [(3.0, 3.182), (4.0, 2.776), (9.0, 2.262), (19.0, 2.093), (99.0, 1.984)] {
            let got = student_t(freedom);
            assert!((got / expected - 1.0).abs() < 0.02, "{freedom}: {got}, not {expected}");
        }
    }

    #[test]
    fn a_slow_minute_does_not_show_in_the_ratio() {
        let pairs = Pairs { ours: vec![50.0, 5.0, 51.0, 49.0], baseline: vec![100.0, 10.0, 100.0, 100.0] };
        assert!((pairs.ratio() - 0.5).abs() < 0.01);
        let (low, high) = pairs.interval().unwrap();
        assert!(low < 0.5 && 0.5 < high && high - low < 0.1, "{low} to {high}");
        assert_eq!(Spread::of(&pairs.ours), Spread { low: 5.0, median: 49.5, high: 51.0 });
    }

    #[test]
    fn who_is_measured_first_changes_from_pair_to_pair() {
        let order = std::cell::RefCell::new(String::new());
        let mark = |letter: char| {
            order.borrow_mut().push(letter);
            Ok(1.0)
        };
        Pairs::measure(3, || mark('o'), || mark('b')).unwrap();
        assert_eq!(order.into_inner(), "boobbo");
    }
}
