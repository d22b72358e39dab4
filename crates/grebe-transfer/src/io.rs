//! The data path: sockets, disks and clocks around the protocol's core.
//!
//! ```text
//!  reads and hashes   seals and sends      opens and gathers    checks and writes   flushes and notes
//!  [ reader ] ------> [ send thread ] ~~~> [ receive thread ] ----> [ writer ] ----> [ journal thread ]
//!     ^-- empty groups --'    ^--- reports, outcome ---'  ^-- empty groups --'
//! ```
//!
//! Reader and writer are functions that the send and the receive thread call, so that a group is worked on while it lies in one
//! core's cache. They become threads where cores are idle, and as soon as a disk makes the network wait.

mod clock;
pub(crate) mod disk;
pub(crate) mod session;
