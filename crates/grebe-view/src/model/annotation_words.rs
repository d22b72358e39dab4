//! The texts of annotations: as typed and as shown.

use grebe_frame::StreamAnnotation;
use grebe_scope::Engineering;

/// The text of an annotation on the plot.
pub(super) fn label_words(annotation: &StreamAnnotation) -> String {
    let words = annotation.label.as_ref().or(annotation.comment.as_ref());
    let words = words.map_or("labelled", String::as_str);
    let edge = |hz: f64| Engineering::new(hz, "Hz").digits(7).to_string();
    match (annotation.lower_edge_hz, annotation.upper_edge_hz) {
        (Some(low), Some(high)) => format!("{words} {} \u{2026} {}", edge(low), edge(high)),
        _ => words.to_owned(),
    }
}

/// Parses `name; comment #ff8800` into an annotation.
pub(super) fn worded(annotation: StreamAnnotation, text: &str) -> Result<StreamAnnotation, String> {
    let (text, color) = match text.rsplit_once('#') {
        Some((before, digits)) if is_color(digits.trim()) => {
            (before, Some(format!("#{}", digits.trim().to_lowercase())))
        }
        _ => (text, None),
    };
    let (label, comment) = text.split_once(';').unwrap_or((text, ""));
    let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let after = StreamAnnotation { label: some(label), comment: some(comment), color, ..annotation };
    match after.label.as_ref().or(after.comment.as_ref()) {
        None => Err("give it a name".into()),
        _ if text.chars().count() > TEXT_CHARS_MAX => Err(format!("more than {TEXT_CHARS_MAX} letters")),
        _ => Ok(after),
    }
}

/// Parses a colour; `None` for an empty text.
pub(super) fn annotation_color(text: &str) -> Result<Option<String>, String> {
    let text = text.trim().to_lowercase();
    match text.strip_prefix('#') {
        None if text.is_empty() => Ok(None),
        Some(digits) if is_color(digits) => Ok(Some(text)),
        _ => Err(format!("invalid colour {text:?}: use #RRGGBB, such as #ff8800")),
    }
}

fn is_color(digits: &str) -> bool {
    digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The colour of an annotation. Other programs write the opacity before it.
pub(crate) fn color_of(annotation: &StreamAnnotation) -> Option<[u8; 3]> {
    let digits = annotation.color.as_ref()?.strip_prefix('#')?;
    let digits = if digits.len() == 8 { digits.get(2..)? } else { digits };
    let color = u32::from_str_radix(digits, 16).ok().filter(|_| is_color(digits))?;
    Some([(color >> 16) as u8, (color >> 8) as u8, color as u8])
}

/// Leaves room for the other fields within the limit of streams.
pub(super) const TEXT_CHARS_MAX: usize = 160;
