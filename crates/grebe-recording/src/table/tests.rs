//! Times as loggers write them: rounded, with jitter and gaps, from 0.1 S/s to 50 MS/s.

use proptest::prelude::*;

use super::{Clock, Spacing, Step, Steps, TimeUnit};

/// A logger's times for evenly spaced samples.
#[derive(Debug, Clone)]
struct Logger {
    rate_hz: f64,
    /// Decimals of a second.
    decimals: i32,
    unit: TimeUnit,
    jitter: f64,
    start_s: i64,
    /// Before which line, and how many samples.
    gaps: Vec<(usize, u64)>,
    lines: usize,
    truncates: bool,
}

impl Logger {
    fn resolution(&self) -> f64 {
        10f64.powi(-self.decimals) * self.rate_hz
    }

    /// Steps of rounding that come rarely look like a sample that is lost, or a time that is doubled, now and then.
    fn is_told(&self) -> bool {
        let slips = (1.0 / self.resolution() - 1.0).abs() * self.lines as f64;
        let most = if self.resolution() > 1.0 { self.lines as f64 / 10.0 } else { 64.0 };
        !(0.5..most).contains(&slips)
    }

    fn fields(&self) -> Vec<String> {
        let mut random = grebe_testing::Rng::with_seed(self.lines as u64 + self.decimals as u64);
        let mut sample = 0u64;
        let scale = 10i128.pow(self.decimals as u32);
        let field = |line: usize| {
            sample += self.gaps.iter().filter(|(at, _)| *at == line).map(|(_, missing)| missing).sum::<u64>();
            let jitter = self.jitter * (2.0 * random.f64() - 1.0);
            let ticks = (sample as f64 + 0.37 + jitter) / self.rate_hz * scale as f64;
            sample += 1;
            let ticks = if self.truncates { ticks.floor() } else { ticks.round() } as i128;
            let ticks = ticks + i128::from(self.start_s) * scale;
            let point = self.decimals
                - match self.unit {
                    TimeUnit::S => 0,
                    TimeUnit::Ms => 3,
                    TimeUnit::Us => 6,
                    TimeUnit::Ns => 9,
                };
            if point <= 0 {
                return (ticks * 10i128.pow(point.unsigned_abs())).to_string();
            }
            let point = 10i128.pow(point as u32);
            let digits = point.ilog10() as usize;
            format!("{}.{:0digits$}", ticks / point, ticks % point)
        };
        (0..self.lines).map(field).collect()
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let mut clock = Clock::new(Some(self.unit), b'.');
        let times: Vec<f64> =
            self.fields().iter().map(|field| clock.seconds(field.as_bytes()).unwrap()).collect();
        let spacing = clock.spacing(&times);
        let Ok(spacing) = spacing else { return Err(TestCaseError::fail(format!("{spacing:?}: {self:?}"))) };
        let off = spacing.rate_hz / self.rate_hz - 1.0;
        prop_assert!(off.abs() < 1e-5, "{} S/s instead of {self:?}", spacing.rate_hz);
        let mut steps = Steps::new(spacing);
        let mut found = Vec::new();
        for at in 0..times.len() {
            match steps.take(&times, at) {
                Step::Next => {}
                Step::Gap(missing) => found.push((at, missing)),
                step => return Err(TestCaseError::fail(format!("line {at} is {step:?}: {self:?}"))),
            }
        }
        prop_assert_eq!(&found, &self.gaps, "{:?}", self);
        Ok(())
    }
}

