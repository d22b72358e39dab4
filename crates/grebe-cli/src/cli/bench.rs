//! The options of `grebe bench`.

use clap::{Args, Subcommand};
use grebe_bench::{shm, udp};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  grebe bench udp
  grebe bench shm --parts shm,pipe,ingress --table
  grebe bench udp --reach --json > udp.json

For developers of grebe. Each result stands beside a baseline of the same run, and every frame is checked. The round trip of a \
cache line between two cores is measured before and after each run.")]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) which: WhichBench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WhichBench {
    /// UDP between two processes; baseline: one blocking call per datagram.
    #[command(after_help = UDP)]
    Udp {
        #[command(flatten)]
        options: udp::Options,
        /// Command that starts the receiver: 'ip netns exec NAME'.
        #[arg(long, value_name = "COMMAND")]
        peer_through: Option<String>,
        #[command(flatten)]
        results: Results,
    },
    /// Shared memory and pipes between processes.
    #[command(after_help = SHM)]
    Shm {
        #[command(flatten)]
        options: shm::Options,
        #[command(flatten)]
        results: Results,
    },
    /// Another process of a bench; its task comes on standard input.
    #[command(hide = true)]
    Peer,
}

/// Form of the results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct Results {
    /// Print a Markdown table.
    #[arg(long)]
    pub(crate) table: bool,
    /// Print the results as JSON on standard output.
    #[arg(long, conflicts_with = "table")]
    pub(crate) json: bool,
}

const UDP: &str = "Examples:
  grebe bench udp
  grebe bench udp --scenario 1ch_max,4ch_1GSPS --datagram-size 1400,65000 --duration 5s --repeats 5 --table
  grebe bench udp --reach --datagram-size 1400
  grebe bench udp --recv

Scenarios: 1ch_max, 1ch_256, 1ch_64, 2ch_max, 4ch_max, 1ch_cf32_max, and 1ch or 4ch at 1MSPS, 10MSPS, 100MSPS or 1GSPS (4ch_10MSPS).
The baseline is one blocking send and recv per datagram.";

const SHM: &str = "Examples:
  grebe bench shm
  grebe bench shm --parts shm,pipe,ingress --table
  grebe bench shm --scenario 4ch_1GSPS_fanout2 --near --duration 10s

Scenarios of each part:
  shm: 1ch_1GSPS, 4ch_1GSPS_fanout2, free_run (baselines: Unix socket, pipe, UDP), free_run_compare and free_run_cf32 \
(the same work on 16-bit and complex samples), faults (one consumer stopped, one killed)
  pipe: 1ch_1GSPS, free_run (baseline: a pipe of 64 KiB, written frame by frame)
  ingress: ingress_10MSPS, ingress_1GSPS (generator outside the process: shared memory, pipe, UDP)";
