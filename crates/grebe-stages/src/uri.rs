//! The name of either end of a stream.

mod multicast;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use grebe_flow::SizeBytes;
use grebe_frame::SampleFormat;

use crate::audio::AudioStream;
use crate::error::Error;
use crate::file::is_recording;
use crate::raw::{Carrier, RawStream, TcpEnd};
use crate::rtl_tcp::RtlTcp;
use crate::serial::SerialEnd;
use crate::soapy::Soapy;
use crate::synth::{Synth, query};
use crate::text::TextStream;
use crate::vita49::Vita49Stream;
use crate::zenoh::{NamedStream, ZenohKey, way_to_read};
use crate::zmq::Zmq;
use multicast::Multicast;

/// Where a stream comes from or goes to.
///
/// | written | as a source | as a sink |
/// |---|---|---|
/// | `udp://HOST:PORT` | listens on that address (`udp://:5000`: on all; a multicast address: joins it, by `?interface=`) | sends to it (a group: as far as `?ttl=` says) |
/// | `shm://NAME` | reads what a process of this machine lends | lends to processes of this machine |
/// | `udp://HOST:PORT?wire=gfh2`, `pipe:?wire=gfh2` | - | as without it, and only what receivers of the first GFH2 know: see [`Wire`] |
/// | `pipe:` | reads frames from standard input | writes them to standard output |
/// | `pipe:?format=cu8&rate=2.4M`, `tcp://HOST:PORT?format=...`, `udp://HOST:PORT?format=...` | reads samples and nothing else: see [`RawStream`] | writes them |
/// | `pipe:?format=text`, also `tcp://` and `udp://` | reads lines of numbers: see [`TextStream`] | writes them, not over UDP |
/// | `serial:///dev/ttyUSB0?baud=115200`, `&format=...` | reads lines of numbers from a serial port, or samples | writes them |
/// | `audio:`, `audio:hw:1,0?rate=96k` | listens to a sound device: see [`AudioStream`] | plays on it |
/// | `rtl_tcp://HOST:PORT?frequency=100M&rate=2.4M` | a receiver behind `rtl_tcp`: see [`RtlTcp`] | is such a server |
/// | `soapy:driver=rtlsdr?frequency=100M&rate=2.4M` | a radio behind SoapySDR: see [`Soapy`] | sends by it |
/// | `vrt://HOST:PORT` | takes VITA-49 packets that come there: see [`Vita49Stream`] | sends them |
/// | `zmq://HOST:PORT?format=cf32` | reads what a ZMQ block of GNU Radio sends: see [`Zmq`] | sends to such blocks |
/// | `zenoh://KEY` | takes frames that are sent to that key of [Zenoh](https://zenoh.io)'s: see [`ZenohKey`] | sends them |
/// | `lab/mast3/adc` | reads the stream that a host announces under that name, by the best way: see [`NamedStream`] | announces it |
/// | `file:PATH`, or a path ending in `.sigmf-meta`, `.sigmf-data`, `.sigmf-collection`, `.sigmf`, `.wav`, or a raw file (`x.cu8?rate=2.4M`) | plays the file | records to it |
/// | `synth:`, `synth:WAVES?NAME=VALUE&...` | a generator in this process | - |
///
/// A serial port has `baud=` (115,200 where it is not given), `mode=` (data bits, parity, stop bits: `8N1`), `flow=none|hardware|software`,
/// `hangup=no` (DTR stays up when it is closed: the next opening does not reset a board that listens to it) and `reconnect` (where it is unplugged it is waited
/// for).
///
/// ```
/// use grebe_stages::Uri;
///
/// assert!(matches!("udp://:5000".parse(), Ok(Uri::Udp(..))));
/// assert!(matches!("out.sigmf-meta".parse(), Ok(Uri::File(_))));
/// let error = "udp://127.0.0.1".parse::<Uri>().unwrap_err();
/// assert_eq!(error.to_string(), "'udp://127.0.0.1' has no port: write udp://HOST:PORT, for example udp://127.0.0.1:5000");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Uri {
    /// Datagrams, one frame each.
    Udp(HostPort, Wire),
    /// Memory shared with other processes of this machine.
    Shm(ShmName),
    /// Frames back to back on standard input or output.
    Pipe(Wire),
    /// Samples without headers, as other programs have them.
    Raw(Box<RawStream>),
    /// Lines of numbers.
    Text(Box<TextStream>),
    /// A sound device.
    Audio(Box<AudioStream>),
    /// A receiver behind `rtl_tcp`, or a server of that kind.
    RtlTcp(Box<RtlTcp>),
    /// A radio behind SoapySDR.
    Soapy(Box<Soapy>),
    /// VITA-49 packets over UDP, DIFI among them.
    Vita49(Box<Vita49Stream>),
    /// GNU Radio's items over ZeroMQ.
    Zmq(Box<Zmq>),
    /// Frames under a key of Zenoh's.
    Zenoh(ZenohKey),
    /// A stream that some host announces under this name.
    Named(NamedStream),
    /// A recording.
    File(PathBuf),
    /// A generator in this process: `synth:sine,square?rate=25M&frequency=1k`, with the parameters of [`Synth`] but those of the
    /// transport; four channels where it does not say.
    Synth(Box<Synth>),
}

