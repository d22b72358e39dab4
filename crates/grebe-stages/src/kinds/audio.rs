//! Sound devices.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_uri, sink, source, source_options, wrong};
use crate::error::Error;
use crate::open::SinkOptions;
use crate::uri::Uri;

/// Listens to a sound device: a microphone or a line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AudioIn {
    /// The device and what it is set to: audio:, audio:hw:1,0?rate=96k&channels=2&format=i32.
    uri: String,
    /// Ends after this many samples per channel.
    samples: Option<Count>,
    /// Fails once nothing has come for this long.
    idle_timeout: Option<Time>,
}

impl Kind for AudioIn {
    const NAME: &'static str = "audio_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(audio_uri(&self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        source(&audio_uri(&self.uri)?, source_options(self.samples, self.idle_timeout, site), site)
    }
}

/// Plays a stream on a sound device.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AudioOut {
    /// The device: audio:, audio:hw:1,0; its rate, channels and format are the stream's.
    uri: String,
}

impl Kind for AudioOut {
    const NAME: &'static str = "audio_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(audio_uri(&self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&audio_uri(&self.uri)?, SinkOptions::default(), site)
    }
}

fn audio_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Audio(_) => Ok(uri),
        _ => Err(wrong(text, "is no sound device: write audio:, or audio:hw:1,0")),
    }
}
