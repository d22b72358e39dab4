//! Sound devices.

use super::{OpenSource, SourceOptions};
use crate::audio;
use crate::audio::AudioStream;
use crate::error::Error;

pub(super) fn source(stream: &AudioStream, options: &SourceOptions) -> Result<OpenSource, Error> {
    let (source, rate_hz) = audio::source(stream)?;
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { rate_hz: Some(rate_hz), ..OpenSource::of(source) })
}