/// Which frames a sink sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wire {
    /// Samples of every format, and descriptions.
    #[default]
    Every,
    /// `wire=gfh2`: 16-bit samples in 1 to 8 channels, as they were before there were others, and no descriptions. A stream that does
    /// not fit is refused.
    Gfh2,
}

impl Wire {
    /// Whether its receivers know such samples.
    pub(crate) fn check(self, format: SampleFormat, channels: u32) -> Result<(), Error> {
        let is_known = format == SampleFormat::I16 && channels <= GFH2_CHANNELS_MAX;
        if self == Wire::Every || is_known { Ok(()) } else { Err(Error::Wire { format, channels }) }
    }
}

/// A stream in shared memory, and what either end may add: `shm://NAME?policy=drop_latest` for who reads it,
/// `shm://NAME?readers=2&wait=2&block=no` for who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShmName {
    /// The stream.
    pub name: String,
    /// `policy=`: what happens when this reader is too slow; `None`: what whoever opens the stream chose.
    pub policy: Option<grebe_shm::Policy>,
    /// `wait=`: the stream begins once so many processes read it.
    pub wait_consumers: u16,
    /// `block=no`: no reader may make the stream wait.
    pub allow_block: bool,
    /// `readers=`: how many may read it at a time, who share its memory out among them; `None`: 4.
    pub readers_max: Option<u16>,
    /// `memory=`: bytes of samples that it holds, 16 MiB to 16 GiB: for how long a reader may stall; `None`: 256 MiB.
    pub memory_bytes: Option<u64>,
}

impl ShmName {
    /// How the stream is to be made, with frames of at most so many bytes.
    pub(crate) fn publisher_options(&self, frame_bytes_max: Option<usize>) -> grebe_shm::PublisherOptions {
        let options = grebe_shm::PublisherOptions::default();
        let options = grebe_shm::PublisherOptions {
            allow_block: self.allow_block,
            consumers_max: self.readers_max.map_or(options.consumers_max, usize::from),
            chunks: self.memory_bytes.map_or(options.chunks, |bytes| bytes as usize / options.chunk_bytes),
            ..options
        };
        match frame_bytes_max {
            Some(bytes) if bytes > options.chunk_bytes => of_large_chunks(options, bytes),
            _ => options,
        }
    }
}

/// A host, by name or number, and a port; resolved when it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// Empty: every address of this machine.
    host: String,
    port: u16,
    multicast: Multicast,
}

