//! Converts samples of every format to one of the two kinds that a scope computes with.

use std::borrow::Cow;
use std::ops::Sub;

use grebe_frame::{Complex, Component, Frame, Sample, SampleFormat};
use grebe_scope::{Column, Value, instantaneous_frequency, magnitude, magnitude_db, phase};

use crate::data::lane::Part;

/// The kind that a history keeps samples as: `i16` for real samples of 8 and 16 bits, `f32` for all others.
pub(crate) trait Kind: Value {
    /// All lanes of a frame, one after the other, if the frame stores them that way.
    fn borrowed<'a>(frame: &Frame<'a>) -> Option<&'a [Self]>;

    /// Appends all lanes of a frame to `out`, one after the other; for complex channels I, then Q.
    fn decode(frame: &Frame<'_>, out: &mut Vec<Self>);

    /// Computes a part of complex samples. `before` is the previous sample, unless a gap precedes.
    fn derive(part: Part, before: Option<[Self; 2]>, full_scale: f64, iq: [&[Self]; 2], out: &mut [Self]);

    /// Converts a hysteresis.
    fn hysteresis(value: f64) -> Self::Distance;

    /// The smallest step between two levels near a value.
    fn step_at(value: f64) -> f64;
}

impl Kind for i16 {
    fn borrowed<'a>(frame: &Frame<'a>) -> Option<&'a [i16]> {
        borrowed(frame)
    }

    fn decode(frame: &Frame<'_>, out: &mut Vec<i16>) {
        out.clear();
        match frame.header().format {
            SampleFormat::I8 => widen(frame, out, |sample: i8| sample.into()),
            SampleFormat::U8 => widen(frame, out, |sample: u8| sample.into()),
            _ => widen(frame, out, |sample: i16| sample),
        }
    }

    /// Complex samples always use the other kind.
    fn derive(_: Part, _: Option<[i16; 2]>, _: f64, _: [&[i16]; 2], _: &mut [i16]) {}

    fn hysteresis(value: f64) -> u16 {
        value as u16
    }

    fn step_at(_: f64) -> f64 {
        1.0
    }
}

impl Kind for f32 {
    fn borrowed<'a>(frame: &Frame<'a>) -> Option<&'a [f32]> {
        borrowed(frame)
    }

    fn decode(frame: &Frame<'_>, out: &mut Vec<f32>) {
        out.clear();
        match frame.header().format {
            SampleFormat::I32 => widen(frame, out, |sample: i32| sample as f32),
            SampleFormat::F64 => widen(frame, out, |sample: f64| sample as f32),
            SampleFormat::Ci8 => split(frame, out, |component: i8| component.into()),
            SampleFormat::Cu8 => split(frame, out, |component: u8| f32::from(component) - CU8_ZERO as f32),
            SampleFormat::Ci16 => split(frame, out, |component: i16| component.into()),
            SampleFormat::Cf32 => split(frame, out, |component: f32| component),
            _ => widen(frame, out, |sample: f32| sample),
        }
    }

    fn derive(part: Part, before: Option<[f32; 2]>, full_scale: f64, [i, q]: [&[f32]; 2], out: &mut [f32]) {
        match part {
            Part::Magnitude => magnitude(i, q, out),
            Part::MagnitudeDb => magnitude_db(i, q, full_scale, out),
            Part::Phase => phase(i, q, out),
            Part::Frequency => instantaneous_frequency(before.map(|[i, q]| (i, q)), i, q, out),
            Part::Real | Part::I | Part::Q | Part::Math => {}
        }
    }

    fn hysteresis(value: f64) -> f32 {
        value as f32
    }

    fn step_at(value: f64) -> f64 {
        (value.abs() * 1e-6).max(1e-30)
    }
}

/// Whether samples of the format fit `i16` unchanged.
pub(crate) fn is_short(format: SampleFormat) -> bool {
    matches!(format, SampleFormat::I8 | SampleFormat::U8 | SampleFormat::I16)
}

/// Amplitude of a tone that uses the whole range.
pub(crate) fn full_scale(format: SampleFormat) -> f64 {
    match format.component() {
        Component::I8 => 128.0,
        Component::U8 => CU8_ZERO,
        Component::I16 => 32_768.0,
        Component::I32 => 2_147_483_648.0,
        Component::F32 | Component::F64 => 1.0,
    }
}

/// The range of components, as a scope keeps them; `None` if unlimited.
pub(crate) fn ends(format: SampleFormat) -> Option<(f64, f64)> {
    match format {
        SampleFormat::U8 => Some((0.0, 255.0)),
        SampleFormat::Cu8 => Some((-CU8_ZERO, CU8_ZERO)),
        format => match format.component() {
            Component::I8 => Some((-128.0, 127.0)),
            Component::I16 => Some((-32_768.0, 32_767.0)),
            // Rounded, as its samples.
            Component::I32 => Some((-2_147_483_648.0, 2_147_483_648.0)),
            Component::U8 | Component::F32 | Component::F64 => None,
        },
    }
}

/// The kept value of silence: powers and spectra count from it.
pub(crate) fn silence(format: SampleFormat) -> f64 {
    if format == SampleFormat::U8 { U8_ZERO } else { 0.0 }
}

