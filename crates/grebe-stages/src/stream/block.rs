//! How many samples a frame carries.

use grebe_frame::HEADER_BYTES;

use crate::error::Error;

/// Bytes of a datagram that crosses any network without fragments.
pub(crate) const DATAGRAM_BYTES: usize = 1400;

/// Bytes of the largest datagram that is chosen by default, where nothing but memory lies between the ends.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_000;

/// The chunk size of every source: what the kernel fills with coalesced datagrams at most.
pub(crate) const CHUNK_BYTES: usize = 65_536;

/// The block length, in samples per channel: what a datagram holds, at most 10 ms of the signal, at least one sample, and
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

/// Refuses a size of datagrams that holds no frame, or that UDP cannot carry.
pub(crate) fn check_datagram_bytes(bytes: usize) -> Result<(), Error> {
    if (DATAGRAM_BYTES_MIN..=grebe_datagram::MAX_DATAGRAM_BYTES).contains(&bytes) {
        return Ok(());
    }
    Err(Error::Setting { what: "datagram size", got: bytes.to_string(), must: "give 80 to 65507 bytes" })
}

/// A header and one sample of eight channels.
const DATAGRAM_BYTES_MIN: usize = 80;
const BLOCK_S_MAX: f64 = 0.010;
const ALIGN: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_limits_are_those_that_the_message_names() {
        let error = check_datagram_bytes(79).unwrap_err().to_string();
        assert!(error.contains(&format!("{DATAGRAM_BYTES_MIN} to {}", grebe_datagram::MAX_DATAGRAM_BYTES)));
        assert!(check_datagram_bytes(80).is_ok() && check_datagram_bytes(65_508).is_err());
    }

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
