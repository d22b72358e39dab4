//! Compresses small differences: adaptive Rice codes.
//!
//! A code is a number of ones, a zero, and `k` bits. `k` follows the mean of the previous values, so it is not sent.
//! Encoding takes a few additions and shifts, so that a browser can decode it quickly.

use crate::remote::bytes::Malformed;

/// State of the adaptive code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    sum: u64,
    count: u64,
}

/// Writes bits, from the highest of each byte on.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet.
    bits: u64,
    pending: u32,
}

/// Reads bits.
#[derive(Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Position of the next bit.
    at: usize,
}

impl Default for Context {
    fn default() -> Context {
        Context { sum: 8, count: 1 }
    }
}

impl Context {
    /// Number of low bits that are sent as they are.
    fn low_bits(&self) -> u32 {
        let mean = self.sum.div_ceil(self.count);
        // The smallest k with 2^k of at least the mean.
        mean.next_power_of_two().trailing_zeros().min(31)
    }

    fn learn(&mut self, value: u32) {
        self.sum += u64::from(value);
        self.count += 1;
        if self.count == COUNT_MAX {
            self.sum /= 2;
            self.count /= 2;
        }
    }

    pub(crate) fn write(&mut self, value: u32, out: &mut BitWriter) {
        let low = self.low_bits();
        let ones = value >> low;
        if ones < ONES_MAX {
            out.put((1u64 << (ones + 1)) - 2, ones + 1);
            out.put(u64::from(value) & ((1 << low) - 1), low);
        } else {
            out.put((1 << ONES_MAX) - 1, ONES_MAX);
            out.put(u64::from(value), 32);
        }
        self.learn(value);
    }

    /// Bits that [`write`](Context::write) would take.
    pub(crate) fn cost(&mut self, value: u32) -> u64 {
        let low = self.low_bits();
        let ones = value >> low;
        self.learn(value);
        u64::from(if ones < ONES_MAX { ones + 1 + low } else { ONES_MAX + 32 })
    }

    pub(crate) fn read(&mut self, from: &mut BitReader<'_>) -> Result<u32, Malformed> {
        let low = self.low_bits();
        let mut ones = 0;
        while ones < ONES_MAX && from.take(1)? == 1 {
            ones += 1;
        }
        let value = match ones {
            ONES_MAX => from.take(32)?,
            _ => (ones << low) | from.take(low)?,
        };
        self.learn(value);
        Ok(value)
    }

    /// Writes a signed difference.
    pub(crate) fn write_signed(&mut self, value: i32, out: &mut BitWriter) {
        self.write(unsigned(value), out);
    }

    pub(crate) fn read_signed(&mut self, from: &mut BitReader<'_>) -> Result<i32, Malformed> {
        let value = self.read(from)?;
        Ok((value >> 1) as i32 ^ -((value & 1) as i32))
    }
}

/// Maps signed to unsigned: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
pub(crate) fn unsigned(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

/// Encodes values that change slowly.
pub(crate) fn write_run(values: impl Iterator<Item = i32>) -> Vec<u8> {
    let (mut out, mut context, mut before) = (BitWriter::default(), Context::default(), 0);
    for value in values {
        context.write_signed(value.wrapping_sub(before), &mut out);
        before = value;
    }
    out.finish()
}

/// Decodes `count` values of [`write_run`]. The caller bounds `count`.
pub(crate) fn read_run(bytes: &[u8], count: usize) -> Result<Vec<i32>, Malformed> {
    let mut from = BitReader::new(bytes);
    from.has_room_for(count)?;
    let (mut context, mut before) = (Context::default(), 0i32);
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        before = before.wrapping_add(context.read_signed(&mut from)?);
        values.push(before);
    }
    Ok(values)
}

impl BitWriter {
    /// Appends the low `count` bits of `bits`, at most 32. The higher bits must be zero.
    fn put(&mut self, bits: u64, count: u32) {
        self.bits = (self.bits << count) | bits;
        self.pending += count;
        while self.pending >= 8 {
            self.pending -= 8;
            self.bytes.push((self.bits >> self.pending) as u8);
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let rest = (8 - self.pending % 8) % 8;
        self.put(0, rest);
        self.bytes
    }
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, at: 0 }
    }

    /// # Errors
    /// If the bytes cannot hold that number of codes, of at least one bit each. Checked before memory is reserved.
    pub(crate) fn has_room_for(&self, codes: usize) -> Result<(), Malformed> {
        if codes <= self.bytes.len() * 8 { Ok(()) } else { Err(FEW_BITS) }
    }

    fn take(&mut self, count: u32) -> Result<u32, Malformed> {
        let end = self.at + count as usize;
        if end > self.bytes.len() * 8 {
            return Err(FEW_BITS);
        }
        let mut value = 0u64;
        while self.at < end {
            let (byte, within) = (self.bytes[self.at / 8], self.at % 8);
            let bits = (8 - within).min(end - self.at);
            let taken = ((u64::from(byte) << within) & 0xff) >> (8 - bits);
            value = (value << bits) | taken;
            self.at += bits;
        }
        Ok(value as u32)
    }
}

/// Above this, a value is sent as it is.
const ONES_MAX: u32 = 20;
/// Above this, count and sum are halved, so that old values lose weight.
const COUNT_MAX: u64 = 64;
const FEW_BITS: Malformed = Malformed("it has fewer bits than values");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_are_read_as_they_were_written(values: Vec<i32>, small in prop::collection::vec(-3..4i32, 0..300)) {
            for values in [values, small] {
                let bytes = write_run(values.iter().copied());
                prop_assert_eq!(read_run(&bytes, values.len()), Ok(values));
            }
        }

        #[test]
        fn the_cost_is_what_is_written(values: Vec<u32>) {
            let (mut out, mut written, mut counted) = (BitWriter::default(), Context::default(), Context::default());
            let mut bits = 0;
            for value in values {
                written.write(value, &mut out);
                bits += counted.cost(value);
            }
            prop_assert_eq!(out.finish().len() as u64, bits.div_ceil(8));
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>, count in 0..5000usize) {
            let _ = read_run(&bytes, count);
        }
    }

    #[test]
    fn what_stays_the_same_takes_a_bit() {
        let bytes = write_run(std::iter::repeat_n(0, 8000));
        assert!((1000..1010).contains(&bytes.len()), "{}", bytes.len());
        let noise = write_run((0..8000).map(|n: i32| n.wrapping_mul(0x9e37_79b1_u32 as i32) >> 27));
        assert!(noise.len() < 8000 * 7 / 8, "{}", noise.len());
    }
}
