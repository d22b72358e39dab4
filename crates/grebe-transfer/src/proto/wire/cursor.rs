//! Reads and writes the numbers of a packet: big-endian, and never past its end.

use crate::error::{Error, Result};

pub(super) struct Reader<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Error::Malformed { what: "a frame that is cut short" })?;
        self.rest = rest;
        Ok(*head)
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u48(&mut self) -> Result<u64> {
        let low: [u8; 6] = self.array()?;
        let mut bytes = [0; 8];
        bytes[2..].copy_from_slice(&low);
        Ok(u64::from_be_bytes(bytes))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// LEB128, at most ten bytes.
    pub(super) fn varint(&mut self) -> Result<u64> {
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

    pub(super) fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

pub(super) struct Writer<'a> {
    pub(super) out: &'a mut [u8],
    /// Bytes written.
    pub(super) at: usize,
}

impl Writer<'_> {
    pub(super) fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    pub(super) fn varint(&mut self, mut value: u64) -> Option<()> {
        while value >= 0x80 {
            self.put(&[value as u8 | 0x80])?;
            value >>= 7;
        }
        self.put(&[value as u8])
    }
}
