//! `udp://HOST:PORT?wire=gfh2`

use grebe_link::wire::Wire;
use grebe_process::query::{Pairs, Query};

use crate::transport::HostPort;

/// Datagrams, one frame each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpStream {
    pub(crate) at: HostPort,
    /// Version of the frames that a sink sends.
    pub(crate) wire: Wire,
}

impl UdpStream {
    /// Datagrams to that port of that host, or on that address of this host.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { at: HostPort::new(host, port), wire: Wire::Every }
    }

    /// Parses the part after `udp://`. `None`: its query is that of a stream without frames.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        let (at, query) = text.split_once('?').unwrap_or((text, ""));
        let is_ours =
            |pair: &str| matches!(pair.split('=').next(), Some("" | "wire" | "interface" | "ttl" | "loop"));
        query.split('&').all(is_ours).then(|| {
            let mut query = Query::new(query)?;
            let mut at = HostPort::parse("udp", at)?;
            let wire = query.choice("wire", Wire::WORDS)?.unwrap_or_default();
            at.take_multicast(&mut query)?;
            query.end()?;
            Ok(Self { at, wire })
        })
    }

    /// The pairs of the name.
    pub(super) fn pairs(&self) -> Pairs {
        self.at.write_multicast(Pairs::default().choice("wire", Wire::WORDS, self.wire, None))
    }
}
