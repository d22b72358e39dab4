//! The options of `grebe probe`.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use grebe_remote::{Place, SshHost, place, ssh_host};

use crate::units;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe probe --serve                              at one end; prints the command for the other end\n  \
    grebe probe grebeajlk3q...                       at the other end; both directions within 28 s\n  \
    grebe probe ssh://user@example.org               starts the server by ssh\n  \
    grebe probe ssh://example.org --max-bytes 50M    for a path with a data allowance\n  \
    grebe probe ssh://example.org --interval 161us --size 1430\n\n\
    The server sends only to clients that have its ticket. Explanation of the figures: docs/probe.md.")]
pub(crate) struct Probe {
    /// Ticket of `grebe probe --serve`, or ssh://[USER@]HOST[:PORT].
    #[arg(value_name = "TICKET|ssh://HOST", required_unless_present = "serve", conflicts_with = "serve")]
    pub(crate) target: Option<Target>,
    /// Print a ticket, serve one probe, and exit.
    #[arg(long, help_heading = "Server (--serve)")]
    pub(crate) serve: bool,
    /// Address and port of the server, UDP and TCP [default: any].
    #[arg(long, value_name = "ADDRESS", value_parser = units::listen_address, help_heading = "Server (--serve)")]
    pub(crate) bind: Option<SocketAddr>,
    /// Address by which clients reach the server [default: its own].
    ///
    /// With --serve it goes into the ticket. Without, it replaces the address in the ticket.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = place)]
    pub(crate) advertise: Option<Place>,
    /// ssh command with options: 'ssh -p 2222' [default: ssh].
    #[arg(short = 'e', long, value_name = "COMMAND", conflicts_with = "serve")]
    pub(crate) ssh: Option<String>,
    /// Path of grebe on the other machine [default: grebe].
    #[arg(long, value_name = "PATH", conflicts_with = "serve")]
    pub(crate) remote_path: Option<String>,
    /// Number of probes to serve, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "serve", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Server (--serve)")]
    pub(crate) clients: u32,
    /// Exit after this time without a client.
    #[arg(long, value_name = "TIME", default_value = "10m", requires = "serve", value_parser = units::duration, help_heading = "Server (--serve)")]
    pub(crate) idle_timeout: Duration,
    /// Take the task from standard input, for `grebe probe ssh://`.
    #[arg(long, hide = true, requires = "serve")]
    pub(crate) stdio: bool,
    /// Exit when standard input is closed.
    #[arg(long, requires = "serve", help_heading = "Server (--serve)")]
    pub(crate) tethered: bool,
    /// Send a datagram per interval instead of searching the maximum rate: 161us.
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with = "serve", help_heading = "Traffic")]
    pub(crate) interval: Option<Duration>,
    /// Bytes per datagram [default: the largest that passes].
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes, conflicts_with = "serve", help_heading = "Traffic")]
    pub(crate) size: Option<usize>,
    /// Bytes per write of the TCP streams, comma-separated; 0 for no TCP.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "64K", value_parser = units::size_bytes, help_heading = "Traffic")]
    pub(crate) tcp_write: Vec<usize>,
    /// Amounts of data whose transfer time to estimate, comma-separated.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1G", value_parser = units::count, help_heading = "Traffic")]
    pub(crate) amount: Vec<u64>,
    /// Maximum rate in bit/s [default: 1G; 40G in private networks].
    #[arg(long, value_name = "RATE", value_parser = units::rate_hz, help_heading = "Limits")]
    pub(crate) max_rate: Option<f64>,
    /// Maximum bytes to send in both directions [default: 500M; 8G if private].
    #[arg(long, value_name = "BYTES", value_parser = units::count, help_heading = "Limits")]
    pub(crate) max_bytes: Option<u64>,
    /// Maximum duration of a probe [default: 28s].
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Limits")]
    pub(crate) duration: Option<Duration>,
    /// Allow more than 1 Gbit/s to a public address.
    #[arg(long, help_heading = "Limits")]
    pub(crate) yes: bool,
    /// Print the report as JSON; with --serve, the ticket.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Server to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Text of a ticket. The command parses it, because an error of clap would print this secret.
    Ticket(String),
    Ssh(SshHost),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().strip_prefix("ssh://") {
            // A path after the host is ignored.
            Some(rest) => ssh_host(rest.split('/').next().unwrap_or_default()).map(Target::Ssh),
            None => Ok(Target::Ticket(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_addresses_of_all_forms_are_read() {
        for (text, user, host, port) in [
            ("ssh://example.org", None, "example.org", None),
            ("ssh://me@example.org:2222", Some("me"), "example.org", Some(2222)),
            ("ssh://me@example.org:2222/srv/data", Some("me"), "example.org", Some(2222)),
            ("ssh://me@host/", Some("me"), "host", None),
            ("ssh://a@b@[2001:db8::1]:22", Some("a@b"), "2001:db8::1", Some(22)),
            ("ssh://2001:db8::1", None, "2001:db8::1", None),
        ] {
            let expected = SshHost { user: user.map(str::to_owned), host: host.to_owned(), port };
            assert_eq!(text.parse(), Ok(Target::Ssh(expected)), "{text}");
        }
        for text in
            ["ssh://", "ssh://@host", "ssh://-oProxyCommand=x", "ssh://me@-x", "ssh://h:0", "ssh://h:ssh"]
        {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
