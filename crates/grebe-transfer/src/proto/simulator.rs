//! Transfers over an emulated path in virtual time: the same seed gives the same run, to the byte.
//!
//! ```
//! use grebe_transfer::internals::simulator::{Flow, Link, Path, simulate};
//!
//! let link = Link { rate_bits_per_s: 100e6, delay_us: 125_000, loss: 0.01, ..Link::default() };
//! let path = Path::symmetric(link);
//! let reports = simulate(&path, &[Flow::of(5_000_000)], 1, 60_000_000);
//! assert!(reports[0].is_whole());
//! ```

mod flow;
mod path;
mod run;
mod tcp;

pub use self::{
    flow::{Flow, FlowReport},
    path::{Link, Path},
    run::{simulate, simulate_beside},
    tcp::{Congestion, TcpFlow, TcpReport},
};
