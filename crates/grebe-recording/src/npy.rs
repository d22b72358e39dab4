//! NumPy's `.npy`: one array after a header that is a Python dictionary.
//!
//! Samples are the first axis, channels the second. NumPy has no complex integers: their I and Q are the last
//! axis. The header follows `numpy.lib.format`, versions 1 to 3. It has no rate: the name may state it, as
//! for a raw file.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use grebe_frame::{Description, MAX_CHANNELS, SampleFormat};
use serde_json::Value;

use crate::encoding::{Encoding, Order};
use crate::error::Error;
use crate::headerless;
use crate::name_facts::Hint;
use crate::raw::RawFile;
use crate::sample_file::{SampleFile, Segment};
use crate::unpacked;

/// Content of the header.
#[derive(Debug, PartialEq)]
struct Array {
    encoding: Encoding,
    channels: usize,
    len_samples: u64,
    /// Whether channels are stored one after the other.
    is_channel_major: bool,
}

/// Opens an array: `x.npy`, or `x.npy?rate=48k`.
pub(super) fn open(written: &Path) -> Result<SampleFile, Error> {
    let (path, rate_hz) = headerless::path_and_rate(written)?;
    let notes = if rate_hz == 0.0 { vec![Hint::new(written).no_rate("48k")] } else { Vec::new() };
    read(&path, unpacked::open(&path)?, rate_hz, notes)
}

/// Reads the array of a file, of which these notes are known already.
pub(super) fn read(
    path: &Path,
    mut file: File,
    rate_hz: f64,
    mut notes: Vec<String>,
) -> Result<SampleFile, Error> {
    let failed = Error::file("open", path);
    let file_bytes = file.metadata().map_err(&failed)?.len();
    let mut begin = Vec::new();
    let read = Read::by_ref(&mut file).take(HEADER_BYTES_MAX).read_to_end(&mut begin);
    read.map_err(Error::file("read", path))?;
    let malformed = |why: String| Error::Content {
        path: path.into(),
        what: format!("is not a .npy file: {}", in_place(&why, path)),
    };
    let (array, offset_bytes) = Array::parse(&begin).map_err(malformed)?;
    let Array { encoding, channels, len_samples: announced, is_channel_major } = array;
    let frame_bytes = (encoding.sample_bytes() * channels) as u64;
    let there = file_bytes.saturating_sub(offset_bytes) / frame_bytes;
    let is_whole = there >= announced;
    let behind_bytes = file_bytes.saturating_sub(offset_bytes).saturating_sub(announced * frame_bytes);
    let len_samples = announced.min(there);
    notes.extend(encoding.read_as());
    if channels as u64 > announced {
        notes.push(format!(
            "its shape is read as {announced} samples of {channels} channels; if that is the other way round, save its transpose, {}",
            in_place(TRANSPOSE, path)
        ));
    }
    if len_samples == 0 {
        return Err(Error::Empty { path: path.into() });
    }
    if !is_whole {
        if is_channel_major && channels > 1 {
            return Err(Error::truncated(
                path,
                "it stores one channel after the other, and the last is incomplete",
            ));
        }
        let missing = announced - len_samples;
        notes.push(format!(
            "the file is truncated: {len_samples} of {announced} samples per channel are there and are read, {missing} are missing"
        ));
    }
    if behind_bytes > 0 {
        notes.push(format!(
            "{behind_bytes} bytes follow the array, another one perhaps: they are not read; save each array in a file of its own"
        ));
    }
    let source = |channels: usize, offset_bytes: u64| -> Result<RawFile, Error> {
        let file = file.try_clone().map_err(&failed)?;
        Ok(RawFile::new(path, file, encoding, channels, offset_bytes))
    };
    let sources = if is_channel_major {
        let channel_bytes = announced * encoding.sample_bytes() as u64;
        let of = |channel: u64| source(1, offset_bytes + channel * channel_bytes);
        (0..channels as u64).map(of).collect::<Result<_, _>>()?
    } else {
        vec![source(channels, offset_bytes)?]
    };
    let file = SampleFile::new(sources, rate_hz, len_samples, vec![Segment::whole(len_samples)], notes)
        .whole(is_whole && behind_bytes == 0);
    Ok(match encoding.bits() {
        None => file,
        Some(bits) => {
            let mut said = Description::default();
            said.rest.insert(Description::BITS.to_owned(), Value::from(bits));
            file.described(vec![(0, Arc::new(said))])
        }
    })
}

