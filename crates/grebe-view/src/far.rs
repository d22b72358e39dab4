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
mod greeting;
pub(crate) mod items;
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
pub use scope::{FarError, FarScope};
pub use session::{FarOffer, FarSession};
pub use told::ChannelMeaning;

/// One message between a far viewer and its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FarMessage {
    /// JSON: what is asked and what is told.
    Text(String),
    /// A picture, or pieces of what is larger.
    Binary(Vec<u8>),
}

impl FarMessage {
    /// Its bytes, without what carries it.
    #[expect(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> usize {
        match self {
            FarMessage::Text(text) => text.len(),
            FarMessage::Binary(bytes) => bytes.len(),
        }
    }
}

/// What both ends speak.
const PROTOCOL: u32 = 1;
/// First bytes of binary messages.
const PICTURE: u8 = 1;
const PIECES: u8 = 2;
/// To a page alone: what a person saved there.
const FILE: u8 = 3;
