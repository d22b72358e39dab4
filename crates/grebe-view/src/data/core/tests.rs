use grebe_frame::{BatchPool, Complex, SampleFormat};
use grebe_scope::{Column, Coverage};

use super::*;
use crate::data::lane::{LaneId, LaneMask, Part};
use crate::data::viewport::Window;
use crate::testing::{batch, sine_batch};

/// A budget large enough to hold all samples of a test.
const BUDGET: usize = 16 << 20;

fn noise(channel: usize, index: u64) -> i16 {
    let mut x = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (channel as u64) << 32;
    x ^= x >> 29;
    (x.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 48) as i16
}

fn viewport(span: f64, columns: usize) -> Viewport {
    Viewport { span: Some(span), ..Viewport::latest(columns) }
}

#[test]
fn every_column_is_the_brute_force_extreme_of_its_span() {
    let mut core = ScopeCore::new(BUDGET);
    for first in (0..200_000).step_by(500) {
        core.ingest(&batch(first, 3, 500, 1e5, noise), 1).unwrap();
    }
    for (span, columns) in [(1.0, 700), (0.02, 1280), (2.0, 333), (0.1, 1000)] {
        let picture = core.answer(&viewport(span, columns), 1);
        assert_eq!(picture.lanes.len(), 3);
        for data in &picture.lanes {
            assert_eq!(data.columns.len(), columns);
            for (column, number) in data.columns.iter().zip(picture.first_column..) {
                let span = picture.grid.span(number as u64);
                let values = span.start.min(200_000)..span.end.min(200_000);
                let (min, max) = values
                    .map(|index| noise(data.lane.channel, index))
                    .fold((i16::MAX, i16::MIN), |(min, max), v| (min.min(v), max.max(v)));
                assert_eq!(
                    (column.min, column.max),
                    (min.into(), max.into()),
                    "column {number} of {columns} over {span:?}"
                );
            }
        }
    }
}

#[test]
fn scrolling_by_single_samples_changes_no_column() {
    let mut core = ScopeCore::new(BUDGET);
    core.ingest(&batch(0, 1, 20_000, 1e4, noise), 1).unwrap();
    let mut seen = std::collections::HashMap::new();
    for at in 10_000..10_200 {
        let window = Window::Ending { at: f64::from(at) };
        let picture = core.answer(&Viewport { window, ..viewport(0.37, 500) }, 1);
        for (column, number) in picture.lanes[0].columns.iter().zip(picture.first_column..) {
            assert_eq!(seen.entry(number).or_insert(*column), column, "column {number}");
        }
    }
    assert!(seen.len() > 500);
}

#[test]
fn a_gap_is_drawn_where_it_happened_and_counted() {
    let mut core = ScopeCore::new(BUDGET);
    for block in [0, 1, 2, 5, 6] {
        core.ingest(&sine_batch(block * 100, 1, 100, 1e3), 1).unwrap();
    }
    let picture = core.answer(&viewport(0.7, 70), 1);
    let lost: Vec<usize> = (0..70).filter(|&at| picture.lanes[0].columns[at].has_gap()).collect();
    assert_eq!(lost, (30..50).collect::<Vec<_>>());
    assert_eq!((picture.counts.lost_frames, picture.counts.lost_samples), (2, 200));
}

#[test]
fn late_and_duplicate_frames_change_nothing() {
    let mut core = ScopeCore::new(BUDGET);
    for block in [0, 1, 3] {
        core.ingest(&sine_batch(block * 100, 1, 100, 1e3), 1).unwrap();
    }
    let before = core.answer(&viewport(0.4, 40), 1).lanes[0].columns.clone();
    core.ingest(&sine_batch(200, 1, 100, 1e3), 1).unwrap();
    core.ingest(&sine_batch(100, 1, 100, 1e3), 1).unwrap();
    let after = core.answer(&viewport(0.4, 40), 1);
    assert_eq!(after.lanes[0].columns, before);
    assert_eq!((after.counts.late_frames, after.counts.duplicate_frames), (1, 1));
}

#[test]
fn a_stream_that_begins_anew_begins_a_new_picture() {
    let mut core = ScopeCore::new(BUDGET);
    for block in 0..50 {
        core.ingest(&sine_batch(block * 100, 1, 100, 1e3), 1).unwrap();
    }
    // Another number of channels, another rate.
    core.ingest(&sine_batch(0, 4, 100, 2e3), 1).unwrap();
    let picture = core.answer(&viewport(0.1, 10), 1);
    assert_eq!(picture.lanes.len(), 4);
    assert_eq!(picture.next_index, 100);
    let coverage: Vec<Coverage> = picture.lanes[3].columns.iter().map(|column| column.coverage).collect();
    assert_eq!(coverage[..5], [Coverage::Outside; 5], "nothing of the old stream is left");
    assert!(coverage[5..].iter().all(|&coverage| coverage == Coverage::Complete));
}

