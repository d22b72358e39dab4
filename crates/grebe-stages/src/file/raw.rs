//! Files of samples without structure.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::file::encoding::Encoding;

/// Interleaved samples of one or several channels in a file.
#[derive(Debug)]
pub(crate) struct RawFile {
    path: PathBuf,
    file: File,
    encoding: Encoding,
    channels: usize,
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
        let buffer_bytes = if stands_as_is { 0 } else { BUFFER_BYTES / frame_bytes * frame_bytes };
        Self { path: path.into(), file, encoding, channels, offset_bytes, bytes: vec![0; buffer_bytes] }
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub(crate) fn channels(&self) -> usize {
        self.channels
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
        self.file.seek(SeekFrom::Start(self.offset_bytes + position * frame_bytes as u64))?;
        if self.bytes.is_empty() {
            return self.file.read_exact(&mut out[..length * sample_bytes]);
        }
        let mut done = 0;
        while done < length {
            let now = (length - done).min(self.bytes.len() / frame_bytes);
            let bytes = &mut self.bytes[..now * frame_bytes];
            self.file.read_exact(bytes)?;
            for channel in 0..self.channels {
                let at = channel * stride_bytes + done * sample_bytes;
                self.encoding.take(bytes, channel, self.channels, &mut out[at..at + now * sample_bytes]);
            }
            done += now;
        }
        Ok(())
    }
}

const BUFFER_BYTES: usize = 256 << 10;
