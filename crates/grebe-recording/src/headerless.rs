//! Raw files: samples and nothing else. Their name says what they are: `capture.cu8?rate=2.4M&channels=2`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grebe_frame::{Component, Description, SampleFormat};
use grebe_process::query::Query;

use crate::encoding::Encoding;
use crate::error::{Error, ProcessError};
use crate::raw::RawFile;
use crate::sample_file::{SampleFile, Segment};

/// What the name of a raw file says.
#[derive(Debug, PartialEq)]
struct Name {
    path: PathBuf,
    format: Result<SampleFormat, Foreign>,
    channels: usize,
    rate_hz: f64,
    frequency_hz: Option<f64>,
}

/// Samples that no stream has, and what they can be converted to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Foreign {
    /// As SigMF and file names call it, without `r` for a real one.
    pub(super) name: &'static str,
    /// NumPy's name of one component.
    numpy: &'static str,
    /// What holds its values, or their nearest.
    pub(super) to: SampleFormat,
}

/// Whether the name is that of a raw file.
pub(super) fn is_raw(path: &Path) -> bool {
    let (path, query) = split(path);
    let is_given = query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("format=")));
    is_given || extension(&path).is_some()
}

/// A file's path and the rate that its name says behind a '?'; 0: none. It says nothing else.
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

/// How samples are written to a raw file of this name.
pub(super) fn encoding_to_write(path: &Path) -> Result<Encoding, Error> {
    let refused = |what: &str| Err(Error::Field { path: path.into(), what: what.to_owned() });
    if split(path).1.is_some() {
        return refused("what stands behind the '?' is for whoever reads the file: leave it out");
    }
    match extension(path) {
        Some(Ok(format)) => Ok(Encoding::of(format)),
        _ => refused("no stream has such samples: name it after the format of the recording"),
    }
}

/// Opens a raw file, little-endian.
pub(super) fn open(path: &Path) -> Result<SampleFile, Error> {
    let name = Name::parse(path)?;
    let path = name.path.as_path();
    let format = name.format.map_err(|foreign| {
        let to = foreign.to.name();
        let what = foreign.conversion(&path.display().to_string(), '<', to, &format!("out.{to}"));
        Error::Field { path: path.into(), what: format!("its samples are {}: {what}", foreign.name) }
    })?;
    let open = || {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    };
    let (file, bytes) = open().map_err(Error::file("open", path))?;
    let frame_bytes = (format.bytes() * name.channels) as u64;
    let (length_samples, odd_bytes) = (bytes / frame_bytes, bytes % frame_bytes);
    if length_samples == 0 {
        return Err(Error::Empty { path: path.into() });
    }
    let mut notes = Vec::new();
    if odd_bytes > 0 {
        notes.push(format!(
            "the file ends within a sample: its last {odd_bytes} bytes of {frame_bytes} are left out"
        ));
    }
    if name.rate_hz == 0.0 {
        notes.push(format!("nothing says the sample rate: name it, as in '{}?rate=2.4M'", path.display()));
    }
    let source = RawFile::new(path, file, Encoding::of(format), name.channels, 0);
    let whole = Segment {
        position: 0,
        length_samples,
        first_sample_index: 0,
        recorded_at: None,
        recorded_error_ns: None,
        recorded_axis: None,
    };
    let file =
        SampleFile::new(vec![source], name.rate_hz, length_samples, vec![whole], notes).whole(odd_bytes == 0);
    Ok(match name.frequency_hz {
        None => file,
        tuned => {
            let description = Description { centre_frequency_hz: tuned, ..Description::default() };
            file.described(vec![(0, Arc::new(description))])
        }
    })
}

impl Name {
    fn parse(written: &Path) -> Result<Self, Error> {
        let (path, query) = split(written);
        let read = || {
            let mut query = Query::new(query.unwrap_or_default())?;
            let rate_hz = query.rate_hz()?.unwrap_or(0.0);
            let channels = query.channels()?.unwrap_or(1);
            let all = SampleFormat::ALL.map(SampleFormat::name).join(", ");
            let format = query.value("format", format_args!("one of {all}"), named)?;
            let frequency_hz = query.hertz("frequency")?;
            query.end()?;
            let format = format.or_else(|| extension(&path)).ok_or("says no format: add ?format=")?;
            Ok(Self { path: path.clone(), format, channels, rate_hz, frequency_hz })
        };
        read().map_err(|reason: String| {
            ProcessError::Name { name: written.display().to_string(), reason }.into()
        })
    }
}

impl Foreign {
    /// What a person does about it: `name` is how the result is called, in the file `to`.
    pub(super) fn conversion(&self, from: &str, order: char, name: &str, to: &str) -> String {
        let numpy = self.numpy;
        let component = match self.to.component() {
            Component::I32 => "i4",
            Component::F64 => "f8",
            Component::I8 | Component::U8 | Component::I16 | Component::F32 => "f4",
        };
        format!(
            "no stream has such samples; convert the data to {name}, with NumPy for example: \
             fromfile(\"{from}\", \"{order}{numpy}\").astype(\"<{component}\").tofile(\"{to}\")"
        )
    }
}

/// A file's path, and what stands behind it.
pub(super) fn split(path: &Path) -> (PathBuf, Option<&str>) {
    // A file of that very name is meant, where there is one.
    let parts = path.to_str().and_then(|text| text.rsplit_once('?')).filter(|_| !path.exists());
    match parts {
        Some((path, query)) => (path.into(), Some(query)),
        None => (path.into(), None),
    }
}

