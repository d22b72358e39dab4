//! Labels in Audacity's export format: begin, end and text, separated by tabs. A label with frequencies has a second
//! line: `\`, low and high, where -1 means none.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::fields::{HIGH, LABEL, LOW, number};
use super::times::Times;
use crate::sample_file::Annotation;

/// The annotations; `None` for one that begins before the recording.
///
/// # Errors
/// One line for a person.
pub(super) fn read(text: &str, times: &Times<'_>) -> Result<Vec<Option<Annotation>>, String> {
    let mut all: Vec<Option<Annotation>> = Vec::new();
    for (line_number, line) in (1..).zip(text.lines()) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let wrong = |what: &str| {
            format!("line {line_number}: {what}: {:?}", line.chars().take(60).collect::<String>())
        };
        if line.trim().is_empty() {
            continue;
        }
        let mut parts = line.splitn(3, '\t');
        let [first, second] = [(); 2].map(|()| parts.next().unwrap_or_default().trim());
        let rest = parts.next();
        if first == "\\" {
            let high = rest.unwrap_or_default().trim();
            let [low, high] = [second, high].map(|text| number(text).ok_or_else(|| wrong("not a frequency")));
            let (low, high) = (low?, high?);
            let last = all.last_mut().ok_or_else(|| wrong("frequencies without a label"))?;
            let edges = [(LOW, low), (HIGH, high)].into_iter();
            // -1 means none; complex samples have other negative frequencies.
            let edges = edges.filter(|(_, hertz)| hertz.as_f64() != Some(-1.0));
            last.iter_mut().for_each(|it| {
                it.fields.extend(edges.clone().map(|(name, hertz)| (name.to_owned(), hertz)));
            });
            continue;
        }
        let time = |text: &str| {
            // Some languages write decimals behind a comma.
            let time = text.replacen(',', ".", 1).parse::<f64>().ok().filter(|time| time.is_finite());
            time.ok_or_else(|| wrong("not a label (begin, end and words, with tabs between)"))
        };
        let (begin, end) = (time(first)?, time(second)?);
        if end < begin {
            return Err(wrong("the end is before the begin"));
        }
        let words = rest.filter(|words| !words.is_empty());
        let fields = words.map(|words| (LABEL.to_owned(), Value::from(words)));
        let of = |(position, end): (u64, u64)| Annotation {
            position,
            length_samples: end.saturating_sub(position),
            fields: Map::from_iter(fields.clone()),
        };
        all.push(times.position(begin).zip(times.position(end)).map(of));
    }
    Ok(all)
}

/// The text, and the number of annotations that it shortens.
pub(super) fn write(annotations: &[Annotation], times: &Times<'_>) -> (String, usize) {
    let (mut text, mut shortened) = (String::new(), 0);
    for annotation in annotations {
        let Annotation { position, length_samples, fields } = annotation;
        let begin = times.begin(*position).unwrap_or_default();
        let end = times.end(*position, *length_samples).unwrap_or_default();
        let label = annotation.text(LABEL);
        let words = label.replace(['\t', '\n', '\r'], " ");
        let _ = writeln!(text, "{begin}\t{end}\t{words}");
        let [low, high] = [LOW, HIGH]
            .map(|name| fields.get(name).filter(|value| !matches!(value.as_f64(), None | Some(-1.0))));
        if low.or(high).is_some() {
            let [low, high] = [low, high].map(|hertz| hertz.map_or("-1".to_owned(), Value::to_string));
            let _ = writeln!(text, "\\\t{low}\t{high}");
        }
        let said = usize::from(!label.is_empty()) + low.iter().chain(&high).count();
        shortened += usize::from(fields.len() > said || words != label);
    }
    (text, shortened)
}
