//! Edges of a graph between two hosts: any number over one connection (pipes of `ssh`, TCP, UDP).
//!
//! ```text
//!  queue --> LinkOut --> Outbox ==writer==> bytes ==reader==> Inbox --> LinkIn --> small queue
//!   policy      ^           ^  one of each per connection        |         |
//!               |           +------------------------------------+---------+   taken: batches and bytes, absolute
//!               +-- takes a batch from its queue only when the other end has room for it
//! ```
//!
//! The reader never waits for a stage. A window per link limits how far the other end may run ahead of this
//! consumer, so a stopped consumer blocks only its own link. An intermediate process forwards messages
//! between connections without decoding them ([`Route::Relay`]). Its memory has the same bound, or twice that
//! after a restart.
//!
//! When a new process replaces the one at one end, the stage at the other end stays, and the link begins a
//! new *epoch*.
//!
//! ```text
//!  consumer's host   gone: Away -> LinkOut counts the data in flight, and pauses; its queue waits or drops
//!                    back: Join -> LinkOut: Begin, and the stream continues
//!  producer's host   gone: LinkIn waits
//!                    back: Begin -> LinkIn adds the new stream after a gap, as long as the stamps show
//! ```
//!
//! An epoch also begins when both processes stay, but the link moves to another connection ([`LinkRoute::turn`]).

mod buffer;
mod inbox;
mod lane;
mod link_in;
mod link_out;
mod link_route;
mod message;
mod outbox;
mod reader;
mod splice;

pub use inbox::Inbox;
pub use link_in::{LinkIn, LinkInKind};
pub use link_out::{LinkOut, LinkOutKind};
pub use link_route::LinkRoute;
pub use message::BadLink;
pub use outbox::{Line, Outbox};
pub use reader::{Route, Routes, read_messages};

use grebe_flow::Kinds;

/// Adds the two kinds for cut edges between hosts.
pub fn add_kinds(kinds: &mut Kinds) {
    kinds.add::<LinkOutKind>().add::<LinkInKind>();
}

#[cfg(fuzzing)]
#[doc(hidden)]
pub use reader::fuzz;

#[cfg(test)]
mod tests;
