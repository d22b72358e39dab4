//! A grebe on another host, started by the user's own `ssh`: login, one handshake, and the route for the data.
//!
//! ```text
//!  Remote::start ==ssh==> CALL                  (ssh, config, bootstrap)
//!                <======= MARK                  it has begun: before, a login may do anything with its input
//!      Hello<T> ========> serve::hello          the task, and the routes that are allowed
//!                <======= Ready                 a ticket, where the data may come by another route than ssh
//!      Turn     ========> serve::accept         only where neither UDP nor TCP came through: then ssh carries the data
//!                <=stderr Event                 how it ended
//! ```
//!
//! `grebe cp`, `run`, `probe` and `view` differ in their [`Call`] and in the `T` of [`Hello`] alone. Where there is no login, [`files`] go by a
//! ticket that a person hands over.
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
