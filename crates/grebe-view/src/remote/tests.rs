//! Both ends of a remote scope, joined without a socket.

mod bounds;
mod controlling;
mod searching;

use std::sync::{Arc, Mutex};

use grebe_flow::monotonic_ns;
use proptest::prelude::*;

use super::*;
use grebe_scope::Scale;

use crate::data::extract::Extract;
use crate::data::feed::ScopeFeed;
use crate::data::finding::Finder;
use crate::data::lane::{LaneId, LaneMask};
use crate::data::link::ScopeLink;
use crate::data::picture::Picture;
use crate::data::status::SourceStatus;
use crate::data::trigger::{TriggerMode, TriggerSettings};
use crate::data::viewport::Scales;
use crate::data::viewport::{CountRange, CursorTimes, SpectrumSettings, Viewport, Window};
use crate::remote::columns::tests::assert_same_bits;
use crate::testing::{batch, sine_batch};

/// A remote scope and its session, with the messages between them.
struct Pair {
    session: ViewerSession,
    scope: RemoteScope,
    link: ScopeLink,
    /// The source's notice.
    notice: Option<String>,
    bytes: usize,
    binary_messages: usize,
}

fn pair(there: &ScopeLink) -> Pair {
    pair_with(there, SharedControls::default(), Right::Look)
}

fn pair_with(there: &ScopeLink, controls: SharedControls, right: Right) -> Pair {
    pair_of(there, controls, right, None)
}

fn pair_of(there: &ScopeLink, controls: SharedControls, right: Right, finder: Option<Finder>) -> Pair {
    let (mut scope, link) = RemoteScope::new("grebe test", "there", || {});
    scope.connected("secret", 1, 60.0);
    let hello = scope.next(monotonic_ns()).unwrap();
    let ScopeMessage::Text(hello) = hello else { panic!("{hello:?}") };
    let greeting = greeting(&hello).unwrap();
    assert_eq!((greeting.token.as_str(), greeting.program.as_str()), ("secret", "grebe test"));
    let channels = vec![ChannelMeaning { name: "ECG".into(), unit: "V".into(), scale: 2.0, offset: 1.0 }];
    let (name, program) = ("udp://:5000".into(), "grebe".into());
    let offer = ScopeOffer { name, program, channels, controls, sources: vec![], finder, listener: None };
    let session = ViewerSession::new(there.another(), &greeting, &offer, right, monotonic_ns());
    Pair { session, scope, link, notice: None, bytes: 0, binary_messages: 0 }
}

impl Pair {
    /// Exchanges all waiting messages in both directions.
    fn carry(&mut self) {
        loop {
            let now_ns = monotonic_ns();
            let up = self.scope.next(now_ns);
            if let Some(ScopeMessage::Text(text)) = &up {
                self.session.take(text, now_ns).unwrap();
            }
            let (name, notice) = ("udp://:5000".into(), self.notice.clone());
            let status = || SourceStatus { name, notice, is_same_boot: true, ..SourceStatus::default() };
            let down = self.session.next(now_ns, status);
            if let Some(message) = &down {
                self.bytes += message.len();
                self.binary_messages += usize::from(matches!(message, ScopeMessage::Binary(_)));
                self.scope.take(message, now_ns).unwrap();
            }
            if up.is_none() && down.is_none() {
                return;
            }
        }
    }

