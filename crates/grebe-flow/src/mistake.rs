//! Mistakes in a graph file, shown at their positions.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// Mistake in a graph file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    message: String,
    span: Range<usize>,
    /// Label at the position itself.
    label: String,
    /// Another, related position.
    beside: Option<(Range<usize>, String)>,
    help: Option<String>,
    line: usize,
    column: usize,
}

/// All mistakes in a graph file, in line order.
///
/// `Display` shows each with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    origin: String,
    text: String,
    found: Vec<Mistake>,
}

impl Mistake {
    /// Message in one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Column in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    pub(crate) fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = label.into();
        self
    }

    pub(crate) fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn beside(&mut self, span: Range<usize>, label: impl Into<String>) -> &mut Self {
        self.beside = Some((span, label.into()));
        self
    }
}

impl Mistakes {
    pub(crate) fn new(origin: &str, text: &str) -> Self {
        Self { origin: origin.to_owned(), text: text.to_owned(), found: Vec::new() }
    }

    pub(crate) fn add(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Mistake {
        let (line, column) = position(&self.text, span.start);
        let message = message.into();
        self.found.push(Mistake {
            message,
            span,
            label: String::new(),
            beside: None,
            help: None,
            line,
            column,
        });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn into_result<T>(mut self, value: T) -> Result<T, Self> {
        self.found.sort_by_key(|mistake| mistake.span.start);
        if self.found.is_empty() { Ok(value) } else { Err(self) }
    }

    /// All mistakes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Mistake> {
        self.found.iter()
    }

    /// Each mistake with its line, in colours for a terminal.
    pub fn render(&self, in_colours: bool) -> String {
        let renderer = if in_colours { Renderer::styled() } else { Renderer::plain() };
        let shown: Vec<String> =
            self.found.iter().map(|mistake| self.render_one(mistake, &renderer)).collect();
        shown.join("\n\n")
    }

    fn render_one(&self, mistake: &Mistake, renderer: &Renderer) -> String {
        let place = AnnotationKind::Primary.span(within(&self.text, &mistake.span));
        let place = if mistake.label.is_empty() { place } else { place.label(mistake.label.as_str()) };
        let mut snippet = Snippet::source(&self.text).path(&self.origin).annotation(place);
        if let Some((span, label)) = &mistake.beside {
            snippet = snippet
                .annotation(AnnotationKind::Context.span(within(&self.text, span)).label(label.as_str()));
        }
        let mut group = Level::ERROR.primary_title(mistake.message.as_str()).element(snippet);
        if let Some(help) = &mistake.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Mistakes {}

/// Clamps a library's range to the text, at character boundaries.
fn within(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.min(text.len()));
    start..end.max(start)
}

fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at.min(text.len()))];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Probable intended name: the nearest known one by edit distance, if it is close.
///
/// ```
/// assert_eq!(grebe_flow::nearest("chanels", ["rate", "channels"].into_iter()), Some("channels"));
/// assert_eq!(grebe_flow::nearest("colour", ["rate", "channels"].into_iter()), None);
/// ```
pub fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|&(distance, name)| distance <= (name.len().max(written.len()) / 3).max(1))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Rewrites serde's message about a value without Rust's type names.
///
/// ```
/// use grebe_flow::plain_words;
///
/// let wave = plain_words("unknown variant `sin`, expected one of `sine`, `square`");
/// assert_eq!(wave, "unknown 'sin' - did you mean 'sine'?; known: sine, square");
/// let channels = plain_words("invalid type: string \"two\", expected u32");
/// assert_eq!(channels, "'two': give a whole number from 0 on");
/// ```
pub fn plain_words(message: &str) -> String {
    let Some((said, expected)) = message.rsplit_once(", expected ") else { return message.replace('`', "'") };
    let unknown = said.strip_prefix("unknown variant `").or(said.strip_prefix("unknown field `"));
    if let Some(written) = unknown {
        let written = written.trim_end_matches('`');
        let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        let meant = nearest(written, known.iter().copied());
        let meant = meant.map_or_else(String::new, |meant| format!(" - did you mean '{meant}'?"));
        return format!("unknown '{written}'{meant}; known: {}", known.join(", "));
    }
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "text",
        "a sequence" => "a list",
        other => other,
    };
    match said.strip_prefix("invalid type: ").or(said.strip_prefix("invalid value: ")) {
        Some(found) => format!("{}: give {expected}", written_as(found)),
        None => format!("{said}, expected {expected}").replace('`', "'"),
    }
}

/// Value as the user wrote it, without serde's type before it.
fn written_as(found: &str) -> String {
    let between = |mark| found.split_once(mark)?.1.rsplit_once(mark).map(|(value, _)| value);
    match (between('"'), between('`').or(between('\''))) {
        (Some(text), _) => format!("'{text}'"),
        (None, Some(value)) => value.to_owned(),
        (None, None) => match found {
            "sequence" => "a list".to_owned(),
            "map" => "a table".to_owned(),
            other => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serdes_messages_become_plain_words() {
        for (said, plain) in [
            ("invalid value: integer `-1`, expected u64", "-1: give a whole number from 0 on"),
            ("invalid type: floating point `1.5`, expected i32", "1.5: give a whole number"),
            ("invalid type: string \"maybe\", expected a boolean", "'maybe': give true or false"),
            ("invalid type: sequence, expected a rate above 0", "a list: give a rate above 0"),
            ("integer '9' as i128, expected f64", "integer '9' as i128, expected a number"),
            ("unknown variant `x`, expected `sine` or `saw`", "unknown 'x'; known: sine, saw"),
            ("'fast': give a rate above 0", "'fast': give a rate above 0"),
            ("duplicate field `rate`", "duplicate field 'rate'"),
        ] {
            assert_eq!(plain_words(said), plain);
        }
    }

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        assert_eq!(position("a\nbéc", 0), (1, 1));
        assert_eq!(position("a\nbéc", 5), (2, 3));
        assert_eq!(position("a", 99), (1, 2));
        assert_eq!(within("é", &(1..1)), 0..2);
    }

    #[test]
    fn the_intended_word_is_suggested() {
        let known = ["gain", "synth", "drop_oldest"];
        let meant = |written| nearest(written, known.into_iter());
        assert_eq!(meant("gian"), Some("gain"));
        assert_eq!(meant("drop-oldest"), Some("drop_oldest"));
        assert_eq!(meant("record"), None);
    }
}
