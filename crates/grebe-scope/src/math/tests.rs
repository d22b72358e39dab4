use proptest::prelude::*;

use super::*;

/// Feeds blocks and puts the outputs together by their index.
fn run(operation: Operation, a: &[i16], b: &[i16], block: usize) -> Vec<(u64, i16)> {
    let mut channel = MathChannel::new(operation);
    let (mut all, mut out) = (Vec::new(), Vec::new());
    for (place, (a, b)) in a.chunks(block).zip(b.chunks(block)).enumerate() {
        let first = channel.process(100 + (place * block) as u64, a, b, &mut out).unwrap();
        all.extend((first..).zip(out.iter().copied()));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn operations_are_what_they_say_in_any_blocks(
        pairs in proptest::collection::vec((any::<i16>(), any::<i16>()), 1..200),
        block in 1usize..100,
    ) {
        let (a, b): (Vec<i16>, Vec<i16>) = pairs.iter().copied().unzip();
        let check = |operation: Operation, skip: usize, exact: &dyn Fn(usize) -> f64| -> Result<(), TestCaseError> {
            let gain = operation.gain();
            let expected: Vec<(u64, i16)> = (skip..a.len())
                .map(|i| (100 + i as u64, (exact(i) * gain).round_ties_even().clamp(-32768.0, 32767.0) as i16))
                .collect();
            prop_assert_eq!(run(operation, &a, &b, block), expected);
            Ok(())
        };
        let (x, y) = (|i: usize| f64::from(a[i]), |i: usize| f64::from(b[i]));
        check(Operation::Add, 0, &|i| x(i) + y(i))?;
        check(Operation::Subtract, 0, &|i| x(i) - y(i))?;
        check(Operation::Multiply, 0, &|i| x(i) * y(i))?;
        check(Operation::Invert, 0, &|i| -x(i))?;
        check(Operation::Absolute, 0, &|i| x(i).abs())?;
        check(Operation::Derivative, 1, &|i| x(i) - x(i - 1))?;
        check(Operation::Integral { baseline: 7 }, 0, &|i| (0..=i).map(|k| x(k) - 7.0).sum())?;
    }

    #[test]
    fn a_filter_is_its_convolution_in_any_blocks(
        a in proptest::collection::vec(-20_000i16..20_000, 1..3000),
        block in 1usize..2500,
        half in 1usize..40,
    ) {
        let fir = Fir::low_pass(0.1, 2 * half + 1).unwrap();
        let got = run(Operation::Filter(fir.clone()), &a, &a, block);
        prop_assert_eq!(got.len(), a.len().saturating_sub(2 * half));
        for (place, (index, value)) in got.into_iter().enumerate() {
            prop_assert_eq!(index, (100 + half + place) as u64);
            let exact: f64 = fir.taps().iter().zip(&a[place..]).map(|(&t, &s)| f64::from(t) * f64::from(s)).sum();
            prop_assert!((f64::from(value) - exact).abs() < 0.6, "{value} {exact}");
        }
    }
}

#[test]
fn filters_pass_and_stop_what_they_should() {
    let level = |fir: &Fir, frequency: f64| {
        let turn = frequency * std::f64::consts::TAU;
        let sum = |f: fn(f64) -> f64| -> f64 {
            fir.taps().iter().enumerate().map(|(n, &tap)| f64::from(tap) * f(n as f64 * turn)).sum()
        };
        20.0 * sum(f64::cos).hypot(sum(f64::sin)).log10()
    };
    let low = Fir::low_pass(0.1, 201).unwrap();
    let high = Fir::high_pass(0.1, 201).unwrap();
    let band = Fir::band_pass(0.1, 0.2, 201).unwrap();
    for (pass, stop) in [(0.01, 0.13), (0.08, 0.3)] {
        assert!(level(&low, pass).abs() < 0.01 && level(&low, stop) < -70.0);
        assert!(level(&high, pass) < -70.0 && level(&high, stop).abs() < 0.01);
    }
    assert!(level(&band, 0.15).abs() < 0.01 && level(&band, 0.07) < -70.0 && level(&band, 0.23) < -70.0);
    assert!(
        Fir::low_pass(0.5, 11).is_err()
            && Fir::low_pass(0.1, 10).is_err()
            && Fir::band_pass(0.2, 0.1, 11).is_err()
    );
}

#[test]
fn gaps_start_anew_and_clipping_is_counted() {
    let mut out = Vec::new();
    let mut slope = MathChannel::new(Operation::Derivative);
    assert_eq!(slope.process(0, &[0, 10], &[], &mut out).unwrap(), 1);
    assert_eq!(slope.process(5, &[100, 120], &[], &mut out).unwrap(), 6);
    assert_eq!(out, [10]);
    let mut filter = MathChannel::new(Operation::Filter(Fir::low_pass(0.2, 5).unwrap()));
    filter.process(0, &[1000; 10], &[], &mut out).unwrap();
    assert_eq!(filter.process(20, &[7; 6], &[], &mut out).unwrap(), 22);
    assert_eq!(out, [7, 7]);
    let mut invert = MathChannel::new(Operation::Invert);
    invert.process(0, &[i16::MIN, 1], &[], &mut out).unwrap();
    assert_eq!((out, invert.clipped()), (vec![i16::MAX, -1], 1));
    let mut sum = MathChannel::new(Operation::Add);
    assert!(sum.process(0, &[1], &[], &mut Vec::new()).is_err());
}
