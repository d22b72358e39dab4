//! Host and port of a ticket.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::vec;

use crate::cursor::{Reader, Writer};
use crate::error::{Error, Result};

/// Address of a listening peer: an IP address or host name, and a port.
///
/// [`to_socket_addrs`](ToSocketAddrs::to_socket_addrs) resolves a name with the system's resolver.
///
/// ```
/// use grebe_packet::Address;
///
/// # fn main() -> Result<(), grebe_packet::Error> {
/// assert_eq!(Address::new("lab.example.org", 7)?.to_string(), "lab.example.org:7");
/// assert_eq!(Address::new("2001:db8::1", 7)?.to_string(), "[2001:db8::1]:7");
/// assert!(Address::new("two words", 7).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Ip(IpAddr),
    /// 1 to 253 printable ASCII characters.
    Name(String),
}

impl Address {
    /// Makes an address. `host` is a name or an IP address; IPv6 without brackets.
    ///
    /// # Errors
    /// [`Error::Address`] for an invalid host name.
    pub fn new(host: &str, port: u16) -> Result<Self> {
        let wrong = |what| Error::Address { what };
        if let Ok(ip) = host.parse() {
            return Ok(Self { host: Host::Ip(ip), port });
        }
        if !(1..=NAME_BYTES_MAX).contains(&host.len()) {
            return Err(wrong("a name has 1 to 253 characters"));
        }
        if !host.bytes().all(|byte| byte.is_ascii_graphic() && !b":/@[]".contains(&byte)) {
            return Err(wrong("it has an invalid character"));
        }
        Ok(Self { host: Host::Name(host.to_owned()), port })
    }

    /// Port, for both UDP and TCP.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        match &self.host {
            Host::Ip(IpAddr::V4(ip)) => writer.u8(IPV4).put(&ip.octets()),
            Host::Ip(IpAddr::V6(ip)) => writer.u8(IPV6).put(&ip.octets()),
            Host::Name(name) => writer.u8(NAME).u8(name.len() as u8).put(name.as_bytes()),
        };
        writer.u16(self.port);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let host = match reader.u8()? {
            IPV4 => Host::Ip(IpAddr::from(reader.array::<4>()?)),
            IPV6 => Host::Ip(IpAddr::from(reader.array::<16>()?)),
            NAME => {
                let len = reader.u8()?;
                let name = str::from_utf8(reader.take(len.into())?);
                let name = name.map_err(|_| Error::Malformed { what: "a name with invalid UTF-8" })?;
                return Self::new(name, reader.u16()?);
            }
            _ => return Err(Error::Malformed { what: "an address of an unknown family" }),
        };
        Ok(Self { host, port: reader.u16()? })
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self { host: Host::Ip(address.ip()), port: address.port() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

impl ToSocketAddrs for Address {
    type Iter = vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        match &self.host {
            Host::Ip(ip) => Ok(vec![SocketAddr::new(*ip, self.port)].into_iter()),
            Host::Name(name) => (name.as_str(), self.port).to_socket_addrs(),
        }
    }
}

const NAME_BYTES_MAX: usize = 253;
const NAME: u8 = 0;
const IPV4: u8 = 4;
const IPV6: u8 = 6;
