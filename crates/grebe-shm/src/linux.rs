//! Linux: memfds, seals, and file descriptors over a Unix socket.

mod acceptor;
mod busy_poll;
mod consumer;
mod consumers;
mod copies;
mod directory;
#[cfg(test)]
mod hostile_producer;
#[allow(unsafe_code, reason = "mapping memory")]
pub(crate) mod map;
mod packet;
mod publisher;
mod state;
mod subscriber;

pub use directory::streams;
pub use publisher::Publisher;
pub use subscriber::Subscriber;
