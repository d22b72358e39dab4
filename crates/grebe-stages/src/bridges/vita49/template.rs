//! Header of a stream's packets, of which little changes: compares the constant part in one piece, and reads only the
//! rest.

use std::ops::Range;

use super::prologue::{COUNT, Places, Prologue, Trailer, array_at, count_of, first_word};
use super::stamp::{Fraction, Seconds, Stamp};

/// The common start of a stream's packets of one size.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    /// The first word without its count.
    word: u32,
    /// Stream and class identifier.
    fixed: [u8; FIXED_MAX],
    fixed_bytes: usize,
    places: Places,
    clock: Seconds,
    kind: Fraction,
    has_trailer: bool,
    /// Per channel.
    samples: u32,
}

/// The variable parts of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) count: u8,
    pub(crate) stamp: Stamp,
    /// Samples per channel, and their position.
    pub(crate) samples: u32,
    pub(crate) payload: Range<usize>,
    pub(crate) packet_bytes: usize,
    pub(crate) trailer: Trailer,
}

impl Template {
    /// The template of a packet with `samples` samples per channel of `sample_bytes` each.
    pub(crate) fn of(
        packet: &[u8],
        prologue: &Prologue,
        places: Places,
        samples: u32,
        sample_bytes: usize,
    ) -> Self {
        let begin = size_of::<u32>();
        let identifiers = prologue.stream_id.map_or(0, |_| 4) + prologue.class.map_or(0, |_| 8);
        let mut fixed = [0; FIXED_MAX];
        fixed[..identifiers].copy_from_slice(&packet[begin..begin + identifiers]);
        Self {
            word: first_word(packet).unwrap_or(0) & !COUNT,
            fixed,
            fixed_bytes: identifiers,
            places: Places { payload_end: places.payload + samples as usize * sample_bytes, ..places },
            clock: prologue.stamp.clock,
            kind: prologue.stamp.kind,
            has_trailer: prologue.has_trailer,
            samples,
        }
    }

    /// The packet at the start of `bytes`, if its constant part matches.
    #[inline]
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<Packet> {
        let word = first_word(bytes)?;
        let begin = size_of::<u32>();
        let is_alike = word & !COUNT == self.word
            && bytes.len() >= self.places.packet_bytes
            && bytes[begin..begin + self.fixed_bytes] == self.fixed[..self.fixed_bytes];
        if !is_alike {
            return None;
        }
        let Places { packet_bytes, seconds, fraction, .. } = self.places;
        let trailer = if self.has_trailer {
            Trailer::read(u32::from_be_bytes(array_at(bytes, packet_bytes - size_of::<u32>())))
        } else {
            Trailer::default()
        };
        Some(Packet {
            count: count_of(word),
            stamp: Stamp {
                clock: self.clock,
                seconds: seconds.map_or(0, |at| u32::from_be_bytes(array_at(bytes, at))),
                kind: self.kind,
                fraction: fraction.map_or(0, |at| u64::from_be_bytes(array_at(bytes, at))),
            },
            samples: self.samples,
            payload: self.places.payload(),
            packet_bytes,
            trailer,
        })
    }
}

const FIXED_MAX: usize = 12;
