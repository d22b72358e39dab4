//! Ticket for another user: addresses, expiry, and a one-time key.

use data_encoding::BASE32_NOPAD;
use zeroize::Zeroizing;

use crate::address::Address;
use crate::cursor::{Reader, Writer};
use crate::error::{Error, Result};
use crate::key::Key;

/// Addresses, a key and an expiry, as one word that begins with `grebe`.
///
/// The word *is* the secret: its first user becomes the peer. Only [`word`](Self::word) returns it; `Debug`
/// omits it.
///
/// ```
/// use std::net::SocketAddr;
/// use grebe_packet::{Key, Purpose, Ticket};
///
/// # fn main() -> Result<(), grebe_packet::Error> {
/// let address = SocketAddr::from(([192, 0, 2, 7], 4733));
/// let ticket = Ticket {
///     purpose: Purpose::Transfer,
///     addresses: vec![address.into()],
///     relay: None,
///     expires_unix_s: 2_000_000_000,
///     key: Key::random()?,
/// };
/// let word = ticket.word();
/// assert!(word.starts_with("grebe"));
/// assert_eq!(Ticket::from_word(&word, Purpose::Transfer)?, ticket);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Purpose of the ticket.
    pub purpose: Purpose,
    /// Addresses of the peer, best first: at most [`Ticket::ADDRESSES_MAX`], and at least one without a
    /// relay.
    pub addresses: Vec<Address>,
    /// Relay for ends that may not reach each other. Only transfers and connections can have one.
    pub relay: Option<Address>,
    /// Expiry in seconds since 1970, after which the peer does not answer.
    pub expires_unix_s: u64,
    /// Key that proves both ends to each other.
    pub key: Key,
}

/// Purpose of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Transfer of files.
    Transfer,
    /// Probe of a path.
    Probe,
    /// Connection: a byte stream each way.
    Connection,
}

impl Ticket {
    /// Maximum number of addresses.
    pub const ADDRESSES_MAX: usize = 8;

    /// Encodes the ticket as a word, with at most eight addresses. Anybody with the word can take the peer's
    /// place.
    pub fn word(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new([0; BYTES_MAX]);
        let mut writer = Writer::new(&mut *bytes);
        let by_relay = self.relay.as_ref().zip(self.purpose.code_by_relay());
        let relay = by_relay.map(|(relay, _)| relay);
        let code = by_relay.map_or_else(|| self.purpose.code(), |(_, code)| code);
        writer.u8(code).put(self.key.as_bytes()).u64(self.expires_unix_s);
        if let Some(relay) = relay {
            relay.write(&mut writer);
        }
        for address in self.addresses.iter().take(Self::ADDRESSES_MAX) {
            address.write(&mut writer);
        }
        let len = writer.written().expect("there is room for the longest addresses");
        let check = checksum(&bytes[..len]);
        bytes[len..][..CHECK_BYTES].copy_from_slice(&check);
        let code = Zeroizing::new(BASE32_NOPAD.encode(&bytes[..len + CHECK_BYTES]));
        Zeroizing::new(format!("{PREFIX}{}", code.to_ascii_lowercase()))
    }

