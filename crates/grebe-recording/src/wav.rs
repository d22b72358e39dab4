//! WAV and RF64 files: the chunks that say where the samples stand and what they are.
//!
//! Read here and not by a library, so that samples are read in large blocks, RF64 and streamed files are understood, and what
//! is wrong with a file can be said.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use grebe_frame::{Description, MAX_CHANNELS, SampleFormat};
use serde_json::{Map, Value};

use crate::encoding::Encoding;
use crate::error::Error;
use crate::raw::RawFile;
use crate::sample_file::{SampleFile, Segment};

/// Opens a WAV file: 8-, 16-, 24- and 32-bit integers, 32- and 64-bit floats, up to 255 channels.
pub(crate) fn open(path: &Path) -> Result<SampleFile, Error> {
    let file = File::open(path).map_err(Error::file("open", path))?;
    Chunks { path, file: &file, notes: Vec::new() }.open()
}

struct Chunks<'a> {
    path: &'a Path,
    file: &'a File,
    notes: Vec<String>,
}

/// What is written before the samples.
pub(crate) struct Header {
    pub(crate) encoding: Encoding,
    pub(crate) channels: u16,
    pub(crate) sample_rate_hz: u32,
}

impl Header {
    /// Up to the first sample, of so many bytes of samples; RF64 where they are more than a RIFF can hold.
    pub(crate) fn bytes(&self, sample_bytes: u64) -> Vec<u8> {
        let Self { encoding, channels, sample_rate_hz } = *self;
        let frame_bytes = encoding.sample_bytes() * usize::from(channels);
        let mut format = Vec::new();
        format.extend((if encoding.format.is_float() { FLOAT } else { INTEGER }).to_le_bytes());
        format.extend(channels.to_le_bytes());
        format.extend(sample_rate_hz.to_le_bytes());
        format.extend(
            (u64::from(sample_rate_hz) * frame_bytes as u64).min(u32::MAX.into()).to_le_bytes()[..4].iter(),
        );
        format.extend((frame_bytes as u16).to_le_bytes());
        format.extend((8 * encoding.sample_bytes() as u16).to_le_bytes());
        let mut chunks = Vec::new();
        if encoding.format.is_float() {
            // Nothing more of the format; then, as for all but integers, how many samples there are.
            format.extend([0; 2]);
        }
        push_chunk(&mut chunks, b"fmt ", &format);
        let len_samples = sample_bytes / frame_bytes as u64;
        if encoding.format.is_float() {
            push_chunk(&mut chunks, b"fact", &len_samples.min(u32::MAX.into()).to_le_bytes()[..4]);
        }
        let riff_bytes = 4 + chunks.len() as u64 + 8 + sample_bytes + sample_bytes % 2;
        let mut file = Vec::new();
        if let (Ok(riff_bytes), Ok(sample_bytes)) = (u32::try_from(riff_bytes), u32::try_from(sample_bytes)) {
            file.extend(b"RIFF");
            file.extend(riff_bytes.to_le_bytes());
            file.extend(b"WAVE");
            file.append(&mut chunks);
            file.extend(b"data");
            file.extend(sample_bytes.to_le_bytes());
        } else {
            file.extend(b"RF64");
            file.extend(u32::MAX.to_le_bytes());
            file.extend(b"WAVE");
            let sizes = [riff_bytes + DS64_BYTES, sample_bytes, len_samples].map(u64::to_le_bytes).concat();
            push_chunk(&mut file, b"ds64", &[&sizes[..], &[0; 4]].concat());
            file.append(&mut chunks);
            file.extend(b"data");
            file.extend(u32::MAX.to_le_bytes());
        }
        file
    }
}

fn push_chunk(file: &mut Vec<u8>, name: &[u8; 4], bytes: &[u8]) {
    file.extend(name);
    file.extend((bytes.len() as u32).to_le_bytes());
    file.extend(bytes);
}

/// What a `fmt ` chunk says.
struct Format {
    encoding: Encoding,
    channels: usize,
    sample_rate_hz: u32,
}

