//! The scope for remote viewers: a server for windows, terminals and browsers, and its client.
//!
//! ```text
//!   ScopeLink --another()--> ViewerSession --messages--> socket, pipe ==> ... ==> RemoteScope --> ScopeLink --> a front end
//!   (the source's scope)     one a viewer
//! ```
//!
//! `grebe-view` defines the content of messages. This crate has sockets, HTTP, TLS, tokens and limits. One thread
//! carries all viewers of a server. It takes pictures from links and never touches samples, so no viewer can delay
//! the source.
#![forbid(unsafe_code)]

mod address;
mod client;
mod error;
mod gate;
mod http;
mod page;
mod pipe;
mod server;
mod session;
mod shared;
mod tls;
mod viewer;

pub use address::ServerAddress;
pub use client::{RemoteViewer, connect};
pub use error::Error;
pub use pipe::{NoPipes, ServerPipes, serve_pipe, view_pipe};
pub use server::{ServeOptions, Served, Server};
pub use shared::ServeEvent;
