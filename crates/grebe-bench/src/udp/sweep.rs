//! The highest rate that loses nothing.

use super::{Plan, RunResult, Scenario, run};
use crate::Result;

/// The outcome of a sweep.
#[derive(Debug, Clone)]
pub struct Reach {
    /// The highest loss-free run; `None` where even the lowest rate lost frames.
    pub best: Option<RunResult>,
    /// Every run, in the order made.
    pub tried: Vec<RunResult>,
}

/// Looks for the highest rate without loss: doubles from `from_msps` a channel until a run loses or does not reach its rate,
/// then halves the gap `steps` times. Uses the plan's first technique, burst, size and privilege.
///
/// # Errors
/// As [`run`](run()).
pub fn reach(plan: &Plan, scenario: Scenario, from_msps: f64, steps: usize) -> Result<Reach> {
    let mut reach = Reach { best: None, tried: Vec::new() };
    let (mut good, mut bad) = (0.0, f64::INFINITY);
    let mut rate = from_msps;
    let mut halvings = 0;
    while halvings < steps {
        let scenario = Scenario { target_msps: Some(rate), ..scenario };
        let single = Plan { scenarios: vec![scenario], repeats: 1, baseline: false, ..plan.clone() };
        let Some(result) = run(&single, |_| {})?.into_iter().next() else { break };
        let clean = result.frames_recv == result.frames_sent && result.corrupt == 0;
        let reached = result.throughput_msps > rate * 0.98;
        if clean && reached {
            good = rate;
            reach.best = Some(result.clone());
        } else {
            bad = rate;
        }
        reach.tried.push(result);
        if bad.is_finite() {
            halvings += 1;
            rate = (good + bad) / 2.0;
        } else {
            rate *= 2.0;
        }
    }
    Ok(reach)
}
