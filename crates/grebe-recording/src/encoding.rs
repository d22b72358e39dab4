//! Layout of samples in a file or a byte stream: interleaved by channel. Streams have one channel after the
//! other.

mod bytes;
mod stored;

use std::fmt;

use grebe_frame::SampleFormat;

pub use self::bytes::Order;

use self::bytes::{from_file, into_file};
use self::stored::Stored;

/// Encoding of a sample in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// Format in a stream.
    pub format: SampleFormat,
    order: Order,
    /// Format in the file, if no stream has such samples.
    stored: Option<Stored>,
}

impl Encoding {
    /// Integers of 24 bits, little-endian; in a stream `i32` with the same values.
    pub const I24: Self = Self::stored(Stored::I24, Order::Little);
    /// The same in the lower three of four bytes.
    pub(crate) const I24_OF_32: Self = Self::stored(Stored::I24Of32, Order::Little);

    /// Samples of a stream's format with their bytes in this order.
    pub fn new(format: SampleFormat, order: Order) -> Self {
        // A single byte has no order.
        let order = if format.component().bytes() == 1 { Order::Little } else { order };
        Self { format, order, stored: None }
    }

    const fn stored(stored: Stored, order: Order) -> Self {
        Self { format: stored.format(), order, stored: Some(stored) }
    }

    /// As a stream has it.
    pub fn of(format: SampleFormat) -> Self {
        Self::new(format, Order::Little)
    }

