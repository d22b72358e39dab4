//! The check every structure makes of a block before it takes it.

use crate::ScopeError;

/// Largest sample index plus one: 146 years at 1 GSPS, and far from any overflow in sums of two indices.
pub(crate) const INDEX_END: u64 = 1 << 62;

/// Returns the samples a channel of `block`, or why it cannot follow at `next`.
pub(crate) fn check(
    block: &[&[i16]],
    channels: usize,
    first_sample_index: u64,
    next: Option<u64>,
) -> Result<usize, ScopeError> {
    if block.len() != channels {
        return Err(ScopeError::ChannelCount { expected: channels, got: block.len() });
    }
    let len = block.first().map_or(0, |c| c.len());
    if let Some(channel) = block.iter().position(|c| c.len() != len) {
        return Err(ScopeError::UnequalChannels { channel, expected: len, got: block[channel].len() });
    }
    if first_sample_index > INDEX_END - len as u64 {
        return Err(ScopeError::IndexTooLarge { got: first_sample_index });
    }
    match next {
        Some(next) if first_sample_index < next => {
            Err(ScopeError::IndexWentBack { next, got: first_sample_index })
        }
        _ => Ok(len),
    }
}
