//! The table's place in a text, and the syntax of its lines.

use crate::table::{Heading, number, number_and_unit};

/// How a table is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Layout {
    /// Between fields.
    pub(super) delimiter: u8,
    /// Before decimals.
    pub(super) point: u8,
    /// Lines before the first one of numbers.
    pub(super) skip: usize,
    /// Lines above the names.
    pub(super) preamble: Vec<String>,
    /// The fields of the lines above the table: names, and below them units, where there are any.
    pub(super) names: Vec<String>,
    pub(super) units: Vec<String>,
    /// First field of the table in a line.
    pub(super) first: usize,
    pub(super) columns: usize,
    /// The first two fields are the whole and the decimals of one number.
    pub(super) joins_first: bool,
}

/// A line of the beginning, as one way to write numbers has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Nothing,
    Words,
    /// Number of fields, none of them a word.
    Row(usize),
}

impl Layout {
    /// Detects the layout from the first lines of a text, at least `skip` of which are above the table;
    /// `None` if no line has numbers. `words` allows words in some fields.
    pub(super) fn of(lines: &[&str], skip: usize, words: bool) -> Option<Self> {
        if let Some(beside) = Self::beside(lines).filter(|_| skip == 0) {
            return Some(beside);
        }
        let ways =
            WAYS.iter().filter_map(|&(delimiter, point)| Self::written(lines, skip, delimiter, point, words));
        // Prefers the layout that turns most lines into numbers, then a column count equal to the names, then
        // most columns. A separator that never separates fields counts less.
        let is_between = |layout: &Self| usize::from(layout.columns > 1) + 1;
        let score = |(rows, layout): &(usize, Self)| {
            (rows * is_between(layout), layout.is_named_fully(), layout.columns)
        };
        ways.rev().max_by_key(score).map(|(_, layout)| layout)
    }

    /// With one way to write numbers, and how many lines fit it.
    fn written(lines: &[&str], skip: usize, delimiter: u8, point: u8, words: bool) -> Option<(usize, Self)> {
        let kind = |line: &&str| kind(line, delimiter, point, words);
        let kinds: Vec<Line> = lines.iter().map(kind).collect();
        let mut widths: Vec<usize> = kinds[skip.min(kinds.len())..]
            .iter()
            .filter_map(|kind| if let Line::Row(width) = kind { Some(*width) } else { None })
            .collect();
        widths.sort_unstable();
        let run = |width: &[usize]| (width.len(), width[0]);
        let (rows, width) = widths.chunk_by(|one, other| one == other).map(run).max()?;
        let begin = (skip..lines.len()).find(|&at| kinds[at] == Line::Row(width))?;
        let split = |line: &str| split(line, delimiter);
        // Separators after the last column.
        let of_table =
            || lines[begin..].iter().zip(&kinds[begin..]).filter(|(_, kind)| **kind == Line::Row(width));
        let spare =
            of_table().map(|(line, _)| split(line).iter().rev().take_while(|field| field.is_empty()).count());
        let spare = spare.min().unwrap_or(0).min(width - 1);
        let mut layout = Self { delimiter, point, skip: begin, columns: width - spare, ..Self::default() };
        layout.read_names(lines, begin);
        Some((rows, layout))
    }

    /// Takes the names, the units and the preamble from the lines above the table.
    fn read_names(&mut self, lines: &[&str], begin: usize) {
        let fields = |line: &str| -> Vec<String> {
            let line = line.trim_start_matches(['#', ';']).trim_start();
            split(line, self.delimiter).into_iter().map(|field| field.trim().to_owned()).collect()
        };
        let mut above =
            (0..begin).rev().filter(|&at| !lines[at].trim().is_empty()).map(|at| (at, fields(lines[at])));
        let (last, before) = (above.next(), above.next());
        let mut end = begin;
        if let Some((at, last)) = last {
            // A comma between whole and decimals makes two fields of the first number.
            let is_time = last.first().is_some_and(|name| Heading::of(name).time().is_some());
            if self.delimiter == b',' && is_time && last.len() + 1 == self.columns {
                self.joins_first = true;
                self.columns -= 1;
            }
            if self.are_words(&last) {
                end = at;
                let above_units =
                    before.filter(|(_, before)| self.are_words(before) && are_units(&last[..self.columns]));
                match above_units {
                    Some((at, names)) => (end, self.names, self.units) = (at, names, last),
                    None => self.names = last,
                }
            }
        }
        self.preamble = lines[..end].iter().map(|line| (*line).to_owned()).collect();
    }

    /// Whether a line can be that of names, or of units.
    fn are_words(&self, fields: &[String]) -> bool {
        let is_word = |field: &String| {
            field.len() <= NAME_BYTES_MAX
                && !field.trim_end_matches([',', ';', '\t', ' ']).ends_with(':')
                && number(field.as_bytes(), self.point).is_none()
        };
        fields
            .get(..self.columns)
            .is_some_and(|fields| fields.iter().all(is_word) && fields.iter().any(|field| !field.is_empty()))
    }

