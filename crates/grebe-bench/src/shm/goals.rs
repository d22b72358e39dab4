//! What is asked of each technique, and the rows that say whether it was reached.

use super::task::Technique;
use crate::row::Row;
use crate::stream::{Faults, StreamRun};

/// The row of a median run, with what is asked of it.
pub(super) fn row(title: &str, run: &StreamRun) -> Row {
    let embedded = run
        .latency_ratio
        .map_or("-".to_owned(), |ratio| format!("{:.2}/{:.2}/{:.2}", ratio.p50, ratio.p99, ratio.max));
    let notes = run.faults.map_or("-".to_owned(), |Faults { noticed_ms, stopped_dropped, leftover_chunks }| {
        let noticed = noticed_ms.map_or("never".to_owned(), |ms| format!("after {ms:.2} ms"));
        format!("kill noticed {noticed}, {stopped_dropped} dropped for the stopped one, {leftover_chunks} chunks left")
    });
    let mib = run.footprint_bytes as f64 / f64::from(1 << 20);
    let row = run
        .row(title)
        .cell("us of allowed sleep", format!("{:.0}", run.sleep_budget_us))
        .cell("times embedded's latency", embedded)
        .cell("MiB shared", if run.footprint_bytes > 0 { format!("{mib:.1}") } else { "-".to_owned() })
        .text("notes", notes);
    let row = if run.target_rate_msps > 0.0 { at_a_rate(row, run) } else { row };
    let row = if run.technique == Technique::Shm.name() { of_shared_memory(row, run) } else { row };
    match &run.faults {
        Some(faults) => beside_faults(row, run, faults),
        None => row,
    }
}

fn at_a_rate(row: Row, run: &StreamRun) -> Row {
    // A hundred milliseconds for four channels, because they were twice the work of a process then.
    let within_ms = if run.channels == 1 { 50.0 } else { 100.0 };
    let lost = run.lost() + run.frames_skipped;
    row.goal(
        "latency, end to end",
        format!("all within {within_ms} ms"),
        format!("max {:.2} ms", run.latency.max_us / 1e3),
        run.latency.max_us <= within_ms * 1e3,
    )
    .goal(
        "zero drops",
        "0 frames lost or not made",
        format!("{lost} of {} in {:.1} s", run.frames_sent, run.duration_s),
        lost == 0,
    )
}

fn of_shared_memory(row: Row, run: &StreamRun) -> Row {
    let gb_per_s = run.gb_per_sec();
    let p99_us = run.latency.p99_us;
    let row = if run.target_rate_msps > 0.0 {
        let measured = format!("p99 {:.3} ms", p99_us / 1e3);
        row.goal("latency, producer to consumer", "p99 <= 1 ms", measured, p99_us <= 1_000.0)
    } else {
        row.goal("free running", ">= 20 GB/s", format!("{gb_per_s:.1} GB/s"), gb_per_s >= 20.0)
    };
    let row = row.goal("zero payload copies", "0 bytes", format!("{} bytes", run.copies), run.copies == 0);
    run.ratios.iter().fold(row, |row, (name, ratio)| {
        row.goal("ahead of the others", "> 1", format!("{ratio:.2} times {name}"), *ratio > 1.0)
    })
}

fn beside_faults(row: Row, run: &StreamRun, faults: &Faults) -> Row {
    let Faults { noticed_ms, stopped_dropped, leftover_chunks } = *faults;
    let lost = run.lost();
    row.goal(
        "fan-out independence",
        "0 frames lost beside a stopped consumer",
        format!("{lost} lost, {stopped_dropped} dropped for the stopped one"),
        lost == 0 && stopped_dropped > 0,
    )
    .goal(
        "fault isolation",
        "kill -9 noticed within 100 ms, 0 frames lost beside it",
        noticed_ms.map_or("never noticed".to_owned(), |ms| format!("{ms:.2} ms, {lost} lost")),
        noticed_ms.is_some_and(|ms| ms <= 100.0) && lost == 0,
    )
    .goal("no leftovers", "0 chunks", format!("{leftover_chunks} chunks"), leftover_chunks == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canary;
    use crate::stream::{Made, RunOf, Seen, Stream, Work};

    #[test]
    fn what_is_out_of_bounds_is_missed() {
        let stream = Stream { label: "1ch_1GSPS", channels: 1, block: None, target_msps: Some(1_000.0) };
        let of = RunOf { stream, technique: "pipe", block: 64, works: &[Work::MinMax] };
        let made = Made { frames: 10, ..Made::default() };
        let machine = canary::read();
        let mut run =
            StreamRun::new(of, made, &[Seen { frames: 10, ..Seen::default() }], (machine, machine), None);
        run.latency.max_us = 49_999.0;
        assert_eq!(row("", &run).line().matches(": met").count(), 2);
        run.latency.max_us = 50_001.0;
        run.consumers[0].lost = 1;
        assert_eq!(row("", &run).line().matches(": MISSED").count(), 2);
    }
}
