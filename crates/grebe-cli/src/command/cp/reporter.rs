//! Output of a copy: a progress line on a terminal, lines now and then elsewhere, JSON, a log.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use console::Term;
use grebe_connection::{ConnectionStatus, Notice, Notify};
use grebe_remote::{Remote, Route};
use grebe_tree::{Done, Progress};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::figures::{Figures, Outcome, Pace};
use super::lines::{Event, FileDone};
use super::path_text::PathText;
use super::progress_line::{Line, LongFiles};
use super::summary::{Summary, result_json, summary};
use crate::cli::{Reporting, printable};
use crate::command::remote;
use crate::ending::Ending;
use crate::output::{bar, bar_style, in_locale, is_dumb, json as json_line, note, out};

/// Reports the progress of a copy.
pub(super) struct Reporter {
    lines: Arc<Lines>,
    is_quiet: bool,
    /// Whether standard error is a terminal.
    is_seen: bool,
    is_scanned: bool,
    pace: Pace,
    long_files: LongFiles,
    began: Instant,
    told: Instant,
}

/// Events of the other end since the last call.
#[derive(Default)]
pub(super) struct Received {
    /// Progress.
    pub(super) figures: Option<Figures>,
    /// Outcome.
    pub(super) outcome: Option<Outcome>,
}

/// Lines about single files, from any thread.
struct Lines {
    bar: ProgressBar,
    is_listing: bool,
    json: bool,
    log: Option<Mutex<File>>,
}

impl Reporter {
    pub(super) fn new(tell: &Reporting, is_dry: bool) -> Result<Self> {
        let is_seen = io::stderr().is_terminal() && !is_dumb() && !tell.json && !tell.quiet;
        let bar = if is_seen { bar(None) } else { ProgressBar::hidden() };
        if let Some(style) = bar_style(SCANNING) {
            bar.set_style(style);
        }
        let log = tell.log.as_deref().map(open_log).transpose()?;
        let now = Instant::now();
        let lines = Lines { bar, is_listing: tell.verbose || is_dry && !tell.quiet, json: tell.json, log };
        Ok(Self {
            lines: Arc::new(lines),
            is_quiet: tell.quiet,
            is_seen,
            is_scanned: false,
            pace: Pace::default(),
            long_files: LongFiles::default(),
            began: now,
            told: now,
        })
    }

    /// Whether each file is reported.
    pub(super) fn reports_files(&self) -> bool {
        self.lines.is_listing || self.lines.log.is_some()
    }

    /// Counters of a copy, which report each file if requested.
    pub(super) fn progress(&self) -> Progress {
        if !self.reports_files() {
            return Progress::default();
        }
        let lines = self.lines.clone();
        Progress::with_notify(move |event| lines.file(&FileDone::of(event)))
    }

    /// Takes in the events of the other end, and reports its files.
    pub(super) fn take_events(&self, remote: &mut Remote) -> Received {
        let mut heard = Received::default();
        remote.poll().into_iter().for_each(|event| self.take(event, &mut heard));
        heard
    }

    /// The reason of the other end for a failure here, if it has reported one.
    pub(super) fn explain(&self, remote: Remote, error: anyhow::Error) -> anyhow::Error {
        remote::explain(remote, error, |event| self.take(event, &mut Received::default()))
    }

    fn take(&self, event: Value, heard: &mut Received) {
        match serde_json::from_value(event) {
            Ok(Event::Progress(figures)) => heard.figures = Some(figures),
            Ok(Event::File(file)) => self.lines.file(&file),
            Ok(Event::Result(outcome)) => heard.outcome = Some(outcome),
            // From a later version.
            Err(_) => {}
        }
    }

    pub(super) fn route(&self, route: Route, is_second_best: bool) {
        if self.lines.json {
            self.json(&json!({ "route": { "route": route, "fallback": is_second_best } }));
        } else if is_second_best && route == Route::Tcp {
            self.note("UDP does not pass: the data goes over TCP, at its rate");
        } else if is_second_best && route == Route::Ssh {
            self.note("neither UDP nor TCP passes: the data goes through ssh, at its rate");
        } else if self.lines.is_listing {
            self.note(&format!("the data goes over {}", route.name()));
        }
    }

