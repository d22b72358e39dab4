//! Two flows on one path in the simulator: their shares and losses.

use grebe_simulator::{Congestion, Flow, Link, Path, TcpFlow, simulate_beside};

use serde_json::json;

use super::options::Options;
use super::simulated::beside_each_other;
use crate::error::Result;
use crate::pairs::range;
use crate::row::{Progress, Row, Tell, percent};
use crate::runs::Spread;

/// A row per pair, each the median of the repeats, which differ in who starts when.
pub(super) fn run(options: &Options, tell: Tell) -> Result<()> {
    tell(Progress::Doing("shares of a path in the simulator"));
    measure(options, Bottleneck { rate_mbit: 100.0, rtt_ms: 50, seconds: 60 }, tell)
}

/// The path, and for how long it is shared.
#[derive(Debug, Clone, Copy)]
struct Bottleneck {
    rate_mbit: f64,
    rtt_ms: u64,
    seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Party {
    Grebe,
    Tcp(Congestion),
}

use Congestion::{Bbr, Cubic};
use Party::{Grebe, Tcp};

/// Each pair, and the one of these in which a second CUBIC stands in our place.
const PAIRS: [([Party; 2], Option<usize>); 5] = [
    ([Tcp(Cubic), Tcp(Cubic)], None),
    ([Tcp(Cubic), Tcp(Bbr)], None),
    ([Grebe, Grebe], Some(0)),
    ([Grebe, Tcp(Cubic)], Some(0)),
    ([Grebe, Tcp(Bbr)], Some(1)),
];

fn measure(options: &Options, on: Bottleneck, tell: Tell) -> Result<()> {
    let repeats: Vec<usize> = (0..options.repeats.into()).collect();
    let mut lost: Vec<f64> = Vec::new();
    for (pair, cubic) in PAIRS {
        options.check_cancel()?;
        let runs = beside_each_other(&repeats, |&repeat| once(pair, repeat, on))?;
        lost.push(Spread::over(&runs, |run| run.lost).median);
        tell(Progress::Row(&row(pair, on, &runs, cubic.map(|at| lost[at]))));
    }
    Ok(())
}

/// Results of one run.
struct Shared {
    rates_mbit: [f64; 2],
    lost: f64,
}

fn once(pair: [Party; 2], repeat: usize, on: Bottleneck) -> Shared {
    let Bottleneck { rate_mbit, rtt_ms, seconds } = on;
    let queue_bytes = (rate_mbit * 1e6 / 8.0 * rtt_ms as f64 / 1e3) as u64;
    let path = Path::symmetric(Link {
        rate_bits_per_s: rate_mbit * 1e6,
        delay_us: rtt_ms * 500,
        queue_bytes,
        ..Link::default()
    });
    // The one that starts later finds the path full: each is that one in turn.
    let later_us = SECOND_US / 3 + 137_000 * (repeat as u64 / 2 % 7);
    let start_us = |at: usize| if at == repeat % 2 { 0 } else { later_us };
    let (mut flows, mut neighbours) = (Vec::new(), Vec::new());
    for (at, party) in pair.into_iter().enumerate() {
        match party {
            Grebe => {
                let mut flow = Flow { start_us: start_us(at), ..Flow::of(ENDLESS_BYTES) };
                (flow.options.rtt_us, flow.options.seed) =
                    (Some(rtt_ms * 1_000), (2 * repeat + at + 1) as u64);
                flows.push(flow);
            }
            Tcp(congestion) => neighbours.push(TcpFlow { congestion, start_us: start_us(at) }),
        }
    }
    let (ours, theirs) = simulate_beside(&path, &flows, &neighbours, repeat as u64 + 1, seconds * SECOND_US);
    // Ours stand first in each pair, as they do here.
    let by_tenth = ours
        .iter()
        .map(|end| rate_of(&end.received_by_tenth, seconds) * 1_500.0 / PACKET_PAYLOAD_BYTES)
        .chain(theirs.iter().map(|end| rate_of(&end.delivered_by_tenth, seconds)));
    let mut rates_mbit = [0.0; 2];
    rates_mbit.iter_mut().zip(by_tenth).for_each(|(rate, of)| *rate = of);
    let sent = ours.iter().map(|end| end.counters.packets).chain(theirs.iter().map(|end| end.packets));
    let lost = ours.iter().map(|end| end.counters.lost).chain(theirs.iter().map(|end| end.lost));
    Shared { rates_mbit, lost: lost.sum::<u64>() as f64 / sent.sum::<u64>().max(1) as f64 }
}

/// Megabits a second in the last two thirds.
fn rate_of(by_tenth: &[u64], seconds: u64) -> f64 {
    let tenths = 10 * seconds as usize;
    let at = |tenth: usize| by_tenth.get(tenth).or(by_tenth.last()).copied().unwrap_or(0);
    let bytes = at(tenths - 1).saturating_sub(at(tenths / 3));
    bytes as f64 * 8.0 / (seconds as f64 * 2.0 / 3.0) / 1e6
}

/// `lost_by_cubic` is the loss with a second CUBIC in our place.
fn row(pair: [Party; 2], on: Bottleneck, runs: &[Shared], lost_by_cubic: Option<f64>) -> Row {
    let share = Spread::over(runs, |run| run.rates_mbit[0] / run.rates_mbit.iter().sum::<f64>().max(1e-9));
    let rate = Spread::over(runs, |run| run.rates_mbit.iter().sum());
    let lost = Spread::over(runs, |run| run.lost);
    let is_fair = pair.contains(&Grebe).then_some((0.35..=0.65).contains(&share.median));
    let path = format!("{} Mbit/s, {} ms, a queue of one round trip", on.rate_mbit, on.rtt_ms);
    let flows = pair.map(Party::name);
    let json = json!({
        "kind": "share",
        "flows": flows,
        "path": path,
        "share": share,
        "rate_mbit": rate,
        "lost": lost,
        "lost_by_cubic": lost_by_cubic,
        "is_fair": is_fair,
        "runs": runs.len(),
    });
    let percents = |of: &Spread| {
        range(&Spread { low: 100.0 * of.low, median: 100.0 * of.median, high: 100.0 * of.high })
    };
    let row = Row::new(format!("Two flows on {path}, simulated"), &json)
        .name("flows", format!("{:<12}", flows.join(", ")))
        .range("% the first one's share", percents(&share))
        .range("Mbit/s of both", range(&rate))
        .cell("of limit", percent(Some(rate.median / on.rate_mbit)))
        .range("% lost", percents(&lost))
        .cell(
            "% lost beside a second CUBIC",
            lost_by_cubic.map_or(String::new(), |lost| format!("{:.2}", 100.0 * lost)),
        )
        .cell("runs", runs.len());
    let measured = format!("{:.0} %", 100.0 * share.median);
    is_fair.map_or(row.clone(), |is_fair| row.goal("share", "35 to 65 %", measured, is_fair))
}

impl Party {
    fn name(self) -> &'static str {
        match self {
            Grebe => "grebe",
            Tcp(Cubic) => "CUBIC",
            Tcp(Bbr) => "BBR",
        }
    }
}

