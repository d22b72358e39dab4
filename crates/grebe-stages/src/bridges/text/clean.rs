//! Strips the decoration from lines as boards print them.

use serde_json::Value;

use super::fields::{is_time_of_day, number};

/// Converts a decorated line into fields: `[1, 2]`, `(1, 2)`, `$1,2*5A`, `{"a": 1}`, Teleplot's `>a:1`,
/// `2026-09-24 12:00:00.5,1`, `12:00:00.5 -> 1`, `0,5;1,5` with decimal commas, terminal escape sequences and NUL. Returns whether `out` has the result;
/// otherwise the line is fine as it is.
pub(super) fn clean(line: &[u8], out: &mut Vec<u8>) -> bool {
    let has_controls = line.starts_with(MARK) || line.iter().any(|&byte| matches!(byte, 0 | ESCAPE));
    let first = line.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_enclosed = first.is_some_and(|first| b"[({$>".contains(first));
    let has_commas = line.contains(&b',') && line.iter().any(|byte| matches!(byte, b';' | b'\t'));
    let starts_dated = is_dated(line) || line.get(2) == Some(&b':') && arrow(line).is_some();
    if !has_controls && !is_enclosed && !has_commas && !starts_dated {
        return false;
    }
    out.clear();
    if has_controls {
        plain(line.strip_prefix(MARK).unwrap_or(line), out);
    } else {
        out.extend_from_slice(line);
    }
    let text = out.trim_ascii();
    let opened = match text {
        [b'[', inner @ .., b']'] | [b'(', inner @ .., b')']
            if !inner.iter().any(|byte| b"[(".contains(byte)) =>
        {
            Some(inner.to_vec())
        }
        [b'{', inner @ .., b'}'] => json(text).or_else(|| Some(inner.to_vec())),
        // $GPGGA is a name.
        [b'$', inner @ ..] if inner.first().is_some_and(|byte| !byte.is_ascii_alphabetic()) => {
            Some(inner.split(|byte| *byte == b'*').next().unwrap_or_default().to_vec())
        }
        [b'>', inner @ ..] => teleplot(inner),
        _ => None,
    };
    if let Some(opened) = opened {
        *out = opened;
    }
    if is_dated(out) {
        out[DATE_CHARS] = b'T';
    }
    if let Some(at) = arrow(out) {
        out[at..at + ARROW.len()].copy_from_slice(b",   ");
    }
    decimal_commas(out);
    true
}

/// Whether it begins with a date, a blank and a time of day.
fn is_dated(line: &[u8]) -> bool {
    let Some(begin) = line.get(..DATE_CHARS + 4) else { return false };
    let shape = begin.iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte });
    shape.clone().eq(*b"0000-00-00 00:") || shape.eq(*b"0000/00/00 00:")
}

/// The arrow that a serial monitor puts behind the time of a line.
fn arrow(line: &[u8]) -> Option<usize> {
    let at = line.windows(ARROW.len()).position(|window| window == ARROW)?;
    is_time_of_day(&line[..at]).then_some(at)
}

/// Without NUL and the sequences that colour a terminal.
fn plain(line: &[u8], out: &mut Vec<u8>) {
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            0 => {}
            ESCAPE => {
                if bytes.next() == Some(b'[') {
                    let _ = bytes.find(|byte| matches!(byte, 0x40..=0x7e));
                }
            }
            _ => out.push(byte),
        }
    }
}

/// `"a":1,"b.c":2`; `None` if it is not an object, or has no numbers.
fn json(text: &[u8]) -> Option<Vec<u8>> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let mut out = Vec::new();
    named(&mut String::new(), &value, &mut out);
    (!out.is_empty()).then_some(out)
}

fn named(name: &mut String, value: &Value, out: &mut Vec<u8>) {
    let number = match value {
        Value::Object(fields) => return fields.iter().for_each(|(key, value)| below(name, key, value, out)),
        Value::Array(fields) => {
            return fields
                .iter()
                .enumerate()
                .for_each(|(at, value)| below(name, &at.to_string(), value, out));
        }
        Value::Number(number) => number.to_string(),
        Value::Bool(is) => u8::from(*is).to_string(),
        Value::String(text) if number(text.as_bytes()).is_some() => text.clone(),
        Value::String(_) | Value::Null => return,
    };
    let separator = if out.is_empty() { "" } else { "," };
    out.extend_from_slice(format!("{separator}\"{}\":{number}", name.replace('"', "'")).as_bytes());
}

