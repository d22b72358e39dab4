//! Commands that send or record a stream.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use grebe_process::{Format, FrequencyHz};
use grebe_recording::Alignment;
use grebe_stages::Uri;
use grebe_zenoh::StreamName;

use super::lab::Lab;
use super::metrics::Metrics;
use crate::units;

/// Options of the receiving end of a UDP stream.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct Reception {
    /// End-to-end latency budget, of which the receiver sleeps up to a half.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = units::duration)]
    pub(crate) latency: Duration,
}

/// Options of the sending end.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct Transport {
    /// Bytes of a datagram [default: 1400 beyond this machine, 65000 on it].
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes)]
    pub(crate) datagram_size: Option<usize>,
    /// Datagrams per system call; 1 is the lowest latency.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=128))]
    pub(crate) burst: u16,
    /// End-to-end latency budget, for up to a quarter of which the sender gathers.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = units::duration)]
    pub(crate) latency: Duration,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe sg --channels 4 --rate 25M --to udp://192.168.0.7:5000\n  \
    grebe sg --channels 4 --rate 100M --to shm://adc\n  \
    grebe sg --rate 1G --to 'shm://adc?readers=1&wait=1'\n  \
    grebe sg --rate 48k --wave sine --frequency 440 --to pipe: | grebe view pipe:\n  \
    grebe sg --format cf32 --rate 2.4M --wave qpsk --symbol-rate 300k --snr 20 --to shm://radio\n  \
    grebe sg --rate 1M --duration 10s --to tone.sigmf-meta\n  \
    grebe sg --rate 1M --name lab/mast3/adc    # for grebe view lab/mast3/adc, wherever that is\n  \
    grebe sg --rate 1G --name lab/mast3/adc --to shm://adc\n  \
    grebe sg --rate 25M --to udp://192.168.0.7:5000 --metrics 9464    # figures at http://127.0.0.1:9464/metrics")]
pub(crate) struct Sg {
    /// Where to send the stream: udp://HOST:PORT, shm://NAME, pipe:, or a recording to make [default: udp://127.0.0.1:5000, or with
    /// --name to who asks for it].
    #[arg(long, value_name = "URI", value_parser = units::uri)]
    pub(crate) to: Option<Uri>,
    /// Announce the stream under this name in the lab: grebe ls, grebe view NAME. Readers take it where --to sends it, if they can; on
    /// other hosts by UDP, if it comes there; and else over Zenoh.
    #[arg(long, value_name = "NAME", value_parser = units::stream_name)]
    pub(crate) name: Option<StreamName>,
    /// Channels, 1 to 255.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) channels: u8,
    /// What a sample is: i8, u8, i16, i32, f32 or f64, or complex: ci8, cu8, ci16 or cf32.
    #[arg(long, value_name = "FORMAT", default_value = "i16")]
    pub(crate) format: Format,
    /// Samples per second and channel: 48k, 25M, 1G.
    #[arg(long, value_name = "RATE", default_value = "1M", value_parser = units::rate_hz)]
    pub(crate) rate: f64,
    /// Waveform; several, separated by commas, go to the channels in turn. Or a recording to repeat.
    #[arg(long, value_name = "WAVE|FILE", default_value = "sine", value_delimiter = ',')]
    pub(crate) wave: Vec<String>,
    /// Frequency in hertz, one or one per channel [default: 1/2500 of the rate, doubled from channel to channel];
    /// of complex samples it may be negative.
    #[arg(long, value_name = "HZ", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) frequency: Vec<FrequencyHz>,
    /// Frequency of the second tone of two_tone, one or one per channel [default: 1.25 of the first].
    #[arg(long, value_name = "HZ", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) second: Vec<FrequencyHz>,
    /// Symbols per second of qpsk [default: an eighth of the rate].
    #[arg(long, value_name = "RATE", value_parser = units::rate_hz)]
    pub(crate) symbol_rate: Option<f64>,
    /// Roll-off of the root-raised cosine of qpsk, 0 to 1.
    #[arg(long, value_name = "0..1", default_value_t = 0.35)]
    pub(crate) roll_off: f64,
    /// Add white Gaussian noise so many decibels below the wave, by their powers in the whole band.
    #[arg(long, value_name = "DB", allow_hyphen_values = true)]
    pub(crate) snr: Option<f64>,
    /// Another number makes other noise and other symbols, the same number the same.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Phase in degrees, one or one per channel.
    #[arg(long, value_name = "DEG", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) phase: Vec<f64>,
    /// Amplitude as a part of full scale, one or one per channel; of gaussian and qpsk, 4 times their RMS.
    #[arg(long, value_name = "0..1", value_delimiter = ',')]
    pub(crate) amplitude: Vec<f64>,
    /// What is added, as a part of full scale (-1 to 1), one or one per channel.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub(crate) offset: Vec<f64>,
    /// End after this many samples per channel.
    #[arg(long, value_name = "N", value_parser = units::count, conflicts_with = "duration")]
    pub(crate) samples: Option<u64>,
    /// End after this long.
    #[arg(long, value_name = "TIME", value_parser = units::length)]
    pub(crate) duration: Option<Duration>,
    /// Do not keep to the rate: as fast as the stream is taken.
    #[arg(long)]
    pub(crate) free_run: bool,
    /// End when standard input is closed: for whoever starts a generator and may die before it.
    #[arg(long, hide = true)]
    pub(crate) tethered: bool,
    /// Take commands (GIC2: rate, pause, end, waveform) on standard input, and end when it is closed.
    #[arg(long, hide = true)]
    pub(crate) remote: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) lab: Lab,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe play examples/data/ecg.sigmf-meta --to udp://127.0.0.1:5000 --speed 100\n  \
    grebe play 'capture.cu8?rate=2.4M' --to shm://radio\n  \
    grebe play long.sigmf-meta --start 1h --duration 10s --repeat --to shm://again\n  \
    grebe play capture.wav --to pipe: | grebe record pipe: capture.sigmf-meta\n  \
    grebe play north.sigmf-meta south.sigmf-meta --to shm://both\n  \
    grebe play north.sigmf-meta hf.sigmf-meta --to udp://127.0.0.1:5000 --to udp://127.0.0.1:5001\n\n\
    Several recordings are played in step: samples that were made at the same time (core:datetime) leave at the same time.\n\
    To one destination they are the channels of one stream. Their rates and formats must be the same, and only what all of \
    them have is sent: from the latest begin to the earliest end, with a gap where any of them has one.\n\
    With a --to for each, in their order, each is a stream of its own and is sent whole: rates and formats may differ, and \
    who begins later waits. --repeat begins all of them again once the last one has ended.")]
