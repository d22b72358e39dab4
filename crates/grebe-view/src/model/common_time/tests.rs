use std::sync::Arc;

use grebe_frame::{AxisTime, Batch, BatchPool, Description, Header, MeasuredClock};

use super::*;
use crate::data::feed::ScopeFeed;
use crate::data::status::SourceStatus;
use crate::model::action::Action;
use crate::model::options::ViewOptions;

/// A host that samples a signal which grows by one per millisecond.
#[derive(Clone, Copy)]
struct Host {
    rate_hz: f64,
    /// Time of its first sample, by our clock.
    began_ns: u64,
    /// Offset of its clock from ours, and its drift in parts per 10^9.
    ahead_ns: u64,
    drift_ppb: i64,
    /// The clock of its times.
    clock: u64,
}

const NEAR: Host = Host { rate_hz: 10e3, began_ns: 5_000_000_000, ahead_ns: 0, drift_ppb: 0, clock: 1 };
/// Starts 300 ms later, at another rate.
const FAR: Host =
    Host { rate_hz: 25e3, began_ns: 5_300_000_000, ahead_ns: 37_000_000, drift_ppb: 20_000, clock: 1 };

impl Host {
    /// Time of a sample, by our clock.
    fn ours_ns(&self, index: f64) -> f64 {
        self.began_ns as f64 + index / self.rate_hz * 1e9 / (1.0 + self.drift_ppb as f64 * 1e-9)
    }

