//! Tests the interval on thousands of simulated links between drifting clocks, in virtual time.

use grebe_testing::Rng;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::estimator::{Echo, Estimator, Relation};

/// A path and two clocks.
#[derive(Debug, Clone)]
struct Link {
    seed: u64,
    offset_ms: f64,
    drift_ppm: f64,
    /// Maximum change of the drift per second.
    wander_ppb_s: f64,
    /// Maximum step of the clock's rate, at intervals of about half a minute.
    step_ppm: f64,
    there_us: f64,
    back_us: f64,
    /// Mean extra delay per direction, and the frequency of a queue of a hundred times that in one direction.
    jitter_us: (f64, f64),
    busy_share: f64,
    loss: f64,
}

fn links(step_ppm_max: f64) -> impl Strategy<Value = Link> {
    // From two hosts on one switch to two continents.
    let decades = |from: f64, to: f64| (from..to).prop_map(|exponent: f64| 10_f64.powf(exponent));
    let delays = (decades(1.0, 4.7), decades(-1.0, 1.0), decades(-1.0, 2.7), decades(-1.0, 1.0));
    let clocks = (-5_000.0..5_000.0_f64, -200.0..200.0_f64, 0.0..2.0_f64, 0.0..step_ppm_max);
    (any::<u64>(), clocks, delays, 0.0..0.9_f64, 0.0..0.7_f64).prop_map(
        |(
            seed,
            (offset_ms, drift_ppm, wander_ppb_s, step_ppm),
            (there_us, apart, jitter_us, jitter_apart),
            busy_share,
            loss,
        )| Link {
            seed,
            offset_ms,
            drift_ppm,
            wander_ppb_s,
            step_ppm,
            there_us,
            back_us: there_us * apart,
            jitter_us: (jitter_us, jitter_us * jitter_apart),
            busy_share,
            loss,
        },
    )
}

/// Results for a link's intervals.
#[derive(Debug)]
struct Held {
    /// Number of checks, and of intervals that contained the truth: the newest, and the last reported one.
    looked: u32,
    newest: u32,
    told: u32,
    /// Number of reports.
    news: u32,
    /// Maximum error and maximum stated uncertainty of reports, in the second half of the time.
    off_us: f64,
    error_us: f64,
}

fn held(link: &Link) -> Held {
    let random = std::cell::RefCell::new(Rng::with_seed(link.seed));
    let unit = || random.borrow_mut().f64();
    // Real time since the start in ns, which our clock shows. Their clock is integrated second by second.
    let (mut ahead_ns, mut drift) = (link.offset_ms * 1e6 + 1e10, link.drift_ppm * 1e-6);
    let mut estimator = Estimator::default();
    let mut held = Held { looked: 0, newest: 0, told: 0, news: 0, off_us: 0.0, error_us: 0.0 };
    let mut told: Option<Relation> = None;
    for second in 1..=SECONDS {
        let began = second as f64 * 1e9;
        let ahead = |at: f64| ahead_ns + (at - began) * drift;
        let busy = unit() < link.busy_share;
        let delay = |mean_us: f64, queue: bool| {
            let jitter = -(1.0 - unit()).ln() * mean_us;
            (jitter + if queue { 100.0 * mean_us * unit() } else { 0.0 }) * 1e3
        };
        let there = began + link.there_us * 1e3 + delay(link.jitter_us.0, busy);
        let answered = there + 2_000.0;
        let back = answered + link.back_us * 1e3 + delay(link.jitter_us.1, false);
        if unit() >= link.loss {
            estimator.add(Echo {
                sent_ns: began as u64,
                received_ns: (there + ahead(there)) as u64,
                replied_ns: (answered + ahead(answered)) as u64,
                returned_ns: back.ceil() as u64,
            });
        }
        let now = back.max(began + 5e8 * unit());
        if let Some(newest) = estimator.at(now as u64)
            && told.is_none_or(|told| told.is_outdated_by(&newest))
        {
            told = Some(newest);
            held.news += 1;
        }
        if let Some((told, newest)) = told.zip(estimator.at(now as u64)) {
            let has_truth =
                |(offset_ns, error_ns): (i64, u64)| (offset_ns as f64 - ahead(now)).abs() <= error_ns as f64;
            held.looked += 1;
            held.newest += u32::from(has_truth((newest.offset_ns, newest.error_ns)));
            held.told += u32::from(has_truth(told.offset_at(now as u64)));
            if second > SECONDS / 2 {
                let (offset_ns, error_ns) = told.offset_at(now as u64);
                held.off_us = held.off_us.max((offset_ns as f64 - ahead(now)).abs() / 1e3);
                held.error_us = held.error_us.max(error_ns as f64 / 1e3);
            }
        }
        ahead_ns += drift * 1e9;
        drift += (unit() * 2.0 - 1.0) * link.wander_ppb_s * 1e-9;
        if unit() < 1.0 / 30.0 {
            drift += (unit() * 2.0 - 1.0) * link.step_ppm * 1e-6;
        }
    }
    held
}

/// Simulated duration of a link.
const SECONDS: u64 = 100;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]
    /// As long as the rate of a clock changes by less than one part in a million within a minute, in a few steps.
    #[test]
    fn the_interval_has_the_truth_in_it(link in links(0.25)) {
        let held = held(&link);
        prop_assert!(held.newest.min(held.told) * 100 >= held.looked * 95, "{held:?}");
    }
}

/// Some steps are larger than what the interval covers.
#[test]
fn a_thousand_links_together_hold_nearly_always() {
    let mut runner = TestRunner::deterministic();
    let (mut looked, mut newest, mut told, mut worst) = (0, 0, 0, 1.0_f64);
    for _ in 0..1_000 {
        let held = held(&links(2.0).new_tree(&mut runner).unwrap().current());
        (looked, newest, told) = (looked + held.looked, newest + held.newest, told + held.told);
        worst = worst.min(f64::from(held.newest.min(held.told)) / f64::from(held.looked.max(1)));
    }
    println!(
        "of {looked} intervals, {newest} contain the truth, and so do {told} of the published ones; {worst:.3} of the worst link's"
    );
    assert!(u64::from(newest.min(told)) * 1_000 >= u64::from(looked) * 998, "{newest}, {told} of {looked}");
}

#[test]
fn on_a_lan_clocks_agree_within_50_us_and_are_reported_now_and_then() {
    let link = Link {
        seed: 1,
        offset_ms: 37.0,
        drift_ppm: 20.0,
        wander_ppb_s: 0.5,
        step_ppm: 0.5,
        there_us: 20.0,
        back_us: 20.0,
        jitter_us: (15.0, 15.0),
        busy_share: 0.3,
        loss: 0.05,
    };
    for seed in 0..30 {
        let held = held(&Link { seed, ..link.clone() });
        assert!(held.newest.min(held.told) * 100 >= held.looked * 95, "{held:?}");
        assert!(held.off_us < 50.0 && held.error_us < 100.0 && held.news < 40, "{held:?}");
    }
}
