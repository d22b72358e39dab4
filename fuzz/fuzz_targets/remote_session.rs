#![no_main]

use grebe_frame::{BatchPool, Header};
use grebe_view::{
    ScopeOffer, RemoteScope, ViewerSession, Finder, Finding, FoundEvent, LaneId, Right, ScopeFeed, SourceStatus,
    greeting,
};
use libfuzzer_sys::fuzz_target;

// Messages of a viewer to a server, one per line. A viewer understands all answers.
fuzz_target!(|text: &str| {
    let (mut feed, link) = ScopeFeed::new(1 << 18);
    let header =
        Header { channel_count: 2, block_length_samples: 1000, sample_rate_hz: 1e5, ..Header::default() };
    let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
    batch
        .push::<i16>(&header, |_, samples| samples.iter_mut().zip(0..).for_each(|(it, n)| *it = n * 31))
        .unwrap();
    feed.ingest(&batch.freeze()).unwrap();
    feed.finish();
    let _ = greeting(text);
    let hello = greeting(r#"{"hello":{"protocol":1}}"#).unwrap();
    // The search finds an event per letter of its expression.
    let finder = Finder::new(|sought| {
        let (side, finding) = Finding::begin();
        let event = |(place, letter): (usize, char)| FoundEvent {
            index: u64::from(letter) << (place % 40),
            length_samples: place as u64,
            lane: (letter > 'a').then_some(LaneId::real(place % 255)),
        };
        let events: Vec<FoundEvent> = sought.words.chars().enumerate().map(event).collect();
        side.tell(&events, sought.scales.len() as u64, 100);
        side.end(&sought.words);
        finding
    });
    let offer = ScopeOffer { finder: Some(finder), ..ScopeOffer::default() };
    let mut session = ViewerSession::new(link, &hello, &offer, Right::Control, 0);
    let (mut scope, _seen) = RemoteScope::new("grebe fuzz", "there", || {});
    scope.connected("", 1, 60.0);
    let mut now_ns = 0;
    for line in text.lines().take(20) {
        now_ns += 100_000_000;
        if session.take(line, now_ns).is_err() {
            return;
        }
        while let Some(message) = session.next(now_ns, SourceStatus::default) {
            scope.take(&message, now_ns).expect("what is written is read");
        }
    }
});
