//! Searches from a remote viewer.

use super::*;
use crate::data::finding::{Finding, FindingSide, FoundEvent, Sought};

/// A finder that notes its requests and keeps the searching end.
fn noting(asked: &Arc<Mutex<Vec<(Sought, FindingSide)>>>) -> Finder {
    let asked = Arc::clone(asked);
    Finder::new(move |sought| {
        let (side, finding) = Finding::begin();
        asked.lock().unwrap().push((sought, side));
        finding
    })
}

#[test]
fn a_search_goes_there_and_what_is_found_comes_back_until_nobody_wants_it() {
    let (mut feed, there) = ScopeFeed::new(1 << 20);
    feed.ingest(&sine_batch(0, 1, 500, 1e3)).unwrap();
    let asked = Arc::default();
    let mut pair = pair_of(&there, SharedControls::default(), Right::Look, Some(noting(&asked)));
    let finder = pair.scope.finder();
    let refused = finder.find(Sought::default()).take_news().unwrap();
    assert!(refused.ended.unwrap().contains("no connection"), "before anybody was let in");
    pair.carry();
    let sought =
        Sought { words: "edge --level 0.5".into(), scales: vec![Scale { factor: 2.0, offset: 1.0 }] };
    let finding = finder.find(sought.clone());
    pair.carry();
    let (got, side) = asked.lock().unwrap().pop().expect("it came there");
    assert_eq!(got, sought);
    let event = |index| FoundEvent { index, length_samples: 3, lane: Some(LaneId::real(1)) };
    let events: Vec<FoundEvent> = (0..2000).map(|n| event(n * 17)).collect();
    side.tell(&events, 400, 1000);
    // All results arrive in parts; the number under way is bounded by acknowledgements.
    let mut came = Vec::new();
    for _ in 0..2000 {
        pair.carry();
        if let Some(news) = finding.take_news() {
            came.extend(news.events);
            assert_eq!((news.found, news.searched_samples, news.all_samples), (2000, 400, 1000));
        }
        if came.len() == events.len() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(came, events);
    // A new search replaces the old one, whose later results are discarded.
    std::thread::sleep(std::time::Duration::from_millis(210));
    let second = finder.find(Sought { words: "gap".into(), ..Sought::default() });
    pair.carry();
    assert!(!side.is_wanted() && finding.take_news().unwrap().ended.is_some());
    let (_, other) = asked.lock().unwrap().pop().unwrap();
    other.tell(&[event(5)], 1000, 1000);
    other.end("that was all");
    let ended = loop {
        pair.carry();
        if let Some(ended) = second.take_news().and_then(|news| news.ended) {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(ended, "that was all");
    // A viewer that cancels or disconnects ends its search.
    std::thread::sleep(std::time::Duration::from_millis(210));
    let third = finder.find(sought.clone());
    pair.carry();
    let (_, side) = asked.lock().unwrap().pop().unwrap();
    drop(third);
    std::thread::sleep(std::time::Duration::from_millis(210));
    pair.carry();
    assert!(!side.is_wanted());
    let fourth = finder.find(sought);
    pair.scope.lost("cut");
    assert!(fourth.take_news().unwrap().ended.unwrap().contains("connection was cut"));
}
