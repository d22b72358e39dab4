//! What is wrong with a graph file, shown at its place.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// Something that is wrong with a graph file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    message: String,
    span: Range<usize>,
    /// Said at the place itself.
    label: String,
    /// Another place that has to do with it.
    beside: Option<(Range<usize>, String)>,
    help: Option<String>,
    line: usize,
    column: usize,
}

/// All that is wrong with a graph file, in the order of its lines.
///
/// Displayed, each is shown with the line it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    origin: String,
    text: String,
    found: Vec<Mistake>,
}

impl Mistake {
    /// What is wrong, in a line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line it stands on, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Where on the line it begins, in characters from 1.
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

    /// Each of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Mistake> {
        self.found.iter()
    }

    /// Each with the line it stands on; in colours for a terminal.
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

/// A place within the text, at character boundaries, whatever a library said.
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

/// The known name that was meant, perhaps: the nearest by edits, if it is near.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        assert_eq!(position("a\nbéc", 0), (1, 1));
        assert_eq!(position("a\nbéc", 5), (2, 3));
        assert_eq!(position("a", 99), (1, 2));
        assert_eq!(within("é", &(1..1)), 0..2);
    }

    #[test]
    fn what_was_meant_is_near() {
        let known = ["gain", "synth", "drop_oldest"];
        let meant = |written| nearest(written, known.into_iter());
        assert_eq!(meant("gian"), Some("gain"));
        assert_eq!(meant("drop-oldest"), Some("drop_oldest"));
        assert_eq!(meant("record"), None);
    }
}
