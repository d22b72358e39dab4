//! Formats of samples, and their types in Rust.

use std::fmt;
use std::str::FromStr;

use bytemuck::Pod;
use num_complex::Complex;
use serde::{Deserialize, Serialize};

/// Format of the samples of a frame, with its number on the wire.
///
/// A complex sample is two components, I then Q, and counts as one sample. `cu8` is centred: 127.5 stands for zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum SampleFormat {
    /// 16-bit integers.
    #[default]
    I16 = 0,
    /// 8-bit integers.
    I8 = 1,
    /// Unsigned 8-bit integers.
    U8 = 2,
    /// 32-bit integers.
    I32 = 3,
    /// 32-bit floating point.
    F32 = 4,
    /// 64-bit floating point.
    F64 = 5,
    /// Complex, of two 8-bit integers.
    Ci8 = 6,
    /// Complex, of two unsigned 8-bit integers.
    Cu8 = 7,
    /// Complex, of two 16-bit integers.
    Ci16 = 8,
    /// Complex, of two 32-bit floating-point numbers.
    Cf32 = 9,
}

/// Type of a sample's component. A type of its own, so that a match covers all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Component {
    /// An 8-bit integer.
    I8,
    /// An unsigned 8-bit integer.
    U8,
    /// A 16-bit integer.
    I16,
    /// A 32-bit integer.
    I32,
    /// A 32-bit floating-point number.
    F32,
    /// A 64-bit floating-point number.
    F64,
}

impl Component {
    /// The real format of such components.
    #[inline]
    pub const fn real(self) -> SampleFormat {
        match self {
            Component::I8 => SampleFormat::I8,
            Component::U8 => SampleFormat::U8,
            Component::I16 => SampleFormat::I16,
            Component::I32 => SampleFormat::I32,
            Component::F32 => SampleFormat::F32,
            Component::F64 => SampleFormat::F64,
        }
    }

    /// Bytes of a component.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Component::I8 | Component::U8 => 1,
            Component::I16 => 2,
            Component::I32 | Component::F32 => 4,
            Component::F64 => 8,
        }
    }

    /// Whether it is a float, which does not saturate.
    #[inline]
    pub const fn is_float(self) -> bool {
        match self {
            Component::I8 | Component::U8 | Component::I16 | Component::I32 => false,
            Component::F32 | Component::F64 => true,
        }
    }
}

/// The Rust type of the samples of one [`SampleFormat`]. Sealed.
///
/// ```
/// use grebe_frame::{Complex, Sample, SampleFormat};
///
/// assert_eq!(<Complex<f32> as Sample>::FORMAT, SampleFormat::Cf32);
/// assert_eq!(SampleFormat::Cf32.bytes(), std::mem::size_of::<Complex<f32>>());
/// ```
pub trait Sample: Pod + PartialEq + fmt::Debug + Default + Send + Sync + sealed::Sealed {
    /// The format of this type.
    const FORMAT: SampleFormat;
}

/// Error of an unknown sample format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown sample format {0:?}; supported: i8, u8, i16, i32, f32, f64, ci8, cu8, ci16 and cf32")]
pub struct UnknownFormat(pub String);

impl SampleFormat {
    /// All formats, in the order of their numbers on the wire.
    pub const ALL: [SampleFormat; 10] = [
        SampleFormat::I16,
        SampleFormat::I8,
        SampleFormat::U8,
        SampleFormat::I32,
        SampleFormat::F32,
        SampleFormat::F64,
        SampleFormat::Ci8,
        SampleFormat::Cu8,
        SampleFormat::Ci16,
        SampleFormat::Cf32,
    ];

    /// The format with this number on the wire.
    #[inline]
    pub fn from_wire(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Bytes of one sample, I and Q included.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.component().bytes() * self.components()
    }

    /// Whether a sample has two components, I and Q.
    #[inline]
    pub const fn is_complex(self) -> bool {
        matches!(self, SampleFormat::Ci8 | SampleFormat::Cu8 | SampleFormat::Ci16 | SampleFormat::Cf32)
    }

