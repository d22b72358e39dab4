//! Frame types of a sink.

use grebe_frame::SampleFormat;
use grebe_process::query::Words;

/// Stream that receivers of the first GFH2 do not support.
#[derive(Debug, thiserror::Error)]
#[error(
    "the stream is {format} in {channels} channels, but wire=gfh2 carries i16 in 1 to 8: put a stage convert or select before it, or run grebe convert on a recording first, or omit wire=gfh2"
)]
pub struct Unknown {
    format: SampleFormat,
    channels: u32,
}

/// Frame types of a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wire {
    /// Samples of all formats, and descriptions.
    #[default]
    Every,
    /// `wire=gfh2`: 16-bit samples in 1 to 8 channels, as in the first version, without descriptions. Other
    /// streams are refused.
    Gfh2,
}

impl Wire {
    /// Values of `wire=`.
    pub const WORDS: &Words<Self> = &[("gfh2", Self::Gfh2)];

    /// Checks that receivers support such samples.
    ///
    /// # Errors
    /// They do not.
    pub fn check(self, format: SampleFormat, channels: u32) -> Result<(), Unknown> {
        let is_known = format == SampleFormat::I16 && channels <= GFH2_CHANNELS_MAX;
        if self == Wire::Every || is_known { Ok(()) } else { Err(Unknown { format, channels }) }
    }
}

/// The header of the first version has no room for more.
const GFH2_CHANNELS_MAX: u32 = 8;
