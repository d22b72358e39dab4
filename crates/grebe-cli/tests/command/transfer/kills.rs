//! `kill -9` at any moment, on either side or both, restarted in either order: the file arrives whole, noted data is
//! not sent again, and nothing is left behind.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use super::peers::{Ended, Waiting, file, names, noted_bytes, path, receive, send, sent};
use crate::support::kills::play_stories;
use crate::support::signal;

#[test]
fn kills_of_either_side_leave_the_file_whole() {
    play_stories(|seed| Story::new(seed).play());
}

/// One file, cut off a few times and then not.
struct Story {
    seed: u64,
    random: u64,
}

/// A session's two processes. The one with the ticket does not wait for the other.
struct Pair {
    sender: Side,
    receiver: Side,
}

enum Side {
    Waiting(Waiting),
    Asking(Child),
}

/// Bytes on the receiver's disk before a session.
struct Safe {
    bytes: u64,
    /// The file has its name, and all is over.
    done: bool,
}

impl Story {
    fn new(seed: u64) -> Self {
        Self { seed, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn play(mut self) {
        println!("story {}", self.seed);
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bytes = 2_000_000 + self.below(6_000_000) as usize;
        let (large, contents) = file(from.path(), "large.bin", bytes);
        for _ in 0..=self.below(3) {
            self.cut_off(&large, into.path());
        }
        let safe = safe(into.path());
        // Slow enough for the receiver to report existing data before all is sent.
        let pair = Pair::start(&large, into.path(), self.below(2) == 0, &["--bwlimit", "40M"]);
        let (sender, receiver) = (pair.sender.finish(), pair.receiver.finish());
        let said = format!("story {}: {} {}", self.seed, sender.said, receiver.said);
        // If the last cut came too late, nothing is left to do, which is fine.
        assert_eq!((sender.status, receiver.status), (Some(0), Some(0)), "{said}");
        if !safe.done {
            let number = |name: &str| sender.result[name].as_u64().unwrap();
            assert!(number("resumed_bytes") >= safe.bytes, "{said} {} {}", sender.result, safe.bytes);
        }
        assert!(fs::read(into.path().join("large.bin")).unwrap() == contents, "{said}");
        assert_eq!(names(into.path()), ["large.bin"], "{said}");
    }

    /// A session that is killed in its handshake, on its way or just about its end, at random.
    fn cut_off(&mut self, large: &Path, into: &Path) {
        let slow = ["--bwlimit", "32M"];
        let (limit, within_ms) = if self.below(3) > 0 { (&slow[..], 1_500) } else { (&[][..], 60) };
        let pair = Pair::start(large, into, self.below(2) == 0, limit);
        self.sleep_up_to(within_ms);
        let (first, second) = match self.below(2) {
            0 => (pair.sender, pair.receiver),
            _ => (pair.receiver, pair.sender),
        };
        first.signal("-KILL");
        if self.below(2) == 0 {
            self.sleep_up_to(300);
        }
        // The survivor is killed, too, or stopped by its user.
        second.signal(if self.below(2) == 0 { "-KILL" } else { "-INT" });
        for ended in [first.finish(), second.finish()] {
            // Killed, interrupted, told of the other's end, or done before.
            let expected = matches!(ended.status, None | Some(0 | 1 | 130));
            assert!(expected, "story {}: {:?} {}", self.seed, ended.status, ended.said);
        }
    }

    fn sleep_up_to(&mut self, ms: u64) {
        let us = self.below(ms * 1_000);
        std::thread::sleep(Duration::from_micros(us));
    }

    /// xorshift64.
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 16) % end
    }
}

impl Pair {
    fn start(large: &Path, into: &Path, receiver_waits: bool, more: &[&str]) -> Self {
        if receiver_waits {
            let receiver = Waiting::recv(into);
            let sender = send(&[large], &receiver.ticket, more);
            return Self { sender: Side::Asking(sender), receiver: Side::Waiting(receiver) };
        }
        let sender = Waiting::start(&[&["send", path(large)], more].concat());
        let receiver = receive(&sender.ticket, into);
        Self { sender: Side::Waiting(sender), receiver: Side::Asking(receiver) }
    }
}

impl Side {
    /// A process that has already ended is not affected: it stays ours until we wait for it.
    fn signal(&self, name: &str) {
        signal(
            name,
            match self {
                Self::Waiting(side) => side.id(),
                Self::Asking(child) => child.id(),
            },
        );
    }

    fn finish(self) -> Ended {
        match self {
            Self::Waiting(side) => side.finish(),
            Self::Asking(child) => sent(child),
        }
    }
}

/// Reads the journal as it lies there.
fn safe(into: &Path) -> Safe {
    // Killed before it tidied up, too: the file has its name only when it is whole.
    Safe { bytes: noted_bytes(into), done: into.join("large.bin").exists() }
}
