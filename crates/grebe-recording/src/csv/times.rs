//! Finds the rate and missing samples from the times of a table.

use super::name::Name;
use super::preamble::Preamble;
use crate::error::Error;
use crate::table::{Clock, Heading, Spacing, Step, Steps, TimeUnit, Uneven};

/// The column of the time.
#[derive(Debug)]
pub(super) struct Time {
    pub(super) date: Option<usize>,
    pub(super) name: String,
    pub(super) unit: Option<TimeUnit>,
}

/// The rate of a table, and how its lines follow each other.
#[derive(Debug)]
pub(super) struct Times {
    /// 0: nothing says it.
    pub(super) rate_hz: f64,
    follow: Follow,
}

#[derive(Debug)]
enum Follow {
    /// Every line is the next sample.
    Lines,
    Spacing(Steps),
    /// Each line is the sample at its time; a missing time is a gap.
    Grid {
        last: Option<i64>,
    },
}

impl Times {
    /// Determines the times from the first lines; `notes` gets the chosen reading among several.
    pub(super) fn of(
        name: &Name,
        column: Option<&Time>,
        clock: Option<&Clock>,
        preamble: &Preamble,
        times_s: &[f64],
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let said_hz = name.rate_hz.or(preamble.rate_hz);
        let lines = |rate_hz: Option<f64>| Self { rate_hz: rate_hz.unwrap_or(0.0), follow: Follow::Lines };
        let (Some(column), Some(clock)) = (column, clock) else {
            if said_hz.is_none() {
                notes.push(format!("the sample rate is unknown: name it, as in {}", name.typed("rate=1k")));
            }
            return Ok(lines(said_hz));
        };
        notes.extend(clock.guesses(&column.name));
        let along = |spacing: Spacing, rate_hz: f64| Self {
            rate_hz,
            follow: Follow::Spacing(Steps::new(spacing.with_rate(rate_hz))),
        };
        let spacing = match clock.spacing(times_s) {
            Ok(spacing) => spacing,
            Err(_) if times_s.len() < 2 => return Ok(lines(said_hz)),
            Err(Uneven::Standing) => match said_hz {
                Some(rate_hz) => {
                    notes
                        .push(format!("{}: the times do not tell lines apart, and say no gaps", column.name));
                    return Ok(lines(Some(rate_hz)));
                }
                None => {
                    let what = "the times do not say the sample rate: they are all alike, or go back";
                    let (rate, none) = (name.typed("rate=1k"), name.typed("time=none&rate=1k"));
                    return Err(name.refused(format!(
                        "{what}; give it, as in {rate}, or without the column {}: {none}",
                        column.name
                    )));
                }
            },
            Err(Uneven::Irregular) => match name.rate_hz {
                Some(rate_hz) => {
                    notes.push(format!(
                        "{}: irregular times; each line is the sample nearest to its time at {rate_hz} S/s",
                        column.name
                    ));
                    return Ok(Self { rate_hz, follow: Follow::Grid { last: None } });
                }
                None => return Err(irregular(name, column, times_s)),
            },
        };
        let Spacing { rate_hz, error, jitter_s, .. } = spacing;
        match name.rate_hz.or(preamble.rate_hz) {
            Some(said) if (said / rate_hz - 1.0).abs() <= 2.0 * error + 1e-4 => Ok(along(spacing, said)),
            Some(said) if name.rate_hz.is_some() => {
                notes.push(format!(
                    "{}: the times say {rate_hz} S/s; {said} S/s is taken, as asked for, and no gaps",
                    column.name
                ));
                Ok(lines(Some(said)))
            }
            Some(said) => {
                notes.push(format!(
                    "the lines above the table say {said} S/s, and its times {rate_hz} S/s, which is taken; to say otherwise: {}",
                    name.typed(&format!("rate={said}"))
                ));
                Ok(along(spacing, rate_hz))
            }
            None => {
                // A round number is hardly one by chance.
                if error > 1e-3 && format!("{rate_hz:.1e}").parse() != Ok(rate_hz) {
                    notes.push(format!(
                        "{}: so few times say the rate to {:.1} % only: read as {rate_hz} S/s; to say otherwise: {}",
                        column.name,
                        error * 100.0,
                        name.typed("rate=1k")
                    ));
                }
                if jitter_s > 0.1 * spacing.period_s {
                    let part = jitter_s / spacing.period_s * 100.0;
                    notes.push(format!(
                        "{}: the times are up to {part:.0} % of a sample off an even spacing of {rate_hz} S/s",
                        column.name
                    ));
                }
                Ok(along(spacing, rate_hz))
            }
        }
    }

