//! The disks at both ends: files as one stream of groups, each with its hash.
//!
//! ```text
//!  sending     source (which files) -> reader (groups, hashed) -> outgoing (what is sent, and sent again)
//!  receiving   writer (gathers groups) -> group_store (checks, writes) -> target (files) and journal (what is safe)
//! ```

mod group_store;
pub(super) mod groups;
mod journal;
pub(super) mod outgoing;
mod patience;
mod positioned;
mod reader;
pub(crate) mod source;
mod target;
pub(super) mod writer;
mod writer_thread;
