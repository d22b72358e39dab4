use crate::proto::judge::Trial;
use crate::proto::report::LimitedBy;
use crate::proto::search::{Search, Step};

#[test]
fn a_sender_that_is_too_slow_is_the_limit() {
    let mut search = Search::new(1e9, 1e5, 1e10, 12);
    while search.step() != Step::Done {
        let step = search.step();
        search.record(step, &Trial { sent_bps: 4e8, delivered_bps: 4e8, failed: None }, 0.0);
    }
    let found = search.found().unwrap();
    assert_eq!((found.limit, found.rate.value), (LimitedBy::Sender, 4e8));
}

#[test]
fn a_machine_that_was_busy_for_a_moment_does_not_lower_the_knee() {
    let mut search = Search::new(90e6, 1e5, 1e9, 14);
    let mut is_busy = true;
    while search.step() != Step::Done {
        let (Step::Try(rate) | Step::Confirm(rate)) = search.step() else { panic!() };
        // Delayed datagrams came in a burst, which stood in the queue.
        let is_burst = rate < 90e6 && std::mem::take(&mut is_busy);
        let failed = (rate > 90e6 || is_burst).then_some(LimitedBy::Link);
        let delivered_bps = if is_burst { rate * 0.985 } else { rate.min(90e6) };
        search.record(search.step(), &Trial { sent_bps: rate, delivered_bps, failed }, 0.0);
    }
    let found = search.found().unwrap();
    assert!(!is_busy && found.confirmed && found.rate.contains(90e6), "{found:?}");
}
