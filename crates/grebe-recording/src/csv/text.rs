//! Decodes a text of any encoding to UTF-8.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Reads a text as UTF-8: of UTF-16 with a byte order mark each character is converted; other bytes go through as they are, but for a mark.
#[derive(Debug)]
pub(super) struct Text {
    file: File,
    wide: Option<Order>,
    /// Converted, and not read yet.
    ready: Vec<u8>,
    begin: usize,
    /// The first half of a character.
    high: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Text {
    /// From its beginning.
    pub(super) fn new(mut file: File) -> io::Result<Self> {
        let mut mark = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        (&mut file).take(3).read_to_end(&mut mark)?;
        let (wide, skip) = match mark.as_slice() {
            [0xff, 0xfe, ..] => (Some(Order::Little), 2),
            [0xfe, 0xff, ..] => (Some(Order::Big), 2),
            [0xef, 0xbb, 0xbf] => (None, 3),
            // A plain character, and no mark.
            [byte, 0, ..] if *byte != 0 => (Some(Order::Little), 0),
            [0, byte, ..] if *byte != 0 => (Some(Order::Big), 0),
            _ => (None, 0),
        };
        file.seek(SeekFrom::Start(skip))?;
        Ok(Self { file, wide, ready: Vec::new(), begin: 0, high: None })
    }

    /// How many bytes of the file make one of the text, about.
    pub(super) fn bytes_per_byte(&self) -> u64 {
        if self.wide.is_some() { 2 } else { 1 }
    }

    fn convert(&mut self, order: Order) -> io::Result<()> {
        let mut bytes = Vec::new();
        (&mut self.file).take(WIDE_BYTES).read_to_end(&mut bytes)?;
        self.ready.clear();
        self.begin = 0;
        let word = |pair: &[u8; 2]| match order {
            Order::Little => u16::from_le_bytes(*pair),
            Order::Big => u16::from_be_bytes(*pair),
        };
        let words = self.high.take().into_iter().chain(bytes.as_chunks::<2>().0.iter().map(word));
        let mut words: Vec<u16> = words.collect();
        if bytes.len() as u64 == WIDE_BYTES
            && words.last().is_some_and(|word| (0xd800..0xdc00).contains(word))
        {
            self.high = words.pop();
        }
        let mut utf8 = [0; 4];
        for character in char::decode_utf16(words) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.ready.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
        }
        Ok(())
    }
}

impl Read for Text {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(order) = self.wide else { return self.file.read(out) };
        if self.begin == self.ready.len() {
            self.convert(order)?;
        }
        let rest = &self.ready[self.begin..];
        let length = rest.len().min(out.len());
        out[..length].copy_from_slice(&rest[..length]);
        self.begin += length;
        Ok(length)
    }
}

const WIDE_BYTES: u64 = 64 << 10;
