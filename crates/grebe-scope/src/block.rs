//! The check every structure makes of a block before it takes it.

use crate::error::{Error, Result};

/// Largest sample index plus one: 146 years at 1 GSPS, and far from any overflow in sums of two indices.
pub(crate) const INDEX_END: u64 = 1 << 62;

/// Returns the samples per channel of `block`, or why it cannot follow at `next`.
pub(crate) fn check(
    block: &[&[i16]],
    channels: usize,
    first_sample_index: u64,
    next: Option<u64>,
) -> Result<usize> {
    if block.len() != channels {
        return Err(Error::ChannelCount { expected: channels, got: block.len() });
    }
    let len = block.first().map_or(0, |c| c.len());
    if let Some(channel) = block.iter().position(|c| c.len() != len) {
        return Err(Error::UnequalChannels { channel, expected: len, got: block[channel].len() });
    }
    if first_sample_index > INDEX_END - len as u64 {
        return Err(Error::IndexTooLarge { got: first_sample_index });
    }
    match next {
        Some(next) if first_sample_index < next => {
            Err(Error::IndexWentBack { next, got: first_sample_index })
        }
        _ => Ok(len),
    }
}
