//! What passes over a connection: messages, each with the number of the link that it is about.
//!
//! ```text
//!   kind u8 | 0 u8 | link u16 | length u32 | length bytes        little-endian
//! ```

use grebe_frame::HEADER_BYTES;

/// What stands before each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) link: u16,
    pub(super) length: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What the two processes tell each other: text of theirs.
    Control,
    /// Frames back to back as in a pipe, those of a description before the frames that it is about. Never a part of one.
    Frames,
    /// The stream ends; the frame that says where, if the source told.
    End,
    /// What the consumer has taken since the start: batches u64, bytes u64.
    Taken,
    /// The consumer is gone.
    Closed,
}

/// Why what came over a connection is none of ours.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLink {
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] std::io::Error),
    /// It ended within a message.
    #[error("the connection ended within a message")]
    Cut,
    /// No message begins like this.
    #[error("a message of an unknown kind ({0})")]
    Kind(u8),
    /// No message of this kind is as long.
    #[error("a message of {0} bytes, where none may be as long")]
    Length(u32),
    /// There is no such link, or not in this direction.
    #[error("a message for the link {0}, which does not lead here")]
    Link(u16),
    /// More was sent than there was room for.
    #[error("more came over the link {0} than was asked for")]
    Window(u16),
}

impl Head {
    pub(super) const BYTES: usize = 8;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let [l0, l1] = self.link.to_le_bytes();
        let [n0, n1, n2, n3] = self.length.to_le_bytes();
        [self.kind as u8 + 1, 0, l0, l1, n0, n1, n2, n3]
    }

    /// # Errors
    /// It is no message, or longer than its kind may be.
    pub(super) fn parse([kind, zero, l0, l1, n0, n1, n2, n3]: [u8; Self::BYTES]) -> Result<Self, BadLink> {
        let known = Kind::ALL.into_iter().find(|known| *known as u8 + 1 == kind);
        let kind = known.filter(|_| zero == 0).ok_or(BadLink::Kind(kind))?;
        let length = u32::from_le_bytes([n0, n1, n2, n3]);
        if !kind.takes(length) {
            return Err(BadLink::Length(length));
        }
        Ok(Self { kind, link: u16::from_le_bytes([l0, l1]), length })
    }
}

impl Kind {
    const ALL: [Self; 5] = [Self::Control, Self::Frames, Self::End, Self::Taken, Self::Closed];

    fn takes(self, length: u32) -> bool {
        match self {
            Self::Control => length <= CONTROL_BYTES_MAX,
            Self::Frames => (1..=FRAMES_BYTES_MAX).contains(&length),
            Self::End => length == 0 || length as usize == HEADER_BYTES,
            Self::Taken => length == 16,
            Self::Closed => length == 0,
        }
    }
}

/// What a consumer has taken since the start, or a producer sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) batches: u64,
    pub(super) bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, bytes: usize) {
        self.batches += 1;
        self.bytes += bytes as u64;
    }

    pub(super) fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..8].copy_from_slice(&self.batches.to_le_bytes());
        out[8..].copy_from_slice(&self.bytes.to_le_bytes());
        out
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (batches, bytes) = bytes.split_first_chunk::<8>()?;
        let bytes = bytes.first_chunk::<8>()?;
        Some(Self { batches: u64::from_le_bytes(*batches), bytes: u64::from_le_bytes(*bytes) })
    }
}

/// The counters of a large graph have a tenth of that.
pub(super) const CONTROL_BYTES_MAX: u32 = 4 << 20;
/// As the largest frame that a pipe takes, a description before it, and some room.
pub(super) const FRAMES_BYTES_MAX: u32 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        for kind in Kind::ALL {
            for length in [0, 1, 16, 64, CONTROL_BYTES_MAX, FRAMES_BYTES_MAX, u32::MAX] {
                let head = Head { kind, link: 513, length };
                match Head::parse(head.to_bytes()) {
                    Ok(read) => assert_eq!(read, head),
                    Err(BadLink::Length(told)) => assert!(told == length && !kind.takes(length)),
                    Err(other) => panic!("{other}"),
                }
            }
        }
        assert!(matches!(Head::parse([0; 8]), Err(BadLink::Kind(0))));
        assert!(matches!(Head::parse([1, 1, 0, 0, 0, 0, 0, 0]), Err(BadLink::Kind(1))));
        let count = Count { batches: 1 << 40, bytes: u64::MAX };
        assert_eq!(Count::parse(&count.to_bytes()), Some(count));
        assert_eq!(Count::parse(&[0; 15]), None);
    }
}
