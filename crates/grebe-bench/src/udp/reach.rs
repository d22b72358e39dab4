use super::options::Options;
use super::run::medians;
use super::task;
use crate::error::Result;
use crate::row::{Progress, Row, Tell};
use crate::stream::{Stream, StreamRun, Turns};

/// Doubles the rate per channel from `from_msps` on until a run loses or does not reach it, then halves the gap `halvings` times.
/// A row for each size and privilege: the highest run without loss.
pub(super) fn run(options: &Options, from_msps: f64, halvings: usize, tell: Tell) -> Result<()> {
    for &bytes in &options.datagram_bytes {
        for &privileged in &options.privileged {
            match highest(options, bytes, privileged, from_msps, halvings, tell)? {
                Some(run) => tell(Progress::Row(&run.row("The highest rate over UDP without loss"))),
                None => {
                    let what = format!("{bytes} bytes");
                    tell(Progress::Row(&Row::left_out(&what, "even the lowest rate lost frames")));
                }
            }
        }
    }
    Ok(())
}

fn highest(
    options: &Options,
    bytes: usize,
    privileged: bool,
    from_msps: f64,
    halvings: usize,
    tell: Tell,
) -> Result<Option<StreamRun>> {
    let stream = task::scenario(options.scenarios.first().map_or("1ch_max", |label| label))?;
    // A rate at a time, without anything beside it.
    let options = Options {
        techniques: options.techniques.iter().take(1).cloned().collect(),
        bursts: options.bursts.iter().take(1).copied().collect(),
        turns: Turns { repeats: 1, ..options.turns },
        baseline: false,
        ..options.clone()
    };
    let mut best = None;
    let (mut good, mut bad, mut rate) = (0.0, f64::INFINITY, from_msps);
    let mut halved = 0;
    while halved < halvings {
        tell(Progress::Doing(&format!("{bytes} bytes at {rate:.0} MSPS per channel")));
        let stream = Stream { target_msps: Some(rate), ..stream };
        let runs = medians(&options, stream, bytes, privileged, None)?;
        let Some(run) = runs.into_iter().next() else { break };
        let is_clean = run.lost() == 0 && run.corrupt == 0;
        if is_clean && run.throughput_msps > rate * 0.98 {
            good = rate;
            best = Some(run);
        } else {
            bad = rate;
        }
        if bad.is_finite() {
            halved += 1;
            rate = (good + bad) / 2.0;
        } else {
            rate *= 2.0;
        }
    }
    Ok(best)
}
