//! Which frames a sink sends.

use grebe_frame::SampleFormat;
use grebe_process::query::Words;

/// A stream that receivers of the first GFH2 do not know.
#[derive(Debug, thiserror::Error)]
#[error(
    "the stream is {format} in {channels} channels, and wire=gfh2 is i16 in 1 to 8: put convert or select before it, or leave wire=gfh2 out"
)]
pub struct Unknown {
    format: SampleFormat,
    channels: u32,
}

/// Which frames a sink sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wire {
    /// Samples of every format, and descriptions.
    #[default]
    Every,
    /// `wire=gfh2`: 16-bit samples in 1 to 8 channels, as they were before there were others, and no descriptions. A stream that does
    /// not fit is refused.
    Gfh2,
}

impl Wire {
    /// What `wire=` may be.
    pub const WORDS: &Words<Self> = &[("gfh2", Self::Gfh2)];

    /// Whether its receivers know such samples.
    ///
    /// # Errors
    /// They do not.
    pub fn check(self, format: SampleFormat, channels: u32) -> Result<(), Unknown> {
        let is_known = format == SampleFormat::I16 && channels <= GFH2_CHANNELS_MAX;
        if self == Wire::Every || is_known { Ok(()) } else { Err(Unknown { format, channels }) }
    }
}

/// Before there were other formats, a header had no place for more.
const GFH2_CHANNELS_MAX: u32 = 8;
