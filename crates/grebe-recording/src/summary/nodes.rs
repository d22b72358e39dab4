//! Content of a node, and its computation from the bytes of a channel.

use grebe_frame::{Component, SampleFormat};
use grebe_scope::Value;

/// Smallest and largest of some samples, as a scope draws them: integers are exact, longer ones and `f64` are rounded
/// to `f32`; cu8 is centred at 0. NaN does not count; if all are NaN, `min` is above `max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// Smallest sample.
    pub min: f32,
    /// Largest sample.
    pub max: f32,
}

/// Sums over the finite ones of some samples, as [`Extremes`] has them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LevelSums {
    /// Sum of the samples.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_sq: f64,
    /// Samples that are infinite or not a number.
    pub not_finite: u64,
    /// Samples, finite or not.
    pub count: u64,
}

impl Extremes {
    /// Extremes of no samples.
    pub const NONE: Self = Self { min: f32::INFINITY, max: f32::NEG_INFINITY };

    /// Adds those of further samples.
    #[inline]
    pub fn merge(&mut self, other: Self) {
        self.min = if other.min < self.min { other.min } else { self.min };
        self.max = if other.max > self.max { other.max } else { self.max };
    }
}

impl LevelSums {
    /// Adds those of further samples.
    #[inline]
    pub fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.sum_sq += other.sum_sq;
        self.not_finite += other.not_finite;
        self.count += other.count;
    }
}

/// How the lanes of a format are kept: a lane is a real channel, or I or Q of a complex one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lanes {
    pub(super) format: SampleFormat,
    /// Real channels, or twice the complex ones.
    pub(super) count: usize,
    /// Lanes of a channel, side by side in its bytes.
    pub(super) of_channel: usize,
}

impl Lanes {
    pub(super) fn new(format: SampleFormat, channels: usize) -> Self {
        let of_channel = format.components();
        Self { format, count: channels * of_channel, of_channel }
    }

    /// Bytes of one value of a node in the file.
    pub(super) fn value_bytes(self) -> usize {
        match self.format.component() {
            Component::I8 | Component::U8 => 1,
            Component::I16 => 2,
            Component::I32 | Component::F32 | Component::F64 => 4,
        }
    }

    /// Writes nodes in the format of the file.
    pub(super) fn encode(self, nodes: &[Extremes], out: &mut Vec<u8>) {
        let zero = self.zero();
        match self.format.component() {
            Component::I8 => {
                put(nodes, out, |value| [value as i8 as u8]);
            }
            Component::U8 => put(nodes, out, |value| [(value + zero) as u8]),
            Component::I16 => put(nodes, out, |value| (value as i16).to_le_bytes()),
            Component::I32 | Component::F32 | Component::F64 => put(nodes, out, f32::to_le_bytes),
        }
    }

    /// Reads nodes; ignores a partial node at the end.
    pub(super) fn decode(self, bytes: &[u8], out: &mut Vec<Extremes>) {
        let zero = self.zero();
        match self.format.component() {
            Component::I8 => take(bytes, out, |[byte]| f32::from(byte as i8)),
            Component::U8 => take(bytes, out, |[byte]| f32::from(byte) - zero),
            Component::I16 => {
                take(bytes, out, |bytes| f32::from(i16::from_le_bytes(bytes)));
            }
            Component::I32 | Component::F32 | Component::F64 => take(bytes, out, f32::from_le_bytes),
        }
    }

    /// Offset subtracted from samples of the format.
    fn zero(self) -> f32 {
        if self.format == SampleFormat::Cu8 { CU8_ZERO } else { 0.0 }
    }

    /// Tells `node` the extremes and sums of each [`NODE_SAMPLES`] samples of a lane, the last ones fewer, within the
    /// bytes of its channel.
    pub(super) fn measure(self, lane: usize, bytes: &[u8], node: impl FnMut(Extremes, LevelSums)) {
        let at = lane % self.of_channel;
        // Reads them in place if they are aligned numbers: a copy costs as much as the rest.
        let is_little = cfg!(target_endian = "little");
        match self.format {
            SampleFormat::I16 if is_little && let Ok(samples) = bytemuck::try_cast_slice(bytes) => {
                measured_as_they_stand::<i16>(samples, node)
            }
            SampleFormat::F32 if is_little && let Ok(samples) = bytemuck::try_cast_slice(bytes) => {
                measured_as_they_stand::<f32>(samples, node)
            }
            SampleFormat::I8 => measured::<1, 1, i16>(bytes, at, |[byte]| (byte as i8).into(), node),
            SampleFormat::U8 => measured::<1, 1, i16>(bytes, at, |[byte]| byte.into(), node),
            SampleFormat::I16 => measured::<2, 1, _>(bytes, at, i16::from_le_bytes, node),
            SampleFormat::Ci8 => measured::<1, 2, i16>(bytes, at, |[byte]| (byte as i8).into(), node),
            SampleFormat::Ci16 => measured::<2, 2, _>(bytes, at, i16::from_le_bytes, node),
            SampleFormat::Cu8 => measured::<1, 2, _>(bytes, at, |[byte]| f32::from(byte) - CU8_ZERO, node),
            SampleFormat::I32 => {
                measured::<4, 1, _>(bytes, at, |bytes| i32::from_le_bytes(bytes) as f32, node)
            }
            SampleFormat::F64 => {
                measured::<8, 1, _>(bytes, at, |bytes| f64::from_le_bytes(bytes) as f32, node)
            }
            SampleFormat::Cf32 => measured::<4, 2, _>(bytes, at, f32::from_le_bytes, node),
            SampleFormat::F32 => measured::<4, 1, _>(bytes, at, f32::from_le_bytes, node),
        }
    }
}