fn below(name: &mut String, key: &str, value: &Value, out: &mut Vec<u8>) {
    let length = name.len();
    if !name.is_empty() {
        name.push('.');
    }
    name.push_str(key);
    named(name, value, out);
    name.truncate(length);
}

/// `name:value§unit|flags`, `name:milliseconds:value`.
fn teleplot(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.split(|byte| *byte == b'|').next()?;
    let text = std::str::from_utf8(line).ok()?;
    let (text, unit) = text.split_once('§').unwrap_or((text, ""));
    let (name, value) = text.split_once(':')?;
    let time = value.split_once(':').filter(|_| !value.contains(';'));
    Some(match time {
        Some((time, value)) => format!("{name}:{value} {unit},timestamp_ms:{time}").into_bytes(),
        None => format!("{name}:{value} {unit}").into_bytes(),
    })
}

/// `0,5;1,5`: where each field is a number with a comma for its decimals, or without any.
fn decimal_commas(line: &mut [u8]) {
    let separator = if line.contains(&b';') { b';' } else { b'\t' };
    if !line.contains(&separator) {
        return;
    }
    let is_number = |field: &[u8]| {
        let field = field.rsplit(|byte| matches!(byte, b':' | b'=')).next().unwrap_or_default().trim_ascii();
        let commas = field.iter().filter(|byte| **byte == b',').count();
        let digits = |field: &[u8]| field.first().is_some_and(u8::is_ascii_digit);
        let is_good = match field.iter().position(|byte| *byte == b',') {
            Some(at) => digits(field.strip_prefix(b"-").unwrap_or(field)) && digits(&field[at + 1..]),
            None => field.is_empty() || number(field).is_some(),
        };
        commas <= 1 && is_good
    };
    if line.split(|byte| *byte == separator).all(is_number) {
        line.iter_mut().filter(|byte| **byte == b',').for_each(|byte| *byte = b'.');
    }
}

const MARK: &[u8] = b"\xef\xbb\xbf";
const ESCAPE: u8 = 0x1b;

const DATE_CHARS: usize = 10;
const ARROW: &[u8] = b" -> ";

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(line: &str) -> String {
        let mut out = Vec::new();
        let line = line.as_bytes();
        let bytes = if clean(line, &mut out) { &out } else { line };
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn lines_as_boards_print_them_become_fields() {
        for (line, fields) in [
            ("[1, 2]", "1, 2"),
            (" (1,-2.5) ", "1,-2.5"),
            ("$1,2*5A", "1,2"),
            ("$1 2;", "1 2;"),
            ("{1,2}", "1,2"),
            (r#"{"a":1,"b":{"c":2.5,"d":"x"},"e":[3,true],"f":null}"#, r#""a":1,"b.c":2.5,"e.0":3,"e.1":1"#),
            (">a:1.5", "a:1.5 "),
            (">temp:1627551892437:21.0§°C|g", "temp:21.0 °C,timestamp_ms:1627551892437"),
            ("2026-09-24 12:00:00.5,1", "2026-09-24T12:00:00.5,1"),
            ("2026/09/24 12:00:00 1 2", "2026/09/24T12:00:00 1 2"),
            ("12:00:00.123 -> 1 2", "12:00:00.123,   1 2"),
            ("0,001;1,25", "0.001;1.25"),
            ("0,5\t-3\t1,5e3", "0.5\t-3\t1.5e3"),
            ("a:0,5; b:1,5", "a:0.5; b:1.5"),
            ("\u{feff}\0\0a:0,b:0", "a:0,b:0"),
            ("\u{1b}[0;32m1,2\u{1b}[0m", "1,2"),
        ] {
            assert_eq!(cleaned(line), fields, "{line:?}");
        }
        for line in [
            "1,2,3",
            "a:1,b:2",
            "1 , 2 ; 3",
            "1,2,3;4",
            "$GPGGA,1,2*47",
            "[1,[2]]",
            "",
            ";,",
            "1;2",
            "1 -> 2",
        ] {
            assert_eq!(cleaned(line), line, "{line:?}");
        }
    }
}
