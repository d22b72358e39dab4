//! Output of a remote command and its `ssh`, each read by a thread.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::ChildStdout;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use grebe_connection::printable;

use super::login::Noise;
use crate::hello::EVENT;

/// Event from the command or from `ssh`.
pub(super) enum Output {
    Err(String),
    /// The mark was read.
    Begun,
    Ready(Began),
    /// Too much output after it that is not a line of the command.
    Flood,
}

/// First line of a started command, and its further output.
pub(crate) struct Began {
    pub(crate) line: String,
    pub(crate) rest: BufReader<ChildStdout>,
}

/// Last lines on standard error. Messages of a running `ssh` are for the user (touch your key); its last ones
/// before it ends belong into the error.
pub(super) struct LastLines {
    lines: VecDeque<Line>,
    /// Shows a message to the user, if there is one.
    note: Option<fn(&str)>,
}

struct Line {
    at: Instant,
    is_shown: bool,
    text: String,
}

impl LastLines {
    pub(super) fn new(note: Option<fn(&str)>) -> Self {
        Self { lines: VecDeque::new(), note }
    }

    pub(super) fn add(&mut self, line: &str) {
        if self.lines.len() == SAID_MAX {
            self.lines.pop_front();
        }
        // Output of another machine must not affect this terminal.
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

/// Reads up to the ready line, and passes on the pipe. Shows nothing, because the line contains a ticket.
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
        // A background process of the login may print too.
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

/// Passes lines on until the end. Reads on even without a listener, so that nobody blocks on a full pipe.
pub(super) fn listen(pipe: impl Read, tells: &SyncSender<Output>) {
    let mut reader = BufReader::new(pipe);
    while let Some(line) = next_line(&mut reader) {
        if line.contains(EVENT) {
            // These are few, and each counts.
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

/// Long enough for `ssh` to end if that was its last message.
pub(super) const SHOWN_AFTER: Duration = Duration::from_millis(700);
const LINE_BYTES_MAX: u64 = 64 << 10;
const PIPE_BYTES: usize = 256 << 10;
const SAID_MAX: usize = 40;