    /// How this row follows the one before it.
    pub(super) fn step(&mut self, times_s: &[f64], at: usize) -> Step {
        match &mut self.follow {
            Follow::Lines => Step::Next,
            Follow::Spacing(steps) => steps.take(times_s, at),
            Follow::Grid { last } => {
                let sample = (times_s[at] * self.rate_hz).round();
                if sample.abs() >= STEPS_MAX {
                    return Step::Back;
                }
                let sample = sample as i64;
                let Some(before) = last.replace(sample) else { return Step::Next };
                match sample - before {
                    1 => Step::Next,
                    missing @ 2.. => Step::Gap(missing as u64 - 1),
                    0 => Step::Doubled,
                    _ => Step::Back,
                }
            }
        }
    }
}

/// How a first column that looks like the time is named as that.
pub(super) fn offer(name: &Name, values: &[f64], heading: Option<&String>) -> Option<String> {
    let first = values.first()?;
    let since: Vec<f64> = values.iter().map(|value| value - first).collect();
    let is_even = values.len() >= ROWS_TO_OFFER
        && grow(values)
        && Spacing::of(&since, 0.0).is_ok_and(|spacing| spacing.jitter_s < 0.05 * spacing.period_s);
    let called = heading.filter(|it| !it.is_empty() && !it.contains(['&', '?']));
    let called = called.map_or("1", String::as_str);
    // Some programs write the unit in place of a name.
    let unit = TimeUnit::named(&called.to_lowercase()).unwrap_or(TimeUnit::S);
    let typed = name.typed(&format!("time={called}:{unit}"));
    // t is a temperature, too.
    let is_called_time = || Heading::of(called).time().is_some();
    match is_even {
        true => {
            Some(format!("column 1 grows by even steps and is read as a channel; if it is the time: {typed}"))
        }
        false if is_called_time() => Some(format!(
            "column 1 ({called}) does not grow and is read as a channel; if it is the time: {typed}"
        )),
        false => None,
    }
}

/// Whether times are this far apart.
pub(super) fn are_apart(values: &[f64], step_s: f64) -> bool {
    let [first, .., last] = values else { return false };
    let is_step = ((last - first) / (values.len() - 1) as f64 / step_s - 1.0).abs() < 1e-3;
    is_step && grow(values)
}

fn grow(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] < pair[1])
}

/// A line for each change, as analysers of logic write it, or as things happened.
fn irregular(name: &Name, column: &Time, times_s: &[f64]) -> Error {
    let steps = times_s.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
    let least_s = steps.fold(f64::MAX, f64::min);
    // The next 1, 2 or 5.
    let power = 10f64.powf((1.0 / least_s).log10().floor());
    let rate_hz = [1.0, 2.0, 5.0, 10.0].map(|it| it * power).into_iter().find(|it| *it >= 0.999 / least_s);
    let rate = si(rate_hz.unwrap_or(10.0 * power));
    let held = name.typed(&format!("rate={rate}&gaps=hold"));
    name.refused(format!(
        "the times in {} have no even spacing: give a rate, as in {}, which leaves gaps between the lines; \
         if each line is a change, {held} holds its values until the next",
        column.name,
        name.typed(&format!("rate={rate}"))
    ))
}

fn si(rate_hz: f64) -> String {
    match rate_hz {
        hz if hz >= 1e6 => format!("{}M", (hz / 1e4).round() / 100.0),
        hz if hz >= 1e3 => format!("{}k", (hz / 10.0).round() / 100.0),
        hz => format!("{}", (hz * 1e6).round() / 1e6),
    }
}

const STEPS_MAX: f64 = 1e15;
const ROWS_TO_OFFER: usize = 8;
