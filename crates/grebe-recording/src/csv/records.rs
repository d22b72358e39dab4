//! Splits text into lines and fields.

use std::io::{self, ErrorKind, Read};
use std::ops::Index;

/// Reads line by line. Quotes protect delimiters and line ends. Empty lines are skipped.
#[derive(Debug)]
pub(super) struct Records<R> {
    from: R,
    delimiter: u8,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Number of the next line, from 0.
    line: u64,
    done_bytes: u64,
    /// The last line ended with a carriage return: a line feed belongs to it.
    is_half_ended: bool,
    is_over: bool,
}

/// The fields of a line.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// With a delimiter between them.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    line: u64,
}

/// How far a line was read.
enum Scanned {
    /// Length in bytes, and the terminator.
    Line(usize, u8),
    Quoted,
    /// The record continues after the buffer.
    More,
}

impl<R: Read> Records<R> {
    pub(super) fn new(from: R, delimiter: u8) -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self {
            from,
            delimiter,
            buffer,
            begin: 0,
            end: 0,
            line: 0,
            done_bytes: 0,
            is_half_ended: false,
            is_over: false,
        }
    }

    /// Skips lines, whatever their content.
    ///
    /// # Errors
    /// Those of the reader.
    pub(super) fn skip(&mut self, lines: usize) -> io::Result<()> {
        for _ in 0..lines {
            loop {
                let found = self.rest().iter().position(|&byte| byte == b'\n');
                let passed = found.map_or(self.end - self.begin, |at| at + 1);
                self.pass(passed);
                if found.is_some() || !self.fill()? {
                    break;
                }
            }
            self.line += 1;
        }
        Ok(())
    }

    /// The next line; whether there is one.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: a line is longer than any; those of the reader.
    pub(super) fn read(&mut self, record: &mut Record) -> io::Result<bool> {
        loop {
            record.ends.clear();
            match self.scan(&mut record.ends) {
                Scanned::Line(0, end) => {
                    self.line += u64::from(!(self.is_half_ended && end == b'\n'));
                    self.is_half_ended = end == b'\r';
                    self.pass(1);
                }
                Scanned::Line(length, end) => {
                    record.bytes.clear();
                    record.bytes.extend_from_slice(&self.buffer[self.begin..self.begin + length]);
                    record.ends.push(length);
                    self.take(record, length + 1, u64::from(end != 0));
                    self.is_half_ended = end == b'\r';
                    return Ok(true);
                }
                Scanned::Quoted => {
                    if let Some((passed, lines, end)) = self.unquote(record) {
                        self.take(record, passed, lines);
                        self.is_half_ended = end == b'\r';
                        return Ok(true);
                    }
                    self.fill()?;
                }
                Scanned::More if self.is_over => return Ok(false),
                Scanned::More => {
                    self.fill()?;
                }
            }
        }
    }

    /// The bytes that are here of the lines that follow.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Passes a line of this many bytes, its end among them, and returns its number.
    #[inline]
    pub(super) fn pass_line(&mut self, bytes: usize) -> u64 {
        self.pass(bytes);
        self.is_half_ended = false;
        self.line += 1;
        self.line
    }

    /// Bytes that were read of the text so far.
    pub(super) fn done_bytes(&self) -> u64 {
        self.done_bytes
    }

    /// The line that was read last, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    #[inline]
    fn scan(&self, ends: &mut Vec<usize>) -> Scanned {
        let delimiter = self.delimiter;
        let bytes = self.rest();
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == delimiter {
                ends.push(at);
            } else if byte <= b'"' {
                match byte {
                    b'\n' | b'\r' => return Scanned::Line(at, byte),
                    b'"' => return Scanned::Quoted,
                    _ => {}
                }
            }
        }
        if self.is_over && !bytes.is_empty() { Scanned::Line(bytes.len(), 0) } else { Scanned::More }
    }

    /// Parses a line with quotes: its length in bytes, its line ends and the last terminator; `None` if it
    /// continues after the buffer.
    #[cold]
    fn unquote(&self, record: &mut Record) -> Option<(usize, u64, u8)> {
        record.bytes.clear();
        record.ends.clear();
        let bytes = self.rest();
        let (mut is_quoted, mut is_field_begin, mut lines) = (false, true, 0);
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let next = bytes.get(at + 1);
            match byte {
                b'"' if is_quoted && next.is_none() && !self.is_over => return None,
                b'"' if is_quoted && next == Some(&b'"') => {
                    record.bytes.push(byte);
                    at += 1;
                }
                b'"' if is_quoted || is_field_begin => is_quoted = !is_quoted,
                b'\n' | b'\r' if !is_quoted => {
                    record.ends.push(record.bytes.len());
                    return Some((at + 1, lines + 1, byte));
                }
                _ if byte == self.delimiter && !is_quoted => {
                    record.ends.push(record.bytes.len());
                    record.bytes.push(byte);
                }
                _ => {
                    lines += u64::from(byte == b'\n');
                    record.bytes.push(byte);
                }
            }
            is_field_begin = byte == self.delimiter && !is_quoted;
            at += 1;
        }
        if !self.is_over {
            return None;
        }
        record.ends.push(record.bytes.len());
        Some((bytes.len(), lines, 0))
    }

    fn take(&mut self, record: &mut Record, bytes: usize, lines: u64) {
        record.line = self.line + 1;
        self.line += lines;
        self.pass(bytes.min(self.end - self.begin));
    }

    fn pass(&mut self, bytes: usize) {
        self.begin += bytes;
        self.done_bytes += bytes as u64;
    }

    /// Reads more into the buffer; returns whether there was any.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.end == self.buffer.len() {
            if self.buffer.len() >= LINE_BYTES_MAX {
                return Err(io::Error::new(ErrorKind::InvalidData, "the line is longer than 16 MiB"));
            }
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        let read = loop {
            match self.from.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.end += read;
        self.is_over = read == 0;
        Ok(read > 0)
    }
}