/// Chunks that hold a frame of so many bytes: as much memory as ever, or as much more as a few of them for everybody take.
fn of_large_chunks(options: grebe_shm::PublisherOptions, bytes: usize) -> grebe_shm::PublisherOptions {
    let memory_bytes = options.chunks * options.chunk_bytes;
    let chunk_bytes = bytes.next_multiple_of(64);
    let options = grebe_shm::PublisherOptions { chunk_bytes, reserve_chunks: CHUNKS_IN_HAND, ..options };
    let own = options.reserve_chunks + options.resting_chunks();
    let chunks = (memory_bytes / chunk_bytes).max(own + CHUNKS_A_READER * options.consumers_max);
    grebe_shm::PublisherOptions { chunks, ..options }
}

impl HostPort {
    pub(crate) fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, multicast: Multicast::default() }
    }

    /// What the name says of multicast, put into a socket's options.
    pub(crate) fn set_options(&self, options: &mut grebe_datagram::Options) -> Result<(), Error> {
        let name = || format!("udp://{self}");
        self.multicast.set_options(options).map_err(|reason| Error::Name { name: name(), reason })
    }

    /// The address to listen on, and another for where it cannot be had: without a host an IPv6 socket hears every address, IPv4
    /// too, and a machine without IPv6 has none.
    pub(crate) fn to_listen(&self) -> Result<(SocketAddr, SocketAddr), Error> {
        if self.host.is_empty() {
            return Ok((
                (Ipv6Addr::UNSPECIFIED, self.port).into(),
                (Ipv4Addr::UNSPECIFIED, self.port).into(),
            ));
        }
        self.resolve().map(|address| (address, address))
    }

    /// The address to send to; this machine where no host is named.
    pub(crate) fn to_send(&self) -> Result<SocketAddr, Error> {
        if self.port == 0 {
            let reason =
                "has no receiver's port: 0 is any port, and only a listener can have that".to_owned();
            return Err(Error::Name { name: format!("udp://{self}"), reason });
        }
        if self.host.is_empty() { Ok((Ipv4Addr::LOCALHOST, self.port).into()) } else { self.resolve() }
    }

    fn resolve(&self) -> Result<SocketAddr, Error> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok((address, self.port).into());
        }
        let unresolved = |reason: String| Error::Unresolved { host: self.host.clone(), reason };
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        found
            .map_err(|error| unresolved(error.to_string()))?
            // What a name means first is IPv6 on many machines, while listeners default to IPv4.
            .min_by_key(SocketAddr::is_ipv6)
            .ok_or_else(|| unresolved("it has no address".to_owned()))
    }
}

impl FromStr for Uri {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let named = |reason: String| Error::Name { name: text.to_owned(), reason };
        let (multicast, rest) = Multicast::take(text).map_err(named)?;
        let mut uri = parse(&rest, text)?;
        if multicast != Multicast::default() {
            let group = uri.datagrams_at().ok_or_else(|| named(NO_GROUP.to_owned()))?;
            let is_one = group.host.parse::<IpAddr>().is_ok_and(|address| !address.is_multicast());
            if is_one || group.host.is_empty() {
                return Err(named(NO_GROUP.to_owned()));
            }
            group.multicast = multicast;
        }
        Ok(uri)
    }
}

impl Default for Uri {
    /// Where streams go that are told nothing else: `udp://127.0.0.1:5000`.
    fn default() -> Self {
        Self::Udp(HostPort::new("127.0.0.1", 5000), Wire::Every)
    }
}

impl Uri {
    /// What to tell readers of a stream that goes there: `shm://NAME`, `udp://HOST:PORT`, `zenoh://KEY`. `None`: nobody else can read that.
    pub fn way_to_read(&self) -> Option<String> {
        way_to_read(self)
    }

    /// Where its datagrams go to or come in, where it has some.
    fn datagrams_at(&mut self) -> Option<&mut HostPort> {
        match self {
            Uri::Udp(at, _) => Some(at),
            Uri::Raw(raw) => raw.carrier.datagrams_at(),
            Uri::Text(text) => text.carrier.datagrams_at(),
            Uri::Vita49(stream) => Some(&mut stream.at),
            _ => None,
        }
    }
}

