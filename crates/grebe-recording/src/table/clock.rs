//! A column of times: seconds since the first, to every digit that is written.

use std::time::{Duration, SystemTime};

use super::heading::TimeUnit;
use super::moment::{ATTOSECONDS, Moment};
use super::number::{Decimal, POWERS, decimal};
use super::spacing::Uneven;
use super::steps::Spacing;

/// Reads the times of a column. Numbers become seconds since the first one without a way through `f64`, which holds
/// the nanoseconds of a Unix time to 200 ns only.
#[derive(Debug, Clone)]
pub struct Clock {
    point: u8,
    /// From the name, or requested.
    unit: Option<TimeUnit>,
    first: Option<First>,
    resolution: Resolution,
    /// Midnights that were passed.
    midnights: i64,
    last: i128,
    is_month_first: bool,
    /// Nobody asks any more how coarse the times are.
    is_settled: bool,
}

/// The first time.
#[derive(Debug, Clone, Copy)]
struct First {
    decimal: Option<Decimal>,
    unit: TimeUnit,
    attoseconds: i128,
    is_since_1970: bool,
    has_zone: bool,
}

/// Resolution of written times: by the place of the first digit, because some programs write a fixed number
/// of digits.
#[derive(Debug, Clone)]
struct Resolution {
    places: [Place; PLACES],
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    count: u64,
    /// The finest power of ten that is written, and that is not zero.
    written: i32,
    used: i32,
}

impl Clock {
    /// Times in this unit. Without a unit, Unix times are recognized by their size, and others are seconds.
    pub fn new(unit: Option<TimeUnit>, point: u8) -> Self {
        let resolution = Resolution { places: [Place::default(); PLACES] };
        Self {
            point,
            unit,
            first: None,
            resolution,
            midnights: 0,
            last: 0,
            is_month_first: false,
            is_settled: false,
        }
    }

    /// Seconds since the first time; `None` for an invalid time.
    ///
    /// ```
    /// use grebe_recording::table::Clock;
    ///
    /// let mut clock = Clock::new(None, b'.');
    /// assert_eq!(clock.seconds(b"1766147454.233218075"), Some(0.0));
    /// assert_eq!(clock.seconds(b"1766147454.233218076"), Some(1e-9));
    /// ```
    #[inline]
    pub fn seconds(&mut self, field: &[u8]) -> Option<f64> {
        let field = field.trim_ascii();
        let Some(now) = decimal(field, self.point) else { return self.seconds_of(b"", field) };
        self.seconds_at(now)
    }

    /// The same for a number.
    #[inline]
    pub(crate) fn seconds_at(&mut self, now: Decimal) -> Option<f64> {
        let unit = match self.first {
            Some(first) => first.unit,
            None => self.unit_of(now),
        };
        if !self.is_settled {
            self.resolution.note(now, unit.exponent());
        }
        let first = *self.first.get_or_insert_with(|| {
            let attoseconds = attoseconds(now, unit).unwrap_or_default();
            let is_since_1970 = UNIX_S.contains(&(attoseconds / ATTOSECONDS));
            First { decimal: Some(now), unit, attoseconds, is_since_1970, has_zone: true }
        });
        // Powers of ten are exact in f64, so this is the nearest number.
        let exponent = now.exponent + unit.exponent();
        if first.decimal.is_some_and(|first| first.exponent == now.exponent) && (-22..=0).contains(&exponent)
        {
            let since = now.mantissa.checked_sub(first.decimal?.mantissa)?;
            return Some(since as f64 / POWERS[exponent.unsigned_abs() as usize]);
        }
        Some((attoseconds(now, unit)? - first.attoseconds) as f64 / ATTOSECONDS as f64)
    }

    /// The same for a date and a time in two columns, or for both in one.
    pub fn seconds_of(&mut self, date: &[u8], time: &[u8]) -> Option<f64> {
        let text = |bytes| std::str::from_utf8(bytes).ok();
        let time = Moment::parse(text(time)?)?;
        let day = if date.is_empty() { time } else { Moment::parse(text(date)?)? };
        self.is_month_first |= day.is_month_first;
        let days = day.days.or(time.days);
        let mut now = i128::from(days.unwrap_or(self.midnights)) * DAY + time.attoseconds;
        if days.is_none() && now < self.last - DAY / 2 {
            self.midnights += 1;
            now += DAY;
        }
        self.last = now;
        let decimals = time.decimals.clamp(0, 17);
        self.resolution.note(Decimal { mantissa: 10i64.pow(decimals as u32) + 1, exponent: -decimals }, 0);
        let first = *self.first.get_or_insert(First {
            decimal: None,
            unit: TimeUnit::S,
            attoseconds: now,
            is_since_1970: days.is_some(),
            has_zone: time.has_zone,
        });
        Some((now - first.attoseconds) as f64 / ATTOSECONDS as f64)
    }

