//! A stream of bytes in memory.

use std::io::{self, Read, Write};

use crossbeam_channel::{Receiver, Sender, bounded};

/// Maximum chunks in the pipe, whatever their length.
const CHUNKS_MAX: usize = 64;

/// Two ends of a stream. Dropping the writer ends it; dropping the reader makes writes fail.
pub(crate) fn pipe() -> (PipeReader, PipeWriter) {
    let (chunks_in, chunks) = bounded(CHUNKS_MAX);
    (PipeReader { chunks, chunk: Vec::new(), at: 0 }, PipeWriter { chunks: chunks_in })
}

pub(crate) struct PipeReader {
    chunks: Receiver<Vec<u8>>,
    chunk: Vec<u8>,
    at: usize,
}

pub(crate) struct PipeWriter {
    chunks: Sender<Vec<u8>>,
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() {
            let Ok(chunk) = self.chunks.recv() else { return Ok(0) };
            self.chunk = chunk;
            self.at = 0;
        }
        let read = (&self.chunk[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.chunks.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_until_the_writer_is_gone() {
        let (mut reader, mut writer) = pipe();
        writer.write_all(b"one").unwrap();
        writer.write_all(b"").unwrap();
        writer.write_all(b"two").unwrap();
        drop(writer);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"onetwo");
    }

    #[test]
    fn writing_to_nobody_fails() {
        let (reader, mut writer) = pipe();
        drop(reader);
        assert_eq!(writer.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
