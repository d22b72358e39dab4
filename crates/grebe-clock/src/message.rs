//! Question and answer, of one length.
//!
//! | offset | field | type |
//! |---|---|---|
//! | 0 | magic: `GTM1` | 4 bytes |
//! | 4 | kind: 1 question, 2 answer | u8 |
//! | 5 | 0 | 3 bytes |
//! | 8 | number: random in a question, repeated in its answer | u64 |
//! | 16 | there: arrival of the question, by the answering host's clock; 0 in a question | u64, ns |
//! | 24 | answered: departure of the answer | u64, ns |
//! | 32 | clock: identifier of that clock (`HostClock::id`) | u64 |
//! | 40 | 0 | u64 |
//!
//! All numbers are little-endian.

/// A question, identified by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Unknown to anybody who does not see the question.
    pub number: u64,
}

/// Reading of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Number of the question.
    pub number: u64,
    /// Arrival of the question.
    pub received_ns: u64,
    /// Departure of the answer.
    pub replied_ns: u64,
    /// Identifier of the clock.
    pub clock: u64,
}

/// Length of either message.
pub const MESSAGE_BYTES: usize = 48;

impl Question {
    /// Encodes the message.
    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        encode(QUESTION, [self.number, 0, 0, 0])
    }

    /// Decodes a question; `None` for other bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [number, 0, 0, 0] = decode(QUESTION, bytes)? else { return None };
        Some(Self { number })
    }
}

impl Answer {
    /// Encodes the message.
    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        encode(ANSWER, [self.number, self.received_ns, self.replied_ns, self.clock])
    }

    /// Decodes an answer; `None` for other bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [number, received_ns, replied_ns, clock] = decode(ANSWER, bytes)?;
        Some(Self { number, received_ns, replied_ns, clock })
    }
}

fn encode(kind: u8, fields: [u64; 4]) -> [u8; MESSAGE_BYTES] {
    let mut bytes = [0; MESSAGE_BYTES];
    bytes[..4].copy_from_slice(MAGIC);
    bytes[4] = kind;
    for (place, field) in bytes[8..40].chunks_exact_mut(8).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

fn decode(kind: u8, bytes: &[u8]) -> Option<[u64; 4]> {
    let bytes: &[u8; MESSAGE_BYTES] = bytes.try_into().ok()?;
    if &bytes[..4] != MAGIC || bytes[4..8] != [kind, 0, 0, 0] || bytes[40..] != [0; 8] {
        return None;
    }
    let mut fields = [0; 4];
    for (field, place) in fields.iter_mut().zip(bytes[8..40].chunks_exact(8)) {
        *field = u64::from_le_bytes(place.try_into().ok()?);
    }
    Some(fields)
}

const MAGIC: &[u8; 4] = b"GTM1";
const QUESTION: u8 = 1;
const ANSWER: u8 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn clock_messages_round_trip_and_other_bytes_are_refused(number: u64, received_ns: u64, replied_ns: u64, clock: u64, at in 0..MESSAGE_BYTES, flip in 1_u8..) {
            let answer = Answer { number, received_ns, replied_ns, clock };
            let bytes = answer.encode();
            prop_assert_eq!(Answer::decode(&bytes), Some(answer));
            prop_assert_eq!(Question::decode(&bytes), None);
            let question = Question { number };
            prop_assert_eq!(Question::decode(&question.encode()), Some(question));
            prop_assert_eq!(Answer::decode(&question.encode()), None);
            let mut changed = bytes;
            changed[at] ^= flip;
            prop_assert_ne!(Answer::decode(&changed), Some(answer));
            prop_assert_eq!(Answer::decode(&bytes[..at]), None);
        }
    }
}
