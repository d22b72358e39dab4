//! The options of `grebe bench`, one struct per bench.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::units;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe bench udp\n  \
    grebe bench shm --parts shm,pipe,ingress --table\n  \
    grebe bench transfer --parts links --only A,D\n  \
    grebe bench all --json all.json\n\n\
    Every result stands beside a baseline that was measured in turn with it, and every frame and file is checked. How far apart\n\
    the machine's cores are (the round trip of a cache line between two of them) is read before and after each run.")]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) which: WhichBench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WhichBench {
    /// UDP between two processes, beside one blocking call per datagram.
    Udp(BenchUdp),
    /// Shared memory and pipes between processes, and the ways into a program.
    Shm(BenchShm),
    /// The runtime: stages, queues and telemetry, each beside the same work without them.
    Flow(BenchFlow),
    /// The scope's window, fed over shared memory, a pipe or UDP.
    View(BenchView),
    /// Files over long distances, beside TCP in the same run.
    Transfer(BenchTransfer),
    /// Every bench after the other, each as it is without options.
    All(BenchAll),
    /// Another process of a bench: its job comes on standard input.
    #[command(hide = true)]
    Peer,
}

/// How long and how often is measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Runs")]
pub(crate) struct Runs {
    /// How long one run takes.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    pub(crate) duration: Duration,
    /// Runs of each kind; medians are shown.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) repeats: u16,
}

/// In which state of the machine is measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Runs")]
pub(crate) struct Machine {
    /// Take only rounds in which the machine's cores were near each other throughout.
    #[arg(long, conflicts_with = "far")]
    pub(crate) near: bool,
    /// Take only rounds in which they were far from each other throughout.
    #[arg(long)]
    pub(crate) far: bool,
    /// How long to wait for such rounds, per scenario.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = units::duration)]
    pub(crate) patience: Duration,
}

/// What becomes of the results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct Results {
    /// Print a Markdown table.
    #[arg(long)]
    pub(crate) table: bool,
    /// Write the results as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe bench udp\n  \
    grebe bench udp --scenario 1ch_max,4ch_1GSPS --datagram-size 1400,65000 --duration 5s --repeats 5 --table\n  \
    grebe bench udp --reach --datagram-size 1400\n  \
    grebe bench udp --recv\n\n\
    Scenarios: 1ch_max, 1ch_256, 1ch_64, 2ch_max, 4ch_max, and 1ch or 4ch at 1MSPS, 10MSPS, 100MSPS or 1GSPS (4ch_10MSPS).\n\
    Every sample of every frame is checked. The baseline, one blocking send and recv per datagram, is measured in turn with each\n\
    technique.")]
pub(crate) struct BenchUdp {
    /// Scenarios by label, or `all`.
    #[arg(long, value_name = "LABEL", value_delimiter = ',', default_value = "1ch_max")]
    pub(crate) scenario: Vec<String>,
    /// Bytes of a datagram.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1400,65000", value_parser = units::size_bytes)]
    pub(crate) datagram_size: Vec<usize>,
    /// Datagrams per system call.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "128", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub(crate) udp_burst: Vec<u16>,
    /// How datagrams go to the kernel: one per call, several per call, several per call and kernel buffer (segmentation
    /// offload), or the same from frames that lie one behind the other.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "gso", value_parser = ["one_call", "mmsg", "gso", "gso_run"])]
    pub(crate) technique: Vec<String>,
    /// With the large socket buffers that need privilege, without, or both.
    #[arg(long, value_enum, default_value_t = Buffers::Both)]
    pub(crate) buffers: Buffers,
    /// Bytes of receive buffer to ask for.
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = units::size_bytes)]
    pub(crate) recv_buffer: usize,
    /// End-to-end latency budget.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = units::duration)]
    pub(crate) latency: Duration,
    /// Look for the highest rate without loss instead, with the first scenario, technique and burst.
    #[arg(long)]
    pub(crate) reach: bool,
    /// Measure receiving small datagrams from 1, 2, 4 and 8 senders instead: one per call, and 32 per call.
    #[arg(long, conflicts_with = "reach")]
    pub(crate) recv: bool,
    /// Where the receiver binds.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,
    /// A command that starts the receiver, for example 'ip netns exec NAME'.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) peer_through: Option<String>,
    /// Leave the baseline out.
    #[arg(long)]
    pub(crate) no_baseline: bool,
    #[command(flatten)]
    pub(crate) runs: Runs,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) results: Results,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe bench shm\n  \
    grebe bench shm --parts shm,pipe,ingress --table\n  \
    grebe bench shm --scenario 4ch_1GSPS_fanout2 --near --duration 10s\n\n\
    Parts and their scenarios:\n  \
    shm      shared memory: 1ch_1GSPS, 4ch_1GSPS_fanout2, free_run (beside a Unix socket, a pipe and UDP), and faults, in which\n           \
             one consumer is stopped and one killed\n  \
    pipe     a pipe: 1ch_1GSPS, and free_run beside a pipe of 64 KiB that is written frame by frame\n  \
    ingress  how much later frames come when the generator is not in the program but behind shared memory, a pipe or UDP:\n           \
             ingress_10MSPS, ingress_1GSPS")]
