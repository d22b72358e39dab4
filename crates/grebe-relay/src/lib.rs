//! Meeting point for two ends that may not reach each other. A relay tells each end the other's addresses,
//! and forwards their datagrams if no direct route works.
//!
//! The relay ([`Relay`]) is blind. It identifies a meeting by a public key that both ends derive from their
//! ticket's key. With that key it verifies that an end has the ticket. It sees only sealed datagrams. An
//! end's side ([`Meeting`]) needs no socket: the owner of a socket passes in received datagrams and sends its
//! messages. **The relayed route is an address like any other**: the relay's own. A session need not know
//! which kind its peer's address is.
//!
//! ```
//! use grebe_packet::Key;
//! use grebe_relay::{Meeting, Side, Standing, Via};
//!
//! # fn main() -> Result<(), grebe_relay::Error> {
//! let (own, relay) = ("192.168.1.7:4000".parse().unwrap(), "203.0.113.5:4737".parse().unwrap());
//! let mut meeting = Meeting::new(&Key::random()?, Side::Asks, Via::Any, own, vec![own], &[relay])?;
//! let (to, question) = meeting.poll(0).expect("it asks at once");
//! assert_eq!((to, question.len()), (relay, grebe_relay::MESSAGE_BYTES));
//! assert_eq!(meeting.standing(), Standing::Unheard);
//! # Ok(())
//! # }
//! ```
//!
//! `docs/relay-protocol.md` describes the messages.
#![forbid(unsafe_code)]

mod error;
mod io;
mod proto;

pub use error::{Error, Result};
pub use io::server::{Relay, RelayOptions};
pub use proto::{
    meeting::{Meeting, Standing, Through, Via, canonical},
    message::{MESSAGE_BYTES, Refusal, Side},
    relay::{Figures, Limits},
};

/// Default port of a relay.
pub const PORT: u16 = 4737;

/// The protocol's core for this workspace's fuzz targets. It may change in any release.
#[doc(hidden)]
pub mod internals {
    pub use crate::io::streams::next_datagram;
    pub use crate::proto::{
        message::{Join, Message, MessageBuf},
        relay::{Outbox, RelayCore},
    };
}