impl Chunks<'_> {
    fn open(mut self) -> Result<SampleFile, Error> {
        let file_bytes = self.file.metadata().map_err(|source| self.unreadable(source))?.len();
        if file_bytes == 0 {
            return Err(Error::Empty { path: self.path.into() });
        }
        let riff = self.array::<12>()?;
        let large = &riff[..4] == b"RF64";
        if !large && &riff[..4] != b"RIFF" || &riff[8..] != b"WAVE" {
            return Err(self.malformed("it does not begin with RIFF or RF64 and WAVE"));
        }
        let (mut format, mut large_bytes, mut at) = (None, None, 12u64);
        for _ in 0..CHUNKS_MAX {
            if at + 8 > file_bytes {
                return Err(self.truncated("it ends before its samples (a data chunk) begin"));
            }
            self.seek(at)?;
            let head = self.array::<8>()?;
            let bytes = u32_at(&head, 4);
            match &head[..4] {
                b"ds64" => large_bytes = Some(u64_at(&self.array::<16>()?, 8)),
                b"fmt " => format = Some(self.format(bytes)?),
                b"data" => {
                    let Some(format) = format else {
                        return Err(self.malformed("its samples come before its format (a fmt chunk)"));
                    };
                    // A writer that was cut off leaves what stood there before the first sample: nothing, or the largest number.
                    let unfinished = bytes == 0 && u64::from(u32_at(&riff, 4)) <= at;
                    let declared = match bytes {
                        u32::MAX => large_bytes,
                        _ => Some(bytes.into()).filter(|_| !unfinished),
                    };
                    return self.data(format, at + 8, declared, file_bytes);
                }
                _ => {}
            }
            at = self.after(at + 8 + u64::from(bytes))?;
        }
        Err(self.malformed("it has more than 10,000 chunks before its samples"))
    }

    /// Where the next chunk begins behind one that ends at `end`. Chunks begin at even places, but not every writer knows: where no
    /// padding stands and a chunk's name does, it begins there.
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

    fn format(&mut self, bytes: u32) -> Result<Format, Error> {
        if bytes < 16 {
            return Err(self.malformed("its fmt chunk is shorter than 16 bytes"));
        }
        let raw = self.array::<16>()?;
        let [tag, channels, frame_bytes, bits] = [0, 2, 12, 14].map(|at| u16_at(&raw, at));
        let tag = if tag == EXTENSIBLE && bytes >= 26 { u16_at(&self.array::<10>()?, 8) } else { tag };
        if channels == 0 || u32::from(channels) > MAX_CHANNELS {
            return Err(self.field("number of channels", channels, "1 to 255 can be read"));
        }
        // 20 bits stand in the upper part of 24.
        let encoding = match (tag, bits.div_ceil(8)) {
            (INTEGER, 1) => Encoding::of(SampleFormat::U8),
            (INTEGER, 2) => Encoding::of(SampleFormat::I16),
            (INTEGER, 3) => Encoding::I24,
            (INTEGER, 4) => Encoding::of(SampleFormat::I32),
            (FLOAT, 4) => Encoding::of(SampleFormat::F32),
            (FLOAT, 8) => Encoding::of(SampleFormat::F64),
            (INTEGER | FLOAT, _) => {
                return Err(self.field(
                    "bits a sample",
                    bits,
                    "8, 16, 24 and 32 (float: 32, 64) can be read",
                ));
            }
            _ => {
                let must = "only uncompressed integers (1) and floats (3) can be read: convert it";
                return Err(self.field("format tag", tag, must));
            }
        };
        if usize::from(frame_bytes) != encoding.sample_bytes() * usize::from(channels) {
            return Err(self.field("block align", frame_bytes, "it must be channels times bytes per sample"));
        }
        let sample_rate_hz = u32_at(&raw, 4);
        if sample_rate_hz == 0 {
            return Err(self.field("sample rate", 0, "it must be above 0"));
        }
        Ok(Format { encoding, channels: channels.into(), sample_rate_hz })
    }

    /// `declared`: bytes of samples as the file says, where it does.
    fn data(
        mut self,
        format: Format,
        offset_bytes: u64,
        declared: Option<u64>,
        file_bytes: u64,
    ) -> Result<SampleFile, Error> {
        let frame_bytes = (format.encoding.sample_bytes() * format.channels) as u64;
        let present = file_bytes - offset_bytes;
        let bytes = declared.unwrap_or(present).min(present);
        let (len_samples, odd_bytes) = (bytes / frame_bytes, bytes % frame_bytes);
        let mut is_whole = declared.is_some_and(|declared| declared <= present) && odd_bytes == 0;
        match declared {
            Some(0) => return Err(Error::Empty { path: self.path.into() }),
            Some(declared) if declared > present => {
                let announced = declared / frame_bytes;
                if len_samples == 0 {
                    let why = format!("{announced} samples per channel are announced and none is there");
                    return Err(self.truncated(&why));
                }
                let missing = announced.saturating_sub(len_samples);
                self.notes.push(format!(
                    "the file is truncated: {len_samples} of {announced} samples per channel are there and are read, {missing} are missing"
                ));
            }
            _ if len_samples == 0 => return Err(Error::Empty { path: self.path.into() }),
            Some(_) if odd_bytes > 0 => self.notes.push(format!(
                "the samples end within one: its {odd_bytes} bytes of {frame_bytes} are left out"
            )),
            Some(_) => {}
            None => self
                .notes
                .push("the header does not say how long the file is: it is read to its end".to_owned()),
        }
        if declared.is_some_and(|declared| declared <= present)
            && self.has_more(offset_bytes + bytes, file_bytes)?
        {
            is_whole = false;
            self.notes.push(
                "samples stand in several data chunks: only those of the first are read; convert the file with the program that wrote it"
                    .to_owned(),
            );
        }
        let file = self.file.try_clone().map_err(|source| self.unreadable(source))?;
        let source = RawFile::new(self.path, file, format.encoding, format.channels, offset_bytes);
        let whole = Segment {
            position: 0,
            length_samples: len_samples,
            first_sample_index: 0,
            recorded_at: None,
            recorded_error_ns: None,
            recorded_axis: None,
        };
        let sample_rate_hz = format.sample_rate_hz.into();
        let file = SampleFile::new(vec![source], sample_rate_hz, len_samples, vec![whole], self.notes);
        let file = file.whole(is_whole);
        if format.encoding != Encoding::I24 {
            return Ok(file);
        }
        let rest = Map::from_iter([(Description::BITS.to_owned(), Value::from(24))]);
        Ok(file.described(vec![(0, Arc::new(Description { rest, ..Description::default() }))]))
    }

    /// Whether there are samples in another chunk behind the first one's end.
    fn has_more(&mut self, mut end: u64, file_bytes: u64) -> Result<bool, Error> {
        for _ in 0..CHUNKS_MAX {
            let at = self.after(end)?;
            if at + 8 > file_bytes {
                break;
            }
            self.seek(at)?;
            let head = self.array::<8>()?;
            if &head[..4] == b"data" {
                return Ok(true);
            }
            end = at + 8 + u64::from(u32_at(&head, 4));
        }
        Ok(false)
    }

    fn seek(&mut self, at: u64) -> Result<(), Error> {
        self.file.seek(SeekFrom::Start(at)).map(drop).map_err(|source| self.unreadable(source))
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Error> {
        let mut bytes = [0; BYTES];
        self.file.read_exact(&mut bytes).map(|()| bytes).map_err(|source| match source.kind() {
            std::io::ErrorKind::UnexpectedEof => self.truncated("it ends within its header"),
            _ => self.unreadable(source),
        })
    }

    fn unreadable(&self, source: std::io::Error) -> Error {
        Error::file("read", self.path)(source)
    }

    fn malformed(&self, why: &str) -> Error {
        Error::Content { path: self.path.into(), what: format!("is no WAV file: {why}") }
    }

    fn truncated(&self, why: &str) -> Error {
        Error::truncated(self.path, why)
    }

    fn field(&self, field: &str, got: u16, must: &str) -> Error {
        Error::field(self.path, field, got, must)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Of a `ds64` chunk with its head.
const DS64_BYTES: u64 = 36;
const INTEGER: u16 = 1;
const FLOAT: u16 = 3;
/// The tag proper stands 24 bytes into the chunk.
const EXTENSIBLE: u16 = 0xfffe;
const CHUNKS_MAX: usize = 10_000;
/// Of chunks as they often stand behind one of odd length.
const NAMES: [&[u8; 4]; 9] =
    [b"fmt ", b"data", b"ds64", b"LIST", b"fact", b"bext", b"JUNK", b"iXML", b"cue "];

#[cfg(test)]
mod tests;
