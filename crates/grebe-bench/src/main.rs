//! The benches of developers, each beside its baseline: `cargo run --release -p grebe-bench -- flow --table`.

use std::io::Write as _;
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};
#[cfg(feature = "zenoh")]
use grebe_bench::zenoh;
use grebe_bench::{Error, Launcher, Progress, Result, flow, markdown, peer_main, transfer, view};
use grebe_connection::Cancel;

/// Measures how grebe moves samples and files. UDP and shared memory: `grebe bench`.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Examples:
  grebe-bench flow --repeats 9 --table
  grebe-bench view --duration 5s
  grebe-bench transfer --parts links,random --only A,D --links 20 --seed 7
  grebe-bench transfer --parts loopback --file-size 256M --dir /tmp
  sudo grebe-bench transfer --wanlink ./wanlink --repeats 1
  grebe-bench zenoh --parts ping --sizes 1400,64K --duration 3s --repeats 5"
)]
struct Arguments {
    #[command(subcommand)]
    which: Which,
    /// Print a Markdown table.
    #[arg(long, global = true)]
    table: bool,
    /// Print the results as JSON on standard output.
    #[arg(long, global = true, conflicts_with = "table")]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// The runtime: stages, queues and telemetry, each beside the same work without them.
    Flow(flow::Options),
    /// The scope's window (1280 x 720), fed over shared memory, a pipe or UDP; without traces, then with them.
    View(view::Options),
    /// Files over long distances, beside TCP in the same run.
    Transfer(transfer::Options),
    /// Streams over Zenoh, beside what Zenoh's own programs do. Both have the same configuration: two peers, one TCP connection.
    #[cfg(feature = "zenoh")]
    Zenoh(zenoh::Options),
    /// Another process of a bench: its task comes on standard input.
    #[command(hide = true)]
    Peer,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Cancelled) => ExitCode::from(130),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

fn run(Arguments { which, table, json }: Arguments) -> Result<()> {
    let mut rows = Vec::new();
    let tell = &mut |progress: Progress<'_>| match progress {
        Progress::Doing(what) => eprintln!("{what} ..."),
        Progress::Row(row) => {
            eprintln!("{}", row.line());
            rows.push(row.clone());
        }
    };
    let launcher = Some(Launcher::new(|| {
        let mut command = std::env::current_exe().map_or_else(|_| Command::new("grebe-bench"), Command::new);
        command.arg("peer");
        command
    }));
    let ended = match which {
        Which::Flow(options) => flow::run(&options, tell),
        Which::View(options) => view::run(&options, grebe, tell),
        Which::Transfer(options) => {
            transfer::run(&transfer::Options { launcher, cancel: cancel(), ..options }, tell)
        }
        #[cfg(feature = "zenoh")]
        Which::Zenoh(options) => zenoh::run(&zenoh::Options { launcher, ..options }, tell),
        Which::Peer => return peer_main(None),
    };
    // Rows measured before an error or an interruption are results too.
    let text = if json { serde_json::to_string_pretty(&rows).unwrap_or_default() } else { markdown(&rows) };
    let written = if json || table { writeln!(std::io::stdout(), "{text}") } else { Ok(()) };
    ended.and(written.map_err(|source| Error::Io { action: "write the results", source }))
}

/// The command that was built beside this one, else the one that a shell finds.
fn grebe() -> Command {
    let this = std::env::current_exe().unwrap_or_default();
    let beside = this.with_file_name(format!("grebe{}", std::env::consts::EXE_SUFFIX));
    if beside.is_file() { Command::new(beside) } else { Command::new("grebe") }
}

/// Ctrl-C ends a run in order, a second one at once.
fn cancel() -> Cancel {
    let cancel = Cancel::default();
    #[cfg(unix)]
    if let Ok(mut signals) =
        signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])
    {
        let told = cancel.clone();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if told.is_cancelled() {
                    std::process::exit(130);
                }
                told.cancel();
            }
        });
    }
    cancel
}
