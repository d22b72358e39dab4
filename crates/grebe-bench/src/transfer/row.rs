//! Measurements of transfers over a link, and their row.

use grebe_connection::{Phase, PhaseCost};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::link::Link;
use crate::canary::Reading;
use crate::pairs::range;
use crate::row::{Row, digits, percent};
use crate::runs::Spread;

/// Measurements of one transfer of ours over a link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sent {
    /// From the start to the receiver's last word, with the handshake.
    pub seconds: f64,
    /// Bytes on the wire, headers and repeats with them.
    pub wire_bytes: u64,
    /// The share of packets that were lost, 0 to 1.
    pub lost: f64,
    pub phases: Vec<PhaseRow>,
}

/// Cost of a phase of the rate control.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PhaseRow {
    pub phase: String,
    /// Times it was entered, and round trips that ended in it.
    pub entries: u32,
    pub round_trips: u32,
    pub seconds: f64,
}

impl PhaseRow {
    /// One per phase, in the order of [`Phase`](grebe_connection::Phase).
    pub(super) fn of(costs: &[PhaseCost; Phase::COUNT]) -> Vec<PhaseRow> {
        let row = |(phase, cost): (&str, &PhaseCost)| PhaseRow {
            phase: phase.to_owned(),
            entries: cost.entries,
            round_trips: cost.rounds,
            seconds: cost.time_us as f64 / 1e6,
        };
        Phase::NAMES.into_iter().zip(costs).map(row).collect()
    }

    fn words(&self) -> String {
        let Self { phase, round_trips, seconds, .. } = self;
        let trips = if *round_trips > 0 { format!(" ({round_trips} RTT)") } else { String::new() };
        format!("{phase} {seconds:.2} s{trips}")
    }
}

/// Result of a TCP flow with the same load.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TcpRun {
    Seconds(f64),
    /// The share that was done when it was given up.
    GivenUp(f64),
    /// Why it could not be measured.
    Refused(String),
}

