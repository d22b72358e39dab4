//! A queue that stays although ours would be gone is somebody else's. Who yields to it gets nothing: beside such a neighbour
//! the flow keeps a window as CUBIC does (RFC 9438), and looks now and then whether the neighbour is still there. Beside one that
//! no loss slows down it keeps half.

mod hold;
mod kind;
mod watch;

use self::hold::Hold;
use self::kind::Kind;
pub(super) use self::watch::Watch;

/// The window beside a neighbour that fills the queue.
#[derive(Debug)]
pub(super) struct Share {
    /// Packets of 1500 bytes.
    window: f64,
    window_max: f64,
    window_reno: f64,
    epoch_us: Option<u64>,
    /// The window after the last loss.
    window_least: f64,
    deaf_until_us: u64,
    round_acked: u64,
    round_lost: u64,
    kind: Kind,
    /// The window before the first of the losses that may tell a neighbour that does not yield.
    window_before: f64,
    hold: Option<Hold>,
    tested_us: u64,
    test: Option<Test>,
    /// Since when there is no queue.
    empty_since_us: Option<u64>,
}

/// Ours is taken out of the queue: what is left of it is the neighbour's.
#[derive(Debug, Clone, Copy)]
struct Test {
    window: f64,
    rounds: u32,
}

/// What a report told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    pub now_us: u64,
    pub rtt_us: u64,
    pub min_rtt_us: u64,
    pub queue_us: u64,
    pub acked: u64,
    pub lost: u64,
    pub round_ended: bool,
    pub in_flight_bytes: u64,
    /// What the path holds of ours without a queue.
    pub path_bytes: f64,
    /// The path's rate in bytes a second, as far as it showed.
    pub capacity: f64,
    pub capacity_known: bool,
    /// The share of packets that is lost whatever the rate.
    pub base_loss: f64,
}

impl Heard {
    fn is_queue_empty(&self) -> bool {
        self.queue_us <= (self.rtt_us / 32).clamp(EMPTY_US_MIN, EMPTY_US_MAX)
    }
}

impl Share {
    /// `doubted`: losses and refills misled before.
    pub fn new(now_us: u64, window_bytes: f64, queue_us: u64, doubted: bool) -> Self {
        let window = (window_bytes / PACKET_BYTES).max(WINDOW_MIN);
        Self {
            window,
            window_max: window,
            window_reno: window,
            epoch_us: None,
            window_least: window,
            deaf_until_us: now_us,
            round_acked: 0,
            round_lost: 0,
            kind: Kind::new(queue_us, doubted),
            window_before: window,
            hold: None,
            tested_us: now_us,
            test: None,
            empty_since_us: None,
        }
    }

    pub fn window_bytes(&self) -> f64 {
        self.test.map_or(self.window, |test| test.window) * PACKET_BYTES
    }

    /// Whether losses and refills misled.
    pub fn is_doubted(&self) -> bool {
        self.kind.is_doubted()
    }

    /// Takes a report; `usual` says how many of so many packets may be lost in a round. `false`: nobody else is there any more.
    pub fn on_report(&mut self, heard: &Heard, usual: impl Fn(u64) -> f64) -> bool {
        if self.is_empty_for_long(heard) {
            return false;
        }
        if self.test.is_some() {
            return self.go_on_testing(heard);
        }
        let insists = self.kind.on_report(heard, self.window_bytes());
        match &mut self.hold {
            Some(hold) if insists => hold.on_dip(&self.kind, self.window),
            None if insists => self.begin_hold(heard),
            _ => {}
        }
        if heard.now_us < self.deaf_until_us {
            return true;
        }
        self.round_acked += heard.acked;
        self.round_lost += heard.lost;
        if self.hold.is_some() {
            if !self.go_on_holding(heard) {
                return false;
            }
        } else if self.round_lost as f64 > usual(self.round_acked + self.round_lost) {
            self.yield_to_loss(heard);
        } else if self.is_used(heard) {
            self.grow(heard);
        }
        if heard.round_ended {
            (self.round_acked, self.round_lost) = (0, 0);
        }
        true
    }

    /// Whether the queue is gone, and for longer than any neighbour leaves it.
    fn is_empty_for_long(&mut self, heard: &Heard) -> bool {
        if !heard.is_queue_empty() {
            self.empty_since_us = None;
            return false;
        }
        let since_us = *self.empty_since_us.get_or_insert(heard.now_us);
        heard.now_us > since_us + AWAY_US + AWAY_ROUNDS * heard.rtt_us
    }

