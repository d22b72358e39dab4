//! Little-endian fields, one behind the other.

/// Reads fields; a field beyond the end is `None`.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    pub fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.bytes::<1>().map(|bytes| bytes[0])
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.bytes().map(i64::from_le_bytes)
    }

    /// A finite number.
    pub fn f64(&mut self) -> Option<f64> {
        self.bytes().map(f64::from_le_bytes).filter(|value| value.is_finite())
    }
}

/// Writes fields into a buffer that is known to be long enough: what does not fit is left out, and its length tells.
pub(crate) struct Room<'a> {
    pub buffer: &'a mut [u8],
    pub at: usize,
}

impl Room<'_> {
    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        if let Some(place) = self.buffer.get_mut(self.at..self.at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.at += bytes.len();
        self
    }

    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }

    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub fn f64(&mut self, value: f64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }
}
