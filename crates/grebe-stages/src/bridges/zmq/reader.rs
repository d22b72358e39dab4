//! Reads the samples of messages as a byte stream, with the changes that tags report.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut, Read};
use std::net::TcpStream;
use std::sync::Arc;

use grebe_frame::Description;

use crate::bridges::raw::{RawSource, Retune, Retuned};
use crate::bridges::zmq::meet::{Meeting, Peer};
use crate::bridges::zmq::tags::{NoHeader, Says, TagHeader};
use crate::bridges::zmq::uri::Zmq;
use crate::bridges::zmq::wire::Head;
use crate::transport::Reconnect;
use crate::transport::standard::readable;

/// Reads from a PUB or a PUSH. Tags take effect at their sample, and items missing between two messages become a gap.
/// Starts with `peer`, and reconnects through `meeting`.
pub(crate) fn source(zmq: &Zmq, meeting: Arc<Meeting>, peer: Peer) -> RawSource<Reader> {
    let loses_unseen = zmq.loses_unseen(meeting.socket);
    let begin = {
        let (has_tags, has_key, frame_bytes) = (zmq.has_tags, !zmq.key.is_empty(), zmq.raw.frame_bytes());
        move |Peer { stream }| Reader::new(stream, has_tags, has_key, frame_bytes)
    };
    let reader = begin(peer);
    let state = StreamState {
        rate_hz: zmq.raw.rate_hz,
        description: zmq.raw.description().map(Arc::unwrap_or_clone).unwrap_or_default(),
    };
    let source = RawSource::new(reader, Reader::wait, zmq.raw.clone()).retune(Box::new(state));
    let reconnect = zmq.end.reconnects.then(|| {
        Reconnect::new(meeting.connector.uri(), move |cancel| meeting.open(cancel, None).map(&begin))
    });
    (if loses_unseen { source.loses_unseen() } else { source }).reconnects(reconnect)
}

/// Samples of a connection, without headers.
#[derive(Debug)]
pub(crate) struct Reader<S = TcpStream> {
    stream: S,
    has_tags: bool,
    has_key: bool,
    /// Bytes of an item.
    frame_bytes: usize,
    /// Bytes received and not yet used.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Of the current part: remaining bytes of samples, then remaining other bytes.
    samples: u64,
    skip: u64,
    /// Whether the next part belongs to the same message; its index.
    is_inside: bool,
    parts: usize,
    /// Expected first item of the next message.
    expected: Option<u64>,
    /// Changes, and the bytes of samples before each.
    news: VecDeque<(u64, News)>,
}

/// A change at a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
enum News {
    Gap(u64),
    Tag(Says),
}

impl Reader {
    /// Waits for up to 100 ms until there is something to read. Returns whether there is.
    fn wait(&self) -> io::Result<bool> {
        Ok(self.begin < self.end || readable(&self.stream)?)
    }
}

impl<S: Read> Reader<S> {
    fn new(stream: S, has_tags: bool, has_key: bool, frame_bytes: usize) -> Self {
        Self {
            stream,
            has_tags,
            has_key,
            frame_bytes,
            buffer: vec![0; BUFFER_BYTES],
            begin: 0,
            end: 0,
            samples: 0,
            skip: 0,
            is_inside: false,
            parts: 0,
            expected: None,
            news: VecDeque::new(),
        }
    }

