//! Offers between ends without mutual login, and their acceptance.

use grebe_packet::Reader;

use crate::error::{Error, Result};
use crate::wire::{FRAME_BYTES_MAX, put_bytes, put_varint, take_bytes};

/// Names at the top, and the amount below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OfferedNames {
    /// At most as many as fit into a message.
    pub(crate) tops: Vec<Box<[u8]>>,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Acceptance of an offer by a user, or by the receiver's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The destination is empty: the receiver sends no answers, and everything is wanted whole.
    pub(crate) is_fresh: bool,
}

impl OfferedNames {
    /// Whether it fits into a message.
    pub(crate) fn fits(&self) -> bool {
        self.encode().len() <= FRAME_BYTES_MAX
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.files);
        put_varint(&mut out, self.bytes);
        self.tops.iter().for_each(|name| put_bytes(&mut out, name));
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(body);
        let (files, bytes) = (reader.varint()?, reader.varint()?);
        let mut tops = Vec::new();
        while !reader.is_empty() {
            tops.push(take_bytes(&mut reader, FRAME_BYTES_MAX)?.into());
        }
        Ok(Self { tops, files, bytes })
    }
}

impl Taken {
    pub(crate) fn encode(self) -> Vec<u8> {
        vec![u8::from(self.is_fresh)]
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self> {
        match body {
            [bits @ 0..=1] => Ok(Self { is_fresh: *bits == 1 }),
            _ => Err(Error::Malformed { what: "a word of taking that this version does not have" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn offers_come_back(tops in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..9), files: u64, bytes: u64) {
            let offer = OfferedNames { tops: tops.into_iter().map(Into::into).collect(), files, bytes };
            prop_assert_eq!(OfferedNames::decode(&offer.encode()).unwrap(), offer);
        }

        #[test]
        fn any_bytes_are_an_offer_or_refused(body in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = OfferedNames::decode(&body);
            let _ = Taken::decode(&body);
        }
    }
}
