//! Transfers over random links whose ends are killed at random moments and made anew, in virtual time, with the real
//! handshake and the real sealing: every one ends with the right bytes, every session with a verdict or a clear error.
//!
//! `GREBE_TRANSFERS=10000` is the long form; a story that fails names its seed, and `GREBE_TRANSFER_SEED` plays that one alone.

mod ends;
mod link;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ends::{Disk, End, Ends, ReceiverEnd, SenderEnd};
use grebe_packet::Key;
use grebe_testing::Rng;
use grebe_transfer::internals::{Role, SenderOptions};
use link::Link;

#[test]
fn whatever_is_killed_every_byte_arrives() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    if let Some(seed) = number("GREBE_TRANSFER_SEED") {
        return println!("{:?}", Story::new(seed).play());
    }
    let mut sum = Tally::default();
    let stories = number("GREBE_TRANSFERS").unwrap_or(300);
    for seed in 0..stories {
        // The seed of a story that fails is the last one named.
        let story = std::panic::catch_unwind(|| Story::new(seed).play());
        let tally = story.unwrap_or_else(|_| panic!("GREBE_TRANSFER_SEED={seed} fails"));
        sum.kills += tally.kills;
        sum.sessions += tally.sessions;
        sum.resumed += tally.resumed;
        sum.errors += tally.errors;
    }
    println!("{sum:?}");
    let enough = sum.kills > stories / 2 && sum.resumed > stories / 4 && sum.errors > stories / 10;
    assert!(enough, "the stories are about kills: {sum:?}");
}

#[test]
fn who_keeps_trying_outlives_an_outage_of_ten_minutes_in_one_session() {
    let mut patient = Story::with_outage(3_600_000_000);
    assert!(patient.session(false), "it ends whole");
    assert!((605_000_000..640_000_000).contains(&patient.now_us), "soon after: {} us", patient.now_us);
    assert_eq!((patient.tally.sessions, patient.tally.errors), (1, 0));
    let mut usual = Story::with_outage(60_000_000);
    assert!(!usual.session(false));
    assert_eq!(usual.tally.errors, 2, "both sides say that the other is silent");
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    kills: u64,
    sessions: u64,
    /// Sessions that went on with what an earlier one left.
    resumed: u64,
    /// Sides that ended with an error of their own, such as silence.
    errors: u64,
}

/// One file over one path, in as many sessions as it takes.
struct Story {
    random: Rng,
    forward: Link,
    back: Link,
    now_us: u64,
    sequence: u64,
    /// What is under way, also that of sessions that are over.
    wire: BinaryHeap<Reverse<Datagram>>,
    total_bytes: u64,
    disk: Disk,
    silence_us_max: u64,
    tally: Tally,
}

/// In the order of arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Datagram {
    due_us: u64,
    sequence: u64,
    to_receiver: bool,
    bytes: Vec<u8>,
}

