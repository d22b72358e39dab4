//! The options of `grebe bench`: those of the benches themselves, and what becomes of their results.

use clap::{Args, Subcommand};
use grebe_bench::{shm, udp};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  grebe bench udp
  grebe bench shm --parts shm,pipe,ingress --table
  grebe bench udp --reach --json > udp.json

Every result stands beside a baseline that was measured in turn with it, and every frame is checked. How far apart the \
machine's cores are (the round trip of a cache line between two of them) is read before and after each run.")]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) which: WhichBench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WhichBench {
    /// UDP between two processes, beside one blocking call per datagram.
    #[command(after_help = UDP)]
    Udp {
        #[command(flatten)]
        options: udp::Options,
        /// A command that starts the receiver, for example 'ip netns exec NAME'.
        #[arg(long, value_name = "COMMAND")]
        peer_through: Option<String>,
        #[command(flatten)]
        results: Results,
    },
    /// Shared memory and pipes between processes, and the ways into a program.
    #[command(after_help = SHM)]
    Shm {
        #[command(flatten)]
        options: shm::Options,
        #[command(flatten)]
        results: Results,
    },
    /// Another process of a bench: its job comes on standard input.
    #[command(hide = true)]
    Peer,
}

/// What becomes of the results.
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

Scenarios: 1ch_max, 1ch_256, 1ch_64, 2ch_max, 4ch_max, 1ch_cf32_max (complex floating-point samples), and 1ch or 4ch at 1MSPS, 10MSPS, 100MSPS or 1GSPS (4ch_10MSPS). Every sample \
of every frame is checked. The baseline, one blocking send and recv per datagram, is measured in turn with each technique.";

const SHM: &str = "Examples:
  grebe bench shm
  grebe bench shm --parts shm,pipe,ingress --table
  grebe bench shm --scenario 4ch_1GSPS_fanout2 --near --duration 10s

Scenarios of each part:
  shm: 1ch_1GSPS, 4ch_1GSPS_fanout2, free_run (beside a Unix socket, a pipe and UDP), free_run_compare beside free_run_cf32 \
(the same work on 16-bit and on complex floating-point samples), and faults, in which one consumer is stopped \
and one killed
  pipe: 1ch_1GSPS, and free_run beside a pipe of 64 KiB that is written frame by frame
  ingress: ingress_10MSPS and ingress_1GSPS, where the generator is not in the program but behind shared memory, a pipe or UDP";