pub(crate) struct Play {
    /// Recordings: .sigmf-meta, .sigmf-collection, .sigmf, .wav or .npy, or raw files (x.cu8?rate=2.4M).
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where to send the stream; several times: a destination for each recording [default: udp://127.0.0.1:5000, or with --name to
    /// who asks for it].
    #[arg(long, value_name = "URI", value_parser = units::uri)]
    pub(crate) to: Vec<Uri>,
    /// Announce the stream under this name in the lab, as grebe sg does; of several recordings, where they are one stream.
    #[arg(long, value_name = "NAME", value_parser = units::stream_name)]
    pub(crate) name: Option<StreamName>,
    /// Which samples of several recordings belong together.
    #[arg(long, value_name = "HOW", default_value = "time", value_parser = units::choice(&ALIGNMENTS))]
    pub(crate) align: Alignment,
    /// Times the recorded rate at which it is sent.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = units::factor)]
    pub(crate) speed: f64,
    /// Do not keep to the rate: as fast as the stream is taken.
    #[arg(long, conflicts_with = "speed")]
    pub(crate) free_run: bool,
    /// Play what lies behind so much of the signal: 90s, 1h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "0")]
    pub(crate) start: Duration,
    /// Play so much of the signal from there on, gaps included.
    #[arg(long, value_name = "TIME", value_parser = units::length)]
    pub(crate) duration: Option<Duration>,
    /// Begin again at the end, until interrupted.
    #[arg(long)]
    pub(crate) repeat: bool,
    /// End after this many samples per channel, or with the file.
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) samples: Option<u64>,
    /// End when standard input is closed: for whoever starts a generator and may die before it.
    #[arg(long, hide = true)]
    pub(crate) tethered: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) lab: Lab,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe verify take.sigmf-meta\n  \
    grebe verify night_*.sigmf-meta --json\n\n\
    A recording has checksums of SigMF (core:sha512), or of the recorder (grebe:checksums), which say which 256 MiB changed.\n\
    Exit status: 0 all is what was recorded, 4 something is not, or cannot be read (it is named), 130 interrupted.")]
pub(crate) struct Verify {
    /// Recordings: .sigmf-meta, .sigmf-data, .sigmf-collection or .sigmf.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print what was found as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

const ALIGNMENTS: [(&str, &str, Alignment); 3] = [
    ("time", "Those that were made at the same time, as the files say", Alignment::Time),
    ("start", "Those equally far behind the first sample of each", Alignment::Start),
    ("index", "Those of the same index in the streams that were recorded", Alignment::Index),
];

impl Reception {
    /// As streams take it.
    pub(crate) fn options(&self) -> grebe_stages::Transport {
        grebe_stages::Transport { latency: self.latency, ..grebe_stages::Transport::default() }
    }
}

impl Transport {
    /// As streams take it.
    pub(crate) fn options(&self) -> grebe_stages::Transport {
        grebe_stages::Transport {
            datagram_bytes: self.datagram_size,
            burst: usize::from(self.burst),
            latency: self.latency,
        }
    }
}

impl Sg {
    /// What is to be played instead, where `--wave` names a recording.
    pub(crate) fn as_play(&self) -> Option<Play> {
        let [only] = self.wave.as_slice() else { return None };
        let Ok(Uri::File(file)) = only.parse() else { return None };
        Some(Play {
            files: vec![file],
            to: self.to.iter().cloned().collect(),
            name: self.name.clone(),
            lab: self.lab.clone(),
            align: Alignment::default(),
            speed: 1.0,
            free_run: self.free_run,
            repeat: true,
            start: Duration::ZERO,
            duration: None,
            samples: self.samples,
            tethered: self.tethered || self.remote,
            metrics: self.metrics.clone(),
            transport: self.transport.clone(),
            json: self.json,
        })
    }
}
