//! Counters of a graph for users and programs outside its process.
//!
//! ```text
//!   Running --observer--> one sleeping thread --> Unix socket PID.NAME.top --> Watch (grebe top)
//!                         one report per second       mode 0600, in a private folder
//!            +--observer--> a page over HTTP, made on request of Prometheus
//! ```
//!
//! [`publish`] serves one [`Report`] per second, as a line of JSON, to each connection. [`Watch`] finds and
//! reads the reports of all this user's processes. A slow or dead reader never blocks the graph. Without Unix
//! sockets (Windows) both return an error. [`MetricsListener`] serves the same counters to Prometheus as
//! [`families`] of metrics.
//!
//! ```no_run
//! # let graph = grebe_flow::Graph::new();
//! let running = graph.start()?;
//! // Good for as long as it is held; `grebe top` shows this process meanwhile.
//! let published = grebe_flow::telemetry::publish(&running, "my-receiver").ok();
//! running.wait()?;
//! # Ok::<(), grebe_flow::Error>(())
//! ```

#[cfg(unix)]
mod directory;
mod host_report;
mod interval;
mod metrics;
#[cfg(unix)]
mod publish;
mod report;
#[cfg(unix)]
mod watch;

#[cfg(not(unix))]
mod absent;

#[cfg(not(unix))]
pub use absent::{Publisher, Watch, publish, publish_about, publish_observed};
pub use host_report::HostReport;
pub use metrics::{MetricsListener, MetricsPage, families};
#[cfg(unix)]
pub use publish::{Publisher, publish, publish_about, publish_observed};
pub use report::{QueueReport, Report, Slowest, StageReport, Watched};
#[cfg(unix)]
pub use watch::Watch;
