//! Continuity of frames, for stages with memory of samples.

use grebe_frame::Header;

/// Start of the next frame, if nothing is missing.
#[derive(Debug, Default)]
pub(super) struct Continuity(Option<Header>);

impl Continuity {
    /// Whether the frame continues the last one, with the same shape.
    pub(super) fn goes_on(&self, header: &Header) -> bool {
        self.0.is_some_and(|last| {
            last.next_sample_index() == header.first_sample_index
                && last.channel_count == header.channel_count
                && last.format == header.format
                && last.sample_rate_hz == header.sample_rate_hz
        })
    }

    /// Notes the last frame.
    pub(super) fn note(&mut self, header: &Header) {
        self.0 = Some(*header);
    }
}
