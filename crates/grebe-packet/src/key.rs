use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::Result;

/// A one-time key. It is wiped from memory when dropped, and never printed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; Key::BYTES]);

impl Key {
    /// Length of a key.
    pub const BYTES: usize = 32;

    /// A new key from the system's random numbers.
    ///
    /// # Errors
    /// [`Error::Random`](crate::Error::Random) where the system has none.
    pub fn random() -> Result<Self> {
        let mut key = Self([0; Self::BYTES]);
        getrandom::fill(&mut key.0)?;
        Ok(key)
    }

    /// The key that consists of these bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The secret itself.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}
