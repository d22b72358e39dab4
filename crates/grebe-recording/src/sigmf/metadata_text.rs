//! Reads metadata files: JSON, and the invalid JSON that some programs write.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use std::borrow::Cow;
use std::path::Path;

use super::archive::Files;
use super::layout::Meta;
use crate::error::Error;

/// Reads JSON of any kind, past a mark of the order of bytes and zeros at the end.
pub(super) fn read_json<T: DeserializeOwned>(files: &Files, path: &Path) -> Result<T, Error> {
    let bytes = bytes_of(files, path)?;
    serde_json::from_slice(&plain(&bytes)).map_err(|error| malformed(path, &error))
}

/// Reads the metadata of a recording, and notices about the parts that needed repair.
pub(super) fn read_meta(files: &Files, path: &Path) -> Result<(Meta, Vec<String>), Error> {
    read_meta_text(path, &bytes_of(files, path)?)
}

/// The same of bytes that were read.
pub(super) fn read_meta_text(path: &Path, bytes: &[u8]) -> Result<(Meta, Vec<String>), Error> {
    let text = &*plain(bytes);
    let mut notes = Vec::new();
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        notes.push("the metadata are UTF-16, and are read as such; SigMF has UTF-8".to_owned());
    } else if text.len() < bytes.trim_ascii_end().len() {
        notes.push("a byte order mark, or zeros, stand around the metadata: they are skipped".to_owned());
    }
    let error = match serde_json::from_slice(text) {
        Ok(meta) => return Ok((meta, notes)),
        Err(error) => error,
    };
    let mut value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(_) => {
            let numbers = without_nan(text);
            let value = serde_json::from_slice(&numbers).map_err(|_| malformed(path, &error))?;
            notes.push("NaN and Infinity, which JSON does not have, are taken as nothing".to_owned());
            value
        }
    };
    tidy(&mut value, &mut notes);
    let meta = serde_json::from_value(value).map_err(|_| malformed(path, &error))?;
    Ok((meta, notes))
}

/// The text of the metadata as it stands in the file.
pub(super) fn read_text(path: &Path) -> Result<String, Error> {
    let text = String::from_utf8(bytes_of(&Files::Folder, path)?);
    text.map_err(|_| Error::Content { path: path.into(), what: "is not valid metadata: no UTF-8".to_owned() })
}

fn bytes_of(files: &Files, path: &Path) -> Result<Vec<u8>, Error> {
    files.open(path)?.read(META_BYTES_MAX).map_err(Error::file("open", path))
}

fn malformed(path: &Path, error: &serde_json::Error) -> Error {
    Error::Content { path: path.into(), what: format!("is not valid metadata: {error}") }
}

/// Without what stands around it, and of UTF-16 with a mark, which some shells write, the same as UTF-8.
fn plain(bytes: &[u8]) -> Cow<'_, [u8]> {
    let words = |of: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let words: Vec<u16> = bytes.as_chunks().0.iter().map(|pair| of(*pair)).collect();
        String::from_utf16_lossy(&words).into_bytes()
    };
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(words(u16::from_le_bytes, rest)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(words(u16::from_be_bytes, rest)),
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(rest),
        _ => Cow::Borrowed(bytes),
    };
    let is_last = |byte: &u8| *byte != 0 && !byte.is_ascii_whitespace();
    let end = text.iter().rposition(is_last).map_or(0, |last| last + 1);
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
        Cow::Owned(text) => Cow::Owned(text[..end].to_vec()),
    }
}

/// The same with `null` where Python wrote `NaN`, `Infinity` or `-Infinity` outside a string.
fn without_nan(text: &[u8]) -> Vec<u8> {
    let (mut out, mut rest, mut is_text) = (Vec::with_capacity(text.len()), text, false);
    while let [first, behind @ ..] = rest {
        let word = [&b"NaN"[..], b"Infinity", b"-Infinity"]
            .into_iter()
            .find(|word| !is_text && rest.starts_with(word));
        if let Some(word) = word {
            out.extend(b"null");
            rest = &rest[word.len()..];
            continue;
        }
        out.push(*first);
        rest = behind;
        match first {
            b'"' => is_text = !is_text,
            b'\\' if is_text => {
                out.extend(rest.first());
                rest = rest.get(1..).unwrap_or_default();
            }
            _ => {}
        }
    }
    out
}

