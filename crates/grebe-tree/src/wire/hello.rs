//! Greeting of each end.

use grebe_packet::Reader;

use crate::error::{Error, Result};
use crate::options::Options;
use crate::wire::{Frame, FrameReader, Kind, put_varint};

/// Version of the protocol, which must be equal at both ends.
const VERSION: u64 = 2;

const MAGIC: &[u8; 10] = b"grebe tree";

/// Direction of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Sender,
    Receiver,
}

/// First message of each end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) role: Role,
    /// From the user's end.
    pub(crate) options: Option<Options>,
    /// From a sender: number of sources.
    pub(crate) sources: u64,
    /// From a sender: the contents of the source are copied, not the source itself.
    pub(crate) is_contents: bool,
    /// From a receiver: the destination is empty, so it sends no answers, and everything is wanted whole.
    pub(crate) is_fresh: bool,
    /// Both ends are one process; the sender hands over open files.
    pub(crate) is_local: bool,
    /// The ends do not trust each other: an [`Offer`](super::OfferedNames) follows, and each end has its own
    /// options.
    pub(crate) is_offer: bool,
    /// From the receiver of an offer: the sender continues without waiting for acceptance.
    pub(crate) is_taken: bool,
    /// From the receiver of an offer: existing files are replaced.
    pub(crate) replaces: bool,
}

impl Hello {
    /// A greeting that says nothing but the role.
    pub(crate) fn new(role: Role) -> Self {
        Self {
            role,
            options: None,
            sources: 0,
            is_contents: false,
            is_fresh: false,
            is_local: false,
            is_offer: false,
            is_taken: false,
            replaces: false,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_varint(&mut out, VERSION);
        out.push(
            u8::from(self.role == Role::Receiver)
                | u8::from(self.options.is_some()) << 1
                | u8::from(self.is_contents) << 2
                | u8::from(self.is_fresh) << 3
                | u8::from(self.is_local) << 4
                | u8::from(self.is_offer) << 5
                | u8::from(self.is_taken) << 6
                | u8::from(self.replaces) << 7,
        );
        put_varint(&mut out, self.sources);
        if let Some(options) = &self.options {
            options.encode(&mut out);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        if reader.array::<10>()? != *MAGIC {
            return Err(Error::Malformed { what: "it does not begin as this protocol does" });
        }
        let theirs = reader.varint()?;
        if theirs != VERSION {
            return Err(Error::Version { theirs, ours: VERSION });
        }
        let bits = reader.u8()?;
        let sources = reader.varint()?;
        let options = (bits & 2 != 0).then(|| Options::decode(&mut reader)).transpose()?;
        reader.end()?;
        Ok(Self {
            role: if bits & 1 == 0 { Role::Sender } else { Role::Receiver },
            options,
            sources,
            is_contents: bits & 4 != 0,
            is_fresh: bits & 8 != 0,
            is_local: bits & 16 != 0,
            is_offer: bits & 32 != 0,
            is_taken: bits & 64 != 0,
            replaces: bits & 128 != 0,
        })
    }

    /// Reads a greeting that is not on the stream.
    pub(crate) fn of_frame(bytes: &[u8]) -> Result<Self> {
        match FrameReader::new(bytes).next()? {
            Some((Frame { kind: Kind::Hello, body }, _)) => Self::decode(&body),
            _ => Err(Error::Malformed { what: "no greeting" }),
        }
    }

    /// Decides whose options count.
    pub(crate) fn agree(ours: Option<&Options>, theirs: &Self, our_role: Role) -> Result<Options> {
        Self::differ(theirs, our_role)?;
        if theirs.is_offer {
            return Err(Error::Roles { what: "the other end does not expect this one" });
        }
        match (ours, &theirs.options) {
            (Some(options), None) | (None, Some(options)) => Ok(options.clone()),
            (None, None) => Err(Error::Roles { what: "neither end has copy options" }),
            (Some(_), Some(_)) => Err(Error::Roles { what: "both ends have copy options" }),
        }
    }

    /// Checks that the other end also makes or takes an offer.
    pub(crate) fn agree_on_offer(theirs: &Self, our_role: Role) -> Result<()> {
        Self::differ(theirs, our_role)?;
        if !theirs.is_offer || theirs.options.is_some() || theirs.is_contents || theirs.is_local {
            return Err(Error::Roles { what: "the other end neither makes nor takes offers" });
        }
        Ok(())
    }

    fn differ(theirs: &Self, our_role: Role) -> Result<()> {
        match (theirs.role == our_role, our_role) {
            (false, _) => Ok(()),
            (true, Role::Sender) => Err(Error::Roles { what: "both would send" }),
            (true, Role::Receiver) => Err(Error::Roles { what: "both would receive" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hello(bits: u8, sources: u64) -> Hello {
        Hello {
            role: if bits & 1 == 0 { Role::Sender } else { Role::Receiver },
            options: (bits & 2 != 0).then(Options::archive),
            sources,
            is_contents: bits & 4 != 0,
            is_fresh: bits & 8 != 0,
            is_local: bits & 16 != 0,
            is_offer: bits & 32 != 0,
            is_taken: bits & 64 != 0,
            replaces: bits & 128 != 0,
        }
    }

    proptest! {
        #[test]
        fn a_first_message_comes_back(bits: u8, sources: u64) {
            let hello = hello(bits, sources);
            prop_assert_eq!(Hello::decode(&hello.encode()).unwrap(), hello);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Hello::decode(&bytes);
            let _ = Hello::decode(&[&MAGIC[..], &[VERSION as u8], &bytes].concat());
        }
    }

    #[test]
    fn another_version_is_named_by_its_number() {
        let mut bytes = hello(0, 1).encode();
        bytes[MAGIC.len()] = 9;
        assert!(matches!(Hello::decode(&bytes), Err(Error::Version { theirs: 9, ours: VERSION })));
    }

    #[test]
    fn options_come_from_one_end_only() {
        let agree = |ours: Option<Options>, bits| Hello::agree(ours.as_ref(), &hello(bits, 1), Role::Sender);
        assert_eq!(agree(Some(Options::default()), 1).unwrap(), Options::default());
        assert_eq!(agree(None, 3).unwrap(), Options::archive());
        for (ours, bits) in [(None, 1), (Some(Options::default()), 3), (None, 2)] {
            assert!(matches!(agree(ours, bits), Err(Error::Roles { .. })));
        }
    }
}
