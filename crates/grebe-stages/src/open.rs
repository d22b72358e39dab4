//! From a URI to the stage at that end of a stream: the one place that knows what each scheme opens.
//!
//! A new scheme is a variant of [`Uri`](crate::Uri), and an arm in [`open_source`] and [`open_sink`].

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use grebe_datagram::Granted;
use grebe_flow::{Count, SizeBytes, Stage, Time};
use grebe_frame::BatchPool;
use grebe_ring::Cancel;
use grebe_shm::{Error as ShmError, Footprint, Policy, SubscriberOptions};

use crate::error::Error;
use crate::file::{
    Alignment, FileSource, PlayOptions, RecordOptions, RingLength, RingPlan, Rotate, SampleFile, Schedule,
    SigmfSink, WriteWay, make_ring_folder,
};
use crate::io::{PipeSink, PipeSource, SecondSender, ShmSink, ShmSource, UdpSink, UdpSource, pipe};
use crate::raw::{Again, Carrier, RawSink, RawSource, RawStream, RawUdpSink, RawUdpSource, TcpEnd};
use crate::rtl_tcp::{RtlTcp, RtlTcpServer, receiver};
use crate::stream::{DATAGRAM_BYTES, DATAGRAM_BYTES_MAX, check_datagram_bytes};
use crate::synth::{Synth, SynthRemote};
use crate::tuner::Tuner;
use crate::uri::{HostPort, ShmName, Uri};
use crate::vita49::{Vita49Sink, Vita49Source, Vita49Stream};
use crate::zmq::{self, Socket, Zmq, ZmqSink};

/// How frames travel. Both ends have these options.
#[derive(Debug, Clone)]
pub struct Transport {
    /// Bytes of the datagrams that frames should fit into, 80 to 65,507; `None`: 1400 beyond this machine, 65,000 within it.
    pub datagram_bytes: Option<usize>,
    /// Datagrams per system call, 1 to 128; 1 has the lowest latency.
    pub burst: usize,
    /// End-to-end latency budget: a source gathers for up to a quarter of it, a receiver sleeps for up to a half.
    pub latency: Duration,
}

/// How a source is opened. Each scheme uses the options that mean something to it.
#[derive(Debug)]
pub struct SourceOptions {
    /// How frames travel.
    pub transport: Transport,
    /// What the producer of a stream in shared memory calls this reader.
    pub reader: String,
    /// What happens when this reader of shared memory is too slow, where the URI does not say.
    pub policy: Policy,
    /// Whether to wait for a stream in shared memory that is not there yet.
    pub waits: bool,
    /// Whether a source over UDP or shared memory waits for the next stream where one ends. The frame that ends a stream then goes
    /// on too, so that whoever reads knows.
    pub listens_on: bool,
    /// Takes a pipe that is closed without an end of stream for one that has ended: not every program sends one.
    pub ends_with_writer: bool,
    /// Ends the stream after this many samples per channel.
    pub samples: Option<u64>,
    /// Ends a recording after this much of the signal.
    pub duration: Option<Duration>,
    /// Fails once the sender has been silent for this long, also where it never came.
    pub idle_timeout: Option<Duration>,
    /// Plays a recording at so many times its rate; `None`: as fast as it is taken.
    pub speed: Option<f64>,
    /// Begins a recording again at its end, for ever.
    pub repeat: bool,
    /// Plays of a recording what lies behind so much of the signal, and no more than `length` of it: what `repeat` repeats.
    pub start: Duration,
    /// See `start`; `None`: to the end.
    pub length: Option<Duration>,
    /// Memory that a generator or a UDP source writes into, instead of its own: [`OpenSink::pool`].
    pub pool: Option<BatchPool>,
    /// Ends the wait for a stream.
    pub cancel: Cancel,
}

