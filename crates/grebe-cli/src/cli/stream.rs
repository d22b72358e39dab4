//! The options of `grebe sg` and `grebe play`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use grebe_process::{Format, FrequencyHz};
use grebe_recording::Alignment;
use grebe_stages::Uri;
use grebe_zenoh::StreamName;

use super::band::Sound;
use super::lab::Lab;
use super::metrics::Metrics;
use super::range::Range;
use crate::units;

/// Options of a receiver of datagrams.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct Reception {
    /// End-to-end latency budget; the receiver uses up to half.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = units::duration)]
    pub(crate) latency: Duration,
}

/// Options of a sender of datagrams.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct Transport {
    /// Bytes per datagram [default: 65000 on this machine, 1400 beyond it].
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes)]
    pub(crate) datagram_size: Option<usize>,
    /// End-to-end latency budget; the sender uses up to a quarter.
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
    grebe sg --rate 1M --duration 10s --free-run --to tone.sigmf-meta\n  \
    grebe sg --rate 1M --name lab/mast3/adc    # shown by: grebe view lab/mast3/adc\n  \
    grebe sg --rate 25M --to udp://192.168.0.7:5000 --metrics 9464")]
pub(crate) struct Sg {
    /// Destination: udp://HOST:PORT, shm://NAME, pipe: or a recording to make.
    ///
    /// The default is udp://127.0.0.1:5000; with --name, the readers of that name.
    #[arg(short = 'o', long, value_name = "URI", value_parser = units::uri)]
    pub(crate) to: Option<Uri>,
    /// Name under which to announce the stream in the lab: lab/mast3/adc.
    ///
    /// Readers take the stream where --to sends it if they can. Readers on other hosts take it by UDP, or over Zenoh.
    #[arg(long, value_name = "NAME", value_parser = units::stream_name)]
    pub(crate) name: Option<StreamName>,
    /// Stop after this time: 10s, 5m.
    #[arg(short = 'd', long, value_name = "TIME", value_parser = units::length)]
    pub(crate) duration: Option<Duration>,
    /// Stop after this many samples per channel.
    #[arg(long, value_name = "N", value_parser = units::count, conflicts_with = "duration")]
    pub(crate) samples: Option<u64>,
    /// Ignore the sample rate; send as fast as the reader accepts.
    #[arg(long)]
    pub(crate) free_run: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    /// Number of channels, 1 to 255.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = SIGNAL, value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) channels: u8,
    /// Sample format.
    #[arg(long, value_name = "FORMAT", default_value = "i16", help_heading = SIGNAL, value_parser = units::format())]
    pub(crate) format: Format,
    /// Samples per second: 48k, 25M, 1G.
    #[arg(long, value_name = "RATE", default_value = "1M", help_heading = SIGNAL, value_parser = units::rate_hz)]
    pub(crate) rate: f64,
    /// Waveform, one value or one per channel; or a recording to repeat.
    ///
    /// sine, square, triangle, saw, chirp, noise, gaussian, two_tone or qpsk.
    #[arg(long, value_name = "WAVE|FILE", default_value = "sine", value_delimiter = ',', help_heading = SIGNAL)]
    pub(crate) wave: Vec<String>,
    /// Frequency in Hz, one value or one per channel [default: rate / 2500, doubled].
    #[arg(long, value_name = "HZ", value_delimiter = ',', allow_hyphen_values = true, help_heading = SIGNAL)]
    pub(crate) frequency: Vec<FrequencyHz>,
    /// Centre frequency to state in Hz: 433.92M; the samples stay the same.
    #[arg(long, value_name = "HZ", allow_hyphen_values = true, help_heading = SIGNAL)]
    pub(crate) center: Option<FrequencyHz>,
    /// Second frequency of two_tone in Hz [default: 1.25 times the first].
    #[arg(long, value_name = "HZ", value_delimiter = ',', allow_hyphen_values = true, help_heading = SIGNAL)]
    pub(crate) second: Vec<FrequencyHz>,
    /// Symbols per second of qpsk [default: rate / 8].
    #[arg(long, value_name = "RATE", help_heading = SIGNAL, value_parser = units::rate_hz)]
    pub(crate) symbol_rate: Option<f64>,
    /// Roll-off of the root-raised cosine of qpsk, 0 to 1.
    #[arg(long, value_name = "0..1", default_value_t = 0.35, help_heading = SIGNAL)]
    pub(crate) roll_off: f64,
    /// Signal-to-noise ratio in dB of added white Gaussian noise.
    #[arg(long, value_name = "DB", allow_hyphen_values = true, help_heading = SIGNAL)]
    pub(crate) snr: Option<f64>,
    /// Seed of noise and symbols.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SIGNAL)]
    pub(crate) seed: u64,
    /// Phase in degrees, one value or one per channel.
    #[arg(long, value_name = "DEG", value_delimiter = ',', allow_hyphen_values = true, help_heading = SIGNAL)]
    pub(crate) phase: Vec<f64>,
    /// Amplitude, 0 to 1 of full scale, one value or one per channel [default: 0.8].
    #[arg(long, value_name = "0..1", value_delimiter = ',', help_heading = SIGNAL)]
    pub(crate) amplitude: Vec<f64>,
    /// Offset as a fraction of full scale (-1 to 1), one value or one per channel.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', help_heading = SIGNAL)]
    pub(crate) offset: Vec<f64>,
    /// End when standard input is closed, so that no generator outlives its starter.
    #[arg(long, hide = true)]
    pub(crate) tethered: bool,
    /// Take commands (GIC2: rate, pause, end, waveform) on standard input, and end when it is closed.
    #[arg(long, hide = true)]
    pub(crate) remote: bool,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) lab: Lab,
}

