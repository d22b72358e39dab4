//! Reports when datagrams stop leaving, and when they leave again.

use std::time::{Duration, Instant};

use grebe_datagram::Sender;

/// Network outage under a sender, reported at its start and end, at most every five seconds.
#[derive(Debug, Default)]
pub struct Outage {
    /// Sent and unsent datagrams at the last check.
    sent: u64,
    unsent: u64,
    now: Option<Began>,
    told: Option<Instant>,
}

#[derive(Debug)]
struct Began {
    at: Instant,
    unsent_before: u64,
    is_told: bool,
}

impl Outage {
    /// Checks the sender. Call it after each send.
    #[inline]
    pub fn update(&mut self, sender: &Sender, tell: impl FnOnce(String)) {
        if self.now.is_some() || sender.counters().unsent > self.unsent {
            self.follow(sender, tell);
        }
    }

    #[cold]
    fn follow(&mut self, sender: &Sender, tell: impl FnOnce(String)) {
        let (Some(why), Some(peer)) = (sender.outage(), sender.peer()) else { return };
        let counters = sender.counters();
        let to = || format!("{peer}: {why}");
        if let Some(words) = self.words(Instant::now(), counters.datagrams, counters.unsent, to) {
            tell(words);
        }
    }

    fn words(&mut self, now: Instant, sent: u64, unsent: u64, to: impl Fn() -> String) -> Option<String> {
        let sent_before = std::mem::replace(&mut self.sent, sent);
        let unsent_before = std::mem::replace(&mut self.unsent, unsent);
        if unsent == unsent_before && sent == sent_before {
            return None;
        }
        if unsent == unsent_before {
            let began = self.now.take().filter(|began| began.is_told)?;
            let (away_s, left_out) = ((now - began.at).as_secs_f64(), unsent - began.unsent_before);
            return Some(format!(
                "sending again after {away_s:.1} s; datagrams not sent meanwhile: {left_out}"
            ));
        }
        let began = self.now.get_or_insert(Began { at: now, unsent_before, is_told: false });
        if began.is_told || self.told.is_some_and(|told| now - told < TELL_EVERY) {
            return None;
        }
        (began.is_told, self.told) = (true, Some(now));
        Some(format!("cannot send to {}; unsent datagrams are counted, and the stream continues", to()))
    }
}

const TELL_EVERY: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_reported_at_its_begin_and_its_end_only() {
        let (mut outage, began) = (Outage::default(), Instant::now());
        let mut update = |ms, sent, unsent| {
            let to = || "10.0.0.1:5000: down".to_owned();
            outage.words(began + Duration::from_millis(ms), sent, unsent, to)
        };
        assert_eq!(update(0, 1, 0), None);
        let told = update(10, 1, 3).unwrap();
        assert!(told.starts_with("cannot send to 10.0.0.1:5000: down; "), "{told}");
        assert_eq!([update(20, 1, 5), update(30, 1, 5), update(900, 1, 9)], [None, None, None]);
        assert_eq!(
            update(1_010, 2, 9).unwrap(),
            "sending again after 1.0 s; datagrams not sent meanwhile: 9"
        );
        assert_eq!(
            [update(1_020, 2, 10), update(1_030, 3, 10), update(2_000, 4, 10)],
            [const { None }; 3],
            "it comes and goes"
        );
        assert!(update(6_000, 4, 12).is_some());
    }
}
