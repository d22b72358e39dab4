//! Figures of a command for Prometheus.

use std::net::SocketAddr;

use clap::Args;

use crate::units;

/// Where the figures of a graph are served.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Metrics {
    /// Serve what the graph counts for Prometheus, at http://ADDR/metrics: 9464 is a port of this machine alone, 0.0.0.0:9464 is for
    /// whoever reaches it.
    #[arg(long, value_name = "ADDR", value_parser = units::metrics_address)]
    pub(crate) metrics: Option<SocketAddr>,
}
