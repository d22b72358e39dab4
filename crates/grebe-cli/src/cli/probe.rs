//! What a path carries.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use grebe_remote::{Place, SshHost, place, ssh_host};

use crate::units;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe probe --serve                                    at one end; it prints what to type at the other\n  \
    grebe probe grebeajlk3q...                             both directions, within 28 s\n  \
    grebe probe ssh://user@example.org                     starts the server there itself, by your own ssh\n  \
    grebe probe ssh://example.org --max-bytes 50M          where every megabyte counts\n  \
    grebe probe ssh://example.org --interval 161us --size 1430\n  \
    grebe probe ssh://example.org --png path.png\n\n\
    A ticket is good for one probe (--clients N: for so many, one after the other), and the server ends with it. Nothing is sent \
    to an address that has not proved to have the ticket. docs/probe.md says what the figures mean.")]
pub(crate) struct Probe {
    /// The ticket that `grebe probe --serve` printed, a word that begins with grebe; or ssh://[USER@]HOST[:PORT], to start the
    /// server there.
    #[arg(value_name = "TICKET|ssh://HOST", required_unless_present = "serve", conflicts_with = "serve")]
    pub(crate) target: Option<Target>,
    /// Wait for a probe: print a ticket, serve it, and end.
    #[arg(long)]
    pub(crate) serve: bool,
    /// Where to serve, UDP and TCP alike; with ssh://, where the server there listens [default: any port of any address].
    #[arg(long, value_name = "ADDRESS", value_parser = units::listen_address)]
    pub(crate) bind: Option<SocketAddr>,
    /// Where the server is found, if not at its own address: behind a NAT, or by another name. Goes into the ticket with --serve,
    /// takes the place of the ticket's address without.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = place)]
    pub(crate) advertise: Option<Place>,
    /// How to start ssh, with options: 'ssh -p 2222' [default: ssh].
    #[arg(short = 'e', long, value_name = "COMMAND", conflicts_with = "serve")]
    pub(crate) ssh: Option<String>,
    /// Where grebe is at the other end of ssh:// [default: grebe, on the PATH there].
    #[arg(long, value_name = "PATH", conflicts_with = "serve")]
    pub(crate) remote_path: Option<String>,
    /// Probes that the ticket is good for; they wait for each other.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "serve", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,
    /// End after this long without a client.
    #[arg(long, value_name = "TIME", default_value = "10m", requires = "serve", value_parser = units::duration)]
    pub(crate) idle_timeout: Duration,
    /// Be the other end, as `grebe probe ssh://` starts it.
    #[arg(long, hide = true, requires = "serve")]
    pub(crate) stdio: bool,
    /// End when standard input is closed.
    #[arg(long, requires = "serve")]
    pub(crate) tethered: bool,
    /// Send at this interval instead of looking for the highest rate: 161us.
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with = "serve")]
    pub(crate) interval: Option<Duration>,
    /// Bytes of each datagram [default: the longest that comes through in both directions].
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes, conflicts_with = "serve")]
    pub(crate) size: Option<usize>,
    /// Bytes per write of the TCP streams, several by commas; 0: no TCP.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "64K", value_parser = units::size_bytes)]
    pub(crate) tcp_write: Vec<usize>,
    /// Tell how long it takes to move this much.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1G", value_parser = units::count)]
    pub(crate) amount: Vec<u64>,
    /// Highest rate, in bits of IP packets per second [default: 1G; 40G within private networks].
    #[arg(long, value_name = "RATE", value_parser = units::rate_hz)]
    pub(crate) max_rate: Option<f64>,
    /// Bytes that a probe may send, both directions together [default: 500M; 8G within private networks].
    #[arg(long, value_name = "BYTES", value_parser = units::count)]
    pub(crate) max_bytes: Option<u64>,
    /// How long a probe may take [default: 28s].
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) duration: Option<Duration>,
    /// Allow more than 1 Gbit/s to an address that is not private.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print everything as JSON; with --serve, the ticket.
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw goodput, loss and round trip, over the rate and over time, to this file; - is standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "serve", value_parser = units::picture)]
    pub(crate) png: Option<PathBuf>,
}

/// Who is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The word of a ticket. It is read later: an error of the command line would quote it, and it is a secret.
    Ticket(String),
    Ssh(SshHost),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().strip_prefix("ssh://") {
            // What stands behind a slash is of no use here, and may be left over from the address of a file.
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
