use proptest::prelude::*;

use super::*;

fn samples(spec: &ChannelSpec, rate_hz: f64, first: u64, count: usize) -> Vec<i16> {
    let mut out = vec![0; count];
    Generator::new(spec, rate_hz).unwrap().fill(first, &mut out);
    out
}

fn waves() -> impl Strategy<Value = Wave> {
    prop_oneof![
        Just(Wave::Sine),
        Just(Wave::Square),
        Just(Wave::Triangle),
        Just(Wave::Saw),
        (0.0..500.0, 0.01..20.0f64).prop_map(|(end_hz, sweep_s)| Wave::Chirp { end_hz, sweep_s }),
        any::<u64>().prop_map(|seed| Wave::Noise { seed }),
    ]
}

fn specs() -> impl Strategy<Value = ChannelSpec> {
    let frequency_hz = prop_oneof![(0u32..=500).prop_map(f64::from), 0.0..=500.0f64, 0.0..1e-3f64];
    (waves(), frequency_hz, -3.0..3.0f64, 0.0..=1.0f64, -1.0..=1.0f64).prop_map(
        |(wave, frequency_hz, phase_turns, amplitude, offset)| ChannelSpec {
            wave,
            frequency_hz,
            phase_turns,
            amplitude,
            offset,
            ..ChannelSpec::default()
        },
    )
}

/// Documented value, computed the slow way; does not cover noise.
fn promised(spec: &ChannelSpec, rate_hz: f64, index: u64) -> f64 {
    let t = index as f64 / rate_hz;
    let turns = match spec.wave {
        Wave::Chirp { end_hz, sweep_s } => {
            let sweep_samples = (sweep_s * rate_hz).round();
            let t = (index as f64 % sweep_samples) / rate_hz;
            let slope = (end_hz - spec.frequency_hz) / (sweep_samples / rate_hz);
            spec.phase_turns + spec.frequency_hz * t + slope * t * t / 2.0
        }
        _ => spec.phase_turns + spec.frequency_hz * t,
    };
    let turns = turns.rem_euclid(1.0);
    let wave = match spec.wave {
        Wave::Sine | Wave::Chirp { .. } => (turns * std::f64::consts::TAU).sin(),
        Wave::Square => 1.0 - 2.0 * f64::from(turns >= 0.5),
        Wave::Triangle => (2.0 / std::f64::consts::PI) * (turns * std::f64::consts::TAU).sin().asin(),
        Wave::Saw => 2.0 * turns - 1.0,
        _ => unreachable!(),
    };
    (32_767.0 * (spec.amplitude * wave + spec.offset)).clamp(-32_768.0, 32_767.0)
}

proptest! {
    #[test]
    fn any_cut_into_blocks_gives_the_same_samples(
        spec in specs(),
        first in prop_oneof![0u64..1 << 17, any::<u64>().prop_map(|first| first >> 1)],
        cuts in prop::collection::vec(1usize..700, 1..12),
    ) {
        let generator = Generator::new(&spec, 1_000.0).unwrap();
        let mut whole = vec![0; cuts.iter().sum()];
        generator.fill(first, &mut whole);
        let mut at = 0;
        for length in cuts {
            let mut block = vec![0; length];
            generator.fill(first + at as u64, &mut block);
            prop_assert_eq!(&block[..], &whole[at..at + length]);
            at += length;
        }
    }

    #[test]
    fn samples_have_the_documented_values(spec in specs(), first in 0u64..20_000) {
        prop_assume!(!matches!(spec.wave, Wave::Noise { .. }));
        for (position, sample) in samples(&spec, 1_000.0, first, 50).into_iter().enumerate() {
            let promised = promised(&spec, 1_000.0, first + position as u64);
            let off = (f64::from(sample) - promised).abs();
            // At a jump of a wave, the last bit of the phase decides the side of a sample.
            let halves = 2.0 * (spec.phase_turns + spec.frequency_hz * (first + position as u64) as f64 / 1_000.0);
            let at_jump = matches!(spec.wave, Wave::Square | Wave::Saw) && (halves - halves.round()).abs() < 1e-6;
            prop_assert!(off <= 1.0 || at_jump, "{sample} for {promised}");
        }
    }
}

