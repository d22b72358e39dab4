//! A line, taken apart.

use grebe_recording::table;

/// A value in a line, with its name and unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Field<'a> {
    /// Empty without a name.
    pub(super) name: &'a [u8],
    /// Empty between two commas.
    pub(super) value: &'a [u8],
    /// The text after a named value: `temp: 21.5 C, ...`.
    pub(super) unit: &'a [u8],
}

/// The fields of a line, separated by commas, semicolons, spaces and tabs. A colon or an equals sign follows
/// a name.
///
/// | line | fields |
/// |---|---|
/// | `1,2,3` `1 2 3` `1; 2; 3;` | 1, 2 and 3 |
/// | `a:1,b:2` `a=1 b=2` `a: 1, b: 2` | 1 named a, 2 named b |
/// | `room temp: 21.5 C, "x,y": 3` | 21.5 named "room temp" in C, 3 named "x,y" |
/// | `1,,3` | 1, nothing and 3 |
#[derive(Debug, Clone)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of(line: &'a [u8]) -> Self {
        Self(line)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let line = skip_blanks(self.0);
        let first = *line.first()?;
        if is_comma(first) {
            self.0 = &line[1..];
            return Some(Field::default());
        }
        let (word, behind) = word(line);
        let field = match name(line, word, behind) {
            Some((name, behind)) => {
                let (value, behind) = value(skip_blanks(behind));
                let (unit, behind) = unit(behind);
                self.0 = behind;
                Field { name, value, unit }
            }
            None => {
                let (value, behind) = if is_colon(behind) { value(line) } else { (word, behind) };
                self.0 = behind;
                Field { value, ..Field::default() }
            }
        };
        // The comma that ends this one begins no empty one.
        let behind = skip_blanks(self.0);
        self.0 = if behind.first().is_some_and(|&byte| is_comma(byte)) { &behind[1..] } else { behind };
        Some(field)
    }
}

/// The number that a text is.
pub(super) fn number(text: &[u8]) -> Option<f64> {
    table::number(text, b'.')
}

/// `10:30:25.5`, `2026-01-31T10:30:25.5Z`.
pub(super) fn is_time_of_day(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_digit)
        && text.iter().filter(|byte| **byte == b':').count() >= 2
        && text.iter().all(|byte| byte.is_ascii_digit() || b":-+.TZ/".contains(byte))
}

/// The unit of a value, from the text after it.
pub(super) fn unit_of<'a>(field: &Field<'a>) -> &'a str {
    let glued = || table::number_and_unit(field.value, b'.').map_or(&b""[..], |(_, unit)| unit);
    let unit = if field.unit.is_empty() && number(field.value).is_none() { glued() } else { field.unit };
    std::str::from_utf8(unit).unwrap_or_default()
}

/// The first word of a line that begins with one, and the rest.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    if let Some(quoted) = line.strip_prefix(b"\"")
        && let Some(end) = quoted.iter().position(|&byte| byte == b'"')
    {
        return (&quoted[..end], &quoted[end + 1..]);
    }
    let ends = |&byte: &u8| is_blank(byte) || is_comma(byte) || matches!(byte, b':' | b'=');
    line.split_at(line.iter().position(ends).unwrap_or(line.len()))
}

/// A value is all up to a blank or a comma.
fn value(line: &[u8]) -> (&[u8], &[u8]) {
    let ends = |&byte: &u8| is_blank(byte) || is_comma(byte);
    line.split_at(line.iter().position(ends).unwrap_or(line.len()))
}

/// The name at the begin of a line, and the text after its colon.
fn name<'a>(line: &'a [u8], word: &'a [u8], behind: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    if begins_number(word) {
        return None;
    }
    let behind = skip_blanks(behind);
    if is_colon(behind) {
        return Some((word, &behind[1..]));
    }
    // A name may have several words.
    let end = line.iter().position(|&byte| is_comma(byte) || matches!(byte, b':' | b'='))?;
    let name = line[..end].trim_ascii_end();
    let is_name = is_colon(&line[end..]) && !name.split(|&byte| is_blank(byte)).any(begins_number);
    is_name.then(|| (name, &line[end + 1..]))
}