/// A name without what it says of multicast; `whole` is all of it.
fn parse(text: &str, whole: &str) -> Result<Uri, Error> {
    let malformed = |reason: &str| Error::Name { name: whole.to_owned(), reason: reason.to_owned() };
    if let Some((carrier, query)) = carrier(text) {
        let carrier = carrier.map_err(|reason| malformed(&reason))?;
        let format = query.split('&').find_map(|pair| pair.strip_prefix("format="));
        let is_text = format == Some("text") || (format.is_none() && matches!(carrier, Carrier::Serial(_)));
        return if is_text {
            let text = TextStream::parse(carrier, query).map_err(|reason| malformed(&reason))?;
            Ok(Uri::Text(Box::new(text)))
        } else {
            let raw = RawStream::parse(carrier, query).map_err(|reason| malformed(&reason))?;
            Ok(Uri::Raw(Box::new(raw)))
        };
    }
    if let Some(rest) = text.strip_prefix("udp://") {
        let (rest, wire) = split_wire(rest).map_err(|reason| malformed(&reason))?;
        return Ok(Uri::Udp(parse_host_port(rest).map_err(malformed)?, wire));
    }
    if let Some(rest) = text.strip_prefix("rtl_tcp://") {
        let (at, query) = rest.split_once('?').unwrap_or((rest, ""));
        let rtl = RtlTcp::parse(parse_host_port(at).map_err(malformed)?, query);
        return Ok(Uri::RtlTcp(Box::new(rtl.map_err(|reason| malformed(&reason))?)));
    }
    if let Some(rest) = text.strip_prefix("soapy:") {
        return Ok(Uri::Soapy(Box::new(Soapy::parse(rest).map_err(|reason| malformed(&reason))?)));
    }
    if let Some(rest) = text.strip_prefix("zmq://") {
        let (at, query) = rest.split_once('?').unwrap_or((rest, ""));
        let zmq = Zmq::parse(parse_host_port(at).map_err(malformed)?, query);
        return Ok(Uri::Zmq(Box::new(zmq.map_err(|reason| malformed(&reason))?)));
    }
    if let Some(rest) = text.strip_prefix("zenoh://") {
        return Ok(Uri::Zenoh(ZenohKey::parse(rest).map_err(|reason| malformed(&reason))?));
    }
    if let Some(rest) = text.strip_prefix("vrt://") {
        let (at, query) = rest.split_once('?').unwrap_or((rest, ""));
        let stream = Vita49Stream::parse(parse_host_port(at).map_err(malformed)?, query);
        return Ok(Uri::Vita49(Box::new(stream.map_err(|reason| malformed(&reason))?)));
    }
    if let Some(rest) = text.strip_prefix("audio:") {
        let audio = AudioStream::parse(rest).map_err(|reason| malformed(&reason))?;
        return Ok(Uri::Audio(Box::new(audio)));
    }
    if let Some(rest) = text.strip_prefix("shm://") {
        return Ok(Uri::Shm(parse_shm(rest).map_err(|reason| malformed(&reason))?));
    }
    if let Some(path) = text.strip_prefix("file:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return if path.is_empty() { Err(malformed("names no file")) } else { Ok(Uri::File(path.into())) };
    }
    if let Some(rest) = text.strip_prefix("synth:") {
        return Ok(Uri::Synth(Box::new(query::parse(rest).map_err(|reason| malformed(&reason))?)));
    }
    if let Some(rest) = text.strip_prefix("pipe:")
        && let ("", wire) = split_wire(rest).map_err(|reason| malformed(&reason))?
    {
        return Ok(Uri::Pipe(wire));
    }
    match text {
        "-" => return Ok(Uri::Pipe(Wire::Every)),
        "" => return Err(malformed("is empty: name a stream, for example udp://:5000")),
        _ => {}
    }
    if is_recording(Path::new(text)) {
        return Ok(Uri::File(text.into()));
    }
    if let Some(named) = NamedStream::parse(text) {
        return Ok(Uri::Named(named.map_err(|reason| malformed(&reason))?));
    }
    Err(malformed(
        "names no stream: use udp://HOST:PORT, shm://NAME, pipe:, tcp://HOST:PORT?format=..., serial:PORT, audio:, rtl_tcp://HOST:PORT, soapy:ARGUMENTS, vrt://HOST:PORT, zmq://HOST:PORT?format=..., zenoh://KEY, a name such as lab/mast3/adc, file:PATH or synth:",
    ))
}

