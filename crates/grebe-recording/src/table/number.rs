//! Numbers as programs write them.

/// A number in a text: `mantissa * 10^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(super) mantissa: i64,
    pub(super) exponent: i32,
}

impl Decimal {
    /// The nearest number, where one operation on exact ones gives it.
    #[inline]
    pub(crate) fn nearest(self) -> Option<f64> {
        let power = POWERS.get(self.exponent.unsigned_abs() as usize)?;
        let number = self.mantissa as f64;
        (self.mantissa.unsigned_abs() < 1 << 53)
            .then(|| if self.exponent < 0 { number / power } else { number * power })
    }
}

/// Parses a number; `point` is the decimal point.
#[inline]
pub fn number(text: &[u8], point: u8) -> Option<f64> {
    let text = text.trim_ascii();
    if let Some(decimal) = decimal(text, point)
        && let Some(number) = decimal.nearest()
    {
        let negative_zero = decimal.mantissa == 0 && text[0] == b'-';
        return Some(if negative_zero { -0.0 } else { number });
    }
    if point == b'.' || !text.contains(&point) {
        std::str::from_utf8(text).ok()?.parse().ok()
    } else {
        let text: Vec<u8> = text.iter().map(|&byte| if byte == point { b'.' } else { byte }).collect();
        std::str::from_utf8(&text).ok()?.parse().ok()
    }
}

/// A number and its unit, without or after a blank: `24.00°C`, `40%`, `-3 dBm`.
pub fn number_and_unit(text: &[u8], point: u8) -> Option<(f64, &[u8])> {
    let text = text.trim_ascii();
    let is_digit = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-') || *byte == point;
    let mut end = text.iter().position(|byte| !is_digit(byte)).unwrap_or(text.len());
    // 1e-3V, but 5eV
    if let [b'e' | b'E', rest @ ..] = &text[end..] {
        let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
        let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        end += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    if !text[..end].last().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let unit = std::str::from_utf8(text[end..].trim_ascii()).ok()?;
    let is_part = |c: char| c.is_alphabetic() || "%°Ω‰/^²³·*".contains(c);
    // Neither 0x10 nor 12h30.
    let is_unit = unit.len() <= UNIT_BYTES_MAX && unit.chars().all(is_part) && !unit.starts_with('x');
    Some((number(&text[..end], point)?, unit.as_bytes())).filter(|_| is_unit)
}

/// The digits of a number, as far as 64 bits hold them; further decimals are dropped.
#[inline]
pub(super) fn decimal(text: &[u8], point: u8) -> Option<Decimal> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (mut mantissa, mut exponent, mut has_point) = (0i64, 0, false);
    let mut at = 0;
    while let Some(&byte) = digits.get(at) {
        if byte.is_ascii_digit() {
            if mantissa < FULL {
                mantissa = mantissa * 10 + i64::from(byte - b'0');
                exponent -= i32::from(has_point);
            } else if !has_point {
                return None;
            }
        } else if byte == point && !has_point {
            has_point = true;
        } else {
            break;
        }
        at += 1;
    }
    let has_digits = at > usize::from(has_point);
    if !has_digits {
        return None;
    }
    match &digits[at..] {
        [] => {}
        [b'e' | b'E', power @ ..] => {
            let power = power.strip_prefix(b"+").unwrap_or(power);
            let power: i32 = std::str::from_utf8(power).ok().filter(|it| it.len() <= 4)?.parse().ok()?;
            exponent += power;
        }
        _ => return None,
    }
    Some(Decimal { mantissa: if is_negative { -mantissa } else { mantissa }, exponent })
}

/// The number at the start of a text and its length, parsed eight digits at a time. `None` if it has more than 18
/// digits or an exponent, is -0, or ends less than eight bytes before the end of the text.
#[inline]
pub(crate) fn leading(text: &[u8], point: u8) -> Option<(Decimal, usize)> {
    let is_negative = *text.first()? == b'-';
    let begin = usize::from(is_negative);
    let (mut mantissa, mut end) = digits(0, text, begin)?;
    let (mut count, mut decimals) = (end - begin, 0);
    if *text.get(end)? == point {
        let first = end + 1;
        (mantissa, end) = digits(mantissa, text, first)?;
        decimals = end - first;
        count += decimals;
    }
    if !(1..=DIGITS_MAX).contains(&count) || (mantissa == 0 && is_negative) {
        return None;
    }
    let mantissa = if is_negative { -(mantissa as i64) } else { mantissa as i64 };
    Some((Decimal { mantissa, exponent: -(decimals as i32) }, end))
}

