//! Files of samples without structure.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::Error;
use crate::file::encoding::Encoding;
use crate::file::read_ahead::FileReader;

/// Interleaved samples of one or several channels in a file.
#[derive(Debug)]
pub(crate) struct RawFile {
    path: PathBuf,
    file: FileReader,
    encoding: Encoding,
    /// In the file.
    channels: usize,
    /// Those that are read, where that is not all of them in their order.
    selected: Option<Vec<usize>>,
    /// Where sample 0 stands.
    offset_bytes: u64,
    /// What was read and is not taken apart yet; empty where nothing needs to be.
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
        let file = FileReader::new(file);
        Self {
            path: path.into(),
            file,
            encoding,
            channels,
            selected: None,
            offset_bytes,
            bytes: vec![0; buffer_bytes],
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Those that are read.
    pub(crate) fn channels(&self) -> usize {
        self.selected.as_ref().map_or(self.channels, Vec::len)
    }

    /// Begins so many samples later.
    pub(crate) fn skip(&mut self, samples: u64) {
        self.offset_bytes += samples * self.frame_bytes();
    }

    /// The same file, of which these of its channels are read.
    pub(crate) fn select(&self, channels: &[usize]) -> Result<Self, Error> {
        let file = self.file.try_clone().map_err(Error::file("open", &self.path))?;
        let now = |channel: &usize| self.selected.as_ref().map_or(*channel, |selected| selected[*channel]);
        let selected: Vec<usize> = channels.iter().map(now).collect();
        let is_all = selected.iter().copied().eq(0..self.channels);
        // What stands as it is in a stream needs no buffer; twice the same channel does not.
        let bytes = if is_all { self.bytes.len() } else { buffer_bytes(self.frame_bytes() as usize) };
        Ok(Self {
            path: self.path.clone(),
            file: FileReader::new(file),
            bytes: vec![0; bytes],
            selected: (!is_all).then_some(selected),
            ..*self
        })
    }

    /// Appends the bytes of these samples, as they stand in the file, to another; the system copies them.
    pub(crate) fn copy_to(&self, samples: Range<u64>, mut out: &File) -> io::Result<()> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(self.offset_bytes + samples.start * self.frame_bytes()))?;
        let bytes = (samples.end - samples.start) * self.frame_bytes();
        // On Linux by copy_file_range: file systems that can share the blocks.
        let copied = io::copy(&mut (&file).take(bytes), &mut out)?;
        if copied == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn frame_bytes(&self) -> u64 {
        (self.encoding.sample_bytes() * self.channels) as u64
    }

    /// Says which samples will be read in order, and whether again and again; `beside` as many other files at the same time.
    pub(crate) fn expect(&mut self, samples: Range<u64>, repeats: bool, beside: usize) {
        let frame_bytes = self.frame_bytes();
        let byte = |sample: u64| self.offset_bytes.saturating_add(sample.saturating_mul(frame_bytes));
        self.file.expect(byte(samples.start)..byte(samples.end), repeats, beside);
    }

    /// Which of its bytes are read, and as what: words to compare.
    pub(crate) fn layout(&self) -> String {
        let selected = self.selected.as_ref().map_or("all".to_owned(), |selected| format!("{selected:?}"));
        format!(
            "{selected} of {} channels from byte {}, {:?}",
            self.channels, self.offset_bytes, self.encoding
        )
    }

    /// Its bytes, and when it was changed last, as far as the system says.
    pub(crate) fn size(&self) -> (u64, Option<SystemTime>) {
        self.file.metadata().map_or((0, None), |file| (file.len(), file.modified().ok()))
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
        let read = self.try_read(position, length, stride_bytes, out);
        read.map_err(|source| Error::file("read", &self.path)(source))
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
