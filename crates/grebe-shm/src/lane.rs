//! Shared state of a producer and one consumer beside the samples: descriptors for the consumer, and returned
//! chunks.
//!
//! ```text
//!   words   | tail, end | head | consumer's flag | producer's flags | descriptors: 2 words each | returns: 1 word each |
//!   written   producer    both   both              both               producer                    consumer
//!
//!   descriptors   ... | p | p+1 | ...        claimed by moving `head` from p to p + 1: by the consumer, and under
//!                                            `drop_oldest` by the producer that evicts, each by compare-and-swap
//!   returns       ... | count, chunk | ...   the upper half counts, so each word shows whether it is new
//! ```
//!
//! **A slot needs no state of its own.** A descriptor is read *before* it is claimed. The producer overwrites
//! a slot only after the head has passed it, so a successful claim proves that the read words are valid.
//!
//! **The producer trusts none of these words.** The [`Lender`] keeps the chunk of each position, and the list
//! of lent chunks, in its own memory. An impossible word is a [`Violation`], and its consumer is cut off. A
//! plausible lie harms only the consumer itself: a chunk that it claims to have returned is overwritten while
//! it reads on. A property test and a fuzz target write garbage into a lane (`hostile.rs`). Loom checks every
//! interleaving of two honest sides (`tests/loom.rs`).
//!
//! **Leases end with the socket, not with a word.** A consumer that is cut off, or whose stream is over, may
//! still read its chunks. Its lender stays and takes nothing back until its socket hangs up.
//!
//! **Waking.** A side that wants to sleep sets a flag, fences, and checks once more. The other side writes,
//! fences, and checks the flag. A consumer sleeps for a batch. A producer sleeps only for a consumer under
//! `block`. It sets the head or the count of returns at which to wake it. So it wakes once per half a queue
//! and not for each batch.

mod borrower;
#[cfg(any(test, fuzzing))]
pub(crate) mod hostile;
mod layout;
mod lender;

pub(crate) use borrower::Borrower;
pub(crate) use layout::{Descriptor, Shape, Violation};
pub(crate) use lender::{Lender, Offer};

#[cfg(all(test, not(loom)))]
mod tests;
