//! Layout of samples in a payload: the two words of context packets, ANSI/VITA 49.2, section 9.13.3.

use std::fmt;

use grebe_frame::{Component, MAX_CHANNELS, SampleFormat};

use grebe_recording::{Encoding, Order};

/// The two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PayloadFormat(pub(crate) [u32; 2]);

/// A supported layout: the type of a sample, and the number of interleaved channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) encoding: Encoding,
    pub(crate) channels: usize,
}

impl Shape {
    pub(crate) fn new(format: SampleFormat, channels: usize) -> Self {
        Self { encoding: Encoding::new(format, Order::Big), channels }
    }

    /// The same with another byte order.
    pub(crate) fn ordered(self, order: Order) -> Self {
        Self { encoding: Encoding::new(self.encoding.format, order), ..self }
    }

    /// Bytes of one sample of all channels.
    pub(crate) fn sample_bytes(self) -> usize {
        self.encoding.sample_bytes() * self.channels
    }

    pub(crate) fn format(self) -> SampleFormat {
        self.encoding.format
    }
}

impl PayloadFormat {
    /// The words for a layout.
    pub(crate) fn of(shape: Shape) -> Self {
        let format = shape.format();
        let bits = 8 * format.component().bytes() as u32;
        let item = match format.component() {
            Component::U8 => UNSIGNED,
            Component::F32 => SINGLE,
            Component::F64 => DOUBLE,
            Component::I8 | Component::I16 | Component::I32 => SIGNED,
        };
        let kind = if format.is_complex() { CARTESIAN } else { REAL };
        Self([kind << 29 | item << 24 | (bits - 1) << 6 | (bits - 1), shape.channels as u32 - 1])
    }

    /// The layout, if grebe supports it.
    pub(crate) fn shape(self) -> Option<Shape> {
        let bits = self.item_bits();
        let is_plain = self.packing_bits() == bits && self.tags() == 0 && !self.is_repeated();
        let channels = (self.0[1] & 0xffff) as usize + 1;
        if !is_plain || channels > MAX_CHANNELS as usize {
            return None;
        }
        let component = match (self.item(), bits) {
            (SIGNED, 8) => Component::I8,
            (SIGNED, 16) => Component::I16,
            (SIGNED, 32) => Component::I32,
            (UNSIGNED, 8) => Component::U8,
            (SINGLE, 32) => Component::F32,
            (DOUBLE, 64) => Component::F64,
            _ => return None,
        };
        let format = match self.kind() {
            REAL => component.real(),
            CARTESIAN => {
                SampleFormat::ALL.into_iter().find(|it| it.is_complex() && it.component() == component)?
            }
            _ => return None,
        };
        Some(Shape::new(format, channels))
    }

    fn kind(self) -> u32 {
        self.0[0] >> 29 & 3
    }

    fn item(self) -> u32 {
        self.0[0] >> 24 & 0x1f
    }

    /// Whether each sample or component is repeated.
    fn is_repeated(self) -> bool {
        self.0[0] >> 23 & 1 == 1 || self.0[1] >> 16 != 0
    }

    /// Tag bits of each item.
    fn tags(self) -> u32 {
        (self.0[0] >> 20 & 7) + (self.0[0] >> 16 & 15)
    }

    fn packing_bits(self) -> u32 {
        (self.0[0] >> 6 & 0x3f) + 1
    }

    fn item_bits(self) -> u32 {
        (self.0[0] & 0x3f) + 1
    }
}

/// As a text: `complex samples of 12-bit integers`.
impl fmt::Display for PayloadFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind() {
            REAL => "real",
            CARTESIAN => "complex",
            2 => "complex polar",
            _ => "unknown",
        };
        write!(f, "{kind} samples of {}-bit ", self.item_bits())?;
        f.write_str(match self.item() {
            SIGNED => "integers",
            UNSIGNED => "unsigned integers",
            7 => "integers that are not normalised",
            23 => "unsigned integers that are not normalised",
            HALF | SINGLE | DOUBLE => "floating-point numbers",
            1..=6 | 17..=22 => "numbers with an exponent (VRT floating point)",
            _ => "items of an unknown kind",
        })?;
        if self.packing_bits() != self.item_bits() {
            write!(f, " in {} bits", self.packing_bits())?;
        }
        if self.tags() > 0 {
            f.write_str(" with tags")?;
        }
        if self.is_repeated() {
            f.write_str(", each repeated")?;
        }
        match self.0[1] & 0xffff {
            0 => Ok(()),
            vector => write!(f, ", {} side by side", vector + 1),
        }
    }
}

const REAL: u32 = 0;
const CARTESIAN: u32 = 1;
const SIGNED: u32 = 0;
const HALF: u32 = 13;
const SINGLE: u32 = 14;
const DOUBLE: u32 = 15;
const UNSIGNED: u32 = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_standard() {
        // DIFI's for 16-bit and 8-bit complex samples.
        assert_eq!(PayloadFormat::of(Shape::new(SampleFormat::Ci16, 1)).0, [0x2000_03cf, 0]);
        assert_eq!(PayloadFormat::of(Shape::new(SampleFormat::Ci8, 1)).0, [0x2000_01c7, 0]);
        assert_eq!(PayloadFormat::of(Shape::new(SampleFormat::Cf32, 2)).0, [0x2e00_07df, 1]);
        let link_efficient = PayloadFormat([0xa000_03cf, 0]);
        assert_eq!(link_efficient.shape().map(Shape::format), Some(SampleFormat::Ci16), "nothing is packed");
    }

    #[test]
    fn an_unsupported_payload_format_is_named() {
        for (words, says) in [
            ([0xa000_02cb, 0], "complex samples of 12-bit integers"),
            ([0x2000_03cb, 0], "complex samples of 12-bit integers in 16 bits"),
            ([0x4e00_07df, 0], "complex polar samples of 32-bit floating-point numbers"),
            ([0x2000_07df, 0], "complex samples of 32-bit integers"),
            ([0x0d00_03cf, 0], "real samples of 16-bit floating-point numbers"),
            ([0x0010_03cf, 0], "real samples of 16-bit integers with tags"),
            ([0x0000_03cf, 0x1_0001], "real samples of 16-bit integers, each repeated, 2 side by side"),
            ([0x0000_03cf, 300], "real samples of 16-bit integers, 301 side by side"),
            ([0x0300_03cf, 0], "real samples of 16-bit numbers with an exponent (VRT floating point)"),
        ] {
            let format = PayloadFormat(words);
            assert_eq!(format.shape(), None, "{says}");
            assert_eq!(format.to_string(), says);
        }
    }

    proptest! {
        #[test]
        fn every_format_is_written_and_parsed(number in 0u8..10, channels in 1usize..=255) {
            let shape = Shape::new(SampleFormat::from_wire(number).unwrap(), channels);
            prop_assert_eq!(PayloadFormat::of(shape).shape(), Some(shape));
        }

        #[test]
        fn no_words_panic(words: [u32; 2]) {
            let format = PayloadFormat(words);
            prop_assert!(!format.to_string().is_empty());
            if let Some(shape) = format.shape() {
                prop_assert!(shape.sample_bytes() > 0);
            }
        }
    }
}
