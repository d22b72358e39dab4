//! Formats that exist only in files: their layout, and the stream format that they are read as.

use grebe_frame::SampleFormat;

use super::bytes::{Order, from_file};

/// Format of a sample in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    I24,
    /// The lower three bytes of four.
    I24Of32,
    U16,
    U32,
    I64,
    U64,
    Ci24,
    Ci32,
    Cu16,
    Cu32,
    Cf64,
}

impl Stored {
    const ALL: [Self; 11] = [
        Self::I24,
        Self::I24Of32,
        Self::U16,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::Ci24,
        Self::Ci32,
        Self::Cu16,
        Self::Cu32,
        Self::Cf64,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::I24 => "i24",
            Self::I24Of32 => "i24of32",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::Ci24 => "ci24",
            Self::Ci32 => "ci32",
            Self::Cu16 => "cu16",
            Self::Cu32 => "cu32",
            Self::Cf64 => "cf64",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let name = match name {
            "s24" => "i24",
            "fc64" => "cf64",
            "cs32" | "sc32" | "c32" => "ci32",
            "complex32u" => "cu16",
            name => name,
        };
        Self::ALL.into_iter().find(|stored| stored.name() == name)
    }

    /// Holds its numbers, or the nearest.
    pub(super) const fn format(self) -> SampleFormat {
        match self {
            Self::I24 | Self::I24Of32 | Self::U16 => SampleFormat::I32,
            Self::U32 | Self::I64 | Self::U64 => SampleFormat::F64,
            Self::Ci24 | Self::Ci32 | Self::Cu16 | Self::Cu32 | Self::Cf64 => SampleFormat::Cf32,
        }
    }

    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::U16 => 2,
            Self::I24 => 3,
            Self::I24Of32 | Self::U32 | Self::Cu16 => 4,
            Self::Ci24 => 6,
            Self::I64 | Self::U64 | Self::Ci32 | Self::Cu32 => 8,
            Self::Cf64 => 16,
        }
    }

    pub(super) const fn bits(self) -> Option<u32> {
        match self {
            Self::U16 | Self::Cu16 => Some(16),
            Self::I24 | Self::I24Of32 | Self::Ci24 => Some(24),
            Self::U32 | Self::Ci32 | Self::Cu32 => Some(32),
            Self::I64 | Self::U64 => Some(64),
            Self::Cf64 => None,
        }
    }

    /// Describes the part of its numbers that is kept; `None` if that is all, as usual.
    pub(super) const fn kept(self) -> Option<&'static str> {
        match self {
            Self::I24 | Self::I24Of32 => None,
            Self::U16 | Self::U32 | Self::Ci24 => Some("the same numbers"),
            Self::I64 | Self::U64 => Some("the same numbers up to 2^53, beyond that the nearest"),
            Self::Ci32 | Self::Cf64 => Some("the nearest numbers of 24 bits"),
            Self::Cu16 => Some("around their middle, 32767.5"),
            Self::Cu32 => Some("around their middle, 2147483647.5, the nearest numbers of 24 bits"),
        }
    }

    /// Takes one of `channels` interleaved channels out of a file's bytes.
    pub(super) fn take(self, order: Order, file: &[u8], channel: usize, channels: usize, out: &mut [u8]) {
        match self {
            Self::I24 => real(order, file, channel, channels, out, |bytes| i24(bytes).to_le_bytes()),
            Self::I24Of32 => real(order, file, channel, channels, out, |[low, middle, high, _]: [u8; 4]| {
                i24([low, middle, high]).to_le_bytes()
            }),
            Self::U16 => real(order, file, channel, channels, out, |bytes| {
                i32::from(u16::from_le_bytes(bytes)).to_le_bytes()
            }),
            Self::U32 => real(order, file, channel, channels, out, |bytes| {
                f64::from(u32::from_le_bytes(bytes)).to_le_bytes()
            }),
            Self::I64 => real(order, file, channel, channels, out, |bytes| {
                (i64::from_le_bytes(bytes) as f64).to_le_bytes()
            }),
            Self::U64 => real(order, file, channel, channels, out, |bytes| {
                (u64::from_le_bytes(bytes) as f64).to_le_bytes()
            }),
            Self::Ci24 => complex::<3, 6>(order, file, channel, channels, out, |bytes| i24(bytes) as f32),
            Self::Ci32 => {
                complex::<4, 8>(order, file, channel, channels, out, |bytes| i32::from_le_bytes(bytes) as f32)
            }
            Self::Cu16 => complex::<2, 4>(order, file, channel, channels, out, |bytes| {
                f32::from(u16::from_le_bytes(bytes)) - 32_767.5
            }),
            Self::Cu32 => complex::<4, 8>(order, file, channel, channels, out, |bytes| {
                (f64::from(u32::from_le_bytes(bytes)) - 2_147_483_647.5) as f32
            }),
            Self::Cf64 => complex::<8, 16>(order, file, channel, channels, out, |bytes| {
                f64::from_le_bytes(bytes) as f32
            }),
        }
    }
}