/// A file over a link, beside TCP flows that carry the same alone.
pub(super) struct LinkRuns<'a> {
    pub link: &'a Link,
    /// `simulator`, in virtual time, or `emulator`: a program between two network namespaces.
    pub over: &'static str,
    /// Every run brought the file whole.
    pub sent: Vec<Sent>,
    /// The flows beside ours by name.
    pub tcp: [(&'static str, Vec<TcpRun>); 2],
    /// TCP that takes longer is given up.
    pub patience_s: f64,
    /// The machine before and after the runs, where their time is real.
    pub machine: Option<(Reading, Reading)>,
}

impl LinkRuns<'_> {
    pub(super) fn row(&self) -> Row {
        let (link, sent) = (self.link, &self.sent);
        let seconds = Spread::over(sent, |sent| sent.seconds);
        let wire_ratio = Spread::over(sent, |sent| sent.wire_bytes as f64 / link.file_bytes as f64);
        let (wire_goal, is_met) = (link.wire_bytes_goal(), seconds.median <= link.goal_s);
        let lost = Spread::over(sent, |sent| sent.lost);
        let mut by_time: Vec<&Sent> = sent.iter().collect();
        by_time.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let phases = by_time.get(by_time.len() / 2).map_or(&[][..], |sent| &sent.phases);
        let beside: Vec<(Value, String)> =
            self.tcp.iter().filter_map(|(name, runs)| self.beside(name, runs, seconds.median)).collect();
        let (baselines, beside): (Vec<Value>, Vec<String>) = beside.into_iter().unzip();
        let json = json!({
            "kind": "link",
            "link": link,
            "over": self.over,
            "seconds": seconds,
            "runs": sent.len(),
            "wire_s": link.wire_s(),
            "of_limit": link.wire_s() / seconds.median,
            "is_met": is_met,
            "wire_bytes_ratio": wire_ratio,
            "wire_bytes_goal": wire_goal,
            "lost": lost,
            "phases": phases,
            "baselines": baselines,
            "machine": self.machine,
        });
        let title = match self.machine {
            None => "Links, simulated, from the start to the receiver's last word; time is virtual",
            Some(_) => {
                "Links, emulated between two network namespaces, from the start to the receiver's last word"
            }
        };
        Row::new(title, &json)
            .name("link", &link.name)
            .name("path", format!("{:<36}", link.words()))
            .cell("MB", format!("{:.0}", link.file_bytes as f64 / 1e6))
            .range("s", range(&seconds))
            .cell("s for the wire alone", digits(link.wire_s()))
            .cell("of limit", percent(Some(link.wire_s() / seconds.median)))
            .cell("runs", sent.len())
            .cell("% lost", format!("{:.2}", 100.0 * lost.median))
            .text(
                "phases: s (round trips)",
                phases.iter().map(PhaseRow::words).collect::<Vec<_>>().join(", "),
            )
            .text("beside it: s (ratio)", beside.join(", "))
            .machine(self.machine, "")
            .goal(
                "time",
                format!("<= {} s", digits(link.goal_s)),
                format!("{} s", digits(seconds.median)),
                is_met,
            )
            .goal(
                "bytes on the wire",
                format!("<= {wire_goal:.3} times the file"),
                format!("{:.3}", wire_ratio.median),
                wire_ratio.median <= wire_goal,
            )
    }

    /// Result of a TCP in the same task, for programs and people: the ratio of its time to ours, or its progress when
    /// given up, if any run was. `None` if a run was refused.
    fn beside(&self, name: &str, runs: &[TcpRun], ours_s: f64) -> Option<(Value, String)> {
        let (mut seconds, mut shares) = (Vec::new(), Vec::new());
        for run in runs {
            match run {
                TcpRun::Seconds(after) => seconds.push(*after),
                TcpRun::GivenUp(share) => shares.push(*share),
                TcpRun::Refused(_) => return None,
            }
        }
        if shares.is_empty() {
            let seconds = Spread::of(&seconds);
            let ratio = seconds.median / ours_s;
            let json = json!({ "name": name, "seconds": seconds, "given_up": null, "ratio": ratio });
            return Some((json, format!("{name} {} s (x{ratio:.2})", digits(seconds.median))));
        }
        let (share, after_s) = (Spread::of(&shares).median, self.patience_s);
        let json = json!({ "name": name, "seconds": null, "given_up": [share, after_s], "ratio": null });
        Some((json, format!("{name} {:.0} % done after {after_s:.0} s", 100.0 * share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::link;

    fn runs<'a>(link: &'a Link, seconds: f64, tcp: Vec<TcpRun>) -> LinkRuns<'a> {
        let sent = |seconds| Sent { seconds, wire_bytes: 53_000_000, lost: 0.001, phases: Vec::new() };
        let sent = vec![sent(seconds), sent(2.3), sent(9.0)];
        let tcp = [("TCP BBR", tcp), ("TCP CUBIC", vec![TcpRun::Refused("no".to_owned())])];
        LinkRuns { link, over: "emulator", sent, tcp, patience_s: 60.0, machine: None }
    }

    #[test]
    fn a_baseline_that_was_given_up_or_refused_says_so() {
        let link = &link::chosen(&["B".to_owned()]).unwrap()[0];
        let whole = runs(link, 4.0, vec![TcpRun::Seconds(8.0), TcpRun::Seconds(9.0), TcpRun::Seconds(7.0)]);
        let line = whole.row().line();
        assert!(line.contains("TCP BBR 8.00 s (x2.00)") && !line.contains("CUBIC"), "{line}");
        let given_up = runs(link, 4.0, vec![TcpRun::Seconds(8.0), TcpRun::GivenUp(0.284)]).row();
        assert!(given_up.line().contains("TCP BBR 28 % done after 60 s"), "{}", given_up.line());
        let json = serde_json::to_value(given_up).unwrap();
        assert_eq!(json["baselines"][0]["given_up"], json!([0.284, 60.0]));
        assert_eq!(json["baselines"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_row_says_which_goals_are_met() {
        let link = &link::chosen(&["B".to_owned()]).unwrap()[0];
        let line = |seconds| runs(link, seconds, vec![TcpRun::Seconds(2.6)]).row().line();
        let (met, missed) = (line(2.4), line(2.6));
        assert!(met.contains("time <= 2.50 s: met") && missed.contains("time <= 2.50 s: MISSED"), "{met}");
        assert!(met.contains("2.40 (2.30-9.00) s,") && met.contains("TCP BBR 2.60 s (x1.08)"), "{met}");
        assert!(met.contains("bytes on the wire <= 1.051 times the file: MISSED"), "{met}");
    }
}