/// What carries a stream without frames, and the query of its name; `None`: it is another stream.
fn carrier(text: &str) -> Option<(Result<Carrier, String>, &str)> {
    let (name, query) = text.split_once('?').unwrap_or((text, ""));
    if let Some(at) = name.strip_prefix("tcp://") {
        let end = |at| Carrier::Tcp(TcpEnd { at, listens: false, reconnects: false });
        return Some((parse_host_port(at).map(end).map_err(str::to_owned), query));
    }
    if let Some(port) = name.strip_prefix("serial:") {
        return Some((SerialEnd::parse(port).map(Carrier::Serial), query));
    }
    let is_plain = query.is_empty() || query.split('&').all(|pair| pair.starts_with("wire="));
    match name.strip_prefix("udp://") {
        _ if is_plain => None,
        Some(at) => Some((parse_host_port(at).map(Carrier::Udp).map_err(str::to_owned), query)),
        None => matches!(name, "pipe:" | "-").then_some((Ok(Carrier::Pipe), query)),
    }
}

/// What stands before the query, and its `wire=`.
fn split_wire(text: &str) -> Result<(&str, Wire), String> {
    match text.split_once('?') {
        None => Ok((text, Wire::Every)),
        Some((rest, "wire=gfh2")) => Ok((rest, Wire::Gfh2)),
        Some((_, query)) => Err(format!("has an unknown '{query}': known is wire=gfh2")),
    }
}

fn parse_shm(text: &str) -> Result<ShmName, String> {
    let (name, query) = text.split_once('?').unwrap_or((text, ""));
    let name = name.strip_suffix('/').unwrap_or(name).to_owned();
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() > 64 || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(good) {
        return Err("needs a name of 1 to 64 letters, digits, '-', '_' and '.': shm://adc".to_owned());
    }
    let mut shm = ShmName {
        name,
        policy: None,
        wait_consumers: 0,
        allow_block: true,
        readers_max: None,
        memory_bytes: None,
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "policy" => {
                shm.policy = Some(value.parse().map_err(|error| format!("has a wrong policy: {error}"))?)
            }
            "wait" => {
                shm.wait_consumers =
                    value.parse().map_err(|_| format!("waits for '{value}' readers: give a number"))?;
            }
            "readers" => {
                let readers = value.parse().ok().filter(|readers| (1..=64).contains(readers));
                shm.readers_max = Some(readers.ok_or_else(|| format!("has readers={value}: give 1 to 64"))?);
            }
            "memory" => {
                let bytes: Option<SizeBytes> = value.parse().ok();
                let bytes = bytes.map(|bytes| bytes.0 as u64).filter(|bytes| SHM_BYTES.contains(bytes));
                shm.memory_bytes = Some(
                    bytes.ok_or_else(|| format!("has memory={value}: give 16M to 16G, for example 1G"))?,
                );
            }
            "block" if value == "yes" => shm.allow_block = true,
            "block" if value == "no" => shm.allow_block = false,
            "block" => return Err("has block= without yes or no".to_owned()),
            _ => {
                return Err(format!(
                    "has an unknown '{key}': known are policy, readers, memory, wait and block"
                ));
            }
        }
    }
    let readers_max = shm.publisher_options(None).consumers_max;
    if usize::from(shm.wait_consumers) > readers_max {
        let wanted = shm.wait_consumers;
        return Err(format!("waits for {wanted} readers and lets {readers_max} in: add readers={wanted}"));
    }
    Ok(shm)
}

