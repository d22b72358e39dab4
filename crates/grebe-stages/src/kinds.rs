//! The kinds of stages that a graph file can name.

mod radio;
mod zmq;

use std::path::PathBuf;
use std::time::Duration;

use grebe_flow::{Count, Fault, Kind, Kinds, Ports, Site, SizeBytes, Stage, StageResult, Time};
use grebe_frame::SampleFormat;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::Error;
use crate::file::SigmfSink;
use crate::open::{SinkOptions, SourceOptions, Transport, open_sink, open_source};

use crate::process::{
    Convert, Decimate, DecimateFiltered, FillGaps, Fir, Gain, Magnitude, Merge, Mix, Null, RateMeter, Select,
    Tee, Throttle,
};
use crate::stream::{DATAGRAM_BYTES, check_datagram_bytes};
use crate::synth::Synth;
use crate::uri::{ShmName, Uri, Wire};
use radio::{RtlTcpIn, RtlTcpOut};
use zmq::{ZmqIn, ZmqOut};

/// All built-in kinds.
///
/// ```
/// let kinds = grebe_stages::kinds();
/// assert_eq!(kinds.get("gain").unwrap().ports().inputs, ["in"]);
/// ```
pub fn kinds() -> Kinds {
    let mut kinds = Kinds::new();
    kinds.add::<Synth>().add::<Play>().add::<UdpIn>().add::<PipeIn>().add::<RawIn>();
    kinds.add::<Vita49In>().add::<Vita49Out>().add::<ShmIn>();
    kinds.add::<Record>().add::<UdpOut>().add::<PipeOut>().add::<RawOut>().add::<ShmOut>().add::<Null>();
    kinds.add::<RtlTcpIn>().add::<RtlTcpOut>().add::<ZmqIn>().add::<ZmqOut>();
    kinds.add::<Gain>().add::<Select>().add::<Decimate>().add::<FillGaps>();
    kinds.add::<Convert>().add::<Magnitude>().add::<Mix>().add::<Fir>().add::<DecimateFiltered>();
    kinds.add::<Merge>().add::<RateMeter>().add::<Tee>().add::<Throttle>();
    kinds
}

/// Plays a recording, SigMF or WAV, with the gaps that were recorded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Play {
    /// A recording: .sigmf-meta, .sigmf-collection, .sigmf or .wav, or a raw file: x.cu8?rate=2.4M.
    file: PathBuf,
    /// Times the recorded rate at which it is played; 1 where it is not given.
    speed: Option<f64>,
    /// Does not keep to the rate: as fast as the stream is taken.
    #[serde(default)]
    free_run: bool,
    /// Begins again at the end, for ever.
    #[serde(default)]
    repeat: bool,
    /// Plays what lies behind so much of the signal.
    start: Option<Time>,
    /// Plays so much of the signal from there on, gaps included, or to the end.
    duration: Option<Time>,
    /// Ends after this many samples per channel, or with the file.
    samples: Option<Count>,
    /// Bytes of the datagrams that the frames should fit into; larger frames cost less where no network lies between.
    #[serde(default = "datagram_size")]
    datagram_size: SizeBytes,
    /// End-to-end latency budget: frames wait for each other for up to a quarter of it.
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
        source(&Uri::File(self.file), options, site)
    }
}

/// Receives a stream over UDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UdpIn {
    /// The address to listen on: udp://:5000 on all addresses of this machine, or udp://HOST:PORT.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once the sender has been silent for this long, also where it never came.
    idle_timeout: Option<Time>,
    /// Datagrams per system call, 1 to 128; 1 is the lowest latency.
    #[serde(default = "burst")]
    burst: u32,
    /// End-to-end latency budget: the receiver sleeps for up to a half of it.
    #[serde(default = "latency")]
    latency: Time,
}

impl Kind for UdpIn {
    const NAME: &'static str = "udp_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(udp_uri(&self.uri))?;
        check_burst(self.burst)
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the address {}", self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions {
            transport: transport(self.burst, self.latency),
            samples: self.samples.map(|samples| samples.0),
            idle_timeout: self.idle_timeout.map(|timeout| timeout.0),
            ..SourceOptions::default()
        };
        source(&udp_uri(&self.uri)?, options, site)
    }
}