fn extension(path: &Path) -> Option<Result<SampleFormat, Foreign>> {
    named(&path.extension()?.to_str()?.to_ascii_lowercase())
}

/// A format of streams by any name that is in use.
pub fn format_named(name: &str) -> Option<SampleFormat> {
    named(name)?.ok()
}

/// A format by any name that is in use: GNU Radio's, inspectrum's, those of the programs of receivers.
fn named(name: &str) -> Option<Result<SampleFormat, Foreign>> {
    let format = match name {
        "cfile" | "fc32" => SampleFormat::Cf32,
        "cs16" | "sc16" | "c16" => SampleFormat::Ci16,
        "cs8" | "sc8" | "c8" => SampleFormat::Ci8,
        "uc8" => SampleFormat::Cu8,
        "s8" => SampleFormat::I8,
        "s16" => SampleFormat::I16,
        "s32" => SampleFormat::I32,
        "fc64" => return named("cf64"),
        "cs32" | "sc32" | "c32" => return named("ci32"),
        _ => match name.parse() {
            Ok(format) => format,
            Err(_) => return FOREIGN.into_iter().find(|foreign| foreign.name == name).map(Err),
        },
    };
    Some(Ok(format))
}

/// What no stream has.
pub(super) const FOREIGN: [Foreign; 6] = [
    Foreign { name: "u16", numpy: "u2", to: SampleFormat::I32 },
    Foreign { name: "u32", numpy: "u4", to: SampleFormat::F64 },
    Foreign { name: "ci32", numpy: "i4", to: SampleFormat::Cf32 },
    Foreign { name: "cu16", numpy: "u2", to: SampleFormat::Cf32 },
    Foreign { name: "cu32", numpy: "u4", to: SampleFormat::Cf32 },
    Foreign { name: "cf64", numpy: "f8", to: SampleFormat::Cf32 },
];

#[cfg(test)]
mod tests {
    use grebe_frame::Complex;

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
        let mut opened = SampleFile::open(&with(&path, "?rate=2.4M&channels=2&frequency=433.92M")).unwrap();
        assert_eq!((opened.format(), opened.channels(), opened.len_samples()), (SampleFormat::Cu8, 2, 2));
        assert_eq!(opened.sample_rate_hz(), 2.4e6);
        assert_eq!(opened.description(0).unwrap().centre_frequency_hz, Some(433.92e6));
        assert_eq!(opened.notes(), ["the file ends within a sample: its last 1 bytes of 4 are left out"]);
        let block = opened.block(0, 2).unwrap();
        let sample = Complex::new;
        assert_eq!(block.channel::<Complex<u8>>(1).unwrap().as_ref(), [sample(3, 4), sample(7, 8)]);

        let plain = SampleFile::open(&path).unwrap();
        assert_eq!((plain.sample_rate_hz(), plain.notes().len()), (0.0, 2));
        assert!(plain.notes()[1].ends_with("x.CU8?rate=2.4M'"), "{:?}", plain.notes());
        let given = SampleFile::open(&with(&path, "?format=i8&rate=1")).unwrap();
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
        assert_eq!(SampleFile::open(&with(&path, "?format=cf32")).unwrap().len_samples(), 2);
        assert!(SampleFile::open(&path).unwrap_err().to_string().contains("unknown kind of file"));
    }

    /// The endings of its `InputSource::openFile`, and those of complex 32-bit integers: what it opens has the same meaning here, or the
    /// refusal says how to convert it.
    #[test]
    fn what_inspectrum_opens_is_opened_or_can_be_converted() {
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
        for (names, component) in [("cf64 fc64", "<f8"), ("cs32 sc32 c32", "<i4")] {
            for name in names.split(' ') {
                let (_folder, path) = file(&format!("x.{name}"), &[7; 16]);
                let error = SampleFile::open(&path).unwrap_err().to_string();
                let says = format!("\"{component}\").astype(\"<f4\").tofile(\"out.cf32\")");
                assert!(error.contains("convert the data to cf32") && error.contains(&says), "{error}");
            }
        }
        // Any other name means cf32 there.
        let (_folder, path) = file("x.iq", &[7; 16]);
        let error = SampleFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("or x.bin?format=cf32"), "{error}");
    }

    #[test]
    fn what_a_name_cannot_say_is_refused() {
        for (query, says) in [
            ("?rate=fast", "has rate=fast: give samples per second, as in 2.4M"),
            ("?rate=0", "has rate=0"),
            ("?channels=256", "has channels=256: give 1 to 255"),
            ("?format=i24", "has format=i24: give one of i16, i8"),
            ("?colour=red", "has an unknown 'colour'; known: rate, channels, format, frequency"),
            (
                "?format=cf64",
                "its samples are cf64: no stream has such samples; convert the data to cf32, with NumPy for example: fromfile(",
            ),
        ] {
            let (_folder, path) = file("x.cf32", &[0; 16]);
            let error = SampleFile::open(&with(&path, query)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let (_folder, path) = file("x.f64", &[0; 7]);
        assert!(SampleFile::open(&path).unwrap_err().to_string().ends_with("holds no samples"));
    }

    #[test]
    fn a_file_whose_own_name_has_a_question_mark_is_opened() {
        let (_folder, path) = file("x.bin?format=u8", &[0; 7]);
        assert!(SampleFile::open(&path).is_err(), "its name ends in no format, and says nothing else");
        let (_folder, path) = file("what?.u8", &[0; 7]);
        assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 7);
    }
}