    /// Reports where both ends meet and how they continue. The route is reported later.
    pub(super) fn notify(&self) -> Notify {
        let (lines, is_told) = (self.lines.clone(), !self.is_quiet && !self.lines.json);
        Arc::new(move |notice: Notice| {
            let is_news = match notice {
                Notice::Direct { .. } => lines.is_listing,
                Notice::NoRelayYet { .. } | Notice::RelayRefuses { .. } | Notice::Relayed { .. } => true,
                Notice::Silent { .. } | Notice::HeardAgain { .. } => true,
                _ => false,
            };
            if is_told && is_news {
                lines.bar.suspend(|| note!("{notice}"));
            }
        })
    }

    /// A line for people, above the progress line.
    pub(super) fn note(&self, text: &str) {
        if !self.is_quiet && !self.lines.json {
            self.lines.bar.suspend(|| note!("{text}"));
        }
    }

    /// Called ten times a second.
    pub(super) fn show(&mut self, figures: &Figures, status: Option<&ConnectionStatus>) {
        let now = Instant::now();
        self.pace.add(now, figures);
        self.long_files.add(now, figures.current.as_ref());
        if self.lines.json {
            if now.duration_since(self.told) >= JSON_EVERY {
                self.told = now;
                self.json(&json!({ "progress": self.figures_json(figures, status) }));
            }
            return;
        }
        if self.is_seen {
            self.draw(figures);
        } else if !self.is_quiet && now.duration_since(self.told) >= LINE_EVERY {
            self.told = now;
            note!("{}", in_locale(self.line(figures).whole().trim_start().to_owned()));
        }
    }

    /// Removes the progress line.
    pub(super) fn clear(&self) {
        self.lines.bar.finish_and_clear();
    }

    /// Time since the start of the command.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Reports the outcome.
    pub(super) fn end(&self, whole: &Summary<'_>) -> Result<Ending> {
        self.clear();
        let Summary { outcome, .. } = whole;
        let seconds = self.began.elapsed().as_secs_f64();
        if self.lines.json {
            json_line(&json!({ "result": result_json(whole, seconds) }))?;
        } else {
            for (name, why) in outcome.left_out.iter().take(LEFT_OUT_SHOWN) {
                note!("skipped: {}: {why}", printable(name.bytes()));
            }
            if outcome.left_out_count > LEFT_OUT_SHOWN as u64 {
                note!(
                    "skipped: {} more; --log and --json have them",
                    outcome.left_out_count - LEFT_OUT_SHOWN as u64
                );
            }
            if !self.is_quiet {
                summary(whole, seconds).iter().for_each(|line| note!("{line}"));
            }
        }
        Ok(if outcome.left_out_count == 0 { Ending::Good } else { Ending::Partial })
    }

    /// Prints JSON. The copy continues if standard output is closed.
    fn json(&self, value: &Value) {
        let _ = json_line(value);
    }

    fn draw(&mut self, figures: &Figures) {
        if figures.is_scanned && !self.is_scanned {
            self.is_scanned = true;
            if let Some(style) = bar_style(SCANNED) {
                self.lines.bar.set_style(style);
            }
        }
        let spinner = if self.is_scanned { 0 } else { SPINNER_COLUMNS };
        let columns = usize::from(Term::stderr().size().1).saturating_sub(spinner);
        self.lines.bar.set_message(in_locale(self.line(figures).within(columns)));
        self.lines.bar.tick();
    }

    fn line<'a>(&'a self, figures: &'a Figures) -> Line<'a> {
        let (bytes_per_s, files_per_s) = self.pace.rates();
        let (left, long_file) = (self.pace.left(figures), self.long_files.longest());
        Line { figures, bytes_per_s, files_per_s, left, long_file }
    }