/// Reads a stream from standard input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PipeIn {
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
}

impl Kind for PipeIn {
    const NAME: &'static str = "pipe_in";
    const PORTS: Ports = Ports::SOURCE;

    fn claims(&self) -> Option<String> {
        Some("standard input".to_owned())
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let samples = self.samples.map(|samples| samples.0);
        source(&Uri::Pipe(Wire::Every), SourceOptions { samples, ..SourceOptions::default() }, site)
    }
}

/// Reads samples without headers, as other programs send them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawIn {
    /// What carries them and what they are: pipe:?format=cu8&rate=2.4M, tcp://HOST:PORT?format=..., udp://HOST:PORT?format=...
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once nothing has come for this long.
    idle_timeout: Option<Time>,
}

impl Kind for RawIn {
    const NAME: &'static str = "raw_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(raw_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        self.uri.starts_with("pipe:").then(|| "standard input".to_owned())
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions {
            samples: self.samples.map(|samples| samples.0),
            idle_timeout: self.idle_timeout.map(|timeout| timeout.0),
            cancel: site.cancel().clone(),
            ..SourceOptions::default()
        };
        source(&raw_uri(&self.uri)?, options, site)
    }
}

/// Receives VITA-49 packets over UDP, DIFI among them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Vita49In {
    /// The address to listen on: vrt://:4991; ?stream=0x1f takes that stream, ?format=ci16&rate=2.4M says what context packets do not.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once the sender has been silent for this long, also where it never came.
    idle_timeout: Option<Time>,
}

impl Kind for Vita49In {
    const NAME: &'static str = "vita49_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(vita49_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the address {}", self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions {
            samples: self.samples.map(|samples| samples.0),
            idle_timeout: self.idle_timeout.map(|timeout| timeout.0),
            ..SourceOptions::default()
        };
        source(&vita49_uri(&self.uri)?, options, site)
    }
}

/// Reads a stream in shared memory that another process of this machine makes; it must be there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShmIn {
    /// The stream: shm://NAME, or shm://NAME?policy=drop_latest for what happens where this reader is too slow.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails once the producer has been silent for this long.
    idle_timeout: Option<Time>,
}

impl Kind for ShmIn {
    const NAME: &'static str = "shm_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check_uri(shm_to_read(&self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = SourceOptions {
            reader: site.id().to_owned(),
            samples: self.samples.map(|samples| samples.0),
            idle_timeout: self.idle_timeout.map(|timeout| timeout.0),
            ..SourceOptions::default()
        };
        source(&Uri::Shm(shm_to_read(&self.uri)?), options, site)
    }
}

/// Opens a source; what its opener is told becomes notes of the graph.
fn source(uri: &Uri, options: SourceOptions, site: &mut Site) -> StageResult<Box<dyn Stage>> {
    let source = open_source(uri, options, &mut |notice| site.note(notice.to_string()))?;
    if let Some(address) = source.address {
        site.note(format!("listening on {address}"));
    }
    Ok(source.stage)
}

/// Records a stream as SigMF, with a segment at each gap.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Record {
    /// The recording to make: NAME.sigmf-meta.
    file: PathBuf,
    /// Ends after this much of the signal, gaps included.
    duration: Option<Time>,
    /// Replaces a recording of the same name.
    #[serde(default)]
    overwrite: bool,
}

impl Kind for Record {
    const NAME: &'static str = "record";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        if self.file.file_name().is_none() {
            return Err(Fault::new("file", "names no file: write NAME.sigmf-meta"));
        }
        SigmfSink::check_name(&self.file).map_err(|error| Fault::new("file", error.to_string()))
    }

    /// SigMF has a name for each.
    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(incoming)
    }

    fn claims(&self) -> Option<String> {
        Some(format!("the file {}", self.file.display()))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let duration = self.duration.map(|time| time.0);
        let options = SinkOptions { duration, overwrite: self.overwrite, ..SinkOptions::default() };
        sink(&Uri::File(self.file), options, site)
    }
}

