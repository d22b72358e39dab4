use grebe_frame::BatchPool;
use grebe_scope::Coverage;

use super::*;
use crate::data::viewport::ChannelMask;
use crate::testing::{batch, sine_batch};

/// All of a test's samples stay samples.
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
        assert_eq!(picture.channels.len(), 3);
        for data in &picture.channels {
            assert_eq!(data.columns.len(), columns);
            for (column, number) in data.columns.iter().zip(picture.first_column..) {
                let span = picture.grid.span(number as u64);
                let values = span.start.min(200_000)..span.end.min(200_000);
                let (min, max) = values
                    .map(|index| noise(data.channel, index))
                    .fold((i16::MAX, i16::MIN), |(min, max), v| (min.min(v), max.max(v)));
                assert_eq!(
                    (column.min, column.max),
                    (min, max),
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
        for (column, number) in picture.channels[0].columns.iter().zip(picture.first_column..) {
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
    let lost: Vec<usize> = (0..70).filter(|&at| picture.channels[0].columns[at].has_gap()).collect();
    assert_eq!(lost, (30..50).collect::<Vec<_>>());
    assert_eq!((picture.counts.lost_frames, picture.counts.lost_samples), (2, 200));
}

#[test]
fn late_and_duplicate_frames_change_nothing() {
    let mut core = ScopeCore::new(BUDGET);
    for block in [0, 1, 3] {
        core.ingest(&sine_batch(block * 100, 1, 100, 1e3), 1).unwrap();
    }
    let before = core.answer(&viewport(0.4, 40), 1).channels[0].columns.clone();
    core.ingest(&sine_batch(200, 1, 100, 1e3), 1).unwrap();
    core.ingest(&sine_batch(100, 1, 100, 1e3), 1).unwrap();
    let after = core.answer(&viewport(0.4, 40), 1);
    assert_eq!(after.channels[0].columns, before);
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
    assert_eq!(picture.channels.len(), 4);
    assert_eq!(picture.next_index, 100);
    let coverage: Vec<Coverage> = picture.channels[3].columns.iter().map(|column| column.coverage).collect();
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
    assert!(picture.channels[0].columns[..90].iter().all(Column::is_empty));
    assert!(picture.channels[0].columns[90..].iter().all(Column::is_complete));
    assert_eq!((picture.left_index, picture.right_index()), (-900.0, 100.0));
}

#[test]
fn only_the_channels_asked_for_are_answered() {
    let mut core = ScopeCore::new(BUDGET);
    core.ingest(&sine_batch(0, 4, 100, 1e3), 1).unwrap();
    let channels = ChannelMask::NONE.toggled(2).toggled(0).toggled(7);
    let picture = core.answer(&Viewport { channels, ..viewport(0.1, 10) }, 1);
    assert_eq!(picture.channels.iter().map(|data| data.channel).collect::<Vec<_>>(), [0, 2]);
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
    assert_eq!(core.answer(&viewport(100.0, 0), 1).channels[0].columns.len(), 1);
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
    assert!(ended.is_ended && ended.channels[0].columns.iter().all(Column::is_complete));
    // Its frames are numbered from 0, and its clock is far behind the one before.
    core.ingest(&sine_batch(0, 1, 100, 1e3), 1).unwrap();
    let next = core.answer(&viewport(0.1, 10), 1);
    assert_eq!((next.is_ended, next.next_index, next.streams), (false, 100, 2));
    assert_eq!(next.counts.late_frames, 0);
}

#[test]
fn what_cannot_be_shown_is_said_and_a_stream_that_changes_its_format_begins_anew() {
    fn feed<T: grebe_frame::Sample>(core: &mut ScopeCore, sequence: u64, channels: u32) {
        let header = Header {
            sequence,
            channel_count: channels,
            format: T::FORMAT,
            block_length_samples: 10,
            sample_rate_hz: 1e3,
            first_sample_index: sequence * 10,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
        batch.push::<T>(&header, |_, samples| samples.fill(T::default())).unwrap();
        core.ingest(&batch.freeze(), 1).unwrap();
    }
    let mut core = ScopeCore::new(1 << 20);
    let viewport = Viewport { span: Some(0.01), ..Viewport::latest(10) };
    feed::<i16>(&mut core, 0, 64);
    let picture = core.answer(&viewport, 1);
    assert_eq!((picture.channels.len(), picture.not_shown), (8, Some(NotShown::Channels { sent: 64 })));
    feed::<f32>(&mut core, 1, 2);
    let picture = core.answer(&viewport, 1);
    assert_eq!((picture.channels.len(), picture.not_shown), (0, Some(NotShown::Format(SampleFormat::F32))));
    assert_eq!(picture.stream.unwrap().rate_hz, 1e3);
    feed::<i16>(&mut core, 2, 2);
    let picture = core.answer(&viewport, 1);
    assert_eq!((picture.channels.len(), picture.not_shown), (2, None));
    assert!(!picture.channels[0].columns[9].is_empty());
}
