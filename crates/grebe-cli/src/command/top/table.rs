//! Reports as rows of a table, for a terminal or a script.

use grebe_flow::QueueSnapshot;
use grebe_flow::telemetry::{QueueReport, Report, StageReport, Watched};
use grebe_scope::Engineering;

use super::processes::Process;
use crate::units::grouped;

/// Line of the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    /// Start of a process.
    Title(String),
    /// Stage with one of its inputs.
    Cells {
        cells: Box<[String; COLUMNS]>,
        alarm: Alarm,
    },
    /// The slowest stage.
    Slowest(String),
    /// Note.
    Note(String),
    Blank,
}

/// Highlighting of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Alarm {
    pub(super) is_slowest: bool,
    pub(super) is_full: bool,
    pub(super) has_dropped: bool,
}

pub(super) const COLUMNS: usize = 11;
pub(super) const HEADS: [&str; COLUMNS] = [
    "stage",
    "frames/s",
    "samples/s",
    "busy",
    "waits",
    "p50",
    "p99",
    "copied",
    "input queue",
    "full",
    "dropped",
];
pub(super) const FILL: usize = 9;
pub(super) const DROPPED: usize = 10;
/// Columns to omit on narrow terminals, in this order.
pub(super) const LESS: [usize; 6] = [7, 4, 5, 1, 8, 6];

