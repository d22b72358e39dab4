//! A table of settings over signals of known truth: the browser's page, a viewer on another host, the terminal and the window
//! say the same of each, to the word.

use std::f64::consts::FRAC_1_SQRT_2;
use std::time::{Duration, Instant};

use grebe_frame::{BatchPool, Complex, Header, Sample};

use super::*;
use crate::data::status::SourceStatus;
use crate::model::channel::ThemeChoice;
use crate::model::keys::char_action;
use crate::page::drawn::Drawn;
use crate::page::requests::Sizes;
use crate::page::session::setup_of;
use crate::page::words::Words;
use crate::remote::{RemoteScope, ViewerSession};

/// A signal with its scale, and the truth about its first channel.
struct Signal {
    name: &'static str,
    unit: &'static str,
    scale: f64,
    offset: f64,
    /// Whether a count is the finest step.
    is_integer: bool,
    feed: fn(&mut ScopeFeed),
    /// Of the table of measurements, by column.
    truth: &'static [(&'static str, f64)],
}

const RATE_HZ: f64 = 1e6;
const SAMPLES: u64 = 20_000;
/// 250 samples a period: 4 kHz.
const PERIOD: f64 = 250.0;

fn wave(index: u64) -> f64 {
    (index as f64 / PERIOD * std::f64::consts::TAU).sin()
}

