//! The command line, as clap reads it.

mod probe;
mod transfer;
mod trigger;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use grebe_stages::Uri;

use crate::units;

pub use probe::{Probe, SshHost, Target};
pub use transfer::{Meeting, Recv, Send, TransferMode};
pub use trigger::Trigger;

/// Moves, shows, records and ships sampled signals at the speed of the machine.
///
/// Without a command: a demonstration. A generator process sends four channels of 25 MS/s over UDP to a scope.
#[derive(Debug, Parser)]
#[command(name = "grebe", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Generate signals and send them.
    Sg(Sg),
    /// Show a stream: in a window, in the terminal, or as a picture.
    View(View),
    /// Record a stream to a SigMF recording.
    Record(Record),
    /// Play a recording.
    Play(Play),
    /// The demonstration, or with a file its replay: generator process, UDP, scope.
    Demo(Demo),
    /// Run a graph of stages that a file describes.
    Run(Run),
    /// Show what the running grebes do: rates, queues, drops, latency, and which stage is the slowest.
    Top(Top),
    /// Send files over any distance: encrypted, verified, at the rate of the path.
    Send(Send),
    /// Receive files that `grebe send` sends.
    Recv(Recv),
    /// Measure what this machine can do, beside the plainest way to do it.
    Bench(Bench),
    /// Measure what a path carries, each way: round trip, MTU, loss, the highest rate without loss, and what limits it.
    Probe(Probe),
    /// Look at this machine: what it can do for grebe, what limits it, and what mends that.
    Doctor(Doctor),
    /// Print completions for a shell.
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Print the manual page.
    #[command(hide = true)]
    Man,
}

/// What every end of a UDP stream may be told.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Transport")]
pub struct Transport {
    /// Bytes of a datagram [default: 1400 beyond this machine, 65000 on it].
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes)]
    pub datagram_size: Option<usize>,
    /// Datagrams a system call; 1 is the lowest latency.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=128))]
    pub udp_burst: u16,
    /// End-to-end latency budget: the sender gathers for up to a quarter, the receiver sleeps up to a half of it.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = units::duration)]
    pub latency: Duration,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe sg --channels 4 --rate 25M --to udp://192.168.0.7:5000\n  \
    grebe sg --channels 4 --rate 100M --to shm://adc\n  \
    grebe sg --rate 1G --to 'shm://adc?readers=1&wait=1'\n  \
    grebe sg --rate 48k --wave sine --frequency 440 --to pipe: | grebe view pipe:\n  \
    grebe sg --rate 1M --duration 10s --to tone.sigmf-meta")]
