//! Metrics of a command for Prometheus.

use clap::Args;

use crate::units::{self, MetricsPlace};

/// Page of metrics.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Metrics {
    /// Serve metrics for Prometheus on this port or ADDRESS:PORT: 9464.
    ///
    /// A port alone serves this machine only, 0.0.0.0:9464 serves other hosts, NAME:9464 answers requests for that name.
    #[arg(long, value_name = "ADDR", help_heading = "Metrics", value_parser = units::metrics_place)]
    pub(crate) metrics: Option<MetricsPlace>,
}