fn parse_host_port(text: &str) -> Result<HostPort, &'static str> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("has a '[' without a ']'")?;
            (host, after.strip_prefix(':').ok_or(NO_PORT)?)
        }
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                return Err("needs brackets around an IPv6 address: udp://[::1]:5000");
            }
            Some(parts) => parts,
            None => return Err(NO_PORT),
        },
    };
    if host.contains(|c: char| c.is_whitespace() || "/?#@".contains(c)) {
        return Err("has a host that is no name and no address");
    }
    let port = port.parse::<u16>().map_err(|_| "has a port that is not a number of 0..=65535")?;
    Ok(HostPort::new(host, port))
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uri::Udp(at, wire) => {
                write!(f, "udp://{at}{wire}")?;
                at.multicast.write(f, *wire == Wire::Every)
            }
            Uri::Shm(shm) => write!(f, "shm://{shm}"),
            Uri::Pipe(wire) => write!(f, "pipe:{wire}"),
            Uri::Raw(raw) => {
                write!(f, "{raw}")?;
                write_multicast(&raw.carrier, f)
            }
            Uri::Text(text) => {
                write!(f, "{text}")?;
                write_multicast(&text.carrier, f)
            }
            Uri::Audio(audio) => write!(f, "{audio}"),
            Uri::RtlTcp(rtl) => write!(f, "{rtl}"),
            Uri::Soapy(soapy) => write!(f, "{soapy}"),
            Uri::Vita49(stream) => {
                let name = stream.to_string();
                f.write_str(&name)?;
                stream.at.multicast.write(f, !name.contains('?'))
            }
            Uri::Zmq(zmq) => write!(f, "{zmq}"),
            Uri::Zenoh(key) => write!(f, "{key}"),
            Uri::Named(named) => write!(f, "{named}"),
            Uri::File(path) => write!(f, "file:{}", path.display()),
            Uri::Synth(synth) => write!(f, "synth:{}", query::Query(synth)),
        }
    }
}

/// What the name says of multicast, behind the rest of its query.
fn write_multicast(carrier: &Carrier, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match carrier {
        Carrier::Udp(at) => at.multicast.write(f, false),
        _ => Ok(()),
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wire::Every => Ok(()),
            Wire::Gfh2 => f.write_str("?wire=gfh2"),
        }
    }
}

impl fmt::Display for ShmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let policy = self.policy.map(|policy| format!("policy={policy}"));
        let readers = self.readers_max.map(|readers| format!("readers={readers}"));
        let wait = (self.wait_consumers > 0).then(|| format!("wait={}", self.wait_consumers));
        let block = (!self.allow_block).then(|| "block=no".to_owned());
        let memory = self.memory_bytes.map(|bytes| format!("memory={bytes}"));
        let pairs: Vec<String> = [policy, readers, memory, wait, block].into_iter().flatten().collect();
        if pairs.is_empty() { Ok(()) } else { write!(f, "?{}", pairs.join("&")) }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

const NO_GROUP: &str =
    "is no multicast group: interface=, ttl= and loop= are for 224.0.0.0 to 239.255.255.255 and ff00::/8";
const NO_PORT: &str = "has no port: write udp://HOST:PORT, for example udp://127.0.0.1:5000";

/// What `memory=` may be.
const SHM_BYTES: std::ops::RangeInclusive<u64> = 16 << 20..=16 << 30;

/// Large chunks that a producer fills, and that wait to be lent.
const CHUNKS_IN_HAND: usize = 6;
/// Large chunks that a reader has at least: one that it reads, and others that wait.
const CHUNKS_A_READER: usize = 6;

