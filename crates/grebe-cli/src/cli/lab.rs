//! Options of the lab (streams by name) and of `grebe ls`.

use std::path::PathBuf;

use clap::Args;
use grebe_zenoh::{Pattern, SessionOptions};

/// Access to the lab. The environment has defaults.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Lab (stream names, zenoh://)")]
pub(crate) struct Lab {
    /// Find other hosts by multicast on the LAN (224.0.0.224:7446).
    ///
    /// Both ends need it. Without it, and without a router, only streams of this machine are found. Environment: GREBE_SCOUT=1.
    #[arg(long, conflicts_with_all = ["router", "zenoh"])]
    pub(crate) scout: bool,
    /// Zenoh routers; the first that answers is used: tcp/HOST:7447.
    ///
    /// Environment: GREBE_ROUTER.
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', conflicts_with = "zenoh", value_parser = router)]
    pub(crate) router: Vec<String>,
    /// Zenoh configuration file.
    ///
    /// Environment: ZENOH_CONFIG.
    #[arg(long, value_name = "FILE")]
    pub(crate) zenoh: Option<PathBuf>,
    /// Neither send nor request datagrams for streams by name.
    ///
    /// These streams then come over Zenoh. Environment: GREBE_NO_UDP_ON_REQUEST=1.
    #[arg(long)]
    pub(crate) no_udp_on_request: bool,
}

impl Lab {
    /// Sets these options for this process.
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
    grebe sg --name lab/mast3/adc announces a stream, and grebe view lab/mast3/adc shows it: docs/many-hosts.md. A killed producer \
    disappears within 2 s.")]
pub(crate) struct Ls {
    /// Stream name or pattern: * is one word, ** any number; lab selects lab/**.
    #[arg(default_value = "**", value_parser = pattern)]
    pub(crate) pattern: Pattern,
    /// Keep running, and print streams that appear and disappear.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Print JSON; with --watch, one line per change.
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
