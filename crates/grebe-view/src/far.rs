//! A scope whose samples are elsewhere: viewports go there and pictures come, as messages. Neither end knows a socket or a clock.
//!
//! ```text
//!   there: ScopeLink -> FarSession (what one viewer asked for, knows, and is sent next)
//!            text: told                         | messages
//!            binary: picture, items -> pieces   v
//!   here:  ScopeLink <- FarScope (what came, put together again)
//! ```
//!
//! Columns come bit for bit as they are there. Everything is bounded at both ends, whatever the other says.

pub(crate) mod asked;
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
mod residuals;
mod scope;
pub(crate) mod session;
#[cfg(test)]
mod tests;
mod told;
#[cfg(test)]
mod vectors;

pub use bytes::Malformed;
pub use control::{Right, SharedControls, SourceControls};
pub use greeting::{Greeting, Refusal, greeting};
pub use message::FarMessage;
pub(crate) use message::{FILE, PICTURE, PIECES, PROTOCOL};
pub use scope::{FarError, FarScope};
pub use session::{FarOffer, FarSession};
pub use told::ChannelMeaning;
