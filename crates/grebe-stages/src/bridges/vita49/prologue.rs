//! Header and trailer of a packet: ANSI/VITA 49.2, section 5.1.
//!
//! ```text
//!  word | 31..28 kind | 27 class? | 26 trailer? | 25 24 | 23 22 clock | 21 20 fraction | 19..16 count | 15..0 words |
//!       | stream identifier | class identifier (2 words) | seconds | fraction (2 words) | payload ... | trailer |
//! ```

use std::ops::Range;

use grebe_frame::Refusal;

use super::class::Class;
use super::stamp::{Fraction, Seconds, Stamp};

/// Type of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Samples.
    Signal,
    /// Properties of the signal.
    Context,
}

/// The header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prologue {
    pub(crate) kind: Kind,
    /// Optional for a stream of samples.
    pub(crate) stream_id: Option<u32>,
    pub(crate) class: Option<Class>,
    pub(crate) stamp: Stamp,
    /// Of this kind of packet in the stream, modulo 16.
    pub(crate) count: u8,
    pub(crate) has_trailer: bool,
}

/// Positions of the packet's parts, from its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) packet_bytes: usize,
    pub(crate) class: Option<usize>,
    pub(crate) seconds: Option<usize>,
    pub(crate) fraction: Option<usize>,
    /// Start of the payload; start of the trailer, or the packet's end without one.
    pub(crate) payload: usize,
    pub(crate) payload_end: usize,
}

impl Prologue {
    /// Maximum bytes of a header.
    pub(crate) const BYTES_MAX: usize = WORD + WORD + Class::BYTES + WORD + 2 * WORD;

    /// Reads the packet at the start of `bytes`: its header, the position of its payload, and its length.
    ///
    /// # Errors
    /// The first reason against it: too short, cut off, or of another kind (commands, extensions, spectra).
    pub(crate) fn read(bytes: &[u8]) -> Result<(Self, Places), Refusal> {
        let word = first_word(bytes).ok_or(Refusal::Short)?;
        let (kind, has_stream_id) = match word >> 28 {
            0 => (Kind::Signal, false),
            1 => (Kind::Signal, true),
            4 => (Kind::Context, true),
            _ => return Err(Refusal::Kind),
        };
        let has_trailer = kind == Kind::Signal && word & TRAILER != 0;
        // Spectra are not samples in time.
        if kind == Kind::Signal && word & SPECTRUM != 0 {
            return Err(Refusal::Kind);
        }
        let mut at = WORD;
        let mut next = |is_there: bool, length: usize| {
            let place = at;
            at += if is_there { length } else { 0 };
            is_there.then_some(place)
        };
        let stream_id = next(has_stream_id, WORD);
        let class = next(word & CLASS != 0, Class::BYTES);
        let (clock, kind_of_fraction) = (Seconds::read(word >> 22), Fraction::read(word >> 20));
        let seconds = next(clock != Seconds::None, WORD);
        let fraction = next(kind_of_fraction != Fraction::None, 2 * WORD);
        let packet_bytes = (word & 0xffff) as usize * WORD;
        let trailer_bytes = if has_trailer { WORD } else { 0 };
        if packet_bytes < at + trailer_bytes {
            return Err(Refusal::HeaderBytes);
        }
        if packet_bytes > bytes.len() {
            return Err(Refusal::Truncated);
        }
        let places = Places {
            packet_bytes,
            class,
            seconds,
            fraction,
            payload: at,
            payload_end: packet_bytes - trailer_bytes,
        };
        let u32_at = |place: Option<usize>| place.map_or(0, |at| u32::from_be_bytes(array_at(bytes, at)));
        let prologue = Self {
            kind,
            stream_id: stream_id.map(|_| u32_at(stream_id)),
            class: class.map(|at| Class::read(array_at(bytes, at))),
            stamp: Stamp {
                clock,
                seconds: u32_at(seconds),
                kind: kind_of_fraction,
                fraction: fraction.map_or(0, |at| u64::from_be_bytes(array_at(bytes, at))),
            },
            count: count_of(word),
            has_trailer,
        };
        Ok((prologue, places))
    }

    /// Writes the header of a payload of `payload_bytes`, in whole words. Returns the header's bytes. There is no
    /// trailer.
    pub(crate) fn write(&self, payload_bytes: usize, out: &mut [u8; Self::BYTES_MAX]) -> usize {
        let kind = match (self.kind, self.stream_id) {
            (Kind::Signal, None) => 0,
            (Kind::Signal, Some(_)) => 1,
            (Kind::Context, _) => 4,
        };
        let stamp = self.stamp;
        let length = self.bytes();
        let words = (length + payload_bytes) / WORD;
        debug_assert!(payload_bytes.is_multiple_of(WORD) && words <= 0xffff);
        // Bit 25 marks 49.2 for receivers of 49.0. No feature used here needs it.
        let word = (kind << 28)
            | if self.class.is_some() { CLASS } else { 0 }
            | if self.is_general() { GENERAL_TIMING } else { 0 }
            | (stamp.clock as u32) << 22
            | (stamp.kind as u32) << 20
            | u32::from(self.count & 15) << 16
            | words as u32;
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&word.to_be_bytes());
        self.stream_id.iter().for_each(|id| put(&id.to_be_bytes()));
        self.class.iter().for_each(|class| put(&class.bytes()));
        if stamp.clock != Seconds::None {
            put(&stamp.seconds.to_be_bytes());
        }
        if stamp.kind != Fraction::None {
            put(&stamp.fraction.to_be_bytes());
        }
        length
    }

    /// DIFI's context packets hold from about their time on, not from an exact sample.
    fn is_general(&self) -> bool {
        self.kind == Kind::Context && self.class == Some(Class::DIFI_CONTEXT)
    }

    /// Bytes of the header.
    pub(crate) fn bytes(&self) -> usize {
        WORD + if self.stream_id.is_some() { WORD } else { 0 }
            + if self.class.is_some() { Class::BYTES } else { 0 }
            + if self.stamp.clock == Seconds::None { 0 } else { WORD }
            + if self.stamp.kind == Fraction::None { 0 } else { 2 * WORD }
    }
}

