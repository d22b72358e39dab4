//! Figures of a command for Prometheus.

use clap::Args;

use crate::units::{self, MetricsPlace};

/// Where the figures of a graph are served.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Metrics {
    /// Serve what the graph counts for Prometheus, at http://ADDR/metrics: 9464 is a port of this machine alone, 0.0.0.0:9464 is for
    /// whoever reaches it, NAME:9464 for who asks by that name.
    #[arg(long, value_name = "ADDR", value_parser = units::metrics_place)]
    pub(crate) metrics: Option<MetricsPlace>,
}
