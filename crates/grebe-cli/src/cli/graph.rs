//! Commands that run a graph file, and that watch graphs.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe run examples/graphs/envelope.toml\n  \
    grebe run my.toml --check\n  \
    grebe run --kinds\n  \
    grebe run --kinds synth\n\n\
    The graph ends when all its sources have, or with Ctrl-C; what is under way is drained first. Files that it names are\n\
    found from the current directory. docs/graphs.md describes the format.\n\
    Exit status: 0 ran to its end, 1 failed, 2 a mistake in the file, 130 interrupted.")]
pub(crate) struct Run {
    /// A graph file.
    #[arg(value_name = "GRAPH", required_unless_present = "kinds")]
    pub(crate) graph: Option<PathBuf>,
    /// Only check the file; nothing is opened.
    #[arg(long)]
    pub(crate) check: bool,
    /// List the kinds of stages with their parameters, or print the JSON schema of one.
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["graph", "check"])]
    pub(crate) kinds: Option<String>,
    /// Print the result as JSON on standard output; with --kinds, all schemas.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe top\n  \
    grebe top view\n  \
    grebe top --once\n  \
    grebe top --json | jq -r '.slowest.stage'\n\n\
    Every grebe of this user that runs a graph is shown (sg, play, record, view, demo, run, bench), and every program that\n\
    publishes one. Keys: q quit, arrows scroll, s sort, ? what the columns mean.")]
pub(crate) struct Top {
    /// Only those of this name (sg, view, ...), or this process id.
    #[arg(value_name = "NAME|PID")]
    pub(crate) of: Option<String>,
    /// Print the table once, and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print a line of JSON for each process and second; with --once, one for each process.
    #[arg(long)]
    pub(crate) json: bool,
}