pub(crate) struct BenchShm {
    /// What to measure.
    #[arg(long, value_name = "PART", value_delimiter = ',', default_value = "shm", value_parser = ["shm", "pipe", "ingress"])]
    pub(crate) parts: Vec<String>,
    /// Only the scenarios with these labels.
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub(crate) scenario: Vec<String>,
    /// Bytes of a frame, at most.
    #[arg(long, value_name = "BYTES", default_value = "65000", value_parser = units::size_bytes)]
    pub(crate) frame_size: usize,
    /// Bytes of a chunk of the stream's memory.
    #[arg(long, value_name = "BYTES", default_value = "256K", value_parser = units::size_bytes)]
    pub(crate) chunk_size: usize,
    /// Chunks of the stream's memory.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) chunks: usize,
    /// Chunks that rest after they were sent.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) rest: usize,
    /// Batches that may wait for a consumer, at a given rate.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) queue: u32,
    /// Batches that may wait for a consumer, where the stream runs freely.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) free_queue: u32,
    /// How often a producer with a rate makes what is due.
    #[arg(long, value_name = "TIME", default_value = "125us", value_parser = units::duration)]
    pub(crate) tick: Duration,
    /// Leave the processes on the cores that the system chooses.
    #[arg(long)]
    pub(crate) no_pin: bool,
    /// Leave the baselines of free_run out.
    #[arg(long)]
    pub(crate) no_baseline: bool,
    #[command(flatten)]
    pub(crate) runs: Runs,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) results: Results,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe bench flow --repeats 9 --table\n  \
    grebe bench flow --parts hop,chain --duration 250ms")]
pub(crate) struct BenchFlow {
    /// What to measure: a chain of stages, handing on a batch, a slow consumer beside a fast one, a stage that decimates, reading
    /// the counters [default: all].
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = ["chain", "hop", "fan_out", "decimate", "telemetry"])]
    pub(crate) parts: Vec<String>,
    #[command(flatten)]
    pub(crate) runs: Runs,
    #[command(flatten)]
    pub(crate) results: Results,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe bench view --duration 5s\n  \
    grebe bench view --all-rates --table\n\n\
    The window is 1280 x 720, first without traces, then with those of one and of four channels of 1 GS/s.")]
pub(crate) struct BenchView {
    /// Also one channel of 1M, 10M, 100M and 1G samples per second over each of shm://, pipe: and udp://.
    #[arg(long)]
    pub(crate) all_rates: bool,
    /// How long one run takes.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    pub(crate) duration: Duration,
    #[command(flatten)]
    pub(crate) results: Results,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe bench transfer --table\n  \
    grebe bench transfer --parts links,random --only A,D --links 20 --seed 7\n  \
    grebe bench transfer --parts loopback --size 256M --dir /tmp\n  \
    sudo grebe bench transfer --wanlink ./wanlink --repeats 1\n\n\
    Parts: links (A to E, simulated), random (links drawn at random, simulated), shares (of a path beside TCP and another of\n\
    ours, simulated), loopback (two processes on this machine, beside plain TCP, iperf3 and scp).")]
pub(crate) struct BenchTransfer {
    /// What to measure [default: all].
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = ["links", "random", "shares", "loopback"])]
    pub(crate) parts: Vec<String>,
    /// Only these of the links A to E.
    #[arg(long, value_name = "LINK", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// How many links are drawn at random [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=1000))]
    pub(crate) links: Option<u16>,
    /// The seed of the random links and of all losses.
    #[arg(long, value_name = "SEED", default_value_t = grebe_bench::transfer::SEED)]
    pub(crate) seed: u64,
    /// The file that two processes on this machine hand over [default: 1G].
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes)]
    pub(crate) size: Option<usize>,
    /// Where files are sent from and come to. By default in memory (/dev/shm) where there is room, else among the temporary
    /// files.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// As root: real processes over links A to E that this program emulates between two network namespaces, beside TCP with BBR
    /// and CUBIC. It is called with --name N --delay MS --rate MBIT --loss P --loss-back P --seed S, makes the namespaces
    /// N-a (198.18.0.1) and N-b (198.18.0.2), and removes them when it is interrupted.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["parts", "links", "size"])]
    pub(crate) wanlink: Option<PathBuf>,
    /// Runs of each kind; medians are shown.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) repeats: u16,
    #[command(flatten)]
    pub(crate) results: Results,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe bench all --table\n  \
    grebe bench all --json all.json")]
pub(crate) struct BenchAll {
    #[command(flatten)]
    pub(crate) results: Results,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffers {
    Privileged,
    Plain,
    Both,
}
