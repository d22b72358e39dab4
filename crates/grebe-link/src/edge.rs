//! Edges of a graph between two hosts: any number of them over one connection, whatever that is (pipes of `ssh`, TCP, UDP).
//!
//! ```text
//!  queue --> LinkOut --> Outbox ==writer==> bytes ==reader==> Inbox --> LinkIn --> small queue
//!   policy      ^           ^  one of each per connection        |         |
//!               |           +------------------------------------+---------+   taken: batches and bytes, absolute
//!               +-- takes a batch from its queue only when the other end has room for it
//! ```
//!
//! The reader never waits for a stage: what the other end may send is bounded by what was taken here (a window per link), so
//! that a consumer that stands still holds up its own link alone. A process in the middle hands messages on from one connection
//! to the other without looking into them ([`Route::Relay`]); its memory has the same bound, or twice that behind a restart.
//!
//! Where the process at one end is gone and another takes its place, the stage at the other end stays: the link begins an *era*.
//!
//! ```text
//!  consumer's host   gone: Away -> LinkOut counts what was under way, and sends nothing; its queue waits or drops
//!                    back: Join -> LinkOut: Begin, and the stream goes on
//!  producer's host   gone: LinkIn waits
//!                    back: Begin -> LinkIn puts the new stream behind a gap, as long as the stamps of both say
//! ```
//!
//! An era begins also where both stay, and the link goes over another connection than before ([`Lead::turn`]).

mod buffer;
mod inbox;
mod lane;
mod lead;
mod link_in;
mod link_out;
mod message;
mod outbox;
mod reader;
mod seam;

pub use inbox::Inbox;
pub use lead::Lead;
pub use link_in::{LinkIn, LinkInKind};
pub use link_out::{LinkOut, LinkOutKind};
pub use message::BadLink;
pub use outbox::{Line, Outbox};
pub use reader::{Route, Routes, read_messages};

use grebe_flow::Kinds;

/// Adds the two kinds that edges between hosts are cut into.
pub fn add_kinds(kinds: &mut Kinds) {
    kinds.add::<LinkOutKind>().add::<LinkInKind>();
}

#[cfg(fuzzing)]
#[doc(hidden)]
pub use reader::fuzz;

#[cfg(test)]
mod tests;
