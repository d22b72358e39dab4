//! The one-time key, the ticket that carries it, and the keys that each direction signs with.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// Bytes of the tag at a packet.
pub const TAG_BYTES: usize = 16;

/// A secret that one run of a server shares with its clients.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; KEY_BYTES]);

/// What `grebe probe --serve` prints and `grebe probe` takes: where the server is, and its key.
///
/// ```
/// use grebe_probe::{Key, Ticket};
/// let ticket = Ticket { host: "192.0.2.7".to_owned(), port: 4455, key: Key::from_bytes([7; 16]) };
/// let text = ticket.to_string();
/// assert!(text.starts_with("192.0.2.7:4455/"));
/// assert_eq!(text.parse::<Ticket>().unwrap(), ticket);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// A name or an address, an IPv6 one without brackets.
    pub host: String,
    /// Of UDP and TCP alike.
    pub port: u16,
    /// The secret.
    pub key: Key,
}

impl Key {
    /// A fresh one from the system's random source.
    ///
    /// # Errors
    /// [`Error::System`] where the system has none.
    pub fn random() -> Result<Self> {
        Ok(Self(random()?))
    }

    /// A key of these bytes.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The keys for what goes before a session: each side signs with its own, so that nothing can be sent back to its sender.
    pub(crate) fn outer(&self) -> Keys {
        Keys::derive(&self.0)
    }

    /// The keys of one session.
    pub(crate) fn session(&self, client_nonce: &[u8; 16], server_nonce: &[u8; 16]) -> Keys {
        Keys::derive(&[&self.0[..], client_nonce, server_nonce].concat())
    }
}

/// A signing key a direction.
#[derive(Clone)]
pub(crate) struct Keys {
    pub client: Signer,
    pub server: Signer,
}

impl Keys {
    fn derive(material: &[u8]) -> Self {
        Self {
            client: Signer(blake3::derive_key("grebe-probe 1 packets of the client", material)),
            server: Signer(blake3::derive_key("grebe-probe 1 packets of the server", material)),
        }
    }
}

/// Signs and checks packets.
#[derive(Clone)]
pub(crate) struct Signer([u8; 32]);

impl Signer {
    /// A signer of a fresh secret, for what only this process checks.
    pub fn random() -> Result<Self> {
        Ok(Self(random()?))
    }

    /// The tag over the parts, one behind the other.
    #[inline]
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(part);
        }
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG_BYTES]);
        tag
    }

    /// Whether the tag is right, in a time that does not depend on where it is wrong.
    #[inline]
    pub fn accepts(&self, parts: &[&[u8]], tag: &[u8; TAG_BYTES]) -> bool {
        self.tag(parts).iter().zip(tag).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::System { action: "get random bytes", source: error.into() })?;
    Ok(bytes)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}/", self.host, self.port)?,
            false => write!(f, "{}:{}/", self.host, self.port)?,
        }
        self.key.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Ticket {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why| Error::Ticket { ticket: text.to_owned(), why };
        let (place, key) = text.trim().rsplit_once('/').ok_or(wrong("there is no key behind a slash"))?;
        let (host, port) = place.rsplit_once(':').ok_or(wrong("there is no port"))?;
        let port = port.parse().map_err(|_| wrong("the port is not a number from 1 to 65535"))?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || port == 0 {
            return Err(wrong("the host or the port is missing"));
        }
        let digits = key.as_bytes();
        let mut bytes = [0; KEY_BYTES];
        if digits.len() != 2 * KEY_BYTES {
            return Err(wrong("the key has not 32 digits"));
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).map(|digit| digit as u8);
            let value = digit(0).zip(digit(1)).map(|(high, low)| high << 4 | low);
            *byte = value.ok_or(wrong("the key has a digit that is none of 0-9 and a-f"))?;
        }
        Ok(Self { host: host.to_owned(), port, key: Key(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_round_trip_and_broken_ones_say_what_is_wrong() {
        for host in ["example.org", "192.0.2.1", "2001:db8::1"] {
            let ticket = Ticket { host: host.to_owned(), port: 9, key: Key::random().unwrap() };
            assert_eq!(ticket.to_string().parse::<Ticket>().unwrap(), ticket);
        }
        for (text, why) in [
            ("host:1", "slash"),
            ("host/00", "port"),
            ("host:x/00", "number"),
            (":1/00", "missing"),
            ("h:1/00", "32 digits"),
            ("h:1/zz000000000000000000000000000000", "none of"),
            ("h:1/é0000000000000000000000000000000", "32 digits"),
        ] {
            let error = text.parse::<Ticket>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_secret_is_not_printed_by_debug() {
        assert_eq!(format!("{:?}", Key::from_bytes([0xAB; 16])), "Key(..)");
    }

    #[test]
    fn each_direction_and_session_has_its_own_key() {
        let key = Key::from_bytes([1; 16]);
        let outer = key.outer();
        let session = key.session(&[2; 16], &[3; 16]);
        let tags = [&outer.client, &outer.server, &session.client, &session.server].map(|it| it.tag(&[b"x"]));
        for (at, tag) in tags.iter().enumerate() {
            assert!(!tags[..at].contains(tag));
        }
        assert!(outer.client.accepts(&[b"x"], &tags[0]) && !outer.client.accepts(&[b"y"], &tags[0]));
    }
}
