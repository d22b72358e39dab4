//! Streams over Zenoh, and streams that are found by name.
//!
//! ```text
//!  announced.rs  a sink that announces a stream, and sends it over Zenoh to who asks
//!    on_request.rs  and by UDP, to who asks for that
//!  named.rs      a source by name: finds the producer, takes the best way, finds it again when it returns
//!    ways.rs     which ways there are, and which is the best from here
//!    asking.rs   asks a producer for datagrams, and looks after whether they come
//!  sink.rs, source.rs   zenoh://KEY: frames in messages
//! ```

mod announced;
mod asking;
mod name;
mod named;
mod on_request;
mod sink;
mod source;
mod ways;

pub use name::{NamedStream, Way, ZenohKey};
pub(crate) use {
    announced::AnnouncedSink,
    named::{NamedSource, Reading},
    sink::ZenohSink,
    source::{ReaderOptions, ZenohSource},
    ways::way_to_read,
};