    /// Decodes a word, ignoring surrounding space and letter case.
    ///
    /// # Errors
    /// [`Error::Ticket`] names the fault, never the content.
    pub fn from_word(word: &str, purpose: Purpose) -> Result<Self> {
        let wrong = |what| Error::Ticket { what };
        let word = Zeroizing::new(word.trim().to_ascii_lowercase());
        let code = word.strip_prefix(PREFIX).ok_or(wrong("it does not begin with grebe"))?;
        let code = Zeroizing::new(code.to_ascii_uppercase());
        let bytes =
            BASE32_NOPAD.decode(code.as_bytes()).map_err(|_| wrong("it has invalid letters, or is cut"))?;
        let bytes = Zeroizing::new(bytes);
        let (body, check) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(wrong("it is too short"))?;
        if checksum(body) != *check {
            return Err(wrong("a letter is wrong or missing"));
        }
        let mut reader = Reader::new(body);
        let code = reader.u8().map_err(|_| wrong("it is too short"))?;
        let is_by_relay = purpose.code_by_relay() == Some(code);
        if code != purpose.code() && !is_by_relay {
            return Err(wrong(match code {
                TRANSFER | TRANSFER_BY_RELAY => "it is for a transfer: `grebe send` or `grebe recv`",
                PROBE => "it is for `grebe probe`",
                CONNECTION | CONNECTION_BY_RELAY => "it is for `grebe cp`",
                TRANSFER_OF_OLD | TRANSFER_BY_RELAY_OF_OLD => {
                    "it is from an older grebe with another protocol: use the same grebe at both ends"
                }
                _ => "it is from another version of grebe",
            }));
        }
        Self::read(purpose, is_by_relay, &mut reader).map_err(|_| wrong("its addresses cannot be read"))
    }

    fn read(purpose: Purpose, is_by_relay: bool, reader: &mut Reader<'_>) -> Result<Self> {
        let key = Key::from_bytes(reader.array()?);
        let expires_unix_s = reader.u64()?;
        let relay = if is_by_relay { Some(Address::read(reader)?) } else { None };
        let mut addresses = if is_by_relay { Vec::new() } else { vec![Address::read(reader)?] };
        while !reader.is_empty() && addresses.len() < Self::ADDRESSES_MAX {
            addresses.push(Address::read(reader)?);
        }
        reader.end()?;
        Ok(Self { purpose, addresses, relay, expires_unix_s, key })
    }
}

impl Purpose {
    fn code(self) -> u8 {
        match self {
            Self::Transfer => TRANSFER,
            Self::Probe => PROBE,
            Self::Connection => CONNECTION,
        }
    }

    /// Code with a relay; `None` if the purpose cannot have one.
    fn code_by_relay(self) -> Option<u8> {
        match self {
            Self::Transfer => Some(TRANSFER_BY_RELAY),
            Self::Connection => Some(CONNECTION_BY_RELAY),
            Self::Probe => None,
        }
    }
}

/// Against typing errors, not forgery: the key proves a ticket.
fn checksum(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let hash = blake3::derive_key("grebe transfer 1 ticket checksum", bytes);
    [hash[0], hash[1], hash[2], hash[3]]
}

