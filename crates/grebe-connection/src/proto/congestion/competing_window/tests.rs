use super::classifier::sample;
use super::*;

fn window() -> CompetingWindow {
    CompetingWindow::new(0, 600_000.0, 40_000, false)
}

#[test]
fn a_loss_is_answered_once_a_round_trip() {
    let mut window = window();
    assert!(window.on_sample(&sample(10, 40_000, 1), |_| 0.0));
    let reduced = window.window_bytes();
    assert!((reduced / (600_000.0 * CUBIC_BETA) - 1.0).abs() < 0.01, "{reduced}");
    assert!(window.on_sample(&sample(60, 40_000, 5), |_| 0.0));
    assert_eq!(window.window_bytes(), reduced);
    assert!(window.on_sample(&sample(260, 40_000, 0), |_| 0.0));
    assert!(window.window_bytes() > reduced);
}

#[test]
fn the_paths_own_loss_is_no_reason_to_back_off() {
    let mut window = window();
    for now_ms in (100..1_000).step_by(50) {
        assert!(window.on_sample(&sample(now_ms, 40_000, 2), |packets| packets as f64 * 0.03));
    }
    assert!(window.window_bytes() >= 600_000.0);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut window = window();
    for now_ms in (100..9_000).step_by(50) {
        assert!(
            window
                .on_sample(&WindowSample { in_flight_bytes: 100_000, ..sample(now_ms, 40_000, 0) }, |_| 0.0)
        );
    }
    assert_eq!(window.window_bytes(), 600_000.0);
}

#[test]
fn it_ends_when_the_queue_is_gone_for_longer_than_bbr_dips() {
    let ends_after_ms = |empty_ms: u64| {
        let mut window = window();
        (50..5_000).step_by(50).find(|now_ms| {
            let queue_us = if *now_ms >= 300 && *now_ms < 300 + empty_ms { 200 } else { 40_000 };
            !window.on_sample(&sample(*now_ms, queue_us, 0), |_| 0.0)
        })
    };
    assert_eq!(ends_after_ms(500), None, "BBR dips");
    assert_eq!(ends_after_ms(3_000), Some(300 + 650 + 50));
}

#[test]
fn it_ends_when_the_queue_goes_with_our_own_part() {
    let mut window = window();
    assert!(window.on_sample(&sample(10, 40_000, 0), |_| 0.0));
    assert!(window.on_sample(&sample(20_100, 40_000, 0), |_| 0.0));
    assert!(window.window_bytes() < 300_000.0, "a test: {}", window.window_bytes());
    assert!(window.on_sample(&sample(20_150, 20_000, 0), |_| 0.0));
    assert!(!window.on_sample(&sample(20_250, 500, 0), |_| 0.0));
}

#[test]
fn a_flow_that_does_not_back_off_leaves_us_half() {
    let mut window = window();
    for now_ms in (100..10_000).step_by(50) {
        let lost = u64::from(now_ms % 500 == 0);
        assert!(window.on_sample(&sample(now_ms, 40_000, lost), |_| 0.0));
    }
    assert!(window.half_share.is_some());
    let half = 12e6 * 0.045;
    let window_bytes = window.window_bytes();
    assert!((0.9 * half..=half).contains(&window_bytes), "{window_bytes}");
}

#[test]
fn one_that_never_dips_is_backed_off_to_again() {
    let mut window = window();
    for now_ms in (100..30_000).step_by(50) {
        let lost = u64::from(now_ms % 500 == 0);
        assert!(window.on_sample(&sample(now_ms, 40_000, lost), |_| 0.0));
    }
    assert!(window.half_share.is_none());
    assert!(window.window_bytes() < 0.5 * 600_000.0, "{}", window.window_bytes());
}

const PACKETS: [u64; 2] = [98, 2];

fn after_rounds(
    half_share: &mut HalfShare,
    sample: &WindowSample,
    mut segments: f64,
    packets: [u64; 2],
    rounds: u32,
) -> f64 {
    for _ in 0..rounds {
        segments = half_share.on_round(sample, &Classifier::new(50_000, false), segments, packets);
    }
    segments
}

#[test]
fn the_window_goes_to_half_and_stays_there() {
    let sample = sample(1_000, 50_000, 0);
    let mut half_share = HalfShare::new(0);
    let half = 12e6 * 0.05 / SEGMENT_BYTES;
    let early = after_rounds(&mut half_share, &sample, 40.0, PACKETS, 20);
    assert!((60.0..0.5 * half).contains(&early), "in small steps: {early}");
    let late = after_rounds(&mut half_share, &sample, early, PACKETS, 300);
    assert!((0.9 * half..half).contains(&late), "{late} of {half}");
    let above = after_rounds(&mut half_share, &sample, 2.0 * half, PACKETS, 300);
    assert!((above - late).abs() < 1.0, "{above}");
}

#[test]
fn several_that_lose_much_come_to_the_same_window() {
    let sample = sample(1_000, 50_000, 0);
    let [great, small] =
        [400.0, 20.0].map(|segments| after_rounds(&mut HalfShare::new(0), &sample, segments, [85, 15], 200));
    assert!(great < 100.0, "{great}");
    assert!((great - small).abs() < 20.0, "{great} and {small}");
}

#[test]
fn a_window_on_a_path_of_unknown_capacity_is_not_reduced() {
    let sample = WindowSample { is_capacity_known: false, ..sample(1_000, 50_000, 0) };
    let half = 12e6 * 0.05 / SEGMENT_BYTES;
    let segments = after_rounds(&mut HalfShare::new(0), &sample, 2.0 * half, PACKETS, 300);
    assert_eq!(segments, 2.0 * half);
}
