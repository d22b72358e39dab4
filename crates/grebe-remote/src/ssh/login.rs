//! Output of a login before the remote command begins. A startup file may print, with or without line ends,
//! may consume the command's input, or may never end. So the command first prints [`MARK`], and its task is
//! sent only then. Earlier output is noise.

use std::io::{BufRead, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// First line of a remote command. Random, so that no greeting contains it.
pub(crate) const MARK: &str = "grebe-is-here-5d0b1f7c24e9";

/// Output before the mark, shared by clones.
#[derive(Debug, Clone, Default)]
pub(super) struct Noise(Arc<Mutex<Printed>>);

#[derive(Debug, Default)]
struct Printed {
    bytes: usize,
    last: Vec<u8>,
}

/// Progress of a login, judged by its output.
#[derive(Debug)]
pub(super) struct Login {
    noise: Noise,
    noise_bytes: usize,
    began: Instant,
    /// Time of the login, as far as known.
    logged_in: Option<Instant>,
    heard: Instant,
}

impl Noise {
    /// Reads up to the mark and the end of its line. `false`: the output ended before.
    pub(super) fn pass_over(&self, reader: &mut impl BufRead) -> bool {
        // The mark may arrive in parts.
        let mut held: Vec<u8> = Vec::new();
        loop {
            let came = match reader.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) | Ok([]) => return false,
                Ok(came) => came,
            };
            let (before, length) = (held.len(), came.len());
            held.extend_from_slice(came);
            if let Some(at) = held.windows(MARK.len()).position(|part| part == MARK.as_bytes()) {
                reader.consume(at + MARK.len() - before);
                return reader.skip_until(b'\n').is_ok();
            }
            self.add(&held[before..]);
            reader.consume(length);
            held.drain(..held.len().saturating_sub(MARK.len() - 1));
        }
    }

    fn add(&self, came: &[u8]) {
        let mut printed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        printed.bytes += came.len();
        printed.last.extend_from_slice(came);
        let beyond = printed.last.len().saturating_sub(LAST_BYTES);
        printed.last.drain(..beyond);
    }

    fn bytes(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// The end of the noise.
    pub(super) fn last(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner).last).into_owned()
    }
}

impl Login {
    pub(super) fn new(noise: Noise) -> Self {
        let now = Instant::now();
        Self { noise, noise_bytes: 0, began: now, logged_in: None, heard: now }
    }

    /// Notes that `ssh` has logged in.
    pub(super) fn has_logged_in(&mut self) {
        self.heard = Instant::now();
        self.logged_in.get_or_insert(self.heard);
    }

    /// Notes output of the login or of `ssh`.
    pub(super) fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// Reason for giving up, if any. Before the login, `ssh` may be asking for a password or a touch of a
    /// key.
    pub(super) fn is_stuck(&mut self) -> Option<String> {
        let bytes = self.noise.bytes();
        if bytes > self.noise_bytes {
            self.noise_bytes = bytes;
            self.has_logged_in();
        }
        if bytes > NOISE_BYTES_MAX {
            return Some(format!("it printed more than {} KiB", NOISE_BYTES_MAX >> 10));
        }
        let waited = |within: Duration| Some(format!("it did not start within {} s", within.as_secs()));
        match self.logged_in {
            Some(_) if self.heard.elapsed() > SILENT_FOR => waited(SILENT_FOR),
            Some(since) if since.elapsed() > LOGIN_TIME => waited(LOGIN_TIME),
            None if self.began.elapsed() > ATTENDED_TIME => waited(ATTENDED_TIME),
            _ => None,
        }
    }
}

const NOISE_BYTES_MAX: usize = 1 << 20;
/// Bytes of noise kept for messages.
const LAST_BYTES: usize = 2 << 10;
/// Maximum silence after the login.
const SILENT_FOR: Duration = Duration::from_secs(30);
/// Maximum time after the login. Startup files on network disks are slow.
const LOGIN_TIME: Duration = Duration::from_secs(120);
/// Maximum time if the moment of the login is unknown. A server gives a user two minutes (`LoginGraceTime`).
const ATTENDED_TIME: Duration = Duration::from_secs(180);

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    #[test]
    fn the_mark_is_found_behind_anything_and_in_any_parts() {
        for noise in ["", "Welcome", "two\nlines\n", "grebe-is-", "grebe-is-here-5d0b1f7c24e", "\u{1b}[2J\r"]
        {
            let all = format!("{noise}{MARK}\n{{}}\ndata");
            for part in [1, 7, 1000] {
                let mut reader = BufReader::with_capacity(part, all.as_bytes());
                let before = Noise::default();
                assert!(before.pass_over(&mut reader), "{noise:?}");
                let mut rest = String::new();
                reader.read_to_string(&mut rest).unwrap();
                assert_eq!(rest, "{}\ndata", "{noise:?} in parts of {part}");
            }
        }
        let noise = Noise::default();
        assert!(!noise.pass_over(&mut &b"sh: no grebe here"[..]));
        assert_eq!(noise.last(), "sh: no grebe here");
    }

    #[test]
    fn the_end_of_endless_noise_is_kept() {
        let (noise, dots) = (Noise::default(), vec![b'.'; 2 << 20]);
        let mut login = Login::new(noise.clone());
        assert!(login.is_stuck().is_none());
        noise.pass_over(&mut &dots[..]);
        assert!(login.is_stuck().unwrap().contains("more than 1024 KiB"));
        assert_eq!(noise.last().len(), LAST_BYTES);
    }
}
