//! MATLAB's `.mat` of version 5 (also 6 and 7): one numeric array is unpacked when the file is opened.
//!
//! ```text
//!  128 bytes: text, version, byte order     elements: kind (32 bits), length (32 bits), bytes up to a multiple of 8
//!  element 15: zlib of an element           element 14, an array: flags, dimensions, name, real numbers, imaginary numbers
//! ```

mod element;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write as _};
use std::path::Path;

use flate2::bufread::ZlibDecoder;
use grebe_frame::MAX_CHANNELS;

use self::element::{Class, Elements, Matrix};
use crate::arrays::{ArrayQuery, Listed};
use crate::error::Error;
use crate::raw::RawFile;
use crate::sample_file::{SampleFile, Segment};
use crate::unpacked::{self, Unpacked, unpacked};

/// Opens `x.mat`, or `x.mat?array=iq&rate=1M`. The longer axis is samples, the other one channels.
pub(super) fn open(written: &Path) -> Result<SampleFile, Error> {
    let asked = ArrayQuery::parse(written)?;
    let path = &asked.path;
    let mut file = BufReader::new(unpacked::open(path)?);
    let failed = Error::file("read", path);
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(&failed)?;
    let is_big = match (head.get(124..126), head.get(126..128)) {
        (Some([0, 1]), Some(b"IM")) => false,
        (Some([1, 0]), Some(b"MI")) => true,
        _ => return Err(Error::Content { path: path.clone(), what: other_version(&head, path) }),
    };
    let damaged = |error: io::Error| Error::Content {
        path: path.clone(),
        what: format!("is a damaged .mat file: {error}"),
    };
    let (mut places, mut arrays) = (Vec::new(), Vec::new());
    let mut at = HEAD_BYTES;
    while arrays.len() < ARRAYS_MAX {
        file.seek(SeekFrom::Start(at)).map_err(&failed)?;
        let Some(begin) = (Elements { from: &mut file, is_big }).begin().map_err(damaged)? else { break };
        if let Some(matrix) = matrix_at(&mut file, at, is_big).map_err(damaged)? {
            let shape = matrix.shape();
            let number = matrix.number;
            if number.is_some() || matrix.count() > 1 {
                places.push(at);
                arrays.push(Listed { name: matrix.name, shape, number });
            }
        }
        at += begin.all_bytes();
    }
    let chosen = asked.choose(written, &arrays)?;
    let place = places[chosen.number];
    let Some(matrix) = matrix_at(&mut file, place, is_big).map_err(damaged)? else {
        return Err(Error::Empty { path: path.clone() });
    };
    let (len_samples, channels, is_channel_major) = match matrix.dimensions[..] {
        [rows, columns] if rows >= columns => (rows, columns, true),
        [rows, columns] => (columns, rows, false),
        _ => {
            let what =
                format!("{} is {}: samples, or samples and channels, are read", matrix.name, matrix.shape());
            return Err(Error::Field { path: path.clone(), what });
        }
    };
    if !(1..=u64::from(MAX_CHANNELS)).contains(&channels) {
        let what = format!(
            "{} is {}: its shorter axis is channels, of which there can be 1 to {MAX_CHANNELS}",
            matrix.name,
            matrix.shape()
        );
        return Err(Error::Field { path: path.clone(), what });
    }
    let (is_complex, class) = (matrix.is_complex, matrix.class);
    let encoding = class.encoding(is_complex).ok_or_else(|| Error::Empty { path: path.clone() })?;
    let count = matrix.count();
    let copy = |file: &mut BufReader<File>, part: usize, out: &mut Unpacked| {
        numbers_at(file, place, is_big, part, count, class, |bytes| out.write_all(bytes))
    };
    let real = unpacked(path, |out| copy(&mut file, 0, out))?;
    let samples = if is_complex {
        let imaginary = unpacked(path, |out| copy(&mut file, 1, out))?;
        unpacked(path, |out| pair(real, imaginary, class.bytes(), out))?
    } else {
        real
    };
    let mut notes = chosen.notes;
    notes.extend(encoding.read_as());
    if channels > 1 {
        let name = &arrays[chosen.number].name;
        notes.push(format!("{name} is {}: {channels} channels of {len_samples} samples", matrix.shape()));
    }
    let channels = channels as usize;
    let source = |channels: usize, offset_bytes: u64| -> Result<RawFile, Error> {
        let file = samples.try_clone().map_err(Error::file("open", path))?;
        Ok(RawFile::new(path, file, encoding, channels, offset_bytes))
    };
    let sources = if is_channel_major && channels > 1 {
        let channel_bytes = len_samples * encoding.sample_bytes() as u64;
        (0..channels as u64).map(|channel| source(1, channel * channel_bytes)).collect::<Result<_, _>>()?
    } else {
        vec![source(channels, 0)?]
    };
    Ok(SampleFile::new(sources, chosen.rate_hz, len_samples, vec![Segment::whole(len_samples)], notes))
}