#[test]
fn a_wave_that_exceeds_full_scale_is_clipped() {
    for wave in [Wave::Sine, Wave::Square, Wave::Triangle, Wave::Saw, Wave::Noise { seed: 1 }] {
        for frequency_hz in [100.0, 100.0 / std::f64::consts::PI] {
            let spec =
                ChannelSpec { wave, frequency_hz, amplitude: 1.0, offset: 0.9, ..ChannelSpec::default() };
            let high = samples(&spec, 1e4, 0, 1_000);
            assert_eq!(high.iter().max(), Some(&i16::MAX), "{wave:?}");
            assert!(high.iter().min() > Some(&-3_300), "{wave:?} wraps");
            let low = samples(&ChannelSpec { offset: -0.9, ..spec }, 1e4, 0, 1_000);
            assert!(low.iter().min() <= Some(&-32_767), "{wave:?}");
            assert!(low.iter().max() < Some(&3_300), "{wave:?} wraps");
        }
    }
}

#[test]
fn a_long_stream_does_not_drift() {
    let spec = ChannelSpec { frequency_hz: 123.456_789, ..ChannelSpec::default() };
    let index = 1_000_000_001_234u64;
    let turns = (123_456_789 * u128::from(index) % 1_000_000_000_000) as f64 / 1e12;
    let expected = (turns * std::f64::consts::TAU).sin() * 16_383.5;
    let sample = f64::from(samples(&spec, 1e6, index, 1)[0]);
    assert!((sample - expected).abs() <= 1.0, "{sample} for {expected}");
}

#[test]
fn noise_is_white_uniform_and_its_seeds_are_independent() {
    let spec = |seed| ChannelSpec { wave: Wave::Noise { seed }, amplitude: 1.0, ..ChannelSpec::default() };
    let [one, other] = [0, 1].map(|seed| samples(&spec(seed), 1.0, 0, 1 << 18));
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / one.len() as f64;
    let unit = |sample: &i16| f64::from(*sample) / 32_768.0;
    // Standard errors are at most 1/512 of 0.58; this allows 5 of them.
    assert!(mean(&mut one.iter().map(unit)).abs() < 0.006);
    assert!((mean(&mut one.iter().map(|s| unit(s).powi(2))) - 1.0 / 3.0).abs() < 0.006);
    for lag in 1..9 {
        let products = &mut one.iter().zip(&one[lag..]).map(|(a, b)| unit(a) * unit(b));
        assert!(mean(products).abs() < 0.004, "lag {lag}");
    }
    assert!(mean(&mut one.iter().zip(&other).map(|(a, b)| unit(a) * unit(b))).abs() < 0.004);
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let good = ChannelSpec::default();
    let chirp = |end_hz, sweep_s| ChannelSpec { wave: Wave::Chirp { end_hz, sweep_s }, ..good };
    for (spec, rate_hz, message) in [
        (good, 0.0, "sample rate is 0: give a rate above 0 Hz"),
        (good, f64::NAN, "sample rate is NaN: give a rate above 0 Hz"),
        (good, 1_999.0, "frequency is 1000: give 0 to half the sample rate; above it there are aliases"),
        (ChannelSpec { phase_turns: f64::INFINITY, ..good }, 48e3, "phase is inf: give a number of turns"),
        (ChannelSpec { amplitude: 1.5, ..good }, 48e3, "amplitude is 1.5: give 0 to 1"),
        (ChannelSpec { offset: -2.0, ..good }, 48e3, "offset is -2: give -1 to 1"),
        (
            chirp(-1.0, 1.0),
            48e3,
            "end frequency is -1: give 0 to half the sample rate; above it there are aliases",
        ),
        (chirp(1.0, 0.0), 48e3, "sweep time is 0: give seconds that make 2 to 2^32 samples"),
        (chirp(1.0, 1e9), 48e3, "sweep time is 1000000000: give seconds that make 2 to 2^32 samples"),
    ] {
        assert_eq!(Generator::new(&spec, rate_hz).unwrap_err().to_string(), message);
    }
}
