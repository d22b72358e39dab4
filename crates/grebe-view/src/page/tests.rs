//! A page and its session, joined without a socket or a browser.

mod front_ends;

use std::sync::{Arc, Mutex};

use grebe_flow::monotonic_ns;
use serde_json::{Map, Value, json};

use super::PageSession;
use crate::data::feed::ScopeFeed;
use crate::data::link::ScopeLink;
use crate::data::listening::{Listener, Listening, Playing, Sound};
use crate::data::status::SourceStatus;
use crate::model::generator::GeneratorRemote;
use crate::model::options::ViewOptions;
use crate::model::view_model::ViewModel;
use crate::remote::{
    ChannelMeaning, Right, ScopeMessage, ScopeOffer, SharedControls, SourceControls, greeting,
};
use crate::testing::sine_batch;

/// A page, with its received messages.
struct Page {
    session: PageSession,
    shown: Map<String, Value>,
    /// The keys of each text message, and the number of binary messages before it.
    words: Vec<(usize, Vec<String>)>,
    pictures: usize,
    binary: usize,
    files: Vec<Vec<u8>>,
    /// Whether pieces of a sound came.
    is_heard: bool,
    went: Option<u64>,
    number: u64,
    /// The number in the newest picture.
    answers: u64,
}

fn meaning() -> ChannelMeaning {
    ChannelMeaning { name: "probe".into(), unit: "V".into(), scale: 0.001, offset: 0.0 }
}

fn page_with(there: &ScopeLink, view: &str, controls: SharedControls, right: Right) -> Page {
    page_of(there, view, controls, right, meaning(), None)
}

fn page_of(
    there: &ScopeLink,
    view: &str,
    controls: SharedControls,
    right: Right,
    meaning: ChannelMeaning,
    listener: Option<Listener>,
) -> Page {
    let hello = json!({"hello": {"protocol": 1, "token": "", "page": {"view": view, "is_light": true}}});
    let greeting = greeting(&hello.to_string()).unwrap();
    assert!(greeting.is_page());
    let offer = ScopeOffer {
        name: "udp://:5000".into(),
        channels: vec![meaning],
        controls,
        sources: vec!["one".into(), "two".into()],
        listener,
        ..ScopeOffer::default()
    };
    let session = PageSession::new(there.another(), &greeting, &offer, right, monotonic_ns());
    Page {
        session,
        shown: Map::new(),
        words: Vec::new(),
        pictures: 0,
        binary: 0,
        files: Vec::new(),
        is_heard: false,
        went: None,
        number: 0,
        answers: 0,
    }
}

fn page(there: &ScopeLink) -> Page {
    let mut page = page_with(there, "", SharedControls::default(), Right::Look);
    page.act(&json!({"size": {"columns": 100, "plot": [800.0, 600.0], "overview": 100}}));
    page
}

impl Page {
    fn act(&mut self, what: &Value) {
        self.number += 1;
        let text = json!({"do": {"number": self.number, "what": what}}).to_string();
        self.session.take(&text, monotonic_ns()).unwrap();
    }

    fn key(&mut self, key: &str) {
        self.act(&json!({ "key": key }));
    }

