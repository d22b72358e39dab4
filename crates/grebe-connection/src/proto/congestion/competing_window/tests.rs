use super::*;

fn window() -> CompetingWindow {
    CompetingWindow::new(0, 600_000.0)
}

fn sample(now_ms: u64, is_queue_empty: bool, lost: u64) -> WindowSample {
    WindowSample {
        now_us: now_ms * 1_000,
        rtt_us: 100_000,
        min_rtt_us: 50_000,
        is_queue_empty,
        acked: 100,
        lost,
        round_ended: now_ms.is_multiple_of(100),
        in_flight_bytes: 600_000,
        path_bytes: 300_000.0,
        capacity: 12e6,
        base_loss: 0.0,
    }
}

#[test]
fn a_loss_is_answered_once_a_round_trip() {
    let mut window = window();
    assert!(window.on_sample(&sample(10, false, 1), |_| 0.0));
    let reduced = window.window_bytes();
    assert!((reduced / (600_000.0 * CUBIC_BETA) - 1.0).abs() < 0.01, "{reduced}");
    assert!(window.on_sample(&sample(60, false, 5), |_| 0.0));
    assert_eq!(window.window_bytes(), reduced);
    assert!(window.on_sample(&sample(260, false, 0), |_| 0.0));
    assert!(window.window_bytes() > reduced);
}

#[test]
fn the_paths_own_loss_is_no_reason_to_back_off() {
    let mut window = window();
    for now_ms in (100..1_000).step_by(50) {
        assert!(window.on_sample(&sample(now_ms, false, 2), |packets| packets as f64 * 0.03));
    }
    assert!(window.window_bytes() >= 600_000.0);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut window = window();
    for now_ms in (100..9_000).step_by(50) {
        assert!(
            window.on_sample(&WindowSample { in_flight_bytes: 100_000, ..sample(now_ms, false, 0) }, |_| 0.0)
        );
    }
    assert_eq!(window.window_bytes(), 600_000.0);
}

#[test]
fn it_ends_when_the_queue_is_gone_for_longer_than_bbr_dips() {
    let ends_after_ms = |empty_ms: u64| {
        let mut window = window();
        (50..5_000).step_by(50).find(|now_ms| {
            let is_empty = *now_ms >= 300 && *now_ms < 300 + empty_ms;
            !window.on_sample(&sample(*now_ms, is_empty, 0), |_| 0.0)
        })
    };
    assert_eq!(ends_after_ms(500), None, "BBR dips");
    assert_eq!(ends_after_ms(3_000), Some(300 + 650 + 50));
}

#[test]
fn it_ends_when_the_queue_goes_with_our_own_part() {
    let mut window = window();
    assert!(window.on_sample(&sample(10, false, 0), |_| 0.0));
    assert!(window.on_sample(&sample(20_100, false, 0), |_| 0.0));
    assert!(window.window_bytes() < 300_000.0, "a test: {}", window.window_bytes());
    assert!(window.on_sample(&sample(20_150, false, 0), |_| 0.0));
    assert!(!window.on_sample(&sample(20_250, true, 0), |_| 0.0));
}

#[test]
fn a_flow_that_does_not_back_off_leaves_us_half() {
    let mut window = window();
    for now_ms in (100..30_000).step_by(50) {
        let lost = u64::from(now_ms % 500 == 0);
        assert!(window.on_sample(&sample(now_ms, false, lost), |_| 0.0));
    }
    assert_eq!(window.phase(), Phase::HalfShare);
    assert!((0.8 * HALF_BYTES..=HALF_BYTES).contains(&window.window_bytes()), "{}", window.window_bytes());
}

#[test]
fn one_that_backs_off_too_is_no_reason_for_that() {
    let mut window = window();
    for now_ms in (100..30_000).step_by(50) {
        // One loss every thirty rounds.
        let lost = u64::from(now_ms % 3_000 == 0);
        assert!(window.on_sample(&sample(now_ms, false, lost), |_| 0.0));
    }
    assert_eq!(window.phase(), Phase::Compete);
}

/// Half of the capacity of path and queue in [`sample`].
const HALF_BYTES: f64 = 12e6 * 0.05;

fn after_rounds(half_share: &mut HalfShare, mut segments: f64, packets: [u64; 2], rounds: u32) -> f64 {
    let sample = sample(1_000, false, 0);
    (0..rounds).for_each(|_| segments = half_share.on_round(&sample, segments, packets));
    segments
}

#[test]
fn the_window_goes_to_half_in_small_steps_and_stays_there() {
    let half = HALF_BYTES / SEGMENT_BYTES;
    let mut half_share = HalfShare::default();
    let early = after_rounds(&mut half_share, 40.0, [99, 1], 20);
    assert!((60.0..0.6 * half).contains(&early), "{early}");
    let late = after_rounds(&mut half_share, early, [99, 1], 300);
    assert!((0.8 * half..half).contains(&late), "{late} of {half}");
    let above = after_rounds(&mut half_share, 2.0 * half, [99, 1], 300);
    assert!((above - late).abs() < 1.0, "{above}");
}

#[test]
fn several_that_lose_much_come_to_the_same_window() {
    for packets in [[85, 15], [96, 4]] {
        let [great, small] =
            [400.0, 20.0].map(|segments| after_rounds(&mut HalfShare::default(), segments, packets, 400));
        assert!(great < 100.0, "{great}");
        assert!((great - small).abs() < 20.0, "{great} and {small}");
    }
}
