//! The head of a summary file, and how much of the data a block of it covers.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use grebe_frame::{MAX_CHANNELS, SampleFormat};

use super::block::{BlockLayout, COARSE, FINE, SUMS_LOG2};
use super::nodes::Lanes;

/// Head of a summary: describes its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) format: SampleFormat,
    pub(super) channels: u32,
    pub(super) block_log2: u32,
    /// Samples per channel.
    pub(super) samples: u64,
    pub(super) stamp: Stamp,
    /// Checksum of the section after the blocks.
    pub(super) coarse_checksum: u32,
}

/// Content of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Extremes and sums.
    Extremes,
    /// Power by time and frequency.
    Spectra,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Extremes, Self::Spectra];

    /// How its files end.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Extremes => "grebe-summary",
            Self::Spectra => "grebe-spectra",
        }
    }

    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Extremes => b"GREBESUM",
            Self::Spectra => b"GREBESPE",
        }
    }

    /// log2 of the samples of its shortest unit of a file.
    fn block_log2(self, lanes: Lanes) -> u32 {
        match self {
            Self::Extremes => block_log2(lanes),
            Self::Spectra => ROW_LOG2,
        }
    }
}

/// Identifies the data of a recording and their current content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    /// Bytes of all data files.
    pub(crate) bytes: u64,
    /// When the youngest of them was changed, in nanoseconds since 1970.
    pub(crate) modified_ns: u64,
    /// The first bytes of a SHA-256 of samples from the beginning, the end and between.
    pub(crate) fingerprint: [u8; 16],
}

impl Head {
    pub(super) fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, self.kind.magic());
        put(8, &VERSION.to_le_bytes());
        put(10, &[self.format as u8, self.block_log2 as u8]);
        put(12, &self.channels.to_le_bytes());
        put(16, &self.samples.to_le_bytes());
        put(24, &self.stamp.bytes.to_le_bytes());
        put(32, &self.stamp.modified_ns.to_le_bytes());
        put(40, &self.stamp.fingerprint);
        put(56, &self.coarse_checksum.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..HEAD_BYTES - 4]);
        bytes[HEAD_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are not a head of this version.
    pub(super) fn decode(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|place| bytes[at + place]));
        let short = |at: usize| number(at) as u32;
        let kind = Kind::ALL.into_iter().find(|kind| bytes.starts_with(kind.magic()))?;
        if short(8) as u16 != VERSION
            || crc32c::crc32c(&bytes[..HEAD_BYTES - 4]) != u32::from_le_bytes(*bytes.last_chunk()?)
        {
            return None;
        }
        let head = Self {
            kind,
            format: SampleFormat::from_wire(bytes[10])?,
            block_log2: bytes[11].into(),
            channels: short(12),
            samples: number(16),
            stamp: Stamp {
                bytes: number(24),
                modified_ns: number(32),
                fingerprint: std::array::from_fn(|place| bytes[40 + place]),
            },
            coarse_checksum: short(56),
        };
        let is_possible = (1..=MAX_CHANNELS).contains(&head.channels)
            && head.block_log2 == kind.block_log2(head.lanes())
            && (1..=SAMPLES_MAX).contains(&head.samples);
        is_possible.then_some(head)
    }

    /// Opens a summary file of a kind, and reads its head; `None` if it is none, or not wanted.
    pub(super) fn open(
        path: &Path,
        kind: Kind,
        is_wanted: impl Fn(&Head) -> bool,
    ) -> io::Result<Option<(File, Self)>> {
        let mut file = File::open(path)?;
        let mut head = [0; HEAD_BYTES];
        match file.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let head = Self::decode(&head).filter(|head| head.kind == kind && is_wanted(head));
        Ok(head.map(|head| (file, head)))
    }

    /// Whether the summary is of these samples, in their current content.
    pub(super) fn is_of(&self, lanes: Lanes, samples: u64, stamp: &Stamp) -> bool {
        self.lanes() == lanes && self.samples == samples && self.stamp == *stamp
    }

    pub(super) fn lanes(&self) -> Lanes {
        Lanes::new(self.format, self.channels as usize)
    }

    /// Offset of the section after the blocks.
    pub(super) fn coarse_at(&self) -> u64 {
        let rest = self.samples % (1 << self.block_log2);
        let last = if rest > 0 { BlockLayout::new(self.lanes(), rest).bytes() as u64 } else { 0 };
        block_at(self.lanes(), self.block_log2, self.samples >> self.block_log2) + last
    }

    /// How long that is.
    pub(super) fn coarse_bytes(&self) -> u64 {
        let nodes = COARSE.iter().map(|&log2| self.samples.div_ceil(1 << log2));
        let lane = nodes.sum::<u64>() * self.lanes().value_bytes() as u64 * 2;
        (lane + self.samples.div_ceil(1 << SUMS_LOG2) * SUM_BYTES as u64) * self.lanes().count as u64
    }
}

/// Offset of a block in the file.
pub(super) fn block_at(lanes: Lanes, block_log2: u32, number: u64) -> u64 {
    HEAD_BYTES as u64 + number * BlockLayout::new(lanes, 1 << block_log2).bytes() as u64
}

/// log2 of the samples of a block: as many as make some 32 to 64 MB of `i16`, over all lanes.
pub(super) fn block_log2(lanes: Lanes) -> u32 {
    let shared = (lanes.count as u32).next_power_of_two().ilog2();
    24u32.saturating_sub(shared).max(FINE[FINE.len() - 1] + 2)
}

pub(super) const HEAD_BYTES: usize = 64 + 4;
/// A sum, a sum of squares, and how many samples are in neither.
pub(super) const SUM_BYTES: usize = 8 + 8 + 4;
/// log2 of the samples of the shortest rows of spectra.
pub(super) const ROW_LOG2: u32 = 14;
const VERSION: u16 = 1;
/// Small enough that no computation overflows.
const SAMPLES_MAX: u64 = 1 << 48;
