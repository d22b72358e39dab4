//! What is said of a copy: a line that moves where a person looks on, lines now and then where nobody does, lines of JSON, a log.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use grebe_scope::Engineering;
use grebe_transfer::{ConnectionStatus, Notice, Notify};
use grebe_tree::{Done, Progress};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::figures::{Figures, Pace};
use super::lines::{FileDone, PathText, Way};
use super::summary::{Whole, result_json, summary};
use crate::cli::{Tell, printable};
use crate::ending::Ending;
use crate::output::{bar, bar_style, is_dumb, note, out};
use crate::transfer::size;
use crate::units::grouped;

/// Says what a copy does.
pub(in crate::command) struct Teller {
    lines: Arc<Lines>,
    is_quiet: bool,
    /// Whether a person looks on.
    is_seen: bool,
    is_scanned: bool,
    pace: Pace,
    began: Instant,
    told: Instant,
}

/// What is said of single files, from whatever thread.
struct Lines {
    bar: ProgressBar,
    is_listing: bool,
    json: bool,
    log: Option<Mutex<File>>,
}

impl Teller {
    pub(in crate::command) fn new(tell: &Tell, is_dry: bool) -> Result<Self> {
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
            began: now,
            told: now,
        })
    }

    /// Whether each file is to be told of.
    pub(super) fn tells_files(&self) -> bool {
        self.lines.is_listing || self.lines.log.is_some()
    }

    /// Counters for a copy, which tell of each file where that is wanted.
    pub(super) fn progress(&self) -> Progress {
        if !self.tells_files() {
            return Progress::default();
        }
        let lines = self.lines.clone();
        Progress::with_notify(move |event| lines.file(&FileDone::of(event)))
    }

    /// Says what was done with a file elsewhere.
    pub(super) fn file(&self, file: &FileDone) {
        self.lines.file(file);
    }

    pub(super) fn way(&self, way: Way, is_second_best: bool) {
        if self.lines.json {
            self.json(&json!({ "way": { "way": way, "fallback": is_second_best } }));
        } else if is_second_best && way == Way::Tcp {
            self.note("UDP does not pass: the data goes over TCP, as fast as that goes");
        } else if is_second_best && way == Way::Ssh {
            self.note("neither UDP nor TCP passes: the data goes through ssh, as fast as that goes");
        } else if self.lines.is_listing {
            self.note(&format!("the data goes over {}", way.name()));
        }
    }

    /// Says where both ends meet and how they go on from there; over what the data goes is said with the way.
    pub(in crate::command) fn notify(&self) -> Notify {
        let (lines, is_told) = (self.lines.clone(), !self.is_quiet && !self.lines.json);
        Arc::new(move |notice: Notice| {
            let is_news = match notice {
                Notice::Direct { .. } => lines.is_listing,
                Notice::NoRelayYet { .. } | Notice::RelayRefuses { .. } | Notice::Relayed { .. } => true,
                _ => false,
            };
            if is_told && is_news {
                lines.bar.suspend(|| note!("{notice}"));
            }
        })
    }

    /// A line for a person, above the one that moves.
    pub(super) fn note(&self, text: &str) {
        if !self.is_quiet && !self.lines.json {
            self.lines.bar.suspend(|| note!("{text}"));
        }
    }

    /// Is called ten times a second.
    pub(super) fn show(&mut self, figures: &Figures, status: Option<&ConnectionStatus>) {
        let now = Instant::now();
        self.pace.add(now, figures);
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
            note!("{}", self.words(figures));
        }
    }

    /// Takes the moving line away.
    pub(super) fn clear(&self) {
        self.lines.bar.finish_and_clear();
    }

    /// Since the command was given.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Says what came of it.
    pub(super) fn end(&self, whole: &Whole<'_>) -> Result<Ending> {
        self.clear();
        let Whole { outcome, .. } = whole;
        let seconds = self.began.elapsed().as_secs_f64();
        if self.lines.json {
            out!("{}", json!({ "result": result_json(whole, seconds) }))?;
        } else {
            for (name, why) in outcome.left_out.iter().take(LEFT_OUT_SHOWN) {
                note!("left out: {}: {why}", printable(name.bytes()));
            }
            if outcome.left_out_count > LEFT_OUT_SHOWN as u64 {
                note!(
                    "left out: {} more; --log and --json have them",
                    outcome.left_out_count - LEFT_OUT_SHOWN as u64
                );
            }
            if !self.is_quiet {
                summary(whole, seconds).iter().for_each(|line| note!("{line}"));
            }
        }
        Ok(if outcome.left_out_count == 0 { Ending::Good } else { Ending::Partial })
    }

    /// Says something in JSON. A copy goes on although nobody can be told of it.
    fn json(&self, value: &Value) {
        let _ = out!("{value}");
    }

    fn draw(&mut self, figures: &Figures) {
        let bar = &self.lines.bar;
        if figures.is_scanned && !self.is_scanned {
            self.is_scanned = true;
            if let Some(style) = bar_style(if figures.bytes_found > 0 { BYTES } else { FILES }) {
                bar.set_style(style);
            }
        }
        if figures.bytes_found > 0 {
            bar.set_length(figures.bytes_found);
            bar.set_position(figures.bytes_done.min(figures.bytes_found));
        } else {
            bar.set_length(figures.files_found);
            bar.set_position(figures.files_done);
        }
        bar.set_message(self.words(figures));
        bar.tick();
    }

    fn words(&self, figures: &Figures) -> String {
        let (bytes_per_s, files_per_s) = self.pace.rates();
        let mut words = if figures.is_scanned {
            let (done, found) = (figures.bytes_done.min(figures.bytes_found), figures.bytes_found);
            format!(
                "{} of {}, {} of {} files",
                size(done),
                size(found),
                grouped(figures.files_done),
                grouped(figures.files_found)
            )
        } else {
            format!(
                "scanning: {} files, {} found, {} done",
                grouped(figures.files_found),
                size(figures.bytes_found),
                grouped(figures.files_done)
            )
        };
        if bytes_per_s * 8.0 >= 1e3 {
            words += &format!("  {}", Engineering::new(bytes_per_s * 8.0, "bit/s"));
        } else if files_per_s >= 1.0 {
            words += &format!("  {files_per_s:.0} files/s");
        }
        if let Some(left) = self.pace.left(figures).filter(|left| !left.is_zero()) {
            words += &format!("  {}", crate::transfer::time_left(left.as_secs().max(1), 1.0));
        }
        if let Some((name, done, total)) = &figures.current {
            let percent = *done as f64 * 100.0 / (*total).max(1) as f64;
            words += &format!("  {} {percent:.0} %", short(&printable(name.bytes())));
        }
        if figures.left_out > 0 {
            words += &format!("  {} left out", grouped(figures.left_out));
        }
        words
    }

    fn figures_json(&self, figures: &Figures, status: Option<&ConnectionStatus>) -> Value {
        let mut value = json!(figures);
        let (bytes_per_s, files_per_s) = self.pace.rates();
        value["bytes_per_s"] = bytes_per_s.into();
        value["files_per_s"] = files_per_s.into();
        value["seconds_left"] = self.pace.left(figures).map(|left| left.as_secs_f64()).into();
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
            // In one piece; a log that cannot be written holds up no copy.
            let _ = log.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        }
        if !self.is_listing {
            return;
        }
        if self.json {
            let _ = out!("{}", json!({ "file": file }));
        } else if let Some(verb) = file.verb() {
            // A reader of the list that is gone has what it wanted.
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

    /// What a list says; nothing of what is as it was. What was left out is told at the end.
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

/// To the second, in UTC.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The end of a long name, which tells more than its beginning.
fn short(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME_SHOWN {
        return name.to_owned();
    }
    let end: String = name.chars().skip(letters - NAME_SHOWN + 1).collect();
    format!("…{end}")
}

const SCANNING: &str = "{spinner} {wide_msg}";
const BYTES: &str = "{bar:20} {percent:>3} %  {wide_msg}";
/// Where all files are empty.
const FILES: &str = BYTES;
const JSON_EVERY: Duration = Duration::from_secs(1);
const LINE_EVERY: Duration = Duration::from_secs(10);
const LEFT_OUT_SHOWN: usize = 20;
const NAME_SHOWN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_valid_and_long_names_keep_their_ends() {
        assert!([SCANNING, BYTES].into_iter().all(|template| bar_style(template).is_some()));
        assert_eq!(short("a"), "a");
        assert!(short(&format!("{}end.bin", "long/".repeat(20))).ends_with("end.bin"));
    }
}