/// A message with the name of the file in the line to type.
fn in_place(why: &str, path: &Path) -> String {
    why.replace("FILE", &path.display().to_string())
}

/// The header of a file with this format and length.
pub(super) fn header(format: SampleFormat, channels: usize, len_samples: u64) -> Vec<u8> {
    let kind = match format {
        SampleFormat::I8 | SampleFormat::Ci8 => "|i1",
        SampleFormat::U8 | SampleFormat::Cu8 => "|u1",
        SampleFormat::I16 | SampleFormat::Ci16 => "<i2",
        SampleFormat::I32 => "<i4",
        SampleFormat::F32 => "<f4",
        SampleFormat::F64 => "<f8",
        SampleFormat::Cf32 => "<c8",
    };
    let shape = match (channels, format.is_complex() && format != SampleFormat::Cf32) {
        (1, false) => format!("({len_samples},)"),
        (_, false) => format!("({len_samples}, {channels})"),
        (_, true) => format!("({len_samples}, {channels}, 2)"),
    };
    let mut words = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    // The samples begin at a multiple of 64, after a line feed.
    let length = (PREFIX_BYTES + words.len() + 1).next_multiple_of(64) - PREFIX_BYTES;
    words.extend(std::iter::repeat_n(' ', length - 1 - words.len()));
    words.push('\n');
    [MAGIC, &[1, 0], &(length as u16).to_le_bytes(), words.as_bytes()].concat()
}

/// The shape in a file's header, and its number if the shape is a single one.
pub(super) fn outline(begin: &[u8]) -> Option<(String, Option<f64>)> {
    let (words, offset) = dictionary(begin).ok()?;
    let shape = value(words, "shape").ok()?.strip_prefix('(')?.split_once(')')?.0;
    let kind = value(words, "descr").ok().and_then(|kind| kind.strip_prefix('\'')?.split_once('\''));
    let kind = kind.and_then(|(kind, _)| kind.split_at_checked(1));
    // Texts and objects have no samples.
    if kind.is_some_and(|(_, name)| name.starts_with(['U', 'S', 'O'])) {
        return None;
    }
    let count: Option<u64> = shape
        .split(',')
        .map(str::trim)
        .filter(|axis| !axis.is_empty())
        .try_fold(1, |count, axis| axis.parse().ok().map(|axis: u64| axis * count));
    if count != Some(1) {
        return Some((format!("({shape})"), None));
    }
    let (order, name) = kind?;
    let bytes = name.get(1..)?.parse().ok().filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8))?;
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(begin.get(offset..offset + bytes)?);
    if order == ">" {
        word[..bytes].reverse();
    }
    let whole = u64::from_le_bytes(word);
    let number = match name.split_at(1).0 {
        "f" if bytes == 8 => f64::from_bits(whole),
        "f" if bytes == 4 => f64::from(f32::from_bits(whole as u32)),
        "u" | "i" => whole as f64,
        _ => return None,
    };
    Some((format!("({shape})"), Some(number)))
}

/// The text of the header, and where the samples begin.
fn dictionary(bytes: &[u8]) -> Result<(&str, usize), String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin with \\x93NUMPY")?;
    let (version, rest) = rest.split_at_checked(2).ok_or("it ends within its header")?;
    let length_bytes = match version[0] {
        1 => 2,
        2 | 3 => 4,
        other => return Err(format!("version {other} of the format is not known")),
    };
    let (length, rest) = rest.split_at_checked(length_bytes).ok_or("it ends within its header")?;
    let length = length.iter().rev().fold(0usize, |length, &byte| length << 8 | usize::from(byte));
    let words = rest.get(..length).ok_or("it ends within its header, or that is longer than 64 KiB")?;
    let words = std::str::from_utf8(words).map_err(|_| "its header is not text")?;
    Ok((words, MAGIC.len() + 2 + length_bytes + length))
}

