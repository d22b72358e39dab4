//! The command line, as clap reads it.

mod probe;
mod stream;
mod transfer;
mod trigger;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::units;

pub(crate) use probe::{Probe, SshHost, Target};
pub(crate) use stream::{Play, Record, Sg};
pub(crate) use transfer::{Meeting, Recv, Send, TransferMode};
pub(crate) use view::{Channels, Demo, MeasureFormat, Theme, View};

/// Moves, shows, records and ships sampled signals at the speed of the machine.
///
/// Without a command: a demonstration. A generator process sends four channels of 25 MS/s over UDP to a scope.
#[derive(Debug, Parser)]
#[command(name = "grebe", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
    /// Look at this machine: what it can do for grebe, what limits it, and what fixes that.
    Doctor(Doctor),
    /// Print completions for a shell.
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Print the manual page.
    #[command(hide = true)]
    Man,
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
pub(crate) struct Run {
    /// A graph file.
    #[arg(value_name = "GRAPH", required_unless_present = "kinds")]
    pub(crate) graph: Option<PathBuf>,
    /// Only check the file; nothing is opened.
    #[arg(long)]
    pub(crate) check: bool,
    /// List the kinds of stages with their parameters, or print the JSON schema of one.
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["graph", "check"])]
    pub(crate) kinds: Option<String>,
    /// Print the result as JSON on standard output; with --kinds, all schemas.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe top\n  \
    grebe top view\n  \
    grebe top --once\n  \
    grebe top --json | jq -r '.slowest.stage'\n\n\
    Every grebe of this user that runs a graph is shown (sg, play, record, view, demo, run, bench), and every program that\n\
    publishes one. Keys: q quit, arrows scroll, s sort, ? what the columns mean.")]
pub(crate) struct Top {
    /// Only those of this name (sg, view, ...), or this process id.
    #[arg(value_name = "NAME|PID")]
    pub(crate) of: Option<String>,
    /// Print the table once, and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print a line of JSON for each process and second; with --once, one for each process.
    #[arg(long)]
    pub(crate) json: bool,
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
pub(crate) struct Bench {
    /// UDP between two processes.
    #[arg(long, required_unless_present_any = ["udp_recv", "flow", "shm", "pipe", "ingress", "view", "transfer", "all"])]
    pub(crate) udp: bool,
    /// The runtime: stages, queues and telemetry, each beside the same work without them. All benches, or those named:
    /// chain, hop, fan_out, decimate, telemetry.
    #[arg(long, value_name = "NAME", num_args = 0.., require_equals = true, value_delimiter = ',', default_missing_value = "all", conflicts_with_all = ["udp", "udp_recv"])]
    pub(crate) flow: Vec<String>,
    /// Shared memory between processes: 1ch_1GSPS, 4ch_1GSPS_fanout2, free_run (beside a Unix socket, a pipe and UDP), and faults,
    /// in which one consumer is stopped and one killed.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow"])]
    pub(crate) shm: bool,
    /// A pipe between processes: 1ch_1GSPS, and free_run beside a pipe of 64 KiB that is written frame by frame.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow"])]
    pub(crate) pipe: bool,
    /// How much later frames come when the generator is not in the program but behind shared memory, a pipe or UDP:
    /// ingress_10MSPS, ingress_1GSPS.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow"])]
    pub(crate) ingress: bool,
    /// The scope's window over shm://, pipe: and udp://, at rates from 1 MS/s to 1 GS/s; `--scenario all` for all rates.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow", "shm", "pipe", "ingress"])]
    pub(crate) view: bool,
    /// Receiving small datagrams from 1, 2, 4 and 8 senders: one a call, and batches.
    #[arg(long, conflicts_with = "udp")]
    pub(crate) udp_recv: bool,
    /// Files over long distances, beside TCP in the same run. All parts, or those named: links (A to E, simulated), random (links
    /// drawn at random, simulated), shares (of a path beside TCP and another of ours, simulated), loopback (two processes on this
    /// machine, beside plain TCP, iperf3 and scp).
    #[arg(long, value_name = "PART", num_args = 0.., require_equals = true, value_delimiter = ',', default_missing_value = "all",
        conflicts_with_all = ["udp", "udp_recv", "flow", "shm", "pipe", "ingress", "view", "duration"])]
    pub(crate) transfer: Vec<String>,
    /// With --transfer: only these of the links A to E.
    #[arg(long, value_name = "LINK", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// With --transfer: how many links are drawn at random [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=1000))]
    pub(crate) links: Option<u16>,
    /// With --transfer: the seed of the random links and of all losses [default: 20261121].
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<u64>,
    /// With --transfer: the file that two processes on this machine hand over [default: 1G].
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes)]
    pub(crate) size: Option<usize>,
    /// With --transfer: where files are sent from and come to. By default in memory (/dev/shm) where there is room, else among
    /// the temporary files.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// With --transfer, as root: real processes over links A to E that this program emulates between two network namespaces, beside
    /// TCP with BBR and CUBIC. It is called with --name N --delay MS --rate MBIT --loss P --loss-back P --seed S, makes the namespaces
    /// N-a (198.18.0.1) and N-b (198.18.0.2), and removes them when it is interrupted.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["links", "size"])]
    pub(crate) wanlink: Option<PathBuf>,
    /// Every bench after the other, each as it is without options.
    #[arg(long, conflicts_with_all = ["udp", "udp_recv", "flow", "shm", "pipe", "ingress", "view", "transfer", "duration", "scenario",
        "channels", "datagram_size", "udp_burst", "technique", "repeats", "buffers", "latency", "reach"])]
    pub(crate) all: bool,
    /// How long one run sends.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    pub(crate) duration: Duration,
    /// Scenarios by label, or `all`.
    #[arg(long, value_name = "LABEL", value_delimiter = ',', default_value = "1ch_max")]
    pub(crate) scenario: Vec<String>,
    /// Channels of scenarios without a label of their own: 1ch_max, 2ch_max or 4ch_max.
    #[arg(long, value_name = "N", conflicts_with = "scenario")]
    pub(crate) channels: Option<u8>,
    /// Bytes of a datagram.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1400,65000", value_parser = units::size_bytes)]
    pub(crate) datagram_size: Vec<usize>,
    /// Datagrams per system call.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub(crate) udp_burst: Vec<u16>,
    /// one_call, mmsg or gso.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "gso")]
    pub(crate) technique: Vec<String>,
    /// Runs of each kind; medians are printed.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) repeats: u16,
    /// With the large buffers that need privilege, without, or both.
    #[arg(long, value_enum, default_value_t = Buffers::Both)]
    pub(crate) buffers: Buffers,
    /// End-to-end latency budget.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = units::duration)]
    pub(crate) latency: Duration,
    /// Look for the highest rate without loss instead.
    #[arg(long, requires = "udp")]
    pub(crate) reach: bool,
    /// Print a Markdown table.
    #[arg(long)]
    pub(crate) table: bool,
    /// Write the results as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Another process of a run.
    #[arg(long, hide = true)]
    pub(crate) peer: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Nothing is changed: the commands that fix a thing are printed, for you to run.\n\n\
    Examples:\n  \
    grebe doctor\n  \
    grebe doctor --fix | less")]
pub(crate) struct Doctor {
    /// Print only the commands that fix what can be fixed.
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print everything as JSON.
    #[arg(long, conflicts_with = "fix")]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffers {
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
Exit status: 0 good, 1 failed, 2 wrong usage, 130 interrupted. A reader that closes the pipe, such as head, is no failure.";
