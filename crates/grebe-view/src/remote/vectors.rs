//! Encoded messages and their contents. The browser's decoder reads the same file (`ci/page.py`).

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use grebe_frame::{BatchPool, Header, SampleFormat};
use grebe_scope::{Coverage, Peak};
use serde_json::{Value, json};

use super::bytes::Writer;
use super::items::LatestItems;
use super::picture::Before;
use super::pieces::Pieces;
use super::{PICTURE, PIECES};
use crate::data::core::ScopeCore;
use crate::data::finding::{FindingNews, FoundEvent};
use crate::data::lane::{LaneId, Part};
use crate::data::listening::Sound;
use crate::data::persistence::{LaneDensity, PersistenceView};
use crate::data::picture::{LaneColumns, Picture};
use crate::data::spectrum::{ChannelSpectrum, Sampled, SpectrumView, WaterfallView};
use crate::data::trigger::{TriggerMode, TriggerSettings};
use crate::data::viewport::{SpectrumSettings, Viewport, Window};
use crate::testing::batch;

/// An end that writes messages and notes their contents.
#[derive(Default)]
struct Ours {
    number: u64,
    before: Before,
    stock: LatestItems,
    pieces: Pieces,
    messages: Vec<Value>,
}

impl Ours {
    fn write(&mut self, mut picture: Picture) {
        self.number += 1;
        // The picture's clock is not under test.
        (picture.newest_ts_ns, picture.newest_arrival_ns) = (5_000_000, 7_000_000);
        for lane in &mut picture.lanes {
            lane.mean = 12.5;
        }
        let (viewport, server_ns) = (self.number + 40, 9_000_000);
        let expected = expected(&picture, viewport);
        self.stock.take_in(&picture, viewport);
        let mut out = Writer::default();
        out.u8(PICTURE);
        out.varint(self.number);
        self.before.write(&mut picture, viewport, server_ns, &mut out);
        // The first pieces travel with it, the rest follows.
        self.pieces.write(&mut self.stock, 200, &mut out);
        self.messages.push(json!({ "bytes": hex(&out.bytes), "picture": expected }));
        self.write_pieces();
        let last = self.messages.len() - 1;
        self.messages[last]["items"] = items(&picture);
    }

    fn write_pieces(&mut self) {
        loop {
            let mut out = Writer::default();
            out.u8(PIECES);
            out.varint(self.number + 1);
            if !self.pieces.write(&mut self.stock, 4000, &mut out) {
                break;
            }
            self.number += 1;
            self.messages.push(json!({ "bytes": hex(&out.bytes) }));
        }
    }

    /// Adds a sound.
    fn hear(&mut self, sound: Sound) {
        let expected = json!({ "isLive": sound.is_live, "rate": sound.rate_hz, "samples": sound.samples });
        self.stock.put_sound(sound);
        self.write_pieces();
        let last = self.messages.len() - 1;
        self.messages[last]["sound"] = expected;
    }

    /// Adds search results.
    fn find(&mut self, number: u64, news: FindingNews) {
        let event = |it: &FoundEvent| {
            let lane = it.lane.map(|lane| lane.to_string());
            json!({ "index": it.index, "length": it.length_samples, "lane": lane })
        };
        let events: Vec<Value> = news.events.iter().map(event).collect();
        let FindingNews { found, searched_samples, all_samples, ended, .. } = news.clone();
        self.stock.put_found(number, news);
        self.write_pieces();
        let last = self.messages.len() - 1;
        self.messages[last]["found"] = json!({
            "number": number, "events": events, "found": found, "searched": searched_samples, "all": all_samples, "ended": ended,
        });
    }
}

#[test]
fn the_browser_reads_what_is_written() {
    let mut ours = Ours::default();
    whole_numbers(&mut ours);
    floating_point(&mut ours);
    made_up_items(&mut ours);
    let text = serde_json::to_string(&ours.messages).unwrap().replace("},{\"bytes\"", "},\n{\"bytes\"");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../grebe-serve/tests/vectors.json");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text + "\n").unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    // The order of keys depends on features of the JSON library, so compare values.
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert!(
        read(&kept) == read(&text),
        "messages are written in another way than {} has them: a page of another version could not read them. \
         UPDATE_SNAPSHOTS=1 writes it anew, and the protocol's number has to grow",
        path.display()
    );
}

