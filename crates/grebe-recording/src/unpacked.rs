//! Compressed files: unpacked into an unnamed file, then read as any other.
//!
//! Samples are read at any place and repeatedly, so the whole file is unpacked when opened, at the speed of one core.
//! The unpacked bytes are beside the compressed file, or in the temporary folder, until the last reader has closed
//! them.

use std::borrow::Cow;
use std::fs::{File, FileTimes};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::disk::free_bytes_of;
use crate::error::Error;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_ascii_lowercase().to_str()? {
            "gz" => Some(Self::Gzip),
            "zst" => Some(Self::Zstd),
            _ => None,
        }
    }

    fn of_content(begin: &[u8]) -> Option<Self> {
        match begin {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Whether the name is that of a compressed file.
pub(crate) fn is_packed(path: &Path) -> bool {
    Packing::of_name(path).is_some()
}

/// The file's name without its compression extension.
pub(crate) fn plain_name(path: &Path) -> Cow<'_, Path> {
    if is_packed(path) { path.with_extension("").into() } else { path.into() }
}

/// Opens a file for reading, and unpacks it if its name has a compressed extension.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    let file = File::open(path).map_err(Error::file("open", path))?;
    if !is_packed(path) {
        return Ok(file);
    }
    let packing = content(&file).map_err(Error::file("read", path))?;
    packing.map_or_else(
        || Err(Error::Content { path: path.into(), what: "is not compressed, despite its name".to_owned() }),
        |packing| unpack(path, file, packing),
    )
}

/// As [`open`], ignoring the name.
pub(crate) fn open_by_content(path: &Path) -> Result<File, Error> {
    let file = File::open(path).map_err(Error::file("open", path))?;
    match content(&file).map_err(Error::file("read", path))? {
        Some(packing) => unpack(path, file, packing),
        None => Ok(file),
    }
}

fn content(mut file: &File) -> io::Result<Option<Packing>> {
    let mut begin = Vec::new();
    file.take(4).read_to_end(&mut begin)?;
    file.rewind()?;
    Ok(Packing::of_content(&begin))
}

fn unpack(path: &Path, file: File, packing: Packing) -> Result<File, Error> {
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    unpacked(path, |out| match packing {
        Packing::Gzip => io::copy(&mut MultiGzDecoder::new(&mut file), out).map(drop),
        Packing::Zstd => unpack_zstd(&mut file, out),
    })
}

/// All frames of a file; those that hold no data are skipped.
fn unpack_zstd(file: &mut BufReader<File>, out: &mut Unpacked) -> io::Result<()> {
    while let begin @ [_, ..] = file.fill_buf()? {
        if begin.len() >= 8 && begin[1..4] == [0x2a, 0x4d, 0x18] && begin[0] & 0xf0 == 0x50 {
            let bytes = u32::from_le_bytes([begin[4], begin[5], begin[6], begin[7]]);
            io::copy(&mut file.take(8 + u64::from(bytes)), &mut io::sink())?;
            continue;
        }
        let frame = StreamingDecoder::new(&mut *file);
        io::copy(&mut frame.map_err(io::Error::other)?, out)?;
    }
    Ok(())
}

/// An unnamed file with the output of `fill`: beside `path`, or in the folder for temporary files, with the
/// same modification time.
///
/// # Errors
/// [`Error::Content`] if the packed data are damaged or cut off, or would fill the disk; [`Error::File`].
pub(crate) fn unpacked(
    path: &Path,
    fill: impl FnOnce(&mut Unpacked) -> io::Result<()>,
) -> Result<File, Error> {
    // Samples hardly ever become that much smaller.
    let packed_bytes = path.metadata().map_or(0, |it| it.len());
    let most_bytes = TRUSTED_BYTES.max(packed_bytes.saturating_mul(TRUSTED_FACTOR));
    unpacked_within(path, most_bytes, fill)
}

fn unpacked_within(
    path: &Path,
    most_bytes: u64,
    fill: impl FnOnce(&mut Unpacked) -> io::Result<()>,
) -> Result<File, Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::tempfile_in(folder).or_else(|_| tempfile::tempfile());
    let file = file.map_err(Error::file("unpack", path))?;
    let pending = Vec::with_capacity(BUFFER_BYTES);
    let mut out = Unpacked { file, pending, unchecked_bytes: 0, left_bytes: most_bytes };
    fill(&mut out).and_then(|()| out.hand_over()).map_err(|source| refusal(path, source))?;
    let mut file = out.file;
    if let Ok(modified) = path.metadata().and_then(|it| it.modified()) {
        // Caches beside it check whether it has changed.
        let _ = file.set_times(FileTimes::new().set_modified(modified));
    }
    file.seek(SeekFrom::Start(0)).map_err(Error::file("unpack", path))?;
    Ok(file)
}

fn refusal(path: &Path, source: io::Error) -> Error {
    let what = match source.kind() {
        ErrorKind::FileTooLarge => format!("{source}: {}", by_hand(path)),
        ErrorKind::UnexpectedEof => "is truncated: its content ends early".to_owned(),
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::Other => {
            format!("cannot be unpacked: {source}")
        }
        _ => return Error::file("unpack", path)(source),
    };
    Error::Content { path: path.into(), what }
}

