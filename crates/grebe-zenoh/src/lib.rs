//! Streams found by name in a lab of many hosts, and carried over [Zenoh](https://zenoh.io) if no other route works.
//!
//! ```text
//!   producer                                             reader
//!   Lab::announce --- grebe/here/ID/NAME (token) ------> Lab::watch   producers
//!                 --- grebe/what/ID/NAME (query) ------> Lab::list    descriptions and routes
//!   Lab::take_requests <--- grebe/udp/ID/NAME (query) -- Lab::request request for UDP, with addresses
//!   CountsSender ---- grebe/counts/ID/N (messages) ----> CountsWatch  counts, for viewers
//!   DataSender ------ grebe/data/ID/NAME (messages) ---> DataReceiver frames, without another route
//! ```
//!
//! A [`Lab`] is this process's session. A [`StreamName`] names a stream, [`What`] describes it, and [`pieces`] splits a
//! message into frames. This crate knows no stages.
//!
//! Without the feature `zenoh` names can be parsed, and [`Lab::open`] returns an error with advice.
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