fn loggers() -> impl Strategy<Value = Logger> {
    let units = prop::sample::select(vec![TimeUnit::S, TimeUnit::Ms, TimeUnit::Us, TimeUnit::Ns]);
    let gaps = prop::collection::btree_map(1usize..100, prop_oneof![1u64..6, 100u64..5_000], 0..8);
    let start_s = prop_oneof![Just(0i64), Just(86_000), Just(1_766_147_454)];
    let jitter = prop_oneof![Just(0.0), 0.0..0.3];
    let rate = (-1.0..7.7f64).prop_map(|power| 10f64.powf(power));
    (rate, 2..=9i32, units, jitter, start_s, gaps, any::<bool>()).prop_map(
        |(rate_hz, decimals, unit, jitter, start_s, gaps, truncates)| {
            let mut logger = Logger {
                // A crystal is not better than that, and the test requires 10 ppm.
                rate_hz: format!("{rate_hz:.3e}").parse().unwrap(),
                decimals,
                unit,
                jitter,
                start_s,
                gaps: Vec::new(),
                lines: 10_000,
                truncates,
            };
            // Of coarse times, a gap is one that is longer than they are coarse, and the other ones are not beside it.
            let least = if logger.resolution() > 0.5 { (1.2 * logger.resolution()).ceil() as u64 } else { 0 };
            logger.gaps = gaps.into_iter().map(|(at, missing)| (at * 100, missing + least)).collect();
            logger
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// The supported range: times not coarser than two samples, and with jitter not coarser than a third.
    #[test]
    fn the_rate_is_right_within_10_ppm_and_every_gap_is_found(logger in loggers()) {
        let most = if logger.jitter > 0.0 { 0.3 } else { 2.0 };
        prop_assume!(logger.resolution() <= most && logger.is_told());
        logger.check()?;
    }
}

/// Files and boards of bug reports.
#[test]
fn rates_that_were_read_wrong_are_read_right() {
    for (rate_hz, decimals) in [
        (48e3, 5),
        (256.0, 3),
        (360.0, 3),
        (400.0, 3),
        (60.0, 2),
        (128.0, 2),
        (8.0, 1),
        (860.0, 3),
        (700.0, 3),
        (2e3, 3),
        (5e3, 3),
        (30.0, 3),
        (1e6, 6),
        (1e6, 9),
    ] {
        for start_s in [0, 1_766_147_454] {
            for truncates in [false, true] {
                let logger = Logger {
                    rate_hz,
                    decimals,
                    unit: TimeUnit::S,
                    jitter: 0.0,
                    start_s,
                    gaps: Vec::new(),
                    lines: 6_000,
                    truncates,
                };
                logger.check().unwrap();
            }
        }
    }
}

fn spaced(times_s: &[f64], resolution_s: f64) -> (f64, Vec<(usize, Step)>) {
    let spacing = Spacing::of(times_s, resolution_s).unwrap();
    let mut steps = Steps::new(spacing);
    let taken = (0..times_s.len()).map(|at| (at, steps.take(times_s, at)));
    (spacing.rate_hz, taken.filter(|(_, step)| *step != Step::Next).collect())
}

#[test]
fn few_lines_give_partial_results() {
    assert_eq!(spaced(&[0.0, 0.25, 0.5, 1.5, 1.75], 0.01), (4.0, vec![(3, Step::Gap(3))]));
    assert_eq!(spaced(&[0.0, 0.001, 0.005], 0.001), (1e3, vec![(2, Step::Gap(3))]));
    assert_eq!(spaced(&[0.0, 0.001], 0.001), (1e3, vec![]));
    // The first step is twice as long.
    assert_eq!(spaced(&[0.0, 0.02, 0.03, 0.04, 0.05, 0.06], 0.01), (100.0, vec![(1, Step::Gap(1))]));
    let doubled = [0.0, 0.1, 0.2, 0.3, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5];
    assert_eq!(spaced(&doubled, 0.01), (10.0, vec![(4, Step::Doubled)]));
    let back: Vec<f64> = (0..400).map(|at| f64::from(at % 200) * 0.01).collect();
    assert_eq!(spaced(&back, 1e-3), (100.0, vec![(200, Step::Back)]));
}

/// A board that is as fast as its clock, and a clock of 100 ns that is written in nanoseconds.
#[test]
fn clocks_that_are_as_coarse_as_samples_are_apart_say_single_gaps() {
    let times: Vec<f64> = (0..1_000).map(|at| f64::from(at + i32::from(at >= 700)) * 1e-3).collect();
    assert_eq!(spaced(&times, 1e-3), (1e3, vec![(700, Step::Gap(1))]));
    // The first lines have none, and a later one has.
    let spacing = Spacing::of(&times[..600], 1e-3).unwrap();
    let mut steps = Steps::new(spacing);
    let taken: Vec<Step> = (0..times.len()).map(|at| steps.take(&times, at)).collect();
    assert_eq!(taken.iter().position(|step| *step != Step::Next), Some(700));
    let logger = Logger {
        rate_hz: 10.69e6,
        decimals: 7,
        unit: TimeUnit::Ns,
        jitter: 0.0,
        start_s: 0,
        gaps: Vec::new(),
        lines: 10_000,
        truncates: false,
    };
    logger.check().unwrap();
}

#[test]
fn a_program_that_waits_between_lines_has_no_gaps_and_a_mean_rate() {
    let mut random = grebe_testing::Rng::with_seed(7);
    let mut time_s = 0.0;
    let mut next = || {
        time_s += 0.007 + 0.006 * random.f64();
        time_s
    };
    let times: Vec<f64> = (0..5_000).map(|_| next()).collect();
    let (rate_hz, others) = spaced(&times, 1e-6);
    assert!((rate_hz - 100.0).abs() < 1.0 && others.is_empty(), "{rate_hz} {others:?}");
}

#[test]
fn times_without_even_spacing_are_recognised() {
    use super::Uneven::{Irregular, Standing};

    assert_eq!(Spacing::of(&[0.0, 13.25e-6, 13.87e-6, 1e-3, 6.0], 1e-9), Err(Irregular));
    assert_eq!(Spacing::of(&[0.0; 100], 1e-3), Err(Standing));
    assert_eq!(Spacing::of(&[0.0], 1e-3), Err(Standing));
    assert_eq!(Spacing::of(&[3.0, 2.0, 1.0], 1.0), Err(Standing));
    let mut random = grebe_testing::Rng::with_seed(7);
    let mut time_s = 0.0;
    let mut next = || {
        time_s -= random.f64().max(1e-9).ln();
        time_s
    };
    let decays: Vec<f64> = (0..1_000).map(|_| next()).collect();
    assert_eq!(Spacing::of(&decays, 1e-6), Err(Irregular));
}

#[test]
fn times_with_all_their_digits_say_the_rate() {
    let times: Vec<f64> = (0..200_000).map(|at| f64::from(at) / 48e3).collect();
    assert_eq!(Spacing::of(&times, 1e-16).unwrap().rate_hz, 48e3);
}

/// Ten thousand samples a second with gaps would explain them, too.
#[test]
fn times_of_microseconds_from_a_clock_of_hundreds_say_the_rate() {
    let times: Vec<String> =
        (0..10_000).map(|at| format!("{}00", (f64::from(at) / 0.9842).round())).collect();
    let mut clock = Clock::new(Some(TimeUnit::Us), b'.');
    let seconds: Vec<f64> = times.iter().map(|time| clock.seconds(time.as_bytes()).unwrap()).collect();
    let off = clock.spacing(&seconds).unwrap().rate_hz / 9842.0 - 1.0;
    assert!(off.abs() < 1e-5, "{off}");
}
