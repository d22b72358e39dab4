//! Copies of trees, between machines or within one.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use grebe_connection::{Address, Mode};
use grebe_remote::{HostOptions, Via, relay};
use grebe_tree::Fsync;

use super::location::{Location, location};
use super::transfer::MODES;
use crate::units;

#[derive(Debug, Args)]
#[command(
    override_usage = "grebe cp [OPTIONS] SRC... DEST",
    after_help = "Examples:\n  \
    grebe cp run7.bin me@lab:                     one file into the home there\n  \
    grebe cp -r runs lab:/data                    a tree: /data/runs; again: only what changed since\n  \
    grebe cp -r runs/ lab:/data                   what is in it: /data/...\n  \
    grebe cp -a --delete lab:/data/ backup        a copy of what is there, and of nothing else\n  \
    grebe cp -rn runs lab:/data                   only says what would be done\n  \
    grebe cp -r lab:runs store:/archive           from one machine to another, started from here\n  \
    grebe cp --progressive lab:run7.sigmf-meta .  a recording: grebe view run7.sigmf-meta shows it while it comes\n  \
    grebe cp --ssh 'ssh -p 2222 -J gate' run7.bin lab:\n\n\
    grebe has to be installed at the other end, or say --bootstrap. Names are as scp has them: HOST:PATH is there, and relative to \
    the home; ./a:b is here. The data goes over UDP, over TCP where UDP does not pass, and over ssh where neither does; with \
    --relay also between NATs.\n\
    After Ctrl-C or a break, the same command goes on where it was. docs/copy-trees.md says more.\n\
    Exit status: 0 all is there, 1 failed, 2 wrong usage, 3 the other side fell silent, 4 something was left out (it is named), \
    5 the disk is full, 130 interrupted."
)]
pub(crate) struct Cp {
    /// What to copy, and last where to: paths here, or [USER@]HOST:PATH, or ssh://[USER@]HOST[:PORT]/PATH.
    #[arg(value_names = ["SRC", "DEST"], required_unless_present = "serve", num_args = 2..,
        value_parser = OsStringValueParser::new().try_map(location))]
    pub(crate) places: Vec<Location>,
    #[command(flatten)]
    pub(crate) what: What,
    #[command(flatten)]
    pub(crate) how: How,
    #[command(flatten)]
    pub(crate) tell: Tell,
    /// Be the other end, as `grebe cp` starts it by ssh.
    #[arg(long, hide = true, conflicts_with = "places")]
    pub(crate) serve: bool,
    /// With --serve: refuse to run if this program is not the one of this BLAKE3.
    #[arg(long, hide = true, requires = "serve", value_name = "HASH")]
    pub(crate) is: Option<String>,
}

/// What is copied.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What to copy")]
pub(crate) struct What {
    /// Directories too, with all that is in them.
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Keep everything: -r, modes, times, symbolic and hard links, and as root owners. Without it modes (less the umask)
    /// and times are kept.
    #[arg(short, long)]
    pub(crate) archive: bool,
    /// Extended attributes too.
    #[arg(short = 'X', long)]
    pub(crate) xattrs: bool,
    /// Leave out what is called so: a name (*.tmp), or a path from the top of what is copied on (/build/*.o); may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Only say what would be done.
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Compare contents, not only sizes and times.
    #[arg(short, long)]
    pub(crate) checksum: bool,
    /// At the end remove what is there and not here.
    #[arg(long)]
    pub(crate) delete: bool,
    /// Send files that changed whole, without looking for what is there of them.
    #[arg(long)]
    pub(crate) whole_file: bool,
    /// Take contents from there, too, instead of sending them: a directory at the receiving end; a path that is not absolute begins
    /// at DEST. What lies in DEST is used in any case, whatever its name.
    #[arg(long, value_name = "DIR")]
    pub(crate) also_look_in: Vec<PathBuf>,
    /// Keep what each end computes of its files, in the state directory of its user, so that the next time what did not change is not
    /// read.
    #[arg(long)]
    pub(crate) index: bool,
    /// Recordings can be looked at while they come: metadata and summary first, then samples from all over, ever closer together, and
    /// before them what somebody looks at. One file of a recording stands for all of it.
    #[arg(long)]
    pub(crate) progressive: bool,
    /// Files of this name before all others: a pattern as that of --exclude; may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) first: Vec<String>,
    /// When the receiving end brings to the disk what has come [default: batch].
    #[arg(long, value_name = "WHEN", num_args = 0..=1, default_value = "batch", default_missing_value = "batch", hide_default_value = true, value_parser = units::choice(&FLUSHES))]
    pub(crate) fsync: Fsync,
    /// Remove what is in the way: a directory where a file comes, the reverse, and devices, sockets and named pipes.
    #[arg(long)]
    pub(crate) force: bool,
    /// Stay on the file system that SRC is on.
    #[arg(short = 'x', long)]
    pub(crate) one_file_system: bool,
}

