//! How a command joins the lab, and what it looks for there.

use std::path::PathBuf;

use clap::Args;
use grebe_zenoh::{Pattern, SessionOptions};

/// How a command joins the lab. Without any of it the environment says it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Lab (names of streams, zenoh://)")]
pub(crate) struct Lab {
    /// Look for other grebes on the LAN by multicast (224.0.0.224:7446), and let them connect: both ends need it. Without it, and
    /// without a router, only those of this machine are found [environment: GREBE_SCOUT=1].
    #[arg(long, conflicts_with_all = ["router", "zenoh"])]
    pub(crate) scout: bool,
    /// Join by this router (zenohd), as all others do: tcp/HOST:7447 or tls/HOST:7447; several: the first that answers
    /// [environment: GREBE_ROUTER].
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', conflicts_with = "zenoh", value_parser = router)]
    pub(crate) router: Vec<String>,
    /// Join as this configuration file of Zenoh's says [environment: ZENOH_CONFIG].
    #[arg(long, value_name = "FILE")]
    pub(crate) zenoh: Option<PathBuf>,
    /// Send no datagrams to readers on other hosts that ask for a stream by its name, and ask for none [environment:
    /// GREBE_NO_UDP_ON_REQUEST=1].
    #[arg(long)]
    pub(crate) no_udp_on_request: bool,
}

impl Lab {
    /// What opens the lab in this process from here on joins it so.
    pub(crate) fn configure(&self) {
        let Lab { scout, router, zenoh, no_udp_on_request } = self.clone();
        let environment = SessionOptions::from_environment();
        let no_udp_on_request = no_udp_on_request || environment.no_udp_on_request;
        if scout || !router.is_empty() || zenoh.is_some() {
            let options = SessionOptions { config: zenoh, routers: router, scouts: scout, no_udp_on_request };
            grebe_zenoh::configure(options);
        } else if no_udp_on_request {
            grebe_zenoh::configure(SessionOptions { no_udp_on_request, ..environment });
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe ls\n  \
    grebe ls lab --router tcp/lab-server:7447\n  \
    grebe ls 'lab/*/adc' --scout -w\n  \
    grebe ls --json | jq -r '.[].name'\n\n\
    grebe sg --name lab/mast3/adc announces a stream, and grebe view lab/mast3/adc shows it, by the best way from where it runs: \
    docs/many-hosts.md. A producer that dies disappears within 2 s.\n\
    Exit status: 0 there are some, 1 there are none, or the lab cannot be joined, 130 interrupted.")]
pub(crate) struct Ls {
    /// Which streams: a name, with * for a word and ** for any number of them; a word alone means all below it.
    #[arg(default_value = "**", value_parser = pattern)]
    pub(crate) pattern: Pattern,
    /// Go on, and say what comes and goes.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Print JSON; with --watch, a line for each stream that comes or goes.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) lab: Lab,
}

fn router(text: &str) -> Result<String, String> {
    SessionOptions::endpoint(text).map_err(|error| error.to_string())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    text.parse().map_err(str::to_owned)
}
