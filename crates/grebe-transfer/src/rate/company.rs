//! A queue that stays although ours would be gone is somebody else's. Who yields to it gets nothing: beside such a neighbour
//! the flow keeps a window as CUBIC does (RFC 9438), and looks now and then whether the neighbour is still there.

/// Sees from the queue whether somebody else fills it.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The shortest queue of the last rounds, oldest first.
    shortest_us: [u64; ROUNDS],
    rounds: usize,
    /// The greatest rate since the queue was last empty.
    rate_alone: f64,
}

impl Watch {
    /// Takes a round in which we went slower while a queue stood; says whether the queue is somebody else's.
    pub fn is_crowded(&mut self, shortest_us: u64, empty_us: u64, rate: f64) -> bool {
        if shortest_us <= empty_us {
            (self.rounds, self.rate_alone) = (0, rate);
            return false;
        }
        self.shortest_us.rotate_left(1);
        self.shortest_us[ROUNDS - 1] = shortest_us;
        self.rounds += 1;
        let (early, late) = self.shortest_us.split_at(ROUNDS / 2);
        // Ours alone shrinks from round to round.
        self.rounds >= ROUNDS && late.iter().sum::<u64>() * 10 > early.iter().sum::<u64>() * 7
    }

    pub fn note_rate(&mut self, rate: f64) {
        self.rate_alone = self.rate_alone.max(rate);
    }

    pub fn rate_alone(&self) -> f64 {
        self.rate_alone
    }

    pub fn forget(&mut self) {
        self.rounds = 0;
    }
}

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
    rounds: u32,
    round_acked: u64,
    round_lost: u64,
    /// Losses in a row that came soon after the one before, and the window before the first of them.
    soon: u32,
    window_before: f64,
    stubborn_until_us: u64,
    /// What the path holds without a queue.
    path: f64,
    tested_us: u64,
    test: Option<Test>,
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
    pub queue_us: u64,
    pub acked: u64,
    pub lost: u64,
    pub round_ended: bool,
    pub in_flight_bytes: u64,
    /// What the path holds of ours without a queue.
    pub path_bytes: f64,
}

impl Share {
    pub fn new(now_us: u64, window_bytes: f64, path_bytes: f64) -> Self {
        let window = (window_bytes / PACKET_BYTES).max(WINDOW_MIN);
        Self {
            window,
            window_max: window,
            window_reno: window,
            epoch_us: None,
            window_least: window,
            deaf_until_us: now_us,
            rounds: 0,
            round_acked: 0,
            round_lost: 0,
            soon: 0,
            window_before: window,
            stubborn_until_us: 0,
            path: (path_bytes / PACKET_BYTES).max(WINDOW_MIN),
            tested_us: now_us,
            test: None,
        }
    }

    pub fn window_bytes(&self) -> f64 {
        self.test.map_or(self.window, |test| test.window) * PACKET_BYTES
    }

    /// The neighbour goes on although packets are lost.
    fn is_stubborn(&self) -> bool {
        self.soon >= SOON_MAX
    }

