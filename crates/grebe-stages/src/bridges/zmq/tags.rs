//! Header of GNU Radio's ZMQ messages with tags: the index of the first item, and the tags in GNU Radio's serialization
//! of polymorphic types (PMT).
//!
//! | offset | field | type |
//! |---|---|---|
//! | 0 | magic = 0x5ff0 | u16, little-endian |
//! | 2 | version = 1 | u8 |
//! | 3 | first item of the message, counted since the stream began | u64, little-endian |
//! | 11 | tags | u64, little-endian |
//! | 19 | of each tag: its item (u64, little-endian), then key, value and source as PMT, big-endian | |

use std::time::{Duration, SystemTime};

/// The header of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TagHeader {
    /// Index of the message's first sample.
    pub(super) first_item: u64,
    /// The known tags.
    pub(super) tags: Vec<Tag>,
    /// Its length.
    pub(super) bytes: usize,
}

/// A property that changes at a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tag {
    pub(super) item: u64,
    pub(super) says: Says,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Says {
    RateHz(f64),
    FrequencyHz(f64),
    Time(SystemTime),
}

/// Reason for no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoHeader {
    /// More bytes are needed.
    Short,
    /// The bytes are not a header.
    Garbage,
}

impl TagHeader {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, NoHeader> {
        let mut at = Cursor { rest: bytes };
        if at.take::<3>()? != *b"\xf0\x5f\x01" {
            return Err(NoHeader::Garbage);
        }
        let (first_item, count) = (u64::from_le_bytes(at.take()?), u64::from_le_bytes(at.take()?));
        let mut tags = Vec::new();
        for _ in 0..count {
            let item = u64::from_le_bytes(at.take()?);
            let (key, value) = (at.value(0)?, at.value(0)?);
            at.value(0)?;
            if let Some(says) = Says::of(&key, &value) {
                // The size of a read limits them.
                tags.push(Tag { item, says });
            }
        }
        Ok(Self { first_item, tags, bytes: bytes.len() - at.rest.len() })
    }

    /// Writes a header with these tags.
    pub(super) fn put(first_item: u64, tags: &[Tag], out: &mut Vec<u8>) {
        out.extend(b"\xf0\x5f\x01");
        out.extend(first_item.to_le_bytes());
        out.extend((tags.len() as u64).to_le_bytes());
        for tag in tags {
            out.extend(tag.item.to_le_bytes());
            tag.says.put(out);
            symbol("grebe", out);
        }
    }
}

impl Says {
    fn of(key: &Value<'_>, value: &Value<'_>) -> Option<Self> {
        let Value::Symbol(key) = key else { return None };
        match (*key, value) {
            (b"rx_rate", Value::Number(hz)) if *hz > 0.0 && hz.is_finite() => Some(Self::RateHz(*hz)),
            (b"rx_freq", Value::Number(hz)) if hz.is_finite() => Some(Self::FrequencyHz(*hz)),
            (b"rx_time", Value::Time(seconds, fraction)) => {
                let since = Duration::from_secs(*seconds)
                    .checked_add(Duration::try_from_secs_f64(*fraction).ok()?)?;
                SystemTime::UNIX_EPOCH.checked_add(since).map(Self::Time)
            }
            _ => None,
        }
    }

    fn put(self, out: &mut Vec<u8>) {
        let mut number = |key, hz: f64| {
            symbol(key, out);
            out.push(DOUBLE);
            out.extend(hz.to_be_bytes());
        };
        match self {
            Self::RateHz(hz) => number("rx_rate", hz),
            Self::FrequencyHz(hz) => number("rx_freq", hz),
            Self::Time(time) => {
                let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                symbol("rx_time", out);
                out.push(TUPLE);
                out.extend(2u32.to_be_bytes());
                out.push(UINT64);
                out.extend(since.as_secs().to_be_bytes());
                out.push(DOUBLE);
                out.extend((f64::from(since.subsec_nanos()) / 1e9).to_be_bytes());
            }
        }
    }
}

fn symbol(name: &str, out: &mut Vec<u8>) {
    out.push(SYMBOL);
    out.extend((name.len() as u16).to_be_bytes());
    out.extend(name.as_bytes());
}

/// The value of a PMT, as far as needed.
enum Value<'a> {
    Symbol(&'a [u8]),
    Number(f64),
    /// An integer and a float: a time.
    Time(u64, f64),
    Whole(u64),
    Other,
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NoHeader> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(NoHeader::Short)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<&'a [u8], NoHeader> {
        let bytes = usize::try_from(bytes).map_err(|_| NoHeader::Garbage)?;
        let (skipped, rest) = self.rest.split_at_checked(bytes).ok_or(NoHeader::Short)?;
        self.rest = rest;
        Ok(skipped)
    }

    /// The next value of any type.
    fn value(&mut self, depth: usize) -> Result<Value<'a>, NoHeader> {
        if depth > DEPTH_MAX {
            return Err(NoHeader::Garbage);
        }
        Ok(match u8::from_be_bytes(self.take()?) {
            TRUE | FALSE | NULL => Value::Other,
            SYMBOL => {
                let length = u16::from_be_bytes(self.take()?);
                Value::Symbol(self.skip(u64::from(length))?)
            }
            INT32 => Value::Number(f64::from(i32::from_be_bytes(self.take()?))),
            INT64 => Value::Number(i64::from_be_bytes(self.take()?) as f64),
            UINT64 => Value::Whole(u64::from_be_bytes(self.take()?)),
            DOUBLE => Value::Number(f64::from_be_bytes(self.take()?)),
            COMPLEX => {
                self.skip(16)?;
                Value::Other
            }
            PAIR | DICT => {
                // Follows the rest of a list here, because lists nest as deep as they are long.
                self.value(depth + 1)?;
                while let Some(&(PAIR | DICT)) = self.rest.first() {
                    self.skip(1)?;
                    self.value(depth + 1)?;
                }
                self.value(depth + 1)?;
                Value::Other
            }
            VECTOR | TUPLE => {
                let count = u32::from_be_bytes(self.take()?);
                let mut two = [Value::Other, Value::Other];
                for at in 0..count {
                    let value = self.value(depth + 1)?;
                    if let Some(place) = two.get_mut(at as usize) {
                        *place = value;
                    }
                }
                match two {
                    [Value::Whole(seconds), Value::Number(fraction)] if count == 2 => {
                        Value::Time(seconds, fraction)
                    }
                    _ => Value::Other,
                }
            }
            UNIFORM => {
                let [kind] = self.take()?;
                let count = u32::from_be_bytes(self.take()?);
                let [padding] = self.take()?;
                let item_bytes = UNIFORM_BYTES.get(usize::from(kind & 0x7f)).ok_or(NoHeader::Garbage)?;
                self.skip(u64::from(padding) + u64::from(count) * item_bytes)?;
                Value::Other
            }
            _ => return Err(NoHeader::Garbage),
        })
    }
}