impl Record {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let begin = if at == 0 { 0 } else { self.ends[at - 1] + 1 };
        Some(&self.bytes[begin..end])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Number of its first line, from 1.
    #[inline]
    pub(super) fn line(&self) -> u64 {
        self.line
    }
}

impl Index<usize> for Record {
    type Output = [u8];

    #[inline]
    fn index(&self, at: usize) -> &[u8] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] + 1 };
        &self.bytes[begin..self.ends[at]]
    }
}

/// Fits a core's cache beside the samples.
const BUFFER_BYTES: usize = 256 << 10;
const LINE_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use grebe_testing::stream::Pieces;
    use proptest::prelude::*;

    use super::*;

    /// Fields and the lines that they begin in.
    fn ours(text: &[u8], lengths: Vec<usize>) -> Vec<(u64, Vec<Vec<u8>>)> {
        let mut records = Records::new(Pieces::new(text.to_vec(), lengths), b',');
        let (mut record, mut all) = (Record::default(), Vec::new());
        while records.read(&mut record).unwrap() {
            all.push((record.line(), record.iter().map(<[u8]>::to_vec).collect()));
        }
        assert_eq!(records.done_bytes(), text.len() as u64);
        all
    }

    proptest! {
        /// As the crate for such texts takes them apart, however they are cut.
        #[test]
        fn lines_are_split_as_by_other_programs(
            fields in prop::collection::vec(prop::collection::vec("[0-9.]{0,4}|\"[a,\n]{0,3}\"|\"a\"\"b\"|x\"y", 1..4), 0..12),
            end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            has_end in any::<bool>(),
            lengths in prop::collection::vec(1usize..9, 1..9),
        ) {
            let lines: Vec<String> = fields.iter().map(|fields| fields.join(",")).collect();
            let text = lines.join(end) + if has_end { end } else { "" };
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
            let expected: Vec<Vec<Vec<u8>>> =
                reader.byte_records().map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect()).collect();
            let read = ours(text.as_bytes(), lengths);
            prop_assert_eq!(read.into_iter().map(|(_, fields)| fields).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn lines_are_counted_as_an_editor_does() {
        let text = b"a,1\n\n\"b\nc\",2\r\nd\r\r\ne,\"\"";
        let lines: Vec<(u64, usize)> =
            ours(text, vec![1]).iter().map(|(line, fields)| (*line, fields.len())).collect();
        assert_eq!(lines, [(1, 2), (3, 2), (5, 1), (7, 2)]);
        let mut records = Records::new(&b"one\ntwo\n3,4\n"[..], b',');
        let mut record = Record::default();
        records.skip(2).unwrap();
        assert!(records.read(&mut record).unwrap());
        assert_eq!((record.line(), &record[1]), (3, &b"4"[..]));
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_takes_all_memory() {
        let mut records = Records::new(io::repeat(b'7'), b',');
        let error = records.read(&mut Record::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
