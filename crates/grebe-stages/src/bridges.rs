//! Table of schemes: the name of a source or a sink, and the bridge that opens it. Each bridge has a folder.

pub(crate) mod audio;
pub(crate) mod mqtt;
pub(crate) mod pipe;
pub(crate) mod raw;
pub(crate) mod recording;
pub(crate) mod rtl_tcp;
pub(crate) mod shm;
pub(crate) mod soapy;
pub(crate) mod synth;
pub(crate) mod text;
pub(crate) mod udp;
pub(crate) mod vita49;
pub(crate) mod zenoh;
pub(crate) mod zmq;

pub use audio::{AudioStream, sound_devices, sound_library};
pub use mqtt::Mqtt;
pub use pipe::{PipeSink, PipeSource, PipeStream};
pub use raw::RawStream;
pub use recording::{file_path, open_file, open_in_step};
pub use rtl_tcp::RtlTcp;
pub use shm::{ShmName, ShmSink, ShmSource};
pub use soapy::{Soapy, SoapyDevice, SoapyLibrary, soapy_devices, soapy_library};
pub use text::TextStream;
pub use udp::{UdpSink, UdpSource, UdpStream};
pub use vita49::Vita49Stream;
pub use zenoh::{NamedStream, Route, ZenohKey};
pub use zmq::Zmq;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use grebe_flow::{Kinds, nearest};
use grebe_process::synth::Synth;

use crate::error::Error;
use crate::open::{Notice, OpenSink, OpenSource, SinkOptions, SourceOptions, Transport};
use crate::scheme::{End, Scheme, Traits};

/// One row per scheme. The first scheme that accepts a name owns it.
macro_rules! schemes {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$row:meta])* $variant:ident($held:ty) = $scheme:ty,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name {
            $($(#[$row])* $variant($held),)+
        }

        impl $name {
            /// Forms of all names, for help texts.
            pub const WRITTEN: &[&str] = &[$(<$scheme as Scheme>::WRITTEN,)+];
        }

        fn read(name: &str) -> Option<Result<Uri, String>> {
            None$(.or_else(|| Some(<$scheme as Scheme>::parse(name)?.map(|it| Uri::$variant(it.into())))))+
        }

        /// Adds the kinds of stages that open a stream by name.
        pub(crate) fn add_kinds(kinds: &mut Kinds) {
            $(<$scheme as Scheme>::kinds(kinds);)+
        }

        /// Calls a function of the scheme.
        macro_rules! each {
            ($uri:expr, $it:ident => $call:expr) => {
                match $uri {
                    $(Uri::$variant($it) => $call,)+
                }
            };
        }
    };
}

