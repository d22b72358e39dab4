//! Standard output and standard error, which may be closed or full at any time.
//!
//! A closed pipe, as of `head`, is not an error: the command continues without output, and its exit status is that of its
//! work. Other failures to write (a full disk) are errors. Messages on standard error are optional: a failure to
//! write them changes nothing.
//!
//! File names, metadata and messages of peers are untrusted text. Here they are escaped, so that no character moves
//! the cursor or hides text, and a line stays a line. JSON uses its own escapes, and loses nothing.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use grebe_connection::{is_printable, printable};
use grebe_view::{ascii_of, is_ascii_locale};
use indicatif::{ProgressBar, ProgressStyle};

/// Writes a line to standard output: `out!("{}", text)?`.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::line(&format!($($text)*)) };
}

/// Writes a line to standard error, if possible: `note!("listening on {address}")`.
macro_rules! note {
    ($($text:tt)*) => { $crate::output::say(format_args!($($text)*)) };
}

pub(crate) use {note, out};

/// See [`out!`].
pub(crate) fn line(text: &str) -> Result<()> {
    bytes((printable(text.as_bytes()) + "\n").as_bytes())
}

/// Writes lines to standard output in one call.
pub(crate) fn text(text: &str) -> Result<()> {
    bytes(printable_lines(text).as_bytes())
}

/// Writes a JSON value and a line end to standard output in one call.
pub(crate) fn json(value: &impl Display) -> Result<()> {
    bytes((json_escaped(&value.to_string()) + "\n").as_bytes())
}

/// Writes to standard output in one call.
pub(crate) fn bytes(bytes: &[u8]) -> Result<()> {
    if READER_GONE.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            READER_GONE.store(true, Ordering::Relaxed);
            Ok(())
        }
        written => written.context("cannot write to standard output"),
    }
}

/// Whether the terminal cannot move its cursor.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Style of a progress bar; `None` if the template is invalid.
pub(crate) fn bar_style(template: &str) -> Option<ProgressStyle> {
    let style = ProgressStyle::with_template(template).ok()?;
    Some(if is_ascii_locale() { style.tick_chars("-\\|/ ").progress_chars("=> ") } else { style })
}

/// Progress bar on standard error; hidden without a terminal, or if it cannot move its cursor.
pub(crate) fn bar(length: Option<u64>) -> ProgressBar {
    if is_dumb() {
        return ProgressBar::hidden();
    }
    length.map_or_else(ProgressBar::new_spinner, ProgressBar::new)
}

/// Writes a file atomically, and reports it; `-` is standard output.
pub(crate) fn file(path: &Path, content: &[u8]) -> io::Result<()> {
    if is_stdout(path) {
        return bytes(content).map_err(io::Error::other);
    }
    grebe_recording::write_whole(path, content)?;
    note!("wrote {}", path.display());
    Ok(())
}

/// Whether a path stands for standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether the reader of standard output has closed it, so that endless commands can end.
pub(crate) fn is_reader_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed) || is_pipe_broken()
}

#[cfg(unix)]
fn is_pipe_broken() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}

#[cfg(not(unix))]
fn is_pipe_broken() -> bool {
    false
}

/// See [`note!`].
pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    say_drawn(&printable(text.to_string().as_bytes()));
}

/// Writes lines to standard error, if possible.
pub(crate) fn say_lines(text: &str) {
    say_drawn(&printable_lines(text));
}

/// The same for text with colours.
pub(crate) fn say_drawn(text: &str) {
    // In one call, so that lines of several threads or processes do not mix.
    let _ = io::stderr().write_all(in_locale(format!("{text}\n")).as_bytes());
}

/// Writes a line for another process to standard error, without escapes.
pub(crate) fn event(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Text for the terminal: without UTF-8, grebe's own symbols become ASCII.
pub(crate) fn in_locale(text: String) -> String {
    if text.is_ascii() || !is_ascii_locale() { text } else { text.chars().map(ascii_of).collect() }
}

/// Lines, each escaped as by [`printable`].
pub(crate) fn printable_lines(text: &str) -> String {
    text.split('\n').map(|line| printable(line.as_bytes())).collect::<Vec<_>>().join("\n")
}

/// JSON in printable characters. Others occur only in strings.
fn json_escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter == '\n' || is_printable(letter) {
            escaped.push(letter);
        } else {
            let mut units = [0; 2];
            letter
                .encode_utf16(&mut units)
                .iter()
                .for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
        }
    }
    escaped
}

static READER_GONE: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_loses_nothing_and_does_nothing_to_a_terminal() {
        let value = serde_json::json!({ "a\u{202e}": ["\u{9b}2J\u{1b}", "\u{e0041}\n", "gr\u{fc}n"] });
        for text in [value.to_string(), format!("{value:#}")] {
            let escaped = json_escaped(&text);
            assert!(escaped.chars().all(|letter| letter == '\n' || is_printable(letter)), "{escaped}");
            assert!(escaped.contains("gr\u{fc}n") && escaped.contains("\\u202e"), "{escaped}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }
        assert_eq!(printable_lines("a\tb\n\n\u{2066}c\n"), "a\\tb\n\n\\u{2066}c\n");
    }
}
