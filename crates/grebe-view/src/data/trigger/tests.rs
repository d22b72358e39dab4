//! Triggers on whole streams.

use std::collections::HashMap;

use super::*;
use crate::data::core::ScopeCore;
use crate::data::picture::Picture;
use crate::data::viewport::{Viewport, Window};
use crate::testing::batch;

const RATE_HZ: f64 = 1e4;

/// A sawtooth of 700 samples: one rising crossing of its middle each period, at 350 + n * 700.
fn saw(_: usize, index: u64) -> i16 {
    ((index % 700) as i32 * 20 - 7000) as i16
}

fn settings(mode: TriggerMode) -> TriggerSettings {
    TriggerSettings::new(mode)
}

fn viewport(settings: TriggerSettings) -> Viewport {
    Viewport { span: Some(0.1), trigger: Some(settings), ..Viewport::latest(100) }
}

fn feed(core: &mut ScopeCore, blocks: std::ops::Range<u64>, value: impl Fn(usize, u64) -> i16 + Copy) {
    for block in blocks {
        core.ingest(&batch(block * 100, 1, 100, RATE_HZ, value), 1).unwrap();
    }
}

fn shown(picture: &Picture) -> (TriggerState, Option<f64>) {
    let trigger = picture.trigger.unwrap();
    (trigger.state, trigger.at)
}

#[test]
fn the_picture_stands_still_on_a_periodic_signal() {
    let mut core = ScopeCore::new(1 << 20);
    feed(&mut core, 0..50, saw);
    let first = core.answer(&viewport(settings(TriggerMode::Auto)), 1);
    assert_eq!(shown(&first).0, TriggerState::Triggered);
    for block in 50..90 {
        feed(&mut core, block..block + 1, saw);
        let picture = core.answer(&viewport(settings(TriggerMode::Auto)), 1);
        let (state, at) = shown(&picture);
        assert_eq!(state, TriggerState::Triggered);
        // The middle of -7000 to 6980 is -10, half a sample before zero.
        assert_eq!(at.unwrap() % 700.0, 349.5);
        // Columns lie on a grid of 10 samples; the trigger is in the middle to within one.
        let middle = picture.left_index + 0.5 * picture.span_samples;
        assert!((middle - at.unwrap()).abs() <= 10.0, "{middle} {at:?}");
        assert!(picture.lanes[0].columns.iter().all(|column| !column.is_empty()), "filled");
    }
}

/// A sine of 500 samples per period and an amplitude of 10,000, with noise of a tenth of its RMS (20 dB): twelve
/// uniform numbers.
fn noisy_sine(periods: u64) -> Vec<i16> {
    let mut rng = grebe_testing::Rng::with_seed(20);
    let mut noise = || ((0..12).map(|_| rng.f64()).sum::<f64>() - 6.0) * 10_000.0 / 2f64.sqrt() / 10.0;
    (0..periods * 500)
        .map(|index| ((index as f64 / 500.0 * std::f64::consts::TAU).sin() * 10_000.0 + noise()) as i16)
        .collect()
}

#[test]
fn noise_makes_no_crossings_of_its_own() {
    const PERIODS: u64 = 200;
    let samples = noisy_sine(PERIODS);
    for (slope, phase) in [(Slope::Rising, 0.0), (Slope::Falling, 250.0)] {
        let mut core = ScopeCore::new(1 << 20);
        feed(&mut core, 0..PERIODS * 5, |_, index| samples[index as usize]);
        let settings = TriggerSettings { slope, ..settings(TriggerMode::Normal) };
        let exact = Viewport { is_exact: true, ..viewport(settings) };
        core.end();
        let picture = core.answer(&exact, 1);
        let trigger = picture.trigger.unwrap();
        assert!((PERIODS - 2..=PERIODS).contains(&trigger.found), "{slope:?}: {}", trigger.found);
        // Each lies on the right slope.
        let off = |at: f64| (at - phase + 250.0).rem_euclid(500.0) - 250.0;
        assert!(picture.triggers.iter().all(|at| off(*at).abs() < 30.0), "{slope:?}: {:?}", picture.triggers);
        // Ten deviations of 707, or half of the part beyond the level.
        assert!((4_000.0..7_500.0).contains(&trigger.hysteresis), "{}", trigger.hysteresis);
    }
}

