//! The words of annotations, as they are typed and as they are shown.

use grebe_frame::StreamAnnotation;
use grebe_scope::Engineering;

/// The words of an annotation on the plot.
pub(super) fn label_words(annotation: &StreamAnnotation) -> String {
    let words = annotation.label.as_ref().or(annotation.comment.as_ref());
    let words = words.map_or("labelled", String::as_str);
    let edge = |hz: f64| Engineering::new(hz, "Hz").digits(7).to_string();
    match (annotation.lower_edge_hz, annotation.upper_edge_hz) {
        (Some(low), Some(high)) => format!("{words} {} \u{2026} {}", edge(low), edge(high)),
        _ => words.to_owned(),
    }
}

/// An annotation with words as they are typed: `name; comment #ff8800`.
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

/// A colour as it is typed; `None`: none.
pub(super) fn annotation_color(text: &str) -> Result<Option<String>, String> {
    let text = text.trim().to_lowercase();
    match text.strip_prefix('#') {
        None if text.is_empty() => Ok(None),
        Some(digits) if is_color(digits) => Ok(Some(text)),
        _ => Err(format!("{text:?} is no colour: #ff8800 is")),
    }
}

fn is_color(digits: &str) -> bool {
    digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The colour that an annotation says, also with the opacity before it that other programs write.
pub(crate) fn color_of(annotation: &StreamAnnotation) -> Option<[u8; 3]> {
    let digits = annotation.color.as_ref()?.strip_prefix('#')?;
    let digits = if digits.len() == 8 { digits.get(2..)? } else { digits };
    let color = u32::from_str_radix(digits, 16).ok().filter(|_| is_color(digits))?;
    Some([(color >> 16) as u8, (color >> 8) as u8, color as u8])
}

/// With the other fields, shorter than what streams carry.
pub(super) const TEXT_CHARS_MAX: usize = 160;
