//! Goals of each technique, and the rows that compare them with results.

use super::options::Technique;
use crate::row::Row;
use crate::stream::{Faults, StreamRun};

/// The row of a median run, with its goals.
pub(super) fn row(title: &str, run: &StreamRun) -> Row {
    let embedded =
        run.latency_ratio.map(|ratio| format!("{:.2}/{:.2}/{:.2}", ratio.p50, ratio.p99, ratio.max));
    let notes = run.faults.map(|Faults { noticed_ms, stopped_dropped, leftover_chunks }| {
        let noticed = noticed_ms.map_or("never".to_owned(), |ms| format!("after {ms:.2} ms"));
        format!("kill noticed {noticed}, {stopped_dropped} dropped for the stopped one, {leftover_chunks} chunks left")
    });
    let mib = run.footprint_bytes as f64 / f64::from(1 << 20);
    let mut row = run
        .row(title)
        .cell("us of allowed sleep", format!("{:.0}", run.sleep_budget_us))
        .cell("times embedded's latency", embedded.unwrap_or_default())
        .cell("MiB shared", if run.footprint_bytes > 0 { format!("{mib:.1}") } else { String::new() })
        .text("notes", notes.unwrap_or_default());
    let (lost, latency) = (run.lost(), run.latency);
    if run.target_rate_msps > 0.0 {
        // A hundred milliseconds for four channels, because they were twice the work of a process then.
        let within_ms = if run.channels == 1 { 50.0 } else { 100.0 };
        let late_or_lost = lost + run.frames_skipped;
        row = row
            .goal(
                "latency, end to end",
                format!("all within {within_ms} ms"),
                format!("max {:.2} ms", latency.max_us / 1e3),
                latency.max_us <= within_ms * 1e3,
            )
            .goal(
                "zero drops",
                "0 frames lost or not made",
                format!("{late_or_lost} of {} in {:.1} s", run.frames_sent, run.duration_s),
                late_or_lost == 0,
            );
    }
    if run.technique == Technique::Shm.name() {
        let p99_ms = latency.p99_us / 1e3;
        row = if run.target_rate_msps > 0.0 {
            let measured = format!("p99 {p99_ms:.3} ms");
            row.goal("latency, producer to consumer", "p99 <= 1 ms", measured, p99_ms <= 1.0)
        } else {
            let share = run.limit.map_or(0.0, |limit| limit.share);
            row.goal("free running", ">= 0.85 of limit", format!("{share:.2}"), share >= 0.85)
        };
        row = row.goal("zero payload copies", "0 bytes", format!("{} bytes", run.copies), run.copies == 0);
        for (name, ratio) in &run.ratios {
            row = row.goal("ahead of the others", "> 1", format!("{ratio:.2} times {name}"), *ratio > 1.0);
        }
    }
    let Some(Faults { noticed_ms, stopped_dropped, leftover_chunks }) = run.faults else { return row };
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
    use std::time::Duration;

    use grebe_frame::SampleFormat;

    use super::*;
    use crate::canary;
    use crate::stream::{Made, Plan, RunOf, Seen, Work};

    #[test]
    fn results_out_of_bounds_miss_the_goal() {
        let plan = Plan {
            format: SampleFormat::I16,
            channels: 1,
            block: 64,
            target_msps: Some(1_000.0),
            duration: Duration::ZERO,
            tick: Duration::ZERO,
            late_max: Duration::ZERO,
            burst_max: None,
            frames_max: 1,
        };
        let of = RunOf { label: "1ch_1GSPS", technique: "pipe", plan: &plan, works: &[Work::MinMax] };
        let made = Made { frames: 10, ..Made::default() };
        let machine = canary::read();
        let mut run = StreamRun::new(of, made, &[Seen { frames: 10, ..Seen::default() }], (machine, machine));
        run.latency.max_us = 49_999.0;
        assert_eq!(row("", &run).line().matches(": met").count(), 2);
        run.latency.max_us = 50_001.0;
        run.consumers[0].lost = 1;
        assert_eq!(row("", &run).line().matches(": MISSED").count(), 2);
    }

    #[test]
    fn bytes_a_second_are_those_of_the_format() {
        for (format, gb_per_s) in [(SampleFormat::I16, 0.128), (SampleFormat::Cf32, 0.512)] {
            let plan = Plan {
                format,
                channels: 1,
                block: 64,
                target_msps: None,
                duration: Duration::from_secs(1),
                tick: Duration::ZERO,
                late_max: Duration::ZERO,
                burst_max: None,
                frames_max: 1,
            };
            let of = RunOf { label: "free_run", technique: "shm", plan: &plan, works: &[Work::Compare] };
            let made = Made { frames: 1_000_000, duration: Duration::from_secs(1), ..Made::default() };
            let seen = Seen { frames: 1_000_000, duration: Duration::from_secs(1), ..Seen::default() };
            let machine = canary::read();
            let run = StreamRun::new(of, made, &[seen], (machine, machine));
            assert!((run.gb_per_sec() - gb_per_s).abs() < 1e-9, "{format}: {}", run.gb_per_sec());
        }
    }
}