    /// Takes all waiting messages.
    fn carry(&mut self) {
        let status = || SourceStatus { name: "udp://:5000".into(), ..SourceStatus::default() };
        while let Some(message) = self.session.next(monotonic_ns(), status) {
            match message {
                ScopeMessage::Text(text) => self.hear(&serde_json::from_str(&text).unwrap()),
                ScopeMessage::Binary(bytes) => {
                    self.binary += 1;
                    if bytes[0] == 1 {
                        self.pictures += 1;
                        // Both numbers of a short test are below 128.
                        self.answers = bytes[2].into();
                    } else if bytes[0] == 2 {
                        self.is_heard |= bytes[2] == 8;
                    } else if bytes[0] == 3 {
                        self.files.push(bytes.clone());
                    }
                    let ack = format!(r#"{{"ack":{}}}"#, self.binary);
                    self.session.take(&ack, monotonic_ns()).unwrap();
                }
            }
        }
    }

    fn hear(&mut self, said: &Value) {
        if let Some(Value::Object(shown)) = said.get("shown") {
            self.words.push((self.binary, shown.keys().cloned().collect()));
            self.shown.extend(shown.clone());
        }
        if let Some(go) = said.get("go") {
            self.went = go["source"].as_u64();
        }
    }

    /// Waits until the page meets a condition, while the source is idle.
    fn until(&mut self, feed: &mut ScopeFeed, what: &str, is_it: impl Fn(&Page) -> bool) {
        for _ in 0..2000 {
            feed.idle();
            self.carry();
            if is_it(self) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        panic!("never {what}: {:?}", self.shown);
    }

    fn table(&self, name: &str) -> Option<&Value> {
        self.shown.get("tables")?.as_array()?.iter().find(|table| table["name"] == name)
    }
}

fn fed() -> (ScopeFeed, ScopeLink) {
    let (mut feed, link) = ScopeFeed::new(4 << 20);
    for block in 0..40 {
        feed.ingest(&sine_batch(block * 500, 2, 500, 1e5)).unwrap();
    }
    (feed, link)
}

#[test]
fn the_words_of_a_page_are_those_of_every_front_end() {
    let (mut feed, link) = fed();
    let mut page = page(&link);
    page.key("v");
    page.until(&mut feed, "a table", |page| page.table("measurements").is_some());
    // The same scope as in the terminal.
    let mut options = ViewOptions::new(SourceStatus::default);
    options.initial.channels = vec![crate::model::channel::ChannelSetup {
        name: "probe".into(),
        unit: "V".into(),
        scale: 0.001,
        ..Default::default()
    }];
    let mut model = ViewModel::new(link.another(), options, crate::png::encode);
    model.controls.is_measuring = true;
    let rows = (0..1000).find_map(|_| {
        model.request(100);
        feed.idle();
        std::thread::sleep(std::time::Duration::from_millis(2));
        model.refresh();
        let rows = model.measurement_rows();
        (rows.len() == 2 && rows[0].cells.iter().any(|cell| cell.contains("Hz"))).then_some(rows)
    });
    let cells: Vec<Vec<String>> = rows.expect("measured").into_iter().map(|row| row.cells).collect();
    let rows = page.table("measurements").unwrap()["rows"].as_array().unwrap().clone();
    let shown: Vec<Value> = rows.iter().map(|row| row[1].clone()).collect();
    assert_eq!(shown, cells.iter().map(|cells| json!(cells)).collect::<Vec<_>>());
    let lanes = page.shown["lanes"].as_array().unwrap().clone();
    assert_eq!(lanes.len(), 2);
    assert!(lanes[0]["chip"]["words"].as_str().unwrap().starts_with("1 probe  "), "{}", lanes[0]["chip"]);
    // 10,000 counts are 10 V, so both models draw them at 10 V.
    for place in 0..2 {
        model.range(place);
    }
    let lane = model.seen.picture.lanes[0].lane;
    let expected = model.controls.lanes.range(lane).unwrap().part_of(10.0);
    let height = lanes[0]["shift"].as_f64().unwrap() + 10_000.0 * lanes[0]["gain"].as_f64().unwrap();
    assert!((height - expected).abs() < 1e-9, "{height} {expected}");
    let labels: Vec<&str> =
        lanes[0]["labels"].as_array().unwrap().iter().filter_map(|label| label[1].as_str()).collect();
    assert!(labels.contains(&"10 V") && labels.contains(&"0 V"), "{labels:?}");
    assert_eq!(page.shown["theme"]["is_dark"], false, "as the page's surroundings");
}

#[test]
fn what_columns_mean_goes_before_them_and_what_is_the_same_is_not_said_again() {
    let (mut feed, link) = fed();
    let mut page = page(&link);
    page.until(&mut feed, "a picture", |page| page.pictures > 0);
    let (before, keys) = page.words.iter().find(|(_, keys)| keys.contains(&"lanes".into())).unwrap().clone();
    assert_eq!(before, 0, "no picture came before: {keys:?}");
    page.key(" ");
    page.until(&mut feed, "a held picture", |page| page.shown["state"]["word"] == "PAUSED");
    page.until(&mut feed, "its picture", |page| page.answers == page.number);
    let (said, pictures) = (page.words.len(), page.pictures);
    for _ in 0..20 {
        feed.idle();
        page.carry();
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    let later: Vec<_> = page.words[said..].iter().flat_map(|(_, keys)| keys).collect();
    assert!(
        later.iter().all(|key| !["lanes", "ticks", "tools", "theme", "view"].contains(&key.as_str())),
        "{later:?}"
    );
    assert!(page.pictures <= pictures + 1, "a held picture comes once");
}

#[test]
fn a_deed_that_changes_no_picture_is_known_to_be_done() {
    let (mut feed, link) = fed();
    let mut page = page(&link);
    page.until(&mut feed, "a picture", |page| page.pictures > 0);
    page.key("+");
    page.until(&mut feed, "the shorter span", |page| page.answers == page.number);
    let asked = page.number;
    page.key("t");
    page.until(&mut feed, "the other theme", |page| {
        page.shown["theme"]["is_dark"] == true && page.shown["done"] == page.number
    });
    assert_eq!(page.shown["asked"], asked, "no other picture is to be waited for");
}

#[test]
fn what_was_set_is_there_again_after_a_cut() {
    let (mut feed, link) = fed();
    let mut page = page(&link);
    for key in ["f", "v", "i"] {
        page.key(key);
    }
    page.until(&mut feed, "what is set", |page| {
        page.shown.get("view").and_then(Value::as_str).is_some_and(|it| it.contains("show.spectrum=true"))
    });
    let view = page.shown["view"].as_str().unwrap().to_owned();
    let mut again = page_with(&link, &view, SharedControls::default(), Right::Look);
    again.act(&json!({"size": {"columns": 100, "plot": [800.0, 600.0], "spectrum": [800.0, 300.0]}}));
    again.until(&mut feed, "the same view", |page| page.shown.get("spectrum").is_some_and(Value::is_object));
    assert_eq!(again.shown["view"], view);
}

#[test]
fn who_may_look_changes_nothing_and_who_may_more_is_told_of() {
    let (mut feed, link) = fed();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&told);
    let controls = SharedControls::new(SourceControls {
        generator: Some(GeneratorRemote {
            waves: vec!["sine".into(), "square".into()],
            tell: Box::new(move |wish| {
                noted.lock().unwrap().push(format!("{wish:?}"));
                Ok(())
            }),
        }),
        ..SourceControls::default()
    });
    for right in [Right::Look, Right::Control] {
        let mut page = page_with(&link, "", controls.clone(), right);
        page.act(&json!({"size": {"columns": 100}}));
        page.act(&json!("source"));
        page.key("G");
        page.act(&json!({"wave": "square"}));
        page.act(&json!({"wave": "nonsense"}));
        let changed = page.session.take_changed();
        assert_eq!(changed.is_some(), right == Right::Control);
        page.until(&mut feed, "the panel", |page| {
            page.shown.get("panels").is_some_and(|panels| panels[0]["name"] == "source")
        });
        if right == Right::Look {
            assert!(page.shown["notice"].as_str().unwrap().contains("--control"), "{}", page.shown["notice"]);
        }
    }
    assert_eq!(*told.lock().unwrap(), ["TogglePause", "Wave(\"square\")"]);
}

#[test]
fn a_file_goes_to_the_page_and_none_is_written_here() {
    let (mut feed, link) = fed();
    let mut page = page(&link);
    page.key("v");
    page.until(&mut feed, "a table", |page| page.table("measurements").is_some());
    page.key("M");
    page.until(&mut feed, "a file", |page| !page.files.is_empty());
    let text = String::from_utf8_lossy(&page.files[0]).into_owned();
    assert!(text.contains("grebe.csv") && text.contains("channel,quantity,unit"), "{text}");
    assert!(!std::path::Path::new("grebe.csv").exists());
    page.key("M");
    page.until(&mut feed, "a refusal", |page| {
        page.shown["notice"].as_str().is_some_and(|notice| notice.contains("one file a second"))
    });
    page.key("O");
    page.until(&mut feed, "a refusal", |page| {
        page.shown["notice"].as_str().is_some_and(|notice| notice.contains("no file can be opened"))
    });
}

/// A second of sound: many pieces of messages.
fn noise() -> Sound {
    let samples = (0..8_000).map(|n: i32| (n * 7_919 % 65_536 - 32_768) as i16).collect();
    Sound { rate_hz: 8_000, samples, ..Sound::default() }
}

#[test]
fn the_sound_of_a_box_goes_to_the_page_and_no_two_begin_at_once() {
    let (mut feed, link) = fed();
    let listener = Listener::new(vec![("AM".into(), 1e4)], |_| {
        let (side, listening) = Listening::begin();
        side.end(Ok(noise()));
        listening
    });
    let view = "box=[100, 9000, 2000.0, 9000.0]";
    let mut page = page_of(&link, view, SharedControls::default(), Right::Look, meaning(), Some(listener));
    page.act(&json!({"size": {"columns": 100, "plot": [800.0, 600.0]}}));
    page.until(&mut feed, "a picture", |page| page.pictures > 0);
    page.act(&json!({"act": {"box": "listen"}}));
    page.until(&mut feed, "a sound", |page| page.is_heard);
    page.act(&json!({"act": {"box": "listen"}}));
    page.carry();
    page.act(&json!({"act": {"box": "listen"}}));
    page.until(&mut feed, "a refusal", |page| {
        page.shown["notice"].as_str().is_some_and(|notice| notice.contains("another sound has just begun"))
    });
}

#[test]
fn live_sound_goes_to_the_page_until_it_is_stopped() {
    let (mut feed, link) = fed();
    type Tell = Box<dyn FnMut(Sound) + Send>;
    let (begun, plays) = (Arc::<Mutex<Vec<Tell>>>::default(), Arc::new(()));
    let (begins, player) = (begun.clone(), plays.clone());
    let listener =
        Listener::new(vec![("AM".into(), 1e4)], |_| Listening::begin().1).with_live(move |_, tell| {
            begins.lock().unwrap().push(tell);
            let player = player.clone();
            Playing::new(move || {
                let _ = &player;
                None
            })
        });
    let view = "box=[100, 9000, 2000.0, 9000.0]";
    let mut page = page_of(&link, view, SharedControls::default(), Right::Look, meaning(), Some(listener));
    page.act(&json!({"size": {"columns": 100, "plot": [800.0, 600.0]}}));
    page.until(&mut feed, "a picture", |page| page.pictures > 0);
    page.act(&json!({"act": {"box": "listen_live"}}));
    let mut tell = begun.lock().unwrap().pop().unwrap();
    for _ in 0..3 {
        // Too many come at once: the newest second of them stays.
        for _ in 0..5 {
            tell(Sound { is_live: true, ..noise() });
        }
        page.is_heard = false;
        page.until(&mut feed, "a piece", |page| page.is_heard);
    }
    assert_eq!(Arc::strong_count(&plays), 3);
    page.act(&json!({"act": {"box": "listen_live"}}));
    assert_eq!(Arc::strong_count(&plays), 2);
}

#[test]
fn the_list_of_sources_leads_to_another() {
    let (mut feed, link) = fed();
    let mut page = page(&link);
    page.key("&");
    page.until(&mut feed, "a list", |page| page.shown.get("list").is_some_and(Value::is_object));
    page.key("ArrowDown");
    page.key("Enter");
    page.until(&mut feed, "the way to it", |page| page.went == Some(2));
}

#[test]
fn whatever_a_page_says_it_ends_with_a_word() {
    let (mut feed, link) = fed();
    for wrong in [
        "",
        "{}",
        r#"{"viewport":{"number":1}}"#,
        r#"{"do":{"number":1,"what":{"act":"no"}}}"#,
        r#"{"ack":9}"#,
    ] {
        let mut page = page(&link);
        assert!(page.session.take(wrong, monotonic_ns()).is_err(), "{wrong}");
    }
    let mut page = page(&link);
    page.key("g");
    for what in [
        json!({"size": {"columns": u64::MAX, "overview": u64::MAX, "plot": [1e30, -5.0], "xy": [1e30, 1e30]}}),
        json!({"act": {"choices": "all"}}),
        json!({"act": {"mark": i32::MAX}}),
        json!({"act": {"mark": i32::MIN}}),
        json!({"act": {"choose": u64::MAX}}),
        json!({"act": {"choices": {"math_input": u64::MAX}}}),
        json!({"act": {"channel": u64::MAX}}),
        json!({"act": {"group_channel": u64::MAX}}),
        json!({"act": {"segment": i32::MIN}}),
        json!({"act": {"select": "200.phase"}}),
        json!({"act": {"vertical": "up"}}),
        json!({"act": {"position": 1e308}}),
        json!({"act": {"move_cursor": -1e308}}),
        json!({"act": {"show_at": -1e308}}),
        json!({"act": {"zoom": {"times": [1e300, -1e300], "values": ["1", [5.0, 5.0]]}}}),
        json!({"show": {"ending": 1e308, "samples": 1e-300}}),
        json!({"show": {"ending": -1e308, "samples": 1e308}}),
        json!({"level": 1e300}),
        json!({"cursor": {"which": u64::MAX, "at": -4.0}}),
        json!({"value_cursor": {"which": 7, "at": 1e9}}),
        json!({"frequencies": [0.5, 0.1]}),
        json!({"found": u64::MAX}),
        json!({"trigger": -1e300}),
        json!({"field": {"field": {"scale": u64::MAX}, "text": "1e308"}}),
        json!({"field": {"field": {"per_division": "1"}, "text": "1e-320"}}),
        json!({"act": "quit"}),
        json!({"key": "@"}),
        json!({"key": "d"}),
        json!({"key": "f"}),
        json!({"key": "w"}),
        json!({"act": "autoset"}),
    ] {
        page.act(&what);
        page.carry();
        feed.idle();
        page.carry();
    }
    page.key("End");
    page.until(&mut feed, "words after all of it", |page| page.shown["done"] == page.number);
}
