//! Raw files: samples and nothing else. Their name states the format: `capture.cu8?rate=2.4M&channels=2`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grebe_frame::Description;
use grebe_process::query::Query;
use serde_json::Value;

use crate::encoding::Encoding;
use crate::error::{Error, ProcessError};
use crate::name_facts::{Hint, NameFacts};
use crate::path_query::split;
use crate::raw::RawFile;
use crate::sample_file::{SampleFile, Segment};
use crate::unpacked::{self, plain_name};
use crate::wav;

/// Parameters in the name of a raw file.
#[derive(Debug, PartialEq)]
struct Name {
    path: PathBuf,
    /// `None`: from the file's own name.
    format: Option<Encoding>,
    /// `None`: one, as far as anybody says.
    channels: Option<usize>,
    rate_hz: Option<f64>,
    frequency_hz: Option<f64>,
}

/// A file's path and the rate after its '?'; 0 if there is none. Other parameters are an error.
pub(super) fn path_and_rate(written: &Path) -> Result<(PathBuf, f64), Error> {
    let (path, query) = split(written);
    let read = || {
        let mut query = Query::new(query.unwrap_or_default())?;
        let rate_hz = query.rate_hz()?.unwrap_or(0.0);
        query.end().map(|()| rate_hz).map_err(|reason| format!("{reason}; the file says the rest"))
    };
    let rate_hz =
        read().map_err(|reason| ProcessError::Name { name: written.display().to_string(), reason })?;
    Ok((path, rate_hz))
}

/// Whether what stands behind the '?' of a name says something of raw samples.
pub(super) fn check_query(written: &Path) -> Result<(), Error> {
    Name::parse(written).map(drop)
}

/// How samples are written to a raw file of this name.
pub(super) fn encoding_to_write(path: &Path) -> Result<Encoding, Error> {
    let refused = |what: &str| Err(Error::Field { path: path.into(), what: what.to_owned() });
    if split(path).1.is_some() {
        return refused("the options after '?' apply only to reading: remove them");
    }
    match extension(path).filter(|encoding| encoding.is_written()) {
        Some(encoding) => Ok(encoding),
        None => refused("no stream has such samples: name it after the format of the recording"),
    }
}

/// Opens a raw file, little-endian where its format does not say `be`.
pub(super) fn open(written: &Path) -> Result<SampleFile, Error> {
    let name = Name::parse(written)?;
    let path = name.path.as_path();
    let mut file = unpacked::open(path)?;
    let bytes = file.metadata().map_err(Error::file("open", path))?.len();
    let mut begin = Vec::new();
    std::io::Read::by_ref(&mut file)
        .take(BEGIN_BYTES)
        .read_to_end(&mut begin)
        .map_err(Error::file("read", path))?;
    if wav::is_wav(&begin) {
        let what = format!(
            "is a WAV file with a header: rename it, as in mv '{0}' '{0}.wav', and open that",
            path.display()
        );
        return Err(Error::Content { path: path.into(), what });
    }
    let (facts, hint) = (NameFacts::of(path), Hint::new(written));
    let encoding = name.format.or_else(|| format_of(path)).ok_or_else(|| {
        let reason = "says no format: add ?format=".to_owned();
        ProcessError::Name { name: written.display().to_string(), reason }
    })?;
    let channels = name.channels.unwrap_or(1);
    let frame_bytes = (encoding.sample_bytes() * channels) as u64;
    let (length_samples, odd_bytes) = (bytes / frame_bytes, bytes % frame_bytes);
    if length_samples == 0 {
        return Err(Error::Empty { path: path.into() });
    }
    let mut notes = Vec::new();
    if odd_bytes > 0 {
        notes.push(format!(
            "the file ends within a sample: its last {odd_bytes} bytes of {frame_bytes} are ignored"
        ));
    }
    notes.extend(encoding.read_as());
    if name.format.is_none()
        && let Some(ending) = unusual(path)
    {
        notes.push(format!(
            "its ending, {ending}, is taken as {encoding}; {} says otherwise",
            hint.with(if encoding.to_string() == "ci16" { "format=cf32" } else { "format=ci16" })
        ));
    }
    let rate_hz = name.rate_hz.or(facts.rate_hz);
    let frequency_hz = name.frequency_hz.or(facts.frequency_hz);
    let from_name = facts.words(
        facts.rate_hz.filter(|_| name.rate_hz.is_none()),
        facts.frequency_hz.filter(|_| name.frequency_hz.is_none()),
        facts.time,
    );
    notes.extend(from_name.map(|words| format!("{words}; {} says otherwise", hint.with("rate=1M"))));
    if rate_hz.is_none() {
        let rate = if encoding.format.is_complex() { "2.4M" } else { "48k" };
        notes.push(match name.channels {
            Some(_) => hint.no_rate(rate),
            None => format!(
                "the sample rate and the number of channels are unknown (1 channel is assumed): name them, as in {}",
                hint.with(&format!("rate={rate}&channels=1"))
            ),
        });
    }
    let source = RawFile::new(path, file, encoding, channels, 0);
    let whole = Segment { recorded_at: facts.time, ..Segment::whole(length_samples) };
    let rate_hz = rate_hz.unwrap_or(0.0);
    let file = SampleFile::new(vec![source], rate_hz, length_samples, vec![whole], notes);
    let file = file.whole(odd_bytes == 0);
    let mut said = Description { centre_frequency_hz: frequency_hz, ..Description::default() };
    said.rest.extend(encoding.bits().map(|bits| (Description::BITS.to_owned(), Value::from(bits))));
    Ok(if said == Description::default() { file } else { file.described(vec![(0, Arc::new(said))]) })
}

