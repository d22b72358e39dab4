//! Streams found by name in a lab of many hosts, and carried where nothing else passes: over [Zenoh](https://zenoh.io).
//!
//! ```text
//!   producer                                             reader
//!   Lab::announce --- grebe/here/ID/NAME (token) ------> Lab::watch   who is there
//!                 --- grebe/what/ID/NAME (query) ------> Lab::list    what it is, and by which ways it can be had
//!   Lab::take_requests <--- grebe/udp/ID/NAME (query) -- Lab::request that it is sent by UDP, and whereto
//!   CountsSender ---- grebe/counts/ID/N (messages) ----> CountsWatch  what it counts, where somebody watches
//!   DataSender ------ grebe/data/ID/NAME (messages) ---> DataReceiver its frames, where no other way passes
//! ```
//!
//! A [`Lab`] is this process's session. A [`StreamName`] names a stream, [`What`] says what it is; [`pieces`] takes a message of
//! frames apart. Nothing here knows what a stage does with them.
//!
//! Without the feature `zenoh` names are read and written as ever, and [`Lab::open`] says how to build it in.
#![forbid(unsafe_code)]

mod counts;
mod error;
mod message;
mod name;
mod options;
mod random;
mod request;
mod what;

#[cfg(not(feature = "zenoh"))]
mod absent;
#[cfg(feature = "zenoh")]
mod session;

#[cfg(not(feature = "zenoh"))]
use absent as imp;
#[cfg(feature = "zenoh")]
use session as imp;

pub use counts::Counts;
pub use error::Error;
pub use imp::{
    Announcement, CountsSender, CountsWatch, DataReceiver, DataSender, Lab, Message, Presence, Requests,
    Using, Watch,
};
pub use message::{MESSAGE_BYTES_MAX, Piece, Pieces, SenderId, pieces};
pub use name::{Pattern, StreamName, check_key};
pub use options::{Overflow, SessionOptions, configure};
pub use request::{Answer, Nonce, Request};
pub use what::{Found, What, boot_id, host_name};

#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
