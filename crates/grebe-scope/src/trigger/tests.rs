//! Triggers against a reference that walks sample by sample.

use proptest::prelude::*;

use super::*;
use crate::Error;

/// Index, slope.
type Found = Vec<(u64, Slope)>;

/// The documented meaning of a condition, one sample after the other, over one unbroken run.
fn reference(condition: &Condition, first: u64, samples: &[i16]) -> Found {
    let mut found = Found::new();
    let wide: Vec<i32> = samples.iter().map(|&s| i32::from(s)).collect();
    let edge = |level: i32, hysteresis: i32, rising: bool| {
        let (mut armed, mut at) = (false, Vec::new());
        for (i, &s) in wide.iter().enumerate() {
            let (beyond, back) = if rising {
                (s >= level, s < level - hysteresis)
            } else {
                (s <= level, s > level + hysteresis)
            };
            if armed && beyond {
                at.push(i);
                armed = false;
            }
            armed |= back;
        }
        at
    };
    // State after each sample; None until a sample lies beyond a threshold.
    let schmitt = |high: i32, low: i32| {
        let mut state = None;
        wide.iter()
            .map(|&s| {
                if s >= high {
                    state = Some(true)
                } else if s < low {
                    state = Some(false)
                }
                state
            })
            .collect::<Vec<_>>()
    };
    let crossings = |states: &[Option<bool>]| {
        (1..states.len())
            .filter(|&i| states[i - 1].is_some() && states[i] != states[i - 1])
            .map(|i| (i, states[i] == Some(true)))
            .collect::<Vec<_>>()
    };
    let slope_of = |rising| if rising { Slope::Rising } else { Slope::Falling };
    match *condition {
        Condition::Edge { slope, level, hysteresis } => {
            let (level, hysteresis) = (i32::from(level), i32::from(hysteresis));
            if slope != Slope::Falling {
                found.extend(edge(level, hysteresis, true).into_iter().map(|i| (i as u64, Slope::Rising)));
            }
            if slope != Slope::Rising {
                found.extend(edge(level, hysteresis, false).into_iter().map(|i| (i as u64, Slope::Falling)));
            }
            found.sort_by_key(|f| f.0);
        }
        Condition::PulseWidth { polarity, level, hysteresis, samples: ref widths } => {
            let states = schmitt(i32::from(level), i32::from(level) - i32::from(hysteresis));
            for pair in crossings(&states).windows(2) {
                let ((start, rising), (end, _)) = (pair[0], pair[1]);
                if rising == (polarity == Polarity::Positive) && widths.contains(&((end - start) as u64)) {
                    found.push((end as u64, slope_of(!rising)));
                }
            }
        }
        Condition::Runt { polarity, low, high } => {
            let near = if polarity == Polarity::Positive { low.into() } else { i32::from(high) + 1 };
            for pair in crossings(&schmitt(near, near)).windows(2) {
                let ((start, rising), (end, _)) = (pair[0], pair[1]);
                let reached = samples[start..end].iter().any(|&s| match polarity {
                    Polarity::Positive => s >= high,
                    Polarity::Negative => s <= low,
                });
                if rising == (polarity == Polarity::Positive) && !reached {
                    found.push((end as u64, slope_of(!rising)));
                }
            }
        }
        Condition::Window { passage, low, high, hysteresis } => {
            let h = i32::from(hysteresis);
            let mut inside = None;
            for (i, &s) in wide.iter().enumerate() {
                let before = inside;
                if s < low.into() || s > high.into() {
                    inside = Some(false);
                } else if s >= i32::from(low) + h && s <= i32::from(high) - h {
                    inside = Some(true);
                }
                let wanted = passage == Passage::Enters;
                if before == Some(!wanted) && inside == Some(wanted) {
                    found.push((i as u64, slope_of(s >= wide[i - 1])));
                }
            }
        }
        Condition::Dropout { level, hysteresis, samples: timeout } => {
            let states = schmitt(i32::from(level), i32::from(level) - i32::from(hysteresis));
            let all = crossings(&states);
            for (place, &(at, rising)) in all.iter().enumerate() {
                let due = at as u64 + timeout;
                let until = all.get(place + 1).map_or(samples.len(), |&(next, _)| next) as u64;
                if due < until {
                    found.push((due, slope_of(rising)));
                }
            }
        }
    }
    found.into_iter().map(|(index, slope)| (first + index, slope)).collect()
}

/// Signals that stay at thresholds, jump by the full range, creep, and stand still.
fn signals() -> impl Strategy<Value = Vec<i16>> {
    let near = proptest::collection::vec(-6i16..7, 1..400);
    let wild = proptest::collection::vec(prop_oneof![Just(i16::MIN), Just(i16::MAX), any::<i16>()], 1..300);
    let walk = proptest::collection::vec(-3i16..4, 1..500).prop_map(|steps| {
        steps
            .into_iter()
            .scan(0i16, |at, step| {
                *at = at.saturating_add(step);
                Some(*at)
            })
            .collect()
    });
    let runs = proptest::collection::vec((-8i16..9, 1usize..90), 1..20)
        .prop_map(|runs| runs.into_iter().flat_map(|(level, len)| vec![level; len]).collect());
    prop_oneof![near, wild, walk, runs]
}