const SIGNAL: &str = "Signal";

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe play examples/data/ecg.sigmf-meta --to udp://127.0.0.1:5000 --speed 100\n  \
    grebe play 'capture.cu8?rate=2.4M' --to shm://radio\n  \
    grebe play long.sigmf-meta --start 1h --duration 10s --repeat --to shm://loop\n  \
    grebe play capture.wav --to pipe: | grebe record pipe: capture.sigmf-meta\n  \
    grebe play night.sigmf-meta --demodulate fm --center 433.92M\n  \
    grebe play north.sigmf-meta south.sigmf-meta --to shm://both\n  \
    grebe play north.sigmf-meta hf.sigmf-meta --to udp://127.0.0.1:5000 --to udp://127.0.0.1:5001\n\n\
    Several recordings play in step: samples that were made at the same time (core:datetime) leave at the same time.\n\
    With one --to, the recordings are the channels of one stream. Rates and formats must be equal. grebe sends the range that all \
    recordings have; a gap of one is a gap of the stream.\n\
    With a --to for each, in the same order, each recording is a separate stream, sent whole. Rates and formats may differ.")]
pub(crate) struct Play {
    /// Recordings: SigMF, .wav, .npy or raw (x.cu8?rate=2.4M).
    #[arg(required = true, value_name = "FILE", value_parser = super::file::recording())]
    pub(crate) files: Vec<PathBuf>,
    /// Destination; once, or once per recording [default: udp://127.0.0.1:5000].
    #[arg(short = 'o', long, value_name = "URI", value_parser = units::uri)]
    pub(crate) to: Vec<Uri>,
    /// Name under which to announce the stream in the lab: lab/mast3/adc.
    #[arg(long, value_name = "NAME", value_parser = units::stream_name)]
    pub(crate) name: Option<StreamName>,
    /// Alignment of several recordings.
    #[arg(long, value_name = "HOW", default_value = "time", value_parser = units::choice(&ALIGNMENTS))]
    pub(crate) align: Alignment,
    /// Speed, as a multiple of the recorded sample rate.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = units::factor)]
    pub(crate) speed: f64,
    /// Ignore the sample rate; send as fast as the reader accepts.
    #[arg(long, conflicts_with = "speed")]
    pub(crate) free_run: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) range: Range,
    #[command(flatten)]
    pub(crate) sound: Sound,
    /// Stop after this many samples per channel.
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) samples: Option<u64>,
    /// Play in a loop until interrupted.
    #[arg(long)]
    pub(crate) repeat: bool,
    /// End when standard input is closed, so that no player outlives its starter.
    #[arg(long, hide = true)]
    pub(crate) tethered: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) lab: Lab,
}

const ALIGNMENTS: [(&str, &str, Alignment); 3] = [
    ("time", "By the time at which samples were made", Alignment::Time),
    ("start", "By the distance to the first sample of each recording", Alignment::Start),
    ("index", "By the sample index of the recorded streams", Alignment::Index),
];

impl Reception {
    pub(crate) fn options(&self) -> grebe_stages::Transport {
        grebe_stages::Transport { latency: self.latency, ..grebe_stages::Transport::default() }
    }
}

impl Transport {
    pub(crate) fn options(&self) -> grebe_stages::Transport {
        grebe_stages::Transport {
            datagram_bytes: self.datagram_size,
            latency: self.latency,
            ..grebe_stages::Transport::default()
        }
    }
}

impl Sg {
    /// The equivalent `play` command, if `--wave` names a recording.
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
            range: Range::default(),
            sound: Sound::default(),
            samples: self.samples,
            tethered: self.tethered || self.remote,
            metrics: self.metrics.clone(),
            transport: self.transport.clone(),
            json: self.json,
        })
    }
}
