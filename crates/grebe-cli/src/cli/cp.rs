//! The options of `grebe cp`.

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
    grebe cp run7.bin me@lab:                     one file to the remote home directory\n  \
    grebe cp -r runs lab:/data                    a tree to /data/runs; later runs copy changes only\n  \
    grebe cp -r runs/ lab:/data                   the contents of the tree to /data\n  \
    grebe cp -a --delete lab:/data/ backup        an exact copy\n  \
    grebe cp -rn runs lab:/data                   a dry run\n  \
    grebe cp -r lab:runs store:/archive           between two other machines\n  \
    grebe cp --progressive lab:run7.sigmf-meta .  a recording that grebe view shows while it arrives\n  \
    grebe cp --ssh 'ssh -p 2222 -J gate' run7.bin lab:\n\n\
    The other machine needs grebe, or --bootstrap. Names are those of scp: HOST:PATH is remote and relative to the home directory; \
    ./a:b is local. Data goes over UDP, else TCP, else ssh; with --relay also between NATs.\n\
    After Ctrl-C or a break, the same command resumes. More: docs/copy-trees.md."
)]
pub(crate) struct Cp {
    /// Sources, and last the destination; remote as [USER@]HOST:PATH.
    ///
    /// ssh://[USER@]HOST[:PORT]/PATH is also accepted.
    #[arg(value_names = ["SRC", "DEST"], required_unless_present = "serve", num_args = 2..,
        value_parser = OsStringValueParser::new().try_map(location))]
    pub(crate) places: Vec<Location>,
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(flatten)]
    pub(crate) routing: Routing,
    #[command(flatten)]
    pub(crate) reporting: Reporting,
    /// Run as the other end, for `grebe cp`.
    #[arg(long, hide = true, conflicts_with = "places")]
    pub(crate) serve: bool,
    /// With --serve: fail unless this program has this BLAKE3 hash.
    #[arg(long, hide = true, requires = "serve", value_name = "HASH")]
    pub(crate) is: Option<String>,
}

/// Files to copy, and their attributes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct Selection {
    /// Copy directories with their contents.
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Keep everything: -r, modes, times, links; owners if root.
    ///
    /// Without it, modes (less the umask) and times are kept.
    #[arg(short, long)]
    pub(crate) archive: bool,
    /// Copy extended attributes.
    #[arg(short = 'X', long)]
    pub(crate) xattrs: bool,
    /// Exclude matching names (*.tmp) or paths (/build/*.o); repeatable.
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Print what would be copied, and change nothing.
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Compare contents, not only sizes and times.
    #[arg(short, long)]
    pub(crate) checksum: bool,
    /// Remove files from the destination that the source does not have.
    #[arg(long)]
    pub(crate) delete: bool,
    /// Send changed files whole, without comparing contents.
    #[arg(long)]
    pub(crate) whole_file: bool,
    /// Also search DIR for content before sending it; relative to DEST.
    ///
    /// DIR is at the receiving end. DEST is always searched.
    #[arg(long, value_name = "DIR")]
    pub(crate) also_search: Vec<PathBuf>,
    /// Keep checksums of files at each end, to skip reading them next time.
    #[arg(long)]
    pub(crate) index: bool,
    /// Send recordings so that they can be viewed while they arrive.
    ///
    /// Metadata and summaries go first, then samples from the whole recording, at increasing density. A viewed range has priority. One file of a recording
    /// selects all of its files.
    #[arg(long)]
    pub(crate) progressive: bool,
    /// Send matching files first; repeatable.
    #[arg(long, value_name = "GLOB")]
    pub(crate) first: Vec<String>,
    /// Flushing of received files to disk [default: batch].
    #[arg(long, value_name = "WHEN", num_args = 0..=1, default_value = "batch", default_missing_value = "batch", hide_default_value = true, value_parser = units::choice(&FLUSHES))]
    pub(crate) fsync: Fsync,
    /// Replace obstacles: a directory by a file and the reverse, devices, pipes.
    #[arg(long)]
    pub(crate) force: bool,
    /// Stay on the file system of SRC.
    #[arg(short = 'x', long)]
    pub(crate) one_file_system: bool,
}

/// Route to the other machine. The configuration has defaults.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Route")]
pub(crate) struct Routing {
    /// ssh command with options: 'ssh -p 2222' [default: ssh].
    #[arg(short = 'e', long, value_name = "COMMAND")]
    pub(crate) ssh: Option<String>,
    /// Path of grebe on the other machine [default: grebe].
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_path: Option<String>,
    /// Install this grebe in ~/.cache/grebe on machines without it.
    ///
    /// The other machine must have the same kind of system.
    #[arg(long)]
    pub(crate) bootstrap: bool,
    /// Route of the data [default: auto].
    #[arg(long, value_name = "ROUTE", value_parser = units::choice(&ROUTES))]
    pub(crate) via: Option<Via>,
    /// UDP and TCP port for data on the other machine [default: any].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Address of the other machine for data [default: that of ssh].
    #[arg(long, value_name = "HOST")]
    pub(crate) address: Option<String>,
    /// Relay for ends behind NATs; also from GREBE_RELAY.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = relay)]
    pub(crate) relay: Option<Address>,
    /// Maximum rate on the wire in bit/s: 20M, 1G.
    #[arg(long, value_name = "RATE", value_parser = units::bits_per_s)]
    pub(crate) bwlimit: Option<f64>,
    /// Share of a path with other traffic [default: fair].
    #[arg(long, value_parser = units::choice(&MODES))]
    pub(crate) mode: Option<Mode>,
    /// Ignore the configuration file.
    #[arg(long)]
    pub(crate) no_config: bool,
}

impl Routing {
    pub(crate) fn host_options(&self) -> HostOptions {
        let Self { ssh, remote_path, via, port, address, relay, bwlimit, mode, .. } = self.clone();
        let bootstrap = self.bootstrap.then_some(true);
        let none = HostOptions::default();
        HostOptions { ssh, remote_path, bootstrap, via, port, address, relay, bwlimit, mode, ..none }
    }
}

/// Progress and results.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Reporting {
    /// Print each file, and the route of the data.
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print errors only.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print progress and result as lines of JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// File to which to append a line per copied file.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

const FLUSHES: [(&str, &str, Fsync); 3] = [
    ("never", "Leave it to the system; a power cut may damage files", Fsync::Never),
    ("batch", "Flush many files at a time, each before it gets its name", Fsync::Batch),
    ("file", "Flush each file before reporting it as done", Fsync::File),
];

const ROUTES: [(&str, &str, Via); 5] = [
    ("auto", "UDP, else TCP at the same port, else --relay, else ssh", Via::Auto),
    ("udp", "UDP, direct or by the relay", Via::Udp),
    ("tcp", "TCP", Via::Tcp),
    ("relay", "UDP by the relay", Via::Relay),
    ("ssh", "The connection of ssh", Via::Ssh),
];
