//! A host that went away is started again, as often as it takes.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::login::{Connected, Login};

/// When a host that is away is tried next, and what came of it.
pub(super) struct Comeback {
    pub(super) away_since: Instant,
    due: Instant,
    /// Until the try after that.
    pause: Duration,
    attempt: Option<Receiver<Result<Connected>>>,
    /// Why the last attempt that was told failed.
    told: String,
    /// Since when it is there again.
    there_since: Option<Instant>,
}

impl Comeback {
    /// Of a host that has just gone; `before` is how it came back last.
    pub(super) fn of(before: Option<Self>) -> Self {
        let now = Instant::now();
        let mut comeback = Self {
            away_since: now,
            due: now,
            pause: PAUSE_MIN,
            attempt: None,
            told: String::new(),
            there_since: None,
        };
        // What ends soon after its start is not started again at once for ever.
        if let Some(before) = before {
            match before.there_since {
                Some(since) if since.elapsed() >= GOOD_AFTER => {}
                there_since => {
                    comeback.pause = before.pause;
                    if there_since.is_none() {
                        (comeback.away_since, comeback.told) = (before.away_since, before.told);
                    }
                    comeback.wait();
                }
            }
        }
        comeback
    }

    /// Whether it is to be tried now.
    pub(super) fn is_due(&self) -> bool {
        self.there_since.is_none() && self.attempt.is_none() && Instant::now() >= self.due
    }

    /// Tries it in a thread: to log in may take long.
    pub(super) fn attempt(&mut self, login: Arc<Login>, eras: Vec<(u16, u32)>) {
        let (tells, told) = mpsc::channel();
        thread::spawn(move || drop(tells.send(login.connect(Some(eras)))));
        self.attempt = Some(told);
    }

    /// What came of the attempt, once that is known.
    pub(super) fn outcome(&mut self) -> Option<Result<Connected>> {
        let outcome = match self.attempt.as_ref()?.try_recv() {
            Ok(outcome) => outcome,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(anyhow!("nothing came of it")),
        };
        self.attempt = None;
        if outcome.is_err() {
            self.wait();
        }
        Some(outcome)
    }

    /// Whether a person does not know yet that this is in the way.
    pub(super) fn is_news(&mut self, why: &str) -> bool {
        let is_news = self.told != why;
        why.clone_into(&mut self.told);
        is_news
    }

    /// It is there again; how long it was away.
    pub(super) fn is_there(&mut self) -> Duration {
        self.there_since = Some(Instant::now());
        self.away_since.elapsed()
    }

    /// Whether an attempt is under way.
    pub(super) fn is_trying(&self) -> bool {
        self.attempt.is_some()
    }

    /// Waits until an attempt that is under way has come to nothing, as it does once this process is to end.
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

/// After the first attempt, which is made at once.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// What has run for so long is started again at once.
const GOOD_AFTER: Duration = Duration::from_secs(10);
const ABANDONED_WITHIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_half_a_minute_and_begins_anew_behind_a_good_run() {
        let mut comeback = Comeback::of(None);
        assert!(comeback.is_due(), "the first attempt is made at once");
        let mut pauses = Vec::new();
        for _ in 0..9 {
            pauses.push(comeback.pause.as_millis());
            comeback.wait();
            assert!(!comeback.is_due());
        }
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        // It came back, and went at once.
        let away_since = comeback.away_since;
        comeback.is_there();
        let mut comeback = Comeback::of(Some(comeback));
        assert_eq!((comeback.pause, comeback.is_due()), (PAUSE_MAX, false));
        assert!(comeback.away_since > away_since);
        comeback.there_since = Instant::now().checked_sub(GOOD_AFTER);
        assert!(comeback.there_since.is_none() || Comeback::of(Some(comeback)).is_due());
    }

    #[test]
    fn a_reason_is_told_once() {
        let mut comeback = Comeback::of(None);
        assert!(comeback.is_news("no route") && !comeback.is_news("no route") && comeback.is_news("refused"));
    }
}
