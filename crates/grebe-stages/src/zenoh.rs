//! Streams over Zenoh, and streams that are found by name.
//!
//! ```text
//!  announced.rs  a sink that announces a stream, and sends it over Zenoh to who asks
//!  named.rs      a source by name: finds the producer, takes the best way, finds it again when it returns
//!    ways.rs     which ways there are, and which is the best from here
//!  sink.rs, source.rs   zenoh://KEY: frames in messages
//! ```

mod announced;
mod name;
mod named;
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
