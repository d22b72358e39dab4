//! The options of `grebe serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use grebe_stages::Uri;

use super::lab::Lab;
use super::metrics::Metrics;
use super::stream::Reception;
use super::view::ChannelLabels;
use crate::units;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    grebe serve udp://:5000\n  \
    grebe serve shm://adc udp://:5000 night.sigmf-meta    # viewers choose\n  \
    grebe serve shm://adc --listen 0.0.0.0:4780 --tls-cert cert.pem --tls-key key.pem\n  \
    grebe serve 'rtl_tcp://localhost:1234?frequency=100M' --control\n  \
    grebe serve /data/box    # the ring of a recorder\n  \
    grebe serve night.sigmf-meta --names antenna --units V --scale 30u\n  \
    grebe view ssh://me@mast/udp://:5000    # starts and ends grebe serve by ssh\n\n\
    The samples stay here; viewers get pictures. The printed link permits to view, in a browser or with grebe view. With --control, a \
    second link also permits to control the source. Without --listen only this machine can connect; for other machines, use a certificate \
    or ssh.\n\
    Ctrl-C ends the server.")]
pub(crate) struct Serve {
    /// Streams, recordings or folders (the ring, else the newest recording) to serve.
    ///
    /// Each viewer chooses one.
    #[arg(value_name = "URI", required_unless_present = "stdio", conflicts_with = "stdio", value_parser = units::uri)]
    pub(crate) uris: Vec<Uri>,
    /// Address and port to listen on; port 0 is any free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", conflicts_with = "stdio", value_parser = units::listen_address, help_heading = "Access")]
    pub(crate) listen: SocketAddr,
    /// Host name by which viewers reach this machine; repeatable.
    #[arg(long = "host", value_name = "NAME", conflicts_with = "stdio", help_heading = "Access")]
    pub(crate) hosts: Vec<String>,
    /// Origin of a page that may embed this scope: https://HOST; repeatable.
    #[arg(long = "frame-origin", value_name = "ORIGIN", conflicts_with = "stdio", help_heading = "Access")]
    pub(crate) frame_origins: Vec<String>,
    /// Maximum number of viewers.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256), conflicts_with = "stdio", help_heading = "Access")]
    pub(crate) viewers: u16,
    /// Print a second link that also permits control.
    ///
    /// Its holders may tune the receiver, set the generator, and save ranges of a ring.
    #[arg(long, conflicts_with = "stdio", help_heading = "Access")]
    pub(crate) control: bool,
    /// Folder of the ring that records this stream, for saves [default: search].
    #[arg(long, value_name = "DIR", help_heading = "Ring")]
    pub(crate) ring: Option<PathBuf>,
    /// Length of a save [default: 20s].
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Ring")]
    pub(crate) last: Option<Duration>,
    /// TLS certificate with its chain, a PEM file.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        conflicts_with = "stdio",
        help_heading = "Access"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Access")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Memory for the history of all streams.
    #[arg(long, value_name = "BYTES", default_value = "512M", value_parser = units::size_bytes)]
    pub(crate) history: usize,
    /// Serve one viewer over standard input and output, for `grebe view ssh://`.
    #[arg(long, hide = true, conflicts_with_all = ["json", "ring", "last"])]
    pub(crate) stdio: bool,
    /// Print the links as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) labels: ChannelLabels,
    #[command(flatten)]
    pub(crate) transport: Reception,
    #[command(flatten)]
    pub(crate) lab: Lab,
}