    fn go_on_testing(&mut self, heard: &Heard) -> bool {
        let Some(test) = &mut self.test else { return true };
        test.rounds += u32::from(heard.round_ended);
        if heard.is_queue_empty() {
            return false;
        }
        if test.rounds > TEST_ROUNDS {
            self.test = None;
            self.tested_us = heard.now_us;
            self.kind.on_test();
            (self.round_acked, self.round_lost) = (0, 0);
            self.deaf_until_us = heard.now_us + heard.rtt_us;
        }
        true
    }

    /// The neighbour goes on although packets are lost: what was left to it was for nothing.
    fn begin_hold(&mut self, heard: &Heard) {
        let hold = Hold::new(heard.now_us);
        self.window = self.window_before.min(hold.wanted(heard, &self.kind, self.window)).max(self.window);
        self.hold = Some(hold);
    }

    fn go_on_holding(&mut self, heard: &Heard) -> bool {
        let is_used = self.is_used(heard);
        let Some(hold) = &mut self.hold else { return true };
        if heard.round_ended && is_used {
            self.window = hold.on_round(heard, &self.kind, self.window, [self.round_acked, self.round_lost]);
        }
        if hold.is_old(heard.now_us, &self.kind) {
            // Perhaps it was taken for what it is not, or another came that does yield.
            self.hold = None;
            self.kind.doubt();
            (self.window_max, self.window_before) = (self.window, self.window);
            (self.window_least, self.epoch_us) = (self.window, None);
        }
        true
    }

    /// A window that a slow source or a set limit does not fill tells nothing by what is not lost of it.
    fn is_used(&self, heard: &Heard) -> bool {
        heard.in_flight_bytes as f64 > self.window_bytes() / 2.0
    }

    /// As CUBIC does: the neighbour loses packets too, and yields too.
    fn yield_to_loss(&mut self, heard: &Heard) {
        if self.kind.is_first() {
            self.window_before = self.window;
        }
        (self.round_acked, self.round_lost) = (0, 0);
        self.deaf_until_us = heard.now_us + heard.rtt_us + heard.rtt_us / 2;
        if self.kind.on_yield(heard, self.window_bytes()) {
            return self.begin_hold(heard);
        }
        // Fast convergence: one that gets less than before leaves more.
        let yields = if self.window < self.window_max { (1.0 + BETA) / 2.0 } else { 1.0 };
        self.window_max = self.window * yields;
        self.window = (self.window * BETA).max(WINDOW_MIN);
        (self.window_least, self.epoch_us) = (self.window, None);
        if heard.now_us > self.tested_us + TEST_EVERY_US {
            self.begin_test(heard);
        }
    }

    fn grow(&mut self, heard: &Heard) {
        if self.epoch_us.is_none() {
            self.window_max = self.window_max.max(self.window);
            self.window_reno = self.window;
            self.window_least = self.window;
        }
        let epoch_us = *self.epoch_us.get_or_insert(heard.now_us);
        let acked = heard.acked as f64;
        if heard.now_us > self.tested_us + 2 * TEST_EVERY_US {
            self.begin_test(heard);
        }
        let k = ((self.window_max - self.window_least) / CUBIC).cbrt();
        let t = (heard.now_us - epoch_us + heard.rtt_us) as f64 / 1e6;
        let target = self.window_max + CUBIC * (t - k).powi(3);
        self.window_reno += acked * 3.0 * (1.0 - BETA) / (1.0 + BETA) / self.window;
        let target = target.max(self.window_reno).min(1.5 * self.window);
        self.window += acked * ((target - self.window) / self.window).max(0.01 / self.window);
    }

    fn begin_test(&mut self, heard: &Heard) {
        let window = (0.9 * heard.path_bytes / PACKET_BYTES).clamp(WINDOW_MIN, self.window.max(WINDOW_MIN));
        self.test = Some(Test { window, rounds: 0 });
    }
}

const PACKET_BYTES: f64 = 1_500.0;
const WINDOW_MIN: f64 = 4.0;

/// CUBIC has 0.7 and 0.4. Packets that are spread over the round trip meet a full queue less often than a kernel's bursts: with
/// these, both get the same.
const BETA: f64 = 0.67;
const CUBIC: f64 = 0.3;

/// Each look takes ours out of the queue, and costs as much of the share.
const TEST_EVERY_US: u64 = 10_000_000;
const TEST_ROUNDS: u32 = 3;

