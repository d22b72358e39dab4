//! The command line, as clap reads it.

mod bench;
mod cp;
mod event;
mod file;
mod lab;
mod location;
mod metrics;
mod numbers;
mod probe;
mod record;
mod relay;
mod serve;
mod shown;
mod stream;
mod transfer;
mod trigger;
mod view;

use std::path::PathBuf;

use crate::units;
use clap::{Args, CommandFactory, Parser, Subcommand};
use grebe_stages::Uri;

pub(crate) use bench::{Bench, Results, WhichBench};
pub(crate) use cp::{Cp, How, Tell, What};
pub(crate) use event::{Conditions, EventKind, EventWords};
pub(crate) use file::{Convert, Find, Info, Repair};
pub(crate) use grebe_connection::printable;
pub(crate) use grebe_remote::{SshHost, ssh_host};
pub(crate) use lab::{Lab, Ls};
pub(crate) use location::{Location, location};
pub(crate) use metrics::Metrics;
pub(crate) use probe::{Probe, Target};
pub(crate) use record::{Record, Save, Trigger};
pub(crate) use relay::Relay;
pub(crate) use serve::Serve;
pub(crate) use shown::Shown;
pub(crate) use stream::{Play, Sg, Verify};
pub(crate) use transfer::{AskWhen, Meeting, Recv, Send};
pub(crate) use view::{Channels, Demo, Meanings, View};

/// Moves, shows, records and ships sampled signals at the speed of the machine.
///
/// Without a command: a demonstration. A generator process sends four channels of 25 MS/s over UDP to a scope.
#[derive(Debug, Parser)]
#[command(name = "grebe", version, after_help = after_help())]
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
    /// Show a stream to viewers elsewhere: in a browser, or with grebe view. The samples stay here.
    Serve(Box<Serve>),
    /// Record a stream to a SigMF recording, or the last of it to a ring.
    Record(Record),
    /// Keep a stretch of a ring that is being recorded: the last 20 s, for good.
    Save(Save),
    /// Play a recording.
    Play(Play),
    /// Write a recording, or a part of it, as another kind of file: SigMF, WAV, NumPy, CSV, raw.
    Convert(Convert),
    /// Compare recordings with their checksums.
    Verify(Verify),
    /// Close recordings whose recorder was cut off, in place.
    Repair(Repair),
    /// Say what there is in recordings: samples, channels, times, gaps, and whether they are whole.
    Info(Info),
    /// List every event of a recording: edges, pulses, levels, power, silence, gaps.
    Find(Find),
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
    /// Let two sides that are behind NATs meet here, and pass on what they send where no direct way lets it through.
    Relay(Relay),
    /// Copy files and directories to or from another machine by your own ssh, over any distance: only what changed.
    Cp(Box<Cp>),
    /// Measure what this machine can do, beside the plainest way to do it.
    Bench(Bench),
    /// Measure what a path carries, each way: round trip, MTU, loss, the highest rate without loss, and what limits it.
    Probe(Probe),
    /// List what can be opened here and now, as the URIs that open it: radios, serial ports, sound, shared memory.
    Devices(Devices),
    /// List the streams that are announced in the lab, on this machine and others, by name.
    Ls(Ls),
    /// Look at this machine: what it can do for grebe, what limits it, and what fixes that.
    Doctor(Doctor),
    /// Print what a shell needs to complete these commands and their options.
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print a manual page, as `man -l -` shows it.
    #[command(after_help = MAN)]
    Man {
        /// Of which command [default: grebe itself].
        command: Vec<String>,
    },
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    numbers::with_numbers(Cli::command())
}

const COMPLETIONS: &str = "Examples:
  grebe completions bash > ~/.local/share/bash-completion/completions/grebe
  grebe completions fish > ~/.config/fish/completions/grebe.fish
  grebe completions zsh > ~/.zfunc/_grebe    # with fpath=(~/.zfunc $fpath) before compinit";

const MAN: &str = "Examples:
  grebe man | man -l -
  grebe man bench udp > grebe-bench-udp.1";

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe run examples/graphs/envelope.toml\n  \
    grebe run my.toml --check\n  \
    grebe run my.toml --metrics 9464    # figures for Prometheus at http://127.0.0.1:9464/metrics\n  \
    grebe run lab.toml                  # stages with host = \"pi@mast3\" run there, started by ssh\n  \
    grebe run lab.toml --bootstrap      # and grebe comes along where there is none\n  \
    grebe run lab.toml --check=hosts    # are all hosts there, are their clocks right, do the ways carry the edges?\n  \
    grebe run --kinds\n  \
    grebe run --kinds synth\n\n\
    The graph ends when all its sources have, or with Ctrl-C; what is under way is drained first. Files that it names are \
    found from the current directory, on other hosts from the home. docs/graphs.md describes the format.\n\
    Exit status: 0 ran to its end, 1 failed, 2 a mistake in the file, 3 another host is gone, 130 interrupted.")]