/// The last triggers of a whole stream, at most 64.
fn all_found(samples: &[i16], settings: TriggerSettings) -> Vec<f64> {
    let mut core = ScopeCore::new(1 << 22);
    feed(&mut core, 0..samples.len() as u64 / 100, |_, index| samples[index as usize]);
    core.end();
    let picture = core.answer(&Viewport { is_exact: true, ..viewport(settings) }, 1);
    picture.triggers.to_vec()
}

#[test]
fn noise_reject_and_hf_reject_find_each_edge_and_no_other_where_noise_comes_in_bursts() {
    const PERIODS: u64 = 40;
    let mut rng = grebe_testing::Rng::with_seed(43);
    // 200 samples of every 2500 around a falling crossing are noisy. The median of the newest samples' noise is near zero.
    let mut bursts = |amplitude: f64| -> Vec<i16> {
        (0..PERIODS * 500)
            .map(|index| {
                let sine = (index as f64 / 500.0 * std::f64::consts::TAU).sin() * 10_000.0;
                let is_noisy = (150..350).contains(&(index % 2500));
                (sine + if is_noisy { (rng.f64() * 2.0 - 1.0) * amplitude } else { 0.0 }) as i16
            })
            .collect()
    };
    let (little, much) = (bursts(1_100.0), bursts(9_000.0));
    let plain = TriggerSettings { level: Some(0.0), ..settings(TriggerMode::Normal) };
    let wide = TriggerSettings { is_noise_reject: true, ..plain };
    // 10 kHz: periods of 50 ms, noise up to 5 kHz.
    let slow = TriggerSettings { coupling: TriggerCoupling::HfReject { corner_hz: Some(100.0) }, ..plain };
    let both = TriggerSettings { is_noise_reject: true, ..slow };
    let is_rising = |at: f64, late: f64| ((at - late + 250.0).rem_euclid(500.0) - 250.0).abs() < 3.0;
    assert!(all_found(&little, plain).iter().any(|at| !is_rising(*at, 0.0)), "nothing to reject");
    assert!(all_found(&much, wide).iter().any(|at| !is_rising(*at, 0.0)), "too much for a hysteresis");
    // A low-pass of 100 Hz delays by at most 1.59 ms: 15.9 samples.
    for (samples, settings, late) in [(&little, wide, 0.0), (&little, slow, 15.4), (&much, both, 15.4)] {
        let found = all_found(samples, settings);
        assert!(found.iter().all(|at| is_rising(*at, late)), "{settings:?}: {found:?}");
        assert_eq!(found.len() as u64, PERIODS - 1, "{settings:?}: {found:?}");
    }
    // At 20 dB, neither misses an edge nor finds a false one.
    for settings in [wide, slow, both] {
        let found = all_found(&noisy_sine(PERIODS), settings);
        assert!((PERIODS - 1..=PERIODS).contains(&(found.len() as u64)), "{settings:?}: {found:?}");
    }
}

#[test]
fn a_hysteresis_is_three_tenths_of_a_division_or_what_is_set() {
    let mut core = ScopeCore::new(1 << 20);
    feed(&mut core, 0..100, saw);
    let used = |core: &mut ScopeCore, hysteresis| {
        let settings = TriggerSettings { hysteresis, ..settings(TriggerMode::Normal) };
        core.answer(&viewport(settings), 1).trigger.unwrap()
    };
    // 13,980 counts high: 0.3 of an eighth is 524.
    assert_eq!(used(&mut core, None).hysteresis, 524.0);
    assert_eq!(used(&mut core, Some(3_000.0)).hysteresis, 3_000.0);
    assert!(used(&mut core, Some(3_000.0)).found > 0);
    assert_eq!(used(&mut core, Some(8_000.0)).found, 0, "it never goes back so far");
}

#[test]
fn without_a_trigger_auto_runs_free_and_normal_waits() {
    let mut core = ScopeCore::new(1 << 20);
    feed(&mut core, 0..100, |_, _| 5);
    let auto = core.answer(&viewport(settings(TriggerMode::Auto)), 1);
    assert_eq!(shown(&auto), (TriggerState::Free, None));
    assert_eq!(auto.right_index(), 10_000.0);
    let normal = core.answer(&viewport(settings(TriggerMode::Normal)), 1);
    assert_eq!(shown(&normal), (TriggerState::Ready, None));
    // The picture stands still until then, also for a single shot.
    for mode in [TriggerMode::Normal, TriggerMode::Single] {
        let asked = core.answer(&viewport(settings(mode)), 1).right_index();
        let next = core.answer(&viewport(settings(mode)), 1).next_index / 100;
        feed(&mut core, next..next + 40, |_, index| 5 + (index % 2) as i16);
        let later = core.answer(&viewport(settings(mode)), 1);
        assert_eq!((later.right_index(), later.next_index / 100), (asked, next + 40), "{mode:?}");
    }
}

