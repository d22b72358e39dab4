//! Messages of [`MESSAGE_BYTES`] each, so that no answer exceeds its question. `docs/relay-protocol.md` has the table.

use std::net::{IpAddr, SocketAddr};

use grebe_packet::{Cookie, Reader, Writer};

use crate::error::{Error, Result};

/// Length of every message; unused bytes are zero.
pub const MESSAGE_BYTES: usize = 400;

/// Buffer of one message.
pub type MessageBuf = [u8; MESSAGE_BYTES];

/// Message between an end and a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// An end joins or leaves a meeting.
    Join(Join<'a>),
    /// The relay has no proof of the address yet; the end must ask again with this cookie.
    Challenge {
        /// Number of the question.
        number: u64,
        /// The end's address as the relay sees it.
        observed: SocketAddr,
        /// Proof of that address.
        cookie: Cookie,
    },
    /// The relay accepts the end.
    Joined {
        /// Number of the end's last question.
        number: u64,
        /// The end's address as the relay sees it.
        observed: SocketAddr,
        /// The other end's sealed candidates, once it is present.
        other: Option<&'a [u8]>,
    },
    /// The relay refuses the end.
    Refused {
        /// Number of the question.
        number: u64,
        /// The reason.
        reason: Refusal,
    },
    /// From the waiting end to the other one. Opens the return path through a NAT, and shows its source
    /// address.
    Knock {
        /// Proof that the sender has the ticket.
        seal: &'a [u8; KNOCK_BYTES],
    },
}

/// Question of an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join<'a> {
    /// Side of the end.
    pub side: Side,
    /// The end leaves the meeting.
    pub is_leaving: bool,
    /// Identifier of the meeting: a public key, whose private half any ticket holder can compute.
    pub meeting: MeetingKey,
    /// Distinguishes a restarted or repeated end from another one.
    pub end: u64,
    /// Increases with each question of an end.
    pub number: u64,
    /// Proof of the end's address; zeros before it has one.
    pub cookie: Cookie,
    /// Proof that the end has the ticket.
    pub signature: [u8; SIGNATURE_BYTES],
    /// This end's candidates, readable only for the other end.
    pub sealed: &'a [u8],
}

/// Side of a meeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The maker of the ticket, which waits.
    Waits,
    /// The holder of the ticket, which asks.
    Asks,
}

/// Reason for refusing an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Maximum number of sessions reached.
    Full,
    /// Maximum number of sessions of that host reached.
    TooMany,
    /// Another holder of the ticket is present.
    Taken,
}

