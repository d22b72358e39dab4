//! Samples of systems that have them as `f32`, full scale 1, in the encoding of a stream.

use grebe_frame::Component::U8;
use grebe_process::numbers::{Component, Work, with_component};
use grebe_recording::Encoding;

/// Writes samples, rounded and clipped.
pub(super) fn encode(samples: &[f32], encoding: Encoding, bytes: &mut [u8]) {
    if encoding == Encoding::I24 {
        for (&sample, bytes) in samples.iter().zip(bytes.as_chunks_mut::<3>().0) {
            let count = (f64::from(sample) * I24_FULL_SCALE).round_ties_even();
            let within = count.clamp(-I24_FULL_SCALE, I24_FULL_SCALE - 1.0) as i32;
            bytes.copy_from_slice(&within.to_le_bytes()[..3]);
        }
        return;
    }
    let zero = zero(encoding);
    with_component!(encoding.format, C => {
        for (&sample, bytes) in samples.iter().zip(bytes.chunks_exact_mut(size_of::<C>())) {
            (f64::from(sample) * C::FULL_SCALE + zero).save::<C>(bytes);
        }
    });
}

/// Reads samples.
pub(super) fn decode(bytes: &[u8], encoding: Encoding, samples: &mut [f32]) {
    if encoding == Encoding::I24 {
        for (&[low, middle, high], sample) in bytes.as_chunks::<3>().0.iter().zip(samples) {
            let count = i32::from_le_bytes([0, low, middle, high]) >> 8;
            *sample = (f64::from(count) / I24_FULL_SCALE) as f32;
        }
        return;
    }
    let zero = zero(encoding);
    with_component!(encoding.format, C => {
        for (bytes, sample) in bytes.chunks_exact(size_of::<C>()).zip(samples) {
            *sample = ((C::read(bytes).to_f64() - zero) / C::FULL_SCALE) as f32;
        }
    });
}

/// Silence, in counts.
fn zero(encoding: Encoding) -> f64 {
    if encoding.format.component() == U8 { 128.0 } else { 0.0 }
}

const I24_FULL_SCALE: f64 = 8_388_608.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_up_to_24_bits_come_back_as_they_were() {
        for (name, bytes) in [
            ("i8", vec![0x80, 0xff, 0, 1, 0x7f]),
            ("u8", vec![0, 127, 128, 255]),
            ("i16", [-32_768_i16, -1, 0, 1, 12_345, 32_767].map(i16::to_le_bytes).concat()),
            ("i24", vec![0, 0, 0x80, 0xff, 0xff, 0xff, 0, 0, 0, 0x56, 0x34, 0x12, 0xff, 0xff, 0x7f]),
            ("i32", [i32::MIN, -256, 0, 0x1234_5600].map(i32::to_le_bytes).concat()),
            ("f32", [-1.0_f32, 1e-7, 0.5, 1.5].map(f32::to_le_bytes).concat()),
            ("f64", [-1.0_f64, 0.0, 0.5].map(f64::to_le_bytes).concat()),
            ("ci16", [-32_768_i16, 32_767].map(i16::to_le_bytes).concat()),
        ] {
            let encoding = Encoding::named(name).unwrap();
            let sample_bytes = encoding.sample_bytes() / encoding.format.components();
            let mut samples = vec![0.0; bytes.len() / sample_bytes];
            decode(&bytes, encoding, &mut samples);
            let mut again = vec![0; bytes.len()];
            encode(&samples, encoding, &mut again);
            assert_eq!(again, bytes, "{name}");
        }
    }

    #[test]
    fn full_scale_is_one_and_silence_is_silent() {
        for (name, quarter, silence) in [
            ("i8", vec![32], vec![0]),
            ("u8", vec![160], vec![128]),
            ("i16", vec![0, 32], vec![0; 2]),
            ("i24", vec![0, 0, 32], vec![0; 3]),
            ("i32", vec![0, 0, 0, 32], vec![0; 4]),
        ] {
            let encoding = Encoding::named(name).unwrap();
            let encoded = |sample| {
                let mut bytes = vec![1; quarter.len()];
                encode(&[sample], encoding, &mut bytes);
                bytes
            };
            assert_eq!((encoded(0.25), encoded(0.0)), (quarter.clone(), silence), "{name}");
            // Clips instead of wrapping.
            assert_eq!(encoded(1.5).last(), Some(&if name == "u8" { 255 } else { 127 }), "{name}");
            assert_eq!(encoded(-1.5).last(), Some(&if name == "u8" { 0 } else { 128 }), "{name}");
        }
    }
}
