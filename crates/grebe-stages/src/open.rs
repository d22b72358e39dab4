//! From a URI to the stage at that end of a stream: the one place that knows what each scheme opens.
//!
//! A new scheme is a variant of [`Uri`](crate::Uri), an arm in [`open_source`] and [`open_sink`], and a file beside the others here.

mod audio;
mod frames;
mod generator;
mod notice;
mod options;
mod raw;
mod recording;
mod rtl_tcp;
mod soapy;
mod text;
mod there;
mod udp;
mod vita49;
mod zenoh;
mod zmq;

use std::net::SocketAddr;

use grebe_flow::Stage;
use grebe_frame::BatchPool;

use crate::audio::AudioSink;
use crate::error::Error;
use crate::io::SecondSender;
use crate::synth::SynthRemote;
use crate::tuner::Tuner;
use crate::uri::Uri;

pub use notice::Notice;
pub use options::{SinkOptions, SourceOptions, Transport};
pub use recording::{open_file, open_in_step};

/// A source that was opened, and what is known of its stream before it flows.
pub struct OpenSource {
    /// For [`Graph::add_boxed`](grebe_flow::Graph::add_boxed).
    pub stage: Box<dyn Stage>,
    /// Where a UDP source listens, with the port that the system chose where none was named.
    pub address: Option<SocketAddr>,
    /// Samples per second and channel of a recording that says so.
    pub rate_hz: Option<f64>,
    /// Samples per channel that a recording will give.
    pub samples: Option<u64>,
    /// The same with what is missing between them.
    pub span_samples: Option<u64>,
    /// What changes a generator while it runs.
    pub remote: Option<SynthRemote>,
    /// What tunes a receiver while it runs.
    pub tuner: Option<Tuner>,
    /// Who else sends to a UDP source's port.
    pub second_sender: Option<SecondSender>,
    /// Batches that may be out to a reader of shared memory, waiting and held, at a time: with as many it gets nothing more.
    pub lent_max: Option<usize>,
}

/// A sink that was opened.
pub struct OpenSink {
    /// For [`Graph::add_boxed`](grebe_flow::Graph::add_boxed).
    pub stage: Box<dyn Stage>,
    /// Bytes of the datagrams that the frames should fit into.
    pub datagram_bytes: usize,
    /// The memory for the source to write into, where it was asked for and the sink has some.
    pub pool: Option<BatchPool>,
}

/// Opens the source that `uri` names. What a person may want to know meanwhile goes to `notify`.
///
/// ```
/// use grebe_stages::{SourceOptions, open_source};
///
/// let source = open_source(&"udp://127.0.0.1:0".parse()?, SourceOptions::default(), &mut |notice| eprintln!("{notice}"))?;
/// assert_ne!(source.address.unwrap().port(), 0);
/// # Ok::<(), grebe_stages::Error>(())
/// ```
///
/// # Errors
/// An [`Error`] that names the address, the stream or the file; [`Error::Cancelled`] where the wait for a stream was cancelled.
pub fn open_source(
    uri: &Uri,
    options: SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    match uri {
        Uri::Udp(at, _) => frames::udp_source(uri, at, options, notify),
        Uri::Shm(shm) => frames::shm_source(shm, &options, notify),
        Uri::Pipe(_) => frames::standard_input(&options),
        Uri::Raw(of) => raw::source(uri, of, &options, notify),
        Uri::Text(of) => text::source(uri, of, &options, notify),
        Uri::Audio(of) => audio::source(of, &options, notify),
        Uri::RtlTcp(of) => rtl_tcp::source(uri, of, &options, notify),
        Uri::Soapy(of) => soapy::source(of, &options, notify),
        Uri::Vita49(stream) => vita49::source(uri, stream, &options, notify),
        Uri::Zmq(of) => zmq::source(uri, of, &options, notify),
        Uri::Zenoh(from) => zenoh::source(from, &options),
        Uri::Named(from) => zenoh::named_source(from, options, notify),
        Uri::File(path) => recording::source(path, &options, notify),
        Uri::Synth(synth) => generator::source(synth, options),
    }
}

/// Opens the sink that `uri` names. What a person may want to know meanwhile goes to `notify`.
///
/// # Errors
/// An [`Error`] that names the address, the stream or the file; `synth:` cannot be sent to; [`Error::Cancelled`] where the wait
/// for readers was cancelled.
pub fn open_sink(
    uri: &Uri,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSink, Error> {
    let datagram_bytes = options.transport.datagram_bytes_to(uri)?;
    let mut pool = None;
    let stage: Box<dyn Stage> = match uri {
        Uri::Udp(to, wire) => Box::new(frames::udp_sink(uri, to, options, notify)?.wire(*wire)),
        Uri::Shm(shm) => {
            let mut sink = frames::shm_sink(shm, options, notify)?;
            pool = options.lends_pool.then(|| sink.lend_pool()).flatten();
            Box::new(sink)
        }
        Uri::Pipe(wire) => frames::standard_output(*wire)?,
        Uri::Raw(of) => raw::sink(uri, of, datagram_bytes, options, notify)?,
        Uri::Text(of) => text::sink(uri, of, options, notify)?,
        Uri::Audio(of) => Box::new(AudioSink::new((**of).clone())?),
        Uri::RtlTcp(of) => Box::new(rtl_tcp::sink(of, options, notify)?),
        Uri::Soapy(of) => Box::new(soapy::sink(of, options, notify)?),
        Uri::Vita49(stream) => Box::new(vita49::sink(uri, stream, datagram_bytes, options, notify)?),
        Uri::Zmq(of) => Box::new(zmq::sink(uri, of, options, notify)?),
        Uri::Zenoh(to) => Box::new(zenoh::sink(to, options, notify)?),
        Uri::Named(to) => Box::new(zenoh::named_sink(to, options, notify)?),
        Uri::File(path) => Box::new(recording::sink(path, options)?),
        Uri::Synth(_) => {
            let reason = "cannot be sent to: it is a generator".to_owned();
            return Err(Error::Name { name: uri.to_string(), reason });
        }
    };
    Ok(OpenSink { stage, datagram_bytes, pool })
}

impl OpenSource {
    /// A source that was made without a URI, and of which no more is known.
    pub fn of(stage: impl Stage + 'static) -> Self {
        Self {
            stage: Box::new(stage),
            address: None,
            rate_hz: None,
            samples: None,
            span_samples: None,
            remote: None,
            tuner: None,
            second_sender: None,
            lent_max: None,
        }
    }
}
