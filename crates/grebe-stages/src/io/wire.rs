//! Which frames a sink sends.

use grebe_frame::SampleFormat;

use crate::error::Error;
use crate::query::Words;

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
    pub(crate) const WORDS: &Words<Self> = &[("gfh2", Self::Gfh2)];

    /// Whether its receivers know such samples.
    pub(crate) fn check(self, format: SampleFormat, channels: u32) -> Result<(), Error> {
        let is_known = format == SampleFormat::I16 && channels <= GFH2_CHANNELS_MAX;
        if self == Wire::Every || is_known { Ok(()) } else { Err(Error::Wire { format, channels }) }
    }
}

/// Before there were other formats, a header had no place for more.
const GFH2_CHANNELS_MAX: u32 = 8;
