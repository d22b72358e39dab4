//! Big-endian numbers in packets.

use crate::error::{Error, Result};

/// Reads consecutive fields from the front of a packet.
///
/// Each method returns [`Error::Malformed`] if the packet ends within the field.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(*head)
    }

    /// Next `len` bytes, borrowed.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(head)
    }

    /// All remaining bytes.
    #[inline]
    pub fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Six bytes.
    #[inline]
    pub fn u48(&mut self) -> Result<u64> {
        let [a, b, c, d, e, f] = self.array()?;
        Ok(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Eight bytes in two's complement.
    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Eight bytes of a finite number; infinities and NaN are malformed.
    #[inline]
    pub fn f64(&mut self) -> Result<f64> {
        let value = f64::from_be_bytes(self.array()?);
        if value.is_finite() { Ok(value) } else { Err(Error::Malformed { what: "an invalid number" }) }
    }

    /// Number in LEB128, at most ten bytes.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::Malformed { what: "a number without an end" })
    }

    /// Whether nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails if bytes follow the last field.
    #[inline]
    pub fn end(&self) -> Result<()> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(Error::Malformed { what: "extra bytes after the last field" })
        }
    }
}

/// Writes consecutive fields to a packet.
///
/// A field that does not fit is omitted, with all that follow. [`written`](Self::written) reports this once,
/// at the end.
///
/// ```
/// use grebe_packet::Writer;
///
/// let mut packet = [0; 4];
/// let mut writer = Writer::new(&mut packet);
/// assert_eq!(writer.u8(1).u16(2).written(), Some(3));
/// assert_eq!(writer.u16(3).written(), None);
/// writer.truncate(3);
/// assert_eq!(writer.u8(4).written(), Some(4));
/// assert_eq!(packet, [1, 0, 2, 4]);
/// ```
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    /// Bytes written; beyond the buffer's length if something did not fit.
    at: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the front of `out`.
    #[inline]
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// Writes these bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        let end = self.at.saturating_add(bytes.len());
        if let Some(place) = self.out.get_mut(self.at..end) {
            place.copy_from_slice(bytes);
        }
        self.at = end;
        self
    }

    /// Writes `len` zeros.
    #[inline]
    pub fn zeros(&mut self, len: usize) -> &mut Self {
        let end = self.at.saturating_add(len);
        if let Some(place) = self.out.get_mut(self.at..end) {
            place.fill(0);
        }
        self.at = end;
        self
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_be_bytes())
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_be_bytes())
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_be_bytes())
    }

    /// Eight bytes in two's complement.
    #[inline]
    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.put(&value.to_be_bytes())
    }

    /// Eight bytes.
    #[inline]
    pub fn f64(&mut self, value: f64) -> &mut Self {
        self.put(&value.to_be_bytes())
    }

    /// Number in LEB128: seven bits per byte, lowest first.
    #[inline]
    pub fn varint(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8)
    }

    /// Bytes written so far; `None` if something did not fit.
    #[inline]
    pub fn written(&self) -> Option<usize> {
        (self.at <= self.out.len()).then_some(self.at)
    }

    /// Returns to the first `len` bytes, even after something did not fit.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.at = self.at.min(len);
    }
}

const CUT_SHORT: Error = Error::Malformed { what: "it is cut short" };

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_endless_number_and_bytes_after_the_end_are_refused() {
        assert!(Reader::new(&[0xff; 11]).varint().is_err());
        assert!(Reader::new(&f64::NAN.to_be_bytes()).f64().is_err());
        assert!(Reader::new(&[0]).end().is_err() && Reader::new(&[]).end().is_ok());
    }

    proptest! {
        #[test]
        fn cursor_fields_round_trip_and_overflow_is_an_error(
            a: u8, b: u16, c: u32, d: u64, e: i64, f in -1e300_f64..1e300, varint: u64, zeros in 0..9_usize,
        ) {
            let write = |out: &mut [u8]| {
                let mut writer = Writer::new(out);
                writer.u8(a).u16(b).u32(c).u64(d).i64(e).f64(f).varint(varint).zeros(zeros);
                writer.put(&d.to_be_bytes()[2..]).written()
            };
            let mut bytes = [0xee; 100];
            let len = write(&mut bytes).unwrap();
            let mut reader = Reader::new(&bytes[..len]);
            prop_assert_eq!((reader.u8(), reader.u16(), reader.u32()), (Ok(a), Ok(b), Ok(c)));
            prop_assert_eq!((reader.u64(), reader.i64(), reader.f64()), (Ok(d), Ok(e), Ok(f)));
            prop_assert_eq!((reader.varint(), reader.take(zeros)), (Ok(varint), Ok(&[0; 9][..zeros])));
            prop_assert_eq!((reader.u48(), reader.end()), (Ok(d & 0xffff_ffff_ffff), Ok(())));
            for short in 0..len {
                prop_assert_eq!(write(&mut vec![0; short]), None);
            }
        }
    }
}
