//! The options of `grebe view` and `grebe demo`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use grebe_remote::HostOptions;
use grebe_view::{Detector, Part, ThemeChoice};

use super::band::{TimeFrequencyBox, time_frequency_box};
use super::lab::Lab;
use super::metrics::Metrics;
use super::stream::Reception;
use super::trigger::Trigger;
use super::view_target::{ViewTarget, view_target};
use crate::units;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    grebe view udp://:5000\n  \
    grebe view udp://:5000 --term\n  \
    grebe view lab/mast3/adc --router tcp/lab-server:7447\n  \
    grebe view serial:///dev/ttyACM0\n  \
    grebe view audio:\n  \
    grebe view udp://:5000 udp://:5001    # two hosts on one time axis\n  \
    grebe view shm://adc --ring /data/box --last 30s\n  \
    grebe view 'serve://mast:4780?token=...'\n  \
    grebe view ssh://me@mast/udp://:5000\n  \
    grebe view me@lab:run7.sigmf-meta\n  \
    grebe view 'synth:sine,square?channels=2&frequency=1k'\n  \
    grebe view --spawn 'sg --channels 2 --rate 10M'\n  \
    grebe view examples/data/ecg.sigmf-meta --names ECG --units V --scale 5u\n  \
    grebe view examples/data/ecg.sigmf-meta --png ecg.png --span 5s --spectrum --json\n  \
    grebe view night.sigmf-meta --png night.png --waterfall --band 433.8M..434.1M\n  \
    grebe view examples/data/ecg.sigmf-meta --span 2s --trigger-coupling lf-reject --holdoff 200ms\n\n\
    Keys: space pause, + and - time span, 1 to 8 channel on or off, ? all keys, q quit.")]
pub(crate) struct View {
    /// Streams or recordings to show, one above the other.
    ///
    /// A URI (udp://:5000, shm://NAME, pipe:, synth:sine?frequency=1k), a name in the lab (lab/mast3/adc), a recording, or a folder (its ring, else its newest recording).
    /// On another machine: a link of grebe serve (serve://...), a stream by ssh (ssh://[USER@]HOST/URI), or a SigMF recording ([USER@]HOST:PATH).
    /// Several streams share one time axis if their clocks are known.
    #[arg(required_unless_present = "spawn", value_name = "URI", value_parser = view_target)]
    pub(crate) uris: Vec<ViewTarget>,
    /// Command that generates the stream: 'sg ...', 'play ...' or a program.
    ///
    /// A program writes frames to standard output. The scope controls rate, waveform and pause of an 'sg'.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) spawn: Option<String>,
    /// Show it in the terminal.
    #[arg(long, help_heading = "Output", conflicts_with = "png")]
    pub(crate) term: bool,
    /// PNG file to draw, without a display or GPU; - is standard output.
    #[arg(long, help_heading = "Output", value_name = "FILE", value_parser = units::picture)]
    pub(crate) png: Option<PathBuf>,
    /// Time of the picture in the stream [default: 2s; in a file its end].
    ///
    /// In a recording: the position to draw, as in --after 2h --span 1ms. In a recording that is still being copied, or is on another machine: the
    /// timeout for the range to arrive, 60s by default.
    #[arg(long, help_heading = "Output", value_name = "TIME", value_parser = units::duration, requires = "png")]
    pub(crate) after: Option<Duration>,
    /// Size of the picture in pixels.
    #[arg(long, help_heading = "Output", value_name = "WxH", default_value = "1280x720", value_parser = units::pixels)]
    pub(crate) size: (u32, u32),
    /// Time span of the view: 100us, 5s.
    #[arg(long, help_heading = "Picture", value_name = "TIME", value_parser = units::length)]
    pub(crate) span: Option<Duration>,
    /// Colours [default: dark, or the last used].
    #[arg(long, help_heading = "Picture", value_parser = units::choice(&THEMES))]
    pub(crate) theme: Option<ThemeChoice>,
    /// Show the spectrum.
    #[arg(long, help_heading = "Picture")]
    pub(crate) spectrum: bool,
    /// Show the waterfall: levels over frequency and time.
    #[arg(long, help_heading = "Picture")]
    pub(crate) waterfall: bool,
    /// Levels of the waterfall colours in dB: -120..-20 [default: from the noise floor].
    #[arg(long, help_heading = "Picture", value_name = "FROM..TO", value_parser = units::levels_db, allow_hyphen_values = true)]
    pub(crate) levels: Option<(f64, f64)>,
    /// Level of a cell of the waterfall [default: highest, or the last used].
    #[arg(long, help_heading = "Picture", value_parser = units::choice(&DETECTORS))]
    pub(crate) detector: Option<Detector>,
    /// Measure a box of the waterfall, in seconds and hertz: 12.5,13,433.8M,434M.
    ///
    /// As of grebe convert. In a recording, times count from its first sample, in a stream from the first one that the scope got.
    #[arg(long = "box", help_heading = "Picture", value_name = "T0,T1,F0,F1", value_parser = time_frequency_box)]
    pub(crate) time_frequency_box: Option<TimeFrequencyBox>,
    /// Print measurements of the picture as JSON on standard output.
    #[arg(long, help_heading = "Output", requires = "png")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) channels: Channels,
    /// Show a constellation: Q over I, or channel 2 over channel 1.
    #[arg(long, help_heading = "Picture")]
    pub(crate) xy: bool,
    /// Symbols per second of the constellation: 100k.
    #[arg(long, help_heading = "Picture", value_name = "RATE", value_parser = units::rate_hz)]
    pub(crate) symbol_rate: Option<f64>,
    /// Frequency range of the spectrum in Hz: 433.8M..434.1M.
    #[arg(long, help_heading = "Picture", value_name = "FROM..TO", value_parser = units::band_hz, allow_hyphen_values = true)]
    pub(crate) band: Option<(f64, f64)>,
    /// Show two spectrum markers: on the highest peaks, or at these frequencies in Hz.
    #[arg(long, help_heading = "Picture", value_name = "HZ,HZ", value_parser = units::two_hz, num_args = 0..=1, require_equals = true)]
    pub(crate) markers: Option<Option<(f64, f64)>>,
    #[command(flatten)]
    pub(crate) trigger: Trigger,
    /// Memory for the history of all streams [default: 512M].
    #[arg(long, help_heading = "Picture", value_name = "BYTES", value_parser = units::size_bytes)]
    pub(crate) history: Option<usize>,
    /// Folder of the ring that records this stream, for the key ! [default: search].
    #[arg(long, help_heading = "Ring", value_name = "DIR", conflicts_with = "png")]
    pub(crate) ring: Option<PathBuf>,
    /// Length that the key ! saves [default: 20s].
    #[arg(long, help_heading = "Ring", value_name = "TIME", value_parser = units::duration)]
    pub(crate) last: Option<Duration>,
    /// Settings file to read and write [default: one per source].
    #[arg(long, help_heading = "Settings", value_name = "FILE", conflicts_with = "no_session")]
    pub(crate) session: Option<PathBuf>,
    /// Neither read nor write settings.
    #[arg(long, help_heading = "Settings")]
    pub(crate) no_session: bool,
    /// Measure the window for this time, print the result as JSON, and end.
    #[arg(long, value_name = "TIME", hide = true, value_parser = units::duration)]
    pub(crate) bench: Option<Duration>,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) transport: Reception,
    #[command(flatten)]
    pub(crate) lab: Lab,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
}