/// The zero level of a format, which the scope subtracts from the samples.
pub(crate) fn zero(format: SampleFormat) -> f64 {
    if format == SampleFormat::Cu8 { CU8_ZERO } else { 0.0 }
}

fn borrowed<'a, T: Sample>(frame: &Frame<'a>) -> Option<&'a [T]> {
    match frame.samples::<T>() {
        Ok(Cow::Borrowed(samples)) => Some(samples),
        _ => None,
    }
}

fn widen<T: Sample, K>(frame: &Frame<'_>, out: &mut Vec<K>, value: impl Fn(T) -> K) {
    if let Ok(samples) = frame.samples::<T>() {
        out.extend(samples.iter().map(|&sample| value(sample)));
    }
}

fn split<C: Copy + Sub>(frame: &Frame<'_>, out: &mut Vec<f32>, value: impl Fn(C) -> f32)
where
    Complex<C>: Sample,
{
    let Ok(samples) = frame.samples::<Complex<C>>() else { return };
    let block = (frame.header().block_length_samples as usize).max(1);
    for channel in samples.chunks_exact(block) {
        out.extend(channel.iter().map(|sample| value(sample.re)));
        out.extend(channel.iter().map(|sample| value(sample.im)));
    }
}

/// The range 0 to 255 is centred.
const CU8_ZERO: f64 = 127.5;
/// As in WAV files.
const U8_ZERO: f64 = 128.0;

/// Converts columns to `f32`, which has room for every value, so that drawing needs one kind only.
pub(crate) fn drawn<K: Kind>(columns: &[Column<K>]) -> Vec<Column<f32>> {
    let of = |column: &Column<K>| match column.is_empty() {
        true => Column { coverage: column.coverage, ..Column::OUTSIDE },
        false => Column { min: column.min.to_f32(), max: column.max.to_f32(), coverage: column.coverage },
    };
    columns.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use grebe_frame::{Batch, BatchPool, Header};

    use super::*;

    fn frame<T: Sample>(samples: &[T], channels: usize) -> Batch {
        let block = samples.len() / channels;
        let header = Header {
            channel_count: channels as u32,
            format: T::FORMAT,
            block_length_samples: block as u32,
            sample_rate_hz: 1.0,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
        let fill = |channel: usize, out: &mut [T]| out.copy_from_slice(&samples[channel * block..][..block]);
        batch.push::<T>(&header, fill).unwrap();
        batch.freeze()
    }

    fn decoded<K: Kind, T: Sample>(samples: &[T], channels: usize) -> Vec<K> {
        let (batch, mut out) = (frame(samples, channels), Vec::new());
        let frame = batch.frames().next().unwrap();
        match K::borrowed(&frame) {
            Some(samples) => samples.to_vec(),
            None => {
                K::decode(&frame, &mut out);
                out
            }
        }
    }

    #[test]
    fn every_format_keeps_its_values() {
        assert_eq!(decoded::<i16, i16>(&[-7, i16::MAX], 2), [-7, i16::MAX]);
        assert_eq!(decoded::<i16, i8>(&[-128, 127], 1), [-128, 127]);
        assert_eq!(decoded::<i16, u8>(&[0, 255], 1), [0, 255]);
        assert_eq!(decoded::<f32, i32>(&[i32::MIN, 5], 1), [-2_147_483_648.0, 5.0]);
        assert_eq!(decoded::<f32, f32>(&[0.25, -1e30], 2), [0.25, -1e30]);
        assert_eq!(decoded::<f32, f64>(&[0.5, 1e-3], 1), [0.5, 1e-3]);
    }

    #[test]
    fn complex_channels_become_i_and_q_of_each() {
        fn of<C>(re: C, im: C) -> Complex<C> {
            Complex { re, im }
        }
        let two = [of(1i8, 2), of(3, 4), of(5, 6), of(7, 8)];
        assert_eq!(decoded::<f32, _>(&two, 2), [1.0, 3.0, 2.0, 4.0, 5.0, 7.0, 6.0, 8.0]);
        let centred = [Complex { re: 0u8, im: 255 }, Complex { re: 127, im: 128 }];
        assert_eq!(decoded::<f32, _>(&centred, 1), [-127.5, -0.5, 127.5, 0.5]);
        assert_eq!(decoded::<f32, _>(&[of(-3i16, 4)], 1), [-3.0, 4.0]);
        assert_eq!(decoded::<f32, _>(&[of(0.5f32, -0.25)], 1), [0.5, -0.25]);
    }

    #[test]
    fn the_ends_of_a_range_are_what_its_samples_become() {
        assert_eq!(ends(SampleFormat::I32).unwrap().1, f64::from(i32::MAX as f32));
        assert_eq!((ends(SampleFormat::Cf32), ends(SampleFormat::F64)), (None, None));
        assert_eq!(ends(SampleFormat::Ci8), Some((-128.0, 127.0)));
        for format in SampleFormat::ALL {
            assert_eq!(full_scale(format) == 1.0, format.is_float(), "{format}");
        }
    }
}