/// Required type of a field.
#[derive(Clone, Copy)]
enum Wanted {
    Whole,
    Number,
    Text,
}

/// Corrects or removes each field that grebe reads and that is invalid.
fn tidy(value: &mut Value, notes: &mut Vec<String>) {
    let Some(meta) = value.as_object_mut() else { return };
    if let Some(global) = meta.get_mut("global").and_then(Value::as_object_mut) {
        tidy_fields(global, &GLOBAL, "global", notes);
    }
    for (list, fields) in [("captures", &CAPTURE[..]), ("annotations", &ANNOTATION)] {
        let mut left_out = 0;
        let items = match meta.remove(list) {
            Some(Value::Array(items)) => items,
            None | Some(Value::Null) => Vec::new(),
            Some(_) => {
                notes.push(format!("{list} is not a list, and is ignored"));
                Vec::new()
            }
        };
        let mut taken = Vec::with_capacity(items.len());
        for (number, mut item) in items.into_iter().enumerate() {
            let Some(fields_of) = item.as_object_mut() else {
                left_out += 1;
                continue;
            };
            tidy_fields(fields_of, fields, &format!("{list}[{number}]"), notes);
            if list == "captures" && number == 0 {
                fields_of.entry(START).or_insert_with(|| 0.into());
            }
            if fields_of.contains_key(START) {
                taken.push(item);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            notes.push(format!("{left_out} of {list} have no start, and are ignored"));
        }
        meta.insert(list.to_owned(), taken.into());
    }
}

fn tidy_fields(
    fields: &mut Map<String, Value>,
    wanted: &[(&str, Wanted)],
    of: &str,
    notes: &mut Vec<String>,
) {
    for (name, wanted) in wanted {
        let Some(value) = fields.get_mut(*name) else { continue };
        if value.is_null() {
            fields.remove(*name);
            continue;
        }
        let number = || match &*value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse::<f64>().ok(),
            _ => None,
        };
        let is_whole = |number: &f64| number.fract() == 0.0 && (0.0..EXACT_MAX).contains(number);
        let better = match wanted {
            Wanted::Whole if value.is_u64() => continue,
            Wanted::Whole => number().filter(is_whole).map(|number| Value::from(number as u64)),
            Wanted::Number if value.is_number() => continue,
            Wanted::Number => number().and_then(Number::from_f64).map(Value::from),
            Wanted::Text if value.is_string() => continue,
            Wanted::Text => value.is_number().then(|| Value::from(value.to_string())),
        };
        // At a million captures one says it for all.
        let say = |what: &str, notes: &mut Vec<String>| {
            let short = of.split('[').next().unwrap_or(of);
            if !notes.iter().any(|note| note.starts_with(short) && note.contains(*name)) {
                notes.push(format!("{of}.{name} is {value}, which is {what}"));
            }
        };
        match better {
            Some(better) => {
                say(&format!("taken as {better}"), notes);
                *value = better;
            }
            None => {
                say("invalid, and is ignored", notes);
                fields.remove(*name);
            }
        }
    }
}

const START: &str = "core:sample_start";

const GLOBAL: [(&str, Wanted); 13] = [
    ("core:datatype", Wanted::Text),
    ("core:sample_rate", Wanted::Number),
    ("core:version", Wanted::Text),
    ("core:num_channels", Wanted::Whole),
    ("core:recorder", Wanted::Text),
    ("core:collection", Wanted::Text),
    ("core:dataset", Wanted::Text),
    ("core:offset", Wanted::Whole),
    ("core:trailing_bytes", Wanted::Whole),
    ("core:sha512", Wanted::Text),
    ("core:author", Wanted::Text),
    ("core:description", Wanted::Text),
    ("core:hw", Wanted::Text),
];

const CAPTURE: [(&str, Wanted); 7] = [
    (START, Wanted::Whole),
    ("core:global_index", Wanted::Whole),
    ("core:header_bytes", Wanted::Whole),
    ("core:datetime", Wanted::Text),
    ("core:frequency", Wanted::Number),
    ("capture_details:acquisition_bandwidth", Wanted::Number),
    ("capture_details:gain", Wanted::Number),
];

const ANNOTATION: [(&str, Wanted); 2] = [(START, Wanted::Whole), ("core:sample_count", Wanted::Whole)];

/// Smaller integers are exact as floats.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Ten million captures; a longer file ends within its JSON, which is then refused.
const META_BYTES_MAX: u64 = 2 << 30;