schemes! {
    /// The source or the sink of a stream.
    ///
    /// | written | as a source | as a sink |
    /// |---|---|---|
    /// | `udp://HOST:PORT` | listens on that address (`udp://:5000`: on all; joins a multicast address by `?interface=`) | sends to it (`?ttl=` limits the hops of multicast) |
    /// | `shm://NAME` | reads from a process on this machine | lends to processes on this machine |
    /// | `udp://HOST:PORT?wire=gfh2`, `pipe:?wire=gfh2` | - | as without it, for receivers of the first GFH2: see [`Wire`](crate::Wire) |
    /// | `pipe:` | reads frames from standard input | writes them to standard output |
    /// | `pipe:?format=cu8&rate=2.4M`, `tcp://HOST:PORT?format=...`, `udp://HOST:PORT?format=...` | reads samples without headers: see [`RawStream`] | writes them |
    /// | `pipe:?format=text`, also `tcp://` and `udp://` | reads lines of numbers: see [`TextStream`] | writes them, not over UDP |
    /// | `serial:///dev/ttyUSB0?baud=115200`, `&format=...` | reads lines of numbers from a serial port, or samples | writes them |
    /// | `audio:`, `audio:hw:1,0?rate=96k` | captures from a sound device: see [`AudioStream`] | plays on it |
    /// | `rtl_tcp://HOST:PORT?frequency=100M&rate=2.4M` | reads from an `rtl_tcp` server: see [`RtlTcp`] | is such a server |
    /// | `soapy:driver=rtlsdr?frequency=100M&rate=2.4M` | receives with a SoapySDR radio: see [`Soapy`] | transmits with it |
    /// | `vrt://HOST:PORT` | receives VITA-49 packets on that address: see [`Vita49Stream`] | sends them |
    /// | `zmq://HOST:PORT?format=cf32` | reads from a ZMQ block of GNU Radio: see [`Zmq`] | sends to such blocks |
    /// | `mqtt://HOST:PORT/TOPIC?format=...` | subscribes to a topic of an MQTT broker: see [`Mqtt`] | publishes |
    /// | `zenoh://KEY` | receives frames of that key of [Zenoh](https://zenoh.io): see [`ZenohKey`] | sends them |
    /// | `lab/mast3/adc` | reads the stream that a host announces under that name, by the best route: see [`NamedStream`] | announces it |
    /// | `file:PATH`, or a path ending in `.sigmf-meta`, `.sigmf-data`, `.sigmf-collection`, `.sigmf`, `.wav`, or a raw file (`x.cu8?rate=2.4M`) | plays the file | records to it |
    /// | `synth:`, `synth:WAVES?NAME=VALUE&...` | a generator in this process | - |
    ///
    /// The query of a serial port: `baud=` (default 115,200), `mode=` (data bits, parity, stop bits: `8N1`),
    /// `flow=none|hardware|software`, `hangup=no` (keeps DTR up on close, so that opening the port does not reset the
    /// board) and `reconnect` (waits for an unplugged port).
    ///
    /// ```
    /// use grebe_stages::Uri;
    ///
    /// assert!(matches!("udp://:5000".parse(), Ok(Uri::Udp(..))));
    /// assert!(matches!("out.sigmf-meta".parse(), Ok(Uri::File(_))));
    /// let error = "udp://127.0.0.1".parse::<Uri>().unwrap_err();
    /// assert_eq!(error.to_string(), "'udp://127.0.0.1' has no port: write udp://HOST:PORT, for example udp://127.0.0.1:5000");
    /// ```
    pub enum Uri {
        /// Datagrams, one frame each.
        Udp(Box<UdpStream>) = UdpStream,
        /// Memory shared with other processes of this machine.
        Shm(ShmName) = ShmName,
        /// Frames back to back on standard input or output.
        Pipe(PipeStream) = PipeStream,
        /// Samples without headers, for other programs.
        Raw(Box<RawStream>) = RawStream,
        /// Lines of numbers.
        Text(Box<TextStream>) = TextStream,
        /// A sound device.
        Audio(Box<AudioStream>) = AudioStream,
        /// An `rtl_tcp` server to read from, or such a server itself.
        RtlTcp(Box<RtlTcp>) = RtlTcp,
        /// A SoapySDR radio.
        Soapy(Box<Soapy>) = Soapy,
        /// VITA-49 packets over UDP, DIFI among them.
        Vita49(Box<Vita49Stream>) = Vita49Stream,
        /// GNU Radio's items over ZeroMQ.
        Zmq(Box<Zmq>) = Zmq,
        /// Samples or lines under a topic of an MQTT broker.
        Mqtt(Box<Mqtt>) = Mqtt,
        /// Frames under a Zenoh key.
        Zenoh(ZenohKey) = ZenohKey,
        /// A generator in this process: `synth:sine,square?rate=25M&frequency=1k`, with the parameters of [`Synth`] except those of the
        /// transport.
        Synth(Box<Synth>) = Synth,
        /// A recording.
        File(PathBuf) = PathBuf,
        /// A stream that a host announces under this name.
        Named(NamedStream) = NamedStream,
    }
}

