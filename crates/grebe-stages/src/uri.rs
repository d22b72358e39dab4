//! The name of either end of a stream.

mod host_port;
mod multicast;
mod shm;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

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
use host_port::parse_host_port;
use multicast::Multicast;
use shm::parse_shm;

pub use host_port::HostPort;
pub use shm::ShmName;

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

    /// Whether it is standard input, or standard output.
    pub fn is_pipe(&self) -> bool {
        match self {
            Self::Pipe(_) => true,
            Self::Raw(of) => of.carrier == Carrier::Pipe,
            Self::Text(of) => of.carrier == Carrier::Pipe,
            _ => false,
        }
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
    // Of a folder, whoever opens it says what to name there.
    if is_recording(Path::new(text)) || Path::new(text).is_dir() {
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

const NO_GROUP: &str =
    "is no multicast group: interface=, ttl= and loop= are for 224.0.0.0 to 239.255.255.255 and ff00::/8";
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
    fn any_port_is_for_listeners_only() {
        assert!(HostPort::new("127.0.0.1", 0).to_listen().is_ok());
        let error = HostPort::new("127.0.0.1", 0).to_send().unwrap_err().to_string();
        assert!(error.starts_with("'127.0.0.1:0' has no receiver's port"), "{error}");
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
