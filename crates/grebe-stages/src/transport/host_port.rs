//! Addresses to send to or to listen on.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use grebe_process::query::{Pairs, Query};
use grebe_process::stream::{DATAGRAM_BYTES, DATAGRAM_BYTES_MAX};

use super::multicast::Multicast;
use crate::error::Error;

/// A host, by name or number, and a port, resolved at each use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// Empty: all addresses of this machine.
    host: String,
    port: u16,
    multicast: Multicast,
}

impl HostPort {
    pub(crate) fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, multicast: Multicast::default() }
    }

    /// Parses `HOST:PORT` after `SCHEME://`.
    ///
    /// # Errors
    /// The malformed part.
    pub(crate) fn parse(scheme: &str, text: &str) -> Result<Self, String> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let no_port =
            || format!("has no port: write {scheme}://HOST:PORT, for example {scheme}://127.0.0.1:5000");
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or("has a '[' without a ']'")?;
                (host, after.strip_prefix(':').ok_or_else(no_port)?)
            }
            None => match text.rsplit_once(':') {
                Some((host, _)) if host.contains(':') => {
                    return Err(format!("needs brackets around an IPv6 address: {scheme}://[::1]:5000"));
                }
                Some(parts) => parts,
                None => return Err(no_port()),
            },
        };
        if host.contains(|c: char| c.is_whitespace() || "/?#@".contains(c)) {
            return Err("has an invalid host".to_owned());
        }
        let port = port.parse::<u16>().map_err(|_| "has an invalid port: give a number up to 65535")?;
        Ok(HostPort::new(host, port))
    }

    /// Parses the multicast options.
    ///
    /// # Errors
    /// An option is malformed, or the host is not a multicast group.
    pub(crate) fn take_multicast(&mut self, query: &mut Query<'_>) -> Result<(), String> {
        self.multicast = Multicast::take(query)?;
        let is_one = self.host.parse::<IpAddr>().is_ok_and(|address| !address.is_multicast());
        match self.multicast != Multicast::default() && (is_one || self.host.is_empty()) {
            true => Err(NO_GROUP.to_owned()),
            false => Ok(()),
        }
    }

    /// Adds the multicast options.
    pub(crate) fn write_multicast(&self, pairs: Pairs) -> Pairs {
        self.multicast.write(pairs)
    }

    /// Bytes of the datagrams that suit the path.
    ///
    /// # Errors
    /// The host has no address.
    pub(crate) fn datagram_bytes(&self) -> Result<usize, Error> {
        let is_local = self.to_send()?.ip().is_loopback() && !grebe_datagram::is_wsl2();
        Ok(if is_local { DATAGRAM_BYTES_MAX } else { DATAGRAM_BYTES })
    }

    /// Applies the multicast options to a socket's options.
    pub(crate) fn set_options(&self, options: &mut grebe_datagram::Options) -> Result<(), Error> {
        let name = || format!("udp://{self}");
        self.multicast.set_options(options).map_err(|reason| Error::Name { name: name(), reason })
    }

    /// The address to listen on, and an alternative. Without a host an IPv6 socket receives from all addresses, IPv4
    /// included, and a machine without IPv6 needs the alternative.
    pub(crate) fn to_listen(&self) -> Result<(SocketAddr, SocketAddr), Error> {
        if self.host.is_empty() {
            return Ok((
                (Ipv6Addr::UNSPECIFIED, self.port).into(),
                (Ipv4Addr::UNSPECIFIED, self.port).into(),
            ));
        }
        self.resolve().map(|address| (address, address))
    }

    /// The address to send to. Without a host: this machine.
    pub(crate) fn to_send(&self) -> Result<SocketAddr, Error> {
        if self.port == 0 {
            let reason = "has port 0, which only a listener can use: give the receiver's port".to_owned();
            return Err(Error::Name { name: self.to_string(), reason });
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
            // Prefers IPv4: names often resolve to IPv6 first, while listeners default to IPv4.
            .min_by_key(SocketAddr::is_ipv6)
            .ok_or_else(|| unresolved("it has no address".to_owned()))
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
    "is not a multicast group: interface=, ttl= and loop= are for 224.0.0.0 to 239.255.255.255 and ff00::/8";