/// Options of the server that the viewer starts on another machine.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Streams of another machine (ssh://)")]
pub(crate) struct RemoteOptions {
    /// ssh command with options: 'ssh -p 2222' [default: ssh].
    #[arg(long, value_name = "COMMAND")]
    pub(crate) ssh: Option<String>,
    /// Path of grebe on the other machine [default: grebe].
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_path: Option<String>,
}

impl RemoteOptions {
    pub(crate) fn host_options(&self) -> HostOptions {
        let Self { ssh, remote_path } = self.clone();
        HostOptions { ssh, remote_path, ..HostOptions::default() }
    }
}

/// Channels to show, and their names and units.
#[derive(Debug, Clone, Default, Args)]
#[command(
    next_help_heading = "Channels (comma-separated values, one per channel; a single unit, scale or offset for all)"
)]
pub(crate) struct Channels {
    /// Channels to show: 1,3-8 [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = units::channels)]
    pub(crate) channels: Vec<RangeInclusive<u8>>,
    /// Lanes of each complex channel [default: i,q].
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = units::choice(&PARTS))]
    pub(crate) parts: Vec<Part>,
    #[command(flatten)]
    pub(crate) labels: ChannelLabels,
}

/// Names, units and scales of channels.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Channels (comma-separated values, one per channel)")]
pub(crate) struct ChannelLabels {
    /// Names.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) names: Vec<String>,
    /// Units without prefix: V, A, Pa.
    #[arg(long, value_name = "UNIT", value_delimiter = ',')]
    pub(crate) units: Vec<String>,
    /// Units per count: 0.001, 5u.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', value_parser = units::number, allow_hyphen_values = true)]
    pub(crate) scale: Vec<f64>,
    /// Value of count 0, in units.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', value_parser = units::number, allow_hyphen_values = true)]
    pub(crate) offset: Vec<f64>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Examples:\n  \
    grebe demo\n  \
    grebe demo examples/data/ecg.sigmf-meta")]
pub(crate) struct Demo {
    /// Recording to play in a loop [default: generated signals].
    pub(crate) file: Option<PathBuf>,
    /// Show it in the terminal, even if there is a display.
    #[arg(long)]
    pub(crate) term: bool,
}

const PARTS: [(&str, &str, Part); 6] = [
    ("i", "In-phase component", Part::I),
    ("q", "Quadrature component", Part::Q),
    ("magnitude", "Magnitude", Part::Magnitude),
    ("db", "Magnitude in dB of full scale", Part::MagnitudeDb),
    ("phase", "Phase", Part::Phase),
    ("frequency", "Instantaneous frequency, relative to the centre", Part::Frequency),
];
const DETECTORS: [(&str, &str, Detector); 2] = [
    ("highest", "The highest of all its spectra: no burst is missed", Detector::Highest),
    ("mean", "The mean of their power: weak steady signals stand out", Detector::Mean),
];
const THEMES: [(&str, &str, ThemeChoice); 2] =
    [("dark", "", ThemeChoice::Dark), ("light", "", ThemeChoice::Light)];
