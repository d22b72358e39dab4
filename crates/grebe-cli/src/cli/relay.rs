//! The options of `grebe relay`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use crate::units::{self, MetricsPlace};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe relay                                    port 4737, IPv4 and IPv6\n  \
    grebe relay --session-rate 100M --rate 500M    limited rates\n  \
    grebe relay --metrics 127.0.0.1:9464           metrics at http://127.0.0.1:9464/metrics\n\n\
    Users of the relay run: grebe recv --relay HOST. The port must be reachable over UDP, and over TCP for networks that block UDP. The \
    relay sees addresses and sealed datagrams, and stores nothing. As a service: docs/relay.md.")]
pub(crate) struct Relay {
    /// Address and port, UDP and TCP [default: port 4737 of all addresses].
    #[arg(long, value_name = "ADDR:PORT", value_parser = units::listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Serve metrics for Prometheus at http://ADDR/metrics.
    #[arg(long, value_name = "ADDR", value_parser = units::metrics_place)]
    pub(crate) metrics: Option<MetricsPlace>,
    /// Maximum sessions; each takes 2 KB of memory.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) sessions: u32,
    /// Maximum sessions per host.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sessions_per_host: u32,
    /// Maximum rate per session in bit/s.
    #[arg(long, value_name = "RATE", default_value = "1G", value_parser = units::rate_hz)]
    pub(crate) session_rate: f64,
    /// Maximum rate of all sessions in bit/s.
    #[arg(long, value_name = "RATE", default_value = "10G", value_parser = units::rate_hz)]
    pub(crate) rate: f64,
    /// Silence after which a session is closed.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::duration)]
    pub(crate) idle: Duration,
}
