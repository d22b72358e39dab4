//! Linux and macOS: file descriptors over Unix sockets in a directory of the user.

mod connection;
mod listener;
#[allow(unsafe_code, reason = "mapping memory")]
mod memory;
pub(crate) mod names;
#[cfg(target_os = "linux")]
#[path = "unix/linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "unix/macos.rs"]
#[allow(unsafe_code, reason = "system calls that rustix lacks")]
mod system;

pub(crate) use connection::Peer;
pub(crate) use listener::Listener;
pub(crate) use memory::Memory;
pub(crate) use system::{Closer, Connection};