    /// Later times no longer change the [spacing](Self::spacing).
    pub fn settle(&mut self) {
        self.is_settled = true;
    }

    /// The even spacing of all times read, which are `times_s`.
    ///
    /// # Errors
    /// If they have none.
    pub fn spacing(&self, times_s: &[f64]) -> Result<Spacing, Uneven> {
        let as_written = Spacing::of(times_s, self.resolution.seconds(|place| place.written));
        let jitter_s = |spacing: &Result<Spacing, Uneven>| spacing.map_or(f64::MAX, |it| it.jitter_s);
        // Digits that are always zero may be none: nanoseconds of a clock of milliseconds.
        let as_used = Spacing::of(times_s, self.resolution.seconds(|place| place.used));
        if jitter_s(&as_written) == 0.0 {
            // Between many gaps of one sample and a lower rate without gaps, the rate is the simpler
            // explanation.
            let is_slower = |used: &Spacing, written: &Spacing| used.rate_hz < written.rate_hz * (1.0 - 1e-6);
            return match (as_written, as_used) {
                (Ok(written), Ok(used)) if used.jitter_s == 0.0 && is_slower(&used, &written) => Ok(used),
                (written, _) => written,
            };
        }
        if jitter_s(&as_used) < jitter_s(&as_written) { as_used } else { as_written }
    }

    /// When the first time was, where the times say so.
    pub fn began(&self) -> Option<SystemTime> {
        let first = self.first.filter(|first| first.is_since_1970)?;
        let ns = u64::try_from(first.attoseconds / 1_000_000_000).ok()?;
        Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(ns))
    }

    /// The first time in seconds, where it is a number that counts from no date.
    pub fn first_s(&self) -> Option<f64> {
        let first = self.first.filter(|first| !first.is_since_1970 && first.decimal.is_some())?;
        Some(first.attoseconds as f64 / ATTOSECONDS as f64)
    }

    /// Assumptions about the times, and how to override them; `name` is that of the column.
    pub fn guesses(&self, name: &str) -> Vec<String> {
        let Some(first) = self.first else { return Vec::new() };
        let mut guesses = Vec::new();
        let since = if first.is_since_1970 { " since 1970" } else { "" };
        // A t may be a temperature, and whole numbers of any unit.
        let is_open = |it: Decimal| it.exponent >= 0 || self.unit.is_some() || name == "t";
        if self.unit != Some(first.unit) && first.decimal.is_some_and(is_open) {
            let unit = first.unit;
            guesses.push(format!(
                "{name}: read as times in {unit}{since}; to say otherwise: time={name}:ms (s, ms, us, ns)"
            ));
        }
        if !first.has_zone && first.is_since_1970 {
            guesses.push(format!("{name}: no time zone; read as UTC"));
        }
        if self.is_month_first {
            guesses.push(format!("{name}: read as month/day/year"));
        }
        guesses
    }

    fn unit_of(&self, now: Decimal) -> TimeUnit {
        let is_unix =
            |unit: &TimeUnit| attoseconds(now, *unit).is_some_and(|it| UNIX_S.contains(&(it / ATTOSECONDS)));
        let by_size = || [TimeUnit::S, TimeUnit::Ms, TimeUnit::Us, TimeUnit::Ns].into_iter().find(is_unix);
        match self.unit {
            // Ten thousand years are another unit.
            Some(unit) if attoseconds(now, unit).is_some_and(|it| it.abs() < TOO_LONG_S * ATTOSECONDS) => {
                unit
            }
            given => by_size().or(given).unwrap_or(TimeUnit::S),
        }
    }
}

impl Resolution {
    #[inline]
    fn note(&mut self, now: Decimal, unit: i32) {
        let Decimal { mantissa, exponent } = now;
        if mantissa == 0 {
            return;
        }
        let digits = mantissa.unsigned_abs().ilog10() as i32;
        let place = (digits + exponent + unit + PLACES as i32 / 2).clamp(0, PLACES as i32 - 1);
        let place = &mut self.places[place as usize];
        let written = exponent + unit;
        let used = written + zeros(mantissa);
        let is_first = place.count == 0;
        place.written = if is_first { written } else { place.written.min(written) };
        place.used = if is_first { used } else { place.used.min(used) };
        place.count += 1;
    }