pub struct Sg {
    /// Where to send the stream: udp://HOST:PORT, shm://NAME, pipe:, or a recording to make.
    #[arg(long, value_name = "URI", default_value = "udp://127.0.0.1:5000")]
    pub to: Uri,
    /// Channels, 1 to 8.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub channels: u8,
    /// Samples a second and channel: 48k, 25M, 1G.
    #[arg(long, value_name = "RATE", default_value = "1M", value_parser = units::rate_hz)]
    pub rate: f64,
    /// Waveform; several, separated by commas, go to the channels in turn. Or a recording to repeat.
    #[arg(long, value_name = "WAVE|FILE", default_value = "sine", value_delimiter = ',')]
    pub wave: Vec<String>,
    /// Frequency in hertz, one or one a channel [default: 1/2500 of the rate, doubled from channel to channel].
    #[arg(long, value_name = "HZ", value_delimiter = ',', value_parser = units::rate_hz)]
    pub frequency: Vec<f64>,
    /// Phase in degrees, one or one a channel.
    #[arg(long, value_name = "DEG", value_delimiter = ',', allow_hyphen_values = true)]
    pub phase: Vec<f64>,
    /// Amplitude as a part of full scale, one or one a channel.
    #[arg(long, value_name = "0..1", value_delimiter = ',')]
    pub amplitude: Vec<f64>,
    /// End after this many samples a channel.
    #[arg(long, value_name = "N", value_parser = units::count, conflicts_with = "duration")]
    pub samples: Option<u64>,
    /// End after this long.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub duration: Option<Duration>,
    /// Do not keep to the rate: as fast as the stream is taken.
    #[arg(long)]
    pub free_run: bool,
    /// End when standard input is closed: for whoever starts a generator and may die before it.
    #[arg(long, hide = true)]
    pub tethered: bool,
    /// Take commands (GIC2: rate, pause, end, waveform) on standard input, and end when it is closed.
    #[arg(long, hide = true)]
    pub remote: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub transport: Transport,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe play examples/data/ecg.sigmf-meta --to udp://127.0.0.1:5000 --speed 100\n  \
    grebe play capture.wav --to pipe: | grebe record pipe: capture.sigmf-meta")]
pub struct Play {
    /// A recording: .sigmf-meta, .sigmf-collection or .wav.
    pub file: PathBuf,
    /// Where to send the stream.
    #[arg(long, value_name = "URI", default_value = "udp://127.0.0.1:5000")]
    pub to: Uri,
    /// Times the recorded rate at which it is sent.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = units::factor)]
    pub speed: f64,
    /// Begin again at the end, until interrupted.
    #[arg(long = "loop")]
    pub repeat: bool,
    /// End when standard input is closed: for whoever starts a generator and may die before it.
    #[arg(long, hide = true)]
    pub tethered: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub transport: Transport,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe record udp://:5000 out.sigmf-meta\n  \
    grebe record udp://:5000 out.sigmf-meta --duration 6s --idle-timeout 2s\n\n\
    The recording ends with the stream, after --duration, or with Ctrl-C; it is good in each case. One channel makes\n\
    one recording, several make one a channel and a .sigmf-collection that ties them.\n\
    Exit status: 0 recorded, 1 failed, 2 wrong usage, 3 the sender fell silent (--idle-timeout) or is gone (shm://),\n\
    130 interrupted.")]
pub struct Record {
    /// The stream: udp://:5000, shm://NAME, pipe:, synth: or a file.
    pub uri: Uri,
    /// The recording to make: NAME.sigmf-meta.
    pub file: PathBuf,
    /// End after this much of the signal.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub duration: Option<Duration>,
    /// Fail once the sender has been silent for this long.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub idle_timeout: Option<Duration>,
    /// Replace a recording of the same name.
    #[arg(long)]
    pub overwrite: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub transport: Transport,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe view udp://:5000\n  \
    grebe view udp://:5000 --term\n  \
    grebe view udp://:5000 udp://:5001\n  \
    grebe view --spawn 'sg --channels 2 --rate 10M'\n  \
    grebe view examples/data/ecg.sigmf-meta --names ECG --units V --scale 5u\n  \
    grebe view examples/data/ecg.sigmf-meta --png ecg.png --span 5s --spectrum --measure json\n  \
    grebe view examples/data/ecg.sigmf-meta --span 2s --trigger-coupling lf-reject --holdoff 200ms\n\n\
    Keys: space pause, + and - time span, 1 to 8 channel on or off, ? all keys, q quit.")]
pub struct View {
    /// The stream: udp://:5000, shm://NAME, pipe:, synth: or a file. Several stand side by side in the window.
    #[arg(required_unless_present = "spawn", value_name = "URI")]
    pub uris: Vec<Uri>,
    /// Start a generator and show its stream: 'sg ...' or 'play ...', or a program that writes frames to standard output.
    /// An 'sg' takes rate, waveform and pause from the scope.
    #[arg(long, value_name = "COMMAND")]
    pub spawn: Option<String>,
    /// Show it in the terminal.
    #[arg(long, conflicts_with = "png")]
    pub term: bool,
    /// Draw one picture to this file, without a display or a GPU.
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// When to draw the picture: this long after the stream began, or at its end [default: 2s; for a file its end].
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "png")]
    pub after: Option<Duration>,
    /// Size of the picture in pixels.
    #[arg(long, value_name = "WxH", default_value = "1280x720", value_parser = units::pixels)]
    pub size: (u32, u32),
    /// How much time the view spans at first.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub span: Option<Duration>,
    /// Colours [default: dark, or as they were].
    #[arg(long, value_enum)]
    pub theme: Option<Theme>,
    /// Show the spectrum from the start.
    #[arg(long)]
    pub spectrum: bool,
    /// Print measurements of the picture on standard output.
    #[arg(long, value_enum, value_name = "FORMAT", requires = "png")]
    pub measure: Option<MeasureFormat>,
    #[command(flatten)]
    pub channels: Channels,
    #[command(flatten)]
    pub trigger: Trigger,
    /// Begin with the settings of this file, and keep them there [default: those of the last time this source was seen].
    #[arg(long, value_name = "FILE", conflicts_with = "no_session")]
    pub session: Option<PathBuf>,
    /// Begin afresh, and keep no settings.
    #[arg(long)]
    pub no_session: bool,
    /// Measure the window for so long, print the result as JSON, and end.
    #[arg(long, value_name = "TIME", hide = true, value_parser = units::duration)]
    pub bench: Option<Duration>,
    #[command(flatten)]
    pub transport: Transport,
}

/// What the numbers of the channels mean.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Channels (one value a channel, by commas)")]
pub struct Channels {
    /// Names.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub names: Vec<String>,
    /// Units, without prefix: V, A, Pa.
    #[arg(long, value_name = "UNIT", value_delimiter = ',')]
    pub units: Vec<String>,
    /// Units a count: 0.001, 5u.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', value_parser = units::number, allow_hyphen_values = true)]
    pub scale: Vec<f64>,
    /// Value of the count 0, in units.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', value_parser = units::number, allow_hyphen_values = true)]
    pub offset: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Theme {
    Dark,
    Light,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe run examples/graphs/envelope.toml\n  \
    grebe run my.toml --check\n  \
    grebe run --kinds\n  \
    grebe run --kinds synth\n\n\
    The graph ends when all its sources have, or with Ctrl-C; what is under way is drained first. Files that it names are\n\
    found from the current directory. docs/graphs.md describes the format.\n\
    Exit status: 0 ran to its end, 1 failed, 2 a mistake in the file, 130 interrupted.")]
pub struct Run {
    /// A graph file.
    #[arg(value_name = "GRAPH", required_unless_present = "kinds")]
    pub graph: Option<PathBuf>,
    /// Only check the file; nothing is opened.
    #[arg(long)]
    pub check: bool,
    /// List the kinds of stages with their parameters, or print the JSON schema of one.
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["graph", "check"])]
    pub kinds: Option<String>,
    /// Print the result as JSON on standard output; with --kinds, all schemas.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MeasureFormat {
    Json,
}

#[derive(Debug, Default, Args)]
pub struct Demo {
    /// A recording to play, over and over, instead of the generator.
    pub file: Option<PathBuf>,
    /// Show it in the terminal although there is a display.
    #[arg(long)]
    pub term: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe top\n  \
    grebe top view\n  \
    grebe top --once\n  \
    grebe top --json | jq -r '.slowest.stage'\n\n\
    Every grebe of this user that runs a graph is shown (sg, play, record, view, demo, run, bench), and every program that\n\
    publishes one. Keys: q quit, arrows scroll, s sort, ? what the columns mean.")]
pub struct Top {
    /// Only those of this name (sg, view, ...), or this process id.
    #[arg(value_name = "NAME|PID")]
    pub of: Option<String>,
    /// Print the table once, and end.
    #[arg(long)]
    pub once: bool,
    /// Print a line of JSON for each process and second; with --once, one for each process.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe bench --udp\n  \
    grebe bench --udp --scenario 1ch_max,4ch_1GSPS --datagram-size 1400,65000 --duration 5s --repeats 5 --table\n  \
    grebe bench --udp --reach --datagram-size 1400\n  \
    grebe bench --udp-recv\n  \
    grebe bench --flow --repeats 9 --table\n  \
    grebe bench --flow=hop,chain --duration 250ms\n  \
    grebe bench --shm --pipe --ingress --table\n  \
    grebe bench --view --duration 5s\n  \
    grebe bench --transfer --table\n  \
    grebe bench --transfer=links,random --only A,D --links 20 --seed 7\n  \
    grebe bench --transfer=loopback --size 256M --dir /tmp\n  \
    sudo grebe bench --transfer --wanlink ./wanlink --repeats 1\n  \
    grebe bench --all --json all.json\n\n\
    With --udp, every frame is checked on both sides. The baseline - one datagram a system call - is measured in turn with each\n\
    run, and the machine's mood (the round trip of a cache line between two cores) before and after.")]
pub struct Bench {
    /// UDP between two processes.
    #[arg(long, required_unless_present_any = ["udp_recv", "flow", "shm", "pipe", "ingress", "view", "transfer", "all"])]
    pub udp: bool,
    /// The runtime: stages, queues and telemetry, each beside the same work without them. All benches, or those named:
    /// chain, hop, fan_out, decimate, telemetry.
    #[arg(long, value_name = "NAME", num_args = 0.., require_equals = true, value_delimiter = ',', default_missing_value = "all", conflicts_with_all = ["udp", "udp_recv"])]
    pub flow: Vec<String>,
    /// Shared memory between processes: 1ch_1GSPS, 4ch_1GSPS_fanout2, free_run (beside a Unix socket, a pipe and UDP), and faults,
    /// in which one consumer is stopped and one killed.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow"])]
    pub shm: bool,
    /// A pipe between processes: 1ch_1GSPS, and free_run beside a pipe of 64 KiB that is written frame by frame.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow"])]
    pub pipe: bool,
    /// How much later frames come when the generator is not in the program but behind shared memory, a pipe or UDP:
    /// ingress_10MSPS, ingress_1GSPS.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow"])]
    pub ingress: bool,
    /// The scope's window over shm://, pipe: and udp://, at rates from 1 MS/s to 1 GS/s; `--scenario all` for all rates.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow", "shm", "pipe", "ingress"])]
    pub view: bool,
    /// Receiving small datagrams from 1, 2, 4 and 8 senders: one a call, and batches.
    #[arg(long, conflicts_with = "udp")]
    pub udp_recv: bool,
    /// Files over long distances, beside TCP in the same run. All parts, or those named: links (A to E, simulated), random (links
    /// drawn at random, simulated), shares (of a path beside TCP and another of ours, simulated), loopback (two processes on this
    /// machine, beside plain TCP, iperf3 and scp).
    #[arg(long, value_name = "PART", num_args = 0.., require_equals = true, value_delimiter = ',', default_missing_value = "all",
        conflicts_with_all = ["udp", "udp_recv", "flow", "shm", "pipe", "ingress", "view", "duration"])]
    pub transfer: Vec<String>,
    /// With --transfer: only these of the links A to E.
    #[arg(long, value_name = "LINK", value_delimiter = ',')]
    pub only: Vec<String>,
    /// With --transfer: how many links are drawn at random [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=1000))]
    pub links: Option<u16>,
    /// With --transfer: the seed of the random links and of all losses [default: 20261121].
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// With --transfer: the file that two processes on this machine hand over [default: 1G].
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes)]
    pub size: Option<usize>,
    /// With --transfer: where files are sent from and come to. By default in memory (/dev/shm) where there is room, else among
    /// the temporary files.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// With --transfer, as root: real processes over links A to E that this program emulates between two network namespaces, beside
    /// TCP with BBR and CUBIC. It is called with --name N --delay MS --rate MBIT --loss P --loss-back P --seed S, makes the namespaces
    /// N-a (198.18.0.1) and N-b (198.18.0.2), and removes them when it is interrupted.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["links", "size"])]
    pub wanlink: Option<PathBuf>,
    /// Every bench after the other, each as it is without options.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow", "shm", "pipe", "ingress", "view", "transfer", "duration", "scenario",
        "channels", "datagram_size", "udp_burst", "technique", "repeats", "buffers", "latency", "reach"])]
    pub all: bool,
    /// How long one run sends.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    pub duration: Duration,
    /// Scenarios by label, or `all`.
    #[arg(long, value_name = "LABEL", value_delimiter = ',', default_value = "1ch_max")]
    pub scenario: Vec<String>,
    /// Channels of scenarios without a label of their own: 1ch_max, 2ch_max or 4ch_max.
    #[arg(long, value_name = "N", conflicts_with = "scenario")]
    pub channels: Option<u8>,
    /// Bytes of a datagram.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1400,65000", value_parser = units::size_bytes)]
    pub datagram_size: Vec<usize>,
    /// Datagrams a system call.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub udp_burst: Vec<u16>,
    /// one_call, mmsg or gso.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "gso")]
    pub technique: Vec<String>,
    /// Runs of each kind; medians are printed.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub repeats: u16,
    /// With the large buffers that need privilege, without, or both.
    #[arg(long, value_enum, default_value_t = Buffers::Both)]
    pub buffers: Buffers,
    /// End-to-end latency budget.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = units::duration)]
    pub latency: Duration,
    /// Look for the highest rate without loss instead.
    #[arg(long, requires = "udp")]
    pub reach: bool,
    /// Print a Markdown table.
    #[arg(long)]
    pub table: bool,
    /// Write the results as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Another process of a run.
    #[arg(long, hide = true)]
    pub peer: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Nothing is changed: what mends a thing is printed, for you to run.\n\n\
    Examples:\n  \
    grebe doctor\n  \
    grebe doctor --fix | less")]
pub struct Doctor {
    /// Print only the commands that mend what can be mended.
    #[arg(long)]
    pub fix: bool,
    /// Print everything as JSON.
    #[arg(long, conflicts_with = "fix")]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Buffers {
    Privileged,
    Plain,
    Both,
}

const EXAMPLES: &str = "Examples:
  grebe                                                  the demonstration
  grebe sg --channels 4 --rate 25M --to udp://:5000      a generator
  grebe view udp://:5000                                 a scope on it
  grebe record udp://:5000 out.sigmf-meta --duration 6s  a recording of it
  grebe run examples/graphs/envelope.toml                a graph of stages that a file describes
  grebe top                                              what they all do, and which stage is the slowest
  grebe recv incoming                                    a ticket for whoever sends: grebe send FILE --to

Streams are named by URIs: udp://HOST:PORT, shm://NAME, pipe:, file:PATH (or just the path of a recording), synth:.
Exit status: 0 good, 1 failed, 2 wrong usage, 130 interrupted.";