    /// The next picture that meets the condition, while the source is idle.
    fn until(&mut self, feed: &mut ScopeFeed, is_it: impl Fn(&Picture) -> bool) -> Picture {
        for _ in 0..2000 {
            self.carry();
            feed.idle();
            self.carry();
            if let Some(picture) = self.link.take().filter(|picture| is_it(picture)) {
                return picture;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        panic!("no such picture came");
    }
}

/// The picture of a front end beside the source.
fn local(there: &ScopeLink, feed: &mut ScopeFeed, viewport: &Viewport) -> Picture {
    let link = there.another();
    link.request(viewport.clone());
    for _ in 0..100 {
        feed.idle();
        if let Some(picture) = link.take() {
            return picture;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("no picture came");
}

fn assert_same_columns(far: &Picture, near: &Picture) {
    assert_eq!((far.grid, far.first_column), (near.grid, near.first_column));
    assert_eq!((far.left_index, far.span_samples), (near.left_index, near.span_samples));
    assert_eq!(far.lanes.len(), near.lanes.len());
    for (far, near) in far.lanes.iter().zip(&near.lanes) {
        assert_eq!(
            (far.lane, far.mean, far.is_clipped, far.at_cursors),
            (near.lane, near.mean, near.is_clipped, near.at_cursors)
        );
        assert_same_bits(&far.columns, &near.columns);
        assert_eq!(far.line, near.line);
    }
}

#[test]
fn a_far_picture_is_that_of_the_scope_beside_the_source_bit_for_bit() {
    let (mut feed, there) = ScopeFeed::new(8 << 20);
    let mut pair = pair(&there);
    let mut rng = grebe_testing::Rng::with_seed(3);
    for block in (0..400).filter(|block| block % 97 != 5) {
        let noise: Vec<i16> = (0..500).map(|_| (rng.f64() * 4000.0) as i16 - 2000).collect();
        feed.ingest(&batch(block * 500, 3, 500, 1e5, |channel, index| {
            noise[(index % 500) as usize].wrapping_mul(channel as i16 + 1)
        }))
        .unwrap();
    }
    let base = Viewport { span: Some(1.0), ..Viewport::latest(777) };
    for viewport in [
        base.clone(),
        Viewport { window: Window::Ending { at: 120_000.0 }, ..base.clone() },
        Viewport { window: Window::Ending { at: 120_400.0 }, ..base.clone() },
        Viewport { lanes: LaneMask::ALL.only([2]), ..base.clone() },
        // Zoomed in: a sin(x)/x line between samples, with the samples beyond the edges.
        Viewport {
            window: Window::Ending { at: 190_000.0 },
            span: Some(0.001),
            interpolation: grebe_scope::Interpolation::Sinc,
            cursors: Some(CursorTimes { times: [-0.0005, -0.0001], from: None }),
            ..base.clone()
        },
        Viewport { span: Some(5.0), ..base.clone() },
        Viewport { trigger: Some(TriggerSettings::new(TriggerMode::Normal)), ..base },
    ] {
        pair.link.request(viewport.clone());
        let far = pair.until(&mut feed, |picture| picture.answers.as_ref() == Some(&viewport));
        let near = local(&there, &mut feed, &viewport);
        assert_same_columns(&far, &near);
        assert_eq!(far.stream, near.stream);
        assert_eq!(
            far.trigger.map(|it| (it.at, it.state, it.settings)),
            near.trigger.map(|it| (it.at, it.state, it.settings))
        );
        assert_eq!((far.gaps.len(), far.counts), (near.gaps.len(), near.counts));
    }
}

#[test]
fn while_it_scrolls_little_is_said_and_every_bit_is_right() {
    let (mut feed, there) = ScopeFeed::new(8 << 20);
    let mut pair = pair(&there);
    let viewport = Viewport { span: Some(2.0), ..Viewport::latest(1000) };
    pair.link.request(viewport.clone());
    let mut rng = grebe_testing::Rng::with_seed(9);
    let (mut before, mut first) = (0, 0);
    for block in 0..300u64 {
        let noise: Vec<i16> = (0..1000).map(|_| (rng.f64() * 60_000.0 - 30_000.0) as i16).collect();
        feed.ingest(&batch(block * 1000, 1, 1000, 1e5, |_, index| noise[(index % 1000) as usize])).unwrap();
        if block < 200 || block % 10 != 0 {
            continue;
        }
        let next = (block + 1) * 1000;
        let far = pair.until(&mut feed, |picture| picture.next_index == next);
        assert_same_columns(&far, &local(&there, &mut feed, &viewport));
        let said = pair.bytes - std::mem::replace(&mut before, pair.bytes);
        match block {
            200 => first = said,
            // A twentieth of the columns, and the counters.
            _ => assert!(said < first / 2, "{said} of {first}"),
        }
    }
}

#[test]
fn all_that_a_scope_knows_comes_too() {
    let (mut feed, there) = ScopeFeed::new(8 << 20);
    let mut pair = pair(&there);
    for block in 0..400 {
        feed.ingest(&sine_batch(block * 500, 2, 500, 1e5)).unwrap();
    }
    let viewport = Viewport {
        span: Some(0.5),
        trigger: Some(TriggerSettings::new(TriggerMode::Normal)),
        measure: Some(Scales::default()),
        spectrum: Some(SpectrumSettings {
            size: 4096,
            waterfall: Some(0),
            is_peak_held: true,
            ..SpectrumSettings::default()
        }),
        persistence: Some(Arc::new(
            [(LaneId::real(0), CountRange { low: -12_000.0, high: 12_000.0 })].into_iter().collect(),
        )),
        xy: Some(crate::data::viewport::XySettings {
            x: LaneId::real(0),
            y: LaneId::real(1),
            x_range: (-12_000.0, 12_000.0),
            y_range: (-20.0, 20.0),
            size: (120, 80),
            every: None,
        }),
        overview: Some(500),
        ..Viewport::latest(400)
    };
    pair.link.request(viewport.clone());
    let far = pair.until(&mut feed, |picture| {
        let has_waterfall = picture.spectrum.as_ref().is_some_and(|it| it.waterfall.is_some());
        has_waterfall
            && picture.persistence.is_some()
            && picture.xy.is_some()
            && picture.overview.is_some()
            && !picture.measured.is_empty()
    });
    assert_eq!(pair.scope.channels().first().map(|it| it.name.clone()).as_deref(), Some("ECG"));
    let near = local(&there, &mut feed, &viewport);
    assert_eq!(far.measured, near.measured);
    assert_eq!(far.signals.len(), 2);
    assert_eq!(far.triggers, near.triggers);
    assert_eq!(far.trigger.map(|it| (it.found, it.level)), near.trigger.map(|it| (it.found, it.level)));
    let rate = |picture: &Picture| picture.trigger.and_then(|it| it.rate.rate_hz());
    assert_eq!(rate(&far), rate(&near));
    assert_eq!(far.overview, near.overview);
    let [far_view, near_view] = [&far, &near].map(|picture| picture.spectrum.clone().unwrap());
    assert_eq!((far_view.size, far_view.channels.len()), (near_view.size, 2));
    for (far, near) in far_view.channels.iter().zip(&near_view.channels) {
        assert_eq!(far.peaks, near.peaks);
        assert_eq!(far.hold_dbfs.len(), near.hold_dbfs.len());
        for (far, near) in far.dbfs.iter().zip(&near.dbfs) {
            assert!((far - near).abs() <= 0.0625 || far == near, "{far} {near}");
        }
    }
    let [far, near] = [far_view, near_view].map(|view| view.waterfall.clone().unwrap());
    assert_eq!(
        (far.width, far.cells.len(), far.span_samples),
        (near.width, near.cells.len(), near.span_samples)
    );
    // Items that are no longer requested disappear.
    let plain = Viewport { span: Some(0.5), ..Viewport::latest(400) };
    pair.link.request(plain.clone());
    let far = pair.until(&mut feed, |picture| picture.answers.as_ref() == Some(&plain));
    assert!(far.spectrum.is_none() && far.overview.is_none() && far.xy.is_none() && far.trigger.is_none());
}

#[test]
fn samples_come_when_they_are_asked_for() {
    let (mut feed, there) = ScopeFeed::new(8 << 20);
    let mut pair = pair(&there);
    for block in 0..40 {
        feed.ingest(&sine_batch(block * 500, 2, 500, 1e5)).unwrap();
    }
    pair.link.request(Viewport::latest(100));
    pair.until(&mut feed, |picture| picture.next_index == 20_000);
    pair.link.request_extract(5_000..9_000);
    let far = loop {
        pair.carry();
        feed.idle();
        if let Some(extract) = pair.link.take_extract() {
            break extract;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    there.request_extract(5_000..9_000);
    feed.idle();
    assert_eq!(far.len_samples(), 4_000);
    let near =
        there.take_extract().map(|near| Extract { held: 0..0, streams: 0, descriptions: Vec::new(), ..near });
    assert_eq!(Some(far), near, "the history's size is the only difference");
}

#[test]
fn viewers_of_one_scope_have_triggers_of_their_own_and_a_stream_that_is_over_stays() {
    let (mut feed, there) = ScopeFeed::new(8 << 20);
    let (mut one, mut other) = (pair(&there), pair(&there));
    let triggered = |lane| Viewport {
        span: Some(0.1),
        trigger: Some(TriggerSettings {
            lane: LaneId::real(lane),
            level: Some(0.0),
            ..TriggerSettings::new(TriggerMode::Normal)
        }),
        ..Viewport::latest(100)
    };
    one.link.request(triggered(0));
    other.link.request(triggered(1));
    for block in 0..400 {
        feed.ingest(&sine_batch(block * 500, 2, 500, 1e4)).unwrap();
        one.carry();
        other.carry();
    }
    let is_triggered = |picture: &Picture| picture.trigger.is_some_and(|it| it.at.is_some());
    let [a, b] = [&mut one, &mut other].map(|pair| pair.until(&mut feed, is_triggered));
    let of = |picture: &Picture| picture.trigger.map(|it| (it.settings.lane.channel, it.found));
    let [(lane_a, found_a), (lane_b, found_b)] = [of(&a).unwrap(), of(&b).unwrap()];
    assert_eq!((lane_a, lane_b), (0, 1));
    assert!(found_b > found_a, "the second channel is twice as fast: {found_a} {found_b}");
    feed.finish();
    let held = Viewport { window: Window::Ending { at: 100_000.0 }, ..triggered(0) };
    for pair in [&mut one, &mut other] {
        pair.link.request(held.clone());
        let far = pair.until(&mut feed, |picture| picture.answers.as_ref() == Some(&held));
        assert!(far.is_ended && far.lanes.len() == 2);
    }
}

#[test]
fn what_is_known_of_a_source_that_has_ended_is_not_older_than_its_picture() {
    let (mut feed, there) = ScopeFeed::new(8 << 20);
    let mut pair = pair(&there);
    pair.notice = Some("reading the file: 60 %".into());
    pair.link.request(Viewport::latest(100));
    feed.ingest(&sine_batch(0, 1, 500, 1e4)).unwrap();
    pair.until(&mut feed, |picture| picture.counts.samples > 0 && !picture.is_ended);
    let status = pair.scope.status();
    assert_eq!(status().notice, pair.notice);
    pair.notice = None;
    feed.finish();
    pair.until(&mut feed, |picture| picture.is_ended);
    assert_eq!(status().notice, None);
}

#[test]
fn a_cut_is_said_and_after_it_all_comes_anew() {
    let (mut feed, there) = ScopeFeed::new(8 << 20);
    let mut first = pair(&there);
    for block in 0..40 {
        feed.ingest(&sine_batch(block * 500, 2, 500, 1e5)).unwrap();
    }
    let viewport = Viewport { span: Some(0.1), ..Viewport::latest(100) };
    first.link.request(viewport.clone());
    first.until(&mut feed, |picture| picture.next_index == 20_000);
    let status = first.scope.status();
    assert_eq!((status().name.as_str(), status().notice), ("udp://:5000", None));
    first.scope.lost("no connection to there: it was closed; trying again");
    assert!(status().notice.unwrap().contains("trying again"));
    let Pair { scope, link, .. } = first;
    let fresh = pair(&there);
    let mut second = Pair { scope, link, session: fresh.session, notice: None, bytes: 0, binary_messages: 0 };
    second.scope.connected("secret", 1, 60.0);
    assert!(
        matches!(second.scope.next(monotonic_ns()), Some(ScopeMessage::Text(hello)) if hello.contains("secret"))
    );
    feed.ingest(&sine_batch(20_000, 2, 500, 1e5)).unwrap();
    let far = second.until(&mut feed, |picture| picture.next_index == 20_500);
    assert_same_columns(&far, &local(&there, &mut feed, &viewport));
    assert_eq!(status().notice, None);
}

#[test]
fn a_viewer_that_says_nothing_gets_a_message_and_no_more() {
    let (mut feed, there) = ScopeFeed::new(8 << 20);
    let mut pair = pair(&there);
    let now_ns = monotonic_ns();
    pair.session.take(r#"{"viewport":{"number":1,"span":0.1}}"#, now_ns).unwrap();
    let mut binary = 0;
    for block in 0..400 {
        feed.ingest(&sine_batch(block * 500, 2, 500, 1e5)).unwrap();
        let at_ns = now_ns + block * 20_000_000;
        while let Some(message) = pair.session.next(at_ns, SourceStatus::default) {
            binary += usize::from(matches!(message, ScopeMessage::Binary(_)));
        }
    }
    assert_eq!(binary, 1, "nothing waits in line");
    assert!(pair.session.check(now_ns + 5_000_000_000).is_ok());
    assert!(pair.session.check(now_ns + 60_000_000_000).is_err());
}

#[test]
fn what_no_viewer_says_is_refused_in_words() {
    let (_feed, there) = ScopeFeed::new(1 << 20);
    for (text, words) in [
        ("garbage", "not understood"),
        (r#"{"ack":7}"#, "never sent"),
        (r#"{"hello":{"protocol":1}}"#, "second hello"),
        (r#"{"format_disk":{}}"#, "not understood"),
    ] {
        let refusal = pair(&there).session.take(text, monotonic_ns()).unwrap_err();
        assert!(refusal.to_string().contains(words), "{text}: {refusal}");
        assert!(matches!(refusal.message(), ScopeMessage::Text(text) if text.contains("refused")));
    }
    let mut pair = pair(&there);
    let now_ns = monotonic_ns();
    let flood = (0..5000).find_map(|_| pair.session.take(r#"{"ping":{"at":1}}"#, now_ns).err()).unwrap();
    assert!(flood.to_string().contains("messages a second"), "{flood}");
    assert!(greeting(r#"{"hello":{"protocol":99}}"#).unwrap_err().to_string().contains("same version"));
    assert!(greeting(r#"{"ack":1}"#).unwrap_err().to_string().contains("hello"));
}

proptest! {
    #[test]
    fn a_far_scope_takes_any_bytes_without_a_panic(messages: Vec<Vec<u8>>, text: String) {
        let (mut scope, _link) = RemoteScope::new("grebe", "there", || {});
        scope.connected("", 1, 60.0);
        let _ = scope.take(&ScopeMessage::Text(text), 1);
        for mut bytes in messages {
            let _ = scope.take(&ScopeMessage::Binary(bytes.clone()), 2);
            bytes.splice(..0, [1, 1]);
            let _ = scope.take(&ScopeMessage::Binary(bytes), 3);
        }
    }

    #[test]
    fn a_session_takes_any_text_without_a_panic(text: String, viewport in requests::tests::viewport()) {
        let (mut feed, there) = ScopeFeed::new(1 << 20);
        feed.ingest(&sine_batch(0, 2, 5000, 1e5)).unwrap();
        let mut pair = pair(&there);
        let _ = pair.session.take(&text, 1);
        pair.link.request(viewport);
        pair.carry();
        feed.idle();
        pair.carry();
    }
}