const PREFIX: &str = "grebe";
/// The first byte names the purpose and the layout. Another layout takes another number.
const TRANSFER: u8 = 6;
const PROBE: u8 = 2;
const CONNECTION: u8 = 3;
/// Layout of a transfer, with the relay before the addresses.
const TRANSFER_BY_RELAY: u8 = 7;
/// Layout of a connection, with the relay before the addresses.
const CONNECTION_BY_RELAY: u8 = 5;
/// Former protocol of transfers.
const TRANSFER_OF_OLD: u8 = 1;
const TRANSFER_BY_RELAY_OF_OLD: u8 = 4;
const CHECK_BYTES: usize = 4;
/// A name takes 4 bytes in addition.
const BYTES_MAX: usize = 1 + Key::BYTES + 8 + (1 + Ticket::ADDRESSES_MAX) * (253 + 4) + CHECK_BYTES;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;

    const PURPOSE: Purpose = Purpose::Transfer;

    fn ticket(addresses: Vec<Address>) -> Ticket {
        let key = Key::from_bytes([7; Key::BYTES]);
        Ticket { purpose: PURPOSE, addresses, relay: None, expires_unix_s: 1_999_999_999, key }
    }

    #[test]
    fn a_ticket_of_an_older_grebe_is_recognised() {
        let word = ticket(vec![Address::new("192.0.2.1", 9).unwrap()]).word();
        for code in [TRANSFER_OF_OLD, TRANSFER_BY_RELAY_OF_OLD] {
            let mut bytes = BASE32_NOPAD.decode(word[5..].to_ascii_uppercase().as_bytes()).unwrap();
            let length = bytes.len() - CHECK_BYTES;
            bytes[0] = code;
            let check = checksum(&bytes[..length]);
            bytes[length..].copy_from_slice(&check);
            let old = format!("grebe{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase());
            let error = Ticket::from_word(&old, PURPOSE).unwrap_err().to_string();
            assert!(error.contains("older grebe"), "{error}");
        }
    }

    #[test]
    fn a_slip_of_the_hand_is_noticed() {
        let word = ticket(vec![Address::new("192.0.2.1", 9).unwrap()]).word();
        for at in 5..word.len() {
            let mut other = word.as_bytes().to_vec();
            other[at] = if other[at] == b'a' { b'b' } else { b'a' };
            assert!(Ticket::from_word(std::str::from_utf8(&other).unwrap(), PURPOSE).is_err());
            assert!(Ticket::from_word(&word[..at], PURPOSE).is_err());
        }
        assert!(Ticket::from_word(&format!(" {}\n", word.to_ascii_uppercase()), PURPOSE).is_ok());
    }

    #[test]
    fn a_ticket_for_another_purpose_names_that_purpose() {
        let word = ticket(vec![Address::new("192.0.2.1", 9).unwrap()]).word();
        for other in [Purpose::Probe, Purpose::Connection] {
            let error = Ticket::from_word(&word, other).unwrap_err().to_string();
            assert!(error.contains("for a transfer"), "{error}");
        }
        let word =
            Ticket { purpose: Purpose::Connection, ..Ticket::from_word(&word, PURPOSE).unwrap() }.word();
        let error = Ticket::from_word(&word, PURPOSE).unwrap_err().to_string();
        assert!(error.contains("`grebe cp`"), "{error}");
    }

    #[test]
    fn a_relay_suffices_for_a_transfer_and_for_a_connection_each_for_its_own() {
        let relay = Some(Address::new("relay.example.org", 9).unwrap());
        let ticket = Ticket { relay, ..ticket(Vec::new()) };
        assert_eq!(Ticket::from_word(&ticket.word(), PURPOSE).unwrap(), ticket);
        for other in [Purpose::Probe, Purpose::Connection] {
            let error = Ticket::from_word(&ticket.word(), other).unwrap_err().to_string();
            assert!(error.contains("for a transfer"), "{error}");
        }
        let connection = Ticket { purpose: Purpose::Connection, ..ticket };
        assert_eq!(Ticket::from_word(&connection.word(), Purpose::Connection).unwrap(), connection);
        let error = Ticket::from_word(&connection.word(), PURPOSE).unwrap_err().to_string();
        assert!(error.contains("`grebe cp`"), "{error}");
        let probe =
            Ticket::from_word(&Ticket { purpose: Purpose::Probe, ..connection }.word(), Purpose::Probe);
        assert!(probe.is_err(), "it names no address");
    }

    #[test]
    fn printed_forms_of_a_ticket_lack_the_key() {
        let ticket = ticket(vec![Address::new("2001:db8::1", 9).unwrap()]);
        let text = format!("{ticket:?}");
        assert!(text.contains("Key(secret)") && !text.contains("7, 7"), "{text}");
    }

    fn any_address() -> impl Strategy<Value = Address> {
        let host = prop_oneof!["[a-z0-9.-]{1,253}", any::<IpAddr>().prop_map(|ip| ip.to_string())];
        (host, any::<u16>()).prop_map(|(host, port)| Address::new(&host, port).unwrap())
    }

    proptest! {
        #[test]
        fn a_word_is_read_again(
            addresses in prop::collection::vec(any_address(), 1..9), relay in prop::option::of(any_address()),
        ) {
            let ticket = Ticket { relay, ..ticket(addresses) };
            prop_assert_eq!(Ticket::from_word(&ticket.word(), PURPOSE).unwrap(), ticket);
        }

        #[test]
        fn foreign_words_are_an_error_and_no_panic(word in "(grebe)?[a-z2-7]{0,200}") {
            prop_assert!(Ticket::from_word(&word, PURPOSE).is_err());
        }
    }
}
