//! Samples as numbers: how components of any format are read, computed with, and written back, saturated and rounded.
//!
//! Everything works on the bytes of a channel as they stand in a frame, so that neither alignment nor the order of bytes is
//! anybody else's concern. The loops are plain, for compilers to make vector instructions of.

use grebe_frame::{Sample, SampleFormat};

/// What a sample is made of: itself, or I and Q.
pub trait Component: Sample + PartialOrd + 'static {
    /// The least and the greatest, where there are such.
    const LIMITS: Option<(f64, f64)>;
    /// Numbers in one unit of full scale: 1 of floating point.
    const FULL_SCALE: f64;
    /// Starts a search for the smallest and the largest.
    const NOTHING: (Self, Self);
    /// What stands where a sample is missing, to be found again: the lowest number, or none.
    const MARK: Self;
    /// What is precise enough to compute with.
    type Work: Work;

    /// Reads one, little-endian, from as many bytes as it has.
    fn read(bytes: &[u8]) -> Self;
    /// Writes what [`read`](Self::read) reads.
    fn write(self, bytes: &mut [u8]);
    /// As a number of 32 bits.
    fn to_f32(self) -> f32;
    /// As a number of 64 bits.
    fn to_f64(self) -> f64;
    /// Of a number within the limits: the nearest, ties to even.
    fn of_f32(within: f32) -> Self;
    /// As [`of_f32`](Self::of_f32).
    fn of_f64(within: f64) -> Self;
    /// The smaller and the larger of these and of all samples.
    fn extremes(so_far: (Self, Self), samples: &[Self]) -> (Self, Self);
}

/// Arithmetic of 32 or 64 bits.
pub trait Work: Copy + PartialEq + 'static {
    /// The nearest to a number of 64 bits.
    fn of(number: f64) -> Self;
    /// Reads a component.
    fn load<C: Component>(bytes: &[u8]) -> Self;
    /// `self * factor + summand`.
    fn scaled(self, factor: Self, summand: Self) -> Self;
    /// Writes the nearest number; 1 where it was cut to the limits.
    fn save<C: Component>(self, bytes: &mut [u8]) -> u32;
}

/// Runs a piece of code for the type of a format's components.
#[macro_export]
macro_rules! with_component {
    ($format:expr, $C:ident => $body:expr) => {
        match $format.component() {
            grebe_frame::Component::I8 => {
                type $C = i8;
                $body
            }
            grebe_frame::Component::U8 => {
                type $C = u8;
                $body
            }
            grebe_frame::Component::I32 => {
                type $C = i32;
                $body
            }
            grebe_frame::Component::F32 => {
                type $C = f32;
                $body
            }
            grebe_frame::Component::F64 => {
                type $C = f64;
                $body
            }
            grebe_frame::Component::I16 => {
                type $C = i16;
                $body
            }
        }
    };
}
pub use crate::with_component;

/// What stands for zero: the middle of cu8, 0 of the rest.
pub fn zero_of(format: SampleFormat) -> f64 {
    if format == SampleFormat::Cu8 { 127.5 } else { 0.0 }
}

/// Writes `number * factor + summand` of each component of `from`, as components of another type; how many were saturated.
/// A number that is none becomes 0, and counts as saturated, where the result is an integer.
pub fn scale<S: Component, D: Component, W: Work>(
    from: &[u8],
    to: &mut [u8],
    factor: f64,
    summand: f64,
) -> u64 {
    let (factor, summand) = (W::of(factor), W::of(summand));
    let mut saturated = 0;
    let pieces = from.chunks(PIECE * size_of::<S>()).zip(to.chunks_mut(PIECE * size_of::<D>()));
    for (from, to) in pieces {
        // As wide as a number, so that both stay in lanes of one width.
        let mut saturated_here = 0u32;
        for (from, to) in from.chunks_exact(size_of::<S>()).zip(to.chunks_exact_mut(size_of::<D>())) {
            saturated_here += W::load::<S>(from).scaled(factor, summand).save::<D>(to);
        }
        saturated += u64::from(saturated_here);
    }
    saturated
}

/// The same in place.
pub fn scale_in_place<C: Component>(bytes: &mut [u8], factor: f64, summand: f64) -> u64 {
    if C::FORMAT == SampleFormat::I16
        && cfg!(target_endian = "little")
        && let Ok(samples) = bytemuck::try_cast_slice_mut(bytes)
    {
        return scale_i16(samples, factor as f32, summand as f32);
    }
    let (factor, summand) = (C::Work::of(factor), C::Work::of(summand));
    let mut saturated = 0;
    for piece in bytes.chunks_mut(PIECE * size_of::<C>()) {
        let mut saturated_here = 0u32;
        for bytes in piece.chunks_exact_mut(size_of::<C>()) {
            saturated_here += C::Work::load::<C>(bytes).scaled(factor, summand).save::<C>(bytes);
        }
        saturated += u64::from(saturated_here);
    }
    saturated
}

/// The most used format: a tenth faster than through its bytes.
fn scale_i16(samples: &mut [i16], factor: f32, summand: f32) -> u64 {
    let mut saturated = 0;
    // In pieces whose count of saturated samples fits into the lanes that the samples have.
    for piece in samples.chunks_mut(PIECE) {
        let mut saturated_here = 0u16;
        for sample in piece {
            let exact = f32::from(*sample) * factor + summand;
            let within = exact.clamp(-32_768.0, 32_767.0);
            saturated_here += u16::from(exact != within);
            // Within the binade from 2^23 on, a float is a whole number: the sum is rounded by the processor, and its last
            // 16 bits are the sample.
            *sample = (within + 12_582_912.0).to_bits() as i16;
        }
        saturated += u64::from(saturated_here);
    }
    saturated
}