pub(crate) struct Run {
    /// A graph file.
    #[arg(value_name = "GRAPH", required_unless_present_any = ["kinds", "serve"])]
    pub(crate) graph: Option<PathBuf>,
    /// Only check the file; nothing is opened. With =hosts, also log in to its hosts, and look whether grebe is there, how far clocks are
    /// apart, and what the ways between them carry.
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "file")]
    pub(crate) check: Option<Check>,
    /// List the kinds of stages with their parameters, or print the JSON schema of one.
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["graph", "check"])]
    pub(crate) kinds: Option<String>,
    /// Print the result as JSON on standard output; with --kinds, all schemas.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) lab: Lab,
    #[command(flatten)]
    pub(crate) how: How,
    /// Run what stands on standard input, as `grebe run` on another host starts it by ssh.
    #[arg(long, hide = true, conflicts_with_all = ["graph", "check", "kinds", "json"])]
    pub(crate) serve: bool,
    /// With --serve: refuse to run if this program is not the one of this BLAKE3.
    #[arg(long, hide = true, requires = "serve", value_name = "HASH")]
    pub(crate) is: Option<String>,
}

/// What `grebe run --check` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Check {
    /// The file alone.
    File,
    /// Also the hosts that it names.
    Hosts,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe top\n  \
    grebe top view\n  \
    grebe top --once\n  \
    grebe top --json | jq -r '.slowest.stage'\n  \
    grebe top 'lab/**' --router tcp/lab-server:7447\n\n\
    Every grebe of this user that runs a graph is shown (sg, play, record, view, serve, demo, run, bench), and every program that \
    publishes one. With a name of a stream, or a pattern of such names, those of a whole lab that send or read it are: \
    docs/many-hosts.md. Keys: q quit, arrows scroll, s sort, ? what the columns mean.")]
pub(crate) struct Top {
    /// Only those of this name (sg, view, ...), or this process id; with slashes or stars: those of a lab that send or read streams of
    /// these names (lab/mast3/adc, 'lab/**'), or that run there ('mast3/*').
    #[arg(value_name = "NAME|PID|STREAMS")]
    pub(crate) of: Option<String>,
    /// Print the table once, and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print a line of JSON for each process and second; with --once, one for each process.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) lab: Lab,
}

#[derive(Debug, Args)]
#[command(after_help = "Drivers look for their radios, which may take some seconds; nothing is opened.\n\
    Addresses of other hosts are not listed.\n\n\
    Examples:\n  \
    grebe devices\n  \
    grebe devices --json | jq -r '.[].devices[].uri'")]
pub(crate) struct Devices {
    /// Print everything as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Nothing is changed: the commands that fix a thing are printed, for you to run.\n\n\
    Examples:\n  \
    grebe doctor\n  \
    grebe doctor --fix | less\n  \
    grebe doctor --disk /data\n  \
    grebe doctor --disk /data --size 100G")]
pub(crate) struct Doctor {
    /// Measure at which rate recordings may be written into this folder: 20 s, or a third of the room there is. What is written
    /// is removed again; it wears the disk as any writing does.
    #[arg(long, value_name = "DIR", conflicts_with = "fix")]
    pub(crate) disk: Option<PathBuf>,
    /// Write so much, however long it takes: disks have caches of tens of gigabytes.
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes, requires = "disk")]
    pub(crate) size: Option<usize>,
    /// Print only the commands that fix what can be fixed.
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print everything as JSON.
    #[arg(long, conflicts_with = "fix")]
    pub(crate) json: bool,
}

fn after_help() -> String {
    format!(
        "{EXAMPLES}\n\nStreams are named by URIs: {}; and serve://HOST:PORT (to look at). The path of a recording needs no file:. \
         synth:WAVES?NAME=VALUE&... takes the parameters of grebe sg. grebe devices lists what is here.\n{STATUS}",
        Uri::WRITTEN.join(", ")
    )
}

const EXAMPLES: &str = "Examples:
  grebe                                                  the demonstration
  grebe sg --channels 4 --rate 25M --to udp://:5000      a generator
  grebe view udp://:5000                                 a scope on it
  grebe serve udp://:5000                                the same for far viewers: a link for a browser or grebe view
  grebe record udp://:5000 out.sigmf-meta --duration 6s  a recording of it
  grebe record udp://:5000 box --ring 30m                the last half hour of it, for as long as it runs
  grebe run examples/graphs/envelope.toml                a graph of stages that a file describes
  grebe sg --name lab/mast3/adc --to shm://adc           a stream that others find by its name: grebe ls, grebe view lab/mast3/adc
  grebe top                                              what they all do, and which stage is the slowest
  grebe cp -r runs me@lab:/data/                         a tree to another machine by your own ssh: only what changed
  grebe recv incoming                                    a ticket for whoever sends: grebe send FILE --to
  grebe relay                                            a meeting point for both where neither can be reached";

const STATUS: &str = "Exit status: 0 good, 1 failed, 2 wrong usage, 3 the other side fell silent or is gone, 4 not all of it (a recording that is not whole or was changed, files left out), 5 the disk is full or a file as large as it may be, 130 interrupted. A reader that closes the pipe, such as head, is no failure.";
