//! Counters of a graph for users and programs outside its process.
//!
//! ```text
//!   Running --observer--> one sleeping thread --> PID.NAME.top in a private folder --> Watch (grebe top)
//!                         one report per second     a Unix socket; on Windows a port and a token
//!            +--observer--> a page over HTTP, made on request of Prometheus
//! ```
//!
//! [`publish`] serves one [`Report`] per second, as a line of JSON, to each connection. [`Watch`] finds and
//! reads the reports of all this user's processes. A slow or dead reader never blocks the graph.
//! [`MetricsListener`] serves the same counters to Prometheus as [`families`] of metrics.
//!
//! ```no_run
//! # let graph = grebe_flow::Graph::new();
//! let running = graph.start()?;
//! // Good for as long as it is held; `grebe top` shows this process meanwhile.
//! let published = grebe_flow::telemetry::publish(&running, "my-receiver").ok();
//! running.wait()?;
//! # Ok::<(), grebe_flow::Error>(())
//! ```

mod directory;
mod endpoint;
mod host_report;
mod interval;
mod metrics;
mod publish;
mod report;
mod watch;

pub use host_report::HostReport;
pub use metrics::{MetricsListener, MetricsPage, families};
pub use publish::{Publisher, publish, publish_about, publish_observed};
pub use report::{QueueReport, Report, Slowest, StageReport, Watched};
pub use watch::Watch;
