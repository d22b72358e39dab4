//! A line of words, which are the names of columns where numbers follow.

use crate::bridges::text::fields::number;

/// The words of the line before.
#[derive(Debug, Default)]
pub(super) struct Heading {
    line: Vec<u8>,
    count: usize,
}

impl Heading {
    /// Whether a line can be one: text, and not too long.
    pub(super) fn fits(line: &[u8]) -> bool {
        line.len() <= BYTES_MAX
            && std::str::from_utf8(line)
                .is_ok_and(|text| text.chars().all(|c| (c == '\t' || !c.is_control()) && c != '\u{fffd}'))
    }

    pub(super) fn keep(&mut self, line: &[u8]) {
        self.forget();
        if Self::fits(line) {
            self.line.extend_from_slice(line.trim_ascii());
            let has_numbers = words(&self.line).any(|word| number(word).is_some());
            self.count = if has_numbers { 0 } else { words(&self.line).count() };
        }
    }

    pub(super) fn forget(&mut self) {
        self.line.clear();
        self.count = 0;
    }

    /// How many words it has; 0: there is none.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn names(&self) -> Vec<String> {
        words(&self.line).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }
}

/// Names with spaces are separated by commas.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let comma = [b',', b';', b'\t'].into_iter().find(|comma| line.contains(comma));
    let mut rest = Some(line).filter(|line| !line.trim_ascii().is_empty());
    std::iter::from_fn(move || {
        let line = rest?.trim_ascii_start();
        let quoted = line.strip_prefix(b"\"").and_then(|it| it.iter().position(|&byte| byte == b'"'));
        let begin = quoted.map_or(0, |end| end + 2);
        let ends = |byte: &u8| comma.map_or(byte.is_ascii_whitespace(), |comma| *byte == comma);
        let end = line[begin..].iter().position(ends).map(|at| begin + at);
        rest = end.map(|end| &line[end + 1..]).filter(|rest| !rest.trim_ascii().is_empty());
        let word = line[..end.unwrap_or(line.len())].trim_ascii();
        Some(word.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\"")).unwrap_or(word))
    })
}

const BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_between_commas_or_blanks() {
        let names = |line: &str| {
            let mut heading = Heading::default();
            heading.keep(line.as_bytes());
            assert_eq!(heading.count(), heading.names().len());
            heading.names()
        };
        assert_eq!(names("time a b"), ["time", "a", "b"]);
        assert_eq!(names("room temp, \"x,y\",  z,"), ["room temp", "x,y", "z"]);
        assert_eq!(names("a\tb c"), ["a", "b c"]);
        assert_eq!(names("one"), ["one"]);
        assert_eq!(names("\u{1}\u{2}"), Vec::<String>::new());
    }
}
