use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::Result;

/// One-time key. Wiped from memory when dropped, and never printed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; Key::BYTES]);

impl Key {
    /// Length of a key in bytes.
    pub const BYTES: usize = 32;

    /// Makes a key from the system's random numbers.
    ///
    /// # Errors
    /// [`Error::Random`](crate::Error::Random) if the system has none.
    pub fn random() -> Result<Self> {
        let mut key = Self([0; Self::BYTES]);
        getrandom::fill(&mut key.0)?;
        Ok(key)
    }

    /// Makes a key from these bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The secret bytes.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_each_time_and_wiped_at_its_end() {
        fn is_wiped(_: &impl ZeroizeOnDrop) {}
        let mut key = Key::random().unwrap();
        is_wiped(&key);
        assert_ne!(key.as_bytes(), Key::random().unwrap().as_bytes());
        key.zeroize();
        assert_eq!(key.as_bytes(), &[0; Key::BYTES]);
    }
}
