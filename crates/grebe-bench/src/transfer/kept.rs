//! What outlives the process that started it, for a moment: programs that are ended in order, and directories that are removed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::{Answer, wait_for_end_of_input};

/// Removes a directory once standard input ends.
pub(super) fn guard(directory: &Path) {
    wait_for_end_of_input();
    // Those who write there end at the same time, but perhaps a moment later.
    for _ in 0..10 {
        if std::fs::remove_dir_all(directory).is_ok() || !directory.exists() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Runs a program until standard input ends, then interrupts it, so that it can tidy up. The answer is what it said last, an
/// error where the program ended by itself.
pub(super) fn keep(program: &PathBuf, arguments: &[String]) -> Answer<String> {
    let named = program.display();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {named}: {error}"))?;
    let stderr = child.stderr.take();
    let said = thread::spawn(move || stderr.map_or(String::new(), last_words));
    let (told, is_over) = mpsc::channel();
    thread::spawn(move || {
        wait_for_end_of_input();
        // Where nobody waits any more, the program has ended by itself.
        let _ = told.send(());
    });
    let words = |said: thread::JoinHandle<String>| said.join().unwrap_or_default();
    let poll = |child: &mut Child| child.try_wait().map_err(|error| format!("{named}: {error}"));
    while is_over.recv_timeout(POLL) == Err(mpsc::RecvTimeoutError::Timeout) {
        if let Some(status) = poll(&mut child)? {
            let words = words(said);
            return match words.trim() {
                "" => Err(format!("{named} ended: {status}")),
                words => Err(format!("{named} ended ({status}): {words}")),
            };
        }
    }
    interrupt(&mut child);
    let until = Instant::now() + ENDING_TIME;
    while poll(&mut child)?.is_none() {
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            break;
        }
        thread::sleep(POLL);
    }
    Ok(words(said))
}

#[cfg(unix)]
fn interrupt(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process};
    // It was not waited for since it ended, so that its number is still its own.
    let _ = kill_process(Pid::from_child(child), Signal::INT);
}

#[cfg(not(unix))]
fn interrupt(child: &mut Child) {
    let _ = child.kill();
}

/// The end of what a program says, however much that is.
fn last_words(mut stderr: impl Read) -> String {
    let (mut words, mut block) = (Vec::new(), [0; 4_096]);
    while let Ok(now) = stderr.read(&mut block)
        && now > 0
    {
        words.extend_from_slice(&block[..now]);
        if words.len() > LAST_WORDS_BYTES {
            words.drain(..words.len() - LAST_WORDS_BYTES);
        }
    }
    String::from_utf8_lossy(&words).into_owned()
}

/// How long a program that was interrupted may take to end.
pub(super) const ENDING_TIME: Duration = Duration::from_secs(5);

const LAST_WORDS_BYTES: usize = 1_024;
const POLL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_words_the_last_are_kept() {
        let many = "x".repeat(100_000) + "the end";
        let words = last_words(many.as_bytes());
        assert!(words.len() == LAST_WORDS_BYTES && words.ends_with("the end"));
    }
}
