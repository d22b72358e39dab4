//! Compares the data of a recording with its checksums.

use std::fs::File;
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use grebe_ring::Cancel;
use ring::digest::{Context, SHA512};
use twox_hash::XxHash3_64;

use super::archive::{Files, Part};
use super::collection::members;
use super::layout::Base;
use super::metadata_text::read_meta;
use super::open::open;
use super::stripe_set::StripeSet;
use super::stripes::all_bases;
use crate::error::Error;
use crate::hexadecimal::hex;

/// Result of checking a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The data file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Bytes that a checksum covers.
    pub checked_bytes: u64,
    /// Stretches that differ from the recorded data. The whole file, if its only checksum does not match.
    pub changed: Vec<Range<u64>>,
}

/// Compares the data of a SigMF recording, a collection or an archive with the checksums in its metadata:
/// `core:sha512`, and a recorder's `grebe:checksums`. Reads all of it once, through 1 MiB. Calls `progress`
/// occasionally with the bytes read so far.
///
/// ```
/// use grebe_recording::{Cancel, SigmfSettings, SigmfWriter, verify};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.sigmf-meta");
/// let mut writer = SigmfWriter::create(&path, &SigmfSettings::default())?;
/// writer.write(0, &[&[1i16, 2, 3]])?;
/// writer.finish()?;
/// let found = verify(&path, &Cancel::default(), &mut |_| {})?;
/// assert_eq!((found[0].bytes, found[0].checked_bytes, found[0].changed.len()), (6, 6, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As for [`SampleFile::open`](crate::SampleFile::open), where sizes contradict each other; [`Error::File`] where it cannot be read;
/// [`Error::Cancelled`].
pub fn verify(path: &Path, cancel: &Cancel, progress: &mut dyn FnMut(u64)) -> Result<Vec<Verified>, Error> {
    let (files, path) = Files::of(path)?;
    let base = Base::of(&path);
    let bases = bases_of(&files, &path)?;
    let mut read = Reading { cancel, progress, bytes: 0 };
    let mut verified = Vec::new();
    for base in with_other_disks(&files, &base, bases)? {
        verified.push(read.verify(&files, &base)?);
    }
    // Short files were compared there, too, and lengths and fields of all of them.
    match open(&path) {
        Ok(_) => Ok(verified),
        Err(Error::Content { .. }) if verified.iter().any(|it: &Verified| !it.changed.is_empty()) => {
            Ok(verified)
        }
        Err(error) => Err(error),
    }
}

/// The recordings of a path, and those that took turns with them.
fn with_other_disks(files: &Files, base: &Base, bases: Vec<Base>) -> Result<Vec<Base>, Error> {
    let Some(first) = bases.first().filter(|_| matches!(files, Files::Folder)) else { return Ok(bases) };
    let meta = read_meta(files, &first.meta())?.0;
    let Some(set) = meta.global.stripes.filter(StripeSet::is_valid) else { return Ok(bases) };
    let mut all = Vec::new();
    for own in all_bases(base, &set) {
        all.extend(bases_of(files, &own.meta())?);
    }
    Ok(all)
}

/// Base of a recording, or bases of a collection.
fn bases_of(files: &Files, path: &Path) -> Result<Vec<Base>, Error> {
    Ok(members(files, path)?.map_or_else(|| vec![Base::of(path)], |members| members.bases))
}

/// Sums the bytes read.
struct Reading<'a> {
    cancel: &'a Cancel,
    progress: &'a mut dyn FnMut(u64),
    bytes: u64,
}

impl Reading<'_> {
    fn verify(&mut self, files: &Files, base: &Base) -> Result<Verified, Error> {
        let meta = read_meta(files, &base.meta())?.0;
        let path = base.data();
        let Part { mut file, offset_bytes, bytes } = files.open(&path)?;
        let mut verified = Verified { path, bytes, checked_bytes: 0, changed: Vec::new() };
        let failed = Error::file("read", &verified.path);
        file.seek(SeekFrom::Start(offset_bytes)).map_err(failed)?;
        if let Some(expected) = &meta.global.sha512 {
            let mut sum = Context::new(&SHA512);
            self.read(&verified.path, &mut file, bytes, |bytes| sum.update(bytes))?;
            verified.checked_bytes = bytes;
            let sum = hex(sum.finish().as_ref());
            if !sum.eq_ignore_ascii_case(expected) {
                verified.changed.push(0..bytes);
            }
            return Ok(verified);
        }
        let Some(checksums) = meta.global.checksums.filter(|sums| sums.is_known()) else {
            return Ok(verified);
        };
        // A recorder that was cut off states the good length; its last sum after that covers part of a
        // stretch.
        let closed = meta.global.known_samples.is_none();
        let mut begin = 0;
        for expected in checksums.sums {
            let end = bytes.min(begin + checksums.stretch_bytes);
            if !closed && end - begin < checksums.stretch_bytes {
                break;
            }
            if end == begin {
                // It was cut off there.
                verified.changed.push(begin..begin + checksums.stretch_bytes);
                break;
            }
            let mut sum = XxHash3_64::new();
            self.read(&verified.path, &mut file, end - begin, |bytes| sum.write(bytes))?;
            if let Some(expected) = expected {
                verified.checked_bytes += end - begin;
                if !expected.eq_ignore_ascii_case(&format!("{:016x}", sum.finish())) {
                    verified.changed.push(begin..end);
                }
            }
            begin = end;
        }
        Ok(verified)
    }

    fn read(
        &mut self,
        path: &Path,
        file: &mut File,
        bytes: u64,
        mut sum: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut left = bytes;
        while left > 0 {
            if self.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let length = left.min(BUFFER_BYTES as u64) as usize;
            file.read_exact(&mut buffer[..length]).map_err(Error::file("read", path))?;
            sum(&buffer[..length]);
            left -= length as u64;
            self.bytes += length as u64;
            (self.progress)(self.bytes);
        }
        Ok(())
    }
}

const BUFFER_BYTES: usize = 1 << 20;