    fn figures_json(&self, figures: &Figures, status: Option<&ConnectionStatus>) -> Value {
        let mut value = json!(figures);
        let (bytes_per_s, files_per_s) = self.pace.rates();
        value["bytes_per_s"] = bytes_per_s.into();
        value["files_per_s"] = files_per_s.into();
        value["seconds_left"] = self.pace.left(figures).map(|left| left.as_secs_f64()).into();
        value["long_file"] = json!(self.long_files.longest().map(|file| {
            let seconds = file.since.elapsed().as_secs_f64();
            let (done_bytes, total_bytes) = (file.done_bytes, file.total_bytes);
            json!({ "name": file.name, "done_bytes": done_bytes, "total_bytes": total_bytes, "seconds": seconds })
        }));
        if let Some(status) = status.map(ConnectionStatus::progress) {
            value["rtt_us"] = status.rtt_us.into();
            value["loss"] = status.loss.into();
            value["rate_bits_per_s"] = status.rate_bits_per_s.into();
        }
        value
    }
}

impl Lines {
    fn file(&self, file: &FileDone) {
        let name = || printable(file.name.bytes());
        if let Some(log) = &self.log {
            let line = format!("{}\t{}\t{}\t{}\n", now(), file.done, file.bytes, file.detail(&name()));
            // In one piece. A log that cannot be written does not stop the copy.
            let _ = log.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        }
        if !self.is_listing {
            return;
        }
        if self.json {
            let _ = json_line(&json!({ "file": file }));
        } else if let Some(verb) = file.verb() {
            // A closed pipe is not an error.
            self.bar.suspend(|| drop(out!("{verb} {}", name())));
        }
    }
}

impl FileDone {
    pub(super) fn of(event: &grebe_tree::Event<'_>) -> Self {
        let (done, why) = match event.done {
            Done::Copied => ("copied", None),
            Done::Same => ("same", None),
            Done::Made => ("made", None),
            Done::Deleted => ("removed", None),
            Done::LeftOut { why } => ("left out", Some(why.to_owned())),
            _ => ("done", None),
        };
        Self { name: PathText::of(event.name), done: done.to_owned(), bytes: event.bytes, why }
    }

    /// Verb in a list of files, without unchanged ones. Skipped files are reported at the end.
    fn verb(&self) -> Option<&'static str> {
        match self.done.as_str() {
            "copied" => Some("copy"),
            "made" => Some("make"),
            "removed" => Some("remove"),
            _ => None,
        }
    }

    fn detail(&self, name: &str) -> String {
        match &self.why {
            Some(why) => format!("{name}\t{}", printable(why.as_bytes())),
            None => name.to_owned(),
        }
    }
}

fn open_log(path: &Path) -> Result<Mutex<File>> {
    let file = File::options().append(true).create(true).open(path);
    Ok(Mutex::new(file.with_context(|| format!("--log: cannot write to {}", path.display()))?))
}

/// Time to the second, in UTC.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

const SCANNING: &str = "{spinner} {wide_msg}";
const SPINNER_COLUMNS: usize = 2;
const SCANNED: &str = "{wide_msg}";
const JSON_EVERY: Duration = Duration::from_secs(1);
const LINE_EVERY: Duration = Duration::from_secs(10);
const LEFT_OUT_SHOWN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_valid() {
        assert!([SCANNING, SCANNED].into_iter().all(|template| bar_style(template).is_some()));
    }

    #[test]
    fn json_names_the_file_that_takes_long() {
        let tell = Reporting { json: true, ..Reporting::default() };
        let mut reporter = Reporter::new(&tell, false).unwrap();
        let current = |done_bytes| Some((PathText::of(b"runs/large.bin"), done_bytes, 1_000));
        let figures = Figures { current: current(500), ..Figures::default() };
        assert_eq!(reporter.figures_json(&figures, None)["long_file"], Value::Null);
        let began = Instant::now();
        reporter.long_files.add(began, current(500).as_ref());
        reporter.long_files.add(began + Duration::from_millis(900), current(600).as_ref());
        reporter.long_files.add(began + Duration::from_millis(1_800), current(700).as_ref());
        reporter.long_files.add(began + Duration::from_millis(2_700), current(800).as_ref());
        reporter.long_files.add(began + Duration::from_millis(3_600), current(900).as_ref());
        let said = &reporter.figures_json(&figures, None)["long_file"];
        assert_eq!(
            (&said["name"], &said["done_bytes"], &said["total_bytes"]),
            (&json!("runs/large.bin"), &json!(900), &json!(1_000)),
            "{said}"
        );
    }
}
