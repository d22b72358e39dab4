//! Converts frames to packets of one size, back to back.
//!
//! ```text
//!  frames  | 640 samples | 640 samples | 640 samples |
//!  packets | head | 690 samples | head | 690 samples | head | 540 ...         the last one waits for more
//! ```

use grebe_frame::Frame;
use grebe_process::simd;

use super::class::Class;
use super::payload_format::Shape;
use super::prologue::{Prologue, WORD};
use super::stamp::Stamp;

/// Packets of one stream, partly filled.
#[derive(Debug)]
pub(crate) struct Packets {
    shape: Shape,
    /// The header of each packet, except its count and its time.
    prologue: Prologue,
    head_bytes: usize,
    packet_samples: usize,
    bytes: Vec<u8>,
    /// Number of full packets, and samples of the next one.
    whole: usize,
    filled: usize,
    /// Time of the packet in progress.
    stamp: Stamp,
}

impl Packets {
    /// Packets of at most `packet_bytes` and `samples_max` samples per channel, with at least one word of samples.
    pub(crate) fn new(shape: Shape, prologue: Prologue, packet_bytes: usize, samples_max: usize) -> Self {
        let head_bytes = prologue.bytes();
        let sample_bytes = shape.sample_bytes();
        // A short packet may need room for a class identifier.
        let is_padded = prologue.class.is_none() && !sample_bytes.is_multiple_of(WORD);
        let head_bytes_max = head_bytes + if is_padded { Class::BYTES } else { 0 };
        let fits = packet_bytes.min(PACKET_BYTES_MAX).saturating_sub(head_bytes_max) / sample_bytes;
        // Samples must fill whole words.
        let step = match sample_bytes % WORD {
            0 => 1,
            2 => 2,
            _ => WORD,
        };
        let packet_samples = (fits.min(samples_max) / step * step).max(step);
        let packet_bytes = head_bytes + packet_samples * sample_bytes;
        let packets = (BUFFER_BYTES / packet_bytes).max(1);
        Self {
            shape,
            prologue,
            head_bytes,
            packet_samples,
            bytes: vec![0; packets * packet_bytes],
            whole: 0,
            filled: 0,
            stamp: Stamp::default(),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The count of the next packet.
    pub(crate) fn count(&self) -> u8 {
        self.prologue.count
    }

    /// Samples per channel of a packet.
    pub(crate) fn packet_samples(&self) -> usize {
        self.packet_samples
    }

    fn packet_bytes(&self) -> usize {
        self.head_bytes + self.packet_samples * self.shape.sample_bytes()
    }

    /// Adds samples of a frame from `from` on to the packet in progress. Returns their number. Requires room: see
    /// [`is_full`](Self::is_full). `stamp` gives the time of a new packet.
    #[inline]
    pub(crate) fn fill(&mut self, frame: &Frame<'_>, from: usize, stamp: impl FnOnce() -> Stamp) -> usize {
        let length = frame.header().block_length_samples as usize;
        let taken = (length - from).min(self.packet_samples - self.filled);
        if self.filled == 0 {
            self.stamp = stamp();
        }
        let sample_bytes = self.shape.sample_bytes();
        let begin = self.whole * self.packet_bytes() + self.head_bytes + self.filled * sample_bytes;
        let place = &mut self.bytes[begin..begin + taken * sample_bytes];
        let format = self.shape.format();
        for channel in 0..self.shape.channels {
            let samples = frame.channel_bytes(channel).unwrap_or_default();
            let samples = &samples[from * format.bytes()..(from + taken) * format.bytes()];
            match self.shape.channels {
                1 => simd::copy_swapped(format.component().bytes(), samples, place),
                channels => self.shape.encoding.put(samples, channel, channels, place),
            }
        }
        if self.shape.channels > 1 {
            self.shape.encoding.swap(place);
        }
        self.filled += taken;
        if self.filled == self.packet_samples {
            self.end_packet();
        }
        taken
    }

    #[inline]
    fn end_packet(&mut self) {
        let mut head = [0; Prologue::BYTES_MAX];
        let prologue = Prologue { stamp: self.stamp, ..self.prologue };
        let head_bytes = prologue.write(self.packet_samples * self.shape.sample_bytes(), &mut head);
        let begin = self.whole * self.packet_bytes();
        self.bytes[begin..begin + head_bytes].copy_from_slice(&head[..head_bytes]);
        self.skip(1);
        (self.whole, self.filled) = (self.whole + 1, 0);
    }

    /// Counts packets of a gap.
    pub(crate) fn skip(&mut self, packets: u64) {
        self.prologue.count = self.prologue.count.wrapping_add(packets as u8) & 15;
    }

    /// Whether another packet does not fit.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        (self.whole + 1) * self.packet_bytes() > self.bytes.len()
    }

    /// The full packets, back to back, and the bytes of each.
    pub(crate) fn whole(&self) -> (&[u8], usize) {
        (&self.bytes[..self.whole * self.packet_bytes()], self.packet_bytes())
    }

    /// Removes the full packets, which were sent.
    pub(crate) fn sent(&mut self) {
        let begin = self.whole * self.packet_bytes();
        if self.whole > 0 && self.filled > 0 {
            let filled = self.head_bytes + self.filled * self.shape.sample_bytes();
            self.bytes.copy_within(begin..begin + filled, 0);
        }
        self.whole = 0;
    }

    /// The packet in progress as a short packet, before a gap or the end. The full ones must have been sent.
    pub(crate) fn take_short(&mut self) -> Option<Vec<u8>> {
        debug_assert_eq!(self.whole, 0);
        let payload_bytes = std::mem::take(&mut self.filled) * self.shape.sample_bytes();
        if payload_bytes == 0 {
            return None;
        }
        let mut payload = self.bytes[self.head_bytes..self.head_bytes + payload_bytes].to_vec();
        payload.resize(payload_bytes.next_multiple_of(WORD), 0);
        let pad_bits = 8 * (payload.len() - payload_bytes) as u8;
        // Only the class identifier can state the padding.
        let class = match self.prologue.class {
            None if pad_bits == 0 => None,
            class => Some(Class { pad_bits, ..class.unwrap_or(Class::NOBODYS) }),
        };
        let mut head = [0; Prologue::BYTES_MAX];
        let prologue = Prologue { stamp: self.stamp, class, ..self.prologue };
        let head_bytes = prologue.write(payload.len(), &mut head);
        self.skip(1);
        Some([&head[..head_bytes], &payload].concat())
    }
}

/// Size of the buffer: packets of one batch of frames.
const BUFFER_BYTES: usize = 128 << 10;
/// Limit of the packet's length field, larger than a datagram.
const PACKET_BYTES_MAX: usize = grebe_datagram::MAX_DATAGRAM_BYTES;
