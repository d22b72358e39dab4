//! The command line.

mod annotate;
mod band;
mod bench;
mod cp;
mod event;
mod file;
mod lab;
mod location;
mod metrics;
mod numbers;
mod probe;
mod range;
mod record;
mod relay;
mod serve;
mod statuses;
mod stream;
mod transfer;
mod trigger;
mod view;
mod view_target;

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::{this_build, units};
use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, Parser, Subcommand};
use grebe_stages::Uri;

pub(crate) use annotate::Annotate;
pub(crate) use band::{Cutting, MODES, SPEAKER, Sound, TimeFrequencyBox};
pub(crate) use bench::{Bench, Results, WhichBench};
pub(crate) use cp::{Cp, Reporting, Routing, Selection};
pub(crate) use event::{Conditions, EventKind, EventWords};
pub(crate) use file::{Convert, Find, Info, Repair};
pub(crate) use grebe_connection::printable;
pub(crate) use grebe_remote::{SshHost, ssh_host};
pub(crate) use lab::{Lab, Ls};
pub(crate) use location::{Location, location};
pub(crate) use metrics::Metrics;
pub(crate) use probe::{Probe, Target};
pub(crate) use record::{Record, Save, SaveTrigger};
pub(crate) use relay::Relay;
pub(crate) use serve::Serve;
pub(crate) use stream::{Play, Sg};
pub(crate) use transfer::{Confirm, Recv, Rendezvous, Send};
pub(crate) use view::{ChannelLabels, Channels, Demo, View};
pub(crate) use view_target::ViewTarget;

/// Moves, shows, records and ships sampled signals.
///
/// Without a command: a demonstration. A generator process sends four channels of 25 MS/s over UDP to a scope.
#[derive(Debug, Parser)]
#[command(name = "grebe", version, long_version = this_build::long_version(), after_help = after_help())]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate signals and send them.
    Sg(Sg),
    /// Show a stream in a window, in the terminal or as a picture.
    View(Box<View>),
    /// Serve a scope to browsers and to grebe view on other machines.
    Serve(Box<Serve>),
    /// Record a stream to SigMF, or its last part to a ring.
    Record(Record),
    /// Save a range of a ring: the last 20 s.
    Save(Save),
    /// Play recordings as streams.
    Play(Play),
    /// Convert a recording: SigMF, WAV, NumPy, CSV, raw.
    Convert(Convert),
    /// Repair recordings whose recorder was killed, in place.
    Repair(Repair),
    /// Describe recordings: samples, channels, times, gaps, integrity.
    Info(Info),
    /// List the events in a recording: edges, pulses, levels, power, silence, gaps.
    Find(Find),
    /// List, add, edit, import and export the annotations of a recording.
    Annotate(Box<Annotate>),
    /// Run the demonstration: a generator, or a recording, over UDP to a scope.
    Demo(Demo),
    /// Run a graph of stages from a file.
    Run(Run),
    /// Monitor running instances: rates, queues, drops, latency, slowest stage.
    Top(Top),
    /// Send files to grebe recv, encrypted and verified.
    Send(Send),
    /// Receive files from grebe send.
    Recv(Recv),
    /// Run a relay for hosts behind NATs.
    Relay(Relay),
    /// Copy files and trees between machines by ssh, changes only.
    Cp(Box<Cp>),
    /// Measure the performance of this machine, with baselines (for developers).
    Bench(Bench),
    /// Measure a network path: round trip, MTU, loss, maximum rate and its limit.
    Probe(Probe),
    /// List radios, serial ports, sound devices and shared memory, as URIs.
    Devices(Devices),
    /// List the streams that producers announce in the lab.
    Ls(Ls),
    /// Check this machine: capabilities, limits and their fixes.
    Doctor(Doctor),
    /// Print completions for a shell.
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// Shell.
        shell: clap_complete::Shell,
    },
    /// Print a manual page.
    #[command(after_help = MAN)]
    Man {
        /// Words of the command [default: grebe itself].
        #[arg(value_parser = PossibleValuesParser::new(GROUPS.iter().flat_map(|(_, names)| names.split(' ')).chain(["udp", "shm"])))]
        command: Vec<String>,
        /// Write all pages into the folder DIR.
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        all: Option<PathBuf>,
    },
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    let command = statuses::with_statuses(numbers::with_numbers(Cli::command()));
    let groups = command_groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// How a command replaces a recording that exists, for its errors.
pub(crate) fn replaces(name: &str) -> Option<&'static str> {
    if name == "run" {
        return Some(
            "params = { overwrite = true } of its stage replaces it, and numbered = true takes the next free name",
        );
    }
    let command = Cli::command();
    let has_it = command.find_subcommand(name)?.get_arguments().any(|it| it.get_id() == "overwrite");
    has_it.then_some("--overwrite replaces it")
}