#[test]
fn before_the_stream_there_is_nothing() {
    let mut core = ScopeCore::new(BUDGET);
    assert!(core.answer(&viewport(1.0, 100), 1).stream.is_none());
    core.ingest(&sine_batch(0, 1, 100, 1e3), 1).unwrap();
    let picture = core.answer(&viewport(1.0, 100), 1);
    assert_eq!(picture.first_column, -90);
    assert!(picture.lanes[0].columns[..90].iter().all(Column::is_empty));
    assert!(picture.lanes[0].columns[90..].iter().all(Column::is_complete));
    assert_eq!((picture.left_index, picture.right_index()), (-900.0, 100.0));
}

#[test]
fn only_the_channels_asked_for_are_answered() {
    let mut core = ScopeCore::new(BUDGET);
    core.ingest(&sine_batch(0, 4, 100, 1e3), 1).unwrap();
    let channels = LaneMask::NONE.toggled(2).toggled(0).toggled(7);
    let picture = core.answer(&Viewport { lanes: channels, ..viewport(0.1, 10) }, 1);
    assert_eq!(picture.lanes.iter().map(|data| data.lane.channel).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn the_end_of_the_stream_shows() {
    let mut core = ScopeCore::new(BUDGET);
    core.ingest(&sine_batch(0, 1, 100, 1e3), 1).unwrap();
    assert!(!core.answer(&viewport(0.1, 10), 1).is_ended);
    core.ingest(&batch(100, 1, 0, 1e3, noise), 1).unwrap();
    let picture = core.answer(&viewport(0.1, 10), 1);
    assert!(picture.is_ended);
    assert_eq!(picture.stream.unwrap().block_samples, 100);
}

#[test]
fn wild_viewports_are_answered() {
    let mut core = ScopeCore::new(BUDGET);
    core.ingest(&sine_batch(0, 1, 100, 0.0), 1).unwrap();
    for span in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300] {
        for at in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -1e300, 1e18, 50.0] {
            let window = Window::Ending { at };
            core.answer(&Viewport { window, ..viewport(span, usize::MAX) }, 1);
        }
    }
    assert_eq!(core.answer(&viewport(100.0, 0), 1).lanes[0].columns.len(), 1);
}

#[test]
fn gaps_are_told_with_who_lost_them() {
    let mut core = ScopeCore::new(BUDGET);
    for block in [0, 1, 4, 5, 8] {
        core.ingest(&sine_batch(block * 100, 1, 100, 1e3), 1).unwrap();
    }
    let gaps = core.answer(&viewport(0.9, 90), 1).gaps;
    let told: Vec<_> = gaps.iter().map(|gap| (gap.number, gap.start, gap.end, gap.lost_frames)).collect();
    assert_eq!(told, [(0, 200, 400, 2), (1, 600, 800, 2)]);
    assert_eq!(core.answer(&viewport(0.3, 30), 1).gaps.len(), 1, "those of the picture");
}

#[test]
fn another_rate_is_another_picture() {
    let mut core = ScopeCore::new(BUDGET);
    for block in 0..10 {
        core.ingest(&sine_batch(block * 100, 1, 100, 1e3), 1).unwrap();
    }
    core.ingest(&sine_batch(1000, 1, 100, 2e3), 1).unwrap();
    let picture = core.answer(&viewport(1.0, 100), 1);
    assert_eq!((picture.streams, picture.stream.unwrap().rate_hz), (2, 2e3));
    assert_eq!(picture.oldest_index, 1000, "what had another rate has no place on this axis");
}

#[test]
fn the_next_stream_begins_anew_whatever_its_clock_says_and_until_then_the_last_picture_stays() {
    let mut core = ScopeCore::new(BUDGET);
    for block in 50..60 {
        core.ingest(&sine_batch(block * 100, 1, 100, 1e3), 1).unwrap();
    }
    core.ingest(&batch(6000, 1, 0, 1e3, noise), 1).unwrap();
    let ended = core.answer(&viewport(0.1, 10), 1);
    assert!(ended.is_ended && ended.lanes[0].columns.iter().all(Column::is_complete));
    // Its frames count from 0, and its clock is far behind the previous stream's.
    core.ingest(&sine_batch(0, 1, 100, 1e3), 1).unwrap();
    let next = core.answer(&viewport(0.1, 10), 1);
    assert_eq!((next.is_ended, next.next_index, next.streams), (false, 100, 2));
    assert_eq!(next.counts.late_frames, 0);
}

