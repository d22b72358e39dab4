//! `zmq://HOST:PORT?...`

use grebe_process::query::{Pairs, Query, Words};

use crate::bridges::raw::RawStream;
use crate::transport::{Carrier, HostPort, TcpEnd};

/// A stream of GNU Radio's items over ZeroMQ, as [`Uri::Zmq`](crate::Uri::Zmq) names it. In addition to the options of
/// a [`RawStream`](crate::RawStream) over TCP (`format=`, `rate=`, `channels=`, `frequency=`, `listen`, `reconnect`):
///
/// | in the query | means | default |
/// |---|---|---|
/// | `type=` | `sub` or `pull` for readers, `pub` or `push` for senders | `sub`, `pub` |
/// | `tags` | messages begin with GNU Radio's tags: rate, frequency, time, and gaps | samples only |
/// | `key=` | the first part of each message; a reader receives only messages with it | no such part; a reader receives all |
/// | `wait=` | readers that a listening sender waits for before it starts, 0 to 64 | 1 |
#[derive(Debug, Clone, PartialEq)]
pub struct Zmq {
    pub(crate) raw: RawStream,
    pub(crate) end: TcpEnd,
    /// `None`: the default of this end.
    pub(crate) socket: Option<Socket>,
    pub(crate) has_tags: bool,
    pub(crate) key: String,
    pub(crate) wait_peers: usize,
}

/// Type of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Socket {
    Sub,
    Pull,
    Pub,
    Push,
}

impl Socket {
    pub(super) const WORDS: &Words<Self> =
        &[("sub", Self::Sub), ("pull", Self::Pull), ("pub", Self::Pub), ("push", Self::Push)];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sub => "sub",
            Self::Pull => "pull",
            Self::Pub => "pub",
            Self::Push => "push",
        }
    }

    pub(crate) fn reads(self) -> bool {
        matches!(self, Self::Sub | Self::Pull)
    }

    /// Types that match at the other end.
    pub(crate) fn fits(self) -> &'static [&'static str] {
        match self {
            Self::Sub => &["PUB", "XPUB"],
            Self::Pull => &["PUSH"],
            Self::Pub => &["SUB", "XSUB"],
            Self::Push => &["PULL"],
        }
    }

    /// Error for a type that does not match.
    pub(crate) fn misfit(self) -> &'static str {
        match self {
            Self::Sub => "is not a PUB, which type=sub needs",
            Self::Pull => "is not a PUSH, which type=pull needs",
            Self::Pub => "is not a SUB, which type=pub needs",
            Self::Push => "is not a PULL, which type=push needs",
        }
    }
}

impl Zmq {
    /// Parses the part after `zmq://`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (at, mut query) = Query::split(text)?;
        let mut end = TcpEnd::new(HostPort::parse("zmq", at)?);
        let socket = query.choice("type", Socket::WORDS)?;
        let has_tags = query.flag("tags")?;
        let must = format!("a word of up to {KEY_BYTES_MAX} bytes");
        let key = query.value("key", must, |word| (word.len() <= KEY_BYTES_MAX).then(|| word.to_owned()))?;
        let wait_peers = query.whole("wait", 0..=PEERS_MAX)?.unwrap_or(1);
        end.take(&mut query)?;
        let raw = RawStream::of_query(Carrier::Tcp(end.clone()), query)?;
        Ok(Self { raw, end, socket, has_tags, key: key.unwrap_or_default(), wait_peers })
    }

    /// The pairs of the name.
    pub(super) fn pairs(&self) -> Pairs {
        self.end
            .write(self.raw.pairs())
            .add("type", self.socket.map(Socket::name))
            .flag("tags", self.has_tags)
            .add("key", Some(&self.key).filter(|key| !key.is_empty()))
            .add("wait", Some(self.wait_peers).filter(|&peers| peers != 1))
    }

    /// Whether the sender may drop samples without reporting it.
    pub(crate) fn loses_unseen(&self, socket: Socket) -> bool {
        socket == Socket::Sub && !self.has_tags
    }
}

/// Maximum readers of a sender at a time.
pub(super) const PEERS_MAX: usize = 64;
const KEY_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn printed_names_are_parsed_again() {
        for text in [
            "zmq://127.0.0.1:5555?format=cf32&rate=1000000&type=sub&tags&key=adc",
            "zmq://:5555?format=i16&channels=2&listen&type=push&wait=0",
            "zmq://host:5555?format=cf32&reconnect",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_options_are_refused() {
        for (text, reason) in [
            ("zmq://host:1", "has no format: add"),
            ("zmq://host:1?format=cf32&type=req", "give sub, pull, pub or push"),
            ("zmq://host?format=cf32", "no port"),
            ("zmq://host:1?format=cf32&skip=4", "which are for datagrams"),
            (
                "zmq://host:1?format=cf32&colour=red",
                "unknown 'colour'; known: type, tags, key, wait, listen, reconnect, raw, format, ",
            ),
            ("zmq://host:1?format=cf32&wait=x", "give 0 to 64"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