/// Commands with their descriptions, by group. clap has no groups of commands.
fn command_groups(command: &clap::Command) -> String {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "{heading}:");
        for name in names.split(' ') {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let _ = writeln!(text, "  {name:<12} {}", about.map(ToString::to_string).unwrap_or_default());
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

const GROUPS: [(&str, &str); 5] = [
    ("Signals", "sg view serve run demo"),
    ("Recordings", "record play save info find annotate convert repair"),
    ("Transfer", "cp send recv relay probe"),
    ("Lab", "ls top"),
    ("Machine", "devices doctor bench completions man"),
];

const COMPLETIONS: &str = "Examples:
  grebe completions bash > ~/.local/share/bash-completion/completions/grebe
  grebe completions fish > ~/.config/fish/completions/grebe.fish
  grebe completions zsh > ~/.zfunc/_grebe    # with fpath=(~/.zfunc $fpath) before compinit";

const MAN: &str = "Examples:
  grebe man | man -l -
  grebe man bench udp > grebe-bench-udp.1
  grebe man --all /usr/local/share/man/man1";

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe run examples/graphs/envelope.toml\n  \
    grebe run my.toml --check\n  \
    grebe run my.toml --metrics 9464    # metrics at http://127.0.0.1:9464/metrics\n  \
    grebe run lab.toml                  # stages with host = \"pi@mast3\" run there, started by ssh\n  \
    grebe run lab.toml --bootstrap      # installs grebe on hosts without it\n  \
    grebe run lab.toml --check=hosts    # checks hosts, clocks and routes\n  \
    grebe run --kinds\n  \
    grebe run --kinds synth\n\n\
    A graph file with three stages:\n  \
    stage = [\n    \
        { id = \"source\", kind = \"synth\", params = { rate = \"1M\", samples = \"3M\" } },\n    \
        { id = \"half\", kind = \"gain\", params = { gain = 0.5 } },\n    \
        { id = \"disk\", kind = \"record\", params = { file = \"half.sigmf-meta\" } },\n  \
    ]\n  \
    edge = [{ from = \"source\", to = \"half\" }, { from = \"half\", to = \"disk\" }]\n\n\
    The graph ends when all its sources have ended, or with Ctrl-C; queued samples are processed first. Paths in it are relative to the \
    current directory, on other hosts to the home directory. Format: docs/graphs.md.")]
pub(crate) struct Run {
    /// Graph file.
    #[arg(value_name = "GRAPH", required_unless_present_any = ["kinds", "serve"])]
    pub(crate) graph: Option<PathBuf>,
    /// Check the file without opening anything; =hosts also checks its hosts.
    ///
    /// The check of hosts logs in to each, and tests grebe, the clocks and the routes between them.
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "file")]
    pub(crate) check: Option<Check>,
    /// List the kinds of stages, or print the JSON schema of one.
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
    pub(crate) routing: Routing,
    /// Run the task on standard input, for `grebe run` on another host.
    #[arg(long, hide = true, conflicts_with_all = ["graph", "check", "kinds", "json"])]
    pub(crate) serve: bool,
    /// With --serve: fail unless this program has this BLAKE3 hash.
    #[arg(long, hide = true, requires = "serve", value_name = "HASH")]
    pub(crate) is: Option<String>,
}

/// Extent of `grebe run --check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Check {
    /// The file only.
    File,
    /// Also its hosts.
    Hosts,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe top\n  \
    grebe top view\n  \
    grebe top --once\n  \
    grebe top --json | jq -r '.slowest.stage'\n  \
    grebe top 'lab/**' --router tcp/lab-server:7447\n\n\
    The table shows the grebe processes of this user that run a graph (sg, play, record, view, serve, demo, run, bench), and programs \
    that publish one. A stream name or pattern selects the processes of a lab that send or read it: docs/many-hosts.md.\n\
    Keys: q quit, arrows scroll, s sort, ? meaning of the columns.")]
pub(crate) struct Top {
    /// Command (sg, view, ...), process ID, or stream pattern ('lab/**').
    ///
    /// A stream pattern selects the processes of the lab that send or read these streams, or that run on a host ('mast3/*').
    #[arg(value_name = "NAME|PID|STREAMS")]
    pub(crate) of: Option<String>,
    /// Print the table once, and exit.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one line of JSON per process and second; with --once, per process.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) lab: Lab,
}

#[derive(Debug, Args)]
#[command(after_help = "Drivers search for radios, which may take seconds. No device is opened.\n\n\
    Examples:\n  \
    grebe devices\n  \
    grebe devices --json | jq -r '.[].devices[].uri'")]