fn i24([low, middle, high]: [u8; 3]) -> i32 {
    i32::from_le_bytes([0, low, middle, high]) >> 8
}

/// `convert` gets the bytes of a number, the lowest first.
#[inline]
fn real<const FILE: usize, const STREAM: usize>(
    order: Order,
    file: &[u8],
    channel: usize,
    channels: usize,
    out: &mut [u8],
    convert: impl Fn([u8; FILE]) -> [u8; STREAM],
) {
    from_file(file, channel, channels, out, |bytes| convert(little(order, bytes)));
}

/// The same for I and Q.
#[inline]
fn complex<const NUMBER: usize, const FILE: usize>(
    order: Order,
    file: &[u8],
    channel: usize,
    channels: usize,
    out: &mut [u8],
    convert: impl Fn([u8; NUMBER]) -> f32,
) {
    from_file(file, channel, channels, out, |sample: [u8; FILE]| {
        let (numbers, _) = sample.as_chunks::<NUMBER>();
        let [i, q] = [numbers[0], numbers[1]].map(|bytes| convert(little(order, bytes)).to_le_bytes());
        [i[0], i[1], i[2], i[3], q[0], q[1], q[2], q[3]]
    });
}

fn little<const BYTES: usize>(order: Order, mut bytes: [u8; BYTES]) -> [u8; BYTES] {
    if order == Order::Big {
        bytes.reverse();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::Encoding;

    fn taken(name: &str, file: &[u8]) -> Vec<u8> {
        let encoding = Encoding::named(name).unwrap();
        let mut out = vec![0; file.len() / encoding.sample_bytes() * encoding.format.bytes()];
        encoding.take(file, 0, 1, &mut out);
        out
    }

    #[test]
    fn numbers_that_no_stream_has_are_read_in_both_orders() {
        let real = |numbers: &[f64]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
        let pair = |i: f32, q: f32| [i.to_le_bytes(), q.to_le_bytes()].concat();
        let joined = |numbers: &[&[u8]]| numbers.concat();
        for (name, little, expected) in [
            ("u16", joined(&[&0u16.to_le_bytes(), &65_535u16.to_le_bytes()]), {
                [0i32, 65_535].iter().flat_map(|it| it.to_le_bytes()).collect()
            }),
            ("u32", u32::MAX.to_le_bytes().to_vec(), real(&[4_294_967_295.0])),
            ("i64", (-7i64).to_le_bytes().to_vec(), real(&[-7.0])),
            ("u64", (1u64 << 53).to_le_bytes().to_vec(), real(&[9_007_199_254_740_992.0])),
            ("ci32", joined(&[&(-70_000i32).to_le_bytes(), &5i32.to_le_bytes()]), pair(-70_000.0, 5.0)),
            ("cu16", joined(&[&0u16.to_le_bytes(), &65_535u16.to_le_bytes()]), pair(-32_767.5, 32_767.5)),
            ("cu32", joined(&[&0u32.to_le_bytes(), &u32::MAX.to_le_bytes()]), {
                pair(-2_147_483_648.0, 2_147_483_648.0)
            }),
            ("cf64", joined(&[&0.1f64.to_le_bytes(), &(-2.5f64).to_le_bytes()]), pair(0.1, -2.5)),
            ("ci24", vec![0xff, 0xff, 0xff, 0, 0, 0x80], pair(-1.0, -8_388_608.0)),
        ] {
            assert_eq!(taken(name, &little), expected, "{name}");
            let encoding = Encoding::named(name).unwrap();
            let components = if encoding.format.is_complex() { 2 } else { 1 };
            let mut big = little.clone();
            big.chunks_mut(encoding.sample_bytes() / components).for_each(<[u8]>::reverse);
            assert_eq!(taken(&format!("{name}be"), &big), expected, "{name}be");
            assert!(encoding.read_as().is_some() && !encoding.is_written(), "{name}");
        }
        // As in ALSA, the highest byte is ignored.
        assert_eq!(taken("i24of32", &[0xfe, 0xff, 0xff, 7]), (-2i32).to_le_bytes());
    }

    #[test]
    fn channels_of_such_samples_are_taken_apart() {
        let file: Vec<u8> = (0u16..6).flat_map(|it| it.to_le_bytes()).collect();
        let mut out = [0; 8];
        Encoding::named("u16").unwrap().take(&file, 1, 3, &mut out);
        assert_eq!(out, [1, 0, 0, 0, 4, 0, 0, 0]);
    }
}
