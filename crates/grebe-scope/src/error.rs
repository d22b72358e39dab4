//! Errors of this crate, and the check of a block that every structure makes before it takes one.

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why a call was refused. A refused call changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The block does not have the number of channels the structure was made for.
    #[error(
        "the block has {got} channels where {expected} are expected: make a new one for a new channel count"
    )]
    ChannelCount {
        /// Channels the structure was made for.
        expected: usize,
        /// Channels of the refused block.
        got: usize,
    },
    /// The channels of one block differ in length.
    #[error("channel {channel} of the block has {got} samples where channel 0 has {expected}")]
    UnequalChannels {
        /// The first channel that differs.
        channel: usize,
        /// Samples of channel 0.
        expected: usize,
        /// Samples of that channel.
        got: usize,
    },
    /// The block begins before the end of the last one.
    #[error(
        "the block begins at sample {got}, before sample {next} that comes next: clear first if a new stream began"
    )]
    IndexWentBack {
        /// The index that would follow without a gap.
        next: u64,
        /// The index of the refused block.
        got: u64,
    },
    /// The block ends beyond the largest sample index (2^62).
    #[error("sample index {got} is beyond 2^62, the largest this scope counts to")]
    IndexTooLarge {
        /// The index of the refused block's first sample.
        got: u64,
    },
    /// The system cannot provide the requested memory.
    #[error("the machine does not lend {asked} bytes of memory: ask for less")]
    OutOfMemory {
        /// Bytes asked for.
        asked: usize,
    },
    /// The memory budget is too small.
    #[error("a budget of {asked} bytes cannot work: at least {least} bytes are needed")]
    Budget {
        /// Bytes asked for.
        asked: usize,
        /// The minimum.
        least: usize,
    },
    /// A setting is out of its range.
    #[error("{what}: {got} was given, {must} is needed")]
    Setting {
        /// Name of the setting.
        what: &'static str,
        /// The given value.
        got: String,
        /// The permitted values.
        must: &'static str,
    },
    /// The PNG encoder failed.
    #[error("the picture could not be written as PNG: {why}")]
    Png {
        /// The encoder's message.
        why: String,
    },
}

/// Largest sample index plus one: 146 years at 1 GSPS, and far from any overflow in sums of two indices.
pub(crate) const INDEX_END: u64 = 1 << 62;

/// Returns the samples per channel of `block`, or the reason why it cannot follow at `next`.
pub(crate) fn check_block<V>(
    block: &[&[V]],
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