/// BBR is away for 200 ms, and back some round trips later.
const AWAY_US: u64 = 250_000;
const AWAY_ROUNDS: u64 = 4;

/// A queue up to this is none: a thirty-second of the round trip, within these.
const EMPTY_US_MIN: u64 = 1_500;
const EMPTY_US_MAX: u64 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    pub fn heard(now_ms: u64, queue_us: u64, lost: u64) -> Heard {
        Heard {
            now_us: now_ms * 1_000,
            rtt_us: 100_000,
            min_rtt_us: 50_000,
            queue_us,
            acked: 100,
            lost,
            round_ended: now_ms.is_multiple_of(100),
            in_flight_bytes: 600_000,
            path_bytes: 300_000.0,
            capacity: 12e6,
            capacity_known: true,
            base_loss: 0.0,
        }
    }

    fn share() -> Share {
        Share::new(0, 600_000.0, 40_000, false)
    }

    #[test]
    fn a_loss_is_answered_once_a_round_trip() {
        let mut share = share();
        assert!(share.on_report(&heard(10, 40_000, 1), |_| 0.0));
        let yielded = share.window_bytes();
        assert!((yielded / (600_000.0 * BETA) - 1.0).abs() < 0.01, "{yielded}");
        assert!(share.on_report(&heard(60, 40_000, 5), |_| 0.0));
        assert_eq!(share.window_bytes(), yielded);
        assert!(share.on_report(&heard(260, 40_000, 0), |_| 0.0));
        assert!(share.window_bytes() > yielded);
    }

    #[test]
    fn the_paths_own_loss_is_no_reason_to_yield() {
        let mut share = share();
        for now_ms in (100..1_000).step_by(50) {
            assert!(share.on_report(&heard(now_ms, 40_000, 2), |packets| packets as f64 * 0.03));
        }
        assert!(share.window_bytes() >= 600_000.0);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut share = share();
        for now_ms in (100..9_000).step_by(50) {
            assert!(
                share.on_report(&Heard { in_flight_bytes: 100_000, ..heard(now_ms, 40_000, 0) }, |_| 0.0)
            );
        }
        assert_eq!(share.window_bytes(), 600_000.0);
    }

    #[test]
    fn it_ends_when_no_queue_stands_for_longer_than_a_neighbour_pauses() {
        let ends_after_ms = |empty_ms: u64| {
            let mut share = share();
            (50..5_000).step_by(50).find(|now_ms| {
                let queue_us = if *now_ms >= 300 && *now_ms < 300 + empty_ms { 200 } else { 40_000 };
                !share.on_report(&heard(*now_ms, queue_us, 0), |_| 0.0)
            })
        };
        assert_eq!(ends_after_ms(500), None, "BBR pauses");
        assert_eq!(ends_after_ms(3_000), Some(300 + 650 + 50));
    }

    #[test]
    fn it_ends_when_the_queue_goes_with_ours() {
        let mut share = share();
        assert!(share.on_report(&heard(10, 40_000, 0), |_| 0.0));
        assert!(share.on_report(&heard(20_100, 40_000, 0), |_| 0.0));
        assert!(share.window_bytes() < 300_000.0, "a test: {}", share.window_bytes());
        assert!(share.on_report(&heard(20_150, 20_000, 0), |_| 0.0));
        assert!(!share.on_report(&heard(20_250, 500, 0), |_| 0.0));
    }

    #[test]
    fn a_neighbour_that_does_not_yield_is_not_yielded_to() {
        let mut share = share();
        for now_ms in (100..10_000).step_by(50) {
            let lost = u64::from(now_ms % 500 == 0);
            assert!(share.on_report(&heard(now_ms, 40_000, lost), |_| 0.0));
        }
        assert!(share.hold.is_some());
        let half = 12e6 * 0.045;
        let window = share.window_bytes();
        assert!((0.9 * half..=half).contains(&window), "{window}");
    }

    #[test]
    fn one_that_never_pauses_is_yielded_to_again() {
        let mut share = share();
        for now_ms in (100..30_000).step_by(50) {
            let lost = u64::from(now_ms % 500 == 0);
            assert!(share.on_report(&heard(now_ms, 40_000, lost), |_| 0.0));
        }
        assert!(share.hold.is_none());
        assert!(share.window_bytes() < 0.5 * 600_000.0, "{}", share.window_bytes());
    }
}
