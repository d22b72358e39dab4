//! Reads and writes the numbers of binary messages.

/// Reason why a message is malformed. The reader discards the whole message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message is damaged: {0}")]
pub struct Malformed(pub(crate) &'static str);

/// Appends numbers to a message.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

/// Reads the numbers of a message in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Writes a variable-length integer: seven bits per byte, the lowest first.
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Writes a signed integer. Values near zero take few bytes.
    pub(crate) fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)) as u64);
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a length, then the bytes.
    pub(crate) fn counted(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.rest.split_first().ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(first)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a number has more than 64 bits"))
    }

    pub(crate) fn zigzag(&mut self) -> Result<i64, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(crate) fn f64(&mut self) -> Result<f64, Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk::<8>().ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    /// Reads a count that bounds a loop or an allocation; fails above `most`.
    pub(crate) fn count(&mut self, most: usize) -> Result<usize, Malformed> {
        let value = self.varint()?;
        let value = usize::try_from(value).ok().filter(|&value| value <= most);
        value.ok_or(Malformed("a count above its limit"))
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.count(self.rest.len())?;
        self.take(count)
    }

    /// # Errors
    /// If bytes are left over.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("something follows its end")) }
    }
}

const CUT_OFF: Malformed = Malformed("it is cut off");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(unsigned: u64, signed: i64, real: f64, bytes: Vec<u8>) {
            let mut writer = Writer::default();
            writer.varint(unsigned);
            writer.zigzag(signed);
            writer.f64(real);
            writer.counted(&bytes);
            let mut reader = Reader::new(&writer.bytes);
            prop_assert_eq!(reader.varint(), Ok(unsigned));
            prop_assert_eq!(reader.zigzag(), Ok(signed));
            prop_assert_eq!(reader.f64().unwrap().to_bits(), real.to_bits());
            prop_assert_eq!(reader.counted(), Ok(&bytes[..]));
            prop_assert_eq!(reader.end(), Ok(()));
        }
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_an_error() {
        assert_eq!(Reader::new(&[0x80]).varint(), Err(CUT_OFF));
        assert!(Reader::new(&[0xff; 11]).varint().is_err());
        assert_eq!(Reader::new(&[5, 1]).counted(), Err(Malformed("a count above its limit")));
        assert_eq!(Reader::new(&[0; 7]).f64(), Err(CUT_OFF));
        assert!(Reader::new(&[0]).end().is_err());
    }
}
