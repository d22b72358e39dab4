//! The command in a terminal, as a person sees it.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Killed, program, text};

/// The command in a terminal, and the screen.
pub(crate) struct Screen {
    pub(crate) child: Killed,
    keys: ChildStdin,
    rows: Arc<Mutex<Rows>>,
}

impl Screen {
    /// `None`, with a message, if no program can make terminals.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_with(arguments, &[])
    }

    /// The same with these variables of the environment.
    pub(crate) fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Option<Self> {
        let Some(mut child) = in_terminal(arguments, environment) else {
            println!("skipped: script, which makes terminals, is not there");
            return None;
        };
        let rows = Arc::new(Mutex::new(Rows::default()));
        let (mut screen, shown) = (child.stdout.take().unwrap(), rows.clone());
        std::thread::spawn(move || {
            let (mut block, mut rest) = ([0; 4096], Vec::new());
            while let Ok(bytes @ 1..) = screen.read(&mut block) {
                rest.extend_from_slice(&block[..bytes]);
                let drawn = shown.lock().unwrap().draw(&rest);
                rest.drain(..drawn);
            }
        });
        Some(Self { keys: child.stdin.take().unwrap(), child: Killed(child), rows })
    }

    /// Waits until words stand there.
    pub(crate) fn sees(&self, words: &str) {
        self.waits_for(words, true);
    }

    /// Waits until words stand there no more.
    pub(crate) fn sees_no(&self, words: &str) {
        self.waits_for(words, false);
    }

    fn waits_for(&self, words: &str, is_there: bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while self.shown().contains(words) != is_there {
            assert!(
                Instant::now() < until,
                "{words:?} {} there:\n{}",
                if is_there { "is not" } else { "is still" },
                self.shown()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn shown(&self) -> String {
        self.rows.lock().unwrap().0.iter().map(|row| String::from_iter(row) + "\n").collect()
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// Ends it by its key, which takes a few seconds at most.
    pub(crate) fn quit(&mut self) {
        self.end_by(b"q");
    }

    /// Ends it by these keys; its exit status.
    pub(crate) fn end_by(&mut self, keys: &[u8]) -> Option<i32> {
        self.press(keys);
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "{keys:?} does not end it");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Starts the command in a terminal of 200 by 40; `None` if no program can make terminals.
pub(crate) fn in_terminal(arguments: &[&str], environment: &[(&str, &str)]) -> Option<Child> {
    let program = program();
    let words = [&[program.as_str()], arguments].concat();
    let command = format!("stty rows 40 cols 200; exec {}", shlex::try_join(words).unwrap());
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm-256color");
    script.envs(environment.iter().copied());
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
}

/// The letters of a terminal, and where the next one comes.
#[derive(Default)]
struct Rows(Vec<Vec<char>>, usize, usize);

impl Rows {
    /// Draws all of it that is whole, as far as the command makes use of a terminal: places, letters, wiping; how
    /// many bytes that was.
    fn draw(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let length = match byte {
                0x1b if bytes.get(at + 1) == Some(&b'[') => {
                    let Some(end) = bytes[at + 2..].iter().position(|it| (0x40..0x7f).contains(it)) else {
                        break;
                    };
                    let (numbers, end) = (&bytes[at + 2..at + 2 + end], at + 2 + end);
                    let mut numbers = numbers.split(|it| *it == b';').map(|it| text(it).parse().unwrap_or(1));
                    match bytes[end] {
                        b'H' => {
                            self.1 = numbers.next().unwrap_or(1usize).saturating_sub(1);
                            self.2 = numbers.next().unwrap_or(1).saturating_sub(1);
                        }
                        b'J' => self.0.clear(),
                        _ => {}
                    }
                    end + 1 - at
                }
                0x1b => 2,
                ..0x20 => 1,
                _ => {
                    let length = match byte {
                        ..0x80 => 1,
                        0x80..0xe0 => 2,
                        0xe0..0xf0 => 3,
                        0xf0.. => 4,
                    };
                    let Some(letter) = bytes.get(at..at + length) else { break };
                    self.put(text(letter).chars().next().unwrap_or(' '));
                    length
                }
            };
            if at + length > bytes.len() {
                break;
            }
            at += length;
        }
        at
    }

    fn put(&mut self, letter: char) {
        let Self(rows, row, column) = self;
        if rows.len() <= *row {
            rows.resize(*row + 1, Vec::new());
        }
        if rows[*row].len() <= *column {
            rows[*row].resize(*column + 1, ' ');
        }
        rows[*row][*column] = letter;
        *column += 1;
    }
}