impl Message<'_> {
    /// Whether bytes are addressed to or sent by a relay, and so must not be forwarded.
    #[inline]
    pub fn is_of_relay(bytes: &[u8]) -> bool {
        bytes.len() == MESSAGE_BYTES && bytes[0] & 0xf0 == OF_RELAY
    }

    /// Whether bytes can be a message of this protocol. No packet of a transfer begins like one.
    #[inline]
    pub fn may_be(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|first| *first == KNOCK || first & 0xf0 == OF_RELAY)
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`Error::Malformed`] for input that no peer of this version sends.
    pub fn decode(bytes: &[u8]) -> Result<Message<'_>> {
        if bytes.len() != MESSAGE_BYTES {
            return Err(Error::Malformed { what: "of another length" });
        }
        let mut reader = Reader::new(bytes);
        let kind = reader.u8()?;
        if reader.u8()? != VERSION {
            return Err(Error::Malformed { what: "of another version" });
        }
        let message = match kind {
            JOIN => {
                let flags = reader.u8()?;
                if flags > SIDE | LEAVING {
                    return Err(Error::Malformed { what: "an unknown flag" });
                }
                Message::Join(Join {
                    side: if flags & SIDE == 0 { Side::Waits } else { Side::Asks },
                    is_leaving: flags & LEAVING != 0,
                    meeting: reader.array()?,
                    end: reader.u64()?,
                    number: reader.u64()?,
                    cookie: Cookie::read(&mut reader)?,
                    signature: reader.array()?,
                    sealed: read_sealed(&mut reader)?,
                })
            }
            CHALLENGE => Message::Challenge {
                number: reader.u64()?,
                observed: read_address(&mut reader)?,
                cookie: Cookie::read(&mut reader)?,
            },
            JOINED => Message::Joined {
                number: reader.u64()?,
                observed: read_address(&mut reader)?,
                other: match reader.u8()? {
                    0 => None,
                    1 => Some(read_sealed(&mut reader)?),
                    _ => return Err(Error::Malformed { what: "neither alone nor together" }),
                },
            },
            REFUSED => Message::Refused {
                number: reader.u64()?,
                reason: match reader.u8()? {
                    0 => Refusal::Full,
                    1 => Refusal::TooMany,
                    2 => Refusal::Taken,
                    _ => return Err(Error::Malformed { what: "an unknown refusal" }),
                },
            },
            KNOCK => {
                let seal = reader.take(KNOCK_BYTES)?;
                let seal = seal.first_chunk().ok_or(Error::Malformed { what: "it is cut short" })?;
                Message::Knock { seal }
            }
            _ => return Err(Error::Malformed { what: "of an unknown kind" }),
        };
        if reader.all().iter().any(|byte| *byte != 0) {
            return Err(Error::Malformed { what: "extra bytes after the last field" });
        }
        Ok(message)
    }

    /// Encodes the message.
    pub fn encode(&self) -> MessageBuf {
        let mut bytes = [0; MESSAGE_BYTES];
        let mut writer = Writer::new(&mut bytes);
        match self {
            Self::Join(join) => {
                let side = if join.side == Side::Asks { SIDE } else { 0 };
                let leaving = if join.is_leaving { LEAVING } else { 0 };
                writer.u8(JOIN).u8(VERSION).u8(side | leaving).put(&join.meeting);
                writer.u64(join.end).u64(join.number);
                join.cookie.write(&mut writer);
                writer.put(&join.signature);
                write_sealed(&mut writer, join.sealed);
            }
            Self::Challenge { number, observed, cookie } => {
                writer.u8(CHALLENGE).u8(VERSION).u64(*number);
                write_address(&mut writer, *observed);
                cookie.write(&mut writer);
            }
            Self::Joined { number, observed, other } => {
                writer.u8(JOINED).u8(VERSION).u64(*number);
                write_address(&mut writer, *observed);
                writer.u8(u8::from(other.is_some()));
                if let Some(sealed) = other {
                    write_sealed(&mut writer, sealed);
                }
            }
            Self::Refused { number, reason } => {
                let reason = match reason {
                    Refusal::Full => 0,
                    Refusal::TooMany => 1,
                    Refusal::Taken => 2,
                };
                writer.u8(REFUSED).u8(VERSION).u64(*number).u8(reason);
            }
            Self::Knock { seal } => {
                writer.u8(KNOCK).u8(VERSION).put(*seal);
            }
        }
        debug_assert!(writer.written().is_some(), "the longest message fits");
        bytes
    }
}

/// Signed parts of a JOIN: everything except the signature.
pub(crate) fn signed_parts(join: &MessageBuf) -> [&[u8]; 2] {
    [&join[..SIGNATURE_AT], &join[SIGNATURE_AT + SIGNATURE_BYTES..]]
}

/// Puts the signature into a JOIN.
pub(crate) fn put_signature(join: &mut MessageBuf, signature: &[u8; SIGNATURE_BYTES]) {
    join[SIGNATURE_AT..SIGNATURE_AT + SIGNATURE_BYTES].copy_from_slice(signature);
}

/// Address with its family, as in lists of candidates and messages of the relay.
pub(crate) fn write_address(writer: &mut Writer<'_>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => writer.u8(4).put(&ip.octets()),
        IpAddr::V6(ip) => writer.u8(6).put(&ip.octets()),
    };
    writer.u16(address.port());
}

