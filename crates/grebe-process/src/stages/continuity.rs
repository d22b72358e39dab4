//! Whether a frame follows the one before, for stages that remember samples.

use grebe_frame::Header;

/// Where the next frame begins, if nothing is missing.
#[derive(Debug, Default)]
pub(super) struct Continuity(Option<Header>);

impl Continuity {
    /// Whether the frame goes on where the last ended, in a stream of the same shape.
    pub(super) fn goes_on(&self, header: &Header) -> bool {
        self.0.is_some_and(|last| {
            last.next_sample_index() == header.first_sample_index
                && last.channel_count == header.channel_count
                && last.format == header.format
                && last.sample_rate_hz == header.sample_rate_hz
        })
    }

    /// The frame is the last from now on.
    pub(super) fn note(&mut self, header: &Header) {
        self.0 = Some(*header);
    }
}
