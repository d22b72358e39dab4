//! Files of samples without structure.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::bytes::{Bytes, Stripe};
use crate::encoding::Encoding;
use crate::error::Error;
use crate::read_ahead::FileReader;
use crate::sample_file::Piece;

/// Interleaved samples of one or several channels in a file.
#[derive(Debug)]
pub(crate) struct RawFile {
    path: PathBuf,
    /// The other files, if samples alternate between files.
    others: Vec<PathBuf>,
    file: Bytes,
    encoding: Encoding,
    /// In the file.
    channels: usize,
    /// Channels to read, if not all in their order.
    selected: Option<Vec<usize>>,
    /// Position of sample 0.
    offset_bytes: u64,
    /// Pieces to read, in order, if that is not all bytes from the offset.
    pieces: Vec<Piece>,
    /// Bytes read and not yet deinterleaved; empty if nothing needs that.
    bytes: Vec<u8>,
}

impl RawFile {
    pub(crate) fn new(
        path: &Path,
        file: File,
        encoding: Encoding,
        channels: usize,
        offset_bytes: u64,
    ) -> Self {
        let frame_bytes = encoding.sample_bytes() * channels;
        let stands_as_is = encoding.is_as_streamed() && channels == 1;
        let buffer_bytes = if stands_as_is { 0 } else { buffer_bytes(frame_bytes) };
        let file = Bytes::File(FileReader::new(file));
        Self {
            path: path.into(),
            others: Vec::new(),
            file,
            encoding,
            channels,
            selected: None,
            offset_bytes,
            pieces: Vec::new(),
            bytes: vec![0; buffer_bytes],
        }
    }

    /// The same file, with its samples in these stretches.
    pub(crate) fn scattered(self, stretches: Vec<Stripe>) -> Self {
        let file = match self.file {
            Bytes::File(reader) => Bytes::striped(vec![reader], stretches),
            striped @ Bytes::Striped(_) => striped,
        };
        Self { file, offset_bytes: 0, ..self }
    }

