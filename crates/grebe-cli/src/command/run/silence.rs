//! Detection of a silent peer.

use std::time::{Duration, Instant};

use super::lines::DEAD_AFTER;

/// Detects silence of a peer. It is polled several times a second.
#[derive(Debug)]
pub(super) struct SilenceDetector {
    looked_at: Instant,
    /// Time since which this process runs without a stop.
    awake_since: Instant,
    hears: bool,
}

impl SilenceDetector {
    pub(super) fn new(now: Instant) -> Self {
        Self { looked_at: now, awake_since: now, hears: true }
    }

    /// Takes the silence that the connection reports; returns whether the peer is audible, if that changed.
    pub(super) fn listen(&mut self, now: Instant, silence: Duration) -> Option<bool> {
        let since = std::mem::replace(&mut self.looked_at, now);
        if now - since >= ASLEEP_AFTER {
            self.awake_since = now;
        }
        let hears = silence.min(now - self.awake_since) < DEAD_AFTER;
        // The end of silence counts only if data arrived, not because this process was stopped.
        let is_news = hears != self.hears && (!hears || silence < DEAD_AFTER);
        if is_news {
            self.hears = hears;
        }
        is_news.then_some(hears)
    }
}

/// A process that was not polled for this long was stopped, or got no processor.
const ASLEEP_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(20);

    #[test]
    fn silence_and_its_end_are_reported_once() {
        let mut now = Instant::now();
        let mut silence_detector = SilenceDetector::new(now);
        let mut silence = Duration::ZERO;
        while silence + STEP < DEAD_AFTER {
            (now, silence) = (now + STEP, silence + STEP);
            assert_eq!(silence_detector.listen(now, silence), None, "{silence:?}");
        }
        assert_eq!(silence_detector.listen(now + STEP, silence + STEP), Some(false));
        assert_eq!(silence_detector.listen(now + 2 * STEP, silence + 2 * STEP), None);
        assert_eq!(silence_detector.listen(now + 3 * STEP, STEP), Some(true));
        assert_eq!(silence_detector.listen(now + 4 * STEP, 2 * STEP), None);
    }

    #[test]
    fn time_asleep_does_not_count_as_silence() {
        let mut now = Instant::now();
        let mut silence_detector = SilenceDetector::new(now);
        now += 10 * DEAD_AFTER;
        assert_eq!(silence_detector.listen(now, 10 * DEAD_AFTER), None);
        // From then on it detects silence as usual.
        let until = now + DEAD_AFTER;
        while now + STEP < until {
            now += STEP;
            assert_eq!(silence_detector.listen(now, 10 * DEAD_AFTER + (now + DEAD_AFTER - until)), None);
        }
        assert_eq!(silence_detector.listen(until, 11 * DEAD_AFTER), Some(false));
        assert_eq!(
            silence_detector.listen(until + 2 * ASLEEP_AFTER, 12 * DEAD_AFTER),
            None,
            "it is silent still"
        );
    }
}