const SECOND_US: u64 = 1_000_000;

/// More than any of them carries in the time.
const ENDLESS_BYTES: u64 = 3_000_000_000;

/// Payload of one of our packets of 1500 bytes on the wire.
const PACKET_PAYLOAD_BYTES: f64 = 1_435.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_fills_the_path_and_stands_beside_a_second_cubic() {
        let options = Options { repeats: 2, ..Options::default() };
        let mut rows = Vec::new();
        measure(&options, Bottleneck { rate_mbit: 20.0, rtt_ms: 40, seconds: 12 }, &mut |progress| {
            if let Progress::Row(row) = progress {
                rows.push(serde_json::to_value(row).unwrap());
            }
        })
        .unwrap();
        let flows: Vec<_> =
            rows.iter().map(|row| format!("{}-{}", row["flows"][0], row["flows"][1])).collect();
        let flows: Vec<_> = flows.iter().map(|flows| flows.replace('"', "")).collect();
        assert_eq!(flows, ["CUBIC-CUBIC", "CUBIC-BBR", "grebe-grebe", "grebe-CUBIC", "grebe-BBR"]);
        for row in &rows {
            let number = |path: &str| row.pointer(path).and_then(|value| value.as_f64()).unwrap();
            assert!((15.0..20.5).contains(&number("/rate_mbit/median")), "{row}");
            assert!(number("/share/low") > 0.0 && number("/share/high") < 1.0, "{row}");
            assert!(number("/lost/high") < 0.2, "{row}");
            let is_ours = row["flows"][0] == "grebe";
            assert_eq!((row["runs"].as_u64(), row["is_fair"].is_boolean()), (Some(2), is_ours));
            assert_eq!(row["lost_by_cubic"].is_number(), is_ours);
        }
        assert_eq!(rows[3]["lost_by_cubic"], rows[0]["lost"]["median"]);
        assert_eq!(rows[4]["lost_by_cubic"], rows[1]["lost"]["median"]);
    }
}
