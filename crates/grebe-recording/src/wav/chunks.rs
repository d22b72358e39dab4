//! The chunks of a file up to its samples, and the bytes after them.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::auxi::Auxi;
use super::numbers::{u32_at, u64_at};
use crate::encoding::Encoding;
use crate::error::Error;

/// Content of a `fmt ` chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    pub(super) encoding: Encoding,
    pub(super) channels: usize,
    /// 0: it does not say.
    pub(super) sample_rate_hz: u32,
    /// Valid bits of an integer, if fewer than all.
    pub(super) valid_bits: Option<u32>,
}

impl Format {
    pub(super) fn frame_bytes(&self) -> u64 {
        (self.encoding.sample_bytes() * self.channels) as u64
    }
}

/// A file whose chunks are read.
pub(super) struct Chunks<'a> {
    pub(super) path: &'a Path,
    file: &'a File,
    pub(super) notes: Vec<String>,
}

/// Chunks before the samples, and the stated length.
pub(super) struct Found {
    pub(super) format: Format,
    pub(super) auxi: Option<Auxi>,
    /// Offset of the samples.
    pub(super) offset_bytes: u64,
    pub(super) file_bytes: u64,
    /// In the head of the data chunk.
    pub(super) declared: u32,
    /// In a `ds64` chunk.
    pub(super) large: Option<u64>,
    /// Position of that field, for a repair.
    pub(super) ds64_at: Option<u64>,
}

/// Content after a possible end of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    Nothing,
    /// Fewer bytes than a chunk has, or a few zeros.
    Few(u64),
    /// Chunks, or a tag of another program; of samples where `more_samples`.
    Chunks {
        more_samples: bool,
    },
    /// Anything else: samples continue.
    Samples,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(path: &'a Path, file: &'a File) -> Self {
        Self { path, file, notes: Vec::new() }
    }

    pub(super) fn find(&mut self) -> Result<Found, Error> {
        let file_bytes = self.file.metadata().map_err(|source| self.unreadable(source))?.len();
        if file_bytes == 0 {
            return Err(Error::Empty { path: self.path.into() });
        }
        let riff = self.array::<12>()?;
        if !is_wav(&riff) {
            return Err(self.malformed("it does not begin with RIFF, RF64 or BW64 and WAVE"));
        }
        let (mut format, mut auxi, mut large, mut ds64_at, mut at) = (None, None, None, None, 12u64);
        for _ in 0..CHUNKS_MAX {
            if at + 8 > file_bytes {
                return Err(self.truncated("it ends before its samples (a data chunk) begin"));
            }
            self.seek(at)?;
            let head = self.array::<8>()?;
            let bytes = u32_at(&head, 4);
            match &head[..4] {
                // Shorter ones say nothing.
                b"ds64" if bytes >= 24 => {
                    large = Some(u64_at(&self.array::<16>()?, 8));
                    ds64_at = Some(at);
                }
                b"fmt " => format = Some(self.format(bytes)?),
                b"auxi" => {
                    let mut words = Vec::new();
                    let read = self.file.take(u64::from(bytes).min(AUXI_BYTES_MAX)).read_to_end(&mut words);
                    read.map_err(|source| self.unreadable(source))?;
                    auxi = Auxi::read(&words);
                }
                b"data" => {
                    let Some(format) = format else {
                        return Err(self.malformed("its samples come before its format (a fmt chunk)"));
                    };
                    let (offset_bytes, declared) = (at + 8, bytes);
                    return Ok(Found { format, auxi, offset_bytes, file_bytes, declared, large, ds64_at });
                }
                _ => {}
            }
            at = self.after(at + 8 + u64::from(bytes))?;
        }
        Err(self.malformed("it has more than 10,000 chunks before its samples"))
    }

    /// Begin of the chunk after one that ends at `end`. Chunks begin at even positions, but some writers omit
    /// the padding: a chunk name at the odd position wins.
    fn after(&mut self, end: u64) -> Result<u64, Error> {
        if end.is_multiple_of(2) {
            return Ok(end);
        }
        self.seek(end)?;
        let mut bytes = Vec::with_capacity(5);
        self.file.take(5).read_to_end(&mut bytes).map_err(|source| self.unreadable(source))?;
        let [padding, ..] = bytes[..] else { return Ok(end + 1) };
        let is_padded = padding == 0 || NAMES.iter().any(|name| bytes[1..] == name[..]);
        let is_name = bytes.len() >= 4 && bytes[..4].iter().all(|byte| (b' '..=b'~').contains(byte));
        if is_padded || !is_name {
            return Ok(end + 1);
        }
        let note =
            "a chunk of odd length is not padded, against the format: what follows is read all the same";
        if !self.notes.iter().any(|other| other == note) {
            self.notes.push(note.to_owned());
        }
        Ok(end)
    }

    /// Content after samples that would end at `end`.
    pub(super) fn behind(&mut self, mut end: u64, file_bytes: u64) -> Result<Behind, Error> {
        match file_bytes - end {
            0 => return Ok(Behind::Nothing),
            // Padding.
            1 if !end.is_multiple_of(2) => return Ok(Behind::Nothing),
            few @ 1..8 => return Ok(Behind::Few(few)),
            _ => {}
        }
        let behind_bytes = file_bytes - end;
        if behind_bytes <= PADDING_BYTES_MAX {
            self.seek(end)?;
            let mut bytes = Vec::new();
            let read = self.file.take(behind_bytes).read_to_end(&mut bytes);
            read.map_err(|source| self.unreadable(source))?;
            if bytes.iter().all(|byte| *byte == 0) {
                return Ok(Behind::Few(behind_bytes));
            }
        }
        let (mut is_known, mut more_samples) = (false, false);
        for _ in 0..CHUNKS_MAX {
            let at = self.after(end)?;
            if at + 8 > file_bytes {
                return Ok(Behind::Chunks { more_samples });
            }
            self.seek(at)?;
            let head = self.array::<8>()?;
            if TAGS.iter().any(|tag| head.starts_with(tag)) {
                return Ok(Behind::Chunks { more_samples });
            }
            is_known |= NAMES.iter().any(|name| head.starts_with(&name[..]));
            more_samples |= &head[..4] == b"data";
            let is_name = head[..4].iter().all(|byte| (b' '..=b'~').contains(byte));
            end = at + 8 + u64::from(u32_at(&head, 4));
            // An unknown chunk has to fit; one of a known name may be cut off.
            if !is_name || end > file_bytes + 1 {
                return Ok(if is_known { Behind::Chunks { more_samples } } else { Behind::Samples });
            }
        }
        Ok(Behind::Samples)
    }

    /// Where the chunks begin that stand behind samples of an unknown length: of known names, up to the end of the file.
    pub(super) fn tail(&mut self, offset_bytes: u64, file_bytes: u64) -> Result<Option<u64>, Error> {
        let begin = file_bytes.saturating_sub(TAIL_BYTES).max(offset_bytes).next_multiple_of(2);
        let mut bytes = Vec::new();
        self.seek(begin)?;
        let read = self.file.take(TAIL_BYTES).read_to_end(&mut bytes);
        read.map_err(|source| self.unreadable(source))?;
        let at = (0..bytes.len()).step_by(2).find(|&at| are_chunks(&bytes[at..]));
        Ok(at.map(|at| begin + at as u64))
    }

    pub(super) fn seek(&mut self, at: u64) -> Result<(), Error> {
        self.file.seek(SeekFrom::Start(at)).map(drop).map_err(|source| self.unreadable(source))
    }

    pub(super) fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Error> {
        let mut bytes = [0; BYTES];
        self.file.read_exact(&mut bytes).map(|()| bytes).map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => self.truncated("it ends within its header"),
            _ => self.unreadable(source),
        })
    }

    fn unreadable(&self, source: std::io::Error) -> Error {
        Error::file("read", self.path)(source)
    }

    pub(super) fn malformed(&self, why: &str) -> Error {
        Error::Content { path: self.path.into(), what: format!("is no WAV file: {why}") }
    }

    pub(super) fn truncated(&self, why: &str) -> Error {
        Error::truncated(self.path, why)
    }

    pub(super) fn field(&self, field: &str, got: u16, must: &str) -> Error {
        Error::field(self.path, field, got, must)
    }
}