    fn buffered(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Copies received samples up to the next change. Returns the bytes; 0: none.
    fn give(&mut self, out: &mut [u8]) -> usize {
        let upto = self.news.front().map_or(self.samples, |&(bytes, _)| bytes.min(self.samples));
        let length = (self.end - self.begin).min(out.len()).min(usize::try_from(upto).unwrap_or(usize::MAX));
        out[..length].copy_from_slice(&self.buffer[self.begin..self.begin + length]);
        self.begin += length;
        self.passed(length);
        length
    }

    fn passed(&mut self, length: usize) {
        self.samples -= length as u64;
        self.news.iter_mut().for_each(|(bytes, _)| *bytes -= (*bytes).min(length as u64));
    }

    /// Skips bytes that are not samples. Returns whether it needs more bytes.
    fn skim(&mut self) -> io::Result<bool> {
        while self.samples == 0 {
            if self.skip > 0 {
                let length = (self.end - self.begin).min(usize::try_from(self.skip).unwrap_or(usize::MAX));
                self.begin += length;
                self.skip -= length as u64;
                if self.skip > 0 {
                    return Ok(true);
                }
            }
            let Some(head) = Head::parse(self.buffered()).map_err(garbage)? else { return Ok(true) };
            if head.is_command {
                (self.begin, self.skip) = (self.begin + head.bytes, head.body_bytes);
            } else if !self.begin_part(head)? {
                return Ok(true);
            }
        }
        Ok(self.begin == self.end)
    }

    /// Starts a part of a message. `false`: the bytes before its samples are incomplete.
    fn begin_part(&mut self, head: Head) -> io::Result<bool> {
        let part = if self.is_inside { self.parts } else { 0 };
        let is_key = self.has_key && part == 0;
        // All samples of a message are in one part.
        if !is_key && (head.more || part > usize::from(self.has_key)) {
            return Err(garbage(if self.has_key {
                "sends messages of more parts than a key and the samples: have it send the samples in one part"
            } else {
                "sends messages of several parts: name the first one with key=, and have it send the samples in one part"
            }));
        }
        let has_header = self.has_tags;
        let mut header_bytes = 0;
        if is_key {
            header_bytes = head.body_bytes;
        } else if has_header {
            let body = &self.buffered()[head.bytes..];
            let is_whole = body.len() as u64 >= head.body_bytes;
            let body = &body[..body.len().min(usize::try_from(head.body_bytes).unwrap_or(usize::MAX))];
            match TagHeader::parse(body) {
                Ok(header) => {
                    header_bytes = header.bytes as u64;
                    self.take_tags(&header, (head.body_bytes - header_bytes) / self.frame_bytes as u64);
                }
                Err(NoHeader::Short) if !is_whole && body.len() < BUFFER_BYTES / 2 => return Ok(false),
                Err(_) => {
                    return Err(garbage(
                        "sends messages without GNU Radio's tags: omit tags, or have the sender pass them",
                    ));
                }
            }
        }
        self.begin += head.bytes;
        self.is_inside = head.more;
        self.parts = part + 1;
        if is_key {
            self.skip = header_bytes;
            return Ok(true);
        }
        self.begin += header_bytes as usize;
        let payload = head.body_bytes - header_bytes;
        if !payload.is_multiple_of(self.frame_bytes as u64) {
            return Err(garbage("sends messages of partial samples: check format, channels, tags and key"));
        }
        self.samples = payload;
        Ok(true)
    }

    fn take_tags(&mut self, header: &TagHeader, items: u64) {
        let ahead = self.expected.map_or(0, |expected| header.first_item.wrapping_sub(expected));
        if ahead > 0 {
            // After a restarted count the loss has an unknown length.
            let gap = if ahead > AHEAD_MAX { 1 } else { ahead };
            self.news.push_back((0, News::Gap(gap)));
        }
        self.expected = Some(header.first_item.wrapping_add(items));
        for tag in &header.tags {
            let item = tag.item.saturating_sub(header.first_item).min(items);
            self.news.push_back((item * self.frame_bytes as u64, News::Tag(tag.says)));
        }
        self.news.make_contiguous().sort_by_key(|&(bytes, _)| bytes);
    }

    /// Whether a change applies to the next sample.
    fn has_news(&self) -> bool {
        matches!(self.news.front(), Some(&(0, _)))
    }
}

impl<S: Read> Read for Reader<S> {
    /// Reads samples: those received before, then one more call to the system. Returns `WouldBlock` at a change, which
    /// the caller takes first.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (mut filled, mut has_asked) = (0, false);
        while filled < out.len() {
            if self.skim()? {
                if has_asked || filled > 0 {
                    break;
                }
                has_asked = true;
                self.buffer.copy_within(self.begin..self.end, 0);
                (self.begin, self.end) = (0, self.end - self.begin);
                // A large message is read without a copy.
                let upto = if self.news.is_empty() && self.end == 0 { self.samples } else { 0 };
                let direct = out.len().min(usize::try_from(upto).unwrap_or(usize::MAX));
                let (direct, own) = (&mut out[..direct], &mut self.buffer[self.end..]);
                let direct_bytes = direct.len();
                let read = self.stream.read_vectored(&mut [IoSliceMut::new(direct), IoSliceMut::new(own)]);
                match read {
                    Ok(0) => return Ok(0),
                    Ok(read) => {
                        filled = read.min(direct_bytes);
                        self.passed(filled);
                        self.end += read - filled;
                    }
                    Err(error) => return Err(error),
                }
                continue;
            }
            if self.has_news() {
                break;
            }
            filled += self.give(&mut out[filled..]);
        }
        if filled == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(filled) }
    }
}

