//! Linux: memfds, seals, descriptors over a Unix socket.

mod directory;
mod door;
#[allow(unsafe_code, reason = "mapping memory")]
pub(crate) mod map;
mod packet;
mod publisher;
mod subscriber;

pub use directory::streams;
pub use publisher::Publisher;
pub use subscriber::Subscriber;

use crate::ShmError;

/// Names what was tried.
fn tried(action: &'static str) -> impl FnOnce(rustix::io::Errno) -> ShmError {
    move |errno| ShmError::System { action, source: errno.into() }
}
