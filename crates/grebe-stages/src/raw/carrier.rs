//! What carries a stream without frames, and what its name may say of that.

use std::fmt;

use crate::raw::TcpEnd;
use crate::serial::SerialEnd;
use crate::uri::HostPort;

/// What carries a stream without frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Standard input or output.
    Pipe,
    Tcp(TcpEnd),
    Udp(HostPort),
    Serial(SerialEnd),
}

impl Carrier {
    /// What a query may say of what carries the stream.
    pub(crate) fn keys(&self) -> &'static str {
        match self {
            Self::Serial(_) => "baud, mode, flow, hangup and reconnect",
            _ => "listen and reconnect",
        }
    }

    /// Takes a pair of a query; `false`: it says nothing of what carries the stream.
    pub(crate) fn take(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match (self, key) {
            (Self::Tcp(end), "listen") if value.is_empty() => end.listens = true,
            (Self::Tcp(end), "reconnect") if value.is_empty() => end.reconnects = true,
            (Self::Serial(end), "reconnect") if value.is_empty() => end.reconnects = true,
            (Self::Serial(end), _) => return end.take(key, value),
            (_, "listen") if value.is_empty() => return Err("has listen, which is for tcp://".to_owned()),
            (_, "reconnect") if value.is_empty() => {
                return Err("has reconnect, which is for tcp:// and serial:".to_owned());
            }
            (_, "baud" | "mode" | "flow" | "hangup") => {
                return Err(format!("has {key}=, which is for serial:"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What nobody else can have: standard `input` or `output`, or a port.
    pub(crate) fn claim(&self, end: &str) -> Option<String> {
        match self {
            Self::Pipe => Some(format!("standard {end}")),
            Self::Serial(port) => Some(format!("the serial port {}", port.path.display())),
            Self::Tcp(_) | Self::Udp(_) => None,
        }
    }

    /// Whether its writer waits for its reader; datagrams wait for nobody, and neither does a device.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Self::Pipe | Self::Tcp(_))
    }

    /// Where datagrams come in or go to.
    pub(crate) fn datagrams_at(&mut self) -> Option<&mut HostPort> {
        match self {
            Self::Udp(at) => Some(at),
            _ => None,
        }
    }

    /// What stands behind the rest of the query, each with an `&` before it.
    pub(crate) fn options(&self) -> String {
        match self {
            Self::Pipe | Self::Udp(_) => String::new(),
            Self::Tcp(end) => {
                let listen = if end.listens { "&listen" } else { "" };
                format!("{listen}{}", if end.reconnects { "&reconnect" } else { "" })
            }
            Self::Serial(end) => end.options(),
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pipe => f.write_str("pipe:"),
            Self::Tcp(end) => write!(f, "tcp://{}", end.at),
            Self::Udp(at) => write!(f, "udp://{at}"),
            Self::Serial(end) => write!(f, "serial://{}", end.path.display()),
        }
    }
}
