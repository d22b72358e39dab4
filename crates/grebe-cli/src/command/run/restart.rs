//! Restarts of a host that went away, as often as necessary.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::login::{Connected, Login};

/// Time and result of the next restart.
pub(super) struct RestartState {
    pub(super) away_since: Instant,
    due: Instant,
    /// Pause after the next attempt.
    pause: Duration,
    attempt: Option<Receiver<Result<Connected>>>,
    /// Last reported reason of a failure.
    told: String,
    /// Time since which the host is back.
    there_since: Option<Instant>,
}

impl RestartState {
    /// For a host that has just gone; `before` is its previous restart.
    pub(super) fn of(before: Option<Self>) -> Self {
        let now = Instant::now();
        let mut restart_state = Self {
            away_since: now,
            due: now,
            pause: PAUSE_MIN,
            attempt: None,
            told: String::new(),
            there_since: None,
        };
        // A host that ends soon after its start must not restart in a tight loop.
        if let Some(before) = before {
            match before.there_since {
                Some(since) if since.elapsed() >= GOOD_AFTER => {}
                there_since => {
                    restart_state.pause = before.pause;
                    if there_since.is_none() {
                        (restart_state.away_since, restart_state.told) = (before.away_since, before.told);
                    }
                    restart_state.wait();
                }
            }
        }
        restart_state
    }

    /// Whether an attempt is due.
    pub(super) fn is_due(&self) -> bool {
        self.there_since.is_none() && self.attempt.is_none() && Instant::now() >= self.due
    }

    /// Attempts a restart in a thread, because a login takes long.
    pub(super) fn attempt(&mut self, login: Arc<Login>, epochs: Vec<(u16, u32)>) {
        let (tells, told) = mpsc::channel();
        thread::spawn(move || drop(tells.send(login.connect(Some(epochs)))));
        self.attempt = Some(told);
    }

    /// The result of the attempt, once known.
    pub(super) fn outcome(&mut self) -> Option<Result<Connected>> {
        let outcome = match self.attempt.as_ref()?.try_recv() {
            Ok(outcome) => outcome,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(anyhow!("the attempt ended without a result")),
        };
        self.attempt = None;
        if outcome.is_err() {
            self.wait();
        }
        Some(outcome)
    }

    /// Whether this reason has not been reported yet.
    pub(super) fn is_news(&mut self, why: &str) -> bool {
        let is_news = self.told != why;
        why.clone_into(&mut self.told);
        is_news
    }

    /// Marks the host as back, and returns the time that it was away.
    pub(super) fn mark_back(&mut self) -> Duration {
        self.there_since = Some(Instant::now());
        self.away_since.elapsed()
    }

    /// Whether an attempt is running.
    pub(super) fn is_trying(&self) -> bool {
        self.attempt.is_some()
    }

    /// Waits until a running attempt has failed, as it does when this process is to end.
    pub(super) fn abandon(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            let _ = attempt.recv_timeout(ABANDONED_WITHIN);
        }
    }

    fn wait(&mut self) {
        self.due = Instant::now() + self.pause;
        self.pause = (2 * self.pause).min(PAUSE_MAX);
    }
}

/// Pause after the first attempt, which has none before it.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A host that ran this long restarts at once.
const GOOD_AFTER: Duration = Duration::from_secs(10);
const ABANDONED_WITHIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_half_a_minute_and_begins_anew_behind_a_good_run() {
        let mut restart_state = RestartState::of(None);
        assert!(restart_state.is_due(), "the first attempt is made at once");
        let mut pauses = Vec::new();
        for _ in 0..9 {
            pauses.push(restart_state.pause.as_millis());
            restart_state.wait();
            assert!(!restart_state.is_due());
        }
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        // It came back, and went away at once.
        let away_since = restart_state.away_since;
        restart_state.mark_back();
        let mut restart_state = RestartState::of(Some(restart_state));
        assert_eq!((restart_state.pause, restart_state.is_due()), (PAUSE_MAX, false));
        assert!(restart_state.away_since > away_since);
        restart_state.there_since = Instant::now().checked_sub(GOOD_AFTER);
        assert!(restart_state.there_since.is_none() || RestartState::of(Some(restart_state)).is_due());
    }

    #[test]
    fn a_reason_is_reported_once() {
        let mut restart_state = RestartState::of(None);
        assert!(
            restart_state.is_news("no route")
                && !restart_state.is_news("no route")
                && restart_state.is_news("refused")
        );
    }
}
