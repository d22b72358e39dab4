//! Whether a peer is heard.

use std::time::{Duration, Instant};

use super::lines::DEAD_AFTER;

/// Listens for whether anything comes from a peer, looked at several times a second.
#[derive(Debug)]
pub(super) struct Ear {
    looked_at: Instant,
    /// This process has run since then: before, it could not hear.
    awake_since: Instant,
    hears: bool,
}

impl Ear {
    pub(super) fn new(now: Instant) -> Self {
        Self { looked_at: now, awake_since: now, hears: true }
    }

    /// Nothing has come for so long, as far as the connection's thread knows: whether something comes, if that is news.
    pub(super) fn listen(&mut self, now: Instant, silence: Duration) -> Option<bool> {
        let since = std::mem::replace(&mut self.looked_at, now);
        if now - since >= ASLEEP_AFTER {
            self.awake_since = now;
        }
        let hears = silence.min(now - self.awake_since) < DEAD_AFTER;
        // Heard again is only what was heard, not what this process has slept through.
        let is_news = hears != self.hears && (!hears || silence < DEAD_AFTER);
        if is_news {
            self.hears = hears;
        }
        is_news.then_some(hears)
    }
}

/// A process that does not look for so long was stopped, or got no processor: what came meanwhile was not looked at.
const ASLEEP_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(20);

    #[test]
    fn silence_is_told_once_and_so_is_its_end() {
        let mut now = Instant::now();
        let mut ear = Ear::new(now);
        let mut silence = Duration::ZERO;
        while silence + STEP < DEAD_AFTER {
            (now, silence) = (now + STEP, silence + STEP);
            assert_eq!(ear.listen(now, silence), None, "{silence:?}");
        }
        assert_eq!(ear.listen(now + STEP, silence + STEP), Some(false));
        assert_eq!(ear.listen(now + 2 * STEP, silence + 2 * STEP), None);
        assert_eq!(ear.listen(now + 3 * STEP, STEP), Some(true));
        assert_eq!(ear.listen(now + 4 * STEP, 2 * STEP), None);
    }

    #[test]
    fn who_was_asleep_has_not_heard_silence() {
        let mut now = Instant::now();
        let mut ear = Ear::new(now);
        now += 10 * DEAD_AFTER;
        assert_eq!(ear.listen(now, 10 * DEAD_AFTER), None);
        // Then it hears nothing as long as others.
        let until = now + DEAD_AFTER;
        while now + STEP < until {
            now += STEP;
            assert_eq!(ear.listen(now, 10 * DEAD_AFTER + (now + DEAD_AFTER - until)), None);
        }
        assert_eq!(ear.listen(until, 11 * DEAD_AFTER), Some(false));
        assert_eq!(ear.listen(until + 2 * ASLEEP_AFTER, 12 * DEAD_AFTER), None, "it is silent still");
    }
}