fn conditions() -> impl Strategy<Value = Condition> {
    let level = || prop_oneof![6 => -5i16..6, 1 => Just(i16::MIN), 1 => Just(i16::MAX), 1 => any::<i16>()];
    let hysteresis = || prop_oneof![3 => Just(0u16), 3 => 1u16..6, 1 => any::<u16>()];
    let polarity = || prop_oneof![Just(Polarity::Positive), Just(Polarity::Negative)];
    let slope = prop_oneof![Just(Slope::Rising), Just(Slope::Falling), Just(Slope::Either)];
    let passage = prop_oneof![Just(Passage::Enters), Just(Passage::Leaves)];
    let pair = || (-6i16..5, 1i16..6).prop_map(|(low, size)| (low, low + size));
    prop_oneof![
        (slope, level(), hysteresis()).prop_map(|(slope, level, hysteresis)| Condition::Edge {
            slope,
            level,
            hysteresis
        }),
        (polarity(), level(), hysteresis(), 1u64..20, 0u64..100).prop_map(
            |(polarity, level, hysteresis, least, more)| {
                Condition::PulseWidth { polarity, level, hysteresis, samples: least..=least + more }
            }
        ),
        (polarity(), pair()).prop_map(|(polarity, (low, high))| Condition::Runt { polarity, low, high }),
        (passage, pair(), hysteresis()).prop_map(|(passage, (low, high), hysteresis)| {
            Condition::Window { passage, low, high, hysteresis }
        }),
        (level(), hysteresis(), 1u64..80).prop_map(|(level, hysteresis, samples)| Condition::Dropout {
            level,
            hysteresis,
            samples
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(6000) })]

    #[test]
    fn every_event_is_found_and_no_other(
        runs in proptest::collection::vec((signals(), 1u64..300), 1..4),
        condition in conditions(),
        block in 1usize..200,
        start in prop_oneof![Just(0u64), 0u64..1 << 50],
    ) {
        let mut trigger = Trigger::new(condition.clone(), 0).unwrap();
        let (mut found, mut expected, mut at) = (Found::new(), Found::new(), start);
        for (samples, gap) in &runs {
            expected.extend(reference(&condition, at, samples));
            for piece in samples.chunks(block) {
                trigger.scan(at, piece, |event| found.push((event.index, event.slope)));
                at += piece.len() as u64;
            }
            at += gap;
        }
        prop_assert_eq!(trigger.found(), expected.len() as u64);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn holdoff_keeps_the_first_and_counts_the_rest(samples in signals(), holdoff in 0u64..100, level in -5i16..6) {
        let condition = Condition::Edge { slope: Slope::Either, level, hysteresis: 0 };
        let all = reference(&condition, 0, &samples);
        let mut expected = Found::new();
        for event in &all {
            if expected.last().is_none_or(|last: &(u64, Slope)| event.0 >= last.0 + holdoff) {
                expected.push(*event);
            }
        }
        let mut trigger = Trigger::new(condition, holdoff).unwrap();
        let mut found = Found::new();
        trigger.scan(0, &samples, |event| found.push((event.index, event.slope)));
        prop_assert_eq!(trigger.held_off(), (all.len() - expected.len()) as u64);
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_frame_may_be_cut_anywhere() {
    let samples: Vec<i16> = (0..300).map(|i| ((f64::from(i) * 0.37).sin() * 90.0) as i16).collect();
    let condition = Condition::Edge { slope: Slope::Rising, level: 7, hysteresis: 20 };
    let scan = |cut: usize| {
        let mut trigger = Trigger::new(condition.clone(), 0).unwrap();
        let mut found = Vec::new();
        trigger.scan(40, &samples[..cut], |event| found.push(event));
        trigger.scan(40 + cut as u64, &samples[cut..], |event| found.push(event));
        found
    };
    let whole = scan(0);
    assert_eq!(whole.len(), 17);
    for cut in 0..=samples.len() {
        assert_eq!(scan(cut), whole, "cut at {cut}");
    }
}

#[test]
fn the_position_of_a_sine_crossing_is_found_between_samples() {
    // 1000 cycles of a slow sine: crossings of zero lie at multiples of the period.
    let period = 997.3;
    let samples: Vec<i16> = (0..20_000)
        .map(|i| ((f64::from(i) / period * std::f64::consts::TAU).sin() * 30_000.0).round() as i16)
        .collect();
    let mut trigger =
        Trigger::new(Condition::Edge { slope: Slope::Rising, level: 0, hysteresis: 100 }, 0).unwrap();
    let mut cycle = 0.0;
    trigger.scan(0, &samples, |event| {
        cycle += 1.0;
        assert!((event.position() - cycle * period).abs() < 0.005, "{}", event.position());
    });
    assert_eq!(cycle, 20.0);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let runt = Condition::Runt { polarity: Polarity::Positive, low: 5, high: 5 };
    assert!(matches!(Trigger::new(runt, 0), Err(Error::Setting { what: "trigger levels", .. })));
    #[expect(clippy::reversed_empty_ranges, reason = "the range that must be refused")]
    let pulse =
        Condition::PulseWidth { polarity: Polarity::Positive, level: 0, hysteresis: 0, samples: 5..=4 };
    assert!(Trigger::new(pulse, 0).is_err());
    assert!(Trigger::new(Condition::Dropout { level: 0, hysteresis: 0, samples: 0 }, 0).is_err());
}

/// The same condition on the same numbers as `f32`.
fn real(condition: &Condition) -> Condition<f32> {
    match condition.clone() {
        Condition::Edge { slope, level, hysteresis } => {
            Condition::Edge { slope, level: level.into(), hysteresis: hysteresis.into() }
        }
        Condition::PulseWidth { polarity, level, hysteresis, samples } => {
            Condition::PulseWidth { polarity, level: level.into(), hysteresis: hysteresis.into(), samples }
        }
        Condition::Runt { polarity, low, high } => {
            Condition::Runt { polarity, low: low.into(), high: high.into() }
        }
        Condition::Window { passage, low, high, hysteresis } => {
            Condition::Window { passage, low: low.into(), high: high.into(), hysteresis: hysteresis.into() }
        }
        Condition::Dropout { level, hysteresis, samples } => {
            Condition::Dropout { level: level.into(), hysteresis: hysteresis.into(), samples }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn reals_trigger_as_integers_do(
        samples in signals(),
        condition in conditions(),
        block in 1usize..200,
        holdoff in 0u64..50,
    ) {
        let mut integers = Trigger::new(condition.clone(), holdoff).unwrap();
        let mut reals = Trigger::new(real(&condition), holdoff).unwrap();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        for (place, piece) in samples.chunks(block).enumerate() {
            let at = (place * block) as u64;
            integers.scan(at, piece, |event| expected.push((event.index, event.slope, event.fraction())));
            let piece: Vec<f32> = piece.iter().map(|&sample| sample.into()).collect();
            reals.scan(at, &piece, |event| found.push((event.index, event.slope, event.fraction())));
        }
        prop_assert_eq!(reals.held_off(), integers.held_off());
        prop_assert_eq!(found, expected);
    }

    /// A NaN sample crosses no level: the state is as if the previous sample repeated, and time passes.
    #[test]
    fn not_a_number_changes_no_state(samples in signals(), condition in conditions(), holes in any::<u64>()) {
        let is_hole = |place: usize| place > 0 && holes >> (place % 64) & 1 != 0;
        let mut held: Vec<f32> = samples.iter().map(|&sample| sample.into()).collect();
        let mut holed = held.clone();
        for place in 0..held.len() {
            if is_hole(place) {
                held[place] = held[place - 1];
                holed[place] = f32::NAN;
            }
        }
        let find = |samples: &[f32]| {
            let mut found = Vec::new();
            let mut trigger = Trigger::new(real(&condition), 0).unwrap();
            trigger.scan(9, samples, |event| {
                assert!((0.0..=1.0).contains(&event.fraction()));
                found.push(event.index);
            });
            found
        };
        prop_assert_eq!(find(&holed), find(&held));
    }
}

#[test]
fn reals_pass_levels_between_whole_numbers_and_infinity_passes_all() {
    let edge = Condition::Edge { slope: Slope::Either, level: 0.25, hysteresis: 0.125 };
    let mut trigger = Trigger::new(edge, 0).unwrap();
    let mut found = Vec::new();
    let samples = [0.0, 0.25, 0.2, 0.5, 0.25, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.3];
    trigger.scan(0, &samples, |event| found.push((event.index, event.slope, event.fraction())));
    use Slope::{Falling, Rising};
    // The next sample at or below the level after one well above it; no line passes through infinity.
    assert_eq!(found, [(1, Rising, 0.0), (4, Falling, 0.0), (6, Falling, 0.0), (8, Rising, 0.0)]);
    for (level, hysteresis) in [(f32::NAN, 0.0), (f32::INFINITY, 0.0), (0.0, -1.0), (0.0, f32::NAN)] {
        let edge = Condition::Edge { slope: Slope::Rising, level, hysteresis };
        assert!(Trigger::new(edge, 0).is_err(), "{level} {hysteresis}");
    }
    let runt = Condition::Runt { polarity: Polarity::Positive, low: 0.0, high: f32::NAN };
    let error = Trigger::new(runt, 0).unwrap_err().to_string();
    assert_eq!(error, "trigger level: NaN was given, a finite number is needed");
}