/// A frame of `channels` channels of 100 samples at 1 kS/s.
fn frame<T: grebe_frame::Sample>(
    first: u64,
    channels: u32,
    value: impl Fn(usize, u64) -> T,
) -> grebe_frame::Batch {
    let header = Header {
        sequence: first / 100,
        channel_count: channels,
        format: T::FORMAT,
        block_length_samples: 100,
        sample_rate_hz: 1e3,
        first_sample_index: first,
        producer_ts_ns: 1_000 + first,
        ..Header::default()
    };
    let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
    let fill = |channel: usize, samples: &mut [T]| {
        samples.iter_mut().zip(first..).for_each(|(sample, index)| *sample = value(channel, index));
    };
    batch.push::<T>(&header, fill).unwrap();
    batch.freeze()
}

#[test]
fn a_stream_that_changes_its_format_begins_anew_and_every_format_is_drawn() {
    let mut core = ScopeCore::new(4 << 20);
    let viewport = viewport(0.1, 100);
    let mut first = 0;
    let shown = |core: &mut ScopeCore, batch: grebe_frame::Batch| {
        core.ingest(&batch, 1).unwrap();
        let picture = core.answer(&viewport, 1);
        let lanes = picture.lanes.iter().map(|data| (data.lane.part, data.columns[99].max));
        lanes.collect::<Vec<_>>()
    };
    let mut next = || {
        first += 100;
        first - 100
    };
    assert_eq!(shown(&mut core, frame::<i16>(next(), 1, |_, _| -7)), [(Part::Real, -7.0)]);
    assert_eq!(shown(&mut core, frame::<i8>(next(), 1, |_, _| -128)), [(Part::Real, -128.0)]);
    assert_eq!(shown(&mut core, frame::<u8>(next(), 1, |_, _| 255)), [(Part::Real, 255.0)]);
    assert_eq!(shown(&mut core, frame::<i32>(next(), 1, |_, _| 1 << 30)), [(Part::Real, 1_073_741_824.0)]);
    assert_eq!(shown(&mut core, frame::<f32>(next(), 1, |_, _| 0.25)), [(Part::Real, 0.25)]);
    assert_eq!(shown(&mut core, frame::<f64>(next(), 1, |_, _| 1e-9)), [(Part::Real, 1e-9)]);
    fn of<C: Copy>(re: C, im: C) -> impl Fn(usize, u64) -> Complex<C> {
        move |_, _| Complex { re, im }
    }
    let iq = |i, q| [(Part::I, i), (Part::Q, q)];
    assert_eq!(shown(&mut core, frame(next(), 1, of(1i8, -2))), iq(1.0, -2.0));
    assert_eq!(shown(&mut core, frame(next(), 1, of(0u8, 255))), iq(-127.5, 127.5));
    assert_eq!(shown(&mut core, frame(next(), 1, of(300i16, 4))), iq(300.0, 4.0));
    assert_eq!(shown(&mut core, frame(next(), 1, of(0.5f32, -0.5))), iq(0.5, -0.5));
    let picture = core.answer(&viewport, 1);
    assert_eq!(picture.stream.unwrap().format, SampleFormat::Cf32);
    assert_eq!((picture.streams, picture.counts.lost_frames), (10, 0));
}

#[test]
fn as_many_channels_as_a_stream_can_have_are_drawn() {
    let mut core = ScopeCore::new(64 << 20);
    for first in [0, 100, 300] {
        core.ingest(&frame::<i16>(first, 255, |channel, index| channel as i16 * 10 + (index % 10) as i16), 1)
            .unwrap();
    }
    let picture = core.answer(&viewport(0.4, 40), 1);
    assert_eq!(picture.lanes.len(), 255);
    for data in &picture.lanes {
        let low = data.lane.channel as f32 * 10.0;
        assert_eq!((data.columns[0].min, data.columns[39].max), (low, low + 9.0));
        assert!(data.columns[25].has_gap() && data.columns[25].is_empty());
    }
    let some = Viewport { lanes: LaneMask::ALL.only([7, 254]), ..viewport(0.4, 40) };
    let lanes: Vec<_> = core.answer(&some, 1).lanes.iter().map(|data| data.lane).collect();
    assert_eq!(lanes, [LaneId::real(7), LaneId::real(254)]);
}

