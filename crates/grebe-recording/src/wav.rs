//! WAV, RF64 and BW64 files: chunks with the position and the format of the samples.
//!
//! Own code instead of a library: it reads samples in large blocks, accepts files that their writer never
//! closed, and names the fault of a bad file.

mod auxi;
mod chunks;
mod extent;
mod format;
mod header;
mod numbers;
mod repair;

use std::path::Path;
use std::sync::Arc;

use grebe_frame::Description;
use grebe_process::query::Query;
use serde_json::Value;

use self::auxi::Auxi;
use self::chunks::Chunks;
pub(crate) use self::chunks::is_wav;
use self::format::Level;
pub(crate) use self::header::Header;
pub(crate) use self::repair::repair;
use crate::error::{Error, ProcessError};
use crate::name_facts::{Hint, NameFacts};
use crate::path_query;
use crate::raw::RawFile;
use crate::sample_file::{SampleFile, Segment};
use crate::unpacked;

/// The query after the '?' of a name.
#[derive(Debug, Default)]
struct WavQuery {
    rate_hz: Option<f64>,
    frequency_hz: Option<f64>,
    /// Whether channels are pairs of I and Q.
    iq: Option<bool>,
}

impl WavQuery {
    fn parse(written: &Path, query: &str) -> Result<Self, Error> {
        let read = || {
            let mut query = Query::new(query)?;
            if query.take("format").is_some() {
                return Err(
                    "has format=, and a WAV says its format itself: leave it out, or write ?iq where channels are pairs of I and Q"
                        .to_owned(),
                );
            }
            let rate_hz = query.rate_hz()?;
            let frequency_hz = query.hertz("frequency")?;
            let iq = query.value("iq", "no, or nothing", |value| match value {
                "" | "yes" => Some(true),
                "no" => Some(false),
                _ => None,
            })?;
            query.end().map(|()| Self { rate_hz, frequency_hz, iq })
        };
        read().map_err(|reason| ProcessError::Name { name: written.display().to_string(), reason }.into())
    }
}

/// Opens a WAV file: 8-, 16-, 24- and 32-bit integers, 32- and 64-bit floats, up to 255 channels: `x.wav`, `x.wav?iq&frequency=100M`.
pub(crate) fn open(written: &Path) -> Result<SampleFile, Error> {
    let (path, query) = path_query::split(written);
    let asked = WavQuery::parse(written, query.unwrap_or_default())?;
    let file = unpacked::open(&path)?;
    let mut chunks = Chunks::new(&path, &file);
    let found = chunks.find()?;
    let (format, auxi) = (found.format, found.auxi);
    let extent = chunks.extent(&found)?;
    let mut notes = std::mem::take(&mut chunks.notes);
    let level = Level::of(&format, &file, extent.offset_bytes, extent.bytes);
    let level = level.map_err(Error::file("read", &path))?;
    notes.extend(level.note.clone());
    let facts = NameFacts::of(&path);
    let hint = Hint::new(written);
    let is_pairs = pairs(&asked, format.channels, auxi.as_ref(), &facts, &hint, written, &mut notes)?;
    let (encoding, channels) = match level.encoding.paired().filter(|_| is_pairs) {
        Some(paired) => (paired, format.channels / 2),
        None => (level.encoding, format.channels),
    };
    notes.extend(encoding.read_as());
    let frequency_hz = asked.frequency_hz.or_else(|| auxi.as_ref()?.frequency_hz).or(facts.frequency_hz);
    let recorded_at = auxi.as_ref().and_then(|auxi| auxi.start).or(facts.time);
    let from_name = facts.words(
        None,
        facts.frequency_hz.filter(|_| frequency_hz == facts.frequency_hz && asked.frequency_hz.is_none()),
        facts.time.filter(|_| recorded_at == facts.time),
    );
    notes.extend(from_name.map(|words| format!("{words}; {} says otherwise", hint.with("frequency=100M"))));
    let rate_hz = asked.rate_hz.unwrap_or(f64::from(format.sample_rate_hz));
    if rate_hz == 0.0 {
        notes.push(hint.no_rate("48k"));
    }
    let frame_bytes = (encoding.sample_bytes() * channels) as u64;
    let len_samples = extent.bytes / frame_bytes;
    let source = RawFile::new(&path, file, encoding, channels, extent.offset_bytes);
    let whole = Segment { recorded_at, ..Segment::whole(len_samples) };
    let file = SampleFile::new(vec![source], rate_hz, len_samples, vec![whole], notes).whole(extent.is_whole);
    let mut said = Description { centre_frequency_hz: frequency_hz, ..Description::default() };
    if let Some(bits) = level.bits.or(encoding.bits()) {
        said.rest.insert(Description::BITS.to_owned(), Value::from(bits));
    }
    Ok(if said == Description::default() { file } else { file.described(vec![(0, Arc::new(said))]) })
}

/// Whether two channels are I and Q of one: the name asks for it, or an `auxi` chunk or a receiver's name mean it.
fn pairs(
    asked: &WavQuery,
    channels: usize,
    auxi: Option<&Auxi>,
    facts: &NameFacts,
    hint: &Hint<'_>,
    written: &Path,
    notes: &mut Vec<String>,
) -> Result<bool, Error> {
    if let Some(asked) = asked.iq {
        if asked && channels % 2 == 1 {
            let reason = format!("has iq, and the file has {channels} channels: I and Q are two each");
            return Err(ProcessError::Name { name: written.display().to_string(), reason }.into());
        }
        return Ok(asked);
    }
    let why = match (auxi, facts.iq) {
        (_, Some(false)) => return Ok(false),
        (Some(_), _) => "a receiver wrote it (auxi)",
        (None, Some(true)) => "its name is that of a receiver's I and Q",
        (None, None) => return Ok(false),
    };
    if channels != 2 {
        return Ok(false);
    }
    notes.push(format!(
        "{why}: its two channels are read as I and Q; {} reads them as they are",
        hint.with("iq=no")
    ));
    Ok(true)
}

#[cfg(test)]
mod tests;
