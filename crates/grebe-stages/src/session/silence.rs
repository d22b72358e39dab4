//! Duration of a silence.

use std::time::{Duration, Instant};

use crate::error::Error;

/// Time of a sender's last data, and the decisions that follow from its silence.
#[derive(Debug)]
pub(crate) struct Silence {
    began: Instant,
    last: Option<Instant>,
    /// Time spent listening since then. A suspended process does not count as silence.
    listened: Duration,
    checked: Instant,
    ends_after: Option<Duration>,
}

impl Silence {
    pub(crate) fn begin() -> Self {
        let now = Instant::now();
        Self { began: now, last: None, listened: Duration::ZERO, checked: now, ends_after: None }
    }

    /// Makes a silence of this length an error.
    pub(crate) fn ends_after(&mut self, timeout: Option<Duration>) {
        self.ends_after = timeout;
    }

    pub(crate) fn reset(&mut self, now: Instant) {
        self.last = Some(now);
        (self.listened, self.checked) = (Duration::ZERO, now);
    }

    /// As `reset` now, if a timeout is set.
    pub(crate) fn hear(&mut self) {
        if self.ends_after.is_some() {
            self.last = Some(Instant::now());
        }
    }

    /// Time of the last data, or the start of the wait.
    pub(crate) fn since(&self) -> Instant {
        self.last.unwrap_or(self.began)
    }

    /// Whether another sender may take over: the first is silent for half a second, or never sent.
    pub(crate) fn allows_takeover(&mut self, now: Instant) -> bool {
        self.listen(now);
        self.last.is_none() || self.listened >= TAKEOVER
    }

    /// Adds the time since the last call, limited because a suspended process does not listen.
    pub(super) fn listen(&mut self, now: Instant) {
        self.listened += now.saturating_duration_since(self.checked).min(STEP_MAX);
        self.checked = self.checked.max(now);
    }

    /// # Errors
    /// [`Error::Idle`]: nothing within the timeout. A sender that never sent counts as silent.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        self.listen(Instant::now());
        match self.ends_after {
            Some(timeout) if self.since().elapsed() >= timeout => Err(Error::Idle { timeout }),
            _ => Ok(()),
        }
    }
}

/// Whether a sender of that time is still considered active.
pub(crate) fn is_recent(last: Instant, now: Instant) -> bool {
    now.saturating_duration_since(last) < TAKEOVER
}

/// Silence after which a sender loses its stream.
const TAKEOVER: Duration = Duration::from_millis(500);
/// Twice the maximum wait of a source.
const STEP_MAX: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_keeps_its_stream_for_half_a_second() {
        let (mut silence, now) = (Silence::begin(), Instant::now());
        assert!(silence.allows_takeover(now), "nobody has it");
        silence.reset(now);
        let mut at = |ms| silence.allows_takeover(now + Duration::from_millis(ms));
        assert_eq!([0, 200, 400, 499, 500].map(&mut at), [false, false, false, false, true]);
    }

    #[test]
    fn a_process_that_was_stopped_takes_no_peer_for_silent() {
        let (mut silence, now) = (Silence::begin(), Instant::now());
        silence.reset(now);
        let mut at = |ms| silence.allows_takeover(now + Duration::from_millis(ms));
        assert_eq!([100, 5_000, 5_050, 5_150].map(&mut at), [false, false, false, false]);
        assert_eq!([5_190, 5_200].map(&mut at), [false, true], "it is listened to again");
    }

    #[test]
    fn silence_is_an_error_where_that_is_wanted_and_from_the_start() {
        let mut silence = Silence::begin();
        assert!(silence.check().is_ok());
        silence.ends_after(Some(Duration::ZERO));
        assert!(matches!(silence.check(), Err(Error::Idle { .. })));
        silence.ends_after(Some(Duration::from_secs(3_600)));
        assert!(silence.check().is_ok());
    }
}
