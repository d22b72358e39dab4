//! Samples that are missing by the clock: losses that no counter of a stream shows.

use std::sync::Arc;

use grebe_frame::{Description, Header, StreamAnnotation};

/// Compares the received samples with the number due by this machine's clock.
///
/// ```text
///  lead = samples that came - rate * time; the highest of each quarter of a second counts: what is late catches up
///
///  ceiling ---.          follows the lead up at once, and down by 150 ppm: that is a crystal
///              \_______  a lead that has stayed below it for two seconds: these samples are missing
/// ```
#[derive(Debug, Default)]
pub(crate) struct Shortfall {
    rate_hz: f64,
    /// The first arrival, and the samples by then.
    begin: Option<(u64, u64)>,
    /// The quarter of a second that is under way: when it ends, and its highest lead.
    slot_end_ns: u64,
    slot_lead: f64,
    /// Of the slot before: when it ended, and its lead.
    before_ns: u64,
    before_lead: f64,
    ceiling: f64,
    /// How long samples have been arriving: while nothing comes, or nobody reads, nothing can catch up.
    arriving_ns: u64,
    heard_ns: u64,
    /// By [`arriving_ns`](Self::arriving_ns).
    low_since_ns: Option<u64>,
    missing: f64,
    /// Lead after the start of the stream, plus the samples missing by then.
    begin_lead: f64,
    /// The sender sends as fast as it is read, or at its own pace, so the clock proves nothing.
    is_unpaced: bool,
    marked: Marked,
}

/// Annotations of the missing samples.
#[derive(Debug, Default)]
struct Marked {
    missing: u64,
    at_ns: u64,
    annotations: Vec<StreamAnnotation>,
}

impl Shortfall {
    /// Call after each read. `samples` is the number received per channel, known gaps included, at the rate of `next`
    /// (0: unknown). Annotates newly missing samples in the description of the next sample. Returns the total missing.
    pub(crate) fn after_read(
        &mut self,
        now_ns: u64,
        samples: u64,
        next: &Header,
        description: &mut Option<Arc<Description>>,
    ) -> u64 {
        self.arrive(now_ns, samples, next.sample_rate_hz);
        self.mark(next.first_sample_index, description);
        self.missing_samples()
    }

    fn arrive(&mut self, now_ns: u64, samples: u64, rate_hz: f64) {
        if rate_hz != self.rate_hz {
            let Self { missing, marked, .. } = std::mem::take(self);
            *self = Self { rate_hz, missing, marked, ..Self::default() };
        }
        if rate_hz <= 0.0 || self.is_unpaced {
            return;
        }
        let Some((begin_ns, begin_samples)) = self.begin else {
            self.begin = Some((now_ns, samples));
            (self.slot_end_ns, self.slot_lead) = (now_ns + SLOT_NS, 0.0);
            (self.before_ns, self.heard_ns) = (now_ns, now_ns);
            return;
        };
        if now_ns >= self.slot_end_ns {
            self.close_slot();
            self.slot_end_ns = now_ns + SLOT_NS;
            self.slot_lead = f64::NEG_INFINITY;
        }
        self.arriving_ns += now_ns.saturating_sub(self.heard_ns).min(STEP_MAX_NS);
        self.heard_ns = now_ns;
        let due = now_ns.saturating_sub(begin_ns) as f64 * 1e-9 * rate_hz;
        self.slot_lead = self.slot_lead.max(samples.wrapping_sub(begin_samples) as f64 - due);
    }

    fn close_slot(&mut self) {
        let (lead, at_ns) = (self.slot_lead, self.heard_ns);
        let elapsed = at_ns.saturating_sub(self.before_ns) as f64 * 1e-9 * self.rate_hz;
        let rise = lead - self.before_lead;
        (self.before_ns, self.before_lead) = (at_ns, lead);
        if self.arriving_ns < SETTLE_NS {
            (self.ceiling, self.begin_lead) = (lead, lead + self.missing);
            return;
        }
        let least = (LEAST_S * self.rate_hz).max(LEAST_SAMPLES);
        self.ceiling -= DRIFT * elapsed;
        if lead < self.ceiling - least {
            let since_ns = self.low_since_ns.get_or_insert(self.arriving_ns);
            if rise > CATCHES_UP * elapsed {
                *since_ns = self.arriving_ns;
            } else if self.arriving_ns - *since_ns >= STAYS_NS {
                self.miss(lead);
            }
            return;
        }
        self.low_since_ns = None;
        if lead <= self.ceiling {
            return;
        }
        // Samples that arrive after all were late.
        if lead - self.ceiling > least {
            self.missing -= self.missing.min(lead - self.ceiling);
        }
        self.ceiling = lead;
        let since_ns = self.begin.map_or(0, |(begin_ns, _)| at_ns.saturating_sub(begin_ns));
        let drift = DRIFT * since_ns as f64 * 1e-9 * self.rate_hz;
        self.is_unpaced = lead + self.missing - self.begin_lead > AHEAD_S * self.rate_hz + drift;
    }