/// The whole table as text.
pub(super) fn plain(all: &[Process]) -> String {
    let rows: Vec<Row> = all.iter().flat_map(rows).collect();
    let columns: Vec<usize> = (0..COLUMNS).collect();
    let widths = widths(&rows);
    let mut text = String::new();
    for row in &rows {
        match row {
            Row::Title(title) => {
                text += &format!("{title}\n{}\n", line(&HEADS, &widths, &columns).trim_end());
            }
            Row::Cells { cells, .. } => {
                text += line(&cells.each_ref().map(String::as_str), &widths, &columns).trim_end();
                text.push('\n');
            }
            Row::Slowest(words) | Row::Note(words) => text += &format!("  {words}\n"),
            Row::Blank => text.push('\n'),
        }
    }
    // Blank lines between processes only.
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Widths of the columns.
pub(super) fn widths(rows: &[Row]) -> [usize; COLUMNS] {
    let mut widths = HEADS.map(str::len);
    for row in rows {
        let Row::Cells { cells, .. } = row else { continue };
        for (width, cell) in widths.iter_mut().zip(cells.iter()) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

/// A cell: text is left-aligned, numbers are right-aligned.
pub(super) fn cell(text: &str, column: usize, width: usize) -> String {
    match column {
        0 => format!("  {text:<width$}"),
        QUEUE => format!("  {text:<width$}"),
        _ => format!("  {text:>width$}"),
    }
}

fn line(cells: &[&str; COLUMNS], widths: &[usize; COLUMNS], columns: &[usize]) -> String {
    columns.iter().map(|&column| cell(cells[column], column, widths[column])).collect()
}

/// Rows of a process.
pub(super) fn rows(process: &Process) -> Vec<Row> {
    let one = &process.watched;
    let Some(report) = &one.report else {
        let title = Row::Title(format!("grebe {}  process {}", one.name, one.pid));
        return vec![title, Row::Note(silence(one)), Row::Blank];
    };
    let up = running_for(report.uptime_s);
    let (on, streams) = match &process.lab {
        Some(lab) => (format!(" on {}", lab.host), format!("  {}", lab.streams.join(", "))),
        None => Default::default(),
    };
    let title = format!("grebe {}{on}  process {}  running for {up}{streams}", report.name, report.pid);
    let mut rows = vec![Row::Title(title.trim_end().to_owned())];
    for stage in &report.stages {
        rows.extend(stage_rows(stage, report));
    }
    for stage in &report.stages {
        let own: Vec<String> = stage
            .own
            .iter()
            // Flags are not counts.
            .filter(|(name, value)| **value > 0 && !name.ends_with("_known"))
            .map(|(name, value)| match name.as_str() {
                "unseen_loss" => "loss unknown".to_owned(),
                "is_away" => "away, restarting".to_owned(),
                name => format!("{} {}", grouped(*value), name.replace('_', " ")),
            })
            .collect();
        if !own.is_empty() {
            rows.push(Row::Note(format!("{}: {}", stage.name, own.join(", "))));
        }
    }
    let nothing = || "slowest: nothing is moving".to_owned();
    rows.push(Row::Slowest(
        report.slowest.as_ref().map_or_else(nothing, |slowest| format!("slowest: {slowest}")),
    ));
    if one.silent_for.as_secs() >= SILENT_S {
        rows.push(Row::Note(silence(one)));
    }
    rows.push(Row::Blank);
    rows
}

fn silence(one: &Watched) -> String {
    match one.silent_for.as_secs() {
        0..SILENT_S => "no report yet".to_owned(),
        seconds => format!("no report for {seconds} s: stopped, or too busy"),
    }
}

/// Row of a stage with its first input, and a row per further input.
fn stage_rows(stage: &StageReport, report: &Report) -> Vec<Row> {
    let inputs: Vec<&QueueReport> =
        report.queues.iter().filter(|input| input.queue.to == stage.name).collect();
    let is_slowest = report.slowest.as_ref().is_some_and(|slowest| slowest.stage == stage.name);
    let latency = |of: fn(grebe_flow::Latency) -> u64| {
        stage.latency.map_or("-".to_owned(), |latency| time(of(latency)))
    };
    let mut cells: [String; COLUMNS] = std::array::from_fn(|_| "-".to_owned());
    cells[0] = stage.name.clone();
    cells[1] = Engineering::new(stage.frames_per_s, "").to_string();
    cells[2] = Engineering::new(stage.samples_per_s, "").to_string();
    cells[3] = percent(stage.busy_share);
    cells[4] = percent(stage.waiting_share);
    cells[5] = latency(|latency| latency.p50_ns);
    cells[6] = latency(|latency| latency.p99_ns);
    let handled = stage.borrowed_frames + stage.copied_frames;
    if handled > 0 {
        cells[7] = percent(stage.copied_frames as f64 / handled as f64);
    }
    let mut rows = Vec::new();
    for (at, input) in inputs.iter().enumerate() {
        let queue = &input.queue;
        if at > 0 {
            cells = std::array::from_fn(|_| String::new());
        }
        let from = if inputs.len() > 1 { format!("{}: ", queue.from) } else { String::new() };
        cells[QUEUE] = format!("{from}{}", capacity(queue));
        cells[FILL] = percent(input.fill);
        cells[DROPPED] = match input.dropped_frames_per_s {
            rate if rate > 0.0 => {
                format!("{} ({}/s)", grouped(queue.dropped_frames), Engineering::new(rate, ""))
            }
            _ => grouped(queue.dropped_frames),
        };
        let alarm = Alarm {
            is_slowest: is_slowest && at == 0,
            is_full: input.fill >= FULL,
            has_dropped: queue.dropped_frames > 0,
        };
        rows.push(Row::Cells { cells: Box::new(cells.clone()), alarm });
    }
    if inputs.is_empty() {
        let alarm = Alarm { is_slowest, ..Alarm::default() };
        rows.push(Row::Cells { cells: Box::new(cells), alarm });
    }
    rows
}

fn capacity(queue: &QueueSnapshot) -> String {
    let bytes = queue.capacity_bytes.map(|bytes| format!(", {}iB", Binary(bytes))).unwrap_or_default();
    format!("{} {}{bytes}", queue.policy, queue.capacity_batches)
}

/// `4 M` for 4,194,304.
struct Binary(usize);

impl std::fmt::Display for Binary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 30 => write!(f, "{} G", bytes >> 30),
            bytes if bytes >= 1 << 20 => write!(f, "{} M", bytes >> 20),
            bytes => write!(f, "{} K", bytes.div_ceil(1 << 10)),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn time(ns: u64) -> String {
    Engineering::new(ns as f64 / 1e9, "s").to_string()
}

fn running_for(seconds: f64) -> String {
    let seconds = seconds as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

const QUEUE: usize = 8;
const FULL: f64 = 0.85;
/// Reports come once a second.
const SILENT_S: u64 = 4;

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use grebe_flow::telemetry::Report;
    use grebe_flow::{Latency, Policy, Snapshot, StageSnapshot};

    use super::*;
    use crate::command::top::processes::InLab;

    pub(in crate::command::top) fn viewer(pid: u32) -> Process {
        let at = |at_ns: u64, frames: u64| Snapshot {
            at_ns,
            stages: vec![
                StageSnapshot {
                    name: "source".into(),
                    frames_out: frames,
                    samples_out: frames * 8_000,
                    busy_ns: at_ns / 4,
                    waited_ns: at_ns / 2,
                    copied_frames: frames / 10,
                    own: vec![
                        ("kernel_drops_known".into(), 1),
                        ("lost_frames".into(), 1_200),
                        ("late_frames".into(), 0),
                    ],
                    ..StageSnapshot::default()
                },
                StageSnapshot {
                    name: "scope".into(),
                    frames_in: frames,
                    samples_in: frames * 8_000,
                    busy_ns: at_ns * 97 / 100,
                    latency: Some(Latency {
                        p50_ns: 41_000,
                        p95_ns: 60_000,
                        p99_ns: 90_500,
                        max_ns: 1_000_000,
                    }),
                    ..StageSnapshot::default()
                },
            ],
            queues: vec![QueueSnapshot {
                from: "source".into(),
                to: "scope".into(),
                policy: Policy::DropOldest,
                capacity_batches: 256,
                queued_batches: 250,
                capacity_bytes: Some(16 << 20),
                queued_bytes: 250 * 65_536,
                frames,
                dropped_frames: frames / 2,
                dropped_samples: 0,
            }],
        };
        let mut report = Report::between("view", &at(0, 0), &at(1_000_000_000, 3_000));
        (report.pid, report.uptime_s) = (pid, 12.3);
        let watched = Watched { pid, name: "view".into(), report: Some(report), silent_for: Duration::ZERO };
        Process { lab: None, watched }
    }

    #[test]
    fn the_table_answers_the_usual_questions() {
        let expected = "\
grebe view  process 42  running for 12 s
  stage   frames/s  samples/s  busy  waits    p50      p99  copied  input queue              full          dropped
  source       3 k       24 M  25 %   50 %      -        -    10 %  -                           -                -
  scope        3 k       24 M  97 %    0 %  41 µs  90.5 µs     0 %  drop_oldest 256, 16 MiB  98 %  1,500 (1.5 k/s)
  source: 1,200 lost frames
  slowest: scope, busy 97 %: its input is 98 % full and the stages before it wait or drop
";
        assert_eq!(plain(&[viewer(42)]), expected);
    }

    #[test]
    fn a_process_of_another_host_shows_its_host_and_streams() {
        let lab = InLab { host: "mast3".into(), streams: vec!["lab/adc".into(), "lab/gps".into()] };
        let text = plain(&[Process { lab: Some(lab), ..viewer(42) }]);
        assert!(
            text.starts_with("grebe view on mast3  process 42  running for 12 s  lab/adc, lab/gps\n"),
            "{text}"
        );
    }

    #[test]
    fn a_silent_process_is_distinguished_from_a_dead_one() {
        let watched = Watched { report: None, silent_for: Duration::from_secs(9), ..viewer(7).watched };
        let silent = Process { lab: None, watched };
        let text = plain(&[silent]);
        assert!(text.contains("process 7") && text.contains("no report for 9 s"), "{text}");
    }
}
