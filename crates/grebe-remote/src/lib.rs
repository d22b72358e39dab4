//! Starts grebe on another host by the user's own `ssh`: login, one handshake, and the route for the data.
//!
//! ```text
//!  Remote::start ==ssh==> CALL                  (ssh, config, bootstrap)
//!                <======= MARK                  it has begun; before, a login may consume its input
//!      Hello<T> ========> serve::hello          the task, and the allowed routes
//!                <======= Ready                 a ticket, if the data may take another route than ssh
//!      Turn     ========> serve::accept         only if both UDP and TCP failed: ssh carries the data
//!                <=stderr Event                 the result
//! ```
//!
//! `grebe cp`, `run`, `probe` and `view` differ only in their [`Call`] and the `T` of [`Hello`]. Without a
//! login, [`files`] are transferred by a ticket that the user passes on.
#![forbid(unsafe_code)]

mod bootstrap;
mod config;
mod error;
pub mod files;
mod hello;
mod host;
mod remote;
mod route;
pub mod serve;
mod ssh;

pub use bootstrap::check_self;
pub use config::{Config, HostOptions, Settings};
pub use error::{Error, Result};
pub use files::{TransferProgress, TransferReport, receive, send};
pub use grebe_tree::{Accept, LeftOut, Offer, Offering, Reception};
pub use hello::{Call, Hello, Meet, Ready, event_line, failed_line};
pub use host::{Place, SshHost, place, relay, relay_or_default, ssh_host};
pub use remote::{LastWord, Remote};
pub use route::{Channel, Dialer, Route, Terms, Via};
pub use ssh::{Ssh, resolve, word_there};
