//! Only what changed: finds in a file that lies here what a new file has in common with it.
//!
//! ```text
//!  receiver                                              sender
//!    the basis: a file that is there                       the new file
//!    sign -> pieces of its signature, 64 KiB each ----->   Signature -> compare -> Copy, Data, Copy, ...
//!         -> BasisMap -> copy_run <----------------- the plan --------------/
//! ```
//!
//! Both ends cut their file where its content says so (`chunks`), at the same time: an insertion moves the cuts with the bytes behind
//! it, so that those chunks stay the same. The signature has 4 bytes of each chunk's hash (8 for an older sender), enough to find it; that a chunk is the right
//! one is shown by 16 bytes over all chunks of a [`Copy`](Piece::Copy), which the receiver computes of what it reads while it copies. So a
//! basis that changes meanwhile, a cache that lies and two chunks with one short hash cost bytes and never content: the receiver asks for
//! the file as it is.
//!
//! The receiver reads a large basis once: what it reads for the signature it also writes into the new file, where that probably has it, and the
//! sender says while it compares how far things have moved ([`Laying`]). A copy then finds most of its chunks there, hashed as they were written.
//! What was written over in place is told again and sent meanwhile ([`EarlyLooks`]), and lies there, too.
//!
//! # What the messages carry
//! | from | message | fields |
//! |---|---|---|
//! | receiver | answer *changed* | [`ChunkSizes::to_byte`] (1), then the pieces of the signature in messages of their own; an empty one first where it writes along |
//! | sender | *shift* | from here on the basis is found so much further on in the new file |
//! | sender | record *copy* | where in the new file, [`Run`]: first chunk, chunks, check; its length is the receiver's to know |
//! | receiver | *made* | whether all checks fitted; if not, all of the file is sent |
//!
//! # Bounds
//! A signature has 4 Mi chunks at most, which take the sender 160 MiB, its own file's included, and the receiver 32, and 50 more where it writes along. Chunks grow with the
//! file, from 2 KiB on average to 4 MiB: files above 8 TiB are sent whole.

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
pub(crate) use compare::{Compared, Finding, Told, compare, sign};
pub(crate) use cost::{CHANGED_BYTES_MIN, Experience, Rates, delta_pays};
pub(crate) use early::{EARLY_FIRST, EarlyBytes, EarlyLooks, GAP_BYTES_MAX, Settled, with_settled};
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
