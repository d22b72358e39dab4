//! What the ways have to be good for, and whether they are.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::Row;
use super::plan::{FAULTS, Technique};

/// Everything that was measured, and what it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Median runs.
    pub rows: Vec<Row>,
    /// What was asked of them.
    pub requirements: Vec<Requirement>,
}

/// Something that was asked of a way, and what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// What was asked.
    pub name: String,
    /// In which scenario.
    pub label: String,
    /// Of which way.
    pub technique: String,
    /// Within which bound.
    pub bound: String,
    /// What was measured.
    pub measured: String,
    /// Whether it is within the bound.
    pub passed: bool,
}

impl Report {
    /// Judges the rows.
    pub fn of(rows: Vec<Row>) -> Self {
        let requirements = rows.iter().flat_map(judge).collect();
        Self { rows, requirements }
    }

    /// The requirements as a Markdown table; nothing where the rows are of no scenario that has any.
    pub fn markdown(&self) -> String {
        if self.requirements.is_empty() {
            return String::new();
        }
        let mut table = String::from(
            "| requirement | scenario | way | bound | measured | result |\n|---|---|---|---|---|---|\n",
        );
        for it in &self.requirements {
            let result = if it.passed { "pass" } else { "FAIL" };
            let _ = writeln!(
                table,
                "| {} | {} | {} | {} | {} | {result} |",
                it.name, it.label, it.technique, it.bound, it.measured
            );
        }
        table
    }

    /// How many are not fulfilled.
    pub fn failed(&self) -> usize {
        self.requirements.iter().filter(|requirement| !requirement.passed).count()
    }
}

fn judge(row: &Row) -> Vec<Requirement> {
    let one = |name: &str, bound: String, measured: String, passed| Requirement {
        name: name.to_owned(),
        label: row.label.clone(),
        technique: row.name.clone(),
        bound,
        measured,
        passed,
    };
    let mut all = Vec::new();
    let is_shm = row.technique == Technique::Shm;
    if row.target_rate_msps > 0.0 {
        // A hundred milliseconds for four channels, because they were twice the work of a process then.
        let within_ms = if row.channels == 1 { 50.0 } else { 100.0 };
        all.push(one(
            "latency, end to end",
            format!("all within {within_ms} ms"),
            format!("max {:.2} ms", row.latency.max_us / 1e3),
            row.latency.max_us <= within_ms * 1e3,
        ));
        let lost = row.lost() + row.frames_skipped;
        all.push(one(
            "zero drops",
            "0 frames lost or not made".to_owned(),
            format!("{lost} of {} in {:.1} s", row.frames_sent, row.duration_s),
            lost == 0,
        ));
    } else if is_shm {
        all.push(one(
            "free running",
            ">= 20 GB/s".to_owned(),
            format!("{:.1} GB/s", row.gb_per_sec()),
            row.gb_per_sec() >= 20.0,
        ));
    }
    if is_shm {
        if row.target_rate_msps > 0.0 {
            all.push(one(
                "latency, producer to consumer",
                "p99 <= 1 ms".to_owned(),
                format!("p99 {:.3} ms", row.latency.p99_us / 1e3),
                row.latency.p99_us <= 1_000.0,
            ));
        }
        let copies = format!("{} bytes", row.copies);
        all.push(one("zero payload copies", "0 bytes".to_owned(), copies, row.copies == 0));
        for (name, ratio) in &row.ratios {
            let measured = format!("{ratio:.2} times {name}");
            all.push(one("ahead of the others", "> 1".to_owned(), measured, *ratio > 1.0));
        }
    }
    if let Some(faults) = row.faults.filter(|_| row.label == FAULTS) {
        all.push(one(
            "fan-out independence",
            "0 frames lost beside a stopped consumer".to_owned(),
            format!("{} lost, {} dropped for the stopped one", row.lost(), faults.stopped_dropped),
            row.lost() == 0 && faults.stopped_dropped > 0,
        ));
        all.push(one(
            "fault isolation",
            "kill -9 noticed within 100 ms, 0 frames lost beside it".to_owned(),
            match faults.noticed_ms {
                Some(ms) => format!("{ms:.2} ms, {} lost", row.lost()),
                None => "never noticed".to_owned(),
            },
            faults.noticed_ms.is_some_and(|ms| ms <= 100.0) && row.lost() == 0,
        ));
        all.push(one(
            "no leftovers",
            "0 chunks".to_owned(),
            format!("{} chunks", faults.leftover_chunks),
            faults.leftover_chunks == 0,
        ));
    }
    all
}