/// Sends a stream over UDP, one datagram a frame.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UdpOut {
    /// The receiver's address: udp://HOST:PORT.
    uri: String,
    /// Datagrams per system call, 1 to 128; 1 is the lowest latency.
    #[serde(default = "burst")]
    burst: u32,
    /// End-to-end latency budget.
    #[serde(default = "latency")]
    latency: Time,
}

impl Kind for UdpOut {
    const NAME: &'static str = "udp_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(udp_uri(&self.uri))?;
        check_burst(self.burst)
    }

    fn channels(&self, incoming: Option<u32>) -> Result<Option<u32>, Fault> {
        self.check_wire(None, incoming)?;
        Ok(incoming)
    }

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        self.check_wire(incoming, None)?;
        Ok(incoming)
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let transport = transport(self.burst, self.latency);
        sink(&udp_uri(&self.uri)?, SinkOptions { transport, ..SinkOptions::default() }, site)
    }
}

impl UdpOut {
    /// Refuses what its receivers do not know, as far as it is known here.
    fn check_wire(&self, format: Option<SampleFormat>, channels: Option<u32>) -> Result<(), Fault> {
        let Ok(Uri::Udp(_, wire)) = udp_uri(&self.uri) else { return Ok(()) };
        let (format, channels) = (format.unwrap_or(SampleFormat::I16), channels.unwrap_or(1));
        wire.check(format, channels).map_err(|error| Fault::new("uri", error.to_string()))
    }
}

/// Lends a stream to other processes of this machine, in shared memory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShmOut {
    /// The stream: shm://NAME; ?wait=N where the graph is to start once N read it, ?block=no where no reader may make it wait,
    /// ?readers=N where not 4 are to share its memory.
    uri: String,
}

impl Kind for ShmOut {
    const NAME: &'static str = "shm_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(shm_name(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        // By what the stream is called, not by how it is made.
        let shm = shm_name(&self.uri).ok()?;
        Some(format!("the stream shm://{}", shm.name))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&Uri::Shm(shm_name(&self.uri)?), SinkOptions::default(), site)
    }
}

/// Writes a stream to standard output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PipeOut {}

impl Kind for PipeOut {
    const NAME: &'static str = "pipe_out";
    const PORTS: Ports = Ports::SINK;

    fn claims(&self) -> Option<String> {
        Some("standard output".to_owned())
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&Uri::Pipe(Wire::Every), SinkOptions::default(), site)
    }
}

/// Writes samples without headers, as other programs take them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawOut {
    /// What carries them and what they are: pipe:?format=cf32, tcp://HOST:PORT?format=..., udp://HOST:PORT?format=...
    uri: String,
}

impl Kind for RawOut {
    const NAME: &'static str = "raw_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        check_uri(raw_uri(&self.uri))
    }

    fn claims(&self) -> Option<String> {
        self.uri.starts_with("pipe:").then(|| "standard output".to_owned())
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        sink(&raw_uri(&self.uri)?, SinkOptions::default(), site)
    }
}

/// Sends a stream as VITA-49 packets over UDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Vita49Out {
    /// The receiver's address: vrt://HOST:PORT; ?profile=difi, ?stream=0x1f, ?time=gps say how.
    uri: String,
    /// Bytes of a packet at most; 1400 where it is not given, and no more than 10 ms of the signal.
    datagram_size: Option<SizeBytes>,
}

impl Kind for Vita49Out {
    const NAME: &'static str = "vita49_out";
    const PORTS: Ports = Ports::SINK;

    fn check(&self) -> Result<(), Fault> {
        if let Some(size) = self.datagram_size {
            check_datagram_bytes(size.0).map_err(|error| Fault::new("datagram_size", error.to_string()))?;
        }
        check_uri(vita49_uri(&self.uri))
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let datagram_bytes = self.datagram_size.map(|size| size.0);
        let transport = Transport { datagram_bytes, ..Transport::default() };
        sink(&vita49_uri(&self.uri)?, SinkOptions { transport, ..SinkOptions::default() }, site)
    }
}

