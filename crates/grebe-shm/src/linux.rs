//! Linux: memfds, seals, and descriptors that go over a Unix socket.

mod acceptor;
mod busy_poll;
mod consumer;
mod consumers;
mod directory;
#[allow(unsafe_code, reason = "mapping memory")]
pub(crate) mod map;
mod packet;
mod publisher;
mod state;
mod subscriber;

pub use directory::streams;
pub use publisher::Publisher;
pub use subscriber::Subscriber;