impl Places {
    pub(crate) fn payload(&self) -> Range<usize> {
        self.payload..self.payload_end
    }
}

/// Flags of a trailer about the samples before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Trailer {
    /// Samples clipped.
    pub(crate) is_over_range: bool,
    /// The device lost samples.
    pub(crate) is_sample_loss: bool,
}

impl Trailer {
    pub(crate) fn read(word: u32) -> Self {
        // A bit is valid if its enable bit, 12 above, is set.
        let says = |bit: u32| word >> bit & word >> (bit + 12) & 1 == 1;
        Self { is_over_range: says(13), is_sample_loss: says(12) }
    }
}

/// The first word of a packet.
#[inline]
pub(crate) fn first_word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.first_chunk()?))
}

/// The packet count in the first word.
#[inline]
pub(crate) fn count_of(word: u32) -> u8 {
    (word >> 16 & 15) as u8
}

/// The bytes at a position known to be within range.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
}

pub(crate) const WORD: usize = 4;
/// The bits of the first word that change from packet to packet.
pub(crate) const COUNT: u32 = 15 << 16;
const CLASS: u32 = 1 << 27;
const TRAILER: u32 = 1 << 26;
const SPECTRUM: u32 = 1 << 24;
/// The same bit in a context packet.
const GENERAL_TIMING: u32 = 1 << 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packets_other_than_signal_and_context_are_refused_with_the_reason() {
        let read = |word: u32, bytes: usize| {
            let mut packet = vec![0; bytes];
            packet[..4].copy_from_slice(&word.to_be_bytes());
            Prologue::read(&packet).map(|(prologue, places)| (prologue.kind, places.payload()))
        };
        assert_eq!(Prologue::read(&[0x10, 0]), Err(Refusal::Short));
        assert_eq!(read(0x1000_0003, 12), Ok((Kind::Signal, 8..12)));
        assert_eq!(read(0x0000_0003, 12), Ok((Kind::Signal, 4..12)));
        assert_eq!(read(0x1400_0003, 12), Ok((Kind::Signal, 8..8)), "the last word is the trailer");
        assert_eq!(read(0x1400_0002, 12), Err(Refusal::HeaderBytes));
        assert_eq!(read(0x1000_0004, 12), Err(Refusal::Truncated));
        assert_eq!(read(0x4000_0002, 12), Ok((Kind::Context, 8..8)));
        for other in [0x1100_0003, 0x2000_0003, 0x3000_0003, 0x5000_0003, 0x6000_0003, 0xf000_0003] {
            assert_eq!(read(other, 12), Err(Refusal::Kind), "{other:x}");
        }
    }

    #[test]
    fn a_trailer_counts_where_its_bits_are_enabled() {
        assert_eq!(Trailer::read(1 << 12 | 1 << 13), Trailer::default());
        assert!(Trailer::read(1 << 12 | 1 << 24).is_sample_loss);
        assert!(Trailer::read(1 << 13 | 1 << 25).is_over_range);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            is_context: bool, id in prop::option::of(any::<u32>()), class in prop::option::of(any::<[u8; 8]>()),
            clock in 0u32..4, seconds: u32, kind in 0u32..4, fraction: u64, count in 0u8..16, words in 0usize..400,
        ) {
            let (clock, kind) = (Seconds::read(clock), Fraction::read(kind));
            let prologue = Prologue {
                kind: if is_context { Kind::Context } else { Kind::Signal },
                stream_id: if is_context { Some(id.unwrap_or(7)) } else { id },
                class: class.map(|mut class| { class[0] &= 0xf8; Class::read(class) }),
                stamp: Stamp {
                    clock,
                    seconds: if clock == Seconds::None { 0 } else { seconds },
                    kind,
                    fraction: if kind == Fraction::None { 0 } else { fraction },
                },
                count,
                has_trailer: false,
            };
            let mut head = [0; Prologue::BYTES_MAX];
            let length = prologue.write(words * WORD, &mut head);
            let mut packet = head[..length].to_vec();
            packet.resize(length + words * WORD, 0x55);
            let (read, places) = Prologue::read(&packet).unwrap();
            prop_assert_eq!(read, prologue);
            prop_assert_eq!(places.payload(), length..packet.len());
            packet.pop();
            prop_assert!(Prologue::read(&packet).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok((_, places)) = Prologue::read(&bytes) {
                prop_assert!(bytes.get(places.payload()).is_some());
            }
        }
    }
}