/// Opens a sink, with notes of the graph as [`source`] has them; who cancels the graph ends its wait for readers.
fn sink(uri: &Uri, options: SinkOptions, site: &mut Site) -> StageResult<Box<dyn Stage>> {
    let options = SinkOptions { cancel: site.cancel().clone(), ..options };
    Ok(open_sink(uri, &options, &mut |notice| site.note(notice.to_string()))?.stage)
}

/// The URI of a UDP address.
fn udp_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Udp(..) => Ok(uri),
        _ => Err(wrong(text, "is no UDP address: write udp://HOST:PORT")),
    }
}

/// A stream without headers.
fn raw_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Raw(_) => Ok(uri),
        _ => Err(wrong(
            text,
            "does not say what its samples are: add ?format=, as in pipe:?format=cu8&rate=2.4M",
        )),
    }
}

/// A stream of VITA-49 packets.
fn vita49_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Vita49(_) => Ok(uri),
        _ => Err(wrong(text, "is no VITA-49 stream: write vrt://HOST:PORT")),
    }
}

/// The name of a stream in shared memory.
fn shm_name(text: &str) -> Result<ShmName, Error> {
    match text.parse()? {
        Uri::Shm(shm) => Ok(shm),
        _ => Err(wrong(text, "is no stream in shared memory: write shm://NAME")),
    }
}

/// The same of one that is read.
fn shm_to_read(text: &str) -> Result<ShmName, Error> {
    match shm_name(text)? {
        shm if shm.wait_consumers > 0 => {
            Err(wrong(text, "has wait=, which is for the stage that makes the stream: shm_out"))
        }
        shm => Ok(shm),
    }
}

fn wrong(uri: &str, reason: &str) -> Error {
    Error::Name { name: uri.to_owned(), reason: reason.to_owned() }
}

fn check_uri<T>(uri: Result<T, Error>) -> Result<(), Fault> {
    uri.map(drop).map_err(|error| Fault::new("uri", error.to_string()))
}

fn check_burst(burst: u32) -> Result<(), Fault> {
    match burst {
        1..=128 => Ok(()),
        _ => Err(Fault::new("burst", format!("{burst} datagrams per call: give 1 to 128"))),
    }
}

fn transport(burst: u32, latency: Time) -> Transport {
    Transport { burst: burst as usize, latency: latency.0, ..Transport::default() }
}

fn datagram_size() -> SizeBytes {
    SizeBytes(DATAGRAM_BYTES)
}

fn burst() -> u32 {
    128
}

