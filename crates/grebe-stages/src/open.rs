//! From a URI to the stage at that end of a stream: the one place that knows what each scheme opens.
//!
//! A new scheme is a variant of [`Uri`](crate::Uri), and an arm in [`open_source`] and [`open_sink`].

mod options;
mod sink;
mod source;

pub use {
    options::{Cancel, Notice, SinkOptions, SourceOptions, Transport},
    sink::{OpenSink, open_sink},
    source::{OpenSource, open_source},
};
