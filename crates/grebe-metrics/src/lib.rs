//! Metrics of a process for Prometheus: the text format, and the page that serves it.
//!
//! ```
//! use grebe_metrics::{Families, Listener};
//!
//! let listener = Listener::bind("127.0.0.1:0".parse().unwrap())?;
//! println!("figures at http://{}/metrics", listener.address());
//! // Good for as long as it is held; asked whenever somebody looks.
//! let page = listener.serve(|| {
//!     let mut families = Families::default();
//!     families.counter("pump_strokes_total", "Strokes since the start.", &[("pump", "north")], 42);
//!     families
//! })?;
//! # drop(page);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod families;
mod host;
mod page;

pub use families::{Families, Histogram, Labels};
pub use page::{Listener, Page};
