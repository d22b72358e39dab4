//! Counts gaps before frames, for sinks that cannot represent them.

use grebe_frame::Header;

/// Follows the sample index of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gaps {
    next: Option<u64>,
}

impl Gaps {
    /// Samples per channel missing before this frame. None before the first.
    pub(crate) fn before(&mut self, header: &Header) -> u64 {
        let next = self.next.replace(header.next_sample_index());
        next.map_or(0, |next| header.first_sample_index.saturating_sub(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_reported_once_and_a_restarted_stream_has_none() {
        let mut gaps = Gaps::default();
        let mut before = |first_sample_index, block_length_samples| {
            gaps.before(&Header { first_sample_index, block_length_samples, ..Header::default() })
        };
        assert_eq!(
            [before(50, 10), before(60, 5), before(70, 1), before(0, 9), before(9, 1)],
            [0, 0, 5, 0, 0]
        );
    }
}