fn latency() -> Time {
    Time(Duration::from_micros(500))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use grebe_flow::GraphFile;

    use super::*;

    fn check(stage: &str) -> Result<(), String> {
        let text = format!("[[stage]]\nid = \"x\"\n{stage}\n");
        let mistakes = match GraphFile::parse(&text, Path::new("x.toml"), &kinds()) {
            Ok(_) => return Ok(()),
            Err(mistakes) => mistakes,
        };
        // Alone it is connected to nothing, which is not what is asked here.
        let said: Vec<&str> = mistakes
            .iter()
            .map(grebe_flow::Mistake::message)
            .filter(|message| !message.contains("nothing leads to") && !message.contains("leads nowhere"))
            .collect();
        if said.is_empty() { Ok(()) } else { Err(said.join("; ")) }
    }

    #[test]
    fn every_kind_and_every_parameter_says_what_it_is() {
        for kind in kinds().iter() {
            assert!(
                kind.about().ends_with('.') || kind.about().contains(". "),
                "{}: {}",
                kind.name(),
                kind.about()
            );
            for param in kind.params() {
                assert!(!param.about.is_empty(), "{}: {} says nothing", kind.name(), param.name);
            }
        }
    }

    #[test]
    fn parameters_are_read_as_people_write_them() {
        for good in [
            "kind = \"synth\"",
            "kind = \"synth\"\nparams = { channels = 2, rate = \"25M\", wave = [\"sine\", \"sawtooth\"], samples = \"1k\" }",
            "kind = \"synth\"\nparams = { rate = 48_000, frequency = [440, 1.5e3], duration = \"2s\", channels = 2 }",
            "kind = \"play\"\nparams = { file = \"x.wav\", speed = 10, repeat = true }",
            "kind = \"udp_in\"\nparams = { uri = \"udp://:5000\", idle_timeout = \"2s\", latency = \"1ms\" }",
            "kind = \"udp_out\"\nparams = { uri = \"udp://localhost:5000\", burst = 1 }",
            "kind = \"pipe_in\"",
            "kind = \"vita49_in\"\nparams = { uri = \"vrt://:4991?stream=7\", samples = \"1M\" }",
            "kind = \"vita49_out\"\nparams = { uri = \"vrt://localhost:4991?profile=difi\", datagram_size = 8972 }",
            "kind = \"shm_in\"\nparams = { uri = \"shm://adc?policy=drop_latest\", samples = 5 }",
            "kind = \"shm_out\"\nparams = { uri = \"shm://adc?block=no\" }",
            "kind = \"shm_out\"\nparams = { uri = \"shm://adc?wait=2&readers=2\" }",
            "kind = \"pipe_out\"",
            "kind = \"rtl_tcp_in\"\nparams = { uri = \"rtl_tcp://pi:1234?gain=auto\", samples = \"1M\" }",
            "kind = \"zmq_in\"\nparams = { uri = \"zmq://x:1?format=cf32&tags\" }",
            "kind = \"zmq_out\"\nparams = { uri = \"zmq://:1?format=cf32&type=push&listen\" }",
            "kind = \"rtl_tcp_out\"\nparams = { uri = \"rtl_tcp://:1234?listen\" }",
            "kind = \"record\"\nparams = { file = \"x.sigmf-meta\", overwrite = true, duration = 5 }",
            "kind = \"gain\"\nparams = { gain = [1, -0.5], offset = 3 }",
            "kind = \"select\"\nparams = { channels = [1, 3] }",
            "kind = \"decimate\"\nparams = { factor = \"1k\" }",
            "kind = \"fill_gaps\"\nparams = { with = \"hold\", longest = \"10M\" }",
            "kind = \"synth\"\nparams = { format = \"cf32\", wave = \"qpsk\", symbol_rate = \"100k\", roll_off = 0.2, snr = 20, seed = 7 }",
            "kind = \"synth\"\nparams = { format = \"cu8\", wave = \"two_tone\", frequency = \"-10k\", second = -2.5e4 }",
            "kind = \"convert\"\nparams = { to = \"f32\", scale = \"counts\" }",
            "kind = \"magnitude\"\nparams = { unit = \"db\" }",
            "kind = \"mix\"\nparams = { frequency = \"-100k\" }",
            "kind = \"fir\"\nparams = { taps = [0.5, -1, 2] }",
            "kind = \"decimate_filtered\"\nparams = { factor = 10 }",
            "kind = \"throttle\"\nparams = { rate = \"1M\" }",
            "kind = \"rate_meter\"\nparams = { every = \"100ms\" }",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn parameters_that_cannot_be_are_refused_without_opening_anything() {
        for (bad, says) in [
            ("kind = \"synth\"\nparams = { channels = 256 }", "1 to 255"),
            ("kind = \"synth\"\nparams = { rate = 1000, frequency = 600 }", "half the sample rate"),
            ("kind = \"synth\"\nparams = { amplitude = 1.5 }", "amplitude"),
            ("kind = \"synth\"\nparams = { wave = \"wobble\" }", "wobble"),
            ("kind = \"synth\"\nparams = { channels = 2, phase = [1, 2, 3] }", "3 values for 2 channels"),
            ("kind = \"synth\"\nparams = { samples = 5, duration = \"1s\" }", "not both"),
            ("kind = \"synth\"\nparams = { datagram_size = 10 }", "80"),
            ("kind = \"play\"\nparams = { file = \"x.wav\", speed = 0 }", "above 0"),
            ("kind = \"play\"\nparams = { file = \"x.wav\", speed = 2, free_run = true }", "not both"),
            ("kind = \"udp_in\"\nparams = { uri = \"http://x:1\" }", "names no stream"),
            ("kind = \"udp_in\"\nparams = { uri = \"pipe:\" }", "udp://"),
            ("kind = \"udp_in\"\nparams = { uri = \"udp://:5000\", burst = 129 }", "1 to 128"),
            ("kind = \"raw_in\"\nparams = { uri = \"tcp://x:1\" }", "add format="),
            ("kind = \"raw_out\"\nparams = { uri = \"udp://x:1\" }", "add ?format="),
            ("kind = \"rtl_tcp_in\"\nparams = { uri = \"tcp://x:1?format=cu8\" }", "rtl_tcp://HOST:PORT"),
            ("kind = \"rtl_tcp_out\"\nparams = { uri = \"rtl_tcp://:1?wait=x\" }", "0 to 64 clients"),
            ("kind = \"vita49_in\"\nparams = { uri = \"udp://:1\" }", "vrt://HOST:PORT"),
            ("kind = \"vita49_out\"\nparams = { uri = \"vrt://x:1\", datagram_size = 10 }", "80"),
            (
                "kind = \"zmq_in\"\nparams = { uri = \"zmq://x:1?format=cf32&type=req\" }",
                "sub, pull, pub or push",
            ),
            ("kind = \"shm_in\"\nparams = { uri = \"udp://:1\" }", "shm://NAME"),
            ("kind = \"shm_in\"\nparams = { uri = \"shm://adc?wait=2\" }", "shm_out"),
            ("kind = \"shm_out\"\nparams = { uri = \"shm://adc?wait=some\" }", "give a number"),
            ("kind = \"shm_out\"\nparams = { uri = \"shm://adc?wait=5\" }", "add readers=5"),
            ("kind = \"udp_out\"\nparams = { uri = \"udp://x\" }", "no port"),
            ("kind = \"record\"\nparams = { file = \"\" }", "NAME.sigmf-meta"),
            ("kind = \"gain\"\nparams = { gain = [] }", "one per channel"),
            ("kind = \"select\"\nparams = { channels = [0] }", "0 is no channel"),
            ("kind = \"decimate\"\nparams = { factor = 2 }", "no more than the two"),
            ("kind = \"fill_gaps\"\nparams = { with = \"noise\" }", "noise"),
            ("kind = \"fill_gaps\"\nparams = { longest = 0 }", "fills nothing"),
            ("kind = \"synth\"\nparams = { wave = \"qpsk\" }", "needs a complex one"),
            ("kind = \"synth\"\nparams = { frequency = -5 }", "half the sample rate"),
            ("kind = \"synth\"\nparams = { format = \"cf64\" }", "ci16 and cf32"),
            ("kind = \"convert\"", "needs"),
            ("kind = \"mix\"\nparams = { frequency = \"fast\" }", "rate"),
            ("kind = \"fir\"", "file"),
            ("kind = \"decimate_filtered\"\nparams = { factor = 1 }", "2 to 1000"),
            ("kind = \"rate_meter\"\nparams = { every = \"1us\" }", "10ms"),
        ] {
            let said = check(bad).expect_err(bad);
            assert!(said.contains(says), "{bad}: {said}");
        }
        assert!(!Path::new("x.sigmf-meta").exists());
    }

    #[test]
    fn formats_are_followed_through_the_graph() {
        let said = |middle: &str, params: &str| {
            let text = format!(
                r#"
                stage = [
                    {{ id = "gen", kind = "synth", params = {{ format = "ci16" }} }},
                    {{ id = "first", {middle} }},
                    {{ id = "second", {params} }},
                    {{ id = "end", kind = "null" }},
                ]
                edge = [{{ from = "gen", to = "first" }}, {{ from = "first", to = "second" }}, {{ from = "second", to = "end" }}]
                "#
            );
            let mistakes = GraphFile::parse(&text, Path::new("x.toml"), &kinds()).err();
            mistakes.map(|mistakes| {
                mistakes.iter().map(|it| it.message().to_owned()).collect::<Vec<_>>().join("; ")
            })
        };
        let decimate = r#"kind = "decimate", params = { factor = 10 }"#;
        let wrong = said(r#"kind = "gain""#, decimate).unwrap();
        assert!(
            wrong.starts_with("'second': ci16 samples come in") && wrong.contains("magnitude"),
            "{wrong}"
        );
        assert_eq!(said(r#"kind = "magnitude""#, decimate), None);
        let wrong = said(r#"kind = "convert", params = { to = "f32" }"#, decimate).unwrap();
        assert!(wrong.starts_with("'to' of 'first': ci16 samples are complex"), "{wrong}");
        let wrong = said(r#"kind = "magnitude""#, r#"kind = "mix", params = { frequency = 1 }"#).unwrap();
        assert!(wrong.starts_with("'second': f32 samples come in"), "{wrong}");
    }

    #[test]
    fn what_a_sink_or_a_merged_stream_cannot_have_is_said_before_it_runs() {
        let said = |sources: &str, sink: &str| {
            let text = format!(
                r#"
                stage = [{sources}, {{ id = "both", kind = "merge" }}, {{ id = "end", {sink} }}]
                edge = [
                    {{ from = "a", to = "both.first" }}, {{ from = "b", to = "both.second" }},
                    {{ from = "both", to = "end" }},
                ]
                "#
            );
            let mistakes = GraphFile::parse(&text, Path::new("x.toml"), &kinds()).err();
            mistakes.map(|mistakes| {
                mistakes.iter().map(|it| it.message().to_owned()).collect::<Vec<_>>().join("; ")
            })
        };
        let of = |format: [&str; 2], channels: [u32; 2]| {
            let one = |id: &str, at: usize| {
                let params = format!("format = \"{}\", channels = {}", format[at], channels[at]);
                format!(r#"{{ id = "{id}", kind = "synth", params = {{ {params} }} }}"#)
            };
            format!("{}, {}", one("a", 0), one("b", 1))
        };
        let null = r#"kind = "null""#;
        let gfh2 = r#"kind = "udp_out", params = { uri = "udp://127.0.0.1:5000?wire=gfh2" }"#;
        let record = |name: &str| format!(r#"kind = "record", params = {{ file = "{name}" }}"#);
        assert_eq!(said(&of(["ci16", "ci16"], [3, 4]), null), None);
        let wrong = said(&of(["ci16", "f32"], [1, 1]), null).unwrap();
        assert!(wrong.starts_with("'both': samples of ci16 and of f32 come in"), "{wrong}");
        let wrong = said(&of(["i16", "i16"], [200, 100]), null).unwrap();
        assert!(wrong.starts_with("'both': 200 + 100 channels come in"), "{wrong}");
        assert_eq!(said(&of(["i16", "i16"], [4, 4]), gfh2), None);
        for (format, channels) in [("i16", [5, 4]), ("ci8", [1, 1])] {
            let wrong = said(&of([format; 2], channels), gfh2).unwrap();
            assert!(wrong.starts_with("'uri' of 'end': "), "{wrong}");
        }
        assert_eq!(said(&of(["ci8"; 2], [20, 30]), &record("x.sigmf-meta")), None);
        let wrong = said(&of(["ci8"; 2], [1, 1]), &record("x.wav")).unwrap();
        assert!(wrong.starts_with("'file' of 'end': ") && wrong.contains("NAME.sigmf-meta"), "{wrong}");
    }

    #[test]
    fn channels_are_followed_through_the_graph() {
        let text = r#"
            stage = [
                { id = "gen", kind = "synth", params = { channels = 4 } },
                { id = "two", kind = "select", params = { channels = [4, 1] } },
                { id = "loud", kind = "gain", params = { gain = [1, 2, 3] } },
                { id = "end", kind = "null" },
            ]
            edge = [{ from = "gen", to = "two" }, { from = "two", to = "loud" }, { from = "loud", to = "end" }]
        "#;
        let mistakes = GraphFile::parse(text, Path::new("x.toml"), &kinds()).unwrap_err();
        let said: Vec<&str> = mistakes.iter().map(grebe_flow::Mistake::message).collect();
        assert_eq!(said, ["'gain' of 'loud': 3 values for 2 channels: give one, or one per channel"]);
    }
}