    /// Takes a report; `usual` says how many of so many packets may be lost in a round. `false`: nobody else is there any more.
    pub fn on_report(&mut self, heard: &Heard, usual: impl Fn(u64) -> f64) -> bool {
        self.rounds += u32::from(heard.round_ended);
        if let Some(test) = &mut self.test {
            test.rounds += u32::from(heard.round_ended);
            if heard.queue_us <= (heard.rtt_us / 32).clamp(TEST_US_MIN, TEST_US_MAX) {
                return false;
            }
            if test.rounds > TEST_ROUNDS {
                self.test = None;
                (self.rounds, self.tested_us) = (0, heard.now_us);
                (self.round_acked, self.round_lost) = (0, 0);
                self.deaf_until_us = heard.now_us + heard.rtt_us;
            }
            return true;
        }
        if heard.now_us < self.deaf_until_us {
            return true;
        }
        self.round_acked += heard.acked;
        self.round_lost += heard.lost;
        if self.is_stubborn() {
            if heard.round_ended && self.is_used(heard) {
                self.hold(heard, &usual);
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

    /// A window that a slow source or a set limit does not fill tells nothing by what is not lost of it.
    fn is_used(&self, heard: &Heard) -> bool {
        heard.in_flight_bytes as f64 > self.window_bytes() / 2.0
    }

    /// As CUBIC does: the neighbour loses packets too, and yields too.
    fn yield_to_loss(&mut self, heard: &Heard) {
        if self.rounds > SOON_ROUNDS || self.soon == 0 {
            (self.soon, self.window_before) = (0, self.window);
        }
        self.soon += 1;
        self.rounds = 0;
        (self.round_acked, self.round_lost) = (0, 0);
        self.deaf_until_us = heard.now_us + heard.rtt_us + heard.rtt_us / 2;
        if self.is_stubborn() {
            // It did not: what was left to it was for nothing.
            self.window = self.window_before;
            self.stubborn_until_us = heard.now_us + STUBBORN_US;
            return;
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

    /// A neighbour that no loss slows down takes what is left to it. The window grows by a share of what the path holds in each
    /// round trip, and shrinks by what is lost: all that do so have the same window, and lose the same on every path.
    fn hold(&mut self, heard: &Heard, usual: impl Fn(u64) -> f64) {
        let packets = self.round_acked + self.round_lost;
        if packets == 0 {
            return;
        }
        let excess = (self.round_lost as f64 - usual(packets)).clamp(0.0, self.window / 4.0);
        self.window = (self.window + STUBBORN_GROWTH * self.path - excess).max(WINDOW_MIN);
        if heard.now_us > self.stubborn_until_us {
            // Perhaps it is gone, or another came that does yield.
            self.soon = 0;
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

/// A queue must stay for so many rounds before it is somebody else's.
const ROUNDS: usize = 8;

const PACKET_BYTES: f64 = 1_500.0;
const WINDOW_MIN: f64 = 4.0;

/// CUBIC has 0.7 and 0.4. Packets that are spread over the round trip meet a full queue less often than a kernel's bursts: with
/// these, both get the same.
const BETA: f64 = 0.67;
const CUBIC: f64 = 0.3;

/// Losses that come so soon after each other, so often: the neighbour does not yield.
const SOON_ROUNDS: u32 = 20;
const SOON_MAX: u32 = 4;

/// Of what the path holds, in a round trip. More takes more from BBR, and loses more.
const STUBBORN_GROWTH: f64 = 0.035;
const STUBBORN_US: u64 = 30_000_000;

/// Each look takes ours out of the queue, and costs as much of the share.
const TEST_EVERY_US: u64 = 10_000_000;
const TEST_ROUNDS: u32 = 3;
const TEST_US_MIN: u64 = 1_500;
const TEST_US_MAX: u64 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(now_ms: u64, queue_us: u64, lost: u64) -> Heard {
        Heard {
            now_us: now_ms * 1_000,
            rtt_us: 100_000,
            queue_us,
            acked: 100,
            lost,
            round_ended: now_ms.is_multiple_of(100),
            in_flight_bytes: 600_000,
            path_bytes: 300_000.0,
        }
    }

    fn share() -> Share {
        Share::new(0, 600_000.0, 500_000.0)
    }

    #[test]
    fn a_queue_that_stays_is_somebody_elses() {
        let stays = |round: u64| 40_000 + round % 2 * 5_000;
        let shrinks = |round: u64| 80_000 - round * 8_000;
        for (queue_us, crowded) in [(&stays as &dyn Fn(u64) -> u64, true), (&shrinks, false)] {
            let mut watch = Watch::default();
            let seen = (0..8).any(|round| watch.is_crowded(queue_us(round), 6_000, 1e6));
            assert_eq!(seen, crowded);
        }
    }

    #[test]
    fn a_queue_that_was_empty_once_is_ours() {
        let mut watch = Watch::default();
        assert!(!(0..40).any(|round| watch.is_crowded(
            if round % 7 == 0 { 100 } else { 40_000 },
            6_000,
            1e6
        )));
        watch.note_rate(2e6);
        assert_eq!(watch.rate_alone(), 2e6);
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
        assert!(share.is_stubborn());
        assert!(share.window_bytes() > 600_000.0, "{}", share.window_bytes());
    }
}