impl FromStr for Uri {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Name { name: text.to_owned(), reason };
        let read = read(text).unwrap_or_else(|| match text {
            "" => Err("is empty: name a stream, for example udp://:5000".to_owned()),
            _ => {
                let what = match (text.split_once(':'), meant(text)) {
                    (_, Some(meant)) => format!("unknown kind of stream - did you mean {meant}?"),
                    (Some((scheme, _)), None) => format!("unknown kind of stream '{scheme}:'"),
                    (None, None) => "file not found, and not the URI of a stream".to_owned(),
                };
                Err(format!("{what}; known: {}", Uri::WRITTEN.join(", ")))
            }
        });
        read.map_err(wrong)
    }
}

/// The form of the scheme with the most similar name.
fn meant(text: &str) -> Option<&'static str> {
    let scheme = |name: &'static str| name.split_once(':').map(|(scheme, _)| scheme);
    let nearest = nearest(text.split_once(':')?.0, Uri::WRITTEN.iter().copied().filter_map(scheme))?;
    Uri::WRITTEN.iter().copied().find(|name| scheme(name) == Some(nearest))
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, it => it.write(f))
    }
}

impl Default for Uri {
    /// The default destination: `udp://127.0.0.1:5000`.
    fn default() -> Self {
        Self::Udp(Box::new(UdpStream::new("127.0.0.1", 5000)))
    }
}

impl Uri {
    /// Standard input or output: `pipe:`.
    pub fn pipe() -> Self {
        Self::Pipe(PipeStream::default())
    }

    /// Properties of the stream that its user has to know.
    pub fn traits(&self) -> Traits {
        each!(self, it => it.traits())
    }

    /// The URI by which readers open a stream with this sink: `shm://NAME`, `udp://HOST:PORT`, `zenoh://KEY`. `None`:
    /// no reader can.
    pub fn uri_for_readers(&self) -> Option<String> {
        each!(self, it => it.uri_for_readers())
    }

    /// The URI by which producers send to a source that listens on this address: `udp://127.0.0.1:5000`, `shm://NAME`.
    /// `None`: none can.
    pub fn uri_for_senders(&self, listening: Option<SocketAddr>) -> Option<String> {
        each!(self, it => it.uri_for_senders(listening))
    }

    fn check(&self, end: End) -> Result<(), Error> {
        let checked = each!(self, it => it.check_end(end));
        checked.map_err(|reason| Error::Name { name: self.to_string(), reason })
    }
}

impl Transport {
    /// Bytes of the datagrams that suit a sink.
    ///
    /// # Errors
    /// The chosen size is out of range, or the host has no address.
    pub fn datagram_bytes_to(&self, uri: &Uri) -> Result<usize, Error> {
        each!(uri, it => it.datagram_bytes_by(self))
    }
}

/// Opens the source that `uri` names, and reports non-fatal notices to `notify`.
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
/// An [`Error`] that names the address, the stream or the file. [`Error::Cancelled`] if the wait for a stream was
/// cancelled.
pub fn open_source(
    uri: &Uri,
    options: SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    uri.check(End::Source)?;
    each!(uri, it => it.open_source(options, notify))
}