impl Array {
    /// The header, and where the samples begin.
    fn parse(bytes: &[u8]) -> Result<(Self, u64), String> {
        let (words, offset) = dictionary(bytes)?;
        Ok((Self::of(words)?, offset as u64))
    }

    /// Parses the dictionary.
    fn of(words: &str) -> Result<Self, String> {
        let kind = value(words, "descr")?;
        let kind = kind
            .strip_prefix('\'')
            .and_then(|kind| kind.split_once('\''))
            .map(|(kind, _)| kind)
            .ok_or("its samples are records of several fields: save one of them")?;
        let is_channel_major = value(words, "fortran_order")?.starts_with("True");
        let shape = value(words, "shape")?;
        let shape = shape
            .strip_prefix('(')
            .and_then(|shape| shape.split_once(')'))
            .ok_or("its shape is not a tuple")?;
        let axes = shape.0.split(',').map(str::trim).filter(|axis| !axis.is_empty());
        let axes: Vec<u64> = axes
            .map(|axis| axis.parse().map_err(|_| format!("its shape has '{axis}'")))
            .collect::<Result<_, _>>()?;
        let (order, name_of) = match kind.split_at_checked(1) {
            Some((">", name)) => (Order::Big, name),
            Some(("<" | "|" | "=", name)) => (Order::Little, name),
            _ => (Order::Little, kind),
        };
        let name = KINDS.iter().find_map(|(known, name)| (*known == name_of).then_some(*name));
        let ending = if order == Order::Big { "be" } else { "" };
        let encoding = name.and_then(|name| Encoding::named(&format!("{name}{ending}")));
        let Some(encoding) = encoding else {
            let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
            return Err(format!(
                "its samples are '{kind}', which are not read: convert them, as in a.astype('<f4'); {} can be read",
                known.join(" ")
            ));
        };
        let pair = encoding.paired().filter(|_| !encoding.format.is_complex());
        let (len_samples, channels, encoding) = match (axes.as_slice(), pair) {
            (&[len_samples], _) => (len_samples, 1, encoding),
            (&[len_samples, channels], _) => (len_samples, channels, encoding),
            (&[len_samples, channels, 2], Some(pair)) if !is_channel_major => (len_samples, channels, pair),
            _ => {
                return Err(format!(
                    "its shape is ({}): samples, or samples and channels, are read",
                    shape.0
                ));
            }
        };
        if !(1..=u64::from(MAX_CHANNELS)).contains(&channels) {
            return Err(format!(
                "its second axis, of {channels}, is channels, of which there can be 1 to {MAX_CHANNELS}: save its transpose, {TRANSPOSE}"
            ));
        }
        let channels = channels as usize;
        let frame_bytes = (encoding.sample_bytes() * channels) as u64;
        if len_samples.checked_mul(frame_bytes).is_none_or(|bytes| bytes > i64::MAX as u64) {
            return Err(format!("its shape is ({}), which no file can hold", shape.0));
        }
        let is_channel_major = is_channel_major && channels > 1;
        Ok(Self { encoding, channels, len_samples, is_channel_major })
    }
}

/// The value of a key in the dictionary.
fn value<'a>(words: &'a str, name: &str) -> Result<&'a str, String> {
    let behind = words.split_once(&format!("'{name}':")).map(|(_, behind)| behind.trim_start());
    behind.ok_or_else(|| format!("its header does not say '{name}'"))
}