/// Reads all components as numbers around zero.
pub fn load(format: SampleFormat, bytes: &[u8], numbers: &mut [f32]) {
    let zero = zero_of(format) as f32;
    with_component!(format, C => {
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(size_of::<C>())) {
            *number = <C as Component>::read(bytes).to_f32() - zero;
        }
    });
}

/// Writes numbers around zero as components of this format; how many were saturated.
pub fn store(format: SampleFormat, numbers: &[f32], bytes: &mut [u8]) -> u64 {
    let zero = zero_of(format) as f32;
    let mut saturated = 0;
    with_component!(format, C => {
        for (number, bytes) in numbers.iter().zip(bytes.chunks_exact_mut(size_of::<C>())) {
            saturated += u64::from((number + zero).save::<C>(bytes));
        }
    });
    saturated
}

macro_rules! works {
    ($($type:ty: $to:ident, $of:ident);* $(;)?) => {$(
        impl Work for $type {
            #[inline]
            fn of(number: f64) -> Self {
                number as $type
            }

            #[inline]
            fn load<C: Component>(bytes: &[u8]) -> Self {
                C::read(bytes).$to()
            }

            #[inline]
            fn scaled(self, factor: Self, summand: Self) -> Self {
                self * factor + summand
            }

            #[inline]
            fn save<C: Component>(self, bytes: &mut [u8]) -> u32 {
                let Some((low, high)) = C::LIMITS else {
                    C::$of(self).write(bytes);
                    return 0;
                };
                let number = if self.is_nan() { 0.0 } else { self };
                let within = number.clamp(low as $type, high as $type);
                C::$of(within).write(bytes);
                u32::from(self != within)
            }
        }
    )*};
}

works! {
    f32: to_f32, of_f32;
    f64: to_f64, of_f64;
}

macro_rules! integers {
    ($($type:ty: $work:ty, $of_f32:expr, $full_scale:expr);* $(;)?) => {$(
        impl Component for $type {
            const LIMITS: Option<(f64, f64)> = Some((<$type>::MIN as f64, <$type>::MAX as f64));
            const FULL_SCALE: f64 = $full_scale;
            const NOTHING: (Self, Self) = (<$type>::MAX, <$type>::MIN);
            const MARK: Self = <$type>::MIN;
            type Work = $work;

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                bytes.try_into().map_or(0, <$type>::from_le_bytes)
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn to_f32(self) -> f32 {
                self as f32
            }

            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline]
            fn of_f32(within: f32) -> Self {
                $of_f32(within)
            }

            #[inline]
            fn of_f64(within: f64) -> Self {
                // As below, with the 2^52 of an f64.
                (within + 6_755_399_441_055_744.0).to_bits() as Self
            }

            #[inline]
            fn extremes((mut low, mut high): (Self, Self), samples: &[Self]) -> (Self, Self) {
                for &sample in samples {
                    low = low.min(sample);
                    high = high.max(sample);
                }
                (low, high)
            }
        }
    )*};
}

integers! {
    i8: f32, |within: f32| (within + ROUNDER).to_bits() as i8, 128.0;
    u8: f32, |within: f32| (within + ROUNDER).to_bits() as u8, 128.0;
    i16: f32, |within: f32| (within + ROUNDER).to_bits() as i16, 32_768.0;
    // Saturates: 2^31 is a float, 2^31 - 1 is none.
    i32: f64, |within: f32| within.round_ties_even() as i32, 2_147_483_648.0;
}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl Component for $type {
            const LIMITS: Option<(f64, f64)> = None;
            const FULL_SCALE: f64 = 1.0;
            const NOTHING: (Self, Self) = ($type::INFINITY, $type::NEG_INFINITY);
            const MARK: Self = $type::NAN;
            type Work = $type;

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                bytes.try_into().map_or(0.0, $type::from_le_bytes)
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn to_f32(self) -> f32 {
                self as f32
            }

            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline]
            fn of_f32(within: f32) -> Self {
                within as $type
            }

            #[inline]
            fn of_f64(within: f64) -> Self {
                within as $type
            }

            fn extremes(so_far: (Self, Self), samples: &[Self]) -> (Self, Self) {
                // Compilers do not change the order of comparisons of floats: the lanes are ours. NaN is neither smaller nor larger.
                let (mut lows, mut highs) = ([so_far.0; LANES], [so_far.1; LANES]);
                let mut chunks = samples.chunks_exact(LANES);
                for chunk in &mut chunks {
                    for (lane, &sample) in chunk.iter().enumerate() {
                        lows[lane] = if sample < lows[lane] { sample } else { lows[lane] };
                        highs[lane] = if sample > highs[lane] { sample } else { highs[lane] };
                    }
                }
                let (mut low, mut high) = so_far;
                for &sample in lows.iter().chain(chunks.remainder()) {
                    low = if sample < low { sample } else { low };
                }
                for &sample in highs.iter().chain(chunks.remainder()) {
                    high = if sample > high { sample } else { high };
                }
                (low, high)
            }
        }
    )*};
}

floats!(f32, f64);

/// 1.5 x 2^23. Within the binade from 2^23 on, a float is a whole number: a sum is rounded by the processor, ties to even, and its
/// last bits are the integer.
const ROUNDER: f32 = 12_582_912.0;
/// Components at once.
const PIECE: usize = 1 << 14;
const LANES: usize = 16;