fn garbage(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the sender {what}"))
}

/// Current state of the stream.
struct StreamState {
    rate_hz: f64,
    description: Description,
}

impl<S: Read> Retune<Reader<S>> for StreamState {
    fn retune(&mut self, reader: &mut Reader<S>) -> io::Result<Option<Retuned>> {
        if !reader.has_news() {
            return Ok(None);
        }
        let (mut gap_samples, mut is_changed) = (0, false);
        while let Some(&(0, news)) = reader.news.front() {
            reader.news.pop_front();
            let before = (self.rate_hz, self.description.centre_frequency_hz, self.description.recorded_at);
            match news {
                News::Gap(samples) => gap_samples += samples,
                News::Tag(Says::RateHz(hz)) => self.rate_hz = hz,
                News::Tag(Says::FrequencyHz(hz)) => self.description.centre_frequency_hz = Some(hz),
                News::Tag(Says::Time(time)) => self.description.recorded_at = Some(time),
            }
            is_changed |=
                before != (self.rate_hz, self.description.centre_frequency_hz, self.description.recorded_at);
        }
        let description = is_changed.then(|| Arc::new(self.description.clone()));
        Ok(Some(Retuned { gap_samples, odd_messages: 0, rate_hz: self.rate_hz, description }))
    }
}

/// Feeds arbitrary bytes in arbitrary pieces.
#[cfg(fuzzing)]
pub(crate) fn fuzz(choice: u8, bytes: &[u8]) {
    let (has_tags, has_key, frame_bytes) = (choice & 1 > 0, choice & 2 > 0, 1 + usize::from(choice >> 4));
    let mut reader = Reader::new(Pieces(bytes), has_tags, has_key, frame_bytes);
    let mut state = StreamState { rate_hz: 1.0, description: Description::default() };
    let (mut out, mut given) = (vec![0; 4096], 0);
    loop {
        if state.retune(&mut reader).is_err() {
            break;
        }
        match reader.read(&mut out) {
            Ok(0) => break,
            Ok(read) => given += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    assert!(given <= bytes.len());
}

/// Returns pieces whose first byte gives their length.
#[cfg(fuzzing)]
struct Pieces<'a>(&'a [u8]);

#[cfg(fuzzing)]
impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length =
            self.0.first().map_or(0, |&first| 1 + usize::from(first)).min(self.0.len()).min(out.len());
        out[..length].copy_from_slice(&self.0[..length]);
        self.0 = &self.0[length..];
        Ok(length)
    }
}

const BUFFER_BYTES: usize = 256 << 10;
/// Maximum items lost between two messages. A larger difference is a restart.
const AHEAD_MAX: u64 = 1 << 40;