    fn seconds(&self, digit: impl Fn(&Place) -> i32) -> f64 {
        let all: u64 = self.places.iter().map(|place| place.count).sum();
        let is_usual = |place: &&Place| place.count >= PLACE_MIN && place.count * 16 >= all;
        let there = || self.places.iter().filter(|place| place.count > 0);
        let usual = there().filter(is_usual).map(&digit).max();
        let exponent = usual.or_else(|| there().map(|place| place.written).min());
        exponent.map_or(0.0, |exponent| 10f64.powi(exponent))
    }
}

fn zeros(mut mantissa: i64) -> i32 {
    let mut zeros = 0;
    while mantissa != 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        zeros += 1;
    }
    zeros
}

fn attoseconds(now: Decimal, unit: TimeUnit) -> Option<i128> {
    let power = now.exponent + unit.exponent() + 18;
    let mantissa = i128::from(now.mantissa);
    if power < 0 {
        return Some(mantissa / 10i128.checked_pow(power.unsigned_abs()).unwrap_or(i128::MAX));
    }
    mantissa.checked_mul(10i128.checked_pow(power.unsigned_abs())?)
}

/// From 2001 to 2100.
const UNIX_S: std::ops::Range<i128> = 1_000_000_000..4_102_444_800;
const TOO_LONG_S: i128 = 100_000_000_000;
const DAY: i128 = 86_400 * ATTOSECONDS;
const PLACES: usize = 64;
/// Fewer times do not show how many digits a program writes.
const PLACE_MIN: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(unit: Option<TimeUnit>, fields: &[&str]) -> (Vec<f64>, f64, Option<f64>) {
        let mut clock = Clock::new(unit, b'.');
        let seconds = fields.iter().map(|field| clock.seconds(field.as_bytes()).unwrap()).collect();
        let began = clock.began().map(|it| it.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64());
        (seconds, clock.resolution.seconds(|place| place.written), began)
    }

    #[test]
    fn no_digit_of_a_unix_time_is_lost() {
        for (unit, fields) in [
            (None, ["1766147454233218075", "1766147454233218076"]),
            (None, ["1766147454.233218075", "1766147454.233218076"]),
            (Some(TimeUnit::Ns), ["1766147454233218075", "1766147454233218076"]),
        ] {
            let (seconds, resolution_s, began) = read(unit, &fields);
            assert_eq!((seconds, resolution_s), (vec![0.0, 1e-9], 1e-9));
            assert!((began.unwrap() - 1_766_147_454.233).abs() < 1e-3);
        }
        assert_eq!(read(None, &["1766147454233", "1766147454234"]).0, [0.0, 1e-3]);
        assert_eq!(read(Some(TimeUnit::Ms), &["5", "7.5"]), (vec![0.0, 2.5e-3], 1e-4, None));
    }

    #[test]
    fn the_resolution_is_that_of_the_last_digit_however_numbers_are_written() {
        assert_eq!(read(None, &["0.1", "0.25", "0.5"]).1, 0.01);
        let of = |write: fn(f64) -> String| {
            let mut clock = Clock::new(None, b'.');
            (1..1_000)
                .for_each(|at| assert!(clock.seconds(write(f64::from(at) * 1.373e-6).as_bytes()).is_some()));
            clock.resolution.seconds(|place| place.written)
        };
        assert_eq!(of(|it| format!("{it:.9}")), 1e-9);
        // With four digits, the last one means more for large numbers than for small ones.
        assert_eq!(of(|it| format!("{it:.3e}")), 1e-6);
    }

    #[test]
    fn dates_and_midnights_are_counted() {
        let (seconds, resolution_s, began) =
            read(None, &["2026-01-31T23:59:59.5Z", "2026-02-01T00:00:00.25Z"]);
        assert_eq!((seconds, resolution_s), (vec![0.0, 0.75], 0.01));
        assert_eq!(began, Some(1_769_903_999.5));
        assert_eq!(read(None, &["23:59:59.5", "0:00:00.5", "0:00:01.5"]).0, [0.0, 1.0, 2.0]);
        let mut clock = Clock::new(None, b'.');
        assert_eq!(clock.seconds_of(b"2026-01-01", b"10:00:00"), Some(0.0));
        assert_eq!(clock.seconds_of(b"2026-01-02", b"10:00:00"), Some(86_400.0));
        assert_eq!(clock.guesses("Time"), ["Time: no time zone; read as UTC"]);
    }
}