impl Lanes {
    /// Appends the samples of a lane, within the bytes of its channel, to `out`: as a scope keeps them, those of cu8
    /// around 0.
    pub(super) fn values(self, lane: usize, bytes: &[u8], out: &mut Vec<f32>) {
        let at = lane % self.of_channel;
        match self.format {
            SampleFormat::I8 => out.extend(numbers::<1, 1>(bytes, at).map(|[byte]| f32::from(byte as i8))),
            SampleFormat::U8 => out.extend(numbers::<1, 1>(bytes, at).map(|[byte]| f32::from(byte))),
            SampleFormat::I16 => {
                out.extend(numbers::<2, 1>(bytes, at).map(|bytes| f32::from(i16::from_le_bytes(bytes))));
            }
            SampleFormat::Ci8 => out.extend(numbers::<1, 2>(bytes, at).map(|[byte]| f32::from(byte as i8))),
            SampleFormat::Ci16 => {
                out.extend(numbers::<2, 2>(bytes, at).map(|bytes| f32::from(i16::from_le_bytes(bytes))));
            }
            SampleFormat::Cu8 => {
                out.extend(numbers::<1, 2>(bytes, at).map(|[byte]| f32::from(byte) - CU8_ZERO));
            }
            SampleFormat::I32 => {
                out.extend(numbers::<4, 1>(bytes, at).map(|bytes| i32::from_le_bytes(bytes) as f32));
            }
            SampleFormat::F64 => {
                out.extend(numbers::<8, 1>(bytes, at).map(|bytes| f64::from_le_bytes(bytes) as f32));
            }
            SampleFormat::Cf32 => out.extend(numbers::<4, 2>(bytes, at).map(f32::from_le_bytes)),
            SampleFormat::F32 => out.extend(numbers::<4, 1>(bytes, at).map(f32::from_le_bytes)),
        }
    }
}

/// Every `STEP`-th number of `BYTES` bytes, from the one at `at` on.
fn numbers<const BYTES: usize, const STEP: usize>(
    bytes: &[u8],
    at: usize,
) -> impl Iterator<Item = [u8; BYTES]> {
    let numbers = bytes.as_chunks::<BYTES>().0;
    // Chunks of a length that the compiler knows become vector code.
    numbers.as_chunks::<STEP>().0.iter().map(move |numbers| numbers[at])
}

/// Measures numbers that are converted a node at a time: in the first-level cache.
fn measured<const BYTES: usize, const STEP: usize, V: Value>(
    bytes: &[u8],
    at: usize,
    value: impl Fn([u8; BYTES]) -> V,
    mut node: impl FnMut(Extremes, LevelSums),
) {
    let mut values = [V::default(); NODE_SAMPLES];
    for part in bytes.chunks(NODE_SAMPLES * STEP * BYTES) {
        let numbers = numbers::<BYTES, STEP>(part, at);
        values.iter_mut().zip(numbers).for_each(|(place, number)| *place = value(number));
        measured_as_they_stand(&values[..part.len() / (STEP * BYTES)], &mut node);
    }
}

/// Measures numbers as the scope does.
fn measured_as_they_stand<V: Value>(samples: &[V], mut node: impl FnMut(Extremes, LevelSums)) {
    for samples in samples.chunks(NODE_SAMPLES) {
        let stats = grebe_scope::stats(samples);
        let (sum, sum_sq, not_finite) = stats.totals();
        let sums = LevelSums { sum, sum_sq, not_finite, count: samples.len() as u64 };
        node(Extremes { min: stats.min.to_f32(), max: stats.max.to_f32() }, sums);
    }
}

fn put<const N: usize>(nodes: &[Extremes], out: &mut Vec<u8>, bytes: impl Fn(f32) -> [u8; N]) {
    for node in nodes {
        out.extend_from_slice(&bytes(node.min));
        out.extend_from_slice(&bytes(node.max));
    }
}

fn take<const N: usize>(bytes: &[u8], out: &mut Vec<Extremes>, value: impl Fn([u8; N]) -> f32) {
    let values = bytes.as_chunks::<N>().0;
    out.extend(
        values.as_chunks::<2>().0.iter().map(|&[min, max]| Extremes { min: value(min), max: value(max) }),
    );
}

/// The middle of the range of a `u8`.
const CU8_ZERO: f32 = 127.5;
/// Samples of the finest nodes.
pub(super) const NODE_SAMPLES: usize = 256;
