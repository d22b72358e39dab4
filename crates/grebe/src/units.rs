//! Numbers as people write them: `25M`, `64K`, `500us`, `2s`.

use std::time::Duration;

/// A rate in hertz, with decimal multiples: `360`, `48k`, `25M`, `1.5G`.
pub fn rate_hz(text: &str) -> Result<f64, String> {
    let (number, multiple) = split(text, &[("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)]);
    let hz = number.trim().parse::<f64>().map(|number| number * multiple);
    match hz {
        Ok(hz) if hz.is_finite() && hz > 0.0 => Ok(hz),
        _ => Err("give a rate above 0, for example 360, 48k, 25M or 1G".to_owned()),
    }
}

/// A number with a decimal prefix: `0.001`, `5u`, `-2.5m`, `1k`.
pub fn number(text: &str) -> Result<f64, String> {
    let prefixes = [("n", 1e-9), ("u", 1e-6), ("µ", 1e-6), ("m", 1e-3), ("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let (number, multiple) = split(text, &prefixes);
    match number.trim().parse::<f64>().map(|number| number * multiple) {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("give a number, for example 0.001, 5u or 1k".to_owned()),
    }
}

/// A count, with decimal multiples: `108_000`, `10k`, `1M`.
pub fn count(text: &str) -> Result<u64, String> {
    let text = text.replace('_', "");
    let (number, multiple) = split(&text, &[("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)]);
    if multiple == 1.0 {
        return number.parse().map_err(|_| COUNT.to_owned());
    }
    let value = number.parse::<f64>().map_err(|_| COUNT.to_owned())? * multiple;
    if value >= 0.0 && value < u64::MAX as f64 { Ok(value.round() as u64) } else { Err(COUNT.to_owned()) }
}

/// A size in bytes, with binary multiples: `1400`, `64K`, `4M`.
pub fn size_bytes(text: &str) -> Result<usize, String> {
    let (number, multiple) =
        split(text, &[("K", 1024.0), ("k", 1024.0), ("M", 1048576.0), ("G", 1073741824.0)]);
    let number = number.parse::<u32>().map_err(|_| "give bytes, for example 1400, 64K or 4M".to_owned())?;
    Ok(number as usize * multiple as usize)
}

/// A time: `500us`, `20ms`, `2s`, `5m`, `1h`; without a unit, seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let units = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("min", 60.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let (number, seconds) = split(text, &units);
    number
        .trim()
        .parse::<f64>()
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number * seconds).ok())
        .ok_or_else(|| "give a time, for example 500us, 2s or 5m".to_owned())
}

/// A picture's size in pixels: `1280x720`.
pub fn pixels(text: &str) -> Result<(u32, u32), String> {
    let parsed =
        text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    match parsed {
        Some((width @ 160..=16_384, height @ 120..=16_384)) => Ok((width, height)),
        _ => Err("give WIDTHxHEIGHT between 160x120 and 16384x16384, for example 1280x720".to_owned()),
    }
}

/// A factor above zero, such as `--speed 100`.
pub fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err("give a factor above 0, for example 0.5 or 100".to_owned()),
    }
}

/// A number for people: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn split<'a>(text: &'a str, units: &[(&str, f64)]) -> (&'a str, f64) {
    let unit = units.iter().find(|(unit, _)| {
        text.strip_suffix(unit).is_some_and(|rest| {
            rest.ends_with(|last: char| last.is_ascii_digit() || last == '.' || last == ' ')
        })
    });
    unit.map_or((text, 1.0), |(unit, multiple)| (&text[..text.len() - unit.len()], *multiple))
}

const COUNT: &str = "give a number, for example 1000, 10k or 1M";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood() {
        assert_eq!(
            ["360", "48k", "25M", "1.5G"].map(|text| rate_hz(text).unwrap()),
            [360.0, 48e3, 25e6, 1.5e9]
        );
        assert_eq!(["108_000", "10k", "0"].map(|text| count(text).unwrap()), [108_000, 10_000, 0]);
        assert_eq!(["1400", "64K", "4M"].map(|text| size_bytes(text).unwrap()), [1400, 65_536, 4 << 20]);
        let times = ["500us", "20ms", "2s", "1.5", "5m", "1h", "3min"]
            .map(|text| duration(text).unwrap().as_micros());
        assert_eq!(times, [500, 20_000, 2_000_000, 1_500_000, 300_000_000, 3_600_000_000, 180_000_000]);
        assert_eq!(pixels("1280x720"), Ok((1280, 720)));
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(["", "-1", "0", "x", "1X", "inf", "NaN", "M"].iter().all(|text| rate_hz(text).is_err()));
        assert!(["", "-1", "1.5", "k"].iter().all(|text| count(text).is_err()));
        assert!(["", "-2s", "1e400", "s"].iter().all(|text| duration(text).is_err()));
        assert!(["", "12", "1x1", "99999x720", "x"].iter().all(|text| pixels(text).is_err()));
        assert!(["0", "-1", "inf", ""].iter().all(|text| factor(text).is_err()));
    }
}
