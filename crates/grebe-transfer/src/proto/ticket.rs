//! What one person hands to another: where to, and the one-time key.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use data_encoding::BASE32_NOPAD;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{Error, Result};

/// A one-time key. It is wiped from memory when dropped, and never printed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; KEY_BYTES]);

/// Addresses, a key and a time limit, as one word that begins with `grebe`.
///
/// The word *is* the secret: who has it first is the peer. [`word`](Self::word) is the only way to it; `Debug` leaves it out.
///
/// ```
/// use grebe_transfer::{Key, Ticket};
///
/// # fn main() -> Result<(), grebe_transfer::Error> {
/// let ticket = Ticket { addresses: vec!["192.0.2.7:4733".parse().unwrap()], expires_unix_s: 2_000_000_000, key: Key::random()? };
/// let word = ticket.word();
/// assert!(word.starts_with("grebe"));
/// assert_eq!(Ticket::from_word(&word)?, ticket);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Where the peer listens, the best one first; at least one, at most 8.
    pub addresses: Vec<SocketAddr>,
    /// Seconds since 1970 after which the peer does not answer any more.
    pub expires_unix_s: u64,
    /// What proves both ends to each other.
    pub key: Key,
}

impl Key {
    /// A new key.
    ///
    /// # Errors
    /// [`Error::Keys`] where the system has no random numbers.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| Error::Keys { what: error.to_string() })?;
        Ok(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

impl Ticket {
    /// A ticket with a new key.
    pub(crate) fn new(address: SocketAddr, expires_unix_s: u64) -> Result<Self> {
        Ok(Self { addresses: vec![address], expires_unix_s, key: Key::random()? })
    }

    /// The ticket as a word. Whoever reads it can take the peer's place.
    pub fn word(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(256));
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.key.0);
        bytes.extend_from_slice(&self.expires_unix_s.to_be_bytes());
        for address in self.addresses.iter().take(ADDRESSES_MAX) {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend_from_slice(&ip.octets());
                }
            }
            bytes.extend_from_slice(&address.port().to_be_bytes());
        }
        let check = checksum(&bytes);
        bytes.extend_from_slice(&check);
        let code = Zeroizing::new(BASE32_NOPAD.encode(&bytes));
        Zeroizing::new(format!("{PREFIX}{}", code.to_ascii_lowercase()))
    }

    /// Reads a word; space around it and capitals do not matter.
    ///
    /// # Errors
    /// [`Error::Ticket`] says what is wrong with it, never what is in it.
    pub fn from_word(word: &str) -> Result<Self> {
        let wrong = |what| Error::Ticket { what };
        let word = Zeroizing::new(word.trim().to_ascii_lowercase());
        let code = word.strip_prefix(PREFIX).ok_or(wrong("it does not begin with grebe"))?;
        let code = Zeroizing::new(code.to_ascii_uppercase());
        let bytes = BASE32_NOPAD
            .decode(code.as_bytes())
            .map_err(|_| wrong("it has letters that no ticket has, or is cut"))?;
        let bytes = Zeroizing::new(bytes);
        let (body, check) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(wrong("it is too short"))?;
        if checksum(body) != *check {
            return Err(wrong("a letter is wrong or missing"));
        }
        let (head, mut rest) = body.split_first_chunk::<HEAD_BYTES>().ok_or(wrong("it is too short"))?;
        if head[0] != VERSION {
            return Err(wrong("it is of another version of grebe"));
        }
        let mut key = Key([0; KEY_BYTES]);
        key.0.copy_from_slice(&head[1..=KEY_BYTES]);
        let mut expires = [0; 8];
        expires.copy_from_slice(&head[1 + KEY_BYTES..]);
        let mut addresses = Vec::new();
        while let Some((address, after)) = take_address(rest) {
            addresses.push(address);
            rest = after;
        }
        if !rest.is_empty() || addresses.is_empty() || addresses.len() > ADDRESSES_MAX {
            return Err(wrong("its addresses cannot be read"));
        }
        Ok(Self { addresses, expires_unix_s: u64::from_be_bytes(expires), key })
    }
}

const PREFIX: &str = "grebe";
const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
const HEAD_BYTES: usize = 1 + KEY_BYTES + 8;
const CHECK_BYTES: usize = 4;
const ADDRESSES_MAX: usize = 8;

fn take_address(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (family, rest) = bytes.split_first()?;
    let (ip, rest): (IpAddr, _) = match family {
        4 => rest.split_first_chunk::<4>().map(|(ip, rest)| ((*ip).into(), rest))?,
        6 => rest.split_first_chunk::<16>().map(|(ip, rest)| ((*ip).into(), rest))?,
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    Some((SocketAddr::new(ip, u16::from_be_bytes(*port)), rest))
}

/// Against slips of the hand, not against forgery: the key is what proves a ticket.
fn checksum(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let hash = blake3::derive_key("grebe transfer 1 ticket checksum", bytes);
    [hash[0], hash[1], hash[2], hash[3]]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ticket(addresses: Vec<SocketAddr>) -> Ticket {
        Ticket { addresses, expires_unix_s: 1_999_999_999, key: Key([7; 32]) }
    }

    #[test]
    fn a_slip_of_the_hand_is_noticed() {
        let word = ticket(vec!["192.0.2.1:9".parse().unwrap()]).word();
        for at in 5..word.len() {
            let mut other = word.as_bytes().to_vec();
            other[at] = if other[at] == b'a' { b'b' } else { b'a' };
            assert!(Ticket::from_word(std::str::from_utf8(&other).unwrap()).is_err());
            assert!(Ticket::from_word(&word[..at]).is_err());
        }
        assert!(Ticket::from_word(&format!(" {}\n", word.to_ascii_uppercase())).is_ok());
    }

    #[test]
    fn nothing_that_is_printed_has_the_key() {
        let ticket = ticket(vec!["[2001:db8::1]:9".parse().unwrap()]);
        let text = format!("{ticket:?}");
        assert!(text.contains("Key(secret)") && !text.contains("7, 7"), "{text}");
    }

    proptest! {
        #[test]
        fn a_word_is_read_again(ips in prop::collection::vec((any::<std::net::IpAddr>(), any::<u16>()), 1..9)) {
            let ticket = ticket(ips.into_iter().map(SocketAddr::from).collect());
            prop_assert_eq!(Ticket::from_word(&ticket.word()).unwrap(), ticket);
        }

        #[test]
        fn foreign_words_are_an_error_and_no_panic(word in "(grebe)?[a-z2-7]{0,200}") {
            prop_assert!(Ticket::from_word(&word).is_err());
        }
    }
}