/// Whether chunks of known names, none of which has samples, fill these bytes.
fn are_chunks(mut bytes: &[u8]) -> bool {
    while let [a, b, c, d, rest @ ..] = bytes {
        let name = [*a, *b, *c, *d];
        if rest.len() < 4 || !NAMES[3..].contains(&&name) {
            return false;
        }
        // The padding of the last one may be missing.
        let all_bytes = 8 + u64::from(u32_at(rest, 0)).next_multiple_of(2);
        match bytes.len() as u64 {
            left if left == all_bytes || left + 1 == all_bytes => return true,
            left if left < all_bytes => return false,
            _ => bytes = &bytes[all_bytes as usize..],
        }
    }
    false
}

/// Whether this begin of a file is that of a WAV, whatever its name.
pub(crate) fn is_wav(begin: &[u8]) -> bool {
    begin.len() >= 12
        && [b"RIFF", b"RF64", b"BW64"].iter().any(|name| begin.starts_with(*name))
        && &begin[8..12] == b"WAVE"
}

/// A block of a disk, as some fill up to.
const PADDING_BYTES_MAX: u64 = 64 << 10;
const TAIL_BYTES: u64 = 64 << 10;
const CHUNKS_MAX: usize = 10_000;
/// One of text is some hundred bytes.
const AUXI_BYTES_MAX: u64 = 64 << 10;
/// Names of chunks that often follow one of odd length; the first three belong before and around the samples.
const NAMES: [&[u8; 4]; 16] = [
    b"fmt ", b"data", b"ds64", b"LIST", b"fact", b"bext", b"JUNK", b"iXML", b"cue ", b"auxi", b"id3 ",
    b"PEAK", b"smpl", b"PAD ", b"FLLR", b"axml",
];
/// Tags that music programs put after the chunks.
const TAGS: [&[u8]; 3] = [b"ID3", b"TAG", b"APETAGEX"];
