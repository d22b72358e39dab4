//! `grebe annotate`: lists and changes the annotations of a recording.

use std::path::Path;

use anyhow::{Context, Result};
use grebe_recording::{Annotation, AnnotationEdit, Error, LabelFile, SampleFile, write_whole};
use grebe_scope::Engineering;
use serde_json::{Map, Value, json};

use crate::cli::Annotate;
use crate::command::info::timestamp;
use crate::ending::{Ending, Usage};
use crate::output::{self, note, out};
use crate::units::{counted, grouped};

pub(crate) fn run(options: &Annotate) -> Result<Ending> {
    let file = SampleFile::open(&options.file)?;
    file.notes().iter().for_each(|line| note!("grebe: {line}"));
    let edits = match options {
        Annotate { add: Some(label), .. } => vec![AnnotationEdit::Add(added(options, &file, label)?)],
        Annotate { edit: Some(number), .. } => {
            let before = numbered(&file, *number)?;
            vec![AnnotationEdit::Replace { before: before.clone(), after: edited(options, &file, before)? }]
        }
        Annotate { delete, .. } if !delete.is_empty() => {
            let mut numbers = delete.clone();
            numbers.sort_unstable();
            numbers.dedup();
            let each = numbers.iter().map(|number| Ok(AnnotationEdit::Remove(numbered(&file, *number)?)));
            each.collect::<Result<_>>()?
        }
        Annotate { import: Some(path), .. } => imported(path, &file)?,
        Annotate { export: Some(path), .. } => return export(path, &file, options.overwrite),
        _ => return list(options, &file),
    };
    let done = SampleFile::edit_annotations(&options.file, &edits)?;
    let counts = [("added", done.added), ("changed", done.changed), ("deleted", done.removed)];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(what, count)| format!("{what} {}", counted(count as u64, "annotation"))).collect();
    let there = match edits.iter().filter(|edit| matches!(edit, AnnotationEdit::Add(_))).count() - done.added
    {
        0 => String::new(),
        there => format!(", {} existed already", grouped(there as u64)),
    };
    let counts = if counts.is_empty() { "nothing changed".to_owned() } else { counts.join(", ") };
    let places: Vec<_> = done.places.iter().map(|place| place.display().to_string()).collect();
    let places = if places.is_empty() { String::new() } else { format!(" in {}", places.join(", ")) };
    note!("{counts}{there}{places}");
    Ok(Ending::Good)
}

/// An annotation by its number in the list, from 1.
fn numbered(file: &SampleFile, number: u64) -> Result<Annotation> {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let found = place.and_then(|place| file.annotations().get(place)).cloned();
    found.ok_or_else(|| {
        let count = grouped(file.annotations().len() as u64);
        Usage(format!("no annotation {number}: the recording has {count}")).into()
    })
}

fn added(options: &Annotate, file: &SampleFile, label: &str) -> Result<Annotation> {
    if options.start.is_none() && options.position.is_none() {
        return Err(Usage("--add needs --start TIME or --position N".to_owned()).into());
    }
    let mut annotation = Annotation { position: 0, length_samples: 0, fields: Map::new() };
    set_text(&mut annotation, "core:label", label);
    set_text(&mut annotation, "core:generator", "grebe annotate");
    edited(options, file, annotation)
}

/// Applies the options to an annotation.
fn edited(options: &Annotate, file: &SampleFile, mut annotation: Annotation) -> Result<Annotation> {
    let unknown = || Usage("the sample rate is unknown: give --position and --samples".to_owned());
    if let Some(start) = options.start {
        annotation.position = file.position_at(start.as_secs_f64()).ok_or_else(unknown)?;
    }
    annotation.position = options.position.unwrap_or(annotation.position);
    if annotation.position >= file.len_samples() {
        let count = grouped(file.len_samples());
        return Err(
            Usage(format!("the annotation begins after the end of the recording: {count} samples")).into()
        );
    }
    if let Some(duration) = options.duration {
        let end = file.seconds_at(annotation.position).map(|start| start + duration.as_secs_f64());
        let end = end.and_then(|end| file.position_at(end)).ok_or_else(unknown)?;
        annotation.length_samples = end.saturating_sub(annotation.position);
    }
    annotation.length_samples = options.samples.unwrap_or(annotation.length_samples);
    annotation.length_samples = annotation.length_samples.min(file.len_samples() - annotation.position);
    if let Some((low, high)) = options.band {
        annotation.fields.insert("core:freq_lower_edge".to_owned(), low.into());
        annotation.fields.insert("core:freq_upper_edge".to_owned(), high.into());
    }
    let texts = [
        ("core:label", &options.label),
        ("core:comment", &options.comment),
        ("presentation:color", &options.color),
    ];
    for (field, text) in texts {
        text.iter().for_each(|text| set_text(&mut annotation, field, text));
    }
    Ok(annotation)
}