/// Columns that stay, move, come and go, with a gap, a trigger, and widely spaced samples.
fn whole_numbers(ours: &mut Ours) {
    let mut core = ScopeCore::new(4 << 20);
    let mut rng = grebe_testing::Rng::with_seed(5);
    let noise: Vec<i16> = (0..997).map(|_| (rng.f64() * 60_000.0) as i16).collect();
    for block in (0..60).filter(|block| *block != 31) {
        let value = |channel: usize, index: u64| match channel {
            0 => noise[(index % 997) as usize],
            _ => (index % 250) as i16 * 3 - 375,
        };
        core.ingest(&batch(block * 100, 2, 100, 1e4, value), 1).unwrap();
    }
    let base = Viewport { span: Some(0.25), overview: Some(30), ..Viewport::latest(48) };
    let mut answer = |viewport: &Viewport| core.answer(viewport, 1);
    ours.write(answer(&base));
    for at in [4000.0, 4040.0, 4040.0] {
        ours.write(answer(&Viewport { window: Window::Ending { at }, ..base.clone() }));
    }
    ours.write(answer(&Viewport { span: Some(2.0), ..base.clone() }));
    let triggered = TriggerSettings {
        level: Some(10.0),
        lane: LaneId::real(1),
        ..TriggerSettings::new(TriggerMode::Normal)
    };
    ours.write(answer(&Viewport { trigger: Some(triggered), ..base.clone() }));
    let close = Viewport { window: Window::Ending { at: 3110.0 }, span: Some(0.0024), ..base };
    ours.write(answer(&Viewport {
        cursors: Some(crate::data::viewport::CursorTimes { times: [-0.001, 0.0], from: None }),
        ..close
    }));
}

/// Fractional, infinite and NaN values.
fn floating_point(ours: &mut Ours) {
    let mut core = ScopeCore::new(4 << 20);
    let mut rng = grebe_testing::Rng::with_seed(6);
    let header = |first: u64| Header {
        sequence: first / 100,
        producer_ts_ns: 1_000 + first,
        channel_count: 1,
        format: SampleFormat::F32,
        block_length_samples: 100,
        sample_rate_hz: 1e4,
        first_sample_index: first,
        ..Header::default()
    };
    for first in (0..3000).step_by(100) {
        let header = header(first);
        let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
        let fill = |_: usize, samples: &mut [f32]| {
            samples.iter_mut().for_each(|sample| *sample = (rng.f64() * 2.0 - 1.0) as f32 * 1e-3);
            if first == 1000 {
                samples[..3].copy_from_slice(&[f32::INFINITY, -0.0, 1e30]);
            }
        };
        batch.push::<f32>(&header, fill).unwrap();
        core.ingest(&batch.freeze(), 1).unwrap();
    }
    let base = Viewport { span: Some(0.2), ..Viewport::latest(40) };
    for viewport in [
        base.clone(),
        Viewport { window: Window::Ending { at: 1900.0 }, ..base.clone() },
        Viewport { window: Window::Ending { at: 1950.0 }, ..base.clone() },
        Viewport { span: Some(0.002), window: Window::Ending { at: 1010.0 }, ..base },
    ] {
        ours.write(core.answer(&viewport, 1));
    }
}

/// Items that a real computation makes differently on each machine: spectra, a moving waterfall, a density.
fn made_up_items(ours: &mut Ours) {
    let level = |line: usize| match line % 37 {
        3 => f32::NEG_INFINITY,
        5 => f32::NAN,
        rest => -110.0 + (rest * 7 % 13) as f32 * 0.625,
    };
    for shift in [0usize, 3, 90] {
        let waterfall = WaterfallView {
            channel: 1,
            width: 24,
            band: (0.0, if shift == 3 { 0.125 } else { 0.5 }),
            cells: (0..40)
                .flat_map(|row| (0..24).map(move |x| level(row + 40 - shift.min(40) + x * 5)))
                .collect(),
            span_samples: 1e5,
            sampled: (shift == 90).then_some(Sampled { done: 3, all: 9, is_summary: false }),
            number: shift as u64 + 1,
        };
        let spectrum = SpectrumView {
            settings: SpectrumSettings::default(),
            size: 256,
            joined: 1,
            is_two_sided: shift == 90,
            channels: vec![ChannelSpectrum {
                channel: 2,
                dbfs: (0..129).map(|line| level(line + shift)).collect(),
                hold_dbfs: if shift == 3 {
                    (0..129).map(|line| level(line) + 20.5).collect()
                } else {
                    Vec::new()
                },
                peaks: vec![Peak { line: 17.25, dbfs: -3.5 }],
            }],
            waterfall: Some(waterfall),
        };
        let density = PersistenceView {
            lanes: vec![LaneDensity {
                lane: LaneId::real(3),
                width: 20,
                cells: (0..200).map(|n| if n % 9 == shift % 9 { (n * 5) as u8 } else { 0 }).collect(),
            }],
            records: 77,
            fraction: 0.5,
            number: shift as u64,
        };
        ours.write(Picture {
            spectrum: Some(Arc::new(spectrum)),
            persistence: Some(Arc::new(density)),
            ..Picture::waiting()
        });
    }
    ours.write(Picture { is_ended: true, ..Picture::waiting() });
    let event = |n: u64| FoundEvent {
        index: (n * n * 7_919_003) % 9_007_199_254_740_991,
        length_samples: n % 3 * 1000,
        lane: (!n.is_multiple_of(4)).then_some(LaneId {
            channel: n as usize,
            part: if n.is_multiple_of(2) { Part::Real } else { Part::Magnitude },
        }),
    };
    let news = FindingNews {
        events: (0..200).map(event).collect(),
        found: 12_345,
        searched_samples: 1 << 40,
        all_samples: 360_000_000_000,
        ended: None,
    };
    ours.find(3, news.clone());
    let samples = (0..500).map(|n: i32| (n * n * 37 % 65_536 - 32_768) as i16).collect();
    let sound = Sound { rate_hz: 16_000, samples, ..Sound::default() };
    ours.hear(sound.clone());
    ours.hear(Sound { is_live: true, ..sound });
    ours.find(3, FindingNews { events: Vec::new(), ended: Some("20 µs were searched".into()), ..news });
}