    fn batch(&self, first: u64, length: u32) -> Batch {
        let axis = AxisTime {
            clock: self.clock,
            ns: self.began_ns as i64,
            error_ns: 40_000,
            drift_ppb: self.drift_ppb,
            drift_error_ppb: 0,
        };
        let producer_ts_ns = self.began_ns + self.ahead_ns;
        let measured = MeasuredClock { producer_ts_ns, axis, unix_time_ns: None, unix_error_ns: None };
        let header = Header {
            sequence: first / u64::from(length),
            producer_ts_ns: producer_ts_ns + (first as f64 / self.rate_hz * 1e9) as u64,
            channel_count: 1,
            block_length_samples: length,
            sample_rate_hz: self.rate_hz,
            first_sample_index: first,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
        batch.describe(Some(&Arc::new(Description { measured: Some(measured), ..Description::default() })));
        let value = |index: u64| (self.ours_ns(index as f64) / 1e6) as i64 % 1_000;
        let samples = |_, out: &mut [i16]| {
            out.iter_mut().zip(first..).for_each(|(sample, index)| *sample = value(index) as i16);
        };
        batch.push::<i16>(&header, samples).unwrap();
        batch.freeze()
    }

    /// Its scope, with all samples up to a time of our clock.
    fn seen_until(&self, ns: u64) -> (ScopeFeed, ViewModel) {
        let (mut feed, link) = ScopeFeed::new(8 << 20);
        let samples = (ns.saturating_sub(self.began_ns) as f64 * 1e-9 * self.rate_hz) as u64;
        for first in (0..samples / 100).map(|block| block * 100) {
            feed.ingest(&self.batch(first, 100)).unwrap();
        }
        let options = ViewOptions::new(SourceStatus::default);
        (feed, ViewModel::new(link, options, crate::png::encode))
    }
}

/// Exchanges requests and pictures until nothing changes.
fn settle(common: &mut CommonTime, models: &mut [&mut ViewModel]) {
    for _ in 0..20 {
        for model in models.iter_mut() {
            model.request(1_000);
        }
        common.refresh(models);
    }
}

/// Times of the samples at both edges of a picture, by our clock, in milliseconds.
fn edges_ms(model: &ViewModel, host: Host) -> [f64; 2] {
    let picture = &model.seen.picture;
    [picture.left_index, picture.right_index()].map(|index| host.ours_ns(index) / 1e6)
}

fn assert_together(near: &ViewModel, far: &ViewModel) {
    assert!(are_together(near, far), "{:?} beside {:?}", edges_ms(near, NEAR), edges_ms(far, FAR));
}

/// Whether both show the same moment, and count time from the same one.
fn are_together(near: &ViewModel, far: &ViewModel) -> bool {
    // A column is a thousandth of the span.
    let column_ms = near.seen.picture.span() + 0.05;
    let edges = edges_ms(near, NEAR).into_iter().zip(edges_ms(far, FAR));
    let is_near = |one: f64, other: f64| (one - other).abs() <= column_ms;
    edges.into_iter().all(|(one, other)| is_near(one, other))
        && is_near(near.axis().0 * 1e3, far.axis().0 * 1e3)
}

#[test]
fn held_pictures_follow_whoever_is_set() {
    let [(near_feed, mut near), (far_feed, mut far)] = [NEAR, FAR].map(|host| host.seen_until(7_000_000_000));
    drop((near_feed, far_feed));
    near.controls.time.span = Some(0.2);
    let mut common = CommonTime::default();
    settle(&mut common, &mut [&mut near, &mut far]);
    assert_together(&near, &far);
    assert_eq!((near.seen.picture.span(), far.seen.picture.span()), (0.2, 0.2));
    // Half a screen back on the remote scope.
    let before = edges_ms(&near, NEAR);
    far.act(Action::Earlier);
    settle(&mut common, &mut [&mut near, &mut far]);
    assert_together(&near, &far);
    assert!((before[1] - edges_ms(&near, NEAR)[1] - 100.0).abs() < 1.0, "{:?}", edges_ms(&near, NEAR));
    assert!(near.controls.time.is_held() && far.controls.time.is_held());
    // The near one shows a shorter span, and the middle stays in place.
    near.act(Action::Shorter);
    settle(&mut common, &mut [&mut near, &mut far]);
    assert_together(&near, &far);
    assert_eq!(far.seen.picture.span(), 0.1);
    far.act(Action::Live);
    settle(&mut common, &mut [&mut near, &mut far]);
    assert!(!near.controls.time.is_held());
    assert_together(&near, &far);
}

#[test]
fn a_trigger_of_one_shows_what_the_other_saw_then() {
    let [(near_feed, mut near), (far_feed, mut far)] = [NEAR, FAR].map(|host| host.seen_until(7_000_000_000));
    drop((near_feed, far_feed));
    for model in [&mut near, &mut far] {
        model.controls.time.span = Some(0.1);
        model.act(Action::Trigger(TriggerMode::Normal));
        model.controls.trigger.settings.level = Some(700.0);
    }
    let mut common = CommonTime::default();
    settle(&mut common, &mut [&mut near, &mut far]);
    let at = near.seen.picture.trigger.and_then(|trigger| trigger.at).expect("it was triggered");
    assert!((NEAR.ours_ns(at) / 1e6 - 6_700.0).abs() < 1.0);
    assert_together(&near, &far);
}

#[test]
fn the_newest_that_all_have_is_shown_while_samples_come() {
    let (mut near_feed, mut near) = NEAR.seen_until(6_000_000_000);
    // It is 200 ms late.
    let (mut far_feed, mut far) = FAR.seen_until(5_800_000_000);
    near.controls.time.span = Some(0.6);
    let mut common = CommonTime::default();
    let began = Instant::now();
    let (mut block, mut far_block) = (100, 125);
    loop {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", edges_ms(&near, NEAR));
        near_feed.ingest(&NEAR.batch(block * 100, 100)).unwrap();
        block += 1;
        // The same time of the other host.
        while far_block < 125 + (block - 100) * 5 / 2 {
            far_feed.ingest(&FAR.batch(far_block * 100, 100)).unwrap();
            far_block += 1;
        }
        std::thread::sleep(Duration::from_millis(16));
        for _ in 0..3 {
            for (model, feed) in [(&mut near, &mut near_feed), (&mut far, &mut far_feed)] {
                model.request(1_000);
                feed.idle();
            }
            common.refresh(&mut [&mut near, &mut far]);
        }
        // This scope's samples after the right edge are those that the other lacks. A picture may be a few blocks old.
        let behind_ms = NEAR.ours_ns(near.seen.picture.next_index as f64) / 1e6 - edges_ms(&near, NEAR)[1];
        let is_shown = near.seen.picture.stream.is_some() && far.seen.picture.stream.is_some();
        if is_shown && block > 105 && (behind_ms - 200.0).abs() < 60.0 && are_together(&near, &far) {
            return;
        }
    }
}

#[test]
fn who_shares_no_clock_stands_apart_and_says_so() {
    let [(near_feed, mut near), (far_feed, mut far)] =
        [NEAR, Host { clock: 2, ..FAR }].map(|host| host.seen_until(7_000_000_000));
    drop((near_feed, far_feed));
    let mut common = CommonTime::default();
    settle(&mut common, &mut [&mut near, &mut far]);
    for model in [&mut near, &mut far] {
        model.renew_hud(monotonic_ns());
        let end = model.seen.picture.next_index as f64;
        assert!((model.seen.picture.right_index() - end).abs() <= model.seen.picture.span_samples / 500.0);
    }
    let apart =
        |model: &ViewModel| model.seen.hud.facts.iter().any(|fact| fact.value.contains("not that of"));
    assert_eq!((apart(&near), apart(&far)), (false, true));
}