impl Name {
    fn parse(written: &Path) -> Result<Self, Error> {
        let (path, query) = split(written);
        let read = || {
            let mut query = Query::new(query.unwrap_or_default())?;
            let rate_hz = query.rate_hz()?;
            let channels = query.channels()?;
            let format = query.value("format", Encoding::names(), Encoding::named)?;
            let frequency_hz = query.hertz("frequency")?;
            query.end()?;
            Ok(Self { path, format, channels, rate_hz, frequency_hz })
        };
        read().map_err(|reason: String| {
            ProcessError::Name { name: written.display().to_string(), reason }.into()
        })
    }
}

/// The format that a file's own name says, by its ending or as a receiver's program has it.
pub(super) fn format_of(path: &Path) -> Option<Encoding> {
    extension(path).or_else(|| NameFacts::of(path).format)
}

fn extension(path: &Path) -> Option<Encoding> {
    Encoding::named(plain_name(path).extension()?.to_str()?)
}

/// An ending that others may understand otherwise.
fn unusual(path: &Path) -> Option<&str> {
    path.extension()?.to_str().filter(|ending| ending.to_ascii_lowercase().starts_with("complex"))
}

/// Enough to know another kind of file by.
const BEGIN_BYTES: u64 = 12;

#[cfg(test)]
mod tests {
    use grebe_frame::{Complex, SampleFormat};

    use super::*;

    fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn with(path: &Path, query: &str) -> PathBuf {
        format!("{}{query}", path.display()).into()
    }

