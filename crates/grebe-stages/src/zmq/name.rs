//! `zmq://HOST:PORT?...`

use std::fmt;
use std::net::SocketAddr;

use crate::error::Error;
use crate::raw::{Carrier, RawStream, TcpEnd};
use crate::uri::HostPort;
use crate::zmq::meet::Meeting;

/// A stream of GNU Radio's items over ZeroMQ, as [`Uri::Zmq`](crate::Uri::Zmq) names it. Beside what a
/// [`RawStream`](crate::RawStream) over TCP has in its query (`format=`, `rate=`, `channels=`, `frequency=`, `listen`, `reconnect`):
///
/// | in the query | means | without it |
/// |---|---|---|
/// | `type=` | `sub` or `pull` for who reads, `pub` or `push` for who sends | `sub`, `pub` |
/// | `tags` | before the samples of a message stand GNU Radio's tags: rate, frequency, time, and gaps | samples only |
/// | `key=` | the first part of each message is this word; a reader gets only such | no such part; a reader gets all |
/// | `wait=` | a sender that listens begins once so many readers are there, 0 to 64 | 1 |
#[derive(Debug, Clone, PartialEq)]
pub struct Zmq {
    pub(crate) raw: RawStream,
    pub(crate) end: TcpEnd,
    /// `None`: what suits the end that it is.
    pub(crate) socket: Option<Socket>,
    pub(crate) has_tags: bool,
    pub(crate) key: String,
    pub(crate) wait_peers: usize,
}

/// What a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Socket {
    Sub,
    Pull,
    Pub,
    Push,
}

impl Socket {
    pub(crate) const ALL: [Self; 4] = [Self::Sub, Self::Pull, Self::Pub, Self::Push];

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

    /// What must be at the other end.
    pub(crate) fn fits(self) -> &'static [&'static str] {
        match self {
            Self::Sub => &["PUB", "XPUB"],
            Self::Pull => &["PUSH"],
            Self::Pub => &["SUB", "XSUB"],
            Self::Push => &["PULL"],
        }
    }

    /// What there is to say where something else is there.
    pub(crate) fn misfit(self) -> &'static str {
        match self {
            Self::Sub => "is no PUB, which type=sub needs",
            Self::Pull => "is no PUSH, which type=pull needs",
            Self::Pub => "is no SUB, which type=pub needs",
            Self::Push => "is no PULL, which type=push needs",
        }
    }
}

impl Zmq {
    /// Reads the query of a name.
    pub(crate) fn parse(at: HostPort, query: &str) -> Result<Self, String> {
        let (mut socket, mut has_tags, mut key, mut wait_peers) = (None, false, String::new(), 1);
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("type", name) => match Socket::ALL.into_iter().find(|socket| socket.name() == name) {
                    None => return Err(format!("has type={name}: give sub, pull, pub or push")),
                    found => socket = found,
                },
                ("tags", "") => has_tags = true,
                ("key", word) if word.len() <= KEY_BYTES_MAX => key = word.to_owned(),
                ("key", _) => return Err(format!("has a key of more than {KEY_BYTES_MAX} bytes")),
                ("wait", peers) => match peers.parse() {
                    Ok(peers) if peers <= PEERS_MAX => wait_peers = peers,
                    _ => return Err(format!("has wait={peers}: give 0 to {PEERS_MAX} readers")),
                },
                _ => rest.push(pair),
            }
        }
        let carrier = Carrier::Tcp(TcpEnd { at: at.clone(), listens: false, reconnects: false });
        let raw = RawStream::parse(carrier, &rest.join("&")).map_err(|reason| {
            match reason.split_once("wire=gfh2, or for samples without headers ") {
                Some((unknown, known)) => format!("{unknown}type, tags, key, wait, {known}"),
                None => reason,
            }
        })?;
        let end = match &raw.carrier {
            Carrier::Tcp(end) => end.clone(),
            _ => TcpEnd { at, listens: false, reconnects: false },
        };
        Ok(Self { raw, end, socket, has_tags, key, wait_peers })
    }

    /// What opens its connections; `listening` is told the address that is listened on.
    pub(crate) fn meeting(
        &self,
        socket: Socket,
        listening: impl FnOnce(SocketAddr),
    ) -> Result<Meeting, Error> {
        Ok(Meeting { connector: self.end.connector("zmq", listening)?, socket, key: self.key.clone() })
    }

    /// Whether the sender may drop samples of which nothing tells.
    pub(crate) fn loses_unseen(&self, socket: Socket) -> bool {
        socket == Socket::Sub && !self.has_tags
    }
}

impl fmt::Display for Zmq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let raw = self.raw.to_string();
        write!(f, "zmq{}", raw.strip_prefix("tcp").unwrap_or(&raw))?;
        if let Some(socket) = self.socket {
            write!(f, "&type={}", socket.name())?;
        }
        f.write_str(if self.has_tags { "&tags" } else { "" })?;
        if !self.key.is_empty() {
            write!(f, "&key={}", self.key)?;
        }
        if self.wait_peers == 1 { Ok(()) } else { write!(f, "&wait={}", self.wait_peers) }
    }
}

/// The most readers that a sender has at a time.
pub(super) const PEERS_MAX: usize = 64;
const KEY_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn what_is_written_is_understood_again() {
        for text in [
            "zmq://127.0.0.1:5555?format=cf32&rate=1000000&type=sub&tags&key=adc",
            "zmq://:5555?format=i16&channels=2&listen&type=push&wait=0",
            "zmq://host:5555?format=cf32&reconnect",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, reason) in [
            ("zmq://host:1", "does not say what its samples are"),
            ("zmq://host:1?format=cf32&type=req", "give sub, pull, pub or push"),
            ("zmq://host?format=cf32", "no port"),
            ("zmq://host:1?format=cf32&skip=4", "which are for datagrams"),
            (
                "zmq://host:1?format=cf32&colour=red",
                "unknown 'colour': known are type, tags, key, wait, format, ",
            ),
            ("zmq://host:1?format=cf32&wait=x", "give 0 to 64 readers"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
