//! Files over long distances.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use grebe_connection::{Address, Mode, Via};
use grebe_remote::relay;

use crate::units;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe send run7.bin logs --to           asks for the receiver's ticket\n  \
    grebe send run7.bin --to < ticket       reads it\n  \
    grebe send run7.bin                     prints a ticket for the receiver\n  \
    grebe send run7.bin --relay lab.example.org    both sides are behind NATs: they meet at that relay\n\n\
    A ticket is a secret for one transfer: whoever has it first is the peer. It is also read from GREBE_TICKET. As an argument \
    other users of this machine can see it.")]
pub(crate) struct Send {
    /// Files and directories.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The receiver's ticket; without a value it is asked for, or read from standard input. Without this option, a ticket is
    /// printed for the receiver.
    #[arg(long, value_name = "TICKET", num_args = 0..=1, default_missing_value = "-", conflicts_with_all = ["listen", "advertise", "expires", "relay"])]
    pub(crate) to: Option<String>,
    /// Leave out what matches: a name (*.tmp), a path from what is named on (/logs/old), only directories (cache/). As often as wanted.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Bits a second on the wire, at most: 20M, 1G.
    #[arg(long, value_name = "RATE", value_parser = units::rate_hz)]
    pub(crate) bwlimit: Option<f64>,
    /// How much of a shared path to take.
    #[arg(long, default_value = "fair", value_parser = units::choice(&MODES))]
    pub(crate) mode: Mode,
    #[command(flatten)]
    pub(crate) meeting: Meeting,
    /// Print the ticket, the progress and the result as lines of JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe recv incoming                          prints a ticket for the sender\n  \
    grebe recv incoming --listen 0.0.0.0:4733 --advertise lab.example.org\n  \
    grebe recv incoming --relay lab.example.org  both sides are behind NATs: they meet at that relay\n  \
    grebe recv --from < ticket                   with the sender's ticket, into this directory\n\n\
    A file lies in .grebe-partial until it is whole. What was cut off goes on where it was when the same files are sent again, with \
    a new ticket.")]
pub(crate) struct Recv {
    /// Where to put the files [default: .]; a sender's ticket may stand before it.
    #[arg(value_name = "[TICKET] [DIR]", num_args = 0..=2)]
    pub(crate) places: Vec<String>,
    /// The sender's ticket; without a value it is asked for, or read from standard input.
    #[arg(long, value_name = "TICKET", num_args = 0..=1, default_missing_value = "-", conflicts_with_all = ["listen", "advertise", "expires", "relay"])]
    pub(crate) from: Option<String>,
    /// Replace files that exist, and add to directories that exist.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// When to show what is offered and ask before it is taken; auto: where names that begin with a dot would go into the home
    /// or the working directory.
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value_t = AskWhen::Auto,
        default_missing_value = "always")]
    pub(crate) ask: AskWhen,
    #[command(flatten)]
    pub(crate) meeting: Meeting,
    /// Print the ticket, the progress and the result as lines of JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the side that prints the ticket is found, and how long the other looks for it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Meeting")]
pub(crate) struct Meeting {
    /// Where to wait for the other side, over UDP and TCP; port 0 is any [default: [::]:0, which is every address of IPv4, too].
    #[arg(long, value_name = "ADDR:PORT", value_parser = units::listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Where the other side finds us, if not at the addresses of this machine: behind a port that a router passes on.
    #[arg(long, value_name = "HOST[:PORT]", value_delimiter = ',')]
    pub(crate) advertise: Vec<String>,
    /// Meet at this relay (`grebe relay` runs there) where neither side can be reached: directly through both NATs where they let that
    /// happen, else by the relay. The other side needs the ticket only. Also from GREBE_RELAY.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = relay)]
    pub(crate) relay: Option<Address>,
    /// Which ways to take where the ticket names a relay.
    #[arg(long, value_name = "WAY", default_value = "any", value_parser = units::choice(&VIAS))]
    pub(crate) via: Via,
    /// How long the ticket is good.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = units::duration)]
    pub(crate) expires: Duration,
    /// How long to wait for an answer when a ticket was given.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    pub(crate) wait: Duration,
    /// How long a peer that was there may be silent; meanwhile TCP is tried too, and the same ticket stays good.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::duration)]
    pub(crate) keep_trying: Duration,
}

const VIAS: [(&str, &str, Via); 3] = [
    ("any", "Directly where that works, else by the relay", Via::Any),
    ("direct", "Directly only", Via::Direct),
    ("relay", "By the relay only: the other side does not learn this one's addresses", Via::Relay),
];

pub(crate) const MODES: [(&str, &str, Mode); 3] = [
    ("fair", "A share like that of the others", Mode::Fair),
    (
        "greedy",
        "All that the path gives; others, such as calls and downloads, are left almost nothing",
        Mode::Greedy,
    ),
    ("background", "What the others leave", Mode::Background),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskWhen {
    Auto,
    Always,
    Never,
}