fn feed_as<T: Sample>(feed: &mut ScopeFeed, skipped: std::ops::Range<u64>, value: impl Fn(usize, u64) -> T) {
    const BLOCK: u64 = 500;
    for block in (0..SAMPLES / BLOCK).filter(|block| !skipped.contains(block)) {
        let first = block * BLOCK;
        let header = Header {
            sequence: block,
            producer_ts_ns: 1_000 + first,
            channel_count: 2,
            block_length_samples: BLOCK as u32,
            sample_rate_hz: RATE_HZ,
            first_sample_index: first,
            format: T::FORMAT,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
        let fill = |channel: usize, samples: &mut [T]| {
            samples.iter_mut().zip(first..).for_each(|(sample, index)| *sample = value(channel, index));
        };
        batch.push::<T>(&header, fill).unwrap();
        feed.ingest(&batch.freeze()).unwrap();
    }
}

const NO_GAP: std::ops::Range<u64> = 0..0;

fn sine(feed: &mut ScopeFeed) {
    feed_as::<i16>(feed, NO_GAP, |channel, index| (wave(index) * 10_000.0 / (channel + 1) as f64) as i16);
}

fn square(index: u64) -> f64 {
    if index % 1_000 < 300 { 1.0 } else { -0.5 }
}

const SIGNALS: [Signal; 10] = [
    Signal {
        name: "counts",
        unit: "",
        scale: 1.0,
        offset: 0.0,
        is_integer: true,
        feed: sine,
        truth: &[("Vpp", 20e3), ("mean", 0.0), ("RMS", 7_071.0), ("frequency", 4e3), ("period", 250e-6)],
    },
    Signal {
        name: "millivolts",
        unit: "mV",
        scale: 0.1,
        offset: 0.0,
        is_integer: true,
        feed: sine,
        truth: &[("Vpp", 2_000.0), ("RMS", 707.1), ("AC RMS", 707.1), ("frequency", 4e3)],
    },
    Signal {
        name: "an offset",
        unit: "V",
        scale: 1e-4,
        offset: 5.0,
        is_integer: true,
        feed: sine,
        truth: &[("Vpp", 2.0), ("mean", 5.0), ("RMS", 5.05), ("AC RMS", FRAC_1_SQRT_2)],
    },
    Signal {
        name: "inverted",
        unit: "V",
        scale: -1e-4,
        offset: 0.0,
        is_integer: true,
        feed: |feed| feed_as::<i16>(feed, NO_GAP, |_, index| (square(index) * 10_000.0) as i16),
        truth: &[("Vpp", 1.5), ("mean", 0.05), ("RMS", 0.6892), ("frequency", 1e3), ("duty", 0.7)],
    },
    Signal {
        name: "decibels",
        unit: "dB",
        scale: 0.001,
        offset: 0.0,
        is_integer: true,
        feed: sine,
        truth: &[("Vpp", 20.0), ("mean", 0.0), ("RMS", 7.071)],
    },
    Signal {
        name: "u8",
        unit: "",
        scale: 1.0,
        offset: 0.0,
        is_integer: true,
        feed: |feed| feed_as::<u8>(feed, NO_GAP, |_, index| (128.0 + 100.0 * square(index)) as u8),
        truth: &[("Vpp", 150.0), ("mean", 123.0), ("AC RMS", 68.74), ("duty", 0.3)],
    },
    Signal {
        name: "f64",
        unit: "A",
        scale: 1.0,
        offset: 0.0,
        is_integer: false,
        feed: |feed| feed_as::<f64>(feed, NO_GAP, |_, index| wave(index) * 2e-9),
        truth: &[("Vpp", 4e-9), ("RMS", 1.414e-9), ("frequency", 4e3)],
    },
    Signal {
        name: "complex",
        unit: "",
        scale: 1.0,
        offset: 0.0,
        is_integer: false,
        feed: |feed| {
            feed_as::<Complex<f32>>(feed, NO_GAP, |_, index| {
                let (sin, cos) = (index as f64 / PERIOD * std::f64::consts::TAU).sin_cos();
                Complex { re: cos as f32 * 0.5, im: sin as f32 * 0.5 }
            });
        },
        truth: &[("Vpp", 1.0), ("RMS", 0.3536), ("frequency", 4e3)],
    },
    Signal {
        // Counted from the middle, 127.5.
        name: "complex bytes",
        unit: "",
        scale: 1.0,
        offset: 0.0,
        is_integer: true,
        feed: |feed| {
            feed_as::<Complex<u8>>(feed, NO_GAP, |_, index| {
                let (sin, cos) = (index as f64 / PERIOD * std::f64::consts::TAU).sin_cos();
                Complex { re: (128.0 + 100.0 * cos).round() as u8, im: (128.0 + 100.0 * sin).round() as u8 }
            });
        },
        truth: &[("Vpp", 200.0), ("mean", 0.5), ("AC RMS", 70.71)],
    },
    Signal {
        name: "a gap",
        unit: "V",
        scale: 1e-4,
        offset: 0.0,
        is_integer: true,
        feed: |feed| {
            feed_as::<i16>(feed, 16..20, |channel, index| {
                (wave(index) * 10_000.0 / (channel + 1) as f64) as i16
            });
        },
        truth: &[("Vpp", 2.0), ("RMS", FRAC_1_SQRT_2), ("frequency", 4e3)],
    },
];

/// Keys, as a person presses them. `(` makes the transform so short that
/// no two of its lines are joined on their way; it comes first, because an axis of levels stays while it fits.
const SETTINGS: [&str; 7] = ["v", "cv", "nivC", "(fv", "(fw#", "+++++mv", "lEov"];

const COLUMNS: usize = 400;

fn sizes() -> Sizes {
    Sizes {
        columns: COLUMNS,
        overview: 0,
        plot: (800.0, 600.0),
        spectrum: (800.0, 300.0),
        waterfall: (800.0, 300.0),
        xy: (300.0, 300.0),
    }
}

/// In seconds and hertz, as `--box`, and as in the link to a view.
const BOX: ([f64; 4], &str) = ([0.005, 0.015, 2e3, 6e3], "box=[5000, 15000, 2000.0, 6000.0]");

/// A waterfall has a box.
fn has_box(keys: &str) -> bool {
    keys.contains('w')
}

fn options(signal: &Signal, keys: &str) -> ViewOptions {
    let mut options =
        ViewOptions::new(|| SourceStatus { name: "udp://:5000".into(), ..SourceStatus::default() });
    options.initial.channels = vec![setup_of(&signal_meaning(signal))];
    // As the page's surroundings.
    options.initial.theme = Some(ThemeChoice::Light);
    options.initial.time_frequency_box = has_box(keys).then_some(BOX.0);
    options
}

/// All words and places of a model, except those that depend on the viewer: the pace of pictures, its rights.
fn said(model: &mut ViewModel) -> Map<String, Value> {
    let mut keys = Map::new();
    for part in [
        serde_json::to_value(Words::of(model, &sizes(), None)).unwrap(),
        serde_json::to_value(Drawn::of(model, &sizes())).unwrap(),
    ] {
        let Value::Object(part) = part else { panic!("{part}") };
        keys.extend(part);
    }
    of_the_signal(keys)
}

fn of_the_signal(mut keys: Map<String, Value>) -> Map<String, Value> {
    let own = [
        "facts",
        "losses",
        "source",
        "sources",
        "source_shown",
        "tools",
        "notice",
        "theme",
        "done",
        "asked",
        "view",
    ];
    keys.retain(|key, _| !own.contains(&key.as_str()));
    keys
}

/// Until the picture answers what is set.
fn settle(model: &mut ViewModel, columns: usize, mut carry: impl FnMut()) {
    let begun = Instant::now();
    loop {
        for place in 0..model.seen.picture.lanes.len() {
            model.range(place);
        }
        let viewport = model.viewport(columns);
        let picture = &model.seen.picture;
        if picture.answers.as_ref() == Some(&viewport) && !picture.is_estimated {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "no picture answers the settings");
        model.request(columns);
        carry();
        if !model.refresh() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Presses keys, each on the picture of those before.
fn press(model: &mut ViewModel, keys: &str, columns: usize, mut carry: impl FnMut()) {
    for key in keys.chars() {
        settle(model, columns, &mut carry);
        model.act(char_action(key).unwrap());
    }
    settle(model, columns, &mut carry);
}

/// The words that a page gets after these keys.
fn page_says(
    there: &ScopeLink,
    signal: &Signal,
    keys: &str,
    expected: &Map<String, Value>,
) -> Map<String, Value> {
    let view = if has_box(keys) { BOX.1 } else { "" };
    let mut page = page_of(there, view, SharedControls::default(), Right::Look, signal_meaning(signal), None);
    page.act(&json!({ "size": sizes() }));
    let begun = Instant::now();
    let mut keys = keys.chars();
    loop {
        page.carry();
        // A deed that changes no picture waits for none.
        let is_answered = page.shown.get("done") == Some(&page.number.into())
            && page.shown.get("asked") == Some(&page.answers.into());
        if is_answered && let Some(key) = keys.next() {
            page.key(&key.to_string());
            continue;
        }
        let said = of_the_signal(page.shown.clone());
        if is_answered && said == *expected || begun.elapsed() > Duration::from_secs(30) {
            return said;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn signal_meaning(signal: &Signal) -> ChannelMeaning {
    let (name, unit) = (signal.name.into(), signal.unit.into());
    ChannelMeaning { name, unit, scale: signal.scale, offset: signal.offset }
}

/// A viewer on another host.
fn viewer_says(
    there: &ScopeLink,
    signal: &Signal,
    keys: &str,
    expected: &Map<String, Value>,
) -> Map<String, Value> {
    let (mut scope, link) = RemoteScope::new("a test", "there", || {});
    scope.connected("", 1, 60.0);
    let Some(ScopeMessage::Text(hello)) = scope.next(monotonic_ns()) else { panic!("no hello") };
    let offer = ScopeOffer {
        name: "udp://:5000".into(),
        channels: vec![signal_meaning(signal)],
        ..ScopeOffer::default()
    };
    let mut session =
        ViewerSession::new(there.another(), &greeting(&hello).unwrap(), &offer, Right::Look, monotonic_ns());
    let mut carry = || {
        loop {
            let now_ns = monotonic_ns();
            let up = scope.next(now_ns);
            if let Some(ScopeMessage::Text(text)) = &up {
                session.take(text, now_ns).unwrap();
            }
            let down = session.next(now_ns, SourceStatus::default);
            if let Some(message) = &down {
                scope.take(message, now_ns).unwrap();
            }
            if up.is_none() && down.is_none() {
                return;
            }
        }
    };
    let mut model = ViewModel::new(link, options(signal, keys), crate::png::encode);
    press(&mut model, keys, COLUMNS, &mut carry);
    // Spectra and densities come in pieces, after the columns.
    let begun = Instant::now();
    loop {
        settle(&mut model, COLUMNS, &mut carry);
        let said = said(&mut model);
        if said == *expected || begun.elapsed() > Duration::from_secs(30) {
            return said;
        }
        carry();
        std::thread::sleep(Duration::from_millis(1));
        model.refresh();
    }
}

fn cells(said: &Map<String, Value>) -> Vec<String> {
    let tables = said["tables"].as_array().unwrap().iter();
    let rows = tables.flat_map(|table| table["rows"].as_array().unwrap());
    let cells = rows.flat_map(|row| row[1].as_array().unwrap()).map(|cell| cell.as_str().unwrap().to_owned());
    cells.filter(|cell| !cell.is_empty()).collect()
}

/// Where two differ first.
fn difference(path: &str, said: &Value, expected: &Value) -> Option<String> {
    match (said, expected) {
        (Value::Object(said), Value::Object(expected)) => expected.iter().find_map(|(key, value)| {
            difference(&format!("{path}/{key}"), said.get(key).unwrap_or(&Value::Null), value)
        }),
        (Value::Array(said), Value::Array(expected)) if said.len() == expected.len() => {
            let mut places = said.iter().zip(expected).enumerate();
            places
                .find_map(|(place, (said, expected))| difference(&format!("{path}/{place}"), said, expected))
        }
        _ => (said != expected).then(|| format!("{path}: {said} instead of {expected}")),
    }
}

fn check(signal: &Signal, keys: &str) {
    let what = format!("{}, keys {keys}", signal.name);
    let (mut feed, link) = ScopeFeed::new(4 << 20);
    (signal.feed)(&mut feed);
    feed.finish();
    let mut model = ViewModel::new(link.another(), options(signal, keys), crate::png::encode);
    press(&mut model, keys, COLUMNS, || {});
    let expected = said(&mut model);
    if has_box(keys) {
        let cells = cells(&expected);
        assert!(
            cells.contains(&"10 ms".to_owned()) && cells.contains(&"4 kHz".to_owned()),
            "{what}: {cells:?}"
        );
        let command = "grebe convert RECORDING box.sigmf-meta --box 0.005,0.015,2k,6k";
        assert!(cells.contains(&command.to_owned()), "{what}: {cells:?}");
    }
    if keys == "v" {
        let table =
            expected["tables"].as_array().unwrap().iter().find(|it| it["name"] == "measurements").unwrap();
        let columns = table["columns"].as_array().unwrap();
        for (column, truth) in signal.truth {
            let place = columns.iter().position(|it| it == column).unwrap_or_else(|| panic!("{columns:?}"));
            let cell = table["rows"][0][1][place].as_str().unwrap();
            let unit = match *column {
                "frequency" => "Hz",
                "period" => "s",
                "duty" => "%",
                _ => signal.unit,
            };
            let per = if unit == "%" { 100.0 } else { 1.0 };
            let found = grebe_scope::parse_quantity(cell, unit).unwrap() / per;
            // Four digits, and of integers half a count.
            let error_max =
                5.1e-4 * truth.abs().max(1e-12) + 0.6 * signal.scale.abs() * f64::from(signal.is_integer);
            assert!((found - truth).abs() <= error_max, "{what}: {column} is {cell}, and should be {truth}");
        }
    }
    check_levels(&expected, &what);
    let elsewhere = [
        ("a viewer on another host", viewer_says(&link, signal, keys, &expected)),
        ("the page", page_says(&link, signal, keys, &expected)),
    ];
    for (front_end, said) in elsewhere {
        let (said, expected) = (Value::Object(said), Value::Object(expected.clone()));
        if let Some(difference) = difference("", &said, &expected) {
            panic!("{what}: {front_end} says {difference}");
        }
    }
    #[cfg(feature = "terminal")]
    {
        let screen = crate::term::screen(&mut model, 300, 100);
        for cell in cells(&expected) {
            assert!(screen.contains(&cell), "{what}: {cell} in the terminal\n{screen}");
        }
        // Its axis stands left of the spectrum.
        let axis = screen.lines().filter_map(|line| line.trim_start_matches(['"', ' ']).split_once(' '));
        let axis = axis.filter(|(level, rest)| level.parse::<i32>().is_ok() && rest.starts_with("dBFS "));
        assert!(!model.controls.show.spectrum || axis.count() >= 3, "{what}: levels in dBFS in\n{screen}");
    }
    #[cfg(feature = "window")]
    {
        let (labels, columns) = crate::window::labels(link.another(), options(signal, keys), keys);
        // Measurements cover whole columns, so the reference has as many.
        let mut model = ViewModel::new(link.another(), options(signal, keys), crate::png::encode);
        press(&mut model, keys, columns, || {});
        for cell in cells(&said(&mut model)) {
            assert!(
                labels.iter().any(|label| label.contains(&cell)),
                "{what}: {cell} in the window: {labels:?}"
            );
        }
        let axis = labels.iter().filter_map(|label| label.strip_suffix(" dBFS")?.parse::<i32>().ok());
        assert!(!model.controls.show.spectrum || axis.count() >= 3, "{what}: levels in dBFS in {labels:?}");
    }
}

/// Axes, bars and peaks state levels in the unit of the table of signals.
fn check_levels(said: &Map<String, Value>, what: &str) {
    let unit =
        |words: &Value| words.as_str().unwrap().rsplit_once(' ').map_or(String::new(), |it| it.1.into());
    let panes = ["spectrum", "waterfall"].map(|pane| &said[pane]);
    let axes = panes.iter().flat_map(|pane| pane["levels"].as_array().into_iter().flatten());
    let peaks = said["spectrum"]["peaks"].as_array().into_iter().flatten().map(|peak| &peak["words"]);
    for words in axes.map(|label| &label[1]).chain(peaks) {
        assert_eq!(unit(words), "dBFS", "{what}: {words}");
    }
    let mut tables = said["tables"].as_array().unwrap().iter();
    if let Some(signals) = tables.find(|table| table["name"] == "signals") {
        let power = &signals["rows"][0][1][1];
        assert_eq!(unit(power), "dBFS", "{what}: {signals}");
    }
}

#[test]
fn every_front_end_says_the_same_of_each_setting() {
    for signal in &SIGNALS {
        SETTINGS.iter().for_each(|keys| check(signal, keys));
    }
}
