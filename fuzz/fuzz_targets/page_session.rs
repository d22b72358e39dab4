#![no_main]

use grebe_frame::{BatchPool, Header};
use grebe_view::{
    HeardBox, Listener, Listening, PageSession, Playing, Right, ScopeFeed, ScopeMessage, ScopeOffer, Sound,
    SourceStatus, greeting,
};
use libfuzzer_sys::fuzz_target;

// Messages of a page to a server: settings, then one per line. Every answer is JSON.
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
    let (view, deeds) = text.split_once('\u{0}').unwrap_or(("", text));
    let hello = format!(r#"{{"hello":{{"protocol":1,"page":{{"view":{view:?}}}}}}}"#);
    let hello = greeting(&hello).or_else(|_| greeting(r#"{"hello":{"protocol":1,"page":{}}}"#)).unwrap();
    let check = |heard: &HeardBox| {
        assert!(
            heard.modulation < 2 && heard.low_hz < heard.high_hz && heard.samples.start < heard.samples.end
        );
    };
    let sound = || Sound { rate_hz: 8_000, samples: vec![7; 100], ..Sound::default() };
    let listener = Listener::new(vec![("AM".into(), 1e4), ("CW".into(), 500.0)], move |heard| {
        check(&heard);
        let (side, listening) = Listening::begin();
        side.end(Ok(sound()));
        listening
    });
    let listener = listener.with_live(move |heard, mut tell| {
        check(&heard);
        (0..30).for_each(|_| tell(Sound { is_live: true, ..sound() }));
        Playing::new(|| None)
    });
    let offer = ScopeOffer { listener: Some(listener), ..ScopeOffer::default() };
    let mut session = PageSession::new(link, &hello, &offer, Right::Control, 0);
    let mut now_ns = 1;
    let size =
        r#"{"do":{"number":1,"what":{"size":{"columns":50,"plot":[300.0,200.0],"spectrum":[300.0,100.0]}}}}"#;
    for line in [size].into_iter().chain(deeds.lines().take(20)) {
        now_ns += 300_000_000;
        if session.take(line, now_ns).is_err() {
            return;
        }
        let mut binary = 0;
        while let Some(message) = session.next(now_ns, SourceStatus::default) {
            if let ScopeMessage::Binary(_) = message {
                binary += 1;
                session.take(&format!(r#"{{"ack":{binary}}}"#), now_ns).expect("it was sent");
            }
        }
    }
});
