//! A scope whose samples are elsewhere: viewports go there and pictures come, as messages. Neither end knows a socket or a clock.
//!
//! ```text
//!   there: ScopeLink -> ViewerSession (what one viewer asked for, knows, and is sent next)
//!            text: replies                         | messages
//!            binary: picture, items -> pieces   v
//!   here:  ScopeLink <- RemoteScope (what came, put together again)
//! ```
//!
//! Columns come bit for bit as they are there. Everything is bounded at both ends, whatever the other says.

mod bytes;
mod columns;
pub(crate) mod control;
mod finding;
#[cfg(test)]
mod golden;
mod greeting;
pub(crate) mod items;
mod message;
mod pace;
mod picture;
mod pieces;
mod replies;
pub(crate) mod requests;
mod residuals;
mod scope;
pub(crate) mod session;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

pub use bytes::Malformed;
pub use control::{Right, SharedControls, SourceControls};
pub use greeting::{Greeting, Refusal, greeting};
pub use message::ScopeMessage;
pub(crate) use message::{FILE, PICTURE, PIECES, PROTOCOL};
pub use replies::ChannelMeaning;
pub use scope::{RemoteScope, RemoteScopeError};
pub use session::{ScopeOffer, ViewerSession};
