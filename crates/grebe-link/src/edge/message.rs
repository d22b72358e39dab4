//! Messages on a connection, each with the number of its link.
//!
//! ```text
//!   kind u8 | 0 u8 | link u16 | length u32 | length bytes        little-endian
//! ```
//!
//! An *epoch* of a link lasts as long as the processes at both of its ends. Each epoch counts sent and taken data
//! from zero. The process that runs the graph numbers the epochs.

use grebe_frame::HEADER_BYTES;

/// Head of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) link: u16,
    pub(super) length: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text between the two processes.
    Control,
    /// Complete frames back to back as in a pipe, description frames first.
    Frames,
    /// End of the stream, with a final frame if the source reported its end.
    End,
    /// Consumed data of an epoch: epoch u32, batches u64, bytes u64.
    Taken,
    /// The consumer is closed.
    Closed,
    /// Start of an epoch: its number u32, and whether the producer's process is new u32.
    Begin,
    /// The consumer's host has gone away, and may return.
    Away,
    /// The consumer's host is back: the producer must begin the epoch u32.
    Join,
}

/// Error of a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLink {
    /// Connection error.
    #[error("the connection broke: {0}")]
    Io(#[from] std::io::Error),
    /// The connection ended within a message.
    #[error("the connection ended within a message")]
    Cut,
    /// Unknown kind of message.
    #[error("a message of an unknown kind ({0})")]
    Kind(u8),
    /// Invalid length for this kind of message.
    #[error("a message of {0} bytes exceeds the limit")]
    Length(u32),
    /// Unknown link, or wrong direction.
    #[error("a message for the unknown link {0}")]
    Link(u16),
    /// Data beyond the window.
    #[error("the link {0} sent more than requested")]
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
    /// Unknown kind, or a length beyond the maximum of its kind.
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
    const ALL: [Self; 8] = [
        Self::Control,
        Self::Frames,
        Self::End,
        Self::Taken,
        Self::Closed,
        Self::Begin,
        Self::Away,
        Self::Join,
    ];

    fn takes(self, length: u32) -> bool {
        match self {
            Self::Control => length <= CONTROL_BYTES_MAX,
            Self::Frames => (1..=FRAMES_BYTES_MAX).contains(&length),
            Self::End => length == 0 || length as usize == HEADER_BYTES,
            Self::Taken => length as usize == Taken::BYTES,
            Self::Begin => length as usize == Begin::BYTES,
            Self::Join => length == 4,
            Self::Closed | Self::Away => length == 0,
        }
    }
}

/// Batches and bytes taken by a consumer, or sent by a producer, in an epoch.
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
}

impl Taken {
    pub(super) const BYTES: usize = 20;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(&self.epoch.to_le_bytes());
        out[4..12].copy_from_slice(&self.count.batches.to_le_bytes());
        out[12..].copy_from_slice(&self.count.bytes.to_le_bytes());
        out
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (epoch, rest) = bytes.split_first_chunk()?;
        let (batches, rest) = rest.split_first_chunk()?;
        let count =
            Count { batches: u64::from_le_bytes(*batches), bytes: u64::from_le_bytes(*rest.first_chunk()?) };
        Some(Self { epoch: u32::from_le_bytes(*epoch), count })
    }
}

impl Begin {
    const BYTES: usize = 8;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(&self.epoch.to_le_bytes());
        out[4..].copy_from_slice(&u32::from(self.is_fresh).to_le_bytes());
        out
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (epoch, rest) = bytes.split_first_chunk()?;
        let is_fresh = u32::from_le_bytes(*rest.first_chunk()?) != 0;
        Some(Self { epoch: u32::from_le_bytes(*epoch), is_fresh })
    }
}

/// Acknowledgement of a consumer in an epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) epoch: u32,
    pub(super) count: Count,
}

/// Precedes the first frame of an epoch, except for the first epoch of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begin {
    pub(super) epoch: u32,
    /// The producer's process is new.
    pub(super) is_fresh: bool,
}

/// Ten times the counters of a large graph.
pub(super) const CONTROL_BYTES_MAX: u32 = 4 << 20;
/// Largest frame of a pipe, with a description and some room.
pub(super) const FRAMES_BYTES_MAX: u32 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edge_messages_round_trip_and_other_bytes_are_refused() {
        for kind in Kind::ALL {
            for length in [0, 1, 4, 8, 16, 20, 64, CONTROL_BYTES_MAX, FRAMES_BYTES_MAX, u32::MAX] {
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
        let taken = Taken { epoch: 7, count: Count { batches: 1 << 40, bytes: u64::MAX } };
        assert_eq!(Taken::parse(&taken.to_bytes()), Some(taken));
        assert_eq!(Taken::parse(&[0; 19]), None);
        for is_fresh in [false, true] {
            let begin = Begin { epoch: u32::MAX, is_fresh };
            assert_eq!(Begin::parse(&begin.to_bytes()), Some(begin));
        }
        assert_eq!(Begin::parse(&[0; 7]), None);
    }
}
