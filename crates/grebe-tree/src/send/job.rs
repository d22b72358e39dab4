//! Files that the receiver wants, how each is sent, and its result.

use std::ops::Range;

use crossbeam_channel::Sender;

use crate::delta::{Piece, Settled, with_settled};
use crate::directories::Place;
use crate::progress::Current;
use crate::system::Metadata;
use crate::wire::{EntryId, ShortHash};

/// A listed file that the receiver wants.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) id: EntryId,
    pub(super) place: Place,
    pub(super) name: Box<[u8]>,
    pub(super) follows: bool,
    /// As listed.
    pub(super) bytes: u64,
    /// As listed.
    pub(super) modified_ns: i64,
    /// As listed.
    pub(super) touched: u64,
    /// Memory of its attributes at the receiver until the file arrives.
    pub(super) attribute_bytes: usize,
}

/// How a file is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum How {
    Whole,
    From(u64),
    Unless(ShortHash),
    /// The receiver has a part of it.
    Changed(Plan),
    /// The file made from the receiver's data is wrong; send everything.
    Again,
    /// These ranges of the made file are wrong; the others are right if the file is unchanged.
    Stretches(Metadata, Vec<Range<u64>>),
    /// It changed while it was sent in blocks.
    Anew,
}

/// Consecutive files to read, and the channel for their content.
pub(super) struct Job {
    pub(super) files: Vec<(Wanted, How)>,
    pub(super) out: Sender<Read>,
}

/// A frame of content.
pub(super) struct Read {
    pub(super) body: Vec<u8>,
    pub(super) content_bytes: u64,
    /// Bytes that the receiver copies from its own data.
    pub(super) copied_bytes: u64,
    /// Files that end with this frame.
    pub(super) ended: Vec<Ended>,
    /// Progress of the large file in this frame.
    pub(super) part: Option<Current>,
}

/// Result for a file.
pub(super) struct Ended {
    pub(super) file: Wanted,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Sent,
    /// The receiver will confirm whether it could make this file, which had these metadata.
    SentInPieces(Metadata),
    /// Sent again; it counts already.
    SentAgain,
    /// It changed while it was sent in blocks, and must be read like other files.
    Changed,
    /// It differs from the receiver's hash; a signature follows.
    Differs,
    Same,
    LeftOut(String),
}

/// How to make a file from the receiver's data.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Metadata at the comparison.
    pub(super) before: Metadata,
    pub(super) pieces: Vec<Piece>,
    pub(super) settled: Vec<Settled>,
}

impl Plan {
    /// Replaces the plan's gaps with the early results.
    pub(super) fn settle(self) -> Self {
        let Self { before, pieces, settled } = self;
        Self { before, pieces: with_settled(pieces, &settled), settled: Vec::new() }
    }

    pub(super) fn has_copies(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Copy { .. }))
    }
}