/// Opens the sink that `uri` names, and reports non-fatal notices to `notify`.
///
/// # Errors
/// An [`Error`] that names the address, the stream or the file; `synth:` is only a source. [`Error::Cancelled`] if the
/// wait for
/// readers was cancelled.
pub fn open_sink(
    uri: &Uri,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSink, Error> {
    uri.check(End::Sink)?;
    if let Some((format, channels)) = options.stream {
        let taken = each!(uri, it => it.takes(Some(format), Some(channels)));
        taken.map_err(|what| grebe_process::Error::Takes { what })?;
    }
    let datagram_bytes = options.transport.datagram_bytes_to(uri)?;
    let sink = each!(uri, it => it.open_sink(options, notify))?;
    Ok(OpenSink { datagram_bytes, ..sink })
}

#[cfg(test)]
mod tests {
    use grebe_link::wire::Wire;
    use proptest::prelude::*;

    use super::*;
    use crate::transport::HostPort;

    #[test]
    fn uris_are_understood() {
        let udp = |host: &str, port| Uri::Udp(Box::new(UdpStream::new(host, port)));
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
            ("pipe:", Uri::pipe()),
            ("-", Uri::pipe()),
            ("synth:", Uri::Synth(Box::default())),
            ("synth:?channels=4", Uri::Synth(Box::new(Synth { channels: 4, ..Synth::default() }))),
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
    fn malformed_uris_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "is empty"),
            ("upd://:5000", "unknown kind of stream - did you mean udp://HOST:PORT?; known: udp://"),
            ("rtltcp://pi:1234", "did you mean rtl_tcp://HOST:PORT?"),
            ("zenho://lab/adc", "did you mean zenoh://KEY?"),
            ("http://x:1", "unknown kind of stream 'http:'; known: udp://"),
            ("zmq://host?format=cf32", "has no port: write zmq://HOST:PORT, for example zmq://127.0.0.1"),
            ("tcp://host?format=cf32", "has no port: write tcp://HOST:PORT, for example tcp://127.0.0.1"),
            ("udp://:5000?wyre=gfh2", "unknown 'wyre' - did you mean 'wire'?; known: wire, interface"),
            ("tcp://x:1", "has no format: add"),
            ("udp://", "no port"),
            ("udp://:x", "an invalid port: give a number up to 65535"),
            ("udp://:65536", "an invalid port"),
            ("udp://::1:5", "brackets"),
            ("udp://[::1:5", "without a ']'"),
            ("udp://[::1]5", "no port"),
            ("udp://a b:5", "an invalid host"),
            ("file:", "names no file"),
            ("shm://", "needs a name"),
            ("shm://../x", "needs a name"),
            ("shm://x?policy=all", "unknown queue policy 'all'"),
            ("shm://x?wait=many", "a number of readers"),
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
        assert!(error.starts_with("'127.0.0.1:0' has port 0"), "{error}");
    }

    #[test]
    fn the_wire_is_named_behind_the_stream() {
        let udp = Uri::Udp(Box::new(UdpStream { wire: Wire::Gfh2, ..UdpStream::new("host", 5000) }));
        for (text, uri) in [
            ("udp://host:5000?wire=gfh2", udp),
            ("pipe:?wire=gfh2", Uri::Pipe(PipeStream { wire: Wire::Gfh2 })),
        ] {
            assert_eq!(text.parse::<Uri>().unwrap(), uri);
            assert_eq!(uri.to_string(), text);
        }
        for (text, known) in [
            ("udp://host:5000?wire=gfh3", "has wire=gfh3: give gfh2"),
            ("pipe:?wire=gfh2&format=i16", "has wire, which is for frames"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(known), "{error}");
        }
    }

    #[test]
    fn multicast_options_work_with_every_kind_of_datagram() {
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
            ("udp://10.0.0.1:5000?ttl=4", "is not a multicast group"),
            ("udp://:5000?interface=eth0", "is not a multicast group"),
            ("udp://239.1.2.3:5000?ttl=256", "give 0 to 255"),
            ("udp://239.1.2.3:5000?interface=", "give a network interface"),
            ("udp://239.1.2.3:5000?loop=maybe", "give yes or no"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let Ok(Uri::Udp(group)) = "udp://239.1.2.3:1?interface=no-such-interface&ttl=7".parse() else {
            panic!("a group")
        };
        let mut options = grebe_datagram::Options::default();
        let error = group.at.set_options(&mut options).unwrap_err().to_string();
        assert!(error.contains("unknown network interface 'no-such-interface'"), "{error}");
        assert_eq!((options.multicast_ttl, options.multicast_loopback), (7, true));
    }

    #[test]
    fn a_host_that_does_not_exist_is_named() {
        let error = HostPort::new("no-such-host.invalid", 5000).to_send().unwrap_err().to_string();
        assert!(error.contains("no-such-host.invalid"), "{error}");
    }

    proptest! {
        #[test]
        fn printed_uris_parse_to_the_same_uri(host in "[a-z0-9.-]{0,12}", port: u16) {
            let uri = Uri::Udp(Box::new(UdpStream::new(host, port)));
            prop_assert_eq!(uri.to_string().parse::<Uri>().unwrap(), uri);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Uri>();
        }
    }
}
