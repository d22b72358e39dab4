//! Delta transfer: finds the parts of a new file in an older file at the receiver, and sends only the
//! changes.
//!
//! ```text
//!  receiver                                              sender
//!    the basis: an existing file                           the new file
//!    sign -> pieces of its signature, 64 KiB each ----->   Signature -> compare -> Copy, Data, Copy, ...
//!         -> BasisMap -> copy_run <----------------- the plan --------------/
//! ```
//!
//! Both ends cut their files into content-defined chunks (`chunks`), at the same time. An insertion moves the
//! cuts with the bytes after it, so later chunks stay the same. The signature has 4 bytes of each chunk's
//! hash (8 for an older sender), enough to find a chunk. A check of 16 bytes over all chunks of a
//! [`Copy`](Piece::Copy) proves the match; the receiver verifies it while it copies. So a changing basis, a
//! stale cache or a collision of short hashes never corrupts content. The receiver then requests the real
//! bytes.
//!
//! The receiver reads a large basis only once. While it reads for the signature, it also writes the data
//! ahead into the new file, at the probable offset ([`Laying`]). The sender reports shifts of that offset as
//! it compares. A copy then finds most of its chunks in place and hashed. Regions that were overwritten in
//! place are compared in finer chunks and sent meanwhile ([`EarlyComparisons`]), so they are in place too.
//!
//! # Messages
//! | from | message | fields |
//! |---|---|---|
//! | receiver | answer *changed* | [`ChunkSizes::to_byte`] (1), then the pieces of the signature in separate messages; an empty one first if it writes ahead |
//! | sender | *shift* | offset of the basis in the new file from here on |
//! | sender | record *copy* | offset in the new file, [`Run`]: first chunk, chunks, check; the receiver knows its length |
//! | receiver | *made* | whether all checks passed; if not, the whole file is sent |
//!
//! # Bounds
//! A signature has at most 4 Mi chunks. They take 160 MiB at the sender, which also keeps its own file's
//! chunks. They take 32 MiB at the receiver, plus 50 MiB if it writes ahead. Chunks grow with the file, from
//! 2 KiB to 4 MiB on average. Files above 8 TiB are sent whole.

mod apply;
mod chunks;
mod compare;
mod cost;
mod early;
mod finer;
mod found;
mod index;
mod laid;
mod laying;
mod matcher;
mod shared_index;
mod signature;

pub(crate) use apply::copy_run;
pub(crate) use chunks::{ChunkSizes, Chunks};
pub(crate) use compare::{ArrivedPart, Compared, Finding, compare, sign};
pub(crate) use cost::{CHANGED_BYTES_MIN, Experience, Rates, delta_pays};
pub(crate) use early::{EARLY_FIRST, EarlyBytes, EarlyComparisons, GAP_BYTES_MAX, Settled, with_settled};
pub(crate) use finer::{GAPS_MAX, Gap, gaps, refine};
pub(crate) use found::{FOUND_BYTES_MIN, Found};
pub(crate) use index::Known;
pub(crate) use laid::Laid;
pub(crate) use laying::{Block, Laying};
pub(crate) use matcher::{Piece, Run};
pub(crate) use shared_index::SharedIndex;
pub(crate) use signature::{BasisMap, PIECE_BYTES_MAX, Signature, SignatureWriter, read_piece};

#[cfg(test)]
mod tests;
