//! Frames on a byte stream.

use std::io::{self, Read, Write};

use crate::error::{Error, Result};
use crate::wire::FRAME_BYTES_MAX;

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Hello = 1,
    /// From the sender: names in one directory.
    Listing = 2,
    /// From the sender: content.
    Data = 3,
    /// From the receiver: whether and how it wants files.
    Answers = 4,
    /// From either end: a skipped name.
    LeftOut = 5,
    /// From the receiver: a removed name.
    Deleted = 6,
    /// From either end: nothing more follows.
    End = 7,
    /// From either end: it gives up.
    Failed = 8,
    /// From the receiver: part of a file's signature.
    Signature = 9,
    /// From the receiver: whether it could make a file from its basis.
    Made = 10,
    /// From the sender: request for finer chunks of ranges.
    Refine = 11,
    /// From the receiver: blocks of a file that an earlier copy left.
    Left = 12,
    /// From the receiver: ranges of a file to send next.
    Want = 13,
    /// From the sender: offset of the basis in the new file.
    Shift = 14,
    /// From the sender: request for finer chunks of one range at once.
    FinerRange = 15,
    /// From a sender without a login: its offer.
    Offer = 16,
    /// From the receiver: acceptance of the offer.
    Taken = 17,
}

impl Kind {
    fn of(byte: u8) -> Result<Self> {
        Ok(match byte {
            1 => Self::Hello,
            2 => Self::Listing,
            3 => Self::Data,
            4 => Self::Answers,
            5 => Self::LeftOut,
            6 => Self::Deleted,
            7 => Self::End,
            8 => Self::Failed,
            9 => Self::Signature,
            10 => Self::Made,
            11 => Self::Refine,
            12 => Self::Left,
            13 => Self::Want,
            14 => Self::Shift,
            15 => Self::FinerRange,
            16 => Self::Offer,
            17 => Self::Taken,
            _ => return Err(Error::Malformed { what: "a message of an unknown kind" }),
        })
    }
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) body: Vec<u8>,
}

/// Reads frames from a stream.
pub(crate) struct FrameReader<R> {
    stream: R,
    /// Read-ahead buffer, because frame heads are small and a system call for each would dominate.
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
}

impl<R: Read> FrameReader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, buffer: vec![0; BUFFER_BYTES].into(), at: 0, end: 0 }
    }

    /// Next frame and its length on the stream; `None` if the stream ends between frames.
    pub(crate) fn next(&mut self) -> Result<Option<(Frame, u64)>> {
        let Some(kind) = self.byte()? else { return Ok(None) };
        let kind = Kind::of(kind)?;
        let (mut length, mut head_bytes) = (0_usize, 1);
        for shift in (0..28).step_by(7) {
            let byte = self.byte()?.ok_or(Error::Closed)?;
            head_bytes += 1;
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        if length > FRAME_BYTES_MAX {
            return Err(Error::Malformed { what: "a message that is too long" });
        }
        let body = self.body(length)?;
        Ok(Some((Frame { kind, body }, head_bytes + length as u64)))
    }

    fn byte(&mut self) -> Result<Option<u8>> {
        if self.at == self.end {
            self.end = read_some(&mut self.stream, &mut self.buffer)?;
            self.at = 0;
            if self.end == 0 {
                return Ok(None);
            }
        }
        self.at += 1;
        Ok(Some(self.buffer[self.at - 1]))
    }

    fn body(&mut self, length: usize) -> Result<Vec<u8>> {
        let there = &self.buffer[self.at..self.end];
        let there = &there[..there.len().min(length)];
        self.at += there.len();
        let mut body = Vec::with_capacity(length);
        body.extend_from_slice(there);
        let mut got = body.len();
        body.resize(length, 0);
        while got < length {
            match read_some(&mut self.stream, &mut body[got..])? {
                0 => return Err(Error::Closed),
                read => got += read,
            }
        }
        Ok(body)
    }
}

fn read_some(stream: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    loop {
        match stream.read(buffer) {
            Ok(read) => return Ok(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(stream_error(error)),
        }
    }
}

/// Writes frames to a stream.
pub(crate) struct FrameWriter<W> {
    stream: W,
    head: Vec<u8>,
    pub(crate) written_bytes: u64,
}

impl<W: Write> FrameWriter<W> {
    pub(crate) fn new(stream: W) -> Self {
        Self { stream, head: Vec::with_capacity(FRAME_BYTES_MAX), written_bytes: 0 }
    }

    pub(crate) fn write(&mut self, kind: Kind, body: &[u8]) -> Result<()> {
        debug_assert!(body.len() <= FRAME_BYTES_MAX, "{kind:?} of {} bytes", body.len());
        self.head.clear();
        self.head.push(kind as u8);
        super::put_varint(&mut self.head, body.len() as u64);
        self.written_bytes += (self.head.len() + body.len()) as u64;
        if body.len() <= COPIED_BYTES_MAX {
            // One write for both, because on a socket each would become a packet.
            self.head.extend_from_slice(body);
            return self.stream.write_all(&self.head).map_err(stream_error);
        }
        self.stream.write_all(&self.head).map_err(stream_error)?;
        self.stream.write_all(body).map_err(stream_error)
    }

    pub(crate) fn into_stream(self) -> W {
        self.stream
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.stream.flush().map_err(stream_error)
    }
}

/// The stream's own error says only that the other end is gone.
fn stream_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::UnexpectedEof => Error::Closed,
        _ => Error::Stream(error),
    }
}

const BUFFER_BYTES: usize = 64 << 10;
const COPIED_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns at most this many bytes per read.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(self.1);
            self.0.read(&mut buffer[..most])
        }
    }

    proptest! {
        #[test]
        fn frames_come_back_in_whatever_pieces_the_stream_has(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20), piece in 1_usize..70,
        ) {
            let mut bytes = Vec::new();
            let mut writer = FrameWriter::new(&mut bytes);
            bodies.iter().for_each(|body| writer.write(Kind::Data, body).unwrap());
            let written = writer.written_bytes;
            let mut reader = FrameReader::new(Slowly(&bytes, piece));
            let mut counted = 0;
            for body in &bodies {
                let (frame, frame_bytes) = reader.next().unwrap().unwrap();
                counted += frame_bytes;
                prop_assert_eq!(frame, Frame { kind: Kind::Data, body: body.clone() });
            }
            prop_assert!(reader.next().unwrap().is_none());
            prop_assert_eq!((written, counted), (bytes.len() as u64, bytes.len() as u64));
        }

        #[test]
        fn reading_any_bytes_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = FrameReader::new(&bytes[..]);
            while let Ok(Some(_)) = reader.next() {}
        }
    }

    #[test]
    fn a_truncated_frame_is_not_an_end_of_stream() {
        let mut bytes = Vec::new();
        FrameWriter::new(&mut bytes).write(Kind::Listing, &[7; 100]).unwrap();
        for cut in 1..bytes.len() {
            let mut reader = FrameReader::new(&bytes[..cut]);
            assert!(matches!(reader.next(), Err(Error::Closed)), "cut at {cut}");
        }
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_before_anything_is_allocated() {
        for bytes in
            [&[3, 0xff, 0xff, 0xff, 0x7f][..], &[3, 0x81, 0x80, 0x40], &[3, 0xff, 0xff, 0xff, 0xff, 1]]
        {
            let mut reader = FrameReader::new(bytes);
            assert!(matches!(reader.next(), Err(Error::Malformed { .. })), "{bytes:?}");
        }
    }
}
