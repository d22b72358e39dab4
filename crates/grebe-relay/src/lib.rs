//! Two ends that may not reach each other meet at a relay: it tells each where the other is, and passes on what they send where no direct
//! way lets it through.
//!
//! The relay ([`Relay`]) is blind. It knows a meeting by a public key that both ends derive from their ticket's key, checks with it that who
//! joins has the ticket, and sees sealed datagrams only. An end's side ([`Meeting`]) needs no socket: whoever owns one passes it what came
//! and sends what it says. **The relayed way is an address like any other**: the relay's own. A session that has a peer's address need not
//! know which kind it is.
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
//! The messages are described in `docs/relay.md`.
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

/// Where a relay listens, if it is not told otherwise.
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
