//! A relay.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use crate::units::{self, MetricsPlace};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe relay                                      at port 4737, for IPv4 and IPv6\n  \
    grebe relay --session-rate 100M --rate 500M      gives away no more than that\n  \
    grebe relay --metrics 127.0.0.1:9464             figures for Prometheus at http://127.0.0.1:9464/metrics\n\n\
    Where it runs, its port has to be reachable over UDP, and over TCP for those whose network lets no UDP out. For its users:\n\
    grebe recv --relay HOST. It sees sealed datagrams and who sends them to whom, and keeps nothing when it ends. As a service: \
    docs/relay.md.")]
pub(crate) struct Relay {
    /// Where to listen, over UDP and TCP [default: port 4737 of every address, IPv4 and IPv6].
    #[arg(long, value_name = "ADDR:PORT", value_parser = units::listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Serve figures for Prometheus here, at http://ADDR/metrics. Whoever reaches this address can read them.
    #[arg(long, value_name = "ADDR", value_parser = units::metrics_place)]
    pub(crate) metrics: Option<MetricsPlace>,
    /// Sessions at a time; each takes 2 KB of memory.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) sessions: u32,
    /// Sessions at a time that one host takes part in.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sessions_per_host: u32,
    /// Bits a second that are passed on for one session, at most.
    #[arg(long, value_name = "RATE", default_value = "1G", value_parser = units::rate_hz)]
    pub(crate) session_rate: f64,
    /// Bits a second that are passed on in all, at most.
    #[arg(long, value_name = "RATE", default_value = "10G", value_parser = units::rate_hz)]
    pub(crate) rate: f64,
    /// After how long without a word a side is forgotten; those who wait speak every 15 s.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::duration)]
    pub(crate) idle: Duration,
}