/// Appends the digits from `at` on to a number; also returns their end.
#[inline]
fn digits(mut number: u64, text: &[u8], mut at: usize) -> Option<(u64, usize)> {
    loop {
        let eight: &[u8; 8] = text.get(at..)?.first_chunk()?;
        let word = u64::from_le_bytes(*eight) ^ (ONES * b'0' as u64);
        // A character that is not a digit sets the highest bit of its byte; its carry reaches later bytes only.
        let others = (word.wrapping_add(ONES * 0x76) | word) & (ONES * 0x80);
        let count = others.trailing_zeros() / 8;
        // The digits as if zeros were before them; then pairs, fours and all of them at once.
        let word = word.unbounded_shl(64 - 8 * count);
        let word = word.wrapping_mul(10).wrapping_add(word >> 8);
        let high = (word & PAIRS).wrapping_mul(1_000_000 << 32 | 100);
        let low = (word >> 16 & PAIRS).wrapping_mul(10_000 << 32 | 1);
        let value = high.wrapping_add(low) >> 32;
        number = number.wrapping_mul(TENS[count as usize]).wrapping_add(value);
        at += count as usize;
        if count < 8 {
            return Some((number, at));
        }
    }
}

/// Above this, another digit does not fit.
const FULL: i64 = i64::MAX / 10;
const UNIT_BYTES_MAX: usize = 16;
/// As many always fit into 64 bits.
const DIGITS_MAX: usize = 18;
const ONES: u64 = 0x0101_0101_0101_0101;
const PAIRS: u64 = 0x0000_00ff_0000_00ff;
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
/// Exact powers.
pub(super) const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_one_as_programs_write_it() {
        for (text, value) in [
            ("1", 1.0),
            ("-0.5", -0.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("+1e-3", 1e-3),
            (" 4.883050E-3 ", 4.88305e-3),
            ("inf", f64::INFINITY),
            ("0.1234567890123456789012", 0.123_456_789_012_345_68),
            ("1e300", 1e300),
        ] {
            assert_eq!(number(text.as_bytes(), b'.'), Some(value), "{text}");
        }
        assert_eq!(number(b"-1,5e2", b','), Some(-150.0));
        assert!(number(b"-0", b'.').unwrap().is_sign_negative());
        for text in ["", "1x", "0x10", "1,5", "--1", "1 2", "ovf", "\u{661}", ".", "-", "e5", "1e", "1.2.3"] {
            assert_eq!(number(text.as_bytes(), b'.'), None, "{text}");
        }
    }

    #[test]
    fn a_unit_may_follow_a_number_directly() {
        for (text, value, unit) in [
            ("24.00°C", 24.0, "°C"),
            ("40%", 40.0, "%"),
            ("-3 dBm", -3.0, "dBm"),
            ("1e-3V", 1e-3, "V"),
            ("5eV", 5.0, "eV"),
            ("7", 7.0, ""),
            ("9.81m/s²", 9.81, "m/s²"),
        ] {
            assert_eq!(number_and_unit(text.as_bytes(), b'.'), Some((value, unit.as_bytes())), "{text}");
        }
        for text in ["V", "", "0x10", "1:2", "12h30", "1-2", "3.4.5V", "5 V 6", "3.reset"] {
            assert_eq!(number_and_unit(text.as_bytes(), b'.'), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_number_is_the_one_that_the_standard_library_reads(text in "[-+]?[0-9]{0,20}\\.?[0-9]{0,20}(e[-+]?[0-9]{1,3})?") {
            let expected = text.parse::<f64>().ok();
            prop_assert_eq!(number(text.as_bytes(), b'.').map(f64::to_bits), expected.map(f64::to_bits));
        }

        /// Eight digits at a time are what one at a time are.
        #[test]
        fn a_leading_number_is_the_same_number(text in "-?[0-9]{0,20}[.]?[0-9]{0,20}", end in "[,\\n;:/x\u{80}\u{fe}.]", rest in "[0-9,.]{8}") {
            let whole = format!("{text}{end}{rest}");
            let is_point = end == "." && !text.contains('.');
            let read = leading(whole.as_bytes(), b'.').filter(|_| !is_point);
            let count = text.bytes().filter(u8::is_ascii_digit).count();
            let expected = decimal(text.as_bytes(), b'.').filter(|it| count <= 18 && !(it.mantissa == 0 && text.starts_with('-')));
            prop_assert_eq!(read, expected.filter(|_| !is_point).map(|it| (it, text.len())));
            prop_assert_eq!(leading(text.as_bytes(), b'.'), None, "no eight bytes follow");
        }
    }
}