    #[test]
    fn a_name_says_what_the_samples_are() {
        let (_folder, path) = file("x.CU8", &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let mut opened = SampleFile::open(with(&path, "?rate=2.4M&channels=2&frequency=433.92M")).unwrap();
        assert_eq!((opened.format(), opened.channels(), opened.len_samples()), (SampleFormat::Cu8, 2, 2));
        assert_eq!(opened.rate_hz(), Some(2.4e6));
        assert_eq!(opened.description(0).unwrap().centre_frequency_hz, Some(433.92e6));
        assert_eq!(opened.notes(), ["the file ends within a sample: its last 1 bytes of 4 are ignored"]);
        let block = opened.block(0, 2).unwrap();
        let sample = Complex::new;
        assert_eq!(block.channel::<Complex<u8>>(1).unwrap().as_ref(), [sample(3, 4), sample(7, 8)]);

        let plain = SampleFile::open(&path).unwrap();
        assert_eq!((plain.rate_hz(), plain.notes().len()), (None, 2));
        assert!(plain.notes()[1].ends_with("x.CU8?rate=2.4M&channels=1'"), "{:?}", plain.notes());
        let given = SampleFile::open(with(&path, "?format=i8&rate=1")).unwrap();
        assert_eq!((given.format(), given.len_samples()), (SampleFormat::I8, 9));
    }

    #[test]
    fn every_name_in_use_is_known() {
        let formats = SampleFormat::ALL.map(|format| (format.name(), format));
        let others = [
            ("cfile", SampleFormat::Cf32),
            ("fc32", SampleFormat::Cf32),
            ("cs16", SampleFormat::Ci16),
            ("sc16", SampleFormat::Ci16),
            ("c16", SampleFormat::Ci16),
            ("cs8", SampleFormat::Ci8),
            ("uc8", SampleFormat::Cu8),
            ("s8", SampleFormat::I8),
            ("s16", SampleFormat::I16),
            ("s32", SampleFormat::I32),
        ];
        for (name, format) in formats.into_iter().chain(others) {
            let (_folder, path) = file(&format!("x.{name}"), &[7; 16]);
            assert_eq!(SampleFile::open(&path).unwrap().format(), format, "{name}");
        }
        let (_folder, path) = file("x.bin", &[7; 16]);
        assert_eq!(SampleFile::open(with(&path, "?format=cf32")).unwrap().len_samples(), 2);
        assert!(SampleFile::open(&path).unwrap_err().to_string().contains("unknown kind of file"));
    }

    /// Extensions of inspectrum's `InputSource::openFile`, and of complex 32-bit integers: files that
    /// inspectrum opens have the same meaning here, or the refusal says how to convert them.
    #[test]
    fn every_kind_that_inspectrum_opens_is_opened_or_convertible() {
        let opened = [
            ("cfile cf32 fc32", SampleFormat::Cf32),
            ("cs16 sc16 c16", SampleFormat::Ci16),
            ("cs8 sc8 c8", SampleFormat::Ci8),
            ("cu8 uc8", SampleFormat::Cu8),
            ("f32", SampleFormat::F32),
            ("f64", SampleFormat::F64),
            ("s16", SampleFormat::I16),
            ("s8", SampleFormat::I8),
            ("u8", SampleFormat::U8),
        ];
        for (names, format) in opened {
            for name in names.split(' ') {
                let (_folder, path) = file(&format!("x.{name}"), &[7; 16]);
                assert_eq!(SampleFile::open(&path).unwrap().format(), format, "{name}");
            }
        }
        for name in ["cf64", "fc64", "cs32", "sc32", "c32"] {
            let (_folder, path) = file(&format!("x.{name}"), &[7; 16]);
            let opened = SampleFile::open(&path).unwrap();
            assert_eq!(opened.format(), SampleFormat::Cf32, "{name}");
            assert!(opened.notes()[0].contains("are read as cf32: the nearest"), "{:?}", opened.notes());
        }
        // Any other name means cf32 there.
        let (_folder, path) = file("x.iq", &[7; 16]);
        let error = SampleFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("or x.bin?format=cf32"), "{error}");
    }

