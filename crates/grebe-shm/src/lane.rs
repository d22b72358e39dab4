//! What a producer and one consumer share beside the samples: descriptors on their way there, chunks on their way back.
//!
//! ```text
//!   words   | tail, end | head | consumer's flag | producer's flags | descriptors: 2 words each | returns: 1 word each |
//!   written   producer    both   both              both               producer                    consumer
//!
//!   descriptors   ... | p | p+1 | ...        claimed by moving `head` from p to p + 1: by the consumer, and under
//!                                            `drop_oldest` by the producer that evicts, each by compare-and-swap
//!   returns       ... | count, chunk | ...   the upper half counts, so that a word says by itself whether it is new
//! ```
//!
//! **A slot needs no state of its own.** A descriptor is read *before* it is claimed. The producer overwrites a slot only after
//! the head has passed it, so that a claim that succeeds proves the words that were read.
//!
//! **The producer trusts none of these words.** Which chunk lies at which position, and which chunks are out, the [`Lender`]
//! knows from its own memory; a word that cannot be is a [`Violation`], for which its consumer is cut off. A consumer that lies
//! within what can be harms itself alone: a chunk it says to have returned is written again while it reads on. A property
//! test and a fuzz target write garbage into a lane (`hostile.rs`); loom has every interleaving of two honest sides
//! (`tests/loom.rs`).
//!
//! **Leases go with the socket, not with a word.** A consumer that is cut off, or whose stream is over, may still read what it
//! was lent. Its lender is kept, and takes nothing back, until its socket hangs up.
//!
//! **Waking.** Either side sets a flag before it sleeps, fences, and looks once more; the other writes, fences, and looks at the
//! flag. A consumer sleeps for a batch. A producer sleeps only for a consumer under `block`, and says at which head or at
//! which count of returns it wants to be woken, so that it is woken for half a queue and not for each batch.

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
