//! The window of background mode where losses answer to the rate: it holds still at a small share after each loss, so that others can
//! take what it left, and then asks quickly how much there is. What others took shows: packets are lost earlier than when it was alone.

use super::constants::*;

#[derive(Debug)]
pub(super) struct PoliteWindow {
    pub(super) segments: f64,
    /// Where packets were lost when nobody else seemed to be there.
    pub(super) most: f64,
    lost_us: u64,
    lost_at: f64,
    hold_us: u64,
}

impl PoliteWindow {
    pub(super) fn new(segments: f64) -> Self {
        let segments = segments.max(WINDOW_SEGMENTS_MIN);
        Self { segments, most: segments, lost_us: 0, lost_at: segments, hold_us: 0 }
    }

    pub(super) fn on_loss(&mut self, now_us: u64) {
        let since_us = now_us.saturating_sub(self.lost_us);
        let is_held = since_us < self.hold_us;
        if is_held && (since_us < self.hold_us / 4 || self.segments == WINDOW_SEGMENTS_MIN) {
            // What was sent before, or no more than is known.
            return;
        }
        (self.lost_us, self.lost_at) = (now_us, self.segments);
        if is_held || self.segments < POLITE_ALONE_SHARE * self.most {
            self.hold_us = (2 * self.hold_us).min(POLITE_HOLD_US_MAX);
            self.most = self.segments.max(POLITE_DOUBT * self.most);
            self.segments = WINDOW_SEGMENTS_MIN;
        } else {
            (self.hold_us, self.most) = (POLITE_HOLD_US_MIN, self.segments);
            self.segments = (POLITE_BETA * self.segments).max(WINDOW_SEGMENTS_MIN);
        }
    }

    /// So much of the window that lost packets did not pass: the path has no more than what did.
    pub(super) fn on_excess(&mut self, passed: f64) {
        self.most = self.most.min(self.lost_at * passed);
        self.segments = (self.segments * passed).max(WINDOW_SEGMENTS_MIN);
    }

    pub(super) fn on_ack(&mut self, now_us: u64, acked: f64) {
        let Some(calm_us) = now_us.checked_sub(self.lost_us + self.hold_us) else { return };
        let is_below = self.segments < POLITE_RETURN_SHARE * self.most;
        let calm = calm_us as f64 / POLITE_CALM_US as f64;
        let gain = if is_below { POLITE_RETURN_GAIN } else { POLITE_GROWTH_GAIN * (1.0 + calm * calm) };
        self.segments += gain.min(POLITE_RETURN_GAIN) * acked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT_US: u64 = 40_000;

    /// Seconds until a loss at so many segments, and what was sent per round trip in the mean.
    fn until_loss(window: &mut PoliteWindow, now_us: &mut u64, at: f64) -> (f64, f64) {
        let (mut rounds, mut sum) = (0_u32, 0.0);
        while window.segments < at {
            *now_us += RTT_US;
            window.on_ack(*now_us, window.segments);
            (rounds, sum) = (rounds + 1, sum + window.segments);
        }
        window.on_loss(*now_us);
        (f64::from(rounds) * RTT_US as f64 / 1e6, sum / f64::from(rounds))
    }

    fn begun() -> (PoliteWindow, u64) {
        let mut window = PoliteWindow::new(300.0);
        window.on_loss(RTT_US);
        (window, RTT_US)
    }

    #[test]
    fn alone_it_uses_most_of_the_path() {
        let (mut window, mut now_us) = begun();
        for _ in 0..5 {
            let (_, mean) = until_loss(&mut window, &mut now_us, 310.0);
            assert!(mean > 0.7 * 310.0, "{mean}");
        }
    }

    #[test]
    fn where_others_took_its_place_it_asks_ever_more_rarely() {
        let (mut window, mut now_us) = begun();
        let asked = [100.0, 60.0, 30.0, 60.0].map(|at| until_loss(&mut window, &mut now_us, at));
        assert!(asked[3].0 > 5.0 * asked[0].0, "{asked:?}");
        assert!(asked[3].1 < 0.05 * 300.0, "{asked:?}");
        let (seconds, _) = until_loss(&mut window, &mut now_us, 280.0);
        assert!(seconds < 60.0, "they left: {seconds}");
    }

    #[test]
    fn losses_while_it_holds_still_are_others() {
        let (mut window, now_us) = begun();
        window.on_loss(now_us + RTT_US);
        assert!(window.segments > WINDOW_SEGMENTS_MIN, "of what was sent before");
        window.on_loss(now_us + POLITE_HOLD_US_MIN / 2);
        assert_eq!(window.segments, WINDOW_SEGMENTS_MIN);
    }
}