    /// A table beside its preamble, as one family of oscilloscopes writes it: three fields of words, then time and value.
    fn beside(lines: &[&str]) -> Option<Self> {
        let fields: Vec<&str> = lines.first()?.split(',').collect();
        if fields.first() != Some(&"Record Length") || fields.len() < 5 {
            return None;
        }
        let is_row = |line: &&str| {
            let fields: Vec<&str> = line.split(',').collect();
            fields.len() >= 5 && fields[3..5].iter().all(|field| number(field.as_bytes(), b'.').is_some())
        };
        if !lines.iter().take(3).all(is_row) {
            return None;
        }
        let words = lines.iter().map(|line| line.splitn(4, ',').take(2).collect::<Vec<_>>().join(","));
        let preamble: Vec<String> = words.filter(|words| words.len() > 1).collect();
        let of = |key: &str| {
            let line = preamble.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(','));
            line.unwrap_or_default().trim().to_owned()
        };
        let names = vec![format!("Time ({})", of("Horizontal Units")), of("Source")];
        let units = vec![String::new(), of("Vertical Units")];
        Some(Self {
            delimiter: b',',
            point: b'.',
            preamble,
            names,
            units,
            first: 3,
            columns: 2,
            ..Self::default()
        })
    }

    fn is_named_fully(&self) -> bool {
        self.names.iter().filter(|name| !name.is_empty()).count() == self.columns
    }
}

/// Whether a field is a value, or marks a missing one.
pub(super) fn is_value(field: &str, point: u8) -> bool {
    let field = field.trim();
    field.is_empty() || is_absent(field) || is_given(field, point)
}

/// Whether a program writes this where it has no value.
pub(super) fn is_absent(field: &str) -> bool {
    ABSENT.iter().any(|word| word.eq_ignore_ascii_case(field))
}

fn is_given(field: &str, point: u8) -> bool {
    number(field.as_bytes(), point).is_some()
        || number_and_unit(field.as_bytes(), point).is_some()
        || is_moment(field)
}

/// Whether a field may be a date or a time of day.
pub(super) fn is_moment(field: &str) -> bool {
    let field = field.trim();
    let separators = field.bytes().filter(|byte| matches!(byte, b':' | b'/' | b'-' | b'.')).count();
    field.starts_with(|c: char| c.is_ascii_digit())
        && separators >= 2
        && field.bytes().all(|byte| byte.is_ascii_digit() || b":/-. TZ+APMapm,".contains(&byte))
}

fn kind(line: &str, delimiter: u8, point: u8, words: bool) -> Line {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return Line::Nothing;
    }
    if trimmed.starts_with(['#', ';']) || trimmed.starts_with("//") {
        return Line::Words;
    }
    let fields = split(line, delimiter);
    let given = fields.iter().filter(|field| is_given(field.trim(), point)).count();
    let is_row = given > 0 && (words || fields.iter().all(|field| is_value(field, point)));
    if is_row { Line::Row(fields.len()) } else { Line::Words }
}

/// The fields of a line; quotes hold delimiters together.
pub(super) fn split(line: &str, delimiter: u8) -> Vec<String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    for character in line.trim_end_matches(['\r', '\n']).chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            _ if character == delimiter as char && !is_quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(character),
        }
    }
    fields.push(field);
    fields
}

/// Whether a line below the names is one of units: `(ms),(V)`, `Second,Volt`.
fn are_units(fields: &[String]) -> bool {
    let is_unit = |field: &String| {
        let is_enclosed = |open, close| field.starts_with(open) && field.ends_with(close);
        field.is_empty()
            || is_enclosed('(', ')')
            || is_enclosed('[', ']')
            || UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(field))
    };
    fields.iter().all(is_unit)
}

/// A unit as a name says it: `Volt` is V.
pub(super) fn unit_named(name: &str) -> Option<&'static str> {
    let name = name.trim_matches(['(', ')', '[', ']']);
    let at = NAMED_UNITS.iter().position(|(named, _)| named.eq_ignore_ascii_case(name))?;
    Some(NAMED_UNITS[at].1)
}

/// Field separator and decimal point.
const WAYS: [(u8, u8); 6] =
    [(b',', b'.'), (b';', b'.'), (b';', b','), (b'\t', b'.'), (b'\t', b','), (b' ', b'.')];
const ABSENT: [&str; 17] = [
    "x",
    "nan",
    "n/a",
    "na",
    "null",
    "none",
    "-",
    "--",
    "---",
    "ovf",
    "ol",
    "overflow",
    "overload",
    "#n/a",
    "clipped",
    "\u{221e}",
    "-\u{221e}",
];
const NAMED_UNITS: [(&str, &str); 8] = [
    ("volt", "V"),
    ("volts", "V"),
    ("ampere", "A"),
    ("amp", "A"),
    ("amps", "A"),
    ("watt", "W"),
    ("watts", "W"),
    ("degree", "\u{b0}"),
];
const UNITS: [&str; 22] = [
    "second", "seconds", "sequence", "s", "ms", "us", "\u{b5}s", "ns", "volt", "volts", "v", "mv", "\u{b5}v",
    "uv", "a", "ma", "\u{b5}a", "ua", "ampere", "amp", "watt", "w",
];
const NAME_BYTES_MAX: usize = 64;