fn expected(picture: &Picture, viewport: u64) -> Value {
    json!({
        "answers": viewport,
        "isEnded": picture.is_ended,
        "leftIndex": picture.first_column as f64 * picture.grid.samples_per_column(),
        "oldestIndex": picture.oldest_index,
        "nextIndex": picture.next_index,
        "lanes": picture.lanes.iter().map(lane).collect::<Vec<_>>(),
        "trigger": picture.trigger.map(|it| json!({ "level": it.level, "upper": it.upper, "at": it.at })),
    })
}

fn lane(data: &LaneColumns) -> Value {
    let runs = data.line.is_some().then(|| {
        let run = |(first, samples): &(u64, Vec<f32>)| json!({ "first": first, "samples": bits(samples) });
        data.line_runs.iter().map(run).collect::<Vec<_>>()
    });
    json!({
        "lane": data.lane.to_string(),
        "min": bits(&data.columns.iter().map(|it| it.min).collect::<Vec<_>>()),
        "max": bits(&data.columns.iter().map(|it| it.max).collect::<Vec<_>>()),
        "coverage": data.columns.iter().map(|it| coverage(it.coverage)).collect::<Vec<_>>(),
        "isClipped": data.is_clipped,
        "mean": data.mean,
        "atCursors": data.at_cursors,
        "runs": runs,
    })
}

/// The items, once all pieces have arrived.
fn items(picture: &Picture) -> Value {
    let steps = |levels: &[f32], per_db: f32| -> Vec<Option<f32>> {
        // JSON has no NaN: silence and loss are both null.
        levels.iter().map(|level| level.is_finite().then(|| (level * per_db).round() / per_db)).collect()
    };
    let spectrum = picture.spectrum.as_ref().map(|view| {
        let channel = |it: &ChannelSpectrum| {
            let peaks: Vec<_> = it.peaks.iter().map(|peak| json!({ "line": peak.line, "dbfs": peak.dbfs })).collect();
            json!({ "channel": it.channel, "dbfs": steps(&it.dbfs, 8.0), "hold": steps(&it.hold_dbfs, 8.0), "peaks": peaks })
        };
        let channels: Vec<_> = view.channels.iter().map(channel).collect();
        json!({ "size": view.size, "isTwoSided": view.is_two_sided, "channels": channels })
    });
    let waterfall = picture.spectrum.as_ref().and_then(|view| view.waterfall.as_ref()).map(|it| {
        let sampled = it.sampled.map(|it| json!({ "done": it.done, "all": it.all }));
        json!({ "channel": it.channel, "width": it.width, "band": [it.band.0, it.band.1], "cells": steps(&it.cells, 2.0), "spanSamples": it.span_samples, "sampled": sampled })
    });
    let density = picture.persistence.as_ref().map(|view| {
        let lane = |it: &LaneDensity| json!({ "lane": it.lane.to_string(), "width": it.width, "cells": hex(&it.cells) });
        let lanes: Vec<_> = view.lanes.iter().map(lane).collect();
        json!({ "records": view.records, "fraction": view.fraction, "lanes": lanes })
    });
    let overview = picture.overview.as_ref().map(|view| {
        let lane = |(lane, columns): &(LaneId, Vec<grebe_scope::Column<f32>>)| {
            let [min, max] = [|it: &grebe_scope::Column<f32>| it.min, |it: &grebe_scope::Column<f32>| it.max];
            let [min, max] = [min, max].map(|of| bits(&columns.iter().map(of).collect::<Vec<_>>()));
            json!({ "lane": lane.to_string(), "min": min, "max": max })
        };
        let lanes: Vec<_> = view.lanes.iter().map(lane).collect();
        json!({ "leftIndex": view.left_index, "spanSamples": view.span_samples, "lanes": lanes })
    });
    json!({ "spectrum": spectrum, "waterfall": waterfall, "density": density, "overview": overview })
}

fn coverage(coverage: Coverage) -> u8 {
    coverage as u8
}

/// All bits, little-endian, in hexadecimal digits.
fn bits(values: &[f32]) -> String {
    hex(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}
