//! A search of all of the history: the line, the panel, the keys.

use std::sync::{Arc, Mutex};

use super::*;
use crate::data::finding::{Finder, Finding, FindingSide, FoundEvent};

#[test]
fn what_is_typed_is_searched_and_its_list_goes_to_each_place() {
    let asked: Arc<Mutex<Vec<(String, FindingSide)>>> = Arc::default();
    let asks = Arc::clone(&asked);
    let mut panes = panes(ThemeChoice::Dark);
    panes.model.options.finder = Some(Finder::new(move |sought| {
        let (side, finding) = Finding::begin();
        asks.lock().unwrap().push((sought.words, side));
        finding
    }));
    let mut harness = harness(panes);
    harness.get_by_label("find").click();
    harness.run();
    harness.get_by_label("level that is searched");
    harness.get_by_label("in words\u{2026}").click();
    harness.run();
    harness.get_by_label("answer");
    harness.state_mut().model.type_text(String::clear);
    press(&mut harness, "edge --level 7");
    harness.key_press(egui::Key::Enter);
    harness.run();
    let (words, side) = asked.lock().unwrap().pop().unwrap();
    assert_eq!(words, "edge --level 7");
    let event = |index| FoundEvent { index, length_samples: 20, lane: Some(LaneId::real(1)) };
    let events: Vec<FoundEvent> = (0..1500).map(event).collect();
    side.tell(&events, 100, 200);
    harness.run();
    harness.get_by_label("1500 found, 50 % searched \u{2026}");
    harness.get_by_label("0 s for 20 ms  CH2").click();
    harness.run();
    harness.get_by_label("PAUSED");
    assert_eq!(harness.state().model.controls.time.held_trigger(), Some(0.0));
    // The list follows the keys, and has no more lines than are seen.
    press(&mut harness, "}}}{");
    assert_eq!(harness.state().model.controls.time.held_trigger(), Some(2.0));
    harness.get_by_label("earlier").click();
    harness.get_by_label("2 ms for 20 ms  CH2");
    assert!(harness.query_by_label("900 ms for 20 ms  CH2").is_none());
    harness.run();
    press(&mut harness, "?");
    harness.get_by_label("search the whole history");
    press(&mut harness, "?");
    harness.get_by_label("end the search").click();
    harness.run();
    assert!(harness.state().model.open.found.is_none() && !side.is_wanted());
}