/// A tone of amplitude 0.5 that turns by a tenth of a circle a sample, on two channels, the second half as strong.
fn tone(channel: usize, index: u64) -> Complex<f32> {
    let angle = index as f64 * 0.1 * std::f64::consts::TAU;
    let amplitude = 0.5 / (channel + 1) as f64;
    Complex { re: (amplitude * angle.cos()) as f32, im: (amplitude * angle.sin()) as f32 }
}

#[test]
fn parts_of_complex_samples_are_lanes_whenever_they_are_asked_for() {
    let all = Part::DERIVED.into_iter().fold(LaneMask::ALL, LaneMask::part_toggled);
    let asked = Viewport { lanes: all, ..viewport(1.0, 100) };
    // One scope gets viewports from the start, one only at the end, one from the middle on. All have a gap.
    let pictures = [0, 10, 5].map(|from| {
        let mut core = ScopeCore::new(4 << 20);
        for block in (0..10).filter(|&block| block != 7) {
            if block >= from {
                core.answer(&asked, 1);
            }
            core.ingest(&frame(block * 100, 2, tone), 1).unwrap();
        }
        core.answer(&asked, 1)
    });
    for picture in &pictures {
        let lanes: Vec<_> = picture.lanes.iter().map(|data| data.lane.to_string()).collect();
        let parts = ["i", "q", "magnitude", "db", "phase", "frequency"];
        let expected: Vec<_> = [1, 2].iter().flat_map(|n| parts.map(|part| format!("{n}.{part}"))).collect();
        assert_eq!(lanes, expected);
        for data in &picture.lanes {
            let amplitude = 0.5 / (data.lane.channel + 1) as f32;
            let (low, high) = match data.lane.part {
                Part::Magnitude => (amplitude, amplitude),
                Part::MagnitudeDb => (20.0 * amplitude.log10(), 20.0 * amplitude.log10()),
                Part::Frequency => (0.1, 0.1),
                Part::Phase => (-std::f32::consts::PI, std::f32::consts::PI),
                _ => (-amplitude, amplitude),
            };
            let is_oscillating = matches!(data.lane.part, Part::I | Part::Q | Part::Phase);
            for (place, column) in data.columns.iter().enumerate() {
                assert_eq!(column.has_gap(), (70..80).contains(&place), "{} {place}", data.lane);
                if column.has_gap() {
                    continue;
                }
                // Ten samples a column are one turn.
                let reach = if is_oscillating { (high - low) * 0.11 } else { 1e-3 };
                assert!((column.min - low).abs() <= reach, "{} {place} {column:?}", data.lane);
                assert!((column.max - high).abs() <= reach, "{} {place} {column:?}", data.lane);
            }
        }
    }
    let columns =
        |picture: &Picture| picture.lanes.iter().map(|data| data.columns.clone()).collect::<Vec<_>>();
    assert_eq!(columns(&pictures[0]), columns(&pictures[1]), "made later, they are the same");
    assert_eq!(columns(&pictures[0]), columns(&pictures[2]));
}

#[test]
fn a_burst_triggers_by_its_magnitude_though_its_lane_is_not_shown() {
    use crate::data::trigger::{TriggerMode, TriggerSettings};
    let burst = |_: usize, index: u64| {
        let sample = tone(0, index);
        if (index / 50) % 6 == 4 { sample } else { Complex { re: sample.re * 0.01, im: sample.im * 0.01 } }
    };
    let lane = LaneId { channel: 0, part: Part::Magnitude };
    let settings = TriggerSettings { lane, level: Some(0.25), ..TriggerSettings::new(TriggerMode::Normal) };
    let asked = Viewport { trigger: Some(settings), ..viewport(0.1, 100) };
    let mut core = ScopeCore::new(4 << 20);
    for block in 0..20 {
        core.ingest(&frame(block * 100, 1, burst), 1).unwrap();
        core.answer(&asked, 1);
    }
    let picture = core.answer(&asked, 1);
    assert_eq!(picture.lanes.len(), 2, "I and Q");
    let found: Vec<f64> = picture.triggers.iter().map(|at| at % 300.0).collect();
    assert!(found.len() >= 5 && found.iter().all(|at| (199.0..=200.0).contains(at)), "{found:?}");
}