    /// Joins files of the same kind into one whose stretches follow each other; each piece names its file by
    /// number. The pieces cover all of them.
    pub(crate) fn striped(files: Vec<Self>, pieces: &[(usize, Piece)]) -> Result<Self, Error> {
        let first = &files[0];
        let frame_bytes = first.frame_bytes();
        let stripes = pieces.iter().map(|&(file, piece)| Stripe {
            at: piece.at * frame_bytes,
            file,
            from: files[file].offset_bytes + piece.from * frame_bytes,
            bytes: piece.length * frame_bytes,
        });
        let stripes = stripes.collect();
        let (path, encoding, channels) = (first.path.clone(), first.encoding, first.channels);
        let buffer_bytes = first.bytes.len();
        let others = files[1..].iter().map(|file| file.path.clone()).collect();
        let reader = |file: Self| match file.file {
            Bytes::File(reader) => Ok(reader),
            // Files that already alternate are not a recording of one disk.
            Bytes::Striped(_) => {
                Err(Error::Content { path: file.path, what: "takes turns already".to_owned() })
            }
        };
        let readers = files.into_iter().map(reader).collect::<Result<_, _>>()?;
        Ok(Self {
            path,
            others,
            file: Bytes::striped(readers, stripes),
            encoding,
            channels,
            selected: None,
            offset_bytes: 0,
            pieces: Vec::new(),
            bytes: vec![0; buffer_bytes],
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Position of samples in a single file, if they are contiguous.
    pub(crate) fn bytes_of(&self, samples: &Range<u64>) -> Option<Range<u64>> {
        let at = |sample: u64| self.offset_bytes + sample * self.frame_bytes();
        let is_one_stretch = matches!(self.file, Bytes::File(_)) && self.pieces.is_empty();
        is_one_stretch.then(|| at(samples.start)..at(samples.end))
    }

    /// All its files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> + '_ {
        std::iter::once(&self.path).chain(&self.others).map(PathBuf::as_path)
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Number of channels to read.
    pub(crate) fn channels(&self) -> usize {
        self.selected.as_ref().map_or(self.channels, Vec::len)
    }

    /// Skips the first samples.
    pub(crate) fn skip(&mut self, samples: u64) {
        if self.pieces.is_empty() {
            self.offset_bytes += samples * self.frame_bytes();
            return;
        }
        self.pieces.retain(|piece| piece.at + piece.length > samples);
        for piece in &mut self.pieces {
            let skipped = samples.saturating_sub(piece.at);
            piece.at = piece.at + skipped - samples;
            (piece.from, piece.length) = (piece.from + skipped, piece.length - skipped);
        }
    }

    /// Restricts the file to these pieces.
    pub(crate) fn pick(mut self, pieces: &[Piece]) -> Self {
        let (mut picked, mut at): (Vec<Piece>, u64) = (Vec::with_capacity(pieces.len()), 0);
        for piece in pieces {
            for samples in self.stretches(piece.from..piece.from + piece.length) {
                let length = samples.end - samples.start;
                match picked.last_mut() {
                    Some(last) if last.from + last.length == samples.start => last.length += length,
                    _ => picked.push(Piece { at, from: samples.start, length }),
                }
                at += length;
            }
        }
        self.pieces = picked;
        self
    }

    /// Position of these samples in the file.
    fn stretches(&self, samples: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<'_> {
        let first = self.pieces.partition_point(|piece| piece.at + piece.length <= samples.start);
        let all = self.pieces.is_empty().then(|| samples.clone());
        let within = self.pieces[first..].iter().take_while({
            let end = samples.end;
            move |piece| piece.at < end
        });
        all.into_iter().chain(within.map(move |piece| {
            let begin = piece.from + samples.start.saturating_sub(piece.at);
            begin..piece.from + piece.length.min(samples.end - piece.at)
        }))
    }

    /// The same file, restricted to these channels.
    pub(crate) fn select(&self, channels: &[usize]) -> Result<Self, Error> {
        let file = self.file.reopen().map_err(Error::file("open", &self.path))?;
        let now = |channel: &usize| self.selected.as_ref().map_or(*channel, |selected| selected[*channel]);
        let selected: Vec<usize> = channels.iter().map(now).collect();
        let is_all = selected.iter().copied().eq(0..self.channels);
        // Samples in stream layout need no buffer; the same channel twice does.
        let bytes = if is_all { self.bytes.len() } else { buffer_bytes(self.frame_bytes() as usize) };
        Ok(Self {
            path: self.path.clone(),
            others: self.others.clone(),
            file,
            bytes: vec![0; bytes],
            selected: (!is_all).then_some(selected),
            pieces: self.pieces.clone(),
            ..*self
        })
    }

    /// Appends the bytes of these samples to another file; the system copies them.
    pub(crate) fn copy_to(&self, samples: Range<u64>, out: &File) -> io::Result<()> {
        for samples in self.stretches(samples) {
            let byte = |sample: u64| self.offset_bytes + sample * self.frame_bytes();
            self.file.copy_to(byte(samples.start)..byte(samples.end), out)?;
        }
        Ok(())
    }

    fn frame_bytes(&self) -> u64 {
        (self.encoding.sample_bytes() * self.channels) as u64
    }

    /// Says which samples will be read in order, and whether again and again; `beside` as many other files at the same time.
    pub(crate) fn expect(&mut self, samples: Range<u64>, repeats: bool, beside: usize) {
        let frame_bytes = self.frame_bytes();
        let byte = |sample: u64| self.offset_bytes.saturating_add(sample.saturating_mul(frame_bytes));
        let mut samples = samples;
        if let Some(last) = self.pieces.last() {
            samples.end = samples.end.min(last.at + last.length);
            let mut stretches = self.stretches(samples.clone());
            let Some(first) = stretches.next() else { return };
            samples = first.start..stretches.last().map_or(first.end, |last| last.end);
        }
        self.file.expect(byte(samples.start)..byte(samples.end), repeats, beside);
    }

    /// Text for comparison: the bytes to read, and their format.
    pub(crate) fn layout(&self) -> String {
        let selected = self.selected.as_ref().map_or("all".to_owned(), |selected| format!("{selected:?}"));
        let pieces =
            if self.pieces.is_empty() { String::new() } else { format!(", pieces {:?}", self.pieces) };
        format!(
            "{selected} of {} channels from byte {}, {:?}{pieces}{}",
            self.channels,
            self.offset_bytes,
            self.encoding,
            self.file.layout()
        )
    }

    /// Its bytes, and when it was changed last, as far as the system says.
    pub(crate) fn size(&self) -> (u64, Option<SystemTime>) {
        self.file.size()
    }

    /// Reads `length` samples per channel from `position` on into `out`, as a stream has them; its channels begin `stride_bytes`
    /// apart.
    pub(crate) fn read(
        &mut self,
        position: u64,
        length: usize,
        stride_bytes: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let read = if self.pieces.is_empty() {
            self.try_read(position, length, stride_bytes, out)
        } else {
            self.read_pieces(position, length, stride_bytes, out)
        };
        read.map_err(|source| Error::file("read", &self.path)(source))
    }

    fn read_pieces(
        &mut self,
        position: u64,
        length: usize,
        stride_bytes: usize,
        out: &mut [u8],
    ) -> io::Result<()> {
        let (mut at, end) = (position, position + length as u64);
        let sample_bytes = self.encoding.format.bytes();
        while at < end {
            // The first remaining stretch. Finding the others again costs less than a read.
            let next = self.stretches(at..end).next();
            let Some(samples) = next else { return Err(io::ErrorKind::UnexpectedEof.into()) };
            let out = &mut out[(at - position) as usize * sample_bytes..];
            self.try_read(samples.start, (samples.end - samples.start) as usize, stride_bytes, out)?;
            at += samples.end - samples.start;
        }
        Ok(())
    }

    fn try_read(
        &mut self,
        position: u64,
        length: usize,
        stride_bytes: usize,
        out: &mut [u8],
    ) -> std::io::Result<()> {
        let frame_bytes = self.encoding.sample_bytes() * self.channels;
        let sample_bytes = self.encoding.format.bytes();
        let mut at = self.offset_bytes + position * frame_bytes as u64;
        if self.bytes.is_empty() {
            return self.file.read_exact_at(at, &mut out[..length * sample_bytes]);
        }
        let mut done = 0;
        while done < length {
            let now = (length - done).min(self.bytes.len() / frame_bytes);
            let bytes = &mut self.bytes[..now * frame_bytes];
            self.file.read_exact_at(at, bytes)?;
            at += bytes.len() as u64;
            for number in 0..self.selected.as_ref().map_or(self.channels, Vec::len) {
                let channel = self.selected.as_ref().map_or(number, |selected| selected[number]);
                let at = number * stride_bytes + done * sample_bytes;
                self.encoding.take(bytes, channel, self.channels, &mut out[at..at + now * sample_bytes]);
            }
            done += now;
        }
        Ok(())
    }
}

/// For whole frames.
fn buffer_bytes(frame_bytes: usize) -> usize {
    BUFFER_BYTES / frame_bytes * frame_bytes
}

const BUFFER_BYTES: usize = 256 << 10;