    #[test]
    fn a_name_without_the_needed_facts_is_refused() {
        for (query, says) in [
            ("?rate=fast", "has rate=fast: give samples per second, as in 2.4M"),
            ("?rate=0", "has rate=0"),
            ("?channels=256", "has channels=256: give 1 to 255"),
            ("?format=i20", "has format=i20: give one of i16, i8"),
            ("?colour=red", "has an unknown 'colour'; known: rate, channels, format, frequency"),
        ] {
            let (_folder, path) = file("x.cf32", &[0; 16]);
            let error = SampleFile::open(with(&path, query)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let (_folder, path) = file("x.f64", &[0; 7]);
        assert!(SampleFile::open(&path).unwrap_err().to_string().ends_with("holds no samples"));
    }

    #[test]
    fn names_of_receivers_say_what_the_samples_are_and_a_query_says_otherwise() {
        let (_folder, path) = file("gqrx_20220321_213549_434000000_1200000_fc.raw", &[0; 16]);
        let opened = SampleFile::open(&path).unwrap();
        assert_eq!((opened.format(), opened.rate_hz()), (SampleFormat::Cf32, Some(1.2e6)));
        assert_eq!(opened.description(0).unwrap().centre_frequency_hz, Some(434e6));
        assert_eq!(opened.time_at(0), grebe_frame::utc_time("2022-03-21T21:35:49Z"));
        assert!(opened.notes()[0].contains("1200000 S/s, 434000000 Hz, 2022-03-21T21:35:49Z (taken as UTC)"));
        let asked = SampleFile::open(with(&path, "?rate=48k&format=ci16")).unwrap();
        assert_eq!(
            (asked.format(), asked.rate_hz(), asked.len_samples()),
            (SampleFormat::Ci16, Some(48e3), 4)
        );

        let (folder, path) = file("BBD_0001.C16", &[0; 16]);
        let text = "sample_rate=500000\ncenter_frequency=433920000\n";
        std::fs::write(folder.path().join("BBD_0001.TXT"), text).unwrap();
        let opened = SampleFile::open(&path).unwrap();
        assert_eq!((opened.format(), opened.rate_hz()), (SampleFormat::Ci16, Some(500e3)));
        assert!(
            opened.notes()[0].contains("BBD_0001.TXT says 500000 S/s, 433920000 Hz"),
            "{:?}",
            opened.notes()
        );

        let (_folder, path) = file("capture.complex16s", &[255, 1, 2, 3]);
        let mut opened = SampleFile::open(&path).unwrap();
        assert_eq!(opened.block(0, 1).unwrap().channel::<Complex<i8>>(0).unwrap()[0], Complex::new(-1, 1));
    }

    #[test]
    fn a_suggestion_keeps_the_typed_options() {
        let (_folder, path) = file("x.bin", &[0; 16]);
        for (query, missing, hint) in [
            (
                "?format=cf32",
                "the sample rate and the number of channels are unknown (1 channel is assumed): name them",
                "rate=2.4M&channels=1",
            ),
            (
                "?format=i16",
                "the sample rate and the number of channels are unknown (1 channel is assumed): name them",
                "rate=48k&channels=1",
            ),
            ("?format=cf32&channels=2", "the sample rate is unknown: name it", "rate=2.4M"),
        ] {
            let typed = with(&path, query);
            let said = format!("{}&{hint}", typed.display());
            let notes = SampleFile::open(&typed).unwrap().notes().to_vec();
            assert_eq!(notes, [format!("{missing}, as in '{said}'")]);
            let opened = SampleFile::open(said).unwrap();
            assert!(opened.rate_hz().is_some() && opened.notes().is_empty(), "{:?}", opened.notes());
        }
    }

    #[test]
    fn headers_and_text_are_never_read_as_samples() {
        let wav = [&b"RIFF\x24\0\0\0WAVE"[..], &[0; 32]].concat();
        let (_folder, path) = file("x.raw", &wav);
        let error = SampleFile::open(with(&path, "?format=cf32")).unwrap_err().to_string();
        assert!(error.contains("is a WAV file with a header"), "{error}");
        for name in ["x.wav", "x.sigmf-meta", "x.csv", "x.npy"] {
            let (_folder, path) = file(name, &wav);
            assert!(SampleFile::open(with(&path, "?format=cf32&rate=1M")).is_err(), "{name}");
        }
        // Data whose metadata are lost.
        let (_folder, path) = file("x.sigmf-data", &[0; 16]);
        assert_eq!(SampleFile::open(with(&path, "?format=cf32&rate=1M")).unwrap().len_samples(), 2);
    }

    #[test]
    fn a_file_whose_own_name_has_a_question_mark_is_opened() {
        let (_folder, path) = file("x.bin?format=u8", &[0; 7]);
        assert!(SampleFile::open(&path).is_err(), "its name ends in no format, and says nothing else");
        let (_folder, path) = file("what?.u8", &[0; 7]);
        assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 7);
    }
}