/// The array at an element; `None` if it has another type, or is not numeric.
fn matrix_at(file: &mut BufReader<File>, at: u64, is_big: bool) -> io::Result<Option<Matrix>> {
    with_matrix(file, at, is_big, |elements| elements.matrix())
}

/// Hands on the numbers of an array, the real ones or the imaginary ones after them, in the format of its
/// class.
fn numbers_at(
    file: &mut BufReader<File>,
    at: u64,
    is_big: bool,
    part: usize,
    count: u64,
    class: Class,
    take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    with_matrix(file, at, is_big, |mut elements| {
        elements.matrix_header()?;
        for _ in 0..part {
            elements.skip()?;
        }
        elements.numbers(count, class, take).map(Some)
    })
    .map(drop)
}

fn with_matrix<T>(
    file: &mut BufReader<File>,
    at: u64,
    is_big: bool,
    read: impl FnOnce(Elements<&mut dyn Read>) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    file.seek(SeekFrom::Start(at))?;
    let Some(outer) = (Elements { from: &mut *file, is_big }).begin()? else { return Ok(None) };
    match outer.kind {
        element::MATRIX => read(Elements { from: &mut file.take(outer.bytes), is_big }),
        element::COMPRESSED => {
            let mut inner = ZlibDecoder::new(file.take(outer.bytes));
            let begin = (Elements { from: &mut inner, is_big }).begin()?;
            match begin.filter(|begin| begin.kind == element::MATRIX) {
                Some(_) => read(Elements { from: &mut inner, is_big }),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Real and imaginary numbers by turns.
fn pair(real: File, imaginary: File, bytes: usize, out: &mut Unpacked) -> io::Result<()> {
    let [mut real, mut imaginary] = [real, imaginary].map(BufReader::new);
    let (mut re, mut im) = (vec![0; 4_096 * bytes], vec![0; 4_096 * bytes]);
    let mut left = real.get_ref().metadata()?.len() as usize;
    while left > 0 {
        let length = left.min(re.len());
        real.read_exact(&mut re[..length])?;
        imaginary.read_exact(&mut im[..length])?;
        for (re, im) in re[..length].chunks_exact(bytes).zip(im[..length].chunks_exact(bytes)) {
            out.write_all(re)?;
            out.write_all(im)?;
        }
        left -= length;
    }
    Ok(())
}

/// Describes a file of another version.
fn other_version(head: &[u8], path: &Path) -> String {
    let (name, stem) = (path.display(), path.with_extension("").display().to_string());
    if head.starts_with(b"MATLAB 7.3") {
        return format!(
            "is MATLAB 7.3, which is HDF5 and is not read: save its array for NumPy: python3 -c \"import numpy, h5py; f = h5py.File('{name}'); \
             x = f[[k for k in f if k[0] != '#'][0]][()].squeeze(); x = (x['real'] + 1j * x['imag']).astype('c8') if x.dtype.names else x; \
             numpy.save('{stem}.npy', x)\", then open '{stem}.npy?rate=1M'; or in MATLAB: save -v7"
        );
    }
    format!(
        "is no .mat file of MATLAB 5 to 7: save its array for NumPy: python3 -c \"import numpy, scipy.io; f = scipy.io.loadmat('{name}'); \
         x = [f[k] for k in f if k[0] != '_'][0].squeeze(); numpy.save('{stem}.npy', x)\", then open '{stem}.npy?rate=1M'"
    )
}

const HEAD_BYTES: u64 = 128;
const ARRAYS_MAX: usize = 10_000;

#[cfg(test)]
mod tests;