#[test]
fn another_span_keeps_the_list_of_triggers() {
    let mut core = ScopeCore::new(64 << 20);
    // A pulse every 400,000 samples: most of them are beyond the reach of a new search.
    let pulses = |_: usize, index: u64| if index % 400_000 < 50 { 9000 } else { 0 };
    let mut asked = viewport(settings(TriggerMode::Normal));
    asked.trigger.as_mut().unwrap().coupling = TriggerCoupling::LfReject { corner_hz: None };
    let mut listed = Vec::new();
    for block in 0..120 {
        core.ingest(&batch(block * 50_000, 1, 50_000, RATE_HZ, pulses), 1).unwrap();
        listed = core.answer(&asked, 1).triggers;
    }
    assert!(listed.len() >= 10, "{listed:?}");
    asked.span = Some(0.5);
    let wider = core.answer(&asked, 1);
    assert!(wider.triggers.len() >= listed.len(), "{:?}, not {listed:?}", wider.triggers);
    assert!(wider.trigger.unwrap().found >= listed.len() as u64);
}

#[test]
fn the_list_of_a_held_picture_is_of_the_triggers_around_it() {
    let mut core = ScopeCore::new(64 << 20);
    let asked = viewport(settings(TriggerMode::Normal));
    core.answer(&asked, 1);
    // A pulse every 100 samples.
    let pulses = |_: usize, index: u64| if index % 100 < 50 { 9000 } else { 0 };
    core.ingest(&batch(0, 1, 1000, RATE_HZ, pulses), 1).unwrap();
    core.answer(&asked, 1);
    for block in 1..200 {
        core.ingest(&batch(block * 1000, 1, 1000, RATE_HZ, pulses), 1).unwrap();
    }
    let newest = core.answer(&asked, 1).triggers;
    assert_eq!((newest.len(), newest.last().unwrap().round()), (64, 199_900.0));
    let mut held = asked.clone();
    held.window = Window::Ending { at: 100_000.0 };
    let picture = core.answer(&held, 1);
    let middle = picture.left_index + picture.span_samples / 2.0;
    let (first, last) = (picture.triggers[0], picture.triggers[63]);
    assert_eq!(picture.triggers.len(), 64);
    assert!((first - (middle - 3200.0)).abs() <= 100.0 && (last - (middle + 3100.0)).abs() <= 100.0);
    held.window = Window::Ending { at: 199_950.0 };
    assert_eq!(core.answer(&held, 1).triggers.last().map(|at| at.round()), Some(199_900.0));
}

#[test]
fn a_single_shot_is_the_next_trigger_and_stays() {
    let mut core = ScopeCore::new(1 << 20);
    feed(&mut core, 0..50, saw);
    let mut single = settings(TriggerMode::Single);
    single.level = Some(0.0);
    assert_eq!(shown(&core.answer(&viewport(single), 1)), (TriggerState::Ready, None));
    feed(&mut core, 50..80, saw);
    let first = shown(&core.answer(&viewport(single), 1));
    assert_eq!(first, (TriggerState::Stopped, Some(350.0 + 7.0 * 700.0)));
    feed(&mut core, 80..120, saw);
    assert_eq!(shown(&core.answer(&viewport(single), 1)), first);
    single.shot += 1;
    core.answer(&viewport(single), 1);
    feed(&mut core, 120..150, saw);
    assert!(shown(&core.answer(&viewport(single), 1)).1 > first.1);
}

#[test]
fn the_level_follows_the_middle_of_the_signal_unless_it_is_set() {
    let mut core = ScopeCore::new(1 << 20);
    feed(&mut core, 0..50, |c, i| saw(c, i) / 4 + 20_000);
    let level = core.answer(&viewport(settings(TriggerMode::Auto)), 1).trigger.unwrap().level;
    assert!((19_900.0..20_100.0).contains(&level), "{level}");
    feed(&mut core, 50..100, saw);
    let level = core.answer(&viewport(settings(TriggerMode::Auto)), 1).trigger.unwrap().level;
    assert!((-100.0..100.0).contains(&level), "{level}");
    let set = TriggerSettings { level: Some(-123.0), ..settings(TriggerMode::Auto) };
    assert_eq!(core.answer(&viewport(set), 1).trigger.unwrap().level, -123.0);
}

