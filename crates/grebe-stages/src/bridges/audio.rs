//! Sound devices: `audio:`, `audio:hw:1,0?rate=96k&format=i32`.
//!
//! On Linux, loads ALSA's library when a device is opened, so grebe neither builds against it nor needs it to run. ALSA
//! offers PipeWire and PulseAudio as devices. Windows (WASAPI) and macOS (CoreAudio) call back instead, in `f32`.
//!
//! ```text
//!  capture: samples and gaps           sink: playback           list
//!                      \---------------------------+--------------------/
//!                              device: alsa, or callback (names, supported, handover, pcm), or absent
//! ```

mod capture;
#[cfg(target_os = "linux")]
#[path = "audio/alsa.rs"]
#[allow(unsafe_code, reason = "a C library that is loaded when it is used")]
mod device;
#[cfg(any(windows, target_os = "macos"))]
#[path = "audio/callback.rs"]
mod device;
#[cfg(not(any(target_os = "linux", windows, target_os = "macos")))]
#[path = "audio/absent.rs"]
mod device;
mod error;
#[cfg(any(windows, target_os = "macos", test))]
mod handover;
mod kind;
#[cfg(any(windows, target_os = "macos", test))]
mod names;
#[cfg(any(windows, target_os = "macos", test))]
mod pcm;
mod settings;
mod sink;
#[cfg(any(windows, target_os = "macos"))]
mod supported;
mod uri;

pub use device::{sound_devices, sound_library};
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
    const OTHERWISE: &'static str = if cfg!(target_os = "linux") {
        "is not a sound device: write audio:, or audio:hw:1,0"
    } else {
        "is not a sound device: write audio:, or audio:NAME; grebe devices lists the names"
    };

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
