//! Choice between blocking and sleeping.
//!
//! A blocked receiver is woken by the sender, which costs the sender 15-19 % of its time. A receiver that
//! polls every few hundred microseconds costs the sender nothing, and loses nothing while the kernel's buffer
//! holds the arrivals. But on a slow stream each poll finds at most one datagram, and blocking delivers it
//! sooner. So the receiver blocks while datagrams arrive one by one, and sleeps while every sleep finds
//! several.

use std::time::{Duration, Instant};

/// Consecutive wake-ups in close succession before sleeping begins.
const CLOSE_WAKEUPS: u32 = 4;

/// Consecutive sleeps with a single message before blocking begins.
const LEAN_SLEEPS: u32 = 4;

/// Action while there is nothing to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Block until the kernel reports something.
    Block,
    /// Sleep for this time, then check again.
    Sleep(Duration),
}

#[derive(Debug)]
pub(super) struct Waiting {
    nap: Duration,
    nap_max: Duration,
    /// Maximum bytes to gather during one sleep: a part of the kernel's buffer.
    bytes_max: usize,
    sleeping: bool,
    streak: u32,
    woken: Option<Instant>,
    messages: usize,
    bytes: usize,
}

impl Waiting {
    /// Sleeps at most half of `latency`, and at most until a quarter of a buffer of `buffer_bytes` is full.
    pub(super) fn new(latency: Duration, buffer_bytes: usize) -> Self {
        let nap = latency / 2;
        Self {
            nap,
            nap_max: nap,
            bytes_max: (buffer_bytes / 4).max(1),
            sleeping: false,
            streak: 0,
            woken: None,
            messages: 0,
            bytes: 0,
        }
    }

    pub(super) fn received(&mut self, messages: usize, bytes: usize) {
        self.messages += messages;
        self.bytes += bytes;
    }

    /// Returns how to wait for an empty socket.
    pub(super) fn empty(&mut self) -> Wait {
        if self.sleeping {
            self.judge_sleep();
        }
        (self.messages, self.bytes) = (0, 0);
        if self.sleeping { Wait::Sleep(self.nap) } else { Wait::Block }
    }

    /// Notes that a blocking wait ended with something to receive.
    pub(super) fn woke(&mut self, now: Instant) {
        let close = self.woken.is_some_and(|before| now.duration_since(before) < self.nap_max / 2);
        self.woken = Some(now);
        self.streak = if close { self.streak + 1 } else { 0 };
        if self.streak >= CLOSE_WAKEUPS && !self.nap_max.is_zero() {
            self.sleeping = true;
            self.streak = 0;
            // The first sleep is assessed by its own result, not by earlier ones.
            (self.messages, self.bytes) = (2, 0);
        }
    }

    fn judge_sleep(&mut self) {
        match self.messages {
            0 => self.block(),
            1 => {
                self.streak += 1;
                if self.streak >= LEAN_SLEEPS {
                    self.block();
                }
            }
            _ => self.streak = 0,
        }
        if self.bytes > self.bytes_max {
            self.nap = (self.nap / 2).max(Duration::from_micros(20).min(self.nap_max));
        } else if self.bytes < self.bytes_max / 2 {
            self.nap = (self.nap + self.nap / 8).min(self.nap_max);
        }
    }

    fn block(&mut self) {
        self.sleeping = false;
        self.streak = 0;
        self.woken = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_micros(500);

    /// Runs a stream with one message every `gap`. Returns how many waits blocked and how many slept in the
    /// last half.
    fn play(gap: Duration, waits: usize) -> (usize, usize) {
        let mut waiting = Waiting::new(BUDGET, 32 << 20);
        let start = Instant::now();
        let (mut now, mut next) = (Duration::ZERO, gap);
        let (mut blocked, mut slept) = (0, 0);
        for index in 0..waits {
            let (mut messages, tail) = (0, index >= waits / 2);
            while next <= now {
                (messages, next) = (messages + 1, next + gap);
            }
            if messages > 0 {
                waiting.received(messages, messages * 1_400);
            }
            match waiting.empty() {
                Wait::Block => {
                    blocked += usize::from(tail);
                    now = now.max(next);
                    waiting.woke(start + now);
                }
                Wait::Sleep(nap) => {
                    slept += usize::from(tail);
                    assert!(nap <= BUDGET / 2, "a sleep within the latency budget");
                    assert!(nap > Duration::ZERO, "never spins");
                    now += nap;
                }
            }
        }
        (blocked, slept)
    }

    #[test]
    fn a_slow_stream_is_waited_for_by_blocking() {
        assert_eq!(play(Duration::from_millis(10), 200).1, 0);
    }

    #[test]
    fn a_fast_stream_is_waited_for_by_sleeping() {
        assert_eq!(play(Duration::from_micros(10), 200).0, 0);
    }

    #[test]
    fn a_sleep_ends_before_the_buffer_is_full() {
        let mut waiting = Waiting::new(BUDGET, 1 << 20);
        let start = Instant::now();
        for _ in 0..=CLOSE_WAKEUPS {
            waiting.woke(start);
        }
        assert_eq!(waiting.empty(), Wait::Sleep(BUDGET / 2));
        for _ in 0..3 {
            waiting.received(100, 500_000);
            waiting.empty();
        }
        waiting.received(100, 200_000);
        assert!(matches!(waiting.empty(), Wait::Sleep(nap) if nap < BUDGET / 8));
    }

    #[test]
    fn without_a_budget_it_always_blocks() {
        let mut waiting = Waiting::new(Duration::ZERO, 1 << 20);
        for _ in 0..50 {
            waiting.woke(Instant::now());
            assert_eq!(waiting.empty(), Wait::Block);
        }
    }
}