/// How a sink is opened. Each scheme uses the options that mean something to it.
#[derive(Debug, Clone, Default)]
pub struct SinkOptions {
    /// How frames travel.
    pub transport: Transport,
    /// Ends a recording after this much of the signal, to the sample.
    pub duration: Option<Duration>,
    /// Replaces a recording of the same name.
    pub overwrite: bool,
    /// Memory for what of a recording waits for the disk, in bytes; 256 MiB where it is not given.
    pub buffer_bytes: Option<usize>,
    /// How a recording is written to the disk.
    pub way: WriteWay,
    /// Records in parts, `NAME_000001`, ..., each a recording of its own: one ends between two frames, and the next goes on with the next
    /// sample. They are counted on behind those that are there.
    pub rotate: Option<Rotate>,
    /// The most bytes that the parts may have together, with the one that is written: the oldest are removed.
    pub keep_bytes: Option<u64>,
    /// Makes a ring of the recording, whose path is then that of a folder: in parts there, of which the oldest are removed for as long as
    /// it goes on.
    pub ring: Option<RingLength>,
    /// Is told what the ring is made of, once the stream is known and before anything is written.
    pub ring_plan: Option<Sender<RingPlan>>,
    /// Ends a recording before it has more bytes of samples, of all channels and parts.
    pub bytes_max: Option<u64>,
    /// Hands out the sink's own memory, where it has some, for the source to write into. Nothing is copied then, and the sink
    /// takes nothing else.
    pub lends_pool: bool,
    /// Bytes of the largest frame, header included, that a stream in shared memory has to hold; `None`: 256 KiB.
    pub frame_bytes_max: Option<usize>,
    /// Is told what clients of an `rtl_tcp` server ask for: the receiver that the stream comes from ([`OpenSource::tuner`]).
    pub tuner: Option<Tuner>,
    /// Ends the wait for readers.
    pub cancel: Cancel,
}

/// What a person may want to know while a stream is opened; its text is a line for them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// The stream in shared memory is not there yet.
    WaitingForStream {
        /// The stream.
        name: String,
    },
    /// A stream in shared memory was made.
    Lending {
        /// The stream.
        name: String,
        /// Its memory.
        footprint: Footprint,
    },
    /// The stream begins once so many read it.
    WaitingForReaders {
        /// How many.
        count: usize,
    },
    /// The kernel gave a smaller socket buffer than was asked for.
    SmallBuffer(Granted),
    /// A stream over TCP listens there.
    WaitingForConnection {
        /// What it is called there: `tcp`.
        scheme: &'static str,
        /// With the port that the system chose where none was named.
        address: SocketAddr,
    },
    /// What is lost cannot be seen, and why.
    UnseenLoss(&'static str),
    /// How a recording is read: scaling, a recorder that was cut off.
    Recording(String),
}

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
        Uri::Udp(at, _) => udp_source(uri, at, options, notify),
        Uri::Shm(shm) => shm_source(shm, &options, notify),
        Uri::Pipe(_) => standard_input(&options),
        Uri::Raw(raw) => raw_source(uri, raw, &options, notify),
        Uri::RtlTcp(rtl) => rtl_tcp_source(uri, rtl, &options, notify),
        Uri::Vita49(stream) => vita49_source(uri, stream, &options, notify),
        Uri::Zmq(zmq) => zmq_source(uri, zmq, &options, notify),
        Uri::File(path) => recording(path, &options, notify),
        Uri::Synth(synth) => generator(synth, options),
    }
}

fn udp_source(
    uri: &Uri,
    at: &HostPort,
    options: SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let failed = |source| Error::Udp { action: "listen on", uri: uri.to_string(), source };
    let socket_options = options.transport.socket_options(at)?;
    let (address, otherwise) = at.to_listen()?;
    let bind = |address| UdpSource::bind(address, &socket_options);
    let mut source = bind(address).or_else(|_| bind(otherwise)).map_err(failed)?;
    if source.granted().is_clamped() {
        notify(Notice::SmallBuffer(source.granted()));
    }
    if let Some(pool) = options.pool {
        source = source.pool(pool);
    }
    let address = source.local_addr().map_err(failed)?;
    let second_sender = Some(source.second_sender());
    let source = source.listens_on(options.listens_on);
    let stage = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { address: Some(address), second_sender, ..OpenSource::of(stage) })
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
                let source = source?.idle_timeout(options.idle_timeout).samples(options.samples);
                let next = options.listens_on.then(|| (shm.name.clone(), subscriber.clone()));
                let lent_max = Some(source.lent_max());
                return Ok(OpenSource { lent_max, ..OpenSource::of(source.listens_on(next)) });
            }
        }
    }
}