    fn miss(&mut self, lead: f64) {
        self.missing += self.ceiling - lead;
        self.ceiling = lead;
        self.low_since_ns = None;
    }

    /// The stream is over: what has been missing for a moment will not come any more. Returns how many are missing in all.
    pub(crate) fn end(&mut self) -> u64 {
        if self.begin.is_some() && !self.is_unpaced && self.slot_lead.is_finite() {
            self.close_slot();
        }
        let low_ns = self.low_since_ns.map_or(0, |since_ns| self.arriving_ns - since_ns);
        if low_ns >= SLOT_NS && !self.is_unpaced {
            self.miss(self.before_lead);
        }
        self.missing_samples()
    }

    /// Samples per channel that are missing, to the two digits that the clock says.
    fn missing_samples(&self) -> u64 {
        rounded(self.missing as u64)
    }

    /// Annotates, from this index on, the samples that were found missing since the last annotation. Annotations get
    /// rarer as the stream continues.
    fn mark(&mut self, first_sample_index: u64, description: &mut Option<Arc<Description>>) {
        let missing = self.missing as u64;
        let (Some(new), Some((begin_ns, _))) = (missing.checked_sub(self.marked.missing), self.begin) else {
            return;
        };
        let wait_ns = self.heard_ns.saturating_sub(begin_ns) / PLACES;
        if new == 0 || self.marked.at_ns > 0 && self.heard_ns < self.marked.at_ns + wait_ns {
            return;
        }
        (self.marked.missing, self.marked.at_ns) = (missing, self.heard_ns);
        if self.marked.annotations.len() == ANNOTATIONS_MAX {
            self.marked.annotations.remove(0);
        }
        self.marked.annotations.push(StreamAnnotation {
            first_sample_index,
            label: Some(format!("about {} samples missing, by the clock", grouped(rounded(new)))),
            comment: Some(COMMENT.to_owned()),
            generator: Some("grebe".to_owned()),
            ..StreamAnnotation::default()
        });
        let said = Arc::make_mut(description.get_or_insert_default());
        said.first_sample_index = first_sample_index;
        said.annotations.clone_from(&self.marked.annotations);
    }
}

/// To two digits: more, the clock does not say.
fn rounded(samples: u64) -> u64 {
    let unit = 10u64.pow(samples.max(1).ilog10().saturating_sub(1));
    (samples + unit / 2) / unit * unit
}

fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

const COMMENT: &str =
    "samples that were due by the clock and did not come: lost before this place, or the rate is another";
