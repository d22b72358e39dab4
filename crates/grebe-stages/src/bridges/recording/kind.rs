//! Recordings.

use std::path::PathBuf;

use grebe_flow::{Count, Fault, Kind, Ports, Site, SizeBytes, Stage, StageResult, Time};
use grebe_frame::SampleFormat;
use grebe_process::stream::check_datagram_bytes;
use grebe_recording::{RecordOptions, SigmfSink};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::kind::{datagram_size, latency, sink, source};
use crate::open::{SinkOptions, SourceOptions, Transport};

/// Plays a recording, SigMF or WAV, with its gaps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Play {
    /// A recording: .sigmf-meta, .sigmf-collection, .sigmf or .wav, or a raw file: x.cu8?rate=2.4M.
    file: PathBuf,
    /// Playback speed as a multiple of the recorded rate; default 1.
    speed: Option<f64>,
    /// Ignores the rate: plays as fast as the reader accepts.
    #[serde(default)]
    free_run: bool,
    /// Repeats the recording for ever.
    #[serde(default)]
    repeat: bool,
    /// Start position.
    start: Option<Time>,
    /// Length to play from the start position, gaps included; default: to the end.
    duration: Option<Time>,
    /// Ends after this many samples per channel, or with the file.
    samples: Option<Count>,
    /// Bytes of the datagrams that the frames should fit into. Larger frames cost less without a network.
    #[serde(default = "datagram_size")]
    datagram_size: SizeBytes,
    /// End-to-end latency budget. Frames wait for each other for up to a quarter of it.
    #[serde(default = "latency")]
    latency: Time,
}

impl Kind for Play {
    const NAME: &'static str = "play";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_datagram_bytes(self.datagram_size.0)
            .map_err(|error| Fault::new("datagram_size", error.to_string()))?;
        match self.speed {
            Some(speed) if !(speed.is_finite() && speed > 0.0) => {
                Err(Fault::new("speed", "give a factor above 0, for example 0.5 or 100"))
            }
            Some(_) if self.free_run => Err(Fault::new("speed", "give 'speed' or 'free_run', not both")),
            _ => Ok(()),
        }
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions {
            transport: Transport {
                datagram_bytes: Some(self.datagram_size.0),
                latency: self.latency.0,
                ..Transport::default()
            },
            speed: if self.free_run { None } else { Some(self.speed.unwrap_or(1.0)) },
            repeat: self.repeat,
            start: self.start.map(|start| start.0).unwrap_or_default(),
            length: self.duration.map(|duration| duration.0),
            samples: self.samples.map(|samples| samples.0),
            ..SourceOptions::default()
        };
        source(&self.file, options, site)
    }
}

/// Records a stream as SigMF, with a segment at each gap.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// The recording to make: NAME.sigmf-meta.
    file: PathBuf,
    /// Ends after this much of the signal, gaps included.
    duration: Option<Time>,
    /// Replaces a recording of the same name.
    #[serde(default)]
    overwrite: bool,
    /// Takes the next free name if the recording exists: NAME_2, NAME_3, ... The default for stages that a host
    /// restarts with `restart = "always"`.
    #[serde(default)]
    numbered: bool,
}

impl Kind for Record {
    const NAME: &'static str = "record";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        if self.file.file_name().is_none() {
            return Err(Fault::new("file", "names no file: write NAME.sigmf-meta"));
        }
        if self.numbered && self.overwrite {
            return Err(Fault::new("numbered", "give 'overwrite' or 'numbered', not both"));
        }
        SigmfSink::check_name(&self.file).map_err(|error| Fault::new("file", error.to_string()))
    }

    /// SigMF has a name for each format.
    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(incoming)
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the file {}", self.file.display()))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let duration = self.duration.map(|time| time.0);
        let recording = RecordOptions { duration, overwrite: self.overwrite, ..RecordOptions::default() };
        let options = SinkOptions { recording, ..SinkOptions::default() };
        if !self.numbered {
            return sink(&self.file, options, site);
        }
        let file = SigmfSink::first_free(&self.file)?;
        if file.file_name() != self.file.file_name() {
            site.note(format!("records {}", file.display()));
        }
        sink(&file, options, site)
    }
}
