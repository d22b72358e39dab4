//! Sound devices: `audio:`, `audio:hw:1,0?rate=96k&format=i32`.
//!
//! Loads ALSA's library when a device is opened, so grebe neither builds against it nor needs it to run. ALSA offers
//! PipeWire and PulseAudio as devices.
//!
//! ```text
//!  capture: samples and gaps           sink: playback           list
//!                      \---------------------------+--------------------/
//!                                    alsa: the library, and a device (or absent)
//! ```

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a C library that is loaded when it is used")]
mod alsa;
#[cfg(not(target_os = "linux"))]
#[path = "audio/absent.rs"]
mod alsa;
mod capture;
mod kind;
mod settings;
mod sink;
mod uri;

pub use alsa::{sound_devices, sound_library};
pub use uri::AudioStream;

use std::fmt;

use grebe_flow::Kinds;

use crate::error::Error;
use crate::open::{Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{Scheme, Traits};
use crate::session::Bounded as _;
use kind::{AudioIn, AudioOut};
use sink::AudioSink;

impl Scheme for AudioStream {
    const WRITTEN: &'static str = "audio:";
    const OTHERWISE: &'static str = "is not a sound device: write audio:, or audio:hw:1,0";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        name.strip_prefix("audio:").map(Self::parse)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "audio:{}{}", self.device(), self.pairs())
    }

    fn traits(&self) -> Traits {
        Traits::LIVE
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let (source, rate_hz) = options.patience(self.reconnects).open(notify, |_| capture::source(self))?;
        let source = source.bounded(&options);
        Ok(OpenSource { rate_hz: Some(rate_hz), ..OpenSource::of(source) })
    }

    fn open_sink(&self, _: &SinkOptions, _: Notify<'_>) -> Result<OpenSink, Error> {
        Ok(OpenSink::of(AudioSink::new(self.clone())?))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<AudioIn>().add::<AudioOut>();
    }
}
