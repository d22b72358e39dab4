//! A scope for far viewers, and how one is named.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use grebe_stages::Uri;

use super::lab::Lab;
use super::metrics::Metrics;
use super::stream::Reception;
use super::view::Meanings;
use crate::units;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    grebe serve udp://:5000\n  \
    grebe serve shm://adc udp://:5000 night.sigmf-meta      each with a thread of its own; viewers choose\n  \
    grebe serve shm://adc --listen 0.0.0.0:4780 --tls-cert cert.pem --tls-key key.pem\n  \
    grebe serve 'rtl_tcp://localhost:1234?frequency=100M' --control\n  \
    grebe serve night.sigmf-meta --names antenna --units V --scale 30u\n  \
    grebe view ssh://me@mast/udp://:5000      starts it there by your own ssh, and ends it afterwards\n\n\
    The samples stay here: pictures go to whoever has a link that is printed, in a browser or with grebe view. Whoever has it may \
    look, and change nothing here; with --control a second link is printed, whose holders may. Without --listen only this machine can connect; beyond it, give a certificate, or use ssh.\n\
    Ctrl-C ends it.")]
pub(crate) struct Serve {
    /// The stream: udp://:5000, shm://NAME, pipe:, a file, or synth:. Of several, viewers choose which they look at; none waits for another.
    #[arg(value_name = "URI", required_unless_present = "stdio", conflicts_with = "stdio", value_parser = units::uri)]
    pub(crate) uris: Vec<Uri>,
    /// Address and port to listen on; port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", conflicts_with = "stdio", value_parser = units::listen_address)]
    pub(crate) listen: SocketAddr,
    /// A name of this machine by which viewers find it, beside its addresses; may be given several times.
    #[arg(long = "host", value_name = "NAME", conflicts_with = "stdio")]
    pub(crate) hosts: Vec<String>,
    /// A page that may show this scope as a part of it: https://HOST; may be given several times.
    #[arg(long = "frame-origin", value_name = "ORIGIN", conflicts_with = "stdio")]
    pub(crate) frame_origins: Vec<String>,
    /// Viewers at once at most.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256), conflicts_with = "stdio")]
    pub(crate) viewers: u16,
    /// Print a second link: who has it may also tune the receiver, set the generator, and have stretches of a ring kept here.
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) control: bool,
    /// The folder that grebe record --ring writes this stream into: who may change things here can have a stretch of it kept for good
    /// [default: found, where that recorder runs on this machine].
    #[arg(long, value_name = "DIR")]
    pub(crate) ring: Option<PathBuf>,
    /// How much of what came last is kept then; of a held picture it is what is on the screen [default: 20s].
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) last: Option<Duration>,
    /// The certificate to show, with the chain that leads to it, as a PEM file; one that you signed yourself will do for grebe view.
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "stdio")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its key, as a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Memory for the history of all streams together: how far back viewers can go.
    #[arg(long, value_name = "BYTES", default_value = "512M", value_parser = units::size_bytes)]
    pub(crate) history: usize,
    /// Be the other end, as `grebe view ssh://` starts it.
    #[arg(long, hide = true, conflicts_with_all = ["json", "ring", "last"])]
    pub(crate) stdio: bool,
    /// Print the links as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) meanings: Meanings,
    #[command(flatten)]
    pub(crate) transport: Reception,
    #[command(flatten)]
    pub(crate) lab: Lab,
}