#[test]
fn the_trigger_stands_where_it_was_put_and_every_one_is_counted() {
    let mut core = ScopeCore::new(1 << 20);
    let left = TriggerSettings { position: 0.1, ..settings(TriggerMode::Normal) };
    core.answer(&viewport(left), 1);
    feed(&mut core, 0..140, saw);
    let picture = core.answer(&viewport(left), 1);
    let place = (picture.trigger.unwrap().at.unwrap() - picture.left_index) / picture.span_samples;
    assert!((place - 0.1).abs() < 0.011, "{place}");
    feed(&mut core, 140..280, saw);
    let found = core.answer(&viewport(left), 1).trigger.unwrap().found;
    assert!((20..=40).contains(&found), "{found}");
}

/// Five minutes of an ECG, whose baseline wanders by more than the height of an R peak.
fn ecg() -> Vec<i16> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/ecg.sigmf-data");
    let bytes = std::fs::read(path).unwrap();
    bytes.as_chunks::<2>().0.iter().map(|&pair| i16::from_le_bytes(pair)).collect()
}

/// Results of SciPy.
fn expected() -> HashMap<&'static str, f64> {
    let lines = include_str!("../../../../grebe-scope/tests/reference/expected.tsv").lines();
    lines
        .map(|line| line.split_once('\t').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect()
}

#[test]
fn lf_reject_and_holdoff_hold_an_ecg_at_its_r_peaks_and_count_the_heart() {
    let (ecg, expected) = (ecg(), expected());
    let value = |_: usize, index: u64| ecg[index as usize];
    let settings = TriggerSettings {
        level: Some(120.0),
        coupling: TriggerCoupling::LfReject { corner_hz: None },
        holdoff_s: 0.2,
        ..settings(TriggerMode::Normal)
    };
    let viewport = Viewport { span: Some(2.0), trigger: Some(settings), ..Viewport::latest(720) };
    let mut core = ScopeCore::new(1 << 20);
    let (mut pictures, mut on_peak) = (0, 0);
    for block in 0..ecg.len() as u64 / 90 {
        core.ingest(&batch(block * 90, 1, 90, 360.0, value), 1).unwrap();
        let picture = core.answer(&viewport, 1);
        let Some(at) = picture.trigger.and_then(|trigger| trigger.at) else { continue };
        let near = at as usize - 54..(at as usize + 54).min(ecg.len());
        let peak = near.clone().max_by_key(|&index| ecg[index]).unwrap();
        pictures += 1;
        // Some beats of this heart are wide: they cross their level long before their peak.
        on_peak += usize::from((peak as f64 - at).abs() <= 30.0);
    }
    let trigger = core.answer(&viewport, 1).trigger.unwrap();
    let (found, beats) = (trigger.found as f64, expected["beats"]);
    assert!((found - beats).abs() <= 5.0, "{found} triggers, {beats} beats");
    let (rate, scipy) = (trigger.rate.per_minute().unwrap(), expected["beats_per_minute_last_64"]);
    assert!((rate - scipy).abs() <= 1.0, "{rate} a minute, SciPy {scipy}");
    assert_eq!((trigger.rate.intervals.count(), trigger.rate.gaps), (63, 0));
    assert!(pictures > 1000 && on_peak * 100 >= pictures * 97, "{on_peak} of {pictures} held at a peak");
}

#[test]
fn the_automatic_level_follows_what_lf_reject_leaves() {
    let mut core = ScopeCore::new(1 << 20);
    // Peaks on a ramp: the middle of the whole signal is far from each of them.
    let ramp =
        |_: usize, index: u64| (index as i64 * 2 - 20_000 + if index % 100 < 5 { 3000 } else { 0 }) as i16;
    let mut settings = settings(TriggerMode::Normal);
    settings.coupling = TriggerCoupling::LfReject { corner_hz: Some(100.0) };
    for block in 0..200 {
        feed(&mut core, block..block + 1, ramp);
        core.answer(&viewport(settings), 1);
    }
    let trigger = core.answer(&viewport(settings), 1).trigger.unwrap();
    assert!((500.0..2500.0).contains(&trigger.level), "{trigger:?}");
    assert_eq!(trigger.rate.intervals.count(), 63);
    assert!((trigger.rate.rate_hz().unwrap() - 100.0).abs() < 1.0, "{:?}", trigger.rate);
    settings.coupling = TriggerCoupling::Dc;
    settings.level = Some(0.0);
    let dc = core.answer(&viewport(settings), 1).trigger.unwrap();
    assert!(dc.rate.intervals.count() < 63, "a level is passed by the ramp once: {dc:?}");
}

