//! The benches of the runtime: that each ends, counts what it should, and sees a goal that is missed.

use std::time::Duration;

use grebe_bench::canary;
use grebe_bench::flow::{self, Bench, Pairs, Plan, Row};

#[test]
fn every_bench_gives_its_rows_with_a_baseline_beside_each() {
    let plan = Plan { duration: Duration::from_millis(4), repeats: 3, ..Plan::default() };
    let mut told = 0;
    let rows = flow::run(&plan, |_| told += 1).unwrap();
    let benches: Vec<&str> = rows.iter().map(|row| row.bench.as_str()).collect();
    assert_eq!(
        benches,
        ["chain", "chain", "hop", "hop", "fan_out", "decimate", "decimate", "telemetry", "telemetry"]
    );
    assert_eq!(told, rows.len());
    for row in &rows {
        assert!(row.ours.median > 0.0 && row.baseline.median > 0.0 && row.ratio > 0.0, "{}", row.line());
        assert!(row.ours.low <= row.ours.median && row.ours.median <= row.ours.high, "{}", row.line());
        assert!(row.goal.is_some() && row.ratio_interval.is_some(), "{}", row.line());
    }
    let chain = &rows[0];
    assert!(chain.notes[0].starts_with("0 dropped, 0 copied"), "block drops nothing: {}", chain.line());
    assert!(rows[4].pairs >= 20);
    let table = flow::markdown(&rows);
    assert_eq!(table.lines().count(), 2 + rows.len());
    let json = serde_json::to_string(&rows).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Row>>(&json).unwrap().len(), rows.len());
}

#[test]
fn a_missed_goal_is_said_in_line_and_table() {
    let mood = canary::read();
    let pairs = Pairs { ours: vec![1.0], baseline: vec![2.0] };
    let row =
        Row::new(("hop", "far", "ns"), "alone", &pairs, (mood, mood)).goal("twice", |row| row.ratio > 1.0);
    assert!(row.line().contains("twice: NO") && flow::markdown(&[row]).contains("**no**"));
}

#[test]
fn an_unknown_bench_is_answered_with_the_known_ones() {
    let error = Bench::by_name("speed").unwrap_err().to_string();
    assert!(error.contains("speed") && error.contains("fan_out"), "{error}");
}