const TRUE: u8 = 0x00;
const FALSE: u8 = 0x01;
const SYMBOL: u8 = 0x02;
const INT32: u8 = 0x03;
const DOUBLE: u8 = 0x04;
const COMPLEX: u8 = 0x05;
const NULL: u8 = 0x06;
const PAIR: u8 = 0x07;
const VECTOR: u8 = 0x08;
const DICT: u8 = 0x09;
const UNIFORM: u8 = 0x0a;
const UINT64: u8 = 0x0b;
const TUPLE: u8 = 0x0c;
const INT64: u8 = 0x0d;
/// Bytes of an item, from u8 to complex doubles.
const UNIFORM_BYTES: [u64; 12] = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16];
const DEPTH_MAX: usize = 16;

/// Feeds arbitrary bytes. A header read equals the one read from its own output.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    let marked = [b"\xf0\x5f\x01", bytes].concat();
    for bytes in [bytes, &marked] {
        let Ok(header) = TagHeader::parse(bytes) else { continue };
        assert!(header.bytes <= bytes.len() && header.tags.len() <= bytes.len());
        let mut out = Vec::new();
        TagHeader::put(header.first_item, &header.tags, &mut out);
        assert_eq!(TagHeader::parse(&out).unwrap().tags.len(), header.tags.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        hex.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn tags_are_read_from_gnu_radios_bytes() {
        // As pmt.serialize_str of GNU Radio 3.10 writes them.
        let key = |name: &str| [&[2, 0, name.len() as u8], name.as_bytes()].concat();
        let tag = |item: u64, name: &str, value: &str| {
            [&item.to_le_bytes()[..], &key(name), &bytes(value), &bytes("01")].concat()
        };
        let tags = [
            tag(7, "rx_rate", "0441424f8000000000"),
            tag(8, "rx_freq", "0d0000010000000000"),
            tag(9, "rx_time", "0c000000020b0000000000000003043fe0000000000000"),
            tag(9, "other", "090702000161043ff000000000000006"),
            tag(9, "more", "080000000203000000010300000002"),
            tag(9, "numbers", "0a0a000000010100000000003f800000"),
            tag(9, "list", "070200016106"),
        ];
        let header = [b"\xf0\x5f\x01", &5u64.to_le_bytes()[..], &7u64.to_le_bytes(), &tags.concat()].concat();
        let read = TagHeader::parse(&[&header[..], b"samples"].concat()).unwrap();
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let says = [
            (7, Says::RateHz(2.4e6)),
            (8, Says::FrequencyHz(1_099_511_627_776.0)),
            (9, Says::Time(at(3_500))),
        ];
        assert_eq!(read.tags, says.map(|(item, says)| Tag { item, says }));
        assert_eq!((read.first_item, read.bytes), (5, header.len()));
        for cut in 0..header.len() {
            assert_eq!(TagHeader::parse(&header[..cut]), Err(NoHeader::Short), "{cut}");
        }
    }

    #[test]
    fn an_invalid_header_differs_from_an_incomplete_one() {
        assert_eq!(TagHeader::parse(b"\xf0\x5f\x02"), Err(NoHeader::Garbage));
        let of = |value: &[u8]| [b"\xf0\x5f\x01", &[0; 8][..], &1u64.to_le_bytes(), &[0; 8], value].concat();
        assert_eq!(TagHeader::parse(&of(&[0x3b])), Err(NoHeader::Garbage));
        assert_eq!(
            TagHeader::parse(&of(&[VECTOR, 0, 0, 0, 1].repeat(100))),
            Err(NoHeader::Garbage),
            "too deep"
        );
        assert_eq!(TagHeader::parse(&of(&[UNIFORM, 1, 255, 255, 255, 255, 1, 0])), Err(NoHeader::Short));
    }

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(first_item: u64, item: u64, hz in 1.0f64..1e12, ns in 0u64..4_000_000_000_000_000_000) {
            let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
            let tags = [Says::RateHz(hz), Says::FrequencyHz(-hz), Says::Time(time)].map(|says| Tag { item, says });
            let mut out = Vec::new();
            TagHeader::put(first_item, &tags, &mut out);
            let read = TagHeader::parse(&out).unwrap();
            prop_assert_eq!((read.first_item, read.bytes), (first_item, out.len()));
            prop_assert_eq!(&read.tags[..], &tags[..]);
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = TagHeader::parse(&[b"\xf0\x5f\x01", &[0; 8][..], &[9, 0, 0, 0, 0, 0, 0, 0], &bytes].concat());
        }
    }
}
