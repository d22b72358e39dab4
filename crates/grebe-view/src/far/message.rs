//! The messages between a far viewer and its server.

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
pub(crate) const PROTOCOL: u32 = 1;

/// First bytes of binary messages.
pub(crate) const PICTURE: u8 = 1;

pub(crate) const PIECES: u8 = 2;

/// To a page alone: what a person saved there.
pub(crate) const FILE: u8 = 3;