    /// Parses any name in use, with `be` or `le` after it: the names of GNU Radio, inspectrum, Universal
    /// Radio Hacker and receiver programs.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let ordered = |ending: &str, order| Self::known(name.strip_suffix(ending)?, order);
        let little = || ordered("le", Order::Little);
        Self::known(&name, Order::Little).or_else(|| ordered("be", Order::Big)).or_else(little)
    }

    /// Parses a name without a byte order.
    fn known(name: &str, order: Order) -> Option<Self> {
        let format = match name {
            "cfile" | "fc32" | "complex" => SampleFormat::Cf32,
            "cs16" | "sc16" | "c16" | "complex32s" => SampleFormat::Ci16,
            "cs8" | "sc8" | "c8" | "complex16s" => SampleFormat::Ci8,
            "uc8" | "complex16u" => SampleFormat::Cu8,
            "s8" => SampleFormat::I8,
            "s16" => SampleFormat::I16,
            "s32" => SampleFormat::I32,
            _ => match name.parse() {
                Ok(format) => format,
                Err(_) => return Some(Self::stored(Stored::named(name)?, order)),
            },
        };
        Some(Self::new(format, order))
    }

    /// Supported formats, for messages.
    pub fn names() -> String {
        let all = SampleFormat::ALL.map(SampleFormat::name).join(", ");
        format!("one of {all}, i24, u16, u32, ci32, cu16, cf64, with be after it for big-endian")
    }

    /// Pairs of such numbers, I and Q, as one complex sample.
    pub(crate) fn paired(self) -> Option<Self> {
        let name = match self.stored {
            None => format!("c{}", self.format),
            Some(stored) => format!("c{}", stored.name()),
        };
        Some(Self { order: self.order, ..Self::named(&name)? })
    }

    /// Bytes of one sample in the file.
    pub fn sample_bytes(self) -> usize {
        self.stored.map_or(self.format.bytes(), Stored::bytes)
    }

    /// Whether a sample has the same bytes in the file and in a stream.
    pub fn is_as_streamed(self) -> bool {
        self.order == Order::Little && self.stored.is_none()
    }

    /// Whether samples can be written so: as a stream has them in either order, or with 24 bits.
    pub fn is_written(self) -> bool {
        self.stored.is_none() || self == Self::I24
    }

    /// Number of bits that a component uses, if it differs from its format in a stream.
    pub fn bits(self) -> Option<u32> {
        self.stored.and_then(Stored::bits)
    }

    /// How samples that no stream has are read, for people.
    pub fn read_as(self) -> Option<String> {
        Some(format!("its samples are {self}, and are read as {}: {}", self.format, self.stored?.kept()?))
    }

    /// Takes one of `channels` interleaved channels out of a file's bytes.
    pub fn take(self, file: &[u8], channel: usize, channels: usize, out: &mut [u8]) {
        if let Some(stored) = self.stored {
            return stored.take(self.order, file, channel, channels, out);
        }
        match self.sample_bytes() {
            1 => from_file::<1, 1>(file, channel, channels, out, |sample| sample),
            2 => from_file::<2, 2>(file, channel, channels, out, |sample| sample),
            4 => from_file::<4, 4>(file, channel, channels, out, |sample| sample),
            _ => from_file::<8, 8>(file, channel, channels, out, |sample| sample),
        }
        self.swap(out);
    }

    /// Writes the samples of one of `channels` channels to their interleaved places, little-endian; call
    /// [`swap`](Self::swap) once all channels are there. Only for encodings that can be [written](Self::is_written).
    pub fn put(self, samples: &[u8], channel: usize, channels: usize, file: &mut [u8]) {
        match self.sample_bytes() {
            1 => into_file::<1, 1>(samples, channel, channels, file, |sample| sample),
            2 => into_file::<2, 2>(samples, channel, channels, file, |sample| sample),
            3 => into_file::<4, 3>(samples, channel, channels, file, |[low, middle, high, _]| {
                [low, middle, high]
            }),
            4 => into_file::<4, 4>(samples, channel, channels, file, |sample| sample),
            _ => into_file::<8, 8>(samples, channel, channels, file, |sample| sample),
        }
    }

    /// Turns the bytes of each number round, where the file is big-endian.
    pub fn swap(self, samples: &mut [u8]) {
        if self.order == Order::Little {
            return;
        }
        match self.format.component().bytes() {
            2 => samples.as_chunks_mut::<2>().0.iter_mut().for_each(|number| number.reverse()),
            4 => samples.as_chunks_mut::<4>().0.iter_mut().for_each(|number| number.reverse()),
            _ => samples.as_chunks_mut::<8>().0.iter_mut().for_each(|number| number.reverse()),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.stored.map_or(self.format.name(), Stored::name);
        write!(f, "{name}{}", if self.order == Order::Big { "be" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(encoding: Encoding, file: &[u8], channels: usize) -> Vec<Vec<u8>> {
        let length = file.len() / encoding.sample_bytes() / channels;
        let take = |channel| {
            let mut out = vec![0; length * encoding.format.bytes()];
            encoding.take(file, channel, channels, &mut out);
            out
        };
        (0..channels).map(take).collect()
    }

    #[test]
    fn numbers_keep_their_values_in_both_orders() {
        let big = |format| Encoding::new(format, Order::Big);
        let one = |encoding, file: &[u8]| taken(encoding, file, 1).remove(0);
        assert_eq!(one(big(SampleFormat::I16), &[0x12, 0x34]), 0x1234i16.to_le_bytes());
        assert_eq!(one(big(SampleFormat::I32), &(-70_000i32).to_be_bytes()), (-70_000i32).to_le_bytes());
        assert_eq!(one(big(SampleFormat::F64), &0.1f64.to_be_bytes()), 0.1f64.to_le_bytes());
        assert_eq!(one(big(SampleFormat::Ci16), &[1, 2, 3, 4]), [2, 1, 4, 3], "I stays before Q");
        let complex = [1.5f32.to_be_bytes(), (-2.0f32).to_be_bytes()].concat();
        let expected = [1.5f32.to_le_bytes(), (-2.0f32).to_le_bytes()].concat();
        assert_eq!(one(big(SampleFormat::Cf32), &complex), expected);
        assert_eq!(one(big(SampleFormat::Ci8), &[1, 2]), [1, 2]);
        for (value, bytes) in
            [(-1i32, [0xff; 3]), (-8_388_608, [0, 0, 0x80]), (8_388_607, [0xff, 0xff, 0x7f])]
        {
            assert_eq!(one(Encoding::I24, &bytes), value.to_le_bytes());
        }
    }

    proptest! {
        #[test]
        fn channels_are_split_and_joined(
            number in 0usize..11,
            channels in 1usize..=255,
            length in 0usize..40,
        ) {
            let encoding = SampleFormat::ALL.get(number).map_or(Encoding::I24, |&format| Encoding::of(format));
            let bytes = encoding.sample_bytes();
            let file: Vec<u8> = (0..length * channels * bytes).map(|at| (at * 31 + at / 256) as u8).collect();
            let mut again = vec![0; file.len()];
            for (channel, samples) in taken(encoding, &file, channels).iter().enumerate() {
                for at in 0..length {
                    let (there, here) = ((at * channels + channel) * bytes, at * encoding.format.bytes());
                    prop_assert_eq!(&samples[here..here + bytes], &file[there..there + bytes]);
                }
                encoding.put(samples, channel, channels, &mut again);
            }
            prop_assert_eq!(again, file);
        }
    }
}
