//! The elements of a `.mat` file.

use std::io::{self, ErrorKind, Read};

use crate::encoding::Encoding;

/// Reads elements in turn.
pub(super) struct Elements<R> {
    pub(super) from: R,
    pub(super) is_big: bool,
}

/// How an element begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin {
    pub(super) kind: u32,
    pub(super) bytes: u64,
    /// Content of a small element, in place of the length.
    small: Option<[u8; 4]>,
}

/// An array, but for its numbers.
#[derive(Debug)]
pub(super) struct Matrix {
    pub(super) name: String,
    pub(super) dimensions: Vec<u64>,
    pub(super) class: Class,
    pub(super) is_complex: bool,
    /// Value of a single real number.
    pub(super) number: Option<f64>,
}

/// Number class of an array. The file may store its numbers in fewer bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class(u8);

impl Begin {
    /// Size with tag and padding.
    pub(super) fn all_bytes(self) -> u64 {
        match self.small {
            Some(_) => 8,
            // Compressed ones are followed at once.
            None if self.kind == COMPRESSED => 8 + self.bytes,
            None => 8 + self.bytes.next_multiple_of(8),
        }
    }
}

impl<R: Read> Elements<R> {
    fn word(&self, bytes: [u8; 4]) -> u32 {
        if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// The next element; `None` at the end.
    pub(super) fn begin(&mut self) -> io::Result<Option<Begin>> {
        let mut tag = [0; 8];
        let mut filled = 0;
        while filled < 8 {
            match self.from.read(&mut tag[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        let ([a, b, c, d], [e, f, g, h]) =
            ([tag[0], tag[1], tag[2], tag[3]], [tag[4], tag[5], tag[6], tag[7]]);
        let first = self.word([a, b, c, d]);
        Ok(Some(match first >> 16 {
            0 => Begin { kind: first, bytes: u64::from(self.word([e, f, g, h])), small: None },
            bytes => {
                Begin { kind: first & 0xffff, bytes: u64::from(bytes.min(4)), small: Some([e, f, g, h]) }
            }
        }))
    }

    fn expect(&mut self) -> io::Result<Begin> {
        self.begin()?.ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    /// The bytes of a short one.
    fn short(&mut self) -> io::Result<(u32, Vec<u8>)> {
        let begin = self.expect()?;
        if begin.bytes > SHORT_BYTES_MAX {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "an array has too long a name or too many dimensions",
            ));
        }
        let mut bytes = vec![0; begin.bytes as usize];
        match begin.small {
            Some(small) => bytes.copy_from_slice(&small[..begin.bytes as usize]),
            None => {
                self.from.read_exact(&mut bytes)?;
                self.pass(begin.bytes.next_multiple_of(8) - begin.bytes)?;
            }
        }
        Ok((begin.kind, bytes))
    }

    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.from.by_ref().take(bytes), &mut io::sink())?;
        if passed == bytes { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// Passes one over.
    pub(super) fn skip(&mut self) -> io::Result<()> {
        let begin = self.expect()?;
        self.pass(begin.all_bytes() - 8)
    }

    /// Reads the header of an array.
    pub(super) fn matrix_header(&mut self) -> io::Result<Option<Matrix>> {
        let (_, flags) = self.short()?;
        let [a, b, c, d, ..] = flags[..] else { return Ok(None) };
        let flags = self.word([a, b, c, d]);
        let (_, sizes) = self.short()?;
        let sizes = sizes.as_chunks::<4>().0.iter().map(|&size| u64::from(self.word(size)));
        let mut dimensions: Vec<u64> = sizes.collect();
        // Trailing axes of length one carry no information.
        while dimensions.len() > 2 && dimensions.last() == Some(&1) {
            dimensions.pop();
        }
        let (_, name) = self.short()?;
        Ok(Some(Matrix {
            name: String::from_utf8_lossy(&name).into_owned(),
            dimensions,
            class: Class((flags & 0xff) as u8),
            is_complex: flags & 0x0800 != 0,
            number: None,
        }))
    }

    /// A numeric array; `None` for another type.
    pub(super) fn matrix(mut self) -> io::Result<Option<Matrix>> {
        let matrix = self.matrix_header()?;
        let Some(mut matrix) = matrix.filter(|matrix| matrix.class.encoding(false).is_some()) else {
            return Ok(None);
        };
        if matrix
            .dimensions
            .iter()
            .try_fold(1u64, |count, &axis| count.checked_mul(axis))
            .is_none_or(|it| it > COUNT_MAX)
        {
            return Err(io::Error::new(ErrorKind::InvalidData, "an array is larger than any file"));
        }
        if matrix.count() == 1 && !matrix.is_complex {
            let (kind, bytes) = self.short()?;
            matrix.number = Stored::of(kind).and_then(|stored| stored.value(&bytes, self.is_big));
        }
        Ok(Some(matrix))
    }

    /// Hands on the next numbers in the format of their class.
    pub(super) fn numbers(
        &mut self,
        count: u64,
        class: Class,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let begin = self.expect()?;
        let invalid = |what: &str| io::Error::new(ErrorKind::InvalidData, what.to_owned());
        let stored = Stored::of(begin.kind).ok_or_else(|| invalid("its numbers are of an unknown kind"))?;
        if begin.bytes != count * stored.bytes as u64 {
            return Err(invalid("its number of values differs from its shape"));
        }
        let (mut bytes, mut out) = (vec![0; NUMBERS * stored.bytes], Vec::with_capacity(NUMBERS * 8));
        let mut left = begin.bytes as usize;
        while left > 0 {
            let length = left.min(bytes.len());
            match begin.small {
                Some(small) => bytes[..length].copy_from_slice(&small[..length]),
                None => self.from.read_exact(&mut bytes[..length])?,
            }
            out.clear();
            for number in bytes[..length].chunks_exact(stored.bytes) {
                class.put(stored.value(number, self.is_big).unwrap_or(f64::NAN), &mut out);
            }
            take(&out)?;
            left -= length;
        }
        Ok(())
    }
}

impl Matrix {
    pub(super) fn count(&self) -> u64 {
        self.dimensions.iter().product()
    }

    pub(super) fn shape(&self) -> String {
        let axes: Vec<String> = self.dimensions.iter().map(u64::to_string).collect();
        format!("({})", axes.join(" x "))
    }
}

impl Class {
    /// Encoding of its numbers in a file of samples; `None` if there is none. Integers of 64 bits become
    /// floats.
    pub(super) fn encoding(self, is_complex: bool) -> Option<Encoding> {
        let name = match self.0 {
            6 | 14 | 15 => "f64",
            7 => "f32",
            8 => "i8",
            9 => "u8",
            10 => "i16",
            11 => "u16",
            12 => "i32",
            13 => "u32",
            _ => return None,
        };
        let encoding = Encoding::named(name)?;
        if is_complex { encoding.paired() } else { Some(encoding) }
    }

    pub(super) fn bytes(self) -> usize {
        match self.0 {
            8 | 9 => 1,
            10 | 11 => 2,
            7 | 12 | 13 => 4,
            _ => 8,
        }
    }

    fn put(self, value: f64, out: &mut Vec<u8>) {
        match self.0 {
            7 => out.extend((value as f32).to_le_bytes()),
            8 => out.extend((value as i8).to_le_bytes()),
            9 => out.push(value as u8),
            10 => out.extend((value as i16).to_le_bytes()),
            11 => out.extend((value as u16).to_le_bytes()),
            12 => out.extend((value as i32).to_le_bytes()),
            13 => out.extend((value as u32).to_le_bytes()),
            _ => out.extend(value.to_le_bytes()),
        }
    }
}

/// Format of the numbers in the file.
#[derive(Debug, Clone, Copy)]
struct Stored {
    kind: u32,
    bytes: usize,
}

impl Stored {
    fn of(kind: u32) -> Option<Self> {
        let bytes = match kind {
            1 | 2 => 1,
            3 | 4 => 2,
            5..=7 => 4,
            9 | 12 | 13 => 8,
            _ => return None,
        };
        Some(Self { kind, bytes })
    }

    fn value(self, bytes: &[u8], is_big: bool) -> Option<f64> {
        let mut word = [0; 8];
        let own = word.get_mut(..self.bytes)?;
        own.copy_from_slice(bytes.get(..self.bytes)?);
        if is_big {
            own.reverse();
        }
        let [a, b, c, d, ..] = word;
        Some(match self.kind {
            1 => f64::from(a as i8),
            2 => f64::from(a),
            3 => f64::from(i16::from_le_bytes([a, b])),
            4 => f64::from(u16::from_le_bytes([a, b])),
            5 => f64::from(i32::from_le_bytes([a, b, c, d])),
            6 => f64::from(u32::from_le_bytes([a, b, c, d])),
            7 => f64::from(f32::from_le_bytes([a, b, c, d])),
            9 => f64::from_le_bytes(word),
            12 => i64::from_le_bytes(word) as f64,
            _ => u64::from_le_bytes(word) as f64,
        })
    }
}

pub(super) const MATRIX: u32 = 14;
pub(super) const COMPRESSED: u32 = 15;
/// Names and dimensions.
const SHORT_BYTES_MAX: u64 = 4 << 10;
const NUMBERS: usize = 8 << 10;
const COUNT_MAX: u64 = 1 << 48;
