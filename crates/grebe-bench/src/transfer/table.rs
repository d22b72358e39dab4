//! Results as Markdown tables.

use std::fmt::Write as _;

use super::row::{Baseline, CopyRow, LinkRow, Over, PhaseRow, Row, ShareRow, digits, share, spread};

/// The rows as Markdown tables, one a kind.
pub fn markdown(rows: &[Row]) -> String {
    let links = |over: Over| {
        rows.iter().filter_map(move |row| match row {
            Row::Link(row) if row.over == over => Some(link(row)),
            _ => None,
        })
    };
    let shares = rows.iter().filter_map(|row| match row {
        Row::Share(row) => Some(flows(row)),
        _ => None,
    });
    let copies = rows.iter().filter_map(|row| match row {
        Row::Copy(row) => Some(copy(row)),
        _ => None,
    });
    let tables = [
        table(&LINK_COLUMNS.replace("MEASURED", "simulated"), links(Over::Simulator)),
        table(&LINK_COLUMNS.replace("MEASURED", "emulated"), links(Over::Emulator)),
        table(SHARE_COLUMNS, shares),
        table(COPY_COLUMNS, copies),
    ];
    let mut text = tables.into_iter().flatten().collect::<Vec<_>>().join("\n");
    for row in rows.iter().filter(|row| matches!(row, Row::LeftOut { .. })) {
        let _ = write!(text, "\n{}\n", row.line());
    }
    text
}

const LINK_COLUMNS: &str = "| | link, MEASURED | MB | wire s | goal s | grebe s (range) | | runs | wire bytes / file (goal) | lost % | phases: s (round trips) | beside it: s (ratio) | mood ns |\n\
     |---|---|--:|--:|--:|--:|---|--:|--:|--:|---|---|--:|\n";

const SHARE_COLUMNS: &str = "| flows | path | first's share | Mbit/s of both | lost % (range) | a second CUBIC | 35 to 65 % | runs |\n\
     |---|---|--:|--:|--:|--:|---|--:|\n";

const COPY_COLUMNS: &str =
    "| way | does | Gbit/s (range) | runs | ratio | mood ns |\n|---|---|--:|--:|---|--:|\n";

fn table(columns: &str, rows: impl Iterator<Item = String>) -> Option<String> {
    let lines: String = rows.collect();
    (!lines.is_empty()).then(|| columns.to_owned() + &lines)
}

fn link(row: &LinkRow) -> String {
    let phases: Vec<String> = row.phases.iter().map(PhaseRow::words).collect();
    let baselines: Vec<String> = row.baselines.iter().map(Baseline::words).collect();
    format!(
        "| {} | {} | {:.0} | {} | {} | {} | {} | {} | {:.3} ({:.3}{}) | {:.2} | {} | {} | {} |\n",
        row.link.name,
        row.link.words(),
        row.link.file_bytes as f64 / 1e6,
        digits(row.wire_s),
        digits(row.link.goal_s),
        spread(&row.seconds, 2),
        if row.is_met { "met" } else { "**not met**" },
        row.runs,
        row.wire_bytes_ratio.median,
        row.wire_bytes_goal,
        if row.is_wire_met() { "" } else { ", **not met**" },
        100.0 * row.lost.median,
        phases.join(", "),
        baselines.join(", "),
        row.moods.as_ref().map_or("-".to_owned(), |(before, after)| format!(
            "{:.0}-{:.0}",
            before.round_trip_ns, after.round_trip_ns
        )),
    )
}

fn flows(row: &ShareRow) -> String {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    format!(
        "| {} | {} | {} | {} | {} ({}-{}) | {} | {} | {} |\n",
        row.flows.join(", "),
        row.path,
        share(&row.share),
        spread(&row.rate_mbit, 1),
        percent(row.lost.median),
        percent(row.lost.low),
        percent(row.lost.high),
        row.lost_by_cubic.map_or("-".to_owned(), percent),
        row.is_fair.map_or("-", |is_fair| if is_fair { "met" } else { "**not met**" }),
        row.runs,
    )
}

fn copy(row: &CopyRow) -> String {
    format!(
        "| {} | {} | {} | {} | {} | {:.0}-{:.0} |\n",
        row.way,
        row.does,
        spread(&row.gbit_per_s, 2),
        row.runs,
        row.ratio_words(),
        row.mood_before.round_trip_ns,
        row.mood_after.round_trip_ns,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Spread;
    use crate::transfer::link;

    fn met(is_met: bool) -> Row {
        let seconds = Spread { low: 2.3, median: 2.351, high: 2.44 };
        let baseline = |name: &str, seconds, given_up, ratio| Baseline {
            name: name.to_owned(),
            seconds,
            given_up,
            ratio,
        };
        Row::Link(LinkRow {
            link: link::named().remove(1),
            over: Over::Emulator,
            seconds,
            runs: 3,
            wire_s: 2.096,
            is_met,
            wire_bytes_ratio: Spread { low: 1.05, median: 1.06, high: 1.07 },
            wire_bytes_goal: 1.051,
            lost: Spread { low: 0.001, median: 0.0012, high: 0.002 },
            phases: PhaseRow::of(&Default::default()),
            baselines: vec![
                baseline("TCP BBR", Some(Spread { low: 2.5, median: 2.6, high: 2.6 }), None, Some(1.11)),
                baseline("TCP CUBIC", None, Some((0.284, 60.0)), None),
            ],
            moods: None,
        })
    }

    #[test]
    fn a_table_a_kind_says_what_was_met_and_given_up() {
        let left_out = Row::LeftOut { what: "scp".to_owned(), why: "no sshd".to_owned() };
        let table = markdown(&[met(true), met(false), left_out]);
        assert_eq!(table.lines().filter(|line| line.starts_with('|')).count(), 4, "{table}");
        for part in [
            "link, emulated",
            "| 2.35 (2.30-2.44) | met |",
            "**not met**",
            "TCP BBR 2.60 (x1.11)",
            "1.060 (1.051, **not met**)",
            "TCP CUBIC 28 % done after 60 s",
            "scp left out: no sshd",
        ] {
            assert!(table.contains(part), "no {part} in {table}");
        }
        assert!(
            met(false).line().contains("goal 2.50  MISSED") && met(true).line().contains("goal 2.50  met")
        );
        let json = serde_json::to_string(&met(true)).unwrap();
        assert_eq!(serde_json::from_str::<Row>(&json).unwrap(), met(true));
    }
}