fn standard_input(options: &SourceOptions) -> Result<OpenSource, Error> {
    let stdin = pipe::stdin().map_err(|source| Error::Closed { what: "standard input", source })?;
    let source = PipeSource::new(stdin).ends_with_writer(options.ends_with_writer);
    Ok(OpenSource::of(source.idle_timeout(options.idle_timeout).samples(options.samples)))
}

fn raw_source(
    uri: &Uri,
    raw: &RawStream,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let rate_hz = Some(raw.rate_hz).filter(|&rate_hz| rate_hz > 0.0);
    let source = match &raw.carrier {
        Carrier::Pipe => {
            let stdin = pipe::stdin().map_err(|source| Error::Closed { what: "standard input", source })?;
            let source = RawSource::new(stdin, pipe::readable, raw.clone());
            OpenSource::of(source.idle_timeout(options.idle_timeout).samples(options.samples))
        }
        Carrier::Tcp(end) => {
            let (stream, again) = connection(end, &options.cancel, notify)?;
            let source = RawSource::new(stream, pipe::readable, raw.clone()).again(again);
            OpenSource::of(source.idle_timeout(options.idle_timeout).samples(options.samples))
        }
        Carrier::Udp(at) => {
            let failed = |source| Error::Udp { action: "listen on", uri: uri.to_string(), source };
            let socket_options = options.transport.socket_options(at)?;
            let (address, otherwise) = at.to_listen()?;
            let bind = |address| RawUdpSource::bind(address, &socket_options, raw.clone());
            let source = bind(address).or_else(|_| bind(otherwise)).map_err(failed)?;
            if source.granted().is_clamped() {
                notify(Notice::SmallBuffer(source.granted()));
            }
            if raw.number.is_none() {
                notify(Notice::UnseenLoss("the datagrams have no numbers: what is lost on the way"));
            }
            let address = Some(source.local_addr().map_err(failed)?);
            let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
            OpenSource { address, ..OpenSource::of(source) }
        }
    };
    Ok(OpenSource { rate_hz, ..source })
}

/// A connection, and what opens it again where that is wanted.
fn connection(
    end: &TcpEnd,
    cancel: &Cancel,
    notify: &mut dyn FnMut(Notice),
) -> Result<(TcpStream, Option<Again<TcpStream>>), Error> {
    let listening = |address| notify(Notice::WaitingForConnection { scheme: "tcp", address });
    let connector = end.connector("tcp", listening)?;
    let stream = connector.open(cancel)?;
    let again = end.reconnects.then(|| Again::new(move |cancel| connector.open(cancel)));
    Ok((stream, again))
}

fn rtl_tcp_source(
    uri: &Uri,
    rtl: &RtlTcp,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    if rtl.listens {
        let reason = "has listen, which makes it a server, and a server is where a stream goes to".to_owned();
        return Err(Error::Name { name: uri.to_string(), reason });
    }
    let (source, tuner) = receiver(rtl, &options.cancel)?;
    notify(Notice::UnseenLoss("rtl_tcp has no numbers: what its server drops"));
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    let rate_hz = Some(rtl.tuning.rate_hz);
    Ok(OpenSource { rate_hz, tuner: Some(tuner), ..OpenSource::of(source) })
}

fn vita49_source(
    uri: &Uri,
    stream: &Vita49Stream,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let failed = |source| Error::Udp { action: "listen on", uri: uri.to_string(), source };
    let socket_options = options.transport.socket_options(&stream.at)?;
    let (address, otherwise) = stream.at.to_listen()?;
    let bind = |address| Vita49Source::bind(address, &socket_options, stream.clone());
    let source = bind(address).or_else(|_| bind(otherwise)).map_err(failed)?;
    if source.granted().is_clamped() {
        notify(Notice::SmallBuffer(source.granted()));
    }
    let address = Some(source.local_addr().map_err(failed)?);
    let second_sender = Some(source.second_sender());
    let rate_hz = Some(stream.rate_hz).filter(|&rate_hz| rate_hz > 0.0);
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { address, second_sender, rate_hz, ..OpenSource::of(source) })
}

