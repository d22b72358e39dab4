//! The options of `grebe send` and `grebe recv`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use grebe_connection::{Address, Mode, Via};
use grebe_remote::relay;

use crate::units;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe send run7.bin logs --to                  prompts for the receiver's ticket\n  \
    grebe send run7.bin --to < ticket              reads the ticket from a file\n  \
    grebe send run7.bin                            prints a ticket for the receiver\n  \
    grebe send run7.bin --relay lab.example.org    both sides are behind NATs\n\n\
    A ticket is a secret for one transfer: its first holder becomes the peer. It is also read from GREBE_TICKET. Other users of this \
    machine can see arguments.")]
pub(crate) struct Send {
    /// Files and directories.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Ticket of the receiver; without a value, prompt or read standard input.
    ///
    /// Without this option, the command prints a ticket for the receiver.
    #[arg(long, value_name = "TICKET", num_args = 0..=1, default_missing_value = "-", conflicts_with_all = ["listen", "advertise", "expires", "relay"])]
    pub(crate) to: Option<String>,
    /// Exclude matching names (*.tmp), paths (/logs/old), directories (cache/).
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Maximum rate on the wire in bit/s: 20M, 1G.
    #[arg(long, value_name = "RATE", value_parser = units::bits_per_s)]
    pub(crate) bwlimit: Option<f64>,
    /// Share of a path with other traffic.
    #[arg(long, default_value = "fair", value_parser = units::choice(&MODES))]
    pub(crate) mode: Mode,
    #[command(flatten)]
    pub(crate) rendezvous: Rendezvous,
    /// Print ticket, progress and result as lines of JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe recv incoming                          prints a ticket for the sender\n  \
    grebe recv incoming --listen 0.0.0.0:4733 --advertise lab.example.org\n  \
    grebe recv incoming --relay lab.example.org  both sides are behind NATs\n  \
    grebe recv --from < ticket                   uses the sender's ticket\n\n\
    Incomplete files are in .grebe-partial. An interrupted transfer resumes when the same files are sent again, with a new ticket.")]
pub(crate) struct Recv {
    /// Directory for the files [default: .]; optionally the sender's ticket before it.
    #[arg(value_name = "[TICKET] [DIR]", num_args = 0..=2)]
    pub(crate) places: Vec<String>,
    /// Ticket of the sender; without a value, prompt or read standard input.
    #[arg(long, value_name = "TICKET", num_args = 0..=1, default_missing_value = "-", conflicts_with_all = ["listen", "advertise", "expires", "relay"])]
    pub(crate) from: Option<String>,
    /// Replace existing files, and add to existing directories.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Prompt before receiving; auto: for hidden names in the home directory.
    ///
    /// auto also prompts for such names in the working directory, because they may change how programs behave.
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value_t = Confirm::Auto,
        default_missing_value = "always")]
    pub(crate) ask: Confirm,
    #[command(flatten)]
    pub(crate) rendezvous: Rendezvous,
    /// Print ticket, progress and result as lines of JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the two sides connect.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Rendezvous {
    /// Address and port, UDP and TCP; port 0 is any [default: [::]:0, with IPv4].
    #[arg(long, value_name = "ADDR:PORT", value_parser = units::listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Addresses by which the other side reaches this one, comma-separated.
    #[arg(long, value_name = "HOST[:PORT]", value_delimiter = ',')]
    pub(crate) advertise: Vec<String>,
    /// Relay for sides behind NATs; also from GREBE_RELAY.
    ///
    /// The sides connect directly through both NATs if possible, else by the relay. The other side needs only the ticket.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = relay)]
    pub(crate) relay: Option<Address>,
    /// Routes to use if the ticket names a relay.
    #[arg(long, value_name = "ROUTE", default_value = "any", value_parser = units::choice(&VIAS))]
    pub(crate) via: Via,
    /// Validity of the ticket.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = units::duration)]
    pub(crate) expires: Duration,
    /// Time to wait for the first answer, with a ticket of the other side.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    pub(crate) wait: Duration,
    /// Maximum silence of the other side during the transfer.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::duration)]
    pub(crate) keep_trying: Duration,
}

const VIAS: [(&str, &str, Via); 3] = [
    ("any", "Direct if possible, else by the relay", Via::Any),
    ("direct", "Direct only", Via::Direct),
    ("relay", "By the relay only; hides this side's addresses from the other", Via::Relay),
];

pub(crate) const MODES: [(&str, &str, Mode); 3] = [
    ("fair", "An equal share", Mode::Fair),
    ("greedy", "Everything; other traffic gets almost nothing", Mode::Greedy),
    ("background", "Only what other traffic leaves", Mode::Background),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Confirm {
    Auto,
    Always,
    Never,
}