fn set_text(annotation: &mut Annotation, field: &str, text: &str) {
    match text {
        "" => drop(annotation.fields.remove(field)),
        text => drop(annotation.fields.insert(field.to_owned(), text.into())),
    }
}

/// The kind of a label file, by its name.
fn kind_of(path: &Path) -> Result<LabelFile> {
    LabelFile::of(path).ok_or_else(|| {
        let name = path.display();
        Usage(format!(
            "unknown kind of label file {name}: .csv, .txt (Audacity), .sigmf-meta, .sigmf-annotations"
        ))
        .into()
    })
}

fn imported(path: &Path, file: &SampleFile) -> Result<Vec<AnnotationEdit<Annotation>>> {
    let kind = kind_of(path)?;
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot open {}", path.display()))?;
    let read = kind.read(path, &text, file)?;
    if read.outside > 0 {
        note!("grebe: {} lie outside of the recording: skipped", grouped(read.outside as u64));
    }
    Ok(read.annotations.into_iter().map(AnnotationEdit::Add).collect())
}

fn export(path: &Path, file: &SampleFile, overwrite: bool) -> Result<Ending> {
    let (text, shortened) = kind_of(path)?.write(path, file, file.annotations())?;
    if !overwrite && path.exists() {
        return Err(Error::Exists { path: path.to_owned() }).context("--overwrite replaces it");
    }
    write_whole(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    if shortened > 0 {
        note!("grebe: {} have fields that these labels cannot hold: .csv can", grouped(shortened as u64));
    }
    note!("wrote {} to {}", counted(file.annotations().len() as u64, "annotation"), path.display());
    Ok(Ending::Good)
}

fn list(options: &Annotate, file: &SampleFile) -> Result<Ending> {
    let words = options.find.as_deref().unwrap_or_default().to_lowercase();
    let is_wanted = |annotation: &&Annotation| {
        let said = format!("{} {}", annotation.text("core:label"), annotation.text("core:comment"));
        words.split_whitespace().all(|word| said.to_lowercase().contains(word))
    };
    let all = (1u64..).zip(file.annotations()).filter(|(_, annotation)| is_wanted(annotation));
    if options.csv {
        let wanted: Vec<Annotation> = all.map(|(_, annotation)| annotation.clone()).collect();
        output::text(&LabelFile::Csv.write(&options.file, file, &wanted)?.0)?;
        return Ok(Ending::Good);
    }
    for (number, annotation) in all {
        match options.json {
            true => output::json(&line_json(number, annotation, file))?,
            false => out!("{}", line(number, annotation, file))?,
        }
    }
    Ok(Ending::Good)
}

fn line(number: u64, annotation: &Annotation, file: &SampleFile) -> String {
    let Annotation { position, length_samples, .. } = annotation;
    let mut parts = vec![format!("{number:>4}")];
    match file.rate_hz().zip(file.seconds_at(*position)) {
        Some((rate_hz, seconds)) => {
            parts.push(format!("{:>14}", Engineering::new(seconds, "s").digits(9).to_string()));
            let lasts = Engineering::new(*length_samples as f64 / rate_hz, "s").digits(4).to_string();
            parts.push(format!("{:>9}", if *length_samples > 0 { lasts } else { String::new() }));
        }
        None => parts.push(format!("{position:>14} {length_samples:>9}")),
    }
    let edge = |hz: f64| Engineering::new(hz, "Hz").digits(9).to_string();
    let edges =
        ["core:freq_lower_edge", "core:freq_upper_edge"].map(|field| annotation.number(field).map(edge));
    if edges.iter().any(Option::is_some) {
        parts.push(edges.map(|edge| edge.unwrap_or_else(|| "?".to_owned())).join(" \u{2026} "));
    }
    parts.push(annotation.text("core:label").to_owned());
    let comment = annotation.text("core:comment");
    if !comment.is_empty() {
        parts.push(format!("({comment})"));
    }
    parts.join("  ").trim_end().to_owned()
}

fn line_json(number: u64, annotation: &Annotation, file: &SampleFile) -> Value {
    let Annotation { position, length_samples, fields } = annotation;
    let segment = file.segment_at(*position);
    let time = file.time_at(*position).and_then(timestamp);
    json!({
        "number": number,
        "position": position,
        "samples": length_samples,
        "start_s": file.seconds_at(*position),
        "duration_s": file.rate_hz().map(|rate_hz| *length_samples as f64 / rate_hz),
        "sample_index": segment.first_sample_index + (position - segment.position),
        "time": time,
        "label": annotation.text("core:label"),
        "comment": annotation.text("core:comment"),
        "fields": fields,
    })
}