/// The text after a named value up to the comma or the end, if it is neither a number nor the next name.
fn unit(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|&byte| is_comma(byte)).unwrap_or(line.len());
    let unit = line[..end].trim_ascii();
    let is_unit = !unit.iter().any(|byte| matches!(byte, b':' | b'='))
        && !unit.split(|&byte| is_blank(byte)).any(begins_number);
    if is_unit { (unit, &line[end..]) } else { (&[], line) }
}

fn begins_number(word: &[u8]) -> bool {
    match word {
        [b'0'..=b'9' | b'.', ..] | [b'-' | b'+', b'0'..=b'9' | b'.' | b'i' | b'n' | b'I' | b'N', ..] => true,
        // nan, inf
        [b'n' | b'N' | b'i' | b'I', ..] => number(word).is_some(),
        _ => false,
    }
}

fn skip_blanks(line: &[u8]) -> &[u8] {
    let begin = line.iter().position(|&byte| !is_blank(byte)).unwrap_or(line.len());
    &line[begin..]
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_comma(byte: u8) -> bool {
    matches!(byte, b',' | b';')
}

fn is_colon(line: &[u8]) -> bool {
    matches!(line.first(), Some(b':' | b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> Vec<(String, String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Fields::of(line.as_bytes()).map(|it| (text(it.name), text(it.value), text(it.unit))).collect()
    }

    fn values(line: &str) -> Vec<String> {
        fields(line).into_iter().map(|(name, value, _)| format!("{name}{value}")).collect()
    }

    #[test]
    fn numbers_stand_between_commas_and_blanks() {
        for line in ["1,2,3", "1 2 3", " 1\t2\t 3 ", "1;2;3", "1 , 2 ; 3", "1,2,3,", "1; 2; 3;"] {
            assert_eq!(values(line), ["1", "2", "3"], "{line}");
        }
        assert_eq!(values("-1.5e3,+2,nan,-inf"), ["-1.5e3", "+2", "nan", "-inf"]);
        assert_eq!(values("1,,3"), ["1", "", "3"]);
        assert_eq!(values(",1"), ["", "1"]);
        assert_eq!(values("  "), Vec::<String>::new());
        assert_eq!(values("\"1\",\"2\""), ["1", "2"]);
    }

    #[test]
    fn names_stand_before_colons() {
        for line in ["a:1,b:2", "a=1 b=2", "a: 1, b: 2", "a = 1; b = 2", "a:1\tb:2", "\"a\":1,\"b\":2"] {
            assert_eq!(fields(line), named(&[("a", "1", ""), ("b", "2", "")]), "{line}");
        }
        assert_eq!(
            fields("room temp: 21.5 °C, \"x,y\": 3 %"),
            named(&[("room temp", "21.5", "°C"), ("x,y", "3", "%")])
        );
        assert_eq!(fields("n:1 i:2"), named(&[("n", "1", ""), ("i", "2", "")]));
        assert_eq!(fields("a: ,b:1"), named(&[("a", "", ""), ("b", "1", "")]));
    }

    #[test]
    fn times_and_words_are_not_names() {
        assert_eq!(fields("12:34:56"), named(&[("", "12:34:56", "")]));
        assert_eq!(values("Setup done"), ["Setup", "done"]);
        assert_eq!(values("a b 1"), ["a", "b", "1"]);
        assert_eq!(values("1 a:2"), ["1", "a2"]);
    }

    fn named(fields: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
        fields
            .iter()
            .map(|(name, value, unit)| (name.to_string(), value.to_string(), unit.to_string()))
            .collect()
    }

    #[test]
    fn a_number_is_one_as_programs_print_it() {
        for (text, value) in
            [("1", 1.0), ("-0.5", -0.5), (".5", 0.5), ("5.", 5.0), ("1e-3", 1e-3), ("inf", f64::INFINITY)]
        {
            assert_eq!(number(text.as_bytes()), Some(value));
        }
        for text in ["", "1x", "0x10", "1,5", "--1", "1 2", "ovf", "\u{661}"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}