const SLOT_NS: u64 = 250_000_000;
/// A reader that stood still for longer had no time to catch up meanwhile.
const STEP_MAX_NS: u64 = 200_000_000;
/// A stream starts with the samples that waited for its reader, and devices start slowly.
const SETTLE_NS: u64 = 1_000_000_000;
const STAYS_NS: u64 = 2_000_000_000;
/// Frequency error of crystals.
const DRIFT: f64 = 150e-6;
/// A smaller jump is not a loss: senders and the system buffer.
const LEAST_S: f64 = 0.05;
const LEAST_SAMPLES: f64 = 3.0;
/// Samples that catch up faster than this are late.
const CATCHES_UP: f64 = 0.02;
/// Maximum lead of a stream that a clock paces.
const AHEAD_S: f64 = 1.0;
const PLACES: u64 = 16;
const ANNOTATIONS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender with a clock of its own, and its reader.
    struct Path {
        shortfall: Shortfall,
        rate_hz: f64,
        now_ms: u64,
        sent: f64,
        waiting: f64,
        came: f64,
    }

    impl Path {
        fn new(rate_hz: f64) -> Self {
            let shortfall = Shortfall::default();
            Self { shortfall, rate_hz, now_ms: 5_000, sent: 0.0, waiting: 0.0, came: 0.0 }
        }

        /// Makes samples for `seconds`, `ppm` faster than stated. `share` of them arrive; the reader takes all of
        /// them, or none.
        fn run(&mut self, seconds: f64, ppm: f64, share: f64, is_read: bool) -> &mut Self {
            for _ in 0..(seconds * 1e3 / STEP_MS as f64) as u64 {
                self.now_ms += STEP_MS;
                let made = self.rate_hz * (1.0 + ppm * 1e-6) * STEP_MS as f64 * 1e-3;
                self.sent += made;
                self.waiting += made * share;
                if is_read {
                    self.came += std::mem::take(&mut self.waiting);
                    self.shortfall.arrive(self.now_ms * 1_000_000, self.came as u64, self.rate_hz);
                }
            }
            self
        }

        fn lost(&self) -> f64 {
            self.sent - self.came - self.waiting
        }

        fn missing(&self) -> f64 {
            self.shortfall.missing
        }
    }

    const STEP_MS: u64 = 20;

    #[test]
    fn clock_drift_is_not_taken_for_loss_for_hours() {
        for ppm in [-150.0, -40.0, 0.0, 40.0, 150.0] {
            let mut path = Path::new(2.4e6);
            path.run(4.0 * 3_600.0, ppm, 1.0, true);
            assert!(path.missing() == 0.0 && !path.shortfall.is_unpaced, "{ppm}");
        }
    }

    #[test]
    fn a_loss_is_reported_in_its_size_with_any_clock_drift() {
        for (ppm, rate_hz) in [(-150.0, 2.4e6), (0.0, 48e3), (150.0, 100.0), (90.0, 20e6)] {
            for lost_s in [0.1, 1.0, 30.0] {
                let mut path = Path::new(rate_hz);
                path.run(600.0, ppm, 1.0, true).run(lost_s, ppm, 0.0, true).run(600.0, ppm, 1.0, true);
                let (missing, lost) = (path.missing(), path.lost());
                assert!((missing - lost).abs() < 0.01 * rate_hz + 2.0, "{missing} of {lost} at {ppm}");
            }
        }
    }

    #[test]
    fn a_missing_part_is_reported_when_the_stream_continues() {
        for share in [0.9, 0.99, 0.5, 0.999] {
            let mut path = Path::new(1e6);
            path.run(1_000.0, 20.0, share, true);
            path.shortfall.end();
            let told = path.missing() / path.lost();
            // The first second, and the drift of a crystal, are nobody's loss.
            assert!((if share == 0.999 { 0.7 } else { 0.9 }..=1.0).contains(&told), "{share}: {told}");
        }
    }

    #[test]
    fn bursts_a_slow_start_and_a_stalled_reader_lose_nothing() {
        let mut path = Path::new(2.4e6);
        // A backlog at the start, and a device that pauses for some seconds after its first samples.
        path.came = 3e6;
        path.run(0.1, 0.0, 1.0, true);
        path.now_ms += 4_000;
        path.run(5.0, 30.0, 1.0, true);
        for stall_s in [0.3, 3.0, 20.0] {
            path.run(stall_s, 30.0, 1.0, false).run(8.0, 30.0, 1.0, true);
        }
        (0..50).for_each(|_| {
            path.run(1.5, 30.0, 1.0, false).run(0.02, 30.0, 1.0, true);
        });
        assert_eq!(path.missing(), 0.0);
        // A backlog arrives over a link that is a little faster than the stream.
        path.run(3.0, 30.0, 1.0, false);
        for _ in 0..1_000 {
            path.run(STEP_MS as f64 * 1e-3, 30.0, 1.0, false);
            let come = path.waiting.min(path.rate_hz * STEP_MS as f64 * 1.3e-3);
            (path.came, path.waiting) = (path.came + come, path.waiting - come);
            path.shortfall.arrive(path.now_ms * 1_000_000, path.came as u64, path.rate_hz);
            assert_eq!(path.missing(), 0.0);
        }
        // The sender dropped what its reader left too long.
        path.run(3.0, 30.0, 0.0, false).run(6.0, 30.0, 1.0, true);
        assert!((path.missing() - 7.2e6).abs() < 3e4, "{}", path.missing());
    }

    #[test]
    fn late_samples_are_no_longer_missing_after_they_arrive() {
        let mut path = Path::new(1e6);
        path.run(5.0, 0.0, 1.0, true).run(10.0, 0.0, 0.5, true);
        assert!(path.missing() > 4e6);
        path.came += path.lost();
        path.run(5.0, 0.0, 1.0, true);
        assert!(path.missing() < 6e4 && !path.shortfall.is_unpaced, "{}", path.missing());
    }

    #[test]
    fn a_sender_without_a_clock_is_not_held_to_one() {
        let mut path = Path::new(48e3);
        // A file, as fast as the network is, and then more slowly.
        path.run(5.0, 3e6, 1.0, true).run(20.0, -5e5, 1.0, true);
        path.shortfall.end();
        assert_eq!(path.missing(), 0.0);
        let mut unknown = Path::new(0.0);
        unknown.run(5.0, 0.0, 1.0, true);
        assert_eq!(unknown.missing(), 0.0);
    }

    #[test]
    fn places_are_labelled_and_get_rarer() {
        let mut path = Path::new(1e6);
        let (mut description, mut labels) = (None, Vec::new());
        for second in 0..2_000 {
            path.run(1.0, 0.0, 0.9, true);
            path.shortfall.mark(second * 1_000_000, &mut description);
            let said: &Option<Arc<Description>> = &description;
            let newest = said.as_ref().and_then(|it| it.annotations.last()).cloned();
            labels.extend(newest.filter(|newest| labels.last() != Some(newest)));
            assert!(said.as_ref().is_none_or(|it| it.annotations.len() <= ANNOTATIONS_MAX));
        }
        assert!((20..120).contains(&labels.len()), "{}", labels.len());
        assert_eq!(labels[0].label.as_deref(), Some("about 260,000 samples missing, by the clock"));
    }

    #[test]
    fn about_is_two_digits() {
        assert_eq!([0, 7, 99, 104, 105, 239_876].map(rounded), [0, 7, 99, 100, 110, 240_000]);
        assert_eq!(
            [7, 999, 1_000, 240_000, 1_002_003].map(grouped),
            ["7", "999", "1,000", "240,000", "1,002,003"]
        );
    }
}
