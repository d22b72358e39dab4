//! Numbers out of and into the bytes of a packet, big-endian, checked for its end.

use super::{Stamp, TRAIN_SHIFT};
use crate::{Error, Result};

pub(super) struct Reader<'a> {
    pub rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Error::Malformed { what: "a frame that is cut short" })?;
        self.rest = rest;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u48(&mut self) -> Result<u64> {
        let low: [u8; 6] = self.array()?;
        let mut bytes = [0; 8];
        bytes[2..].copy_from_slice(&low);
        Ok(u64::from_be_bytes(bytes))
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub fn stamp(&mut self, train: u8) -> Result<Stamp> {
        Ok(Stamp { rtt_code: self.u8()?, sent_us: self.u32()?, train })
    }

    /// LEB128, at most ten bytes.
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

    pub fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

pub(super) struct Writer<'a> {
    pub out: &'a mut [u8],
    /// Bytes written.
    pub at: usize,
}

impl Writer<'_> {
    pub fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    pub fn head(&mut self, kind: u8, stamp: Stamp) -> Option<()> {
        self.put(&[kind | stamp.train << TRAIN_SHIFT, stamp.rtt_code])?;
        self.put(&stamp.sent_us.to_be_bytes())
    }

    pub fn varint(&mut self, mut value: u64) -> Option<()> {
        while value >= 0x80 {
            self.put(&[value as u8 | 0x80])?;
            value >>= 7;
        }
        self.put(&[value as u8])
    }
}