fn zmq_source(
    uri: &Uri,
    zmq: &Zmq,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let socket = zmq.socket.unwrap_or(Socket::Sub);
    if !socket.reads() {
        let reason =
            format!("sends: what reads is type={}", if socket == Socket::Pub { "sub" } else { "pull" });
        return Err(Error::Name { name: uri.to_string(), reason });
    }
    let listening = |address| notify(Notice::WaitingForConnection { scheme: "zmq", address });
    let source = zmq::source(zmq, zmq.meeting(socket, listening)?, &options.cancel)?;
    if zmq.loses_unseen(socket) {
        notify(Notice::UnseenLoss("there are no tags: what a PUB drops for a slow reader"));
    }
    let rate_hz = Some(zmq.raw.rate_hz).filter(|&rate_hz| rate_hz > 0.0);
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { rate_hz, ..OpenSource::of(source) })
}

fn recording(
    path: &Path,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    open_file(SampleFile::open(path)?, options, notify)
}

/// Opens a recording that was opened already as a source, as [`open_source`] does with its path: one that was put together, for
/// example.
///
/// ```no_run
/// use grebe_stages::{Alignment, SampleFile, SourceOptions, open_file};
///
/// let receivers = ["north.sigmf-meta", "south.sigmf-meta"];
/// let files = receivers.iter().map(|path| SampleFile::open(path.as_ref())).collect::<Result<Vec<_>, _>>()?;
/// let both = SampleFile::side_by_side(files, Alignment::Time)?;
/// let source = open_file(both, &SourceOptions::default(), &mut |notice| eprintln!("{notice}"))?;
/// # Ok::<(), grebe_stages::Error>(())
/// ```
///
/// # Errors
/// [`Error::Setting`] for a stretch that the recording does not have, or a size of datagrams out of its range.
pub fn open_file(
    file: SampleFile,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    file.notes().iter().for_each(|note| notify(Notice::Recording(note.clone())));
    let file = file.stretch(options.start, options.length)?;
    player(file, None, options, notify)
}