/// NumPy's names of samples that are read, and the names here.
const KINDS: [(&str, &str); 13] = [
    ("b1", "u8"),
    ("i1", "i8"),
    ("u1", "u8"),
    ("i2", "i16"),
    ("u2", "u16"),
    ("i4", "i32"),
    ("u4", "u32"),
    ("i8", "i64"),
    ("u8", "u64"),
    ("f4", "f32"),
    ("f8", "f64"),
    ("c8", "cf32"),
    ("c16", "cf64"),
];
/// A line of shell; its file has to be filled in.
const TRANSPOSE: &str = "python3 -c \"import numpy; numpy.save('transposed.npy', numpy.load('FILE').T)\"";
const MAGIC: &[u8] = b"\x93NUMPY";
/// Magic, version and header length.
const PREFIX_BYTES: usize = 10;
/// NumPy itself accepts less from untrusted files.
pub(super) const HEADER_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_as_numpy_writes_it() {
        // numpy.save of a 2.3, of (5,), and of (3, 2).
        let one = header(SampleFormat::I16, 1, 5);
        assert_eq!(&one[..10], b"\x93NUMPY\x01\0v\0");
        assert!(one[10..].starts_with(b"{'descr': '<i2', 'fortran_order': False, 'shape': (5,), }   "));
        assert!(one.len() == 128 && one.ends_with(b" \n"));
        for (format, channels) in SampleFormat::ALL.into_iter().flat_map(|format| [(format, 1), (format, 7)])
        {
            let (array, offset) = Array::parse(&header(format, channels, 1 << 40)).unwrap();
            let encoding = Encoding::of(format);
            let is_channel_major = false;
            assert_eq!(array, Array { encoding, channels, len_samples: 1 << 40, is_channel_major });
            assert_eq!(offset % 64, 0);
        }
    }

    #[test]
    fn arrays_of_numpy_are_read_and_others_are_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let save = |words: &str, samples: &[u8]| {
            let bytes =
                [MAGIC, &[2, 0], &(words.len() as u32).to_le_bytes(), words.as_bytes(), samples].concat();
            std::fs::write(&path, bytes).unwrap();
            SampleFile::open(format!("{}?rate=8k", path.display()))
        };
        let mut major =
            save("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }", &[0, 1, 0, 2, 0, 3, 0, 4])
                .unwrap();
        let block = major.block(0, 2).unwrap();
        assert_eq!(block.channel::<i16>(0).unwrap().as_ref(), [1, 2]);
        assert_eq!(block.channel::<i16>(1).unwrap().as_ref(), [3, 4]);
        assert_eq!(major.rate_hz(), Some(8e3));
        let wide = save("{'descr': '>u2', 'fortran_order': False, 'shape': (1, 2), }", &[255, 1, 0, 2]);
        let mut wide = wide.unwrap();
        let block = wide.block(0, 1).unwrap();
        assert_eq!([0, 1].map(|at| block.channel::<i32>(at).unwrap()[0]), [65_281, 2]);
        let notes = wide.notes().join("\n");
        assert!(notes.contains("are read as i32") && notes.contains("1 samples of 2 channels"), "{notes}");
        let cut = save("{'shape': (9,), 'fortran_order': False, 'descr': '|u1'}", &[1, 2]).unwrap();
        assert!(!cut.is_whole() && cut.notes()[0].contains("2 of 9 samples"), "{:?}", cut.notes());
        for (words, says) in [
            ("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", "'<f2', which are not read"),
            (
                "{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (2,), }",
                "records of several fields",
            ),
            ("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 300), }", "of 300, is channels"),
            ("{'descr': '<i2', 'fortran_order': False, 'shape': (), }", "its shape is ()"),
            ("{'descr': '<i2', 'shape': (2,), }", "does not say 'fortran_order'"),
            (
                "{'descr': '<i2', 'fortran_order': False, 'shape': (18446744073709551615,), }",
                "no file can hold",
            ),
        ] {
            let error = save(words, &[0; 8]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        std::fs::write(&path, b"\x93NUMPY\x01").unwrap();
        assert!(SampleFile::open(&path).unwrap_err().to_string().contains("it ends within its header"));
    }
}
