//! Sound devices.

use super::{Notice, OpenSource, SourceOptions};
use crate::audio;
use crate::audio::AudioStream;
use crate::error::Error;

pub(super) fn source(
    stream: &AudioStream,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let (source, rate_hz) = options.patience(stream.reconnects).open(notify, |_| audio::source(stream))?;
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { rate_hz: Some(rate_hz), ..OpenSource::of(source) })
}
