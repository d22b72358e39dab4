//! Dates and times of day as programs write them.

/// A date, a time of day, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// Since 1970-01-01.
    pub(super) days: Option<i64>,
    /// Time of day, minus the zone's offset from UTC.
    pub(super) attoseconds: i128,
    /// Number of decimals of its seconds.
    pub(super) decimals: i32,
    pub(super) has_time: bool,
    pub(super) has_zone: bool,
    /// Day and month may be the other way round.
    pub(super) is_month_first: bool,
}

impl Moment {
    /// `2026-01-31T10:30:25.123Z`, `31.1.2026 10:30`, `1/31/2026 10:30:25 PM`, `Sat Jan 31 10:30:25 2026`, `10:30:25,123`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_matches('"').trim();
        if text.len() > 48 || !text.is_ascii() || !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mut found = Self {
            days: None,
            attoseconds: 0,
            decimals: 0,
            has_time: false,
            has_zone: false,
            is_month_first: false,
        };
        let mut date: Vec<&str> = Vec::new();
        let mut afternoon = None;
        // The T between date and time.
        let at = text.find('T').filter(|&at| text.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit));
        let pieces = at.map_or([text, ""], |at| [&text[..at], &text[at + 1..]]);
        for word in pieces.iter().flat_map(|piece| piece.split([' ', '\t'])).filter(|word| !word.is_empty()) {
            match word {
                "AM" | "am" => afternoon = Some(0),
                "PM" | "pm" => afternoon = Some(12),
                "Z" | "UTC" | "GMT" => found.has_zone = true,
                _ if word.contains(':') && !found.has_time => found.time_of_day(word)?,
                _ => date.push(word),
            }
        }
        if let Some(hours) = afternoon {
            let hour = 3_600 * ATTOSECONDS;
            let morning = found.attoseconds % (12 * hour);
            found.attoseconds = morning + hours * hour;
        }
        if !date.is_empty() {
            found.date(&date)?;
        }
        (found.has_time || found.days.is_some()).then_some(found)
    }

    fn time_of_day(&mut self, word: &str) -> Option<()> {
        let word = match word.strip_suffix(['Z', 'z']) {
            Some(word) => {
                self.has_zone = true;
                word
            }
            None => word,
        };
        let zone = word.find(['+', '-']).filter(|&at| at >= 4);
        let (time, zone) = word.split_at(zone.unwrap_or(word.len()));
        let mut parts = time.splitn(3, ':');
        let hours: u64 = parts.next()?.parse().ok().filter(|hours| *hours < 25)?;
        let minutes: u64 = parts.next()?.parse().ok().filter(|minutes| *minutes < 60)?;
        let seconds = parts.next().unwrap_or("0");
        let (whole, fraction) = seconds.split_at(seconds.find(['.', ',', ':']).unwrap_or(seconds.len()));
        // A leap second is the first of the next minute.
        let whole: u64 = whole.parse().ok().filter(|seconds| *seconds <= 60)?;
        self.attoseconds = i128::from(hours * 3_600 + minutes * 60 + whole) * ATTOSECONDS;
        // 34.255.812.740
        let mut unit = ATTOSECONDS;
        for byte in fraction.bytes().filter(|byte| !matches!(byte, b'.' | b',' | b':')) {
            let digit = (byte as char).to_digit(10)?;
            unit /= 10;
            self.attoseconds += i128::from(digit) * unit;
            self.decimals += 1;
        }
        if !zone.is_empty() {
            let (sign, digits) = zone.split_at(1);
            let digits = digits.replace(':', "");
            let number: i128 = digits.parse().ok().filter(|_| matches!(digits.len(), 2 | 4))?;
            let minutes = if digits.len() == 2 { number * 60 } else { number / 100 * 60 + number % 100 };
            self.attoseconds -= minutes * 60 * ATTOSECONDS * if sign == "-" { -1 } else { 1 };
            self.has_zone = true;
        }
        self.has_time = true;
        Some(())
    }

    fn date(&mut self, words: &[&str]) -> Option<()> {
        let parts =
            words.iter().flat_map(|word| word.split(['-', '/', '.', ','])).filter(|it| !it.is_empty());
        let (mut numbers, mut month): (Vec<(u64, usize)>, Option<u64>) = (Vec::new(), None);
        for part in parts {
            if let Ok(number) = part.parse() {
                numbers.push((number, part.len()));
            } else if let Some(named) = month_named(part) {
                month = Some(named);
            } else if !is_weekday(part) {
                return None;
            }
        }
        let is_year = |&(_, digits): &(u64, usize)| digits == 4;
        let year_at = numbers.iter().position(is_year)?;
        let year = numbers.remove(year_at).0;
        let (month, day) = match (month, numbers.as_slice()) {
            (Some(month), [(day, _)]) => (month, *day),
            (None, [(month, _), (day, _)]) if year_at == 0 => (*month, *day),
            (None, [(first, _), (second, _)]) if words[0].contains('.') || *first > 12 => (*second, *first),
            (None, [(first, _), (second, _)]) => {
                self.is_month_first = *second <= 12 && first != second;
                (*first, *second)
            }
            _ => return None,
        };
        let date = jiff::civil::Date::new(
            i16::try_from(year).ok()?,
            i8::try_from(month).ok()?,
            i8::try_from(day).ok()?,
        );
        let since = date.ok()?.since(jiff::civil::date(1970, 1, 1)).ok()?;
        self.days = Some(i64::from(since.get_days()));
        Some(())
    }
}

fn month_named(text: &str) -> Option<u64> {
    let name = text.get(..3)?.to_lowercase();
    MONTHS.iter().position(|month| *month == name).map(|at| at as u64 + 1)
}

fn is_weekday(text: &str) -> bool {
    let name = text.get(..3).map(str::to_lowercase);
    name.is_some_and(|name| ["mon", "tue", "wed", "thu", "fri", "sat", "sun"].contains(&name.as_str()))
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
pub(super) const ATTOSECONDS: i128 = 1_000_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_read_as_programs_write_them() {
        // 2026-01-31 10:30:25.123 UTC
        let expected = (20_484, 37_825_123);
        for text in [
            "2026-01-31T10:30:25.123Z",
            "2026-01-31 10:30:25.123",
            "2026/01/31 10:30:25,123",
            "31.01.2026 10:30:25.123",
            "1/31/2026 10:30:25.123 AM",
            "Sat Jan 31 10:30:25.123 2026",
            "31-Jan-2026 10:30:25.123",
            "2026-01-31T12:30:25.123+02:00",
            "2026-01-31 10:30:25.123.000.000",
        ] {
            let moment = Moment::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((moment.days.unwrap(), moment.attoseconds / 10i128.pow(15)), expected, "{text}");
        }
        let time = Moment::parse("10:30:25.123").unwrap();
        assert_eq!((time.days, time.attoseconds / 10i128.pow(15), time.decimals), (None, 37_825_123, 3));
        assert_eq!(Moment::parse("2026-01-31").unwrap().days, Some(20_484));
        assert!(Moment::parse("2/1/2026").unwrap().is_month_first);
        for text in ["", "now", "1.5", "12", "2026-13-01", "25:61:00", "a:b", "1:2x:3", "31.02.2026"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
