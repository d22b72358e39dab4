//! Commands that show a stream.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use grebe_remote::HostOptions;
use grebe_view::{Part, ThemeChoice};

use super::lab::Lab;
use super::metrics::Metrics;
use super::serve::Shown;
use super::stream::Reception;
use super::trigger::Trigger;
use crate::units;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    grebe view udp://:5000\n  \
    grebe view udp://:5000 --term\n  \
    grebe view lab/mast3/adc --router tcp/lab-server:7447\n  \
    grebe view serial:///dev/ttyACM0\n  \
    grebe view audio:\n  \
    grebe view udp://:5000 udp://:5001    # two hosts on one axis of time\n  \
    grebe view one.sigmf-meta two.sigmf-meta --png both.png\n  \
    grebe view shm://adc --ring /data/box --last 30s\n  \
    grebe view 'serve://mast:4780?token=...'\n  \
    grebe view 'serve://mast:4780?token=...&source=2' --png second.png\n  \
    grebe view ssh://me@mast/udp://:5000\n  \
    grebe view ssh://me@mast/shm://adc --history 4G\n  \
    grebe view me@lab:run7.sigmf-meta\n  \
    grebe view 'synth:sine,square?channels=2&frequency=1k'\n  \
    grebe view --spawn 'sg --channels 2 --rate 10M'\n  \
    grebe view examples/data/ecg.sigmf-meta --names ECG --units V --scale 5u\n  \
    grebe view examples/data/ecg.sigmf-meta --png ecg.png --span 5s --spectrum --json\n  \
    grebe view night.sigmf-meta --png night.png --waterfall --band 433.8M..434.1M\n  \
    grebe view examples/data/ecg.sigmf-meta --span 2s --trigger-coupling lf-reject --holdoff 200ms\n\n\
    Keys: space pause, + and - time span, 1 to 8 channel on or off, ? all keys, q quit.")]
pub(crate) struct View {
    /// The stream: udp://:5000, shm://NAME, a name in the lab (lab/mast3/adc), pipe:, a file, or synth:, also with parameters: synth:sine?frequency=1k. Several
    /// stand one above the other, on one axis of time where their clocks are known. Of a folder the newest recording in it is shown. serve://... is a link of grebe serve; ssh://[USER@]HOST/URI shows a stream of that machine, by
    /// your own ssh. [USER@]HOST:PATH is a SigMF recording there: what is looked at comes here.
    #[arg(required_unless_present = "spawn", value_name = "URI", value_parser = super::serve::shown)]
    pub(crate) uris: Vec<Shown>,
    /// Start a generator and show its stream: 'sg ...' or 'play ...', or a program that writes frames to standard output.
    /// An 'sg' takes rate, waveform and pause from the scope.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) spawn: Option<String>,
    /// Show it in the terminal.
    #[arg(long, conflicts_with = "png")]
    pub(crate) term: bool,
    /// Draw one picture to this file, without a display or a GPU; - is standard output.
    #[arg(long, value_name = "FILE", value_parser = units::picture)]
    pub(crate) png: Option<PathBuf>,
    /// When to draw the picture: this long after the stream began, or at its end [default: 2s; for a file its end]. Of a recording that is
    /// the time within it, which is gone to at once: --after 2h --span 1ms. Of one that is still being copied, or is of
    /// another host: how long to wait for what it shows [60s].
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "png")]
    pub(crate) after: Option<Duration>,
    /// Size of the picture in pixels.
    #[arg(long, value_name = "WxH", default_value = "1280x720", value_parser = units::pixels)]
    pub(crate) size: (u32, u32),
    /// How much time the view spans at first.
    #[arg(long, value_name = "TIME", value_parser = units::length)]
    pub(crate) span: Option<Duration>,
    /// Colours [default: dark, or as they were].
    #[arg(long, value_parser = units::choice(&THEMES))]
    pub(crate) theme: Option<ThemeChoice>,
    /// Show the spectrum from the start.
    #[arg(long)]
    pub(crate) spectrum: bool,
    /// Show the waterfall of a channel from the start: levels by frequency and time. Of a recording all of it, whatever its size.
    #[arg(long)]
    pub(crate) waterfall: bool,
    /// Print the measurements of the picture as JSON on standard output.
    #[arg(long, requires = "png")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) channels: Channels,
    /// Draw Q over I, or the second channel over the first: a constellation.
    #[arg(long)]
    pub(crate) xy: bool,
    /// Points of symbols alone in it: 100k a second.
    #[arg(long, value_name = "RATE", value_parser = units::rate_hz)]
    pub(crate) symbol_rate: Option<f64>,
    /// Show and measure only this part of the spectrum, in hertz: 433.8M..434.1M.
    #[arg(long, value_name = "FROM..TO", value_parser = units::band_hz, allow_hyphen_values = true)]
    pub(crate) band: Option<(f64, f64)>,
    #[command(flatten)]
    pub(crate) trigger: Trigger,
    /// Memory for the history of streams, all of them together, or of ssh:// of each there: how far back one can go [default: 512M].
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes)]
    pub(crate) history: Option<usize>,
    /// The folder that grebe record --ring writes this stream into, of ssh:// the one there: the key ! keeps a stretch of it for good
    /// [default: found, where that recorder runs on the machine that has the stream].
    #[arg(long, value_name = "DIR", conflicts_with = "png")]
    pub(crate) ring: Option<PathBuf>,
    /// How much the key ! keeps of what came last; of a held picture it keeps what is on the screen [default: 20s].
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) last: Option<Duration>,
    /// Begin with the settings of this file, and keep them there [default: those of the last time this source was seen].
    #[arg(long, value_name = "FILE", conflicts_with = "no_session")]
    pub(crate) session: Option<PathBuf>,
    /// Begin afresh, and keep no settings.
    #[arg(long)]
    pub(crate) no_session: bool,
    /// Measure the window for so long, print the result as JSON, and end.
    #[arg(long, value_name = "TIME", hide = true, value_parser = units::duration)]
    pub(crate) bench: Option<Duration>,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) transport: Reception,
    #[command(flatten)]
    pub(crate) lab: Lab,
    #[command(flatten)]
    pub(crate) far: Far,
}