pub(crate) fn read_address(reader: &mut Reader<'_>) -> Result<SocketAddr> {
    let ip = match reader.u8()? {
        4 => IpAddr::from(reader.array::<4>()?),
        6 => IpAddr::from(reader.array::<16>()?),
        _ => return Err(Error::Malformed { what: "an address of an unknown family" }),
    };
    Ok(SocketAddr::new(ip, reader.u16()?))
}

fn write_sealed(writer: &mut Writer<'_>, sealed: &[u8]) {
    writer.u16(sealed.len() as u16).put(sealed);
}

fn read_sealed<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let len = usize::from(reader.u16()?);
    if len > SEALED_BYTES_MAX {
        return Err(Error::Malformed { what: "too many candidates" });
    }
    Ok(reader.take(len)?)
}

const VERSION: u8 = 1;
/// High half of the first byte of messages to and from a relay.
const OF_RELAY: u8 = 0x80;
const JOIN: u8 = 0x80;
const CHALLENGE: u8 = 0x81;
const JOINED: u8 = 0x82;
const REFUSED: u8 = 0x83;
const KNOCK: u8 = 0x90;
const SIDE: u8 = 1;
const LEAVING: u8 = 2;

/// Offset of the signature of a JOIN: after kind, version, flags, meeting, end, number and cookie.
const SIGNATURE_AT: usize = 3 + 32 + 8 + 8 + Cookie::BYTES;

/// Identifier of a meeting: an Ed25519 public key.
pub(crate) type MeetingKey = [u8; 32];

pub(crate) const SIGNATURE_BYTES: usize = 64;

/// Room for sealed candidates.
pub(crate) const SEALED_BYTES_MAX: usize = MESSAGE_BYTES - SIGNATURE_AT - SIGNATURE_BYTES - 2;

/// A nonce and a tag.
pub(crate) const KNOCK_BYTES: usize = 12 + 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_cookie() -> impl Strategy<Value = Cookie> {
        (any::<u64>(), any::<[u8; 16]>()).prop_map(|(made_us, tag)| Cookie { made_us, tag })
    }

    fn check(message: &Message<'_>) {
        let bytes = message.encode();
        assert_eq!(&Message::decode(&bytes).unwrap(), message);
        assert!(Message::may_be(&bytes));
        assert_eq!(Message::is_of_relay(&bytes), !matches!(message, Message::Knock { .. }));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (flags, meeting, end, number) in (0..4_u8, any::<[u8; 32]>(), any::<u64>(), any::<u64>()),
            cookie in any_cookie(),
            signature in prop::collection::vec(any::<u8>(), SIGNATURE_BYTES),
            sealed in prop::collection::vec(any::<u8>(), 0..=SEALED_BYTES_MAX),
            observed: SocketAddr, is_together: bool, reason in 0..3_usize, seal in any::<[u8; KNOCK_BYTES]>(),
        ) {
            // The scope identifier is local to a host.
            let observed = SocketAddr::new(observed.ip(), observed.port());
            check(&Message::Join(Join {
                side: if flags & 1 == 0 { Side::Waits } else { Side::Asks },
                is_leaving: flags & 2 != 0,
                meeting, end, number, cookie,
                signature: signature.try_into().unwrap(),
                sealed: &sealed,
            }));
            check(&Message::Challenge { number, observed, cookie });
            check(&Message::Joined { number, observed, other: is_together.then_some(&sealed[..]) });
            let reason = [Refusal::Full, Refusal::TooMany, Refusal::Taken][reason];
            check(&Message::Refused { number, reason });
            check(&Message::Knock { seal: &seal });
        }

        #[test]
        fn foreign_bytes_are_an_error_and_no_panic(
            first in prop::sample::select(vec![0x80_u8, 0x81, 0x82, 0x83, 0x84, 0x90, 0x40]),
            mut bytes in prop::collection::vec(any::<u8>(), 0..MESSAGE_BYTES + 2),
        ) {
            if let Some(byte) = bytes.first_mut() {
                *byte = first;
            }
            if let Ok(message) = Message::decode(&bytes) {
                prop_assert_eq!(&message.encode()[..], &bytes[..]);
            }
        }
    }
}
