//! Files of receivers' programs with a header of their own before the samples: SDRangel's `.sdriq` and the `.uff` of
//! receivers of DAB.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flate2::Crc;
use grebe_frame::{Description, utc_time};

use crate::encoding::Encoding;
use crate::error::Error;
use crate::headerless::path_and_rate;
use crate::name_facts::{Hint, NameFacts};
use crate::raw::RawFile;
use crate::sample_file::{SampleFile, Segment};
use crate::unpacked;
use crate::xml_attribute::attribute;

/// Content of a header.
struct Header {
    encoding: Encoding,
    offset_bytes: u64,
    /// Number of samples, if stated.
    announced: Option<u64>,
    rate_hz: f64,
    frequency_hz: Option<f64>,
    time: Option<SystemTime>,
    notes: Vec<String>,
}

/// Opens a recording of SDRangel: 32 bytes, then complex samples of 16 bits, or of 24 in 32.
///
/// ```text
///  0      4            12          20            24      28
///  rate   frequency    time        bits a sample filler  CRC32 of all before it          all little-endian
/// ```
pub(super) fn open_sdriq(written: &Path) -> Result<SampleFile, Error> {
    open(written, |path, begin| {
        let content = |what: &str| Error::Content { path: path.into(), what: what.to_owned() };
        let Some(head) = begin.get(..32) else {
            return Err(Error::truncated(path, "it ends within its header of 32 bytes"));
        };
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (encoding, mut notes) = match word(20) {
            16 => (Encoding::named("ci16"), Vec::new()),
            24 => (Encoding::named("ci32"), Vec::new()),
            _ => {
                return Err(content("has samples of neither 16 nor 24 bits: not a recording of SDRangel"));
            }
        };
        let Some(encoding) = encoding else { return Err(content("cannot be read")) };
        let mut sum = Crc::new();
        sum.update(&head[..28]);
        if sum.sum() != word(28) {
            notes.push("the checksum of its header does not match: it is taken as it stands".to_owned());
        }
        let stamp = long(12);
        // Older versions count seconds.
        let time =
            if stamp > SECONDS_MAX { Duration::from_millis(stamp) } else { Duration::from_secs(stamp) };
        let time = SystemTime::UNIX_EPOCH.checked_add(time).filter(|_| stamp > 0);
        let frequency_hz = Some(long(4) as f64).filter(|&hz| hz > 0.0);
        let rate_hz = f64::from(word(0));
        Ok(Header { encoding, offset_bytes: 32, announced: None, rate_hz, frequency_hz, time, notes })
    })
}

/// Opens a recording of a DAB receiver: XML in its first kilobytes gives the offset and the format of the
/// samples.
pub(super) fn open_uff(written: &Path) -> Result<SampleFile, Error> {
    open(written, |path, begin| {
        let text = String::from_utf8_lossy(begin);
        let Some((text, _)) = text.split_once("</SDR>") else {
            let what = "does not begin with the XML of a recording of DAB (</SDR>); where you know its samples, name them, \
                        as in 'x.uff?format=cu8&rate=2048k'";
            return Err(Error::Content {
                path: path.into(),
                what: what.replace("x.uff", &path.display().to_string()),
            });
        };
        let element = |name: &str| {
            let behind = text.split(name).nth(1)?;
            behind.split('>').next()
        };
        let value = |name: &str| {
            let element = element(name)?;
            let number: f64 = attribute(element, "Value")?.parse().ok()?;
            let factor = match attribute(element, "Unit").unwrap_or("Hz") {
                "kHz" | "KHz" => 1e3,
                "MHz" => 1e6,
                _ => 1.0,
            };
            Some(number * factor).filter(|&hz| hz > 0.0)
        };
        let channels = element("<Channels").unwrap_or_default();
        let format = match attribute(channels, "Container").unwrap_or_default() {
            "uint8" => "cu8",
            "int8" => "ci8",
            "int16" => "ci16",
            "int24" => "ci24",
            "int32" => "ci32",
            "float" | "float32" => "cf32",
            other => {
                return Err(Error::field(
                    path,
                    "Container",
                    other,
                    "uint8, int8, int16, int24, int32 and float can be read",
                ));
            }
        };
        let is_big = attribute(channels, "Ordering") == Some("MSB");
        let encoding = Encoding::named(&format!("{format}{}", if is_big { "be" } else { "" }));
        let Some(encoding) = encoding else {
            return Err(Error::field(path, "Container", format, "it cannot be read"));
        };
        let block = element("<Datablock ").unwrap_or_default();
        let whole = |name: &str| attribute(block, name)?.parse::<u64>().ok();
        // Most write no place: theirs is always the same.
        let offset_bytes = whole("Offset").unwrap_or(UFF_OFFSET_BYTES);
        let components = whole("Count").map(|count| match attribute(block, "Unit") {
            // I and Q are two.
            Some("Channel") | Some("Container") => count / 2,
            _ => count,
        });
        let time = attribute(element("<Time").unwrap_or_default(), "Value").and_then(utc_time);
        let (rate_hz, frequency_hz) = (value("<Samplerate").unwrap_or(0.0), value("<Frequency"));
        Ok(Header {
            encoding,
            offset_bytes,
            announced: components,
            rate_hz,
            frequency_hz,
            time,
            notes: Vec::new(),
        })
    })
}

fn open(
    written: &Path,
    header: impl FnOnce(&Path, &[u8]) -> Result<Header, Error>,
) -> Result<SampleFile, Error> {
    let (path, asked_hz) = path_and_rate(written)?;
    let mut file = unpacked::open(&path)?;
    let file_bytes = file.metadata().map_err(Error::file("open", &path))?.len();
    let mut begin = Vec::new();
    let read = Read::by_ref(&mut file).take(BEGIN_BYTES).read_to_end(&mut begin);
    read.map_err(Error::file("read", &path))?;
    let Header { encoding, offset_bytes, announced, rate_hz, frequency_hz, time, mut notes } =
        header(&path, &begin)?;
    let facts = NameFacts::of(&path);
    let rate_hz = if asked_hz > 0.0 { asked_hz } else { rate_hz };
    if rate_hz == 0.0 {
        notes.push(Hint::new(written).no_rate("2.4M"));
    }
    notes.extend(encoding.read_as());
    notes.extend(facts.words(None, None, facts.time.filter(|_| time.is_none())));
    let sample_bytes = encoding.sample_bytes() as u64;
    let there = file_bytes.saturating_sub(offset_bytes) / sample_bytes;
    let len_samples = announced.unwrap_or(there).min(there);
    if len_samples == 0 {
        return Err(Error::Empty { path });
    }
    let missing = announced.map_or(0, |announced| announced.saturating_sub(there));
    if missing > 0 {
        notes.push(format!(
            "the file is truncated: {there} of {} samples are there and are read, {missing} are missing",
            there + missing
        ));
    }
    let source = RawFile::new(&path, file, encoding, 1, offset_bytes);
    let whole = Segment { recorded_at: time.or(facts.time), ..Segment::whole(len_samples) };
    let mut said = Description { centre_frequency_hz: frequency_hz, ..Description::default() };
    said.rest.extend(encoding.bits().map(|bits| (Description::BITS.to_owned(), bits.into())));
    let file = SampleFile::new(vec![source], rate_hz, len_samples, vec![whole], notes);
    Ok(file.whole(missing == 0).described(vec![(0, Arc::new(said))]))
}

const BEGIN_BYTES: u64 = 8 << 10;
/// In the year 2286; as milliseconds in April 1970.
const SECONDS_MAX: u64 = 10_000_000_000;
const UFF_OFFSET_BYTES: u64 = 2_048;