/// How a server is started elsewhere.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Streams of another machine (ssh://)")]
pub(crate) struct Far {
    /// The ssh to use, with options [default: ssh].
    #[arg(long, value_name = "COMMAND")]
    pub(crate) ssh: Option<String>,
    /// Where grebe is there [default: grebe, on the PATH there].
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_path: Option<String>,
}

impl Far {
    /// What the command line says of how to reach a host.
    pub(crate) fn host_options(&self) -> HostOptions {
        let Self { ssh, remote_path } = self.clone();
        HostOptions { ssh, remote_path, ..HostOptions::default() }
    }
}

/// Which channels are shown, and what their numbers mean.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Channels (one value per channel, by commas)")]
pub(crate) struct Channels {
    /// Only these channels: 1,3-8 [default: all].
    #[arg(long = "show", value_name = "CHANNELS", value_delimiter = ',', value_parser = units::channels)]
    pub(crate) shown: Vec<RangeInclusive<u8>>,
    /// Lanes of each complex channel [default: i,q].
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = units::choice(&PARTS))]
    pub(crate) parts: Vec<Part>,
    #[command(flatten)]
    pub(crate) meanings: Meanings,
}

/// What the numbers of channels mean.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Channels (one value per channel, by commas)")]
pub(crate) struct Meanings {
    /// Names.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) names: Vec<String>,
    /// Units, without prefix: V, A, Pa.
    #[arg(long, value_name = "UNIT", value_delimiter = ',')]
    pub(crate) units: Vec<String>,
    /// Units per count: 0.001, 5u.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', value_parser = units::number, allow_hyphen_values = true)]
    pub(crate) scale: Vec<f64>,
    /// Value of the count 0, in units.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', value_parser = units::number, allow_hyphen_values = true)]
    pub(crate) offset: Vec<f64>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Examples:\n  \
    grebe demo\n  \
    grebe demo examples/data/ecg.sigmf-meta")]
pub(crate) struct Demo {
    /// A recording to play, over and over, instead of the generator.
    pub(crate) file: Option<PathBuf>,
    /// Show it in the terminal although there is a display.
    #[arg(long)]
    pub(crate) term: bool,
}

const PARTS: [(&str, &str, Part); 6] = [
    ("i", "In phase", Part::I),
    ("q", "Quadrature", Part::Q),
    ("magnitude", "", Part::Magnitude),
    ("db", "Magnitude in decibels of full scale", Part::MagnitudeDb),
    ("phase", "", Part::Phase),
    ("frequency", "Instantaneous, from the centre", Part::Frequency),
];
const THEMES: [(&str, &str, ThemeChoice); 2] =
    [("dark", "", ThemeChoice::Dark), ("light", "", ThemeChoice::Light)];