    /// Type of a sample's components: the sample itself, or I and Q.
    #[inline]
    pub const fn component(self) -> Component {
        match self {
            SampleFormat::I8 | SampleFormat::Ci8 => Component::I8,
            SampleFormat::U8 | SampleFormat::Cu8 => Component::U8,
            SampleFormat::I16 | SampleFormat::Ci16 => Component::I16,
            SampleFormat::I32 => Component::I32,
            SampleFormat::F32 | SampleFormat::Cf32 => Component::F32,
            SampleFormat::F64 => Component::F64,
        }
    }

    /// Components of a sample: 1, or 2 if complex.
    #[inline]
    pub const fn components(self) -> usize {
        1 + self.is_complex() as usize
    }

    /// Whether its components are floats, which do not saturate.
    #[inline]
    pub const fn is_float(self) -> bool {
        self.component().is_float()
    }

    /// Name in commands, graph files and file names.
    pub const fn name(self) -> &'static str {
        match self {
            SampleFormat::I16 => "i16",
            SampleFormat::I8 => "i8",
            SampleFormat::U8 => "u8",
            SampleFormat::I32 => "i32",
            SampleFormat::F32 => "f32",
            SampleFormat::F64 => "f64",
            SampleFormat::Ci8 => "ci8",
            SampleFormat::Cu8 => "cu8",
            SampleFormat::Ci16 => "ci16",
            SampleFormat::Cf32 => "cf32",
        }
    }

    /// Converts samples between the byte orders of the wire and the host.
    #[inline]
    pub fn swap_to_host(self, bytes: &mut [u8]) {
        if cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(self.component().bytes()).for_each(<[u8]>::reverse);
        }
    }
}

/// Copies samples from the wire's byte order to the host's.
pub(crate) fn to_host<T: Sample>(bytes: &[u8]) -> Vec<T> {
    let mut samples = vec![T::default(); bytes.len() / size_of::<T>()];
    let copy = bytemuck::cast_slice_mut(&mut samples);
    copy.copy_from_slice(bytes);
    T::FORMAT.swap_to_host(copy);
    samples
}

impl fmt::Display for SampleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SampleFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! samples {
    ($($type:ty => $format:ident),* $(,)?) => {$(
        impl sealed::Sealed for $type {}
        impl Sample for $type {
            const FORMAT: SampleFormat = SampleFormat::$format;
        }
    )*};
}

samples! {
    i16 => I16,
    i8 => I8,
    u8 => U8,
    i32 => I32,
    f32 => F32,
    f64 => F64,
    Complex<i8> => Ci8,
    Complex<u8> => Cu8,
    Complex<i16> => Ci16,
    Complex<f32> => Cf32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_sizes_agree() {
        for (number, format) in SampleFormat::ALL.into_iter().enumerate() {
            assert_eq!(format as usize, number);
            assert_eq!(SampleFormat::from_wire(number as u8), Some(format));
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
            assert_eq!(format.bytes(), format.component().bytes() * format.components());
            assert_eq!(format.component().real().component(), format.component());
            assert_eq!(format.is_complex(), format.component().real() != format);
            assert_eq!(format.is_float(), format.name().contains('f'));
            let bits: usize = format.name().trim_start_matches(['c', 'i', 'u', 'f']).parse().unwrap();
            assert_eq!(format.component().bytes() * 8, bits, "{format}");
            assert_eq!(format.name().starts_with('c'), format.is_complex());
        }
        assert_eq!(SampleFormat::from_wire(10), None);
        assert!("i24".parse::<SampleFormat>().unwrap_err().to_string().contains("ci16 and cf32"));
    }

    #[test]
    fn each_type_is_as_large_as_its_format() {
        fn check<T: Sample>() {
            assert_eq!(T::FORMAT.bytes(), size_of::<T>(), "{}", T::FORMAT);
        }
        check::<i16>();
        check::<i8>();
        check::<u8>();
        check::<i32>();
        check::<f32>();
        check::<f64>();
        check::<Complex<i8>>();
        check::<Complex<u8>>();
        check::<Complex<i16>>();
        check::<Complex<f32>>();
    }
}
