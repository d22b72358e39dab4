//! Bytes of numbers, and their way between a file and a stream.

/// Byte order of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The lowest.
    Little,
    /// The highest.
    Big,
}

#[inline]
pub(super) fn from_file<const FILE: usize, const STREAM: usize>(
    file: &[u8],
    channel: usize,
    channels: usize,
    out: &mut [u8],
    convert: impl Fn([u8; FILE]) -> [u8; STREAM],
) {
    let samples = file.as_chunks::<FILE>().0.iter().skip(channel).step_by(channels);
    for (out, sample) in out.as_chunks_mut::<STREAM>().0.iter_mut().zip(samples) {
        *out = convert(*sample);
    }
}

#[inline]
pub(super) fn into_file<const STREAM: usize, const FILE: usize>(
    samples: &[u8],
    channel: usize,
    channels: usize,
    file: &mut [u8],
    convert: impl Fn([u8; STREAM]) -> [u8; FILE],
) {
    let places = file.as_chunks_mut::<FILE>().0.iter_mut().skip(channel).step_by(channels);
    for (place, sample) in places.zip(samples.as_chunks::<STREAM>().0) {
        *place = convert(*sample);
    }
}