/// The way to unpack a file without these limits.
fn by_hand(path: &Path) -> String {
    let name = path.display();
    match path.extension().unwrap_or_default().to_ascii_lowercase().to_str() {
        Some("gz") => format!("if that is right, gunzip -k '{name}', and open what it makes"),
        Some("zst") => format!("if that is right, zstd -d '{name}', and open what it makes"),
        Some("npz") => format!("if that is right, unzip '{name}', and open what it makes"),
        _ => "if that is right, save a part of it with the program that made it".to_owned(),
    }
}

/// Unpacked bytes: of a number that their file may hold, and some room on the disk is left.
#[derive(Debug)]
pub(crate) struct Unpacked {
    file: File,
    pending: Vec<u8>,
    unchecked_bytes: u64,
    left_bytes: u64,
}

impl Unpacked {
    fn hand_over(&mut self) -> io::Result<()> {
        let left_bytes = self.left_bytes.checked_sub(self.pending.len() as u64);
        self.left_bytes = left_bytes.ok_or_else(|| {
            let why = format!("is {TRUSTED_FACTOR} times as large once it is unpacked, or more");
            io::Error::new(ErrorKind::FileTooLarge, why)
        })?;
        self.file.write_all(&self.pending)?;
        self.unchecked_bytes += self.pending.len() as u64;
        self.pending.clear();
        if self.unchecked_bytes >= CHECK_BYTES {
            self.unchecked_bytes = 0;
            if free_bytes_of(&self.file).is_some_and(|bytes| bytes < SPARE_BYTES) {
                let why =
                    "it would fill the disk: unpack it yourself where there is more room, and open that";
                return Err(io::Error::new(ErrorKind::InvalidData, why));
            }
        }
        Ok(())
    }
}

impl Write for Unpacked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pending.len() >= BUFFER_BYTES {
            self.hand_over()?;
        }
        let length = bytes.len().min(BUFFER_BYTES - self.pending.len());
        self.pending.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const BUFFER_BYTES: usize = 256 << 10;
const CHECK_BYTES: u64 = 64 << 20;
const SPARE_BYTES: u64 = 1 << 30;
/// A file may always hold this much; more, up to this many times its size.
const TRUSTED_BYTES: u64 = 4 << 30;
const TRUSTED_FACTOR: u64 = 100;

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::SampleFile;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn samples(path: &str) -> Vec<i16> {
        let mut file = SampleFile::open(path).unwrap();
        let length = file.len_samples() as usize;
        file.block(0, length).unwrap().channel::<i16>(0).unwrap().into_owned()
    }

    #[test]
    fn compressed_files_are_read_as_what_is_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).display().to_string();
        let all: Vec<i16> = (0..300_000).map(|at| (at * 7) as i16).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&all);
        let (one, two) = bytes.split_at(100_002);
        std::fs::write(place("x.i16.gz"), [gzip(one), gzip(two)].concat()).unwrap();
        let skipped = [0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9];
        std::fs::write(place("x.i16.zst"), [&zstd(one)[..], &skipped, &zstd(two)].concat()).unwrap();
        assert_eq!(samples(&place("x.i16.gz?rate=1k")), all);
        assert_eq!(samples(&place("x.i16.zst?rate=1k")), all);
        // Other options than the ending are in the name all the same.
        std::fs::write(place("g001_433.92M_250k.cu8.gz"), gzip(&[1, 2, 3, 4])).unwrap();
        let file = SampleFile::open(place("g001_433.92M_250k.cu8.gz")).unwrap();
        assert_eq!((file.rate_hz(), file.len_samples()), (Some(250e3), 2));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left there");
    }

    #[test]
    fn more_than_a_file_may_hold_is_refused_with_the_line_to_type() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cu8.gz");
        let unpack = |most_bytes| unpacked_within(&path, most_bytes, |out| out.write_all(&[7; 1 << 20]));
        assert_eq!(unpack(1 << 20).unwrap().metadata().unwrap().len(), 1 << 20);
        let error = unpack((1 << 20) - 1).unwrap_err().to_string();
        let line = format!(
            "is 100 times as large once it is unpacked, or more: if that is right, gunzip -k '{}'",
            path.display()
        );
        assert!(error.contains(&line), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left there");
    }

    #[test]
    fn damaged_or_truncated_compressed_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.i16.gz");
        let whole = gzip(&[7; 100_000]);
        let refused = |bytes: &[u8], says: &str| {
            std::fs::write(&path, bytes).unwrap();
            let error = SampleFile::open(&path).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("x.i16.gz"), "{error}");
        };
        refused(&whole[..whole.len() / 2], "is truncated");
        let mut damaged = whole.clone();
        *damaged.iter_mut().rev().nth(5).unwrap() ^= 1;
        refused(&damaged, "cannot be unpacked");
        refused(b"RIFF", "is not compressed");
        std::fs::rename(&path, folder.path().join("x.i16.zst")).unwrap();
        let path = folder.path().join("x.i16.zst");
        std::fs::write(&path, [&zstd(&[1; 9_000])[..], b"more"].concat()).unwrap();
        let error = SampleFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("x.i16.zst"), "{error}");
    }
}
