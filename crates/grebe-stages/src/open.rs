//! From a URI to the stage at that end of a stream: the one place that knows what each scheme opens.
//!
//! A new scheme is a variant of [`Uri`](crate::Uri), and an arm in [`open_source`] and [`open_sink`].

mod options;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use grebe_flow::{SizeBytes, Stage, Time};
use grebe_frame::BatchPool;
use grebe_shm::{Error as ShmError, SubscriberOptions};

use crate::error::Error;
use crate::file::{FileSource, PlayOptions, RecordOptions, SampleFile, SigmfSink};
use crate::io::{PipeSink, PipeSource, ShmSink, ShmSource, UdpSink, UdpSource, pipe};
use crate::stream::{DATAGRAM_BYTES_MAX, check_datagram_bytes};
use crate::synth::{Synth, SynthRemote};
use crate::uri::{HostPort, ShmName, Uri};

pub use options::{Cancel, Notice, SinkOptions, SourceOptions, Transport};

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
    /// What changes a generator while it runs.
    pub remote: Option<SynthRemote>,
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
        Uri::Udp(at) => udp_source(uri, at, options, notify),
        Uri::Shm(shm) => shm_source(shm, &options, notify),
        Uri::Pipe => standard_input(&options),
        Uri::File(path) => recording(path, &options, notify),
        Uri::Synth => generator(options),
    }
}

fn udp_source(
    uri: &Uri,
    at: &HostPort,
    options: SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let failed = |source| Error::Listen { uri: uri.to_string(), source };
    let mut source = UdpSource::bind(at.to_listen()?, &options.transport.socket_options()).map_err(failed)?;
    if source.granted().is_clamped() {
        notify(Notice::SmallBuffer(source.granted()));
    }
    if let Some(pool) = options.pool {
        source = source.pool(pool);
    }
    let address = source.local_addr().map_err(failed)?;
    let stage = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { address: Some(address), ..OpenSource::of(stage) })
}

fn shm_source(
    shm: &ShmName,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let subscriber = SubscriberOptions {
        policy: shm.policy.unwrap_or(options.policy),
        name: options.reader.clone(),
        // All that its share of the memory holds.
        queue_batches: 256,
        ..SubscriberOptions::default()
    };
    let mut is_told = false;
    loop {
        match ShmSource::connect(&shm.name, &subscriber) {
            Err(ShmError::NoStream { name, .. }) if options.waits => {
                if options.cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                if !is_told {
                    notify(Notice::WaitingForStream { name });
                    is_told = true;
                }
                std::thread::sleep(LOOK_EVERY);
            }
            source => {
                return Ok(OpenSource::of(
                    source?.idle_timeout(options.idle_timeout).samples(options.samples),
                ));
            }
        }
    }
}

fn standard_input(options: &SourceOptions) -> Result<OpenSource, Error> {
    let stdin = pipe::stdin().map_err(|source| Error::Closed { what: "standard input", source })?;
    Ok(OpenSource::of(PipeSource::new(stdin).samples(options.samples)))
}

fn recording(
    path: &Path,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let datagram_bytes = options.transport.datagram_bytes.unwrap_or(DATAGRAM_BYTES_MAX);
    check_datagram_bytes(datagram_bytes)?;
    let file = SampleFile::open(path)?;
    file.notes().iter().for_each(|note| notify(Notice::Recording(note.clone())));
    let rate_hz = Some(file.sample_rate_hz()).filter(|&rate_hz| rate_hz > 0.0);
    let of_duration = |duration: Duration| (duration.as_secs_f64() * file.sample_rate_hz()) as u64;
    let asked = options.samples.or(options.duration.map(of_duration));
    let samples = asked.unwrap_or(u64::MAX).min(file.len_samples());
    let play = PlayOptions {
        speed: options.speed,
        repeat: options.repeat,
        samples: asked,
        datagram_bytes,
        flush_every: options.transport.flush_every(),
    };
    Ok(OpenSource { rate_hz, samples: Some(samples), ..OpenSource::of(FileSource::new(file, play)) })
}

fn generator(options: SourceOptions) -> Result<OpenSource, Error> {
    let datagram_bytes = options.transport.datagram_bytes.unwrap_or(DATAGRAM_BYTES_MAX);
    check_datagram_bytes(datagram_bytes)?;
    let synth = Synth {
        datagram_size: SizeBytes(datagram_bytes),
        latency: Time(options.transport.latency),
        ..options.synth
    };
    let (mut source, remote) = SynthRemote::new(synth)?;
    if let Some(pool) = options.pool {
        source = source.pool(pool);
    }
    Ok(OpenSource { remote: Some(remote), ..OpenSource::of(source) })
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
        Uri::Udp(to) => Box::new(udp_sink(uri, to, options, notify)?),
        Uri::Shm(shm) => {
            let mut sink = shm_sink(shm, options, notify)?;
            pool = options.lends_pool.then(|| sink.lend_pool()).flatten();
            Box::new(sink)
        }
        Uri::Pipe => {
            let stdout =
                pipe::stdout().map_err(|source| Error::Closed { what: "standard output", source })?;
            Box::new(PipeSink::new(stdout))
        }
        Uri::File(path) => {
            let record = RecordOptions { duration: options.duration, overwrite: options.overwrite };
            Box::new(SigmfSink::create(path, record)?)
        }
        Uri::Synth => {
            let reason = "cannot be sent to: it is a generator".to_owned();
            return Err(Error::Uri { uri: uri.to_string(), reason });
        }
    };
    Ok(OpenSink { stage, datagram_bytes, pool })
}

fn udp_sink(
    uri: &Uri,
    to: &HostPort,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<UdpSink, Error> {
    let failed = |source| Error::Send { uri: uri.to_string(), source };
    let sink = UdpSink::connect(to.to_send()?, &options.transport.socket_options()).map_err(failed)?;
    if sink.granted().is_clamped() {
        notify(Notice::SmallBuffer(sink.granted()));
    }
    Ok(sink)
}

fn shm_sink(shm: &ShmName, options: &SinkOptions, notify: &mut dyn FnMut(Notice)) -> Result<ShmSink, Error> {
    let sink = ShmSink::create(&shm.name, shm.publisher_options())?;
    notify(Notice::Lending { name: shm.name.clone(), footprint: sink.footprint() });
    let readers = usize::from(shm.wait_consumers);
    if readers > 0 {
        notify(Notice::WaitingForReaders { count: readers });
    }
    while !sink.wait_for_consumers(readers, LOOK_EVERY) {
        if options.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
    }
    Ok(sink)
}

impl OpenSource {
    /// A source that was made without a URI, and of which no more is known.
    pub fn of(stage: impl Stage + 'static) -> Self {
        Self { stage: Box::new(stage), address: None, rate_hz: None, samples: None, remote: None }
    }
}

/// How soon a wait sees that it was cancelled, or that there is a stream now.
const LOOK_EVERY: Duration = Duration::from_millis(50);
