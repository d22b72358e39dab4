//! The messages between a remote viewer and its server.

/// One message between a remote viewer and its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeMessage {
    /// JSON: requests and metadata.
    Text(String),
    /// A picture, or pieces of large items.
    Binary(Vec<u8>),
}

impl ScopeMessage {
    /// Length of the payload in bytes.
    #[expect(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> usize {
        match self {
            ScopeMessage::Text(text) => text.len(),
            ScopeMessage::Binary(bytes) => bytes.len(),
        }
    }
}

/// Protocol version.
pub(crate) const PROTOCOL: u32 = 1;

/// First byte of each binary message: its type.
pub(crate) const PICTURE: u8 = 1;

pub(crate) const PIECES: u8 = 2;

/// To pages only: a file that the person saved.
pub(crate) const FILE: u8 = 3;
