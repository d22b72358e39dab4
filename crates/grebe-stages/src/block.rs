//! How many samples a frame carries.

use grebe_frame::HEADER_BYTES;

/// Bytes of a datagram that crosses any network without fragments.
pub const DATAGRAM_BYTES: usize = 1400;

/// Bytes of the largest datagram that is used by itself, where nothing but memory lies between the ends.
pub const DATAGRAM_BYTES_MAX: usize = 65_000;

/// The block length, in samples a channel: what a datagram holds, at most 10 ms of the signal, at least one sample, and
/// rounded down to 32 where it is larger, so that every channel begins at a multiple of 64 bytes.
///
/// ```
/// use grebe_stages::block_length;
///
/// assert_eq!(block_length(1400, 1, 100e6), 640);
/// assert_eq!(block_length(1400, 4, 25e6), 160);
/// assert_eq!(block_length(1400, 1, 360.0), 3);
/// assert_eq!(block_length(1400, 1, 0.0), 640, "no rate, no limit in time");
/// ```
pub fn block_length(datagram_bytes: usize, channels: usize, rate_hz: f64) -> u32 {
    let fits = datagram_bytes.saturating_sub(HEADER_BYTES) / (2 * channels.max(1));
    let timely = if rate_hz > 0.0 { (rate_hz * BLOCK_S_MAX) as usize } else { usize::MAX };
    let block = fits.min(timely).max(1);
    (if block > ALIGN { block - block % ALIGN } else { block }) as u32
}

const BLOCK_S_MAX: f64 = 0.010;
const ALIGN: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_block_fits_its_datagram(bytes in 80usize..65_508, channels in 1usize..=8, rate in 0.0..1e10f64) {
            let block = block_length(bytes, channels, rate) as usize;
            prop_assert!(block >= 1);
            prop_assert!(HEADER_BYTES + block * channels * 2 <= bytes);
            prop_assert!(block <= 32 || block.is_multiple_of(32));
        }
    }
}