#[test]
fn pulses_and_dropouts_of_the_set_times_trigger_and_no_others() {
    // In each 2000 samples (10 kHz: 0.2 s) pulses of 20, 100 and 300 samples; 600 samples of silence between their ends.
    let pulses = |_: usize, index: u64| {
        let high = matches!(index % 2000, 0..20 | 600..700 | 1200..1500);
        if high { 5000 } else { -5000 }
    };
    let mut core = ScopeCore::new(1 << 20);
    feed(&mut core, 0..1000, pulses);
    // Ends of the found pulses within a period.
    let mut ends = |kind, min: Option<f64>, max: Option<f64>, dropout: Option<f64>| {
        let asked = viewport(TriggerSettings {
            kind,
            level: Some(0.0),
            pulse_min_s: min,
            pulse_max_s: max,
            dropout_s: dropout,
            ..settings(TriggerMode::Normal)
        });
        let triggers = core.answer(&asked, 1).triggers;
        let mut found: Vec<u64> = triggers.iter().map(|at| at.round() as u64 % 2000).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    let pulse = TriggerKind::Pulse;
    assert_eq!(ends(pulse, None, Some(5e-3), None), [20]);
    assert_eq!(ends(pulse, None, Some(15e-3), None), [20, 700]);
    assert_eq!(ends(pulse, Some(5e-3), Some(15e-3), None), [700]);
    assert_eq!(ends(pulse, Some(5e-3), None, None), [700, 1500]);
    assert!(ends(pulse, Some(50e-3), None, None).is_empty());
    // Default: a division, which is 100 samples here.
    assert_eq!(ends(pulse, None, None, None), [20, 700]);
    // 580 samples after 20, 500 after 700, 500 after 1500.
    let dropout = TriggerKind::Dropout;
    assert_eq!(ends(dropout, None, None, Some(55e-3)), [20 + 550]);
    assert!(ends(dropout, None, None, Some(70e-3)).is_empty());
}

#[test]
fn a_held_off_trigger_is_not_counted_and_a_gap_parts_intervals() {
    let mut core = ScopeCore::new(1 << 20);
    let twice = TriggerSettings { level: Some(0.0), holdoff_s: 0.1, ..settings(TriggerMode::Normal) };
    core.answer(&viewport(twice), 1);
    feed(&mut core, 0..70, saw);
    // 1000 samples of hold-off pass every second of the periods of 700.
    let rate = core.answer(&viewport(twice), 1).trigger.unwrap().rate;
    assert_eq!(rate.intervals.mean(), Some(0.14));
    feed(&mut core, 84..140, saw);
    let rate = core.answer(&viewport(twice), 1).trigger.unwrap().rate;
    assert_eq!((rate.intervals.mean(), rate.gaps), (Some(0.14), 1));
    assert_eq!(rate.per_minute().unwrap().round(), 429.0);
}

#[test]
fn intervals_across_gaps_are_left_out() {
    let found = [(0.0, true), (100.0, false), (210.0, false), (900.0, true), (1000.0, false)];
    let found = found.map(|(at, is_behind_gap)| Found { at, is_behind_gap });
    let rate = TriggerRate::of(found.into_iter(), 100.0);
    assert_eq!((rate.intervals.count(), rate.gaps), (3, 1));
    let mean = (1.0 + 1.1 + 1.0) / 3.0;
    assert!((rate.rate_hz().unwrap() - 1.0 / mean).abs() < 1e-9);
    assert!((rate.per_minute().unwrap() - 60.0 / mean).abs() < 1e-9);
    assert!(TriggerRate::of(found.into_iter(), 1e6).per_minute().is_none(), "10 kHz");
    assert!(TriggerRate::of(found.into_iter().take(1), 100.0).rate_hz().is_none());
}