/// Before there were other formats, a header had no place for more.
const GFH2_CHANNELS_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_understood() {
        let udp = |host: &str, port| Uri::Udp(HostPort::new(host, port), Wire::Every);
        let shm = |name: &str, policy, wait_consumers, allow_block| {
            Uri::Shm(ShmName {
                name: name.to_owned(),
                policy,
                wait_consumers,
                allow_block,
                readers_max: None,
                memory_bytes: None,
            })
        };
        let two = ShmName {
            name: "a".to_owned(),
            policy: None,
            wait_consumers: 0,
            allow_block: true,
            readers_max: Some(2),
            memory_bytes: Some(1 << 30),
        };
        for (text, uri) in [
            ("udp://:5000", udp("", 5000)),
            ("udp://localhost:1", udp("localhost", 1)),
            ("udp://10.0.0.1:65535/", udp("10.0.0.1", 65535)),
            ("udp://[::1]:7", udp("::1", 7)),
            ("udp://239.1.2.3:5000", udp("239.1.2.3", 5000)),
            ("shm://adc-0/", shm("adc-0", None, 0, true)),
            ("shm://a?policy=drop_latest", shm("a", Some(grebe_shm::Policy::DropLatest), 0, true)),
            ("shm://a?wait=2&block=no", shm("a", None, 2, false)),
            ("shm://a?readers=2&memory=1073741824", Uri::Shm(two.clone())),
            ("shm://a?memory=1G&readers=2", Uri::Shm(two)),
            ("pipe:", Uri::Pipe(Wire::Every)),
            ("-", Uri::Pipe(Wire::Every)),
            ("synth:", Uri::Synth(Box::new(Synth { channels: 4, ..Synth::default() }))),
            ("synth:?channels=1", Uri::Synth(Box::default())),
            ("file:a b.bin", Uri::File("a b.bin".into())),
            ("file:///x/y.wav", Uri::File("/x/y.wav".into())),
            ("x.SIGMF-META", Uri::File("x.SIGMF-META".into())),
            ("x.cu8?rate=2.4M", Uri::File("x.cu8?rate=2.4M".into())),
            ("x.bin?format=cf32", Uri::File("x.bin?format=cf32".into())),
        ] {
            assert_eq!(text.parse::<Uri>().unwrap(), uri, "{text}");
            assert_eq!(uri.to_string().parse::<Uri>().unwrap(), uri, "{text}");
        }
    }

    #[test]
    fn what_is_malformed_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", "is empty"),
            ("tcp://x:1", "does not say what its samples are"),
            ("udp://", "no port"),
            ("udp://:x", "a port that is not a number"),
            ("udp://:65536", "a port that is not a number"),
            ("udp://::1:5", "brackets"),
            ("udp://[::1:5", "without a ']'"),
            ("udp://[::1]5", "no port"),
            ("udp://a b:5", "no name and no address"),
            ("file:", "names no file"),
            ("shm://", "needs a name"),
            ("shm://../x", "needs a name"),
            ("shm://x?policy=all", "'all' is no queue policy"),
            ("shm://x?wait=many", "give a number"),
            ("shm://x?readers=0", "give 1 to 64"),
            ("shm://x?memory=1M", "give 16M to 16G"),
            ("shm://x?memory=all", "give 16M to 16G"),
            ("shm://x?readers=2&wait=3", "add readers=3"),
            ("shm://x?colour=red", "unknown 'colour'"),
            ("synth:?colour=red", "unknown 'colour'"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn shared_memory_is_cut_into_chunks_that_hold_the_largest_frame() {
        let Ok(Uri::Shm(shm)) = "shm://a?readers=3".parse() else { panic!("a stream in shared memory") };
        let usual = shm.publisher_options(None);
        let memory_bytes = usual.chunk_bytes * usual.chunks;
        assert_eq!((usual.chunk_bytes, usual.consumers_max), (256 << 10, 3));
        assert_eq!(shm.publisher_options(Some(256 << 10)).chunks, usual.chunks);
        for memory_bytes in [16 << 20, 1 << 30, 16 << 30] {
            let shm = ShmName { memory_bytes: Some(memory_bytes), readers_max: Some(64), ..shm.clone() };
            let options = shm.publisher_options(None);
            assert_eq!(options.chunks as u64 * options.chunk_bytes as u64, memory_bytes);
            assert!(options.chunks > options.reserve_chunks + options.resting_chunks());
        }
        for frame_bytes in [500_001, (4 << 20) + 64, 64 << 20] {
            let large = shm.publisher_options(Some(frame_bytes));
            assert_eq!(large.chunk_bytes, frame_bytes.next_multiple_of(64));
            assert!((1..=usual.resting_chunks()).contains(&large.resting_chunks()));
            assert!(large.reserve_chunks > 5, "for the producer itself");
            let own = large.reserve_chunks + large.resting_chunks();
            assert!(large.chunks >= own + 3 * CHUNKS_A_READER, "a few for everybody");
            assert!(large.chunks * large.chunk_bytes > memory_bytes - large.chunk_bytes, "no less than ever");
        }
    }

    #[test]
    fn any_port_is_for_listeners_only() {
        assert!(HostPort::new("127.0.0.1", 0).to_listen().is_ok());
        let error = HostPort::new("127.0.0.1", 0).to_send().unwrap_err().to_string();
        assert!(error.starts_with("'udp://127.0.0.1:0' has no receiver's port"), "{error}");
    }

    #[test]
    fn the_wire_is_named_behind_the_stream() {
        let udp = Uri::Udp(HostPort::new("host", 5000), Wire::Gfh2);
        for (text, uri) in [("udp://host:5000?wire=gfh2", udp), ("pipe:?wire=gfh2", Uri::Pipe(Wire::Gfh2))] {
            assert_eq!(text.parse::<Uri>().unwrap(), uri);
            assert_eq!(uri.to_string(), text);
        }
        for (text, known) in [
            ("udp://host:5000?wire=gfh3", "known is wire=gfh2"),
            ("udp://host:5000?", "known is wire=gfh2"),
            ("pipe:?wait=1", "known are wire=gfh2, or for samples without headers format, "),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(known), "{error}");
        }
    }

    #[test]
    fn what_is_said_of_multicast_goes_with_every_kind_of_datagram() {
        for text in [
            "udp://239.1.2.3:5000?interface=eth0&ttl=4",
            "udp://239.1.2.3:5000?wire=gfh2&interface=192.168.1.20&loop=no",
            "udp://[ff02::1:2]:5000?interface=2",
            "udp://239.1.2.3:5000?format=cf32&rate=1000000&ttl=0",
            "vrt://239.1.2.3:4991?stream=0x1f&ttl=255",
            "vrt://239.1.2.3:4991?interface=lo",
        ] {
            let uri: Uri = text.parse().unwrap();
            assert_eq!(uri.to_string(), text);
            assert_eq!(uri.to_string().parse::<Uri>().unwrap(), uri, "{text}");
        }
        for (text, reason) in [
            ("udp://10.0.0.1:5000?ttl=4", "is no multicast group"),
            ("udp://:5000?interface=eth0", "is no multicast group"),
            ("udp://239.1.2.3:5000?ttl=256", "give 0 to 255"),
            ("udp://239.1.2.3:5000?interface=", "names no interface"),
            ("udp://239.1.2.3:5000?loop=maybe", "give yes or no"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let Ok(Uri::Udp(at, _)) = "udp://239.1.2.3:1?interface=no-such-interface&ttl=7".parse() else {
            panic!("a group")
        };
        let mut options = grebe_datagram::Options::default();
        let error = at.set_options(&mut options).unwrap_err().to_string();
        assert!(error.contains("there is no network interface 'no-such-interface'"), "{error}");
        assert_eq!((options.multicast_ttl, options.multicast_loopback), (7, true));
    }

    #[test]
    fn a_host_that_does_not_exist_is_named() {
        let error = HostPort::new("no-such-host.invalid", 5000).to_send().unwrap_err().to_string();
        assert!(error.contains("no-such-host.invalid"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same(host in "[a-z0-9.-]{0,12}", port: u16) {
            let uri = Uri::Udp(HostPort::new(host, port), Wire::Every);
            prop_assert_eq!(uri.to_string().parse::<Uri>().unwrap(), uri);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Uri>();
        }
    }
}
