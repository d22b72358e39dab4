//! Settings, without a front end.

use super::*;
use crate::data::picture::StreamInfo;
use crate::data::viewport::Window;

fn controls() -> Controls {
    Controls::new()
}

fn picture() -> Picture {
    let stream = StreamInfo {
        format: Default::default(),
        channels: 2,
        rate_hz: 1000.0,
        block_samples: 10,
        generator_drops: 0,
    };
    Picture {
        stream: Some(stream),
        left_index: 9_000.0,
        span_samples: 1000.0,
        next_index: 10_000,
        ..Picture::waiting()
    }
}

#[test]
fn pausing_holds_the_right_edge_and_running_lets_go() {
    let mut controls = controls();
    controls.apply(Action::Pause, &picture());
    assert_eq!(controls.viewport(&picture(), 100).window, Window::Ending { at: 10_000.0 });
    controls.apply(Action::Pause, &picture());
    assert_eq!(controls.viewport(&picture(), 100).window, Window::Latest);
}

#[test]
fn spans_step_and_zooming_keeps_what_is_under_the_pointer() {
    let mut controls = controls();
    controls.apply(Action::Shorter, &picture());
    assert_eq!(controls.viewport(&picture(), 100).span, Some(0.5));
    assert_eq!(controls.viewport(&picture(), 100).window, Window::Latest);
    controls.apply(Action::Pause, &picture());
    controls.time.zoom(&picture(), true, 0.25);
    // The span is 500 samples by now, and its quarter, sample 9625, stays where it is: 9625 + 0.75 * 200.
    assert_eq!(controls.viewport(&picture(), 100).window, Window::Ending { at: 9_775.0 });
}

#[test]
fn panning_stays_near_the_stream() {
    let mut controls = controls();
    for _ in 0..100 {
        controls.apply(Action::Earlier, &picture());
    }
    let Window::Ending { at } = controls.viewport(&picture(), 100).window else {
        panic!("panning holds the picture")
    };
    assert!((500.0..=9_500.0).contains(&at), "{at}");
    controls.apply(Action::Live, &picture());
    assert!(!controls.time.is_held());
}

#[test]
fn channels_switch_by_number() {
    let mut controls = controls();
    controls.apply(Action::Channel(1), &picture());
    let mask = controls.viewport(&picture(), 1).lanes;
    assert!(mask.has_channel(0) && !mask.has_channel(1) && mask.has_channel(7));
}