pub(crate) struct Devices {
    /// Print the list as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "The command changes nothing: it prints fixes for you to run.\n\n\
    Examples:\n  \
    grebe doctor\n  \
    grebe doctor --fix | less\n  \
    grebe doctor --disk /data\n  \
    grebe doctor --disk /data --size 100G\n  \
    grebe doctor --report grebe.txt")]
pub(crate) struct Doctor {
    /// Measure the rate at which grebe can record to DIR.
    ///
    /// This takes 20 s, or a third of the free space. The files are removed again.
    #[arg(long, value_name = "DIR", conflicts_with = "fix")]
    pub(crate) disk: Option<PathBuf>,
    /// Bytes to write: 100G; large amounts exceed the caches of the disk.
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes, requires = "disk")]
    pub(crate) size: Option<usize>,
    /// Print only the commands of the fixes.
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print the result as JSON.
    #[arg(long, conflicts_with = "fix")]
    pub(crate) json: bool,
    /// Write the result to FILE for a bug report, without names of people and hosts.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["disk", "fix", "json"])]
    pub(crate) report: Option<PathBuf>,
}

fn after_help() -> String {
    format!(
        "{EXAMPLES}\n\nStreams are URIs: {}; to view, also serve://HOST:PORT. A recording is a path. Details: docs/uris.md.\n{}",
        Uri::WRITTEN.join(", "),
        statuses::ALL
    )
}

const EXAMPLES: &str = "Examples:
  grebe                                                  the demonstration
  grebe sg --channels 4 --rate 25M                       a generator, to udp://127.0.0.1:5000
  grebe view udp://:5000                                 a scope
  grebe serve udp://:5000                                a scope for browsers on other machines
  grebe record udp://:5000 out.sigmf-meta --duration 6s  a recording
  grebe record udp://:5000 box --ring 30m                a ring of the last half hour
  grebe run examples/graphs/envelope.toml                a graph of stages
  grebe sg --name lab/mast3/adc --to shm://adc           a stream with a name in the lab
  grebe top                                              a monitor of all of these
  grebe cp -r runs me@lab:/data/                         a tree to another machine, changes only
  grebe recv incoming                                    a ticket for grebe send FILE --to";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.split(' ')).collect();
        let command = Cli::command();
        let mut all: Vec<_> =
            command.get_subcommands().filter(|it| !it.is_hide_set()).map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn a_command_is_advised_of_options_that_it_has() {
        assert_eq!(replaces("record"), Some("--overwrite replaces it"));
        assert!(replaces("run").is_some_and(|it| it.contains("overwrite = true")));
        assert_eq!(replaces("view"), None);
    }

    #[test]
    fn every_line_of_help_is_short() {
        let mut commands = vec![command()];
        while let Some(command) = commands.pop() {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let length = help.chars().count();
                assert!(
                    (1..=80).contains(&length),
                    "{} {}: {length}: {help}",
                    command.get_name(),
                    arg.get_id()
                );
            }
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!((1..=80).contains(&about.chars().count()), "{}: {about}", command.get_name());
            commands.extend(command.get_subcommands().filter(|it| !it.is_hide_set()).cloned());
        }
    }
    /// The lines of a page's blocks that run grebe, without comments, pipes and redirections.
    fn lines_of(page: &str) -> impl Iterator<Item = &str> {
        let blocks = page.split("\n```").skip(1).step_by(2);
        let blocks = blocks.filter_map(|block| block.split_once('\n'));
        let is_shell =
            |(kind, text): &(&str, &str)| *kind == "sh" || kind.is_empty() && text.starts_with("grebe ");
        let lines = blocks.filter(is_shell).flat_map(|(_, text)| text.lines());
        let ends = [" #", " | ", " > ", " 2> ", " &"];
        lines
            .filter(|line| line.starts_with("grebe "))
            .map(move |line| ends.iter().fold(line, |line, end| line.split(end).next().unwrap_or(line)))
    }

    #[test]
    fn every_command_of_the_pages_is_valid() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let mut count = 0;
        for path in
            docs.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|it| it == "md"))
        {
            for line in lines_of(&std::fs::read_to_string(&path).unwrap()) {
                count += 1;
                let words = crate::generator::split(line).unwrap();
                let Err(error) = Cli::try_parse_from(words) else { continue };
                // Files of the reader are not here.
                let is_missing = error.to_string().contains("file not found");
                assert!(is_missing || !error.use_stderr(), "{}: {line}: {error}", path.display());
            }
        }
        assert!(count > 150, "{count}");
    }
}