impl Story {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let (forward, back) = (Link::draw(&mut random), Link::draw(&mut random));
        let total_bytes = 1 + random.u64(..3_000_000);
        let (wire, disk, tally) = (BinaryHeap::new(), Disk::default(), Tally::default());
        let silence_us_max = SenderOptions::default().silence_us_max;
        Self { random, forward, back, now_us: 0, sequence: 0, wire, total_bytes, disk, silence_us_max, tally }
    }

    /// Nothing passes for ten minutes, in the middle of the file.
    fn with_outage(silence_us_max: u64) -> Self {
        let link = || Link::with_outage(5_000_000, 605_000_000);
        let mut story = Self::new(1);
        (story.forward, story.back, story.total_bytes) = (link(), link(), 5_000_000);
        Self { silence_us_max, ..story }
    }

    fn play(mut self) -> Tally {
        for _ in 0..self.random.u64(..4) {
            if self.session(true) {
                return self.tally;
            }
        }
        // On a bad path a handshake may fail: its user tries again.
        let whole = (0..4).any(|_| self.session(false));
        assert!(whole, "nobody was killed any more");
        self.tally
    }

    /// One session, from the ticket to the end of both sides; whether all was whole then.
    fn session(&mut self, kills: bool) -> bool {
        self.tally.sessions += 1;
        self.tally.resumed += u64::from(self.disk.noted.iter().next().is_some());
        let key = Key::random().unwrap();
        let sender_asks = self.random.u64(..2) == 0;
        let silence_us_max = self.silence_us_max;
        let options = SenderOptions { seed: self.random.u64(..), silence_us_max, ..SenderOptions::default() };
        let mut ends = Ends {
            sender: SenderEnd::new(&key, sender_asks.then_some(Role::Send), self.total_bytes, options),
            receiver: ReceiverEnd::new(
                &key,
                (!sender_asks).then_some(Role::Receive),
                &self.disk,
                self.silence_us_max,
            ),
        };
        // Either is started first, and the path goes on with what it still carries.
        let start_us = self.now_us;
        let gap_us = self.random.u64(..3_000_000);
        let receiver_first = self.random.u64(..2) == 0;
        let starts_us =
            if receiver_first { (start_us + gap_us, start_us) } else { (start_us, start_us + gap_us) };
        let kill_us = |random: &mut Rng| start_us + random.u64(..5_000_000);
        let mut kill_sender_us = u64::MAX;
        let mut kill_receiver_us = u64::MAX;
        if kills {
            match self.random.u64(..3) {
                0 => kill_sender_us = kill_us(&mut self.random),
                1 => kill_receiver_us = kill_us(&mut self.random),
                _ => {
                    kill_sender_us = kill_us(&mut self.random);
                    kill_receiver_us = kill_us(&mut self.random);
                }
            }
        }
        let until_us = start_us + 1_500_000_000;
        while !(ends.sender.end.is_some() && ends.receiver.end.is_some()) {
            let wire_us = self.wire.peek().map_or(u64::MAX, |Reverse(next)| next.due_us);
            let own_us = ends.next_time_us(self.now_us, starts_us);
            let next_us = wire_us.min(own_us).min(kill_sender_us).min(kill_receiver_us);
            assert!(next_us < until_us, "it hangs: {:?} {:?}", ends.sender.end, ends.receiver.end);
            self.now_us = self.now_us.max(next_us);
            let now_us = self.now_us;
            if now_us >= kill_sender_us {
                kill_sender_us = u64::MAX;
                self.tally.kills += u64::from(ends.sender.end.is_none());
                ends.sender.end.get_or_insert(End::Killed);
            }
            if now_us >= kill_receiver_us {
                kill_receiver_us = u64::MAX;
                self.tally.kills += u64::from(ends.receiver.end.is_none());
                ends.receiver.end.get_or_insert(End::Killed);
            }
            while self.wire.peek().is_some_and(|Reverse(next)| next.due_us <= now_us) {
                let Some(Reverse(Datagram { to_receiver, mut bytes, .. })) = self.wire.pop() else { break };
                let answer = if to_receiver && now_us >= starts_us.1 {
                    ends.receiver.take(now_us, &mut bytes)
                } else if !to_receiver && now_us >= starts_us.0 {
                    ends.sender.take(now_us, &mut bytes)
                } else {
                    None
                };
                if let Some(answer) = answer {
                    self.send(!to_receiver, answer);
                }
            }
            if now_us >= starts_us.0 {
                while let Some(datagram) = ends.sender.poll(now_us) {
                    self.send(true, datagram);
                }
            }
            if now_us >= starts_us.1 {
                while let Some(datagram) = ends.receiver.poll(now_us) {
                    self.send(false, datagram);
                }
            }
        }
        let (sender, receiver) = (ends.sender.end, ends.receiver.end);
        let errors = [&sender, &receiver].into_iter().flatten().filter(|end| end.is_error()).count();
        self.tally.errors += errors as u64;
        let whole = ends.receiver.is_whole();
        assert!(sender != Some(End::Whole) || whole, "the sender believes what is not so");
        assert!(receiver != Some(End::Whole) || whole, "the receiver believes what is not so");
        if kills && matches!(receiver, Some(End::Killed)) && !whole {
            self.disk = ends.receiver.disk.after_a_kill();
        } else {
            self.disk = ends.receiver.disk.after_an_end();
        }
        whole
    }

    fn send(&mut self, to_receiver: bool, datagram: Vec<u8>) {
        let link = if to_receiver { &mut self.forward } else { &mut self.back };
        for due_us in link.carry(self.now_us, datagram.len(), &mut self.random).into_iter().flatten() {
            self.sequence += 1;
            let (sequence, bytes) = (self.sequence, datagram.clone());
            self.wire.push(Reverse(Datagram { due_us, sequence, to_receiver, bytes }));
        }
    }
}
