//! The output of a command there and of its `ssh`, read by a thread each.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::ChildStdout;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use grebe_connection::printable;

use super::login::Noise;
use crate::hello::EVENT;

/// What comes from the command, or from `ssh`.
pub(super) enum Output {
    Err(String),
    /// The command has begun.
    Begun,
    Ready(Began),
    /// Too much that is no line of the command came after that.
    Flood,
}

/// The first line of a command that has begun, and its output after that.
pub(crate) struct Began {
    pub(crate) line: String,
    pub(crate) rest: BufReader<ChildStdout>,
}

/// The last lines on standard error. What `ssh` says while it goes on is for the person (touch your key); what it says before it ends
/// is for the error.
pub(super) struct Said {
    lines: VecDeque<Line>,
    /// Tells a person, where one is there.
    note: Option<fn(&str)>,
}

struct Line {
    at: Instant,
    is_shown: bool,
    text: String,
}

impl Said {
    pub(super) fn new(note: Option<fn(&str)>) -> Self {
        Self { lines: VecDeque::new(), note }
    }

    pub(super) fn add(&mut self, line: &str) {
        if self.lines.len() == SAID_MAX {
            self.lines.pop_front();
        }
        // What comes from another machine does nothing to a terminal here.
        let text = printable(line.as_bytes());
        self.lines.push_back(Line { at: Instant::now(), is_shown: false, text });
    }

    pub(super) fn show(&mut self) {
        let Some(note) = self.note else { return };
        for line in self.lines.iter_mut().filter(|line| !line.is_shown && line.at.elapsed() > SHOWN_AFTER) {
            note(&line.text);
            line.is_shown = true;
        }
    }

    pub(super) fn last(&self) -> Option<&str> {
        self.lines.iter().rev().map(|line| line.text.trim()).find(|line| !line.is_empty())
    }

    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// Reads up to the line that says that the command is ready, and passes on the pipe itself. Nothing of it is shown: it has a ticket in it.
pub(super) fn await_ready(
    pipe: ChildStdout,
    tells: &SyncSender<Output>,
    noise: &Noise,
    is_ready: fn(&str) -> bool,
) {
    let mut reader = BufReader::with_capacity(PIPE_BYTES, pipe);
    if !noise.pass_over(&mut reader) {
        return;
    }
    let _ = tells.send(Output::Begun);
    let mut left = LINE_BYTES_MAX;
    while let Some(line) = next_line(&mut reader) {
        left = left.saturating_sub(line.len() as u64 + 1);
        // A process that a login has left in the background may print, too.
        let line = line.find('{').map_or("", |at| &line[at..]).to_owned();
        if is_ready(&line) {
            let _ = tells.send(Output::Ready(Began { line, rest: reader }));
            return;
        }
        if left == 0 {
            let _ = tells.send(Output::Flood);
            return;
        }
    }
}

/// Passes lines on until the end; when nobody listens any more they are read all the same, so that nobody waits for room.
pub(super) fn listen(pipe: impl Read, tells: &SyncSender<Output>) {
    let mut reader = BufReader::new(pipe);
    while let Some(line) = next_line(&mut reader) {
        if line.contains(EVENT) {
            // Those are few, and each counts.
            let _ = tells.send(Output::Err(line));
        } else {
            let _ = tells.try_send(Output::Err(line));
        }
    }
}

fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    match reader.take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
    }
}

/// Long enough for `ssh` to end if that was its last word.
pub(super) const SHOWN_AFTER: Duration = Duration::from_millis(700);
const LINE_BYTES_MAX: u64 = 64 << 10;
const PIPE_BYTES: usize = 256 << 10;
const SAID_MAX: usize = 40;