/// How it gets there. What is not said is taken from the configuration.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "How to get there")]
pub(crate) struct How {
    /// How to start ssh, with options: 'ssh -p 2222'.
    #[arg(short = 'e', long, value_name = "COMMAND")]
    pub(crate) ssh: Option<String>,
    /// Where grebe is at the other end [default: grebe, on the PATH there].
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_path: Option<String>,
    /// Bring this grebe along where there is none: into ~/.cache/grebe there, if it is the same kind of system.
    #[arg(long)]
    pub(crate) bootstrap: bool,
    /// Which way the data goes [default: auto].
    #[arg(long, value_name = "WAY", value_parser = units::choice(&WAYS))]
    pub(crate) via: Option<Via>,
    /// The port for the data at the other end, of UDP and TCP, where its firewall lets one in [default: any].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Where datagrams find the other end, if not where ssh does.
    #[arg(long, value_name = "HOST")]
    pub(crate) address: Option<String>,
    /// Where neither end reaches the other, both meet at this relay (`grebe relay` runs there). Also from GREBE_RELAY.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = relay)]
    pub(crate) relay: Option<Address>,
    /// Bits a second on the wire, at most: 20M, 1G.
    #[arg(long, value_name = "RATE", value_parser = units::rate_hz)]
    pub(crate) bwlimit: Option<f64>,
    /// How much of a shared path to take [default: fair].
    #[arg(long, value_parser = units::choice(&MODES))]
    pub(crate) mode: Option<Mode>,
    /// Read no configuration.
    #[arg(long)]
    pub(crate) no_config: bool,
}

impl How {
    /// What the command line says of how to reach a host.
    pub(crate) fn host_options(&self) -> HostOptions {
        let Self { ssh, remote_path, via, port, address, relay, bwlimit, mode, .. } = self.clone();
        let bootstrap = self.bootstrap.then_some(true);
        let none = HostOptions::default();
        HostOptions { ssh, remote_path, bootstrap, via, port, address, relay, bwlimit, mode, ..none }
    }
}

/// What is said of it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What to say")]
pub(crate) struct Tell {
    /// Name each file, and the way that the data goes.
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Say only what went wrong.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print what happens as lines of JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Append a line for each file to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

const FLUSHES: [(&str, &str, Fsync); 3] = [
    ("never", "When the system likes: a power cut may leave torn files", Fsync::Never),
    (
        "batch",
        "Contents before files get their names, many at a time, and everything before the end",
        Fsync::Batch,
    ),
    ("file", "Each file before it is told as done", Fsync::File),
];

const WAYS: [(&str, &str, Via); 5] = [
    ("auto", "UDP, else TCP at the same port, else the relay if one is named, else ssh", Via::Auto),
    ("udp", "UDP only, directly or by the relay", Via::Udp),
    ("tcp", "A TCP connection beside ssh", Via::Tcp),
    ("relay", "UDP by the relay only", Via::Relay),
    ("ssh", "The connection that ssh has", Via::Ssh),
];