/// Opens recordings as sources that keep step: each sends its samples when they are due by one clock for all, at its own rate. Gaps take
/// their time, and who begins later waits; where they are repeated, all begin again once the last has ended. `options.start` and `length` are of
/// the time of all, from the earliest sample on; without a speed there is no step to keep.
///
/// # Errors
/// [`Error::Field`] where a file does not say what the alignment needs (see [`Alignment`]), says no rate, or has nothing in that stretch.
pub fn open_in_step(
    files: Vec<SampleFile>,
    alignment: Alignment,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<Vec<OpenSource>, Error> {
    for note in files.iter().flat_map(SampleFile::notes) {
        notify(Notice::Recording(note.clone()));
    }
    let note = &mut |note| notify(Notice::Recording(note));
    let files = Schedule::of(files, alignment, options.start, options.length, note)?;
    files.into_iter().map(|(file, schedule)| player(file, Some(schedule), options, notify)).collect()
}

fn player(
    file: SampleFile,
    schedule: Option<Schedule>,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let datagram_bytes = options.transport.datagram_bytes.unwrap_or(DATAGRAM_BYTES_MAX);
    check_datagram_bytes(datagram_bytes)?;
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
    let missing = file.segments().windows(2).filter(|pair| pair[1].position < samples).map(|pair| {
        let end = pair[0].first_sample_index.saturating_add(pair[0].length_samples);
        // One that lies before it is of another stream.
        pair[1].first_sample_index.saturating_sub(end)
    });
    let span_samples = Some(missing.fold(samples, u64::saturating_add));
    let (source, note) = FileSource::new(file, play);
    note.into_iter().for_each(|note| notify(Notice::Recording(note)));
    let source = OpenSource::of(match schedule {
        Some(schedule) => source.in_step(schedule),
        None => source,
    });
    Ok(OpenSource { rate_hz, samples: Some(samples), span_samples, ..source })
}

/// Its datagram size and latency are those of the transport.
fn generator(synth: &Synth, options: SourceOptions) -> Result<OpenSource, Error> {
    let datagram_bytes = options.transport.datagram_bytes.unwrap_or(DATAGRAM_BYTES_MAX);
    check_datagram_bytes(datagram_bytes)?;
    let samples = synth.length_samples().into_iter().chain(options.samples).min().map(Count);
    let synth = Synth {
        samples,
        datagram_size: SizeBytes(datagram_bytes),
        latency: Time(options.transport.latency),
        ..synth.clone()
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
        Uri::Udp(to, wire) => Box::new(udp_sink(uri, to, options, notify)?.wire(*wire)),
        Uri::Shm(shm) => {
            let mut sink = shm_sink(shm, options, notify)?;
            pool = options.lends_pool.then(|| sink.lend_pool()).flatten();
            Box::new(sink)
        }
        Uri::Pipe(wire) => {
            let stdout =
                pipe::stdout().map_err(|source| Error::Closed { what: "standard output", source })?;
            Box::new(PipeSink::new(stdout).wire(*wire))
        }
        Uri::Raw(raw) => raw_sink(uri, raw, datagram_bytes, options, notify)?,
        Uri::RtlTcp(rtl) => {
            let listening = |address| notify(Notice::WaitingForConnection { scheme: "rtl_tcp", address });
            Box::new(RtlTcpServer::open(rtl, options.tuner.clone(), &options.cancel, listening)?)
        }
        Uri::Vita49(stream) => Box::new(vita49_sink(uri, stream, datagram_bytes, options, notify)?),
        Uri::Zmq(zmq) => {
            let socket = zmq.socket.unwrap_or(Socket::Pub);
            if socket.reads() {
                let reason = format!(
                    "reads: what sends is type={}",
                    if socket == Socket::Sub { "pub" } else { "push" }
                );
                return Err(Error::Name { name: uri.to_string(), reason });
            }
            let listening = |address| notify(Notice::WaitingForConnection { scheme: "zmq", address });
            Box::new(ZmqSink::open(zmq, socket, &options.cancel, listening)?)
        }
        Uri::File(path) => {
            let record = RecordOptions {
                duration: options.duration,
                overwrite: options.overwrite,
                buffer_bytes: options.buffer_bytes,
                way: options.way,
                rotate: options.rotate,
                keep_bytes: options.keep_bytes,
                ring: options.ring,
                ring_plan: options.ring_plan.clone(),
                bytes_max: options.bytes_max,
            };
            let ring = options.ring.map(|_| make_ring_folder(path)).transpose()?;
            Box::new(SigmfSink::create(ring.as_deref().unwrap_or(path), record)?)
        }
        Uri::Synth(_) => {
            let reason = "cannot be sent to: it is a generator".to_owned();
            return Err(Error::Name { name: uri.to_string(), reason });
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
    let failed = |source| Error::Udp { action: "send to", uri: uri.to_string(), source };
    let sink = UdpSink::connect(to.to_send()?, &options.transport.socket_options(to)?).map_err(failed)?;
    if sink.granted().is_clamped() {
        notify(Notice::SmallBuffer(sink.granted()));
    }
    Ok(sink)
}

fn raw_sink(
    uri: &Uri,
    raw: &RawStream,
    datagram_bytes: usize,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<Box<dyn Stage>, Error> {
    Ok(match &raw.carrier {
        Carrier::Pipe => {
            let stdout =
                pipe::stdout().map_err(|source| Error::Closed { what: "standard output", source })?;
            Box::new(RawSink::new(stdout, raw.clone()))
        }
        Carrier::Tcp(end) => {
            let (stream, again) = connection(end, &options.cancel, notify)?;
            Box::new(RawSink::new(stream, raw.clone()).again(again))
        }
        Carrier::Udp(to) => {
            let failed = |source| Error::Udp { action: "send to", uri: uri.to_string(), source };
            let socket_options = options.transport.socket_options(to)?;
            let sink = RawUdpSink::connect(
                to.to_send()?,
                &socket_options,
                raw.clone(),
                options.transport.datagram_bytes,
                datagram_bytes,
            );
            let sink = sink.map_err(failed)?;
            if sink.granted().is_clamped() {
                notify(Notice::SmallBuffer(sink.granted()));
            }
            Box::new(sink)
        }
    })
}

fn vita49_sink(
    uri: &Uri,
    stream: &Vita49Stream,
    datagram_bytes: usize,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<Vita49Sink, Error> {
    let failed = |source| Error::Udp { action: "send to", uri: uri.to_string(), source };
    let sink = Vita49Sink::connect(
        stream.at.to_send()?,
        &options.transport.socket_options(&stream.at)?,
        stream.clone(),
        options.transport.datagram_bytes,
        datagram_bytes,
    );
    let sink = sink.map_err(failed)?;
    if sink.granted().is_clamped() {
        notify(Notice::SmallBuffer(sink.granted()));
    }
    Ok(sink)
}

fn shm_sink(shm: &ShmName, options: &SinkOptions, notify: &mut dyn FnMut(Notice)) -> Result<ShmSink, Error> {
    let sink = ShmSink::create(&shm.name, shm.publisher_options(options.frame_bytes_max))?;
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

impl Default for Transport {
    /// Datagrams as suit the path, 128 per call, 500 us.
    fn default() -> Self {
        Self { datagram_bytes: None, burst: 128, latency: Duration::from_micros(500) }
    }
}

impl Transport {
    /// Bytes of the datagrams that suit a sink.
    ///
    /// # Errors
    /// The size that was chosen is out of its range, or the host has no address.
    pub fn datagram_bytes_to(&self, uri: &Uri) -> Result<usize, Error> {
        if let Some(bytes) = self.datagram_bytes {
            check_datagram_bytes(bytes)?;
            return Ok(bytes);
        }
        let to = match uri {
            // What reads them on this machine is another program, which may not expect longer ones.
            Uri::Vita49(_) => return Ok(DATAGRAM_BYTES),
            Uri::Udp(host_port, _) => Some(host_port),
            Uri::Raw(raw) => match &raw.carrier {
                Carrier::Udp(host_port) => Some(host_port),
                _ => None,
            },
            _ => None,
        };
        match to {
            Some(host_port) => {
                let is_local = host_port.to_send()?.ip().is_loopback() && !grebe_datagram::is_wsl2();
                Ok(if is_local { DATAGRAM_BYTES_MAX } else { DATAGRAM_BYTES })
            }
            None => Ok(DATAGRAM_BYTES_MAX),
        }
    }

    fn socket_options(&self, at: &HostPort) -> Result<grebe_datagram::Options, Error> {
        let mut options = grebe_datagram::Options {
            burst: self.burst,
            latency: self.latency,
            ..grebe_datagram::Options::default()
        };
        at.set_options(&mut options)?;
        Ok(options)
    }

    /// How long a block may wait for others to travel with.
    fn flush_every(&self) -> Duration {
        self.latency / 4
    }
}

impl Default for SourceOptions {
    /// All of the stream, without waiting for it; a recording as fast as it is taken.
    fn default() -> Self {
        Self {
            transport: Transport::default(),
            reader: String::new(),
            policy: Policy::DropOldest,
            waits: false,
            listens_on: false,
            ends_with_writer: false,
            samples: None,
            duration: None,
            idle_timeout: None,
            speed: None,
            repeat: false,
            start: Duration::ZERO,
            length: None,
            pool: None,
            cancel: Cancel::default(),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::WaitingForStream { name } => write!(f, "waiting for the stream shm://{name}"),
            Notice::Lending { name, footprint } => write!(f, "lending as shm://{name}: {footprint}"),
            Notice::WaitingForReaders { count } => write!(f, "waiting for {count} to read it"),
            Notice::SmallBuffer(granted) => {
                // At 2 bytes a sample.
                let lasts_ms = granted.granted_bytes as f64 / 2e8 * 1e3;
                write!(f, "{granted}; as it is, 100 MS/s fill it in {lasts_ms:.0} ms")
            }
            Notice::WaitingForConnection { scheme, address } => {
                write!(f, "listening on {scheme}://{address}")
            }
            Notice::UnseenLoss(what) => write!(f, "{what} cannot be seen"),
            Notice::Recording(note) => f.write_str(note),
        }
    }
}

/// How soon a wait sees that it was cancelled, or that there is a stream now.
const LOOK_EVERY: Duration = Duration::from_millis(50);
